//! Making the context smaller: the stories, with the exact number of model calls.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Config, Runtime};
use longhaul_journal::Journal;
use longhaul_model::{Purpose, Request};
use longhaul_protocol::{CompactedBy, Event, EventKind, Item, Outcome, Record, Role, SessionRecord};
use longhaul_testkit::{GatedModel, RecordingModel, TestHome, collect_until, ended_turn};
use serde_json::{Value, json};

use crate::{of_record, script, sends, sound_records};

/// A window of so many tokens, and nothing that is remembered. The system prompt is short, so that small windows have
/// room for what happens in them.
pub(crate) fn config(place: &TestHome, window: u64) -> Config {
    DirBuilder::new().recursive(true).mode(0o700).create(place.home()).unwrap();
    std::fs::write(
        place.home().join("system_prompt.md"),
        "You are {{name}}, an agent that works with tools.",
    )
    .unwrap();
    let mut config = place.config();
    config.settings.memory.extract_at_tokens = 0;
    config.settings.model.context_window = Some(window);
    config
}

pub(crate) async fn open(config: Config, model: Arc<dyn longhaul_model::Model>) -> Runtime {
    Runtime::with_model(config, model).await.unwrap()
}

/// An answer that is a summary.
pub(crate) fn summary(goal: &str) -> Value {
    json!({"calls": [{"name": "write_summary", "arguments": {"goal": goal, "next_action": "go on"}}]})
}

/// So many tokens of text, roughly.
pub(crate) fn text(tokens: usize) -> String {
    "lorem-ip".repeat(tokens / 2)
}

/// The reasons and ends of compactions, in their order.
pub(crate) fn compactions(events: &[Event]) -> Vec<String> {
    let told = |event: &Event| match &event.kind {
        EventKind::CompactStart { reason } => Some(format!("start {reason}")),
        EventKind::CompactDone { epoch, by, .. } => Some(format!("done {epoch} {by:?}")),
        EventKind::CompactFailed { reason } => Some(format!("failed {reason}")),
        _ => None,
    };
    events.iter().filter_map(told).collect()
}

/// What the runtime composed, as watchers see it.
fn composed(events: &[Event]) -> Vec<String> {
    let told = |event: &Event| match &event.kind {
        EventKind::SystemMessage { content } => content.iter().map(|part| part.text.clone()).collect(),
        _ => vec![],
    };
    events.iter().flat_map(told).collect()
}

pub(crate) fn texts(request: &Request) -> Vec<String> {
    let text = |item: &Arc<Item>| match &**item {
        Item::Text { text, .. } | Item::Note { text } => Some(text.clone()),
        Item::ToolResult { content, .. } => Some(content.clone()),
        _ => None,
    };
    request.items.iter().filter_map(text).collect()
}

pub(crate) fn is_summary(request: &Request) -> bool {
    matches!(request.purpose, Purpose::Summary { .. })
}

/// Whether the ranges that compactions cover follow each other without gap or overlap.
pub(crate) fn ranges(records: &[Record]) -> Vec<(u64, u64)> {
    let range = |record: &Record| match SessionRecord::decode(record).unwrap() {
        SessionRecord::CompactDone(done) => Some((done.from, done.through)),
        _ => None,
    };
    records.iter().filter_map(range).collect()
}

