//! Within an epoch the context only grows at its end.

use longhaul_protocol::Item;
use longhaul_testkit::{Place, Recording};
use serde_json::json;

use crate::{open, script, sound_records};

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
    let place = Place::new();
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
    let model = Recording::new(script(&json!(answers)));
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
