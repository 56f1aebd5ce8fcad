//! What a list, the overview and the status say of how a session's last turn ended, and orders that have nothing to do.

use reqwest::Method;
use serde_json::{Value, json};

use crate::event_client::EventStream;
use crate::test_server::{TestServer, json_answer};

/// Runs so many turns of a new session.
async fn send(server: &TestServer, key: &str, turns: usize) {
    server.post("/api/sessions", &json!({"key": key})).await;
    for _ in 0..turns {
        server.runtime.session(key).await.unwrap().send("hello").await.unwrap();
    }
}

/// H3: a session whose last turn failed, was cancelled or reached a limit is told apart from one that is done, in the list, in the
/// status and in the overview.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_says_how_its_last_turn_ended() {
    // Each session plays the answers from the first on.
    let slow = json!({"text": "one two three four five six seven eight nine ten", "piece_ms": 200});
    let looks = json!({"calls": [{"name": "recall", "arguments": {"query": "x"}}]});
    let script = json!([slow, looks, {"error": "out of quota\nand more"}]).to_string();
    let server = TestServer::with_settings(&script, |config| config.settings.limits.steps = 1).await;
    server.post("/api/sessions", &json!({"key": "cancelled"})).await;
    let mut stream = EventStream::open(&server, "/api/sessions/cancelled/events").await;
    server.post("/api/sessions/cancelled/inputs", &json!({"text": "go"})).await;
    stream.events_until("text_delta").await;
    server.post("/api/sessions/cancelled/cancel", &json!({})).await;
    stream.events_until("turn_ended").await;
    tokio::join!(send(&server, "done", 1), send(&server, "limited", 2), send(&server, "failed", 3));

    let (_, listed) = server.get("/api/sessions").await;
    let (_, failed) = server.get("/api/sessions?state=failed").await;
    let (_, idle) = server.get("/api/sessions?state=idle").await;
    let mut overview = EventStream::open(&server, "/api/events").await;
    let mut told = Vec::new();
    while told.len() < 4 {
        told.extend(overview.next().await.unwrap().event().cloned());
    }
    told.sort_by_key(|message| message["key"].to_string());

    let outcomes = |list: &[Value]| {
        let outcome = |item: &Value| [&item["key"], &item["state"], &item["last_outcome"]].map(Value::clone);
        list.iter().map(outcome).collect::<Vec<_>>()
    };
    let expected = [
        ["cancelled", "idle", "cancelled"],
        ["done", "idle", "completed"],
        ["failed", "failed", "failed"],
        ["limited", "idle", "limit"],
    ];
    assert_eq!(json!(outcomes(listed["items"].as_array().unwrap())), json!(expected));
    assert_eq!(json!(outcomes(&told)), json!(expected), "the overview");
    assert_eq!((failed["items"].as_array().unwrap().len(), idle["items"].as_array().unwrap().len()), (1, 3));
    let reason = failed["items"][0]["failure"].as_str().unwrap();
    assert!(reason.contains("out of quota") && !reason.contains('\n'), "{reason}");
    assert_eq!((&told[2]["failure"], &told[0]["failure"]), (&json!(reason), &Value::Null));
    assert!(told[3]["failure"].as_str().unwrap().contains("limits.steps"), "{}", told[3]);
    let (_, status) = server.get("/api/sessions/failed").await;
    assert_eq!(
        (&status["state"], &status["failure"], &status["last_outcome"]),
        (&json!("failed"), &json!(reason), &json!("failed"))
    );
    server.shutdown().await;
}

/// H3: the answer to an order that has nothing to do has the sentence that the command line prints, also while others of its kind
/// wait. The session stays as it is.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_has_nothing_to_do_says_why() {
    let slow = json!({"text": "word ".repeat(500), "piece_ms": 100});
    let server = TestServer::with_script(&json!(["Done.", slow, "The rest."]).to_string()).await;
    let order = async |name: &str| {
        json_answer(server.request(Method::POST, &format!("/api/sessions/a/{name}"))).await
    };
    let changes_nothing = async |name: &str, why: &str| {
        let (status, accepted) = order(name).await;
        assert_eq!((status, &accepted["note"]), (202, &json!(why)), "{accepted}");
    };
    server.post("/api/sessions", &json!({"key": "a"})).await;
    changes_nothing("retry", "nothing to retry: there is no turn yet").await;
    server.runtime.session("a").await.unwrap().send("hello").await.unwrap();

    changes_nothing("cancel", "a has no running turn").await;
    changes_nothing("retry", "nothing to retry: the last turn completed").await;
    changes_nothing("continue", "nothing to continue: the last answer is complete").await;

    let mut stream = EventStream::open(&server, "/api/sessions/a/events").await;
    server.post("/api/sessions/a/inputs", &json!({"text": "go"})).await;
    stream.events_until("text_delta").await;
    let (status, cancelled) = order("cancel").await;
    assert_eq!((status, &cancelled["note"]), (202, &json!(null)), "{cancelled}");
    stream.events_until("turn_ended").await;
    changes_nothing("retry", "nothing to retry: the last turn was cancelled").await;
    let (status, goes_on) = order("continue").await;
    assert_eq!((status, &goes_on["note"]), (202, &json!(null)), "the answer was interrupted: {goes_on}");
    stream.events_until("turn_ended").await;
    let (_, after) = server.get("/api/sessions/a").await;
    assert_eq!(
        (&after["turns"], &after["waiting"]),
        (&json!(3), &json!(0)),
        "no order has begun a turn of its own"
    );
    server.shutdown().await;
}