/// C2, C3, C4, C12: a run passes the threshold, and the check before the next turn fires, although the provider reports no usage. One
/// model call for the summary, and the session's epoch is the one in `compact_done`.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_become_large_is_made_smaller_before_its_next_turn() {
    let place = TestHome::new();
    let model =
        RecordingModel::new(script(&json!([text(3_200), summary("reach the end"), "Second.", "Third."])));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    session.send("first request").await.unwrap();
    let first = collect_until(&mut watcher, ended_turn).await;
    let id = session.id();
    session.send(text(400)).await.unwrap();
    let second = collect_until(&mut watcher, ended_turn).await;
    session.send("third").await.unwrap();
    let third = collect_until(&mut watcher, ended_turn).await;

    assert_eq!(compactions(&first), Vec::<String>::new(), "with an empty history nothing fires");
    assert_eq!(compactions(&second), ["start before_turn", "done 2 Model"]);
    assert_eq!(compactions(&third), Vec::<String>::new());
    assert_eq!(model.requests().iter().map(is_summary).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(session.id(), id);
    let state = session.state().await.unwrap();
    assert_eq!((state.epoch.unwrap().number, state.compaction.count), (2, 1));
    let told = composed(&second);
    assert!(
        told[0].starts_with("[Compacted context summary]") && told[0].contains("reach the end"),
        "{told:?}"
    );
    assert!(told.iter().any(|text| text.starts_with("[Session todo snapshot]")), "also when it is empty");
    let asked = texts(&model.requests()[2]);
    assert!(asked.iter().any(|text| text.contains("first request")), "it is pinned: {asked:?}");
    assert_eq!(asked.last(), Some(&text(400)), "the request is still there");
    sound_records(&place, &session).await;
}

/// C2, C4: in the middle of a turn. The limit is noticed before the request, the turn goes on in the same turn, and the caller sees
/// one turn that succeeded, with the current request still in the context.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_grows_too_large_is_made_smaller_in_its_middle_and_goes_on() {
    let place = TestHome::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        std::fs::write(place.work().join(name), "word by word\n".repeat(500)).unwrap();
    }
    let read = |name: &str| json!({"text": text(1_100), "calls": [{"name": "read_file", "arguments": {"path": name}}]});
    let answers = json!([read("a.txt"), read("b.txt"), read("c.txt"), summary("read all"), "Done."]);
    let model = RecordingModel::new(script(&answers));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let ended = session.send("read the three files, please").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Done."));
    assert_eq!(compactions(&events), ["start within_turn", "done 2 Model"]);
    let requests = model.requests();
    assert_eq!(requests.iter().filter(|request| is_summary(request)).count(), 1);
    assert_eq!(requests.len(), 5, "four steps and a summary");
    let last = texts(requests.last().unwrap());
    assert!(last.contains(&"read the three files, please".to_owned()), "{last:?}");
    let turns =
        of_record(&events).iter().filter(|kind| matches!(kind, EventKind::TurnStarted { .. })).count();
    assert_eq!(turns, 1);
    let state = session.state().await.unwrap();
    assert_eq!(state.turn_count, 1);
    sound_records(&place, &session).await;
}

/// C5: the summariser fails: start and failed, the turn goes on, the session is as before.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_fails_leaves_the_session_as_it_was() {
    let place = TestHome::new();
    let failing = json!({"summary": true, "error": "no"});
    let model = RecordingModel::new(script(&json!([text(3_200), failing, "Second."])));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.send("first request").await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    let ended = session.send(text(400)).await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Second."));
    let told = compactions(&events);
    assert!(told.len() == 2 && told[0] == "start before_turn" && told[1].starts_with("failed"), "{told:?}");
    let requests = model.requests();
    assert!(texts(requests.last().unwrap()).contains(&text(3_200)), "nothing went");
    assert_eq!(requests.len(), 3, "a step, a summary that failed, a step");
    assert_eq!(session.state().await.unwrap().epoch.unwrap().number, 1);
}

