//! H5: signing in, signing out, and tokens that come and go.

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use longhaul_journal::Journal as _;
use longhaul_model::ScriptedModel;
use longhaul_server::{Scope, ServerOptions, create_token, list_tokens, revoke_token};
use longhaul_testkit::{GatedModel, TestHome};
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

/// H5: a token of the journal that the environment gives as well keeps its own scope, and can be revoked.
#[tokio::test(flavor = "multi_thread")]
async fn a_made_token_keeps_its_scope_wherever_else_it_comes_from() {
    let home = TestHome::new();
    let journal = home.journal().await;
    let token = create_token(&*journal, "program", Scope::Read).await.unwrap();
    journal.close().await;
    let server = TestServer::in_home_with_token(home, &token).await;
    let status = async |path: &str| {
        let request = server.anonymous(Method::GET, path).header("authorization", format!("Bearer {token}"));
        request.send().await.unwrap().status().as_u16()
    };

    let statuses = [status("/api/sessions").await, status("/api/tokens").await];
    revoke_token(&*server.runtime.journal(), "program").await.unwrap();
    eventually(async || status("/api/sessions").await == 401).await;

    assert_eq!(statuses, [200, 403]);
    server.shutdown().await;
}

/// H5: a token that is revoked while its request waits for a turn gets no answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_gets_nothing_once_its_token_is_revoked() {
    let (model, gate) = GatedModel::new(ScriptedModel::from_json(r#"["The secret."]"#).unwrap());
    let server = TestServer::with_model(model).await;
    let journal = server.runtime.journal();
    let token = create_token(&*journal, "guest", Scope::Act).await.unwrap();
    let as_guest = |method, path: &str| {
        server.anonymous(method, path).header("authorization", format!("Bearer {token}"))
    };
    eventually(async || as_guest(Method::GET, "/api/sessions").send().await.unwrap().status() == 200).await;
    let body = json!({"model": "longhaul", "messages": [{"role": "user", "content": "hello"}]}).to_string();
    let asking = as_guest(Method::POST, "/v1/chat/completions").header("content-type", "application/json");
    let asking = tokio::spawn(asking.body(body).send());

    gate.reached().await;
    revoke_token(&*journal, "guest").await.unwrap();
    eventually(async || as_guest(Method::GET, "/api/sessions").send().await.unwrap().status() == 401).await;
    gate.open();
    let answer = asking.await.unwrap().unwrap();

    assert_eq!(answer.status(), 401);
    assert!(!answer.text().await.unwrap().contains("secret"));
    server.shutdown().await;
}

/// H5, J4: a record that can't be read may have revoked any token. So the tokens before it do not count, the later ones do, and
/// new ones can be made and revoked.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_brings_no_revoked_token_back() {
    let home = TestHome::new();
    let journal = home.journal().await;
    let revoked = create_token(&*journal, "revoked", Scope::Admin).await.unwrap();
    let lost = create_token(&*journal, "damaged-one", Scope::Read).await.unwrap();
    revoke_token(&*journal, "revoked").await.unwrap();
    let later = create_token(&*journal, "later", Scope::Read).await.unwrap();
    journal.close().await;
    let file = home.home().join("journal.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let places: Vec<usize> = bytes
        .windows(11)
        .enumerate()
        .filter(|(_, part)| part == b"damaged-one")
        .map(|(place, _)| place)
        .collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|place| bytes[place] ^= 1);
    std::fs::write(&file, bytes).unwrap();

    let server = TestServer::in_home(home).await;
    let status = async |token: &str| {
        let request = server.anonymous(Method::GET, "/api/sessions");
        request.header("authorization", format!("Bearer {token}")).send().await.unwrap().status().as_u16()
    };
    let statuses = [status(&revoked).await, status(&lost).await, status(&later).await];
    let journal = server.runtime.journal();
    let listing = list_tokens(&*journal).await.unwrap();
    let new = create_token(&*journal, "revoked", Scope::Read).await.unwrap();
    eventually(async || status(&new).await == 200).await;
    revoke_token(&*journal, "later").await.unwrap();
    eventually(async || status(&later).await == 401).await;

    assert_eq!(statuses, [401, 401, 200]);
    assert_eq!((listing.tokens.len(), listing.has_lost_record), (1, true));
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

/// H5: behind a proxy that speaks TLS, the cookie never goes out over plain HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_for_a_page_behind_a_tls_proxy_is_secure() {
    let options =
        ServerOptions { allowed_hosts: vec!["agent.example.org".to_owned()], ..ServerOptions::default() };
    let server = TestServer::configured(options).await;

    let request = server.anonymous(Method::POST, "/api/login").header("content-type", "application/json");
    let request = request.header("host", "agent.example.org").header("origin", "https://agent.example.org");
    let signed_in = request.body(json!({"token": ADMIN_TOKEN}).to_string()).send().await.unwrap();

    assert_eq!(signed_in.status(), 204);
    assert!(signed_in.headers()["set-cookie"].to_str().unwrap().contains("; Secure"));
    server.shutdown().await;
}

