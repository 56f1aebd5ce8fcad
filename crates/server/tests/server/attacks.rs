//! H5: what an attacker on a web page, on the network or with a read token can send, and what each gets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use longhaul_protocol::QuestionId;
use longhaul_server::{Scope, ServerOptions};
use longhaul_testkit::TestHome;
use reqwest::Method;
use serde_json::json;

use crate::test_server::{ADMIN_TOKEN, TestServer, json_answer};

/// Sends bytes and returns everything that comes back until the server closes the connection.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The server may refuse before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request that closes its connection.
fn request(line: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for header in headers {
        text += header;
        text += "\r\n";
    }
    (text + "\r\n" + body).into_bytes()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Sends each row of a table: `what | first line | headers, separated by ; | body | status | a part of the answer`. HOST and TOKEN
/// are valid headers, SECRET is the token's text, and A60000 is a long word.
fn check_table(address: SocketAddr, table: &str) {
    let names = [
        ("HOST", format!("Host: {address}")),
        ("TOKEN", format!("Authorization: Bearer {ADMIN_TOKEN}")),
        ("SECRET", ADMIN_TOKEN.to_owned()),
        ("A60000", "a".repeat(60_000)),
    ];
    let named =
        |text: &str| names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
    for row in table.trim().lines() {
        let [what, line, headers, body, expected, code] =
            row.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{row}")
        };
        let headers: Vec<String> = headers.split(';').map(|header| named(header.trim())).collect();
        let headers: Vec<&str> =
            headers.iter().map(String::as_str).filter(|header| !header.is_empty()).collect();

        let answer = exchange(address, &request(&named(line), &headers, body));

        assert_eq!(status(&answer).to_string(), expected, "{what}: {answer}");
        assert!(answer.contains(code), "{what}: {answer}");
        check_headers(what, &answer);
    }
}

/// Every answer has the headers that restrict browsers, no permission for another origin, and no secret.
fn check_headers(what: &str, answer: &str) {
    let head = answer.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
    for header in [
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "content-security-policy: ",
    ] {
        assert!(head.contains(header), "{what}: no {header} in {head}");
    }
    assert!(!head.contains("access-control-allow-origin"), "{what}: {head}");
    assert!(!answer.contains(ADMIN_TOKEN), "{what}: {answer}");
}

const PAGES: &str = r#"
DNS rebinding                      | GET /api/sessions | Host: evil.example; TOKEN | | 403 | host_not_allowed
DNS rebinding of the health check  | GET /healthz | Host: evil.example | | 403 | host_not_allowed
a name that begins like an address | GET /healthz | Host: 127.0.0.1.evil.example | | 403 | host_not_allowed
no Host                            | GET /healthz | | | 400 | host_missing
two Hosts                          | GET /healthz | HOST; Host: evil.example | | 400 | host_missing
a user in the Host                 | GET /healthz | Host: localhost@evil.example | | 400 | host_missing
another host in the first line     | GET http://evil.example/healthz | HOST | | 403 | host_not_allowed
a form of another site             | POST /api/login | HOST; Origin: http://evil.example; Content-Type: text/plain | {} | 403 | origin_not_allowed
the same without an Origin         | POST /api/login | HOST; Sec-Fetch-Site: cross-site; Content-Type: text/plain | {} | 403 | origin_not_allowed
a text that is JSON                | POST /api/login | HOST; Content-Type: text/plain | {} | 415 | unsupported_media_type
no content type                    | POST /api/login | HOST | {} | 415 | unsupported_media_type
a stolen token on another site     | GET /api/sessions | HOST; TOKEN; Origin: http://evil.example | | 403 | origin_not_allowed
another port of this machine       | GET /api/sessions | HOST; TOKEN; Origin: http://localhost:1 | | 403 | origin_not_allowed
a sandboxed frame                  | GET /api/sessions | HOST; TOKEN; Origin: null | | 403 | origin_not_allowed
an image                           | GET /api/sessions | HOST; Sec-Fetch-Site: same-site; Sec-Fetch-Dest: image | | 403 | origin_not_allowed
a link to the API                  | GET /api/tokens | HOST; Sec-Fetch-Site: cross-site; Sec-Fetch-Mode: navigate; Sec-Fetch-Dest: document | | 403 | origin_not_allowed
a preflight                        | OPTIONS /api/sessions | HOST; Origin: http://evil.example; Access-Control-Request-Method: POST | | 403 | origin_not_allowed
a WebSocket                        | GET /api/sessions | HOST; TOKEN; Upgrade: websocket; Sec-WebSocket-Version: 13 | | 400 | no_websocket
a cookie that is made up           | GET /api/sessions | HOST; Cookie: longhaul=99999999999.test.00; Sec-Fetch-Site: same-origin | | 401 | unauthorized
a sign-in from another site        | POST /api/login | HOST; Content-Type: application/json; Origin: http://evil.example | {} | 403 | origin_not_allowed
"#;