/// C3, C6: only what is new is announced; and with a keep that is larger than the history there still is a summary.
#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_that_is_asked_for_always_makes_a_summary_and_announces_only_that() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", "Two.", summary("small"), "Three."])));
    let runtime = open(config(&place, 200_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    session.send("second").await.unwrap();
    let mut watcher = session.watch();

    let done = session.compact().await.unwrap().unwrap();
    let again = session.compact().await.unwrap();
    let ended = session.send("third").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((done.epoch, done.by, again), (2, CompactedBy::Model, None));
    assert_eq!(compactions(&events), ["start asked", "done 2 Model"]);
    let announced: Vec<String> = composed(&events);
    assert!(announced.iter().all(|text| text.starts_with('[')), "{announced:?}");
    let messages = events.iter().filter(|event| matches!(event.kind, EventKind::Message { .. })).count();
    assert_eq!((messages, ended.text.as_str()), (1, "Three."), "what is kept is not said again");
    assert_eq!(model.requests().len(), 4);
    let (from, through) = (done.from, done.through);
    assert_eq!(from, 1);
    assert!(through > 1);
}

/// C3: what is kept from before stays in the context word for word, and is not announced again.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_compaction_keeps_is_not_announced_again() {
    let place = TestHome::new();
    let old = format!("first {}", text(3_000));
    let answers = json!(["One.", "The second answer.", summary("small"), "Three."]);
    let model = RecordingModel::new(script(&answers));
    let mut config = config(&place, 200_000);
    config.settings.context.keep_tokens = 500;
    let runtime = open(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send(old.as_str()).await.unwrap();
    session.send("the second question").await.unwrap();
    let mut watcher = session.watch();

    session.compact().await.unwrap().unwrap();
    session.send("third").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    let kept = ["the second question", "The second answer."];
    let last = texts(model.requests().last().unwrap());
    assert!(kept.iter().all(|kept| last.iter().any(|text| text == kept)), "{last:?}");
    assert!(!last.contains(&old), "there was something to leave out");
    let from = events.iter().position(|event| matches!(event.kind, EventKind::CompactStart { .. })).unwrap();
    let through =
        events.iter().position(|event| matches!(event.kind, EventKind::CompactDone { .. })).unwrap();
    let between: Vec<&Event> = events[from + 1..through].iter().collect();
    assert!(!between.is_empty());
    assert!(between.iter().all(|event| matches!(event.kind, EventKind::SystemMessage { .. })), "{between:?}");
    let said = serde_json::to_string(&events).unwrap();
    assert!(kept.iter().all(|kept| !said.contains(kept)), "{said}");
}

/// C12: a compaction begins no work by itself, and with nothing to compact nothing happens.
#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_begins_no_turn_and_an_empty_session_has_nothing_to_compact() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", summary("small")])));
    let runtime = open(config(&place, 200_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    assert_eq!(session.compact().await.unwrap(), None);
    session.send("first").await.unwrap();
    session.compact().await.unwrap().unwrap();

    let state = session.state().await.unwrap();
    assert!(state.turn.is_none() && state.turn_count == 1);
    assert_eq!(model.requests().len(), 2);
}

/// C11: what arrives during a compaction waits in the inbox; a cancel ends it at once, and nothing is half done.
#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_can_be_cancelled_and_then_never_happened() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!([text(3_200), summary("never"), "Second.", "Third."])));
    let runtime = open(config(&place, 8_000), model).await;
    let session = runtime.session("a").await.unwrap();
    let first = sends(&session, "first");
    gate.reached().await;
    gate.open();
    first.await.unwrap().unwrap();
    let mut watcher = session.watch();
    let large = text(400);
    let sending = tokio::spawn({
        let (session, large) = (session.clone(), large.clone());
        async move { session.send(large).await }
    });
    gate.reached().await;

    let cancelled = session.cancel().await.unwrap().unwrap();

    assert_eq!(cancelled.outcome, Outcome::Cancelled);
    assert_eq!(sending.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!(compactions(&events), ["start before_turn", "failed cancelled"]);
    let state = session.state().await.unwrap();
    assert_eq!((state.epoch.unwrap().number, state.compaction.failures), (1, 0));
    sound_records(&place, &session).await;
}

/// C2, Y3: when a session falls idle it is made smaller, so that the next reply need not wait.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_is_made_smaller_before_anybody_needs_it() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!([text(2_700), summary("idle"), "Second."])));
    let runtime = open(config(&place, 8_000), model.clone()).await;
    runtime.set_check_interval(Duration::from_millis(40));
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.send("first").await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    runtime.start().await.unwrap();
    let events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::CompactDone { .. })).await;

    assert_eq!(compactions(&events), ["start idle", "done 2 Model"]);
    session.send("second").await.unwrap();
    assert_eq!(model.requests().len(), 3, "and nothing more was needed for the reply");
    runtime.shutdown().await.unwrap();
}

