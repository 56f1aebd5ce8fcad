//! Cancel at odd moments: it is quick whatever is going on, and it means what was sent before it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::session::CallState;
use longhaul_agent::{Config, Runtime, RuntimeBuilder};
use longhaul_journal::{name_session, put};
use longhaul_model::Protocol;
use longhaul_protocol::{
    Effect, EventKind, InboxRecord, Input, InputId, Item, JoinMode, Order, OrderId, OrderKind, Outcome,
    SessionRecord,
};
use longhaul_testkit::wire::{End, Reply, Script, ScriptedAnswer};
use longhaul_testkit::{GatedModel, RecordingModel, TestHome, collect_until, ended_turn};
use longhaul_tools::Tool;
use serde_json::json;

use crate::tool_calls::{Does, Odd};
use crate::wire;
use crate::{disk_full, eventually, heard, open, open_faulty, results, script, sends, sound_records, within};

/// How soon a cancel takes effect (T10).
const AT_ONCE: Duration = Duration::from_millis(100);

async fn with_tools(place: &TestHome, answers: &serde_json::Value, tools: Vec<Arc<dyn Tool>>) -> Runtime {
    RuntimeBuilder::new(place.config())
        .model(RecordingModel::new(script(answers)))
        .tools(tools)
        .open()
        .await
        .unwrap()
}

/// T10: the model call is dropped at once, also where the server says nothing more and never ends the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_model_call_is_dropped_at_once() {
    let place = TestHome::new();
    let mut frames = ScriptedAnswer::text("Half of it").frames(Protocol::OpenaiChat);
    frames.truncate(3);
    let config = wire::config(&place, Protocol::OpenaiChat);
    let reply = Reply::frames(frames).ending(End::Stall);
    let (runtime, wire) = wire::open(config, Script::list(vec![reply])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let sending = sends(&session, "go");
    collect_until(&mut watcher, |kind| matches!(kind, EventKind::TextDelta { .. })).await;
    assert_eq!(wire.open(), 1);

    let asked = Instant::now();
    let cancelling = tokio::spawn({
        let session = session.clone();
        async move { session.cancel().await.unwrap().unwrap() }
    });
    while wire.open() > 0 {
        assert!(asked.elapsed() < within(AT_ONCE), "the answer is still held");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    assert_eq!(cancelling.await.unwrap().outcome, Outcome::Cancelled);
    sending.await.unwrap().unwrap();
    runtime.shutdown().await.unwrap();
}

/// T10: TERM is sent to the foreground command at once; the turn ends when the command has.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_command_gets_its_signal_at_once_and_the_turn_waits_for_its_end() {
    let place = TestHome::new();
    let command = "trap 'touch termed; while [ ! -e go ]; do sleep 0.01; done; touch gone; exit' TERM; touch ready; \
                   while :; do sleep 0.01; done";
    let call = json!({"calls": [{"name": "exec", "arguments": {"command": command}}]});
    let runtime = open(&place, RecordingModel::new(script(&json!([call, "Never."])))).await;
    let session = runtime.session("a").await.unwrap();
    let is_there = |name: &str| place.work().join(name).exists();
    let sending = sends(&session, "go");
    eventually("the command runs", || async { is_there("ready") }).await;

    let asked = Instant::now();
    let cancelling = tokio::spawn({
        let session = session.clone();
        async move { session.cancel().await.unwrap().unwrap() }
    });
    while !is_there("termed") {
        assert!(asked.elapsed() < within(AT_ONCE), "no signal came");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let ended_before = cancelling.is_finished();
    std::fs::write(place.work().join("go"), "").unwrap();

    assert_eq!(cancelling.await.unwrap().outcome, Outcome::Cancelled);
    assert!(!ended_before && is_there("gone"), "the turn ends when the kill is confirmed");
    sending.await.unwrap().unwrap();
    runtime.shutdown().await.unwrap();
}

/// T10: while a tool is asked what it would do, while several run side by side, and while one runs that heeds nothing.
#[tokio::test(flavor = "multi_thread")]
async fn cancel_does_not_wait_for_a_tool_that_hangs() {
    let cases = [
        (Effect::Read, Does::HangAtOnce, ["stopped", "not run"]),
        (Effect::Unknown, Does::HangAtOnce, ["stopped", "not run"]),
        (Effect::Read, Does::Hang, ["stopped", "stopped"]),
        (Effect::Unknown, Does::Hang, ["unknown", "unknown"]),
    ];
    for (effect, does, words) in cases {
        let starts = matches!(does, Does::Hang);
        let place = TestHome::new();
        let call = json!({"name": "odd", "arguments": {}});
        let answers = json!([{"calls": [call, call, call]}, "Never."]);
        let runtime = with_tools(&place, &answers, vec![Odd::new("odd", effect, does)]).await;
        let session = runtime.session("a").await.unwrap();
        let sending = sends(&session, "go");
        eventually("the answer has come", || async {
            let calls = session.state().await.unwrap().turn.map(|turn| turn.calls).unwrap_or_default();
            if starts { calls.iter().any(CallState::is_open) } else { !calls.is_empty() }
        })
        .await;

        let asked = Instant::now();
        let ended = session.cancel().await.unwrap().unwrap();

        assert!(asked.elapsed() < Duration::from_secs(60), "{words:?}: {:?}", asked.elapsed());
        assert_eq!(
            (ended.outcome, sending.await.unwrap().unwrap().outcome),
            (Outcome::Cancelled, Outcome::Cancelled)
        );
        runtime.shutdown().await.unwrap();
        let results = results(&sound_records(&place, &session).await);
        assert!(words.iter().any(|word| results[0].2.starts_with(word)), "{results:?}");
        assert_eq!(results.len(), 3, "every call has its result");
    }
}

/// T3, T10: a cancel means what was sent before it and nothing that is sent after it, also when all of it is taken at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_is_taken_with_its_input_ends_its_turn() {
    let place = TestHome::new();
    let journal = place.journal().await;
    for (key, texts) in [("cancelled", vec!["one"]), ("both", vec!["one", "two"])] {
        let id = name_session(&*journal, key).await.unwrap();
        for (place, text) in texts.into_iter().enumerate() {
            let input = Input::new(InputId::generate(), text, JoinMode::Join);
            put(&*journal, id, InboxRecord::Input(input).encode()).await.unwrap();
            if place == 0 {
                let order = Order { id: OrderId::generate(), kind: OrderKind::Cancel };
                put(&*journal, id, InboxRecord::Order(order).encode()).await.unwrap();
            }
        }
    }
    let model = RecordingModel::new(script(&json!(["Answered."])));
    let runtime = open(&place, model.clone()).await;
    let mut watcher = runtime.watch();

    runtime.start().await.unwrap();
    let mut events = Vec::new();
    for _ in 0..3 {
        events.extend(collect_until(&mut watcher, ended_turn).await);
    }

    let outcome = |key: &str| {
        let ends = events.iter().filter(|event| event.session == key);
        ends.filter_map(|event| match &event.kind {
            EventKind::TurnEnded { outcome, .. } => Some(*outcome),
            _ => None,
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(outcome("cancelled"), [Outcome::Cancelled]);
    assert_eq!(
        outcome("both"),
        [Outcome::Cancelled, Outcome::Completed],
        "what came after the cancel is answered"
    );
    let requests = model.requests();
    assert_eq!(requests.len(), 1, "nobody was asked about what is cancelled");
    let told = requests[0]
        .items
        .iter()
        .any(|item| matches!(&**item, Item::Note { text } if text.contains("interrupted")));
    assert!(told && heard(&requests[0].items) == ["one", "two"], "{:?}", requests[0].items);
    runtime.shutdown().await.unwrap();
}

/// T3: orders work from any process, or runtime.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_another_runtime_runs_can_be_cancelled() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["Never."])));
    let holder = open(&place, model).await;
    let visitor = open(&place, RecordingModel::new(script(&json!([])))).await;
    let sending = sends(&holder.session("a").await.unwrap(), "go");
    gate.reached().await;

    let cancelled = visitor.session("a").await.unwrap().cancel().await.unwrap();

    assert_eq!(cancelled, Some(sending.await.unwrap().unwrap()));
    assert_eq!(cancelled.unwrap().outcome, Outcome::Cancelled);
    visitor.shutdown().await.unwrap();
    holder.shutdown().await.unwrap();
}

/// T7: whatever a tool does before its first await is its own business, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_panics_before_it_waits_for_anything_is_an_error_result() {
    let place = TestHome::new();
    let answers = json!([{"calls": [{"name": "odd", "arguments": {}}]}, "Done."]);
    let runtime =
        with_tools(&place, &answers, vec![Odd::new("odd", Effect::Read, Does::PanicSynchronously)]).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.text, "Done.");
    runtime.shutdown().await.unwrap();
    assert!(results(&sound_records(&place, &session).await)[0].2.contains("panicked"));
}