fn cookies_of(answer: &reqwest::Response) -> Vec<String> {
    answer.headers().get_all("set-cookie").iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

fn first_pair(set_cookie: &str) -> String {
    set_cookie.split(';').next().unwrap().to_owned()
}

/// H5: a server on another port of the host can set a cookie of the same name. It neither locks a person out nor signs them in as
/// somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_of_another_port_changes_nothing_and_is_cleared() {
    let server = TestServer::with_tokens("[]", &[("other", Scope::Act)]).await;
    let signed_in = login(&server, ADMIN_TOKEN).await;
    let set = cookies_of(&signed_in);
    let own = first_pair(&set[0]);
    let other = first_pair(&cookies_of(&login(&server, "other").await)[0]);
    let again = first_pair(&cookies_of(&login(&server, ADMIN_TOKEN).await)[0]);
    let answered = async |cookie: String| with_cookie(&server, &cookie, Some("same-origin")).await;

    assert_eq!(answered(format!("longhaul=x; {own}")).await, 200, "the wrong one comes first");
    assert_eq!(answered(format!("{own}; longhaul=")).await, 200);
    assert_eq!(answered(format!("{other}; {own}")).await, 401, "which of the two is meant is not known");
    assert_eq!(answered(format!("{again}; {own}")).await, 200, "the same token twice");
    assert_eq!(answered("longhaul=x; longhaul=y".to_owned()).await, 401);
    let signed_out = server.anonymous(Method::POST, "/api/logout").send().await.unwrap();
    for (set, paths) in
        [(&set[1..], ["/api", "/api/"].as_slice()), (&cookies_of(&signed_out), &["/", "/api", "/api/"])]
    {
        let cleared: Vec<bool> = paths
            .iter()
            .map(|path| set.iter().any(|set| set.starts_with(&format!("longhaul=; Path={path}; Max-Age=0;"))))
            .collect();
        assert!(cleared.iter().all(|cleared| *cleared) && set.len() == paths.len(), "{set:?}");
    }
    server.shutdown().await;
}

/// H5: a cookie that was signed out is of no use, whoever kept a copy. Others of the same token stay signed in.
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_out_cookie_counts_no_more() {
    let server = TestServer::with_script("[]").await;
    let [one, other] = [login(&server, ADMIN_TOKEN).await, login(&server, ADMIN_TOKEN).await]
        .map(|answer| first_pair(&cookies_of(&answer)[0]));
    let out = server.anonymous(Method::POST, "/api/logout").header("cookie", &one).send().await.unwrap();

    assert_eq!(out.status(), 204);
    assert_eq!(with_cookie(&server, &one, Some("same-origin")).await, 401);
    assert_eq!(with_cookie(&server, &other, Some("same-origin")).await, 200);
    let kept = std::fs::read_to_string(server.runtime.config().home.join("run/signed-out-cookies")).unwrap();
    assert_eq!(kept.lines().count(), 1, "{kept}");
    let forged = format!("{one}x");
    server.anonymous(Method::POST, "/api/logout").header("cookie", forged).send().await.unwrap();
    let still = std::fs::read_to_string(server.runtime.config().home.join("run/signed-out-cookies")).unwrap();
    assert_eq!(kept, still, "only genuine cookies are kept");
    server.shutdown().await;
}

/// H8: a page that was loaded before an upgrade finds out; no other page keeps a handle to its window.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_knows_its_version_and_shares_its_window_with_nobody() {
    let server = TestServer::with_script("[]").await;
    let (_, state) = json_answer(server.anonymous(Method::GET, "/api/login")).await;
    let page = server.anonymous(Method::GET, "/").send().await.unwrap();

    assert_eq!(state, json!({"token": null, "scope": null, "version": longhaul_console::version()}));
    assert_eq!(page.headers()["cross-origin-opener-policy"], "same-origin");
    assert!(page.headers()["permissions-policy"].to_str().unwrap().contains("camera=()"));
    server.shutdown().await;
}
