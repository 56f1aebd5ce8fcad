//! H6: streams of the OpenAI-compatible API are counted, and one that is not read is closed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use longhaul_server::ServerOptions;
use reqwest::Method;
use serde_json::{Value, json};

use crate::test_server::{ADMIN_TOKEN, TestServer, test_options};

fn one_follower() -> ServerOptions {
    ServerOptions { max_followers: 1, read_timeout: Duration::from_millis(300), ..test_options() }
}

/// Asks for a stream.
async fn stream(server: &TestServer, text: &str) -> reqwest::Response {
    let request = server.request(Method::POST, "/v1/responses").header("content-type", "application/json");
    request.body(json!({"input": text, "stream": true}).to_string()).send().await.unwrap()
}

/// H6: a stream too many is refused before anything is put into a session, in OpenAI's form.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_too_many_is_refused_and_a_closed_one_makes_room() {
    let script = r#"[{"text": "A slow one, which does not end.", "piece_ms": 60000}]"#;
    let server = TestServer::with_options(script, one_follower()).await;

    let mut first = stream(&server, "one").await;
    assert!(first.chunk().await.unwrap().is_some());
    let second = stream(&server, "two").await;
    let refused = (second.status().as_u16(), second.bytes().await.unwrap());
    let api = server.get("/api/events").await;
    drop(first);
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while stream(&server, "three").await.status() != 200 {
        assert!(std::time::Instant::now() < deadline, "the closed stream makes no room");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let error: Value = serde_json::from_slice(&refused.1).unwrap();
    assert_eq!((refused.0, &error["error"]["code"]), (503, &json!("too_many_followers")));
    assert_eq!(
        (api.0, &api.1["code"]),
        (503, &json!("too_many_followers")),
        "all streams are counted together"
    );
    let inputs = server.runtime.journal().sessions(None, 10).await.unwrap().len();
    assert_eq!(inputs, 2, "what was refused is in no session");
    server.shutdown().await;
}

/// H6: a client that does not read is closed. Its turn goes on, and it can come back for the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_closed_and_can_come_back() {
    let words = "x".repeat(1_900_000);
    let script = json!([words, "Hello."]).to_string();
    let server = TestServer::with_options(&script, one_follower()).await;
    let body = json!({"input": "tell", "stream": true, "metadata": {"session": "a"}}).to_string();
    let mut slow = TcpStream::connect(server.address()).unwrap();
    write!(
        slow,
        "POST /v1/responses HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();

    server.poll("/api/sessions/a", |session| session["turns"] == 1 && session["state"] == "idle").await;
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while stream(&server, "other").await.status() != 200 {
        assert!(std::time::Instant::now() < deadline, "the slow client is not closed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let told = tokio::task::spawn_blocking(move || {
        let mut told = Vec::new();
        // The server may reset the connection.
        let _ = slow.read_to_end(&mut told);
        String::from_utf8_lossy(&told).into_owned()
    });
    let told = told.await.unwrap();
    assert!(told.contains("response.output_text.delta"), "{} bytes", told.len());
    assert!(!told.contains("response.completed"), "{} bytes", told.len());
    let id = server.runtime.session("a").await.unwrap().id().unwrap();
    let (_, whole) = server.get(&format!("/v1/responses/resp_{id}_1")).await;
    assert_eq!(whole["output"][0]["content"][0]["text"], words.as_str());
    server.shutdown().await;
}
