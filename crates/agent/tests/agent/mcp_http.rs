//! MCP servers over HTTP, on real sockets: what they answer, and the user's login there.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use longhaul_agent::Config;
use longhaul_agent::mcp::{LoginState, ServerSettings, ServerState};
use longhaul_protocol::Outcome;
use longhaul_testkit::{McpHttpServer, TestHome};
use serde_json::json;

use crate::mcp::{call, config, heard, open, results};
use crate::sound_records;

fn at(server: &McpHttpServer) -> ServerSettings {
    ServerSettings { url: server.url(), timeout_s: 30, ..ServerSettings::default() }
}

/// What a browser gets: the status, and where it is sent on to.
fn browse(url: &str) -> (u16, Option<String>) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
    (status, location.map(|location| location.trim().to_owned()))
}

/// Logs in as a user does: in a browser, which comes back to us.
async fn log_in(config: &Config) -> Result<(), String> {
    let servers = longhaul_agent::configured_servers(config).unwrap();
    let login = servers.login("web").await.unwrap().map_err(|error| error.to_string())?;
    let url = login.url().to_owned();
    let browser = std::thread::spawn(move || {
        let (_, back) = browse(&url);
        let back = back.unwrap();
        // Any page can send the browser here; without the state of this login, that changes nothing.
        assert_eq!(browse(&back.replace("state=", "state=x")).0, 404);
        browse(&back).0
    });
    login.wait().await.map_err(|error| error.to_string())?;
    assert_eq!(browser.join().unwrap(), 200);
    Ok(())
}

/// E1, E2
#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_works_like_any_other() {
    let place = TestHome::new();
    let server = McpHttpServer::start(&place.work(), &[]);
    let (runtime, model) =
        open(config(&place, &[("web", at(&server))]), &json!([call("web__echo", "hello"), "Done."])).await;

    let ended = runtime.session("a").await.unwrap().send("go").await.unwrap();

    assert_eq!(ended.outcome, Outcome::Completed);
    assert_eq!(heard(&model.requests()[1].items).last().unwrap(), "hello");
    let status = &runtime.mcp_servers()[0];
    assert_eq!((status.state, status.protocol.as_deref()), (ServerState::Ready, Some("2025-11-25")));
    runtime.shutdown().await.unwrap();
}

/// E1: 100 MB, an answer that never ends, and one that is no message: each costs its own call only.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_http_that_is_too_long_or_broken_costs_its_call_only() {
    let place = TestHome::new();
    let server = McpHttpServer::start(&place.work(), &[]);
    let answers = json!([
        call("web__huge", ""),
        call("web__endless", ""),
        call("web__broken", ""),
        call("web__echo", "alive"),
        "Done."
    ]);
    let (runtime, _) = open(config(&place, &[("web", at(&server))]), &answers).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.outcome, Outcome::Completed);
    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    assert!(found[0].2.contains("a message of more than 16 MiB"), "{found:?}");
    assert!(found[1].1 && found[2].1, "{found:?}");
    assert!(
        found[2].2.contains("is not a message") && found[2].2.contains("<html>hello</html>"),
        "{found:?}"
    );
    assert_eq!(found[3].2, "alive");
    // We hung up long before the end.
    let log = server.log();
    let sent: Vec<u32> =
        log.lines().filter_map(|line| line.strip_prefix("hung up after ")?.parse().ok()).collect();
    // An answer that never ends is one message, and what the sockets hold comes on top.
    assert!(sent.len() == 2 && sent[0] < 90 && sent[1] < 50, "{log}");
}

/// E1: a server that was started again knows no session of before. It says so with an error that names no request; the call that met it
/// is made once.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_server_has_forgotten_is_begun_again_for_the_next_call() {
    let place = TestHome::new();
    let server = McpHttpServer::start(&place.work(), &["--sessions"]);
    let answers = json!([call("web__echo", "before"), "First.", call("web__write", "once"), "Second."]);
    let (runtime, _) = open(config(&place, &[("web", at(&server))]), &answers).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    std::fs::write(place.work().join("forget.sessions"), "").unwrap();

    session.send("two").await.unwrap();

    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    let found: Vec<_> = found.iter().map(|(_, is_error, content)| (*is_error, content.as_str())).collect();
    assert_eq!(found, [(false, "before"), (false, "once")]);
    assert_eq!(server.log().lines().filter(|line| *line == "write once").count(), 1);
}

/// E1, E2: an answer that breaks off and can't be had again ends the call, which may have happened.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_answer_breaks_off_does_not_wait_for_its_timeout() {
    let place = TestHome::new();
    let server = McpHttpServer::start(&place.work(), &["--sessions"]);
    let answers = json!([call("web__cut", ""), call("web__echo", "alive"), "Done."]);
    let (runtime, _) = open(config(&place, &[("web", at(&server))]), &answers).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    assert!(
        found[0].2.starts_with("unknown: ") && found[0].2.contains("the connection to it failed"),
        "{found:?}"
    );
    assert_eq!(found[1].2, "alive");
}