/// C7: without summaries the oldest exchanges are dropped by rule.
#[tokio::test(flavor = "multi_thread")]
async fn without_summaries_the_oldest_exchanges_go_by_rule() {
    let place = TestHome::new();
    let answers: Vec<Value> = (0..12).map(|number| json!(format!("{number} {}", text(700)))).collect();
    let model = RecordingModel::new(script(&json!(answers)));
    let mut config = config(&place, 8_000);
    config.settings.context.summary = longhaul_agent::config::Summary::Off;
    let runtime = open(config, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let mut told = Vec::new();
    for number in 0..12 {
        let ended = session.send(format!("request {number}")).await.unwrap();
        assert!(ended.text.starts_with(&format!("{number} ")), "the script goes on: {}", &ended.text[..20]);
        told.extend(compactions(&collect_until(&mut watcher, ended_turn).await));
    }

    assert!(told.contains(&"done 2 Rule".to_owned()), "{told:?}");
    assert!(told.iter().all(|told| !told.contains("failed")), "{told:?}");
    let last = texts(model.requests().last().unwrap());
    assert!(last.iter().any(|text| text.contains("request 0")), "the first request is pinned");
    assert!(last.iter().any(|text| text == "request 10"), "and so are the newest exchanges");
    assert_eq!(model.requests().len(), 12);
    let records = sound_records(&place, &session).await;
    let ranges = ranges(&records);
    assert!(ranges.len() >= 2 && ranges[0].0 == 1);
    assert!(ranges.windows(2).all(|pair| pair[1].0 == pair[0].1 + 1), "{ranges:?}");
}

/// C1: the answers of the user are in the same role; what a person said is never taken for a summary.
#[tokio::test(flavor = "multi_thread")]
async fn the_preface_speaks_as_the_runtime() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", summary("g"), "Two."])));
    let runtime = open(config(&place, 200_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("first").await.unwrap();
    session.compact_with(Some("the numbers".to_owned())).await.unwrap().unwrap();
    session.send("second").await.unwrap();

    let requests = model.requests();

    assert!(texts(&requests[1]).iter().any(|text| text.contains("the numbers")), "the focus is passed on");
    let roles: Vec<Role> = requests[2]
        .items
        .iter()
        .filter_map(|item| if let Item::Text { role, .. } = &**item { Some(*role) } else { None })
        .collect();
    assert_eq!(roles.first(), Some(&Role::System));
    assert_eq!(roles.last(), Some(&Role::User));
}

/// J10: who erases a record erases what repeats it word for word, also in an epoch; and the session goes on.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_erased_is_gone_from_the_epochs_that_kept_it_too() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", summary("g"), "Two.", "Three."])));
    let runtime = open(config(&place, 200_000), model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    session.send("the word is xyzzysecret, remember it").await.unwrap();
    session.compact().await.unwrap().unwrap();
    session.send("second").await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = longhaul_testkit::records_of(&*journal, session.id().unwrap()).await;
    let seq = records.iter().find(|record| record.kind == "input_taken").unwrap().seq;

    longhaul_journal::erase_record(&*journal, session.id().unwrap(), seq, "a secret").await.unwrap();

    journal.close().await;
    for file in std::fs::read_dir(place.home())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
    {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(11).any(|window| window == b"xyzzysecret"), "{} has it", file.display());
    }
    let again = open(config(&place, 200_000), model.clone()).await;
    let ended = again.session("a").await.unwrap().send("third").await.unwrap();
    assert_eq!(ended.outcome, Outcome::Completed, "{ended:?}");
    again.shutdown().await.unwrap();
}
