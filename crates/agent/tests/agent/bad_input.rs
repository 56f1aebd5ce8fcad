//! Bad input: an error result that says which and what is allowed, and the turn goes on.

use longhaul_agent::{Error, Runtime};
use longhaul_protocol::{Item, Outcome};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::json;

use crate::{open, results, script, sound_records};

/// P1, P2: through the whole runtime, what a tool refuses is told and nothing else happens.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_told_and_the_turn_goes_on() {
    let place = TestHome::new();
    std::fs::write(place.work().join("binary"), [0u8, 159, 146, 150, 0]).unwrap();
    std::fs::write(place.work().join("changing.txt"), "one\n").unwrap();
    let huge = std::fs::File::create(place.work().join("huge.log")).unwrap();
    huge.set_len(1 << 30).unwrap();
    let call = |name: &str, arguments: serde_json::Value| json!({"name": name, "arguments": arguments});
    let model = RecordingModel::new(script(&json!([
        {"calls": [
            call("read_file", json!({"path": "/etc/passwd"})),
            call("write_file", json!({"path": "../outside.txt", "content": "x"})),
            call("read_file", json!({"path": place.home().join("journal.db")})),
            call("read_file", json!({"path": "binary"})),
            call("read_file", json!({"path": "huge.log"})),
            call("read_file", json!({"path": "changing.txt"})),
            call("exec", json!({"command": "echo two > changing.txt"})),
            call("write_file", json!({"path": "changing.txt", "content": "three\n"})),
            call("exec", json!({"command": "true", "work_dir": "nowhere"})),
        ]},
        "Done.",
    ])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Done."));
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
    let request = model.requests().pop().unwrap();
    let said: Vec<(bool, &str)> = request
        .items
        .iter()
        .filter_map(|item| match &**item {
            Item::ToolResult { is_error, content, .. } => Some((*is_error, content.as_str())),
            _ => None,
        })
        .collect();
    let words = [
        "/etc/passwd",
        "outside",
        "journal.db",
        "binary",
        "huge.log",
        "one",
        "completed",
        "changed",
        "nowhere",
    ];
    for (index, word) in words.iter().enumerate() {
        let failed = !matches!(index, 5 | 6);
        assert!(said[index].0 == failed && said[index].1.contains(word), "{index} {word}: {:?}", said[index]);
    }
    assert_eq!(place.file("changing.txt"), "two\n", "nothing was written over what the model had not seen");
    assert!(!place.work().join("../outside.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_folder_that_is_gone_is_told_by_every_tool() {
    let place = TestHome::new();
    let call = |name: &str, arguments: serde_json::Value| json!({"name": name, "arguments": arguments});
    let model = RecordingModel::new(script(&json!([
        "Hello.",
        {"calls": [
            call("list_files", json!({})),
            call("write_file", json!({"path": "a", "content": "x"})),
            call("exec", json!({"command": "true"})),
        ]},
        "Done.",
    ])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let folder = place.work().canonicalize().unwrap();
    std::fs::remove_dir(place.work()).unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.text, "Done.");
    runtime.shutdown().await.unwrap();
    for (name, is_error, content) in results(&sound_records(&place, &session).await) {
        assert!(is_error && content.contains(folder.to_str().unwrap()), "{name}: {content}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_there_is_refused_with_what_would_be_one() {
    let place = TestHome::new();
    let mut config = place.config();
    config.settings.model.name = "scripted/nowhere.json".to_owned();

    let missing = Runtime::open(config.clone()).await.map(|_| ()).unwrap_err();
    config.settings.model.name = "opnai/gpt".to_owned();
    let other = Runtime::open(config).await.map(|_| ()).unwrap_err();

    assert!(matches!(missing, Error::Model(_)) && missing.to_string().contains("nowhere.json"), "{missing}");
    assert!(other.to_string().contains("did you mean openai?"), "{other}");
}
