//! J8: what the runtime knows to be a secret is never written and never shown.

use longhaul_model::Protocol;
use longhaul_protocol::EventKind;
use longhaul_testkit::wire::{Reply, Script, ScriptedAnswer};
use longhaul_testkit::{TestHome, collect_until, ended_turn};
use serde_json::json;

use crate::wire;

/// Stands for a key: a variable that every test process has.
const VARIABLE: &str = "CARGO_MANIFEST_DIR";
const PASSWORD: &str = "hunter2-hunter2";

fn holds(folder: &std::path::Path, secret: &str) -> bool {
    let mut found = false;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found |= holds(&path, secret);
        } else if let Ok(bytes) = std::fs::read(&path) {
            found |= bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        }
    }
    found
}

/// J8: also when it is split over two deltas, or comes from a tool, a person, the project or the provider's error.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_reaches_no_record_no_blob_and_no_event() {
    let key = std::env::var(VARIABLE).unwrap();
    let place = TestHome::new();
    std::fs::write(place.work().join("AGENTS.md"), format!("The password is {PASSWORD}.")).unwrap();
    std::fs::write(place.work().join("notes.txt"), format!("{PASSWORD}\n").repeat(3_000)).unwrap();
    let mut config = wire::config(&place, Protocol::OpenaiChat);
    config.settings.model.api_key_env = Some(VARIABLE.to_owned());
    config.settings.secrets.patterns = vec!["hunter[0-9]-hunter[0-9]".to_owned()];
    let telling = format!("The key is {key} and the password is {PASSWORD}, as you know.");
    // One character a delta, so that everything is split everywhere.
    let mut frames = Vec::new();
    for character in telling.chars() {
        let delta = json!({"choices": [{"index": 0, "delta": {"content": character.to_string()}, "finish_reason": null}]});
        frames.push(format!("data: {delta}\n\n").into_bytes());
    }
    frames.push(
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
            .to_vec(),
    );
    let reading = ScriptedAnswer::nothing().call("read_file", json!({"path": "notes.txt"}));
    let replies = vec![
        Reply::stream(reading.bytes(Protocol::OpenaiChat)),
        Reply::frames(frames),
        Reply::error(401, format!(r#"{{"error":{{"message":"the key {key} is wrong, {PASSWORD}"}}}}"#)),
    ];
    let (runtime, wire) = wire::open(config, Script::list(replies)).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    session.send(format!("I am {PASSWORD} and {key}")).await.unwrap();
    let mut events = collect_until(&mut watcher, ended_turn).await;
    let failed = session.send("again").await.unwrap();
    events.extend(collect_until(&mut watcher, ended_turn).await);
    runtime.shutdown().await.unwrap();

    let deltas = events.iter().filter_map(|event| match &event.kind {
        EventKind::TextDelta { text } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(
        deltas.collect::<String>(),
        "The key is [redacted] and the password is [redacted], as you know."
    );
    let shown = serde_json::to_string(&events).unwrap();
    let sent: Vec<String> =
        wire.requests().iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    let told = failed.error.unwrap();
    for secret in [key.as_str(), PASSWORD] {
        assert!(!shown.contains(secret), "an event has it");
        assert!(!told.contains(secret), "{told}");
        assert!(!holds(&place.home(), secret), "a file of the home has it");
        assert!(!sent.iter().any(|body| body.contains(secret)), "a request has it");
    }
}
