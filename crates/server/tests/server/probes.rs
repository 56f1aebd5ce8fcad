//! H7: health, readiness and figures.

use std::time::{Duration, Instant};

use longhaul_protocol::StreamName;
use reqwest::Method;
use serde_json::{Value, json};

use crate::test_server::TestServer;

/// H7.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_ready_while_its_journal_can_be_written() {
    let server = TestServer::with_script("[]").await;
    let ready = server.anonymous(Method::GET, "/readyz").send().await.unwrap();
    let head = server.runtime.journal().head(&StreamName::readiness()).await.unwrap();

    // What a broken disk looks like to the server.
    server.runtime.journal().close().await;
    let deadline = Instant::now() + Duration::from_secs(20);
    let (status, problem) = loop {
        // The answer of the last look counts for a second.
        let answer = server.anonymous(Method::GET, "/readyz");
        let answer = answer.send().await.unwrap();
        if answer.status() != 200 {
            break (answer.status().as_u16(), answer.bytes().await.unwrap());
        }
        assert!(Instant::now() < deadline, "still ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let problem: Value = serde_json::from_slice(&problem).unwrap();
    let alive = server.anonymous(Method::GET, "/healthz").send().await.unwrap();

    assert_eq!(ready.status(), 200);
    assert_eq!(head.seq, 0, "a probe leaves no record");
    assert_eq!((status, &problem["code"]), (503, &json!("not_ready")));
    assert!(problem["detail"].as_str().unwrap().starts_with("the journal can't be written"), "{problem}");
    assert!(!problem.to_string().contains("journal.db"), "anyone may ask: {problem}");
    assert_eq!(alive.status(), 200);
    server.shutdown().await;
}

/// H7: figures need a token, and no label is an id, a key or a token.
#[tokio::test(flavor = "multi_thread")]
async fn figures_count_requests_and_turns_without_naming_sessions() {
    let server = TestServer::with_script(r#"["Hello."]"#).await;
    server.runtime.session("secret-key").await.unwrap().send("hi").await.unwrap();
    server.get("/api/sessions").await;
    server.get("/api/nothing/secret-key").await;

    let refused = server.anonymous(Method::GET, "/metrics").send().await.unwrap();
    let read =
        || async { server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap() };
    let mut text = read().await;
    for _ in 0..200 {
        if text.contains("longhaul_turns_total{outcome=\"completed\"} 1") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        text = read().await;
    }

    assert_eq!(refused.status(), 401);
    for line in [
        "longhaul_turns_total{outcome=\"completed\"} 1",
        "longhaul_http_requests_total{method=\"GET\",route=\"/api/sessions\",status=\"200\"} 1",
        "longhaul_http_requests_total{method=\"GET\",route=\"none\",status=\"404\"} 1",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(!text.contains("secret-key"), "{text}");
    server.shutdown().await;
}
