//! What the model is told at the beginning of each request, and that it stays the same for the life of a session.

use std::fs;
use std::sync::Arc;

use longhaul_agent::Config;
use longhaul_context::estimate;
use longhaul_model::Request;
use longhaul_protocol::{Item, SessionRecord};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::json;

use crate::compaction::{is_summary, open, summary};
use crate::wire::facts;
use crate::{script, sound_records};

/// The work folder is a repository with this branch.
fn check_out(place: &TestHome, branch: &str) {
    fs::create_dir_all(place.work().join(".git")).unwrap();
    fs::write(place.work().join(".git/HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
}

fn config(place: &TestHome) -> Config {
    let mut config = place.config();
    config.settings.memory.extract_at_tokens = 0;
    config
}

/// The notes of the runtime in a request.
fn notes(request: &Request) -> Vec<&str> {
    request.items.iter().filter_map(note_text).collect()
}

fn note_text(item: &Arc<Item>) -> Option<&str> {
    match &**item {
        Item::Note { text } => Some(text),
        _ => None,
    }
}

/// M16: a new process, another branch, a changed file and a compaction change nothing in the system prompt.
/// What the model should know of it is a note at the end of the context.
#[tokio::test(flavor = "multi_thread")]
async fn the_system_prompt_stays_the_same_for_the_life_of_a_session() {
    let place = TestHome::new();
    check_out(&place, "main");
    let answers = json!(["One.", "Two.", "Three.", summary("x"), "Four."]);
    let model = RecordingModel::new(script(&answers));
    for (text, branch) in [("one", "main"), ("two", "feature"), ("three", "feature")] {
        check_out(&place, branch);
        fs::write(place.work().join(text), "changed").unwrap();
        let runtime = open(config(&place), model.clone()).await;
        runtime.session("a").await.unwrap().send(text).await.unwrap();
        runtime.shutdown().await.unwrap();
    }
    let runtime = open(config(&place), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("four").await.unwrap();
    runtime.shutdown().await.unwrap();

    let steps: Vec<Request> = model.requests().into_iter().filter(|request| !is_summary(request)).collect();
    let [one, two, three, four] = steps.as_slice() else { panic!("{} requests", steps.len()) };
    assert!(one.system.contains("- Git: branch main"), "{}", one.system);
    assert!(steps.iter().all(|step| step.system == one.system && step.tools == one.tools));
    assert_eq!(two.items[..one.items.len()], one.items[..]);
    assert_eq!(three.items[..two.items.len()], two.items[..]);
    assert_eq!(
        (notes(one), notes(two), notes(three)),
        (vec![], vec!["Git: branch feature."], vec!["Git: branch feature."])
    );
    // The summary may have left it out, so it is told again.
    assert_eq!(
        notes(four).iter().filter(|note| **note == "Git: branch feature.").count(),
        1,
        "{:?}",
        notes(four)
    );
    let records = sound_records(&place, &session).await;
    let epochs: Vec<_> = facts(&records)
        .into_iter()
        .filter_map(|fact| if let SessionRecord::EpochStarted(epoch) = fact { Some(epoch) } else { None })
        .collect();
    assert_eq!(epochs.len(), 2, "the first, and that of the compaction");
    assert_eq!(epochs[0].environment, epochs[1].environment);
    assert_eq!(epochs[0].system, epochs[1].system);
}

/// The model that answers is told as of the beginning, and a change is a note.
#[tokio::test(flavor = "multi_thread")]
async fn another_model_is_told_by_a_note() {
    let place = TestHome::new();
    let (first, second) = (place.work().join("first.json"), place.work().join("second.json"));
    for file in [&first, &second] {
        fs::write(file, json!(["One.", "Two."]).to_string()).unwrap();
    }
    let mut config = config(&place);
    config.settings.model.name = format!("scripted/{}", first.display());
    let runtime = longhaul_agent::Runtime::open(config).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();

    runtime.use_model(&format!("scripted/{}", second.display())).unwrap();
    session.send("two").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let facts = facts(&records);
    let epochs = facts.iter().filter(|fact| matches!(fact, SessionRecord::EpochStarted(_))).count();
    let notes: Vec<&str> = facts
        .iter()
        .filter_map(|fact| if let SessionRecord::Note(note) = fact { Some(note.text.as_str()) } else { None })
        .collect();
    assert_eq!(epochs, 1);
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(
        note.starts_with("The model that answers is scripted/") && note.contains("second.json"),
        "{note}"
    );
}

/// The user's own text is used in place of ours. What holds for every session is still there.
#[tokio::test(flavor = "multi_thread")]
async fn the_homes_system_prompt_replaces_the_text() {
    let place = TestHome::new();
    fs::create_dir_all(place.home()).unwrap();
    fs::write(place.home().join("system_prompt.md"), "You are {{name}}, a gardener.").unwrap();
    fs::write(place.home().join("AGENTS.md"), "Water the plants.").unwrap();
    let model = RecordingModel::new(script(&json!(["One."])));
    let runtime = open(config(&place), model.clone()).await;

    runtime.session("a").await.unwrap().send("one").await.unwrap();

    runtime.shutdown().await.unwrap();
    let system = model.requests()[0].system.to_string();
    assert!(system.starts_with("You are longhaul, a gardener.\n\n# Instructions of the user\n"), "{system}");
    assert!(system.contains("Water the plants.") && system.contains("[runtime note]"), "{system}");
}

/// A user who has an own text wants it to be used, so one that can't be used is an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_system_prompt_that_can_not_be_used_is_an_error_that_names_the_file() {
    for bytes in [b" \n".as_slice(), b"\xff\xfe"] {
        let place = TestHome::new();
        fs::create_dir_all(place.home()).unwrap();
        fs::write(place.home().join("system_prompt.md"), bytes).unwrap();
        let model = RecordingModel::new(script(&json!([])));

        let error =
            longhaul_agent::Runtime::with_model(config(&place), model).await.err().unwrap().to_string();

        assert!(error.contains("system_prompt.md"), "{error}");
    }
}

/// The fixed cost of every request.
#[tokio::test(flavor = "multi_thread")]
async fn system_prompt_and_tools_have_at_most_3000_tokens() {
    let place = TestHome::new();
    check_out(&place, "main");
    let model = RecordingModel::new(script(&json!(["One."])));
    let runtime = open(config(&place), model.clone()).await;

    runtime.session("a").await.unwrap().send("one").await.unwrap();

    runtime.shutdown().await.unwrap();
    let first = model.requests().remove(0);
    let (prompt, tools) = (estimate(&first.system, &[], &[]), estimate("", &first.tools, &[]));
    assert!(prompt <= 1_200, "{prompt} tokens of prompt");
    assert!(prompt + tools <= 3_000, "{prompt} tokens of prompt and {tools} of tools");
}
