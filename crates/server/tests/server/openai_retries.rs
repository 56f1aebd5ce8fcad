//! H1, H6, H7: retries of clients, streams that wait, and streams of a server that stops.

use std::time::Duration;

use longhaul_journal::delete_session;
use reqwest::Method;
use serde_json::{Value, json};

use crate::openai::{chat, content, events, said, sessions};
use crate::test_server::{TestServer, json_answer};

fn post(server: &TestServer, path: &str, body: &Value) -> reqwest::RequestBuilder {
    server.request(Method::POST, path).header("content-type", "application/json").body(body.to_string())
}

/// H1: an answer may go into a connection that nobody reads any more. The client that counts its retries says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_counted_retry_after_the_answer_runs_no_second_turn() {
    let server = TestServer::with_script(r#"["One.", "Two."]"#).await;
    let body = chat(&json!([said("a")]));
    let send = async |count: &str| {
        json_answer(post(&server, "/v1/chat/completions", &body).header("x-stainless-retry-count", count))
            .await
    };

    let (first, retry) = (send("0").await.1, send("1").await.1);
    assert_eq!((&first["id"], content(&first)), (&retry["id"], content(&retry)));
    assert_eq!(sessions(&server).await.iter().map(|(_, turns)| *turns).collect::<Vec<_>>(), [1]);
    let new = send("0").await.1;

    assert_ne!(first["id"], new["id"], "without a count it is a new request");
    server.shutdown().await;
}

/// H1: an answer that was fetched has reached its client, so the same request is a new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_was_fetched_is_not_given_again() {
    let server = TestServer::with_script(r#"[{"text": "Slowly said.", "wait_ms": 400}]"#).await;
    for is_streamed in [false, true] {
        let body = json!({"input": format!("streamed: {is_streamed}")});
        let cut = post(&server, "/v1/responses", &body).timeout(Duration::from_millis(150)).send().await;
        assert!(cut.is_err());
        let newest = server.runtime.journal().sessions(None, 10).await.unwrap();
        let newest = newest.iter().map(|entry| entry.id).max().unwrap();
        let id = format!("resp_{newest}_1");
        let status = async || server.get(&format!("/v1/responses/{id}")).await.1["status"].clone();
        if is_streamed {
            let fetched = events(&server, &format!("/v1/responses/{id}?stream=true"), None).await;
            assert_eq!(fetched.last().unwrap()["type"], "response.completed");
        } else {
            while status().await != "completed" {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }

        let (code, again) = server.post("/v1/responses", &body).await;

        assert_eq!((code, &again["status"]), (200, &json!("completed")), "{again}");
        assert_ne!(again["id"], json!(id));
    }
    server.shutdown().await;
}

/// H1: a key whose session was deleted does not fail for ever: there is nothing to repeat, so the request runs.
#[tokio::test(flavor = "multi_thread")]
async fn the_idempotency_key_of_a_deleted_session_begins_a_new_one() {
    let server = TestServer::with_script(r#"["One.", "Two."]"#).await;
    let send = async |key: &str| {
        let request = post(&server, "/v1/responses", &json!({"input": "a"})).header("idempotency-key", key);
        json_answer(request).await
    };
    let (_, first) = send("k1").await;
    let key = sessions(&server).await[0].0.clone();
    let deleted = json_answer(server.request(Method::DELETE, &format!("/api/sessions/{key}"))).await;
    assert_eq!(deleted.0, 200, "{deleted:?}");
    delete_session(&*server.runtime.journal(), &key).await.unwrap();

    let (status, second) = send("k1").await;
    let (_, again) = send("k1").await;
    let (long, error) = send(&"k".repeat(256)).await;

    assert_eq!(status, 200, "{second}");
    assert_ne!(first["id"], second["id"]);
    assert_eq!(second["id"], again["id"]);
    assert_eq!((long, &error["error"]["code"]), (400, &json!("invalid_idempotency_key")));
    server.shutdown().await;
}

/// H6: a turn may wait for another one for minutes. The stream begins at once, so that nobody on the way gives up.
#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_a_response_begins_before_its_turn() {
    let script = r#"[{"text": "A slow one, which does not end.", "piece_ms": 60000}]"#;
    let server = TestServer::with_script(script).await;
    let busy = json!({"input": "one", "conversation": "s", "background": true});
    assert_eq!(server.post("/v1/responses", &busy).await.0, 200);

    let waits = json!({"input": "two", "conversation": "s", "stream": true});
    let begun = async {
        let mut stream = post(&server, "/v1/responses", &waits).send().await.unwrap();
        (stream.status().as_u16(), stream.chunk().await.unwrap().unwrap())
    };
    let (status, first) = tokio::time::timeout(Duration::from_secs(10), begun).await.expect("a stream");

    assert_eq!((status, &first[..]), (200, &b":\n\n"[..]));
    server.shutdown().await;
}

/// H7: when the server stops, each stream says so and when to come back, in one event.
#[tokio::test(flavor = "multi_thread")]
async fn the_streams_of_a_server_that_stops_say_when_to_come_back() {
    let script = r#"[{"text": "A slow one, which does not end.", "piece_ms": 60000}]"#;
    let server = TestServer::with_script(script).await;
    let mut chat_body = chat(&json!([said("one")]));
    chat_body["stream"] = true.into();
    let mut streams = Vec::new();
    for (path, body) in
        [("/v1/responses", json!({"input": "two", "stream": true})), ("/v1/chat/completions", chat_body)]
    {
        let mut stream = post(&server, path, &body).send().await.unwrap();
        assert!(stream.chunk().await.unwrap().is_some());
        streams.push(tokio::spawn(stream.text()));
    }

    server.shutdown().await;

    for stream in streams {
        let text = stream.await.unwrap().unwrap();
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(last.starts_with("retry: 1000\n") && last.contains("stopping"), "{text}");
    }
}