/// H5: a token of scope act makes no session that the terminal would open in a folder.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_makes_a_session_with_a_key_of_the_terminal() {
    let server = TestServer::with_tokens("[]", &[("acting", Scope::Act)]).await;
    let post = |path: &str, body: &serde_json::Value| {
        let request = server.anonymous(Method::POST, path).header("authorization", "Bearer acting");
        json_answer(request.header("content-type", "application/json").body(body.to_string()))
    };
    assert_eq!(server.post("/api/sessions", &json!({"key": "mine"})).await.0, 201);

    for key in ["cli:project-0123abcd", "cli:project-0123abcd-2", "run:x"] {
        let made = post("/api/sessions", &json!({"key": key})).await;
        let forked = post("/api/sessions/mine/fork", &json!({"key": key})).await;
        assert_eq!((made.0, forked.0), (403, 403), "{key}: {made:?} {forked:?}");
    }

    assert_eq!(post("/api/sessions", &json!({"key": "cli"})).await.0, 201);
    assert_eq!(server.post("/api/sessions", &json!({"key": "cli:project-0123abcd"})).await.0, 201);
    server.shutdown().await;
}

/// H5, P4: what is allowed for a whole project outlives the session and the token, so it needs an admin.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_allows_a_call_for_a_whole_project() {
    let server = TestServer::with_tokens("[]", &[("acting", Scope::Act)]).await;
    assert_eq!(server.post("/api/sessions", &json!({"key": "a"})).await.0, 201);
    let answer = |answer: &str| json!({"question": QuestionId::generate(), "answer": answer}).to_string();
    let post = async |token: &str, text: &str| {
        let request = server.anonymous(Method::POST, "/api/sessions/a/answers");
        let request = request.header("authorization", format!("Bearer {token}"));
        json_answer(request.header("content-type", "application/json").body(answer(text))).await.0
    };

    let statuses =
        [post("acting", "project").await, post("acting", " P ").await, post("acting", "yes").await];

    assert_eq!(statuses, [403, 403, 404]);
    assert_eq!(post(ADMIN_TOKEN, "project").await, 404);
    server.shutdown().await;
}

/// H5: a session in the trash is not copied out of it. That would be a restore, which needs an admin.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_the_trash_is_not_forked() {
    let server = TestServer::with_script(r#"["Fine."]"#).await;
    server.runtime.session("a").await.unwrap().send("hello").await.unwrap();
    assert_eq!(server.request(Method::DELETE, "/api/sessions/a").send().await.unwrap().status(), 200);

    let forked = server.post("/api/sessions/a/fork", &json!({"key": "b"})).await;

    assert_eq!((forked.0, &forked.1["code"]), (409, &json!("session_in_trash")));
    server.shutdown().await;
}

/// S5: the file of an import that a killed process has left goes when the next server starts; one that is in use stays.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_killed_imports_are_removed() {
    let home = TestHome::new();
    let run = home.home().join("run");
    std::fs::create_dir_all(&run).unwrap();
    let (left, used) = (run.join("transfer-left"), run.join("transfer-used"));
    std::fs::write(&left, "half an export").unwrap();
    let held = std::fs::File::create(&used).unwrap();
    held.lock().unwrap();

    let server = TestServer::in_home(home).await;
    assert_eq!(server.get("/api/sessions").await.0, 200);

    assert_eq!((left.exists(), used.exists()), (false, true));
    server.shutdown().await;
}

/// H5, P6: nothing that a page on another site can make a browser send is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_on_another_site_gets_nothing() {
    let server = TestServer::with_script("[]").await;

    check_table(server.address(), PAGES);

    server.shutdown().await;
}