/// E1, E2: what never reached the server has not happened. Its state says what is wrong until it can be reached again.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_an_http_server_that_is_gone_is_not_run_and_a_later_one_reaches_it_again() {
    let place = TestHome::new();
    let server = McpHttpServer::start(&place.work(), &["--sessions"]);
    let (port, settings) = (server.port().to_string(), at(&server));
    let answers =
        json!(["First.", call("web__write", "gone"), "Second.", call("web__write", "back"), "Third."]);
    let (runtime, _) = open(config(&place, &[("web", settings)]), &answers).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();

    drop(server);
    session.send("two").await.unwrap();
    let status = runtime.mcp_servers().remove(0);
    let server = McpHttpServer::start(&place.work(), &["--sessions", "--port", &port]);
    session.send("three").await.unwrap();

    assert_eq!(status.state, ServerState::Failed, "{status:?}");
    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    assert!(found[0].1 && found[0].2.starts_with("not run: the MCP server web can't be used"), "{found:?}");
    assert_eq!((found[1].1, found[1].2.as_str()), (false, "back"));
    assert!(!server.log().contains("write gone"), "{}", server.log());
}

/// E1: a server that wants a login says so where the user looks, and works after it. The token is private, renewed, and never shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_given_by_the_user_kept_private_and_renewed() {
    let place = TestHome::new();
    // Each token lasts so short that it is renewed before each request.
    let server = McpHttpServer::start(&place.work(), &["--login", "--expires", "5"]);
    let config = config(&place, &[("web", at(&server))]);
    let find = json!({"calls": [{"name": "tools_find", "arguments": {"query": "authorization"}}]});
    let named = json!({"name": "web__authorization", "arguments": {"text": ""}});
    let by_name = json!({"calls": [{"name": "tools_call", "arguments": named}]});
    let answers = json!([find, "Not yet.", find, by_name, "Done."]);
    let (runtime, model) = open(config.clone(), &answers).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    let hint = "it needs a login; run `longhaul mcp login web`";
    assert!(heard(&model.requests()[1].items).last().unwrap().contains(hint));
    assert!(runtime.mcp_servers()[0].reason.as_deref().unwrap().contains(hint));
    let servers = longhaul_agent::configured_servers(&config).unwrap();
    assert_eq!(servers.login_state("web"), Some(LoginState::Needed));

    log_in(&config).await.unwrap();
    session.send("two").await.unwrap();

    assert_eq!(servers.login_state("web"), Some(LoginState::LoggedIn));
    let said = heard(&model.requests().last().unwrap().items);
    assert_eq!(said.last().unwrap(), "Bearer [redacted]", "{said:?}");
    assert!(
        server.log().lines().filter(|line| *line == "token refresh_token").count() > 1,
        "{}",
        server.log()
    );
    let logins = place.home().join("mcp/logins");
    for entry in std::fs::read_dir(&logins).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let told: String = records.iter().map(|record| format!("{:?}", record.body)).collect();
    for token in server.given_tokens() {
        assert!(!told.contains(&token));
    }
    assert!(servers.logout("web").unwrap().unwrap());
    assert_eq!(servers.login_state("web"), Some(LoginState::NotNeeded));
}

/// E1, E7: if a server no longer says where its login is from, the address of its token endpoint would be a guess: the server itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_not_renewed_at_a_server_that_does_not_name_who_gave_it() {
    for (expires, state) in [("3600", LoginState::LoggedIn), ("5", LoginState::Needed)] {
        let place = TestHome::new();
        let server = McpHttpServer::start(&place.work(), &["--login", "--expires", expires]);
        let config = config(&place, &[("web", at(&server))]);
        log_in(&config).await.unwrap();
        std::fs::write(place.work().join("no-discovery"), "").unwrap();
        let (runtime, model) = open(config.clone(), &json!([call("web__echo", "hello"), "Done."])).await;

        runtime.session("a").await.unwrap().send("go").await.unwrap();

        let said = heard(&model.requests()[1].items);
        assert_eq!(said.last().unwrap() == "hello", state == LoginState::LoggedIn, "{said:?}");
        assert!(!server.log().contains("token refresh_token"), "{}", server.log());
        let servers = longhaul_agent::configured_servers(&config).unwrap();
        assert_eq!(servers.login_state("web"), Some(state));
        runtime.shutdown().await.unwrap();
    }
}

/// E1: a call that needs more rights is not run; the next login asks for them together with those that there were.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_more_rights_works_after_another_login() {
    let place = TestHome::new();
    let server = McpHttpServer::start(&place.work(), &["--login"]);
    let config = config(&place, &[("web", at(&server))]);
    log_in(&config).await.unwrap();
    let answers = json!([call("web__write", "one"), "First.", call("web__write", "two"), "Second."]);
    let (runtime, _) = open(config.clone(), &answers).await;
    let session = runtime.session("a").await.unwrap();

    session.send("one").await.unwrap();
    log_in(&config).await.unwrap();
    session.send("two").await.unwrap();

    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    assert!(found[0].2.starts_with("not run:") && found[0].2.contains("mcp login web"), "{found:?}");
    assert_eq!((found[1].1, found[1].2.as_str()), (false, "two"));
    let log = server.log();
    let asked: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("authorize ")).collect();
    assert_eq!(asked[0], "read");
    let mut scopes: Vec<&str> = asked[1].split(' ').collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["read", "write"]);
}

/// E7, P5: a server says where one logs in, and could name anything that only this machine reaches.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_not_send_a_login_to_a_private_address() {
    let place = TestHome::new();
    let inside = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    inside.set_nonblocking(true).unwrap();
    let issuer = format!("http://127.0.0.1:{}", inside.local_addr().unwrap().port());
    let server = McpHttpServer::start(&place.work(), &["--login", "--issuer", &issuer]);
    let config = config(&place, &[("web", at(&server))]);

    let outcome = log_in(&config).await;

    assert!(outcome.is_err(), "{outcome:?}");
    assert!(server.log().contains("/.well-known/oauth-protected-resource"), "{}", server.log());
    let connected = inside.accept();
    assert_eq!(connected.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
