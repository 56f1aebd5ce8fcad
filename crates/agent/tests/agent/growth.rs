//! Within an epoch the context only grows at its end.

use longhaul_protocol::{Input, InputId, Item, JoinMode};
use longhaul_testkit::{RecordingModel, TestHome, collect_until, ended_turn};
use serde_json::json;

use crate::{eventually, open, script, sends, sound_records};

/// The messages of a request, as bytes, without the closing bracket.
fn bytes(items: &[std::sync::Arc<Item>]) -> String {
    let items: Vec<&Item> = items.iter().map(|item| &**item).collect();
    let text = serde_json::to_string(&items).unwrap();
    text.strip_suffix(']').unwrap().to_owned()
}

/// M16, rule 4: over a turn of thirty steps and over a restart in the middle, each request begins with the bytes of the one
/// before it, system prompt and tools included.
#[tokio::test(flavor = "multi_thread")]
async fn every_request_begins_with_the_bytes_of_the_one_before_it() {
    let place = TestHome::new();
    std::fs::write(place.work().join("a.txt"), "content\n").unwrap();
    let step = |number: usize| {
        json!({"reasoning": "hm", "text": format!("step {number}"), "calls": [
            {"name": "read_file", "arguments": {"path": "a.txt", "offset": number}},
            {"name": "write_file", "arguments": {"path": format!("{number}.txt"), "content": "x"}},
            {"name": "unknown", "arguments": "not json"},
        ]})
    };
    let mut answers: Vec<serde_json::Value> = (1..=30).map(step).collect();
    answers.push(json!("Done."));
    answers.push(json!("And again."));
    let model = RecordingModel::new(script(&json!(answers)));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();
    runtime.shutdown().await.unwrap();
    let again = open(&place, model.clone()).await;
    again.session("a").await.unwrap().send("again").await.unwrap();
    again.shutdown().await.unwrap();

    let requests = model.requests();
    assert_eq!(requests.len(), 32);
    for pair in requests.windows(2) {
        assert_eq!((&pair[0].system, &pair[0].tools), (&pair[1].system, &pair[1].tools));
        let (before, after) = (bytes(&pair[0].items), bytes(&pair[1].items));
        assert!(after.len() > before.len() && after.starts_with(&before));
    }
    sound_records(&place, &session).await;
}

/// M16: whatever happens to a turn: an input that joins in the middle of a step, a cancel, a failure, a suspension.
#[tokio::test(flavor = "multi_thread")]
async fn requests_grow_only_at_their_end_whatever_happens_to_a_turn() {
    let place = TestHome::new();
    let look = |number: usize| json!({"text": format!("look {number}"), "calls": [{"name": "list_files", "arguments": {"depth": number}}]});
    let wait = json!({"calls": [
        {"name": "list_files", "arguments": {}},
        {"name": "exec", "arguments": {"command": "echo x > started.txt; while [ ! -e go.txt ]; do sleep 0.02; done"}},
    ]});
    let hang = json!({"text": "so", "calls": [
        {"name": "exec", "arguments": {"command": "echo x > hangs.txt; sleep 300 & wait"}},
        {"name": "list_files", "arguments": {}},
    ]});
    let answers =
        json!([look(1), wait, "Joined.", hang, {"text": "no", "error": "overloaded"}, "Never.", "Never."]);
    let model = RecordingModel::new(script(&answers));
    let first = open(&place, model.clone()).await;
    let session = first.session("a").await.unwrap();
    let sending = sends(&session, "go");
    eventually("the command has started", || async { !place.file("started.txt").is_empty() }).await;

    // It joins while a step runs, and the runtime ends there.
    let input = Input::new(InputId::generate(), "and", JoinMode::Join);
    session.put(input, None).await.unwrap();
    first.shutdown().await.unwrap();
    let _ = sending.await.unwrap();
    let second = open(&place, model.clone()).await;
    let session = second.session("a").await.unwrap();
    let mut watcher = session.watch();
    second.start().await.unwrap();
    std::fs::write(place.work().join("go.txt"), "").unwrap();
    collect_until(&mut watcher, ended_turn).await;
    let cancelled = sends(&session, "hang");
    eventually("the second command has started", || async { !place.file("hangs.txt").is_empty() }).await;
    session.cancel().await.unwrap();
    cancelled.await.unwrap().unwrap();
    session.send("fail").await.unwrap();
    session.send("fail again").await.unwrap();
    second.shutdown().await.unwrap();

    let requests = model.requests();
    assert!(requests.len() >= 6, "{}", requests.len());
    for pair in requests.windows(2) {
        let (before, after) = (bytes(&pair[0].items), bytes(&pair[1].items));
        assert!(after.starts_with(&before), "{before}\n{after}");
    }
    sound_records(&place, &session).await;
}