/// T7: a tool that is asked has its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_does_not_say_what_it_would_do_is_given_up() {
    let place = TestHome::new();
    let config = Config { tool_time: Duration::from_millis(50), ..place.config() };
    let model = RecordingModel::new(script(&json!([{"calls": [{"name": "odd", "arguments": {}}]}, "Done."])));
    let tools: Vec<Arc<dyn Tool>> = vec![Odd::new("odd", Effect::Unknown, Does::HangAtOnce)];
    let runtime = RuntimeBuilder::new(config).model(model).tools(tools).open().await.unwrap();
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    assert_eq!(results(&records)[0].2, "not run: the tool took too long");
    let started = records
        .iter()
        .any(|record| matches!(SessionRecord::decode(record), Ok(SessionRecord::ToolStarted(_))));
    assert!(!started);
}

/// J5: also while a command runs, the turn stops when something could not be saved.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_while_a_command_runs_stops_the_turn() {
    let place = TestHome::new();
    let answers = json!([{"calls": [{"name": "exec", "arguments": {"command": "echo x > started.txt; sleep 300 & wait"}}]}, "Never."]);
    let (runtime, journal) = open_faulty(&place, RecordingModel::new(script(&answers))).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let sending = sends(&session, "go");
    eventually("the command has started", || async { !place.file("started.txt").is_empty() }).await;

    journal.refuse_from("input_taken", disk_full());
    let input = Input::new(InputId::generate(), "more", JoinMode::After);
    session.put(input, None).await.unwrap();
    assert!(sending.await.unwrap().is_err());
    journal.refuse(None);
    collect_until(&mut watcher, ended_turn).await;

    runtime.shutdown().await.unwrap();
    let results = results(&sound_records(&place, &session).await);
    assert!(results[0].2.contains("killed"), "{results:?}");
}