const TRICKS: &str = r#"
a token in the URL            | GET /api/sessions?token=SECRET | HOST | | 400 | token_in_url
another name for it           | GET /api/sessions?limit=1&Access_Token=SECRET | HOST; TOKEN | | 400 | token_in_url
no token                      | GET /api/tokens | HOST | | 401 | unauthorized
an empty token                | GET /api/tokens | HOST; Authorization: Bearer | | 401 | unauthorized
another scheme                | GET /api/tokens | HOST; Authorization: Basic dGVzdDp0ZXN0 | | 401 | unauthorized
a token that is cut           | GET /api/tokens | HOST; Authorization: Bearer admin-token-of-the-tes | | 401 | unauthorized
a wrong token at sign-in      | POST /api/login | HOST; Content-Type: application/json | {"token":"x"} | 401 | unauthorized
a NUL in a key                | GET /api/sessions/a%00b | HOST; TOKEN | | 400 | invalid_path
a line break in a key         | GET /api/sessions/a%0d%0aSet-Cookie:x=y | HOST; TOKEN | | 400 | invalid_path
a key that is not UTF-8       | GET /api/sessions/%ff%fe | HOST; TOKEN | | 400 | invalid_path
an overlong encoding of a dot | GET /api/sessions/%c0%ae%c0%ae | HOST; TOKEN | | 400 | invalid_path
dots                          | GET /api/sessions/../../etc/passwd | HOST; TOKEN | | 404 |
encoded dots                  | GET /api/sessions/%2e%2e%2f%2e%2e%2fetc%2fpasswd | HOST; TOKEN | | 404 |
a key of 60,000 characters    | GET /api/sessions/A60000 | HOST; TOKEN | | 404 |
TRACE                         | TRACE /api/sessions | HOST; TOKEN | | 405 | method_not_allowed
a method of its own           | BREW /api/sessions | HOST; TOKEN | | 405 | method_not_allowed
an override of the method     | GET /api/tokens | HOST; TOKEN; X-HTTP-Method-Override: DELETE | | 200 | items
a forwarded host              | GET /api/tokens | Host: evil.example; TOKEN; X-Forwarded-Host: localhost | | 403 | host_not_allowed
"#;

/// H5: tokens count in one place only, paths can't hide anything, and no answer can be split.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_tricks_gets_what_an_honest_one_gets() {
    let server = TestServer::with_script("[]").await;

    check_table(server.address(), TRICKS);

    server.shutdown().await;
}

/// H5: bytes that are not HTTP, and requests whose end is ambiguous.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_request_are_refused_and_the_server_goes_on() {
    let server = TestServer::with_script("[]").await;
    let host = server.address().to_string();
    let smuggled = format!(
        "POST /api/login HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET /api/tokens HTTP/1.1\r\nHost: {host}\r\n\r\n"
    );

    for (what, bytes) in [
        ("TLS to a plain port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("nonsense", b"\0\xff\xfe\r\n\r\n".to_vec()),
        ("HTTP/2 without TLS", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        (
            "two lengths",
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
                .into_bytes(),
        ),
        (
            "a line break in a header",
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: a\nb\r\n\r\n").into_bytes(),
        ),
        ("a folded header", format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: a\r\n b\r\n\r\n").into_bytes()),
    ] {
        let answer = exchange(server.address(), &bytes);
        assert!(answer.is_empty() || status(&answer) == 400, "{what}: {answer}");
    }
    let answer = exchange(server.address(), smuggled.as_bytes());
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "one request, one answer: {answer}");

    assert_eq!(server.get("/api/sessions").await.0, 200);
    server.shutdown().await;
}

/// H5: the config can allow other hosts and pages. They get no cookie, and other pages still get nothing.
#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_origins_of_the_config_are_served() {
    let options = ServerOptions {
        allowed_hosts: vec!["agent.example".to_owned()],
        allowed_origins: vec!["https://friend.example".to_owned()],
        ..ServerOptions::default()
    };
    let server = TestServer::configured(options).await;
    let token = format!("Authorization: Bearer {ADMIN_TOKEN}");
    let token = token.as_str();
    let (host, friend) = ("Host: agent.example", "Origin: https://friend.example");
    let send = |line: &str, headers: &[&str]| exchange(server.address(), &request(line, headers, ""));

    let plain = send("GET /api/sessions", &[host, token]);
    let page = send("GET /api/sessions", &[host, token, friend, "Sec-Fetch-Site: cross-site"]);
    let asked =
        ["Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization, x-own"];
    let preflight = send("OPTIONS /api/sessions", &[host, friend, asked[0], asked[1]]);
    let other = send("GET /api/sessions", &[host, token, "Origin: https://enemy.example"]);

    let allows = "access-control-allow-origin: https://friend.example";
    assert_eq!((status(&plain), plain.contains(allows)), (200, false), "{plain}");
    assert_eq!((status(&page), page.contains(allows)), (200, true), "{page}");
    assert!(!page.contains("allow-credentials"), "{page}");
    assert_eq!((status(&preflight), preflight.contains(allows)), (204, true), "{preflight}");
    assert!(preflight.contains("access-control-allow-headers: authorization, x-own"), "{preflight}");
    assert_eq!(status(&other), 403, "{other}");
    server.shutdown().await;
}
