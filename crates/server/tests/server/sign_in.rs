//! H5: signing in, signing out, and tokens that come and go.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use longhaul_server::{Scope, ServerOptions, create_token, revoke_token};
use reqwest::Method;
use serde_json::{Value, json};

use crate::test_server::{ADMIN_TOKEN, TestServer, json_answer};

async fn login(server: &TestServer, token: &str) -> reqwest::Response {
    let request = server.anonymous(Method::POST, "/api/login").header("content-type", "application/json");
    request.body(json!({"token": token}).to_string()).send().await.unwrap()
}

async fn with_cookie(server: &TestServer, cookie: &str, site: Option<&str>) -> u16 {
    let request = server.anonymous(Method::GET, "/api/sessions").header("cookie", cookie);
    let request = site.iter().fold(request, |request, site| request.header("sec-fetch-site", *site));
    request.send().await.unwrap().status().as_u16()
}

/// H5: the cookie is not the token, counts for pages of this server only, and ends with its token.
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_in_page_is_served_until_its_token_is_revoked() {
    let server = TestServer::with_script("[]").await;
    let journal = server.runtime.journal();
    let token = create_token(&*journal, "page", Scope::Read).await.unwrap();
    eventually(async || login(&server, &token).await.status() == 204).await;

    let signed_in = login(&server, &token).await;
    let set = signed_in.headers()["set-cookie"].to_str().unwrap().to_owned();
    let cookie = set.split(';').next().unwrap();
    let served = with_cookie(&server, cookie, Some("same-origin")).await;
    let refused =
        [with_cookie(&server, cookie, None).await, with_cookie(&server, cookie, Some("none")).await];
    let out = server.anonymous(Method::POST, "/api/logout").send().await.unwrap();
    revoke_token(&*journal, "page").await.unwrap();
    eventually(async || with_cookie(&server, cookie, Some("same-origin")).await == 401).await;

    for part in ["longhaul=", "HttpOnly", "SameSite=Strict", "Max-Age=2592000", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure") && !set.contains(&token), "{set}");
    assert_eq!((served, refused), (200, [401, 401]));
    assert_eq!(out.status(), 204);
    assert!(out.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(login(&server, &token).await.status(), 401);
    server.shutdown().await;
}

/// Sends requests with a stolen cookie and with a token, the latter only where it is given. Goes on running.
const THIEF: &str = r#"
ask() {
    exec 3<>/dev/tcp/$HOST/$PORT
    printf 'GET /api/tokens HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n%s\r\n\r\n' $HOST $PORT "$1" >&3
    cat <&3
}
ask "Cookie: $COOKIE"$'\r\n'"Sec-Fetch-Site: same-origin" > cookie.txt
(setsid bash -c "$(declare -f ask); ask '$COOKIE_HEADERS'" > orphan.txt &)
ask "Authorization: Bearer $TOKEN" > token.txt
until [ -s orphan.txt ]; do sleep 0.05; done
touch done
sleep 600
"#;

/// H5: a browser sends the cookie to every port of a host, so a server that a command runs may have got it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_cookie_is_of_no_use_to_a_command() {
    let call = json!({"command": "bash thief.sh", "run_in_background": true});
    let script = json!([{"calls": [{"name": "exec", "arguments": call}]}, "started"]);
    let server = TestServer::with_script(&script.to_string()).await;
    let signed_in = login(&server, ADMIN_TOKEN).await;
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let (host, port) = (server.address().ip(), server.address().port());
    let variables = format!(
        "export HOST={host} PORT={port} TOKEN={ADMIN_TOKEN} COOKIE='{cookie}'\n\
         export COOKIE_HEADERS=$'Cookie: {cookie}\\r\\nSec-Fetch-Site: same-origin'\n"
    );
    let work = server.home.work();
    std::fs::write(work.join("thief.sh"), variables + THIEF).unwrap();

    server.runtime.session("thief").await.unwrap().send("go").await.unwrap();
    eventually(async || work.join("done").exists()).await;
    let from_outside = with_cookie(&server, &cookie, Some("same-origin")).await;

    let answers = ["cookie.txt", "orphan.txt", "token.txt"].map(|name| server.home.file(name));
    for refused in &answers[..2] {
        assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("from_a_command"), "{refused}");
    }
    assert!(answers[2].starts_with("HTTP/1.1 200 "), "{}", answers[2]);
    assert_eq!(from_outside, 200);
    let (_, tasks) = server.get("/api/tasks").await;
    let id = tasks["items"][0]["task_id"].as_str().unwrap();
    server.post(&format!("/api/tasks/{id}/kill"), &json!({})).await;
    server.shutdown().await;
}

/// H5: scopes, and a list without secrets.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_listed_for_admins_without_their_texts_or_hashes() {
    let server = TestServer::with_script("[]").await;
    let journal = server.runtime.journal();
    let token = create_token(&*journal, "reader", Scope::Read).await.unwrap();
    let as_reader = |path: &str| {
        json_answer(server.anonymous(Method::GET, path).header("authorization", format!("Bearer {token}")))
    };
    eventually(async || as_reader("/api/sessions").await.0 == 200).await;

    let (status, problem) = as_reader("/api/tokens").await;
    let (_, list) = server.get("/api/tokens").await;

    assert_eq!((status, &problem["code"]), (403, &json!("scope")));
    let names: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["test", "reader"]);
    assert_eq!(list["items"][1]["scope"], "read");
    let text = list.to_string();
    assert!(!text.contains(&token) && !text.contains(ADMIN_TOKEN) && !text.contains("hash"), "{text}");
    server.shutdown().await;
}

/// H5: one line a request, with neither the query nor a secret.
#[tokio::test(flavor = "multi_thread")]
async fn the_access_log_has_a_line_for_each_request_and_no_secret() {
    let (lines, log) = sync_channel(16);
    let server =
        TestServer::configured(ServerOptions { access_log: Some(lines), ..ServerOptions::default() }).await;
    let secret = format!("lh_{}", "0123456789abcdef".repeat(4));

    server.get("/api/sessions?limit=5").await;
    server.get(&format!("/api/nothing/{secret}?token={secret}")).await;

    let next = || log.recv_timeout(Duration::from_secs(10)).unwrap();
    let (first, second) = (next(), next());
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["method"], "GET");
    assert_eq!((&first["route"], &first["path"]), (&json!("/api/sessions"), &json!("/api/sessions")));
    assert_eq!((&first["status"], &first["token"]), (&json!(200), &json!("test")));
    assert!(first["bytes"].as_u64().unwrap() > 0 && first["duration_ms"].is_u64(), "{first}");
    assert!(!second.contains(&secret) && !second.contains("token="), "{second}");
    server.shutdown().await;
}

/// Waits until something is so.
async fn eventually(is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so().await {
        assert!(Instant::now() < deadline, "it never came");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
