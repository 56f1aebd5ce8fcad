//! What is sent to a session: durable, never dropped, in the turn that it asked for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_journal::{Journal, SqliteJournal, resolve};
use longhaul_model::{AnswerStream, CallPermit, Model, ModelFailure, Request};
use longhaul_protocol::{
    EventKind, Input, InputId, JoinMode, Outcome, SessionCreated, SessionRecord, StreamName,
};
use longhaul_testkit::{GatedModel, RecordingModel, TestHome, collect_until, ended_turn, records_of};
use serde_json::json;

use crate::{heard, open, script, sends, sound_records};

fn input(text: &str, mode: JoinMode) -> Input {
    Input::new(InputId::generate(), text.to_owned(), mode)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_runs_from_an_input_to_its_answer() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!(["Hello."])))).await;
    let session = runtime.session("app:alice").await.unwrap();

    let ended = session.send("hello").await.unwrap();

    assert_eq!((ended.turn, ended.outcome, ended.text.as_str()), (1, Outcome::Completed, "Hello."));
    let state = session.state().await.unwrap();
    assert_eq!((state.turn_count, state.inbox_through, state.turn), (1, 1, None));
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// A model that looks at the disk when it is asked.
struct Looking {
    journal: Arc<SqliteJournal>,
    seen: Mutex<Vec<Vec<String>>>,
}

#[async_trait]
impl Model for Looking {
    fn name(&self) -> &'static str {
        "scripted/looking"
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let id = resolve(&*self.journal, "a").await.unwrap().id;
        let records = records_of(&*self.journal, id).await;
        self.seen.lock().unwrap().push(records.into_iter().map(|record| record.kind).collect());
        script(&json!(["Done."])).ask(request, permit).await
    }
}

/// T1: the input is on disk when `put` returns, and taken on disk before any model is asked.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_durable_before_it_is_acknowledged_and_before_any_model_call() {
    let place = TestHome::new();
    let journal = place.journal().await;
    let model = Arc::new(Looking { journal: journal.clone(), seen: Mutex::default() });
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let accepted = session.put(input("hello", JoinMode::Join), None).await.unwrap();
    let on_disk = journal.head(&StreamName::inbox(session.id().unwrap())).await.unwrap().seq;
    collect_until(&mut watcher, ended_turn).await;

    assert_eq!((accepted.seq, on_disk), (1, 1));
    let seen = model.seen.lock().unwrap().clone();
    let expected = [
        "session_created",
        "epoch_started",
        "input_taken",
        "turn_started",
        "step_started",
        "attempt_started",
    ];
    assert_eq!(seen, [expected.map(str::to_owned).to_vec()]);
    runtime.shutdown().await.unwrap();
}

/// A session that another process has begun, with the folder that it works in, is a session like any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_begun_without_an_epoch_forgets_nothing() {
    let place = TestHome::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let journal = place.journal().await;
    let id = longhaul_journal::name_session(&*journal, "a").await.unwrap();
    let created = SessionCreated {
        id,
        key: "a".to_owned(),
        work_dir: Some(elsewhere.path().to_str().unwrap().to_owned()),
        origin: None,
        version: "1".to_owned(),
        parent: None,
    };
    let created = SessionRecord::SessionCreated(created).encode();
    journal.append(longhaul_journal::Append::to(&StreamName::session(id)).record(created)).await.unwrap();
    let model = RecordingModel::new(script(&json!(["One.", "Two."])));

    for text in ["first", "second"] {
        let runtime = open(&place, model.clone()).await;
        runtime.session("a").await.unwrap().send(text).await.unwrap();
        runtime.shutdown().await.unwrap();
    }

    let requests = model.requests();
    assert_eq!(heard(&requests[1].items), ["first", "second"]);
    assert!(requests[0].system.contains(elsewhere.path().to_str().unwrap()));
}

/// What was erased from an inbox before it was taken is passed over, once.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_was_erased_holds_up_nothing() {
    let place = TestHome::new();
    let journal = place.journal().await;
    let id = longhaul_journal::name_session(&*journal, "a").await.unwrap();
    for text in ["secret", "open"] {
        let record = longhaul_protocol::InboxRecord::Input(input(text, JoinMode::Join)).encode();
        longhaul_journal::put(&*journal, id, record).await.unwrap();
    }
    journal.erase(&[(StreamName::inbox(id), 1), (StreamName::inbox(id), 2)], "a secret").await.unwrap();
    let model = RecordingModel::new(script(&json!(["Never."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();

    runtime.start().await.unwrap();
    while session.state().await.unwrap().inbox_through < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    runtime.shutdown().await.unwrap();
    assert_eq!(model.requests().len(), 0);
}

/// T1
#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_twice_is_one_input() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", "Two."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let first = session.put(input("hello", JoinMode::Join), Some("k")).await.unwrap();
    collect_until(&mut watcher, ended_turn).await;
    let second = session.put(input("hello again", JoinMode::Join), Some("k")).await.unwrap();
    let third = session.send("and now?").await.unwrap();

    assert_eq!(second, first);
    assert_eq!((third.turn, model.requests().len()), (2, 2));
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// DESIGN §6: inputs that arrived together make one turn.
#[tokio::test(flavor = "multi_thread")]
async fn inputs_that_wait_when_a_turn_begins_are_one_turn() {
    let place = TestHome::new();
    let journal = place.journal().await;
    let id = longhaul_journal::name_session(&*journal, "a").await.unwrap();
    for text in ["one", "two"] {
        let record = longhaul_protocol::InboxRecord::Input(input(text, JoinMode::Join)).encode();
        longhaul_journal::put(&*journal, id, record).await.unwrap();
    }
    let model = RecordingModel::new(script(&json!(["Both."])));
    let runtime = open(&place, model.clone()).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    runtime.start().await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    assert_eq!(heard(&model.requests()[0].items), ["one", "two"]);
    runtime.shutdown().await.unwrap();
}

/// T3
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_joins_is_seen_at_the_next_step_of_the_same_turn() {
    let place = TestHome::new();
    let recording = RecordingModel::new(script(&json!([
        {"text": "I look.", "calls": [{"name": "list_files", "arguments": {}}]}, "Also done.",
    ])));
    let (model, gate) = GatedModel::new(recording.clone());
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "first");
    gate.reached().await;

    let joins = sends(&session, "and this");
    wait_for_inbox(&session, 2).await;
    gate.open();
    gate.reached().await;
    gate.open();
    let (first, second) = (sending.await.unwrap().unwrap(), joins.await.unwrap().unwrap());

    assert_eq!((first.turn, second.turn), (1, 1));
    let requests = recording.requests();
    assert_eq!(heard(&requests[1].items).last().unwrap(), "and this");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// T3: the last answer of a turn is not its end if somebody has said something meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_joins_during_the_last_step_gets_a_step_of_its_own() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["First.", "Second."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "one");
    gate.reached().await;

    session.put(input("two", JoinMode::Join), None).await.unwrap();
    wait_for_inbox(&session, 2).await;
    gate.open();
    gate.open();

    let ended = sending.await.unwrap().unwrap();
    assert_eq!((ended.turn, ended.text.as_str()), (1, "Second."));
    runtime.shutdown().await.unwrap();
}

/// T3
#[tokio::test(flavor = "multi_thread")]
async fn an_input_for_after_waits_for_the_next_turn_even_if_this_one_fails() {
    let place = TestHome::new();
    let script = script(&json!([{"text": "No.", "error": "overloaded"}, "never asked for"]));
    let (model, gate) = GatedModel::new(script);
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.put(input("one", JoinMode::Join), None).await.unwrap();
    gate.reached().await;

    session.put(input("two", JoinMode::After), None).await.unwrap();
    wait_for_inbox(&session, 2).await;
    gate.open();
    let first = collect_until(&mut watcher, ended_turn).await;
    // Nothing of the first turn was kept, so its answer is played again.
    gate.open();
    let second = collect_until(&mut watcher, ended_turn).await;

    let outcome = |events: &[longhaul_protocol::Event]| match &events.last().unwrap().kind {
        EventKind::TurnEnded { outcome, .. } => *outcome,
        other => panic!("{other:?}"),
    };
    assert_eq!((outcome(&first), outcome(&second)), (Outcome::Failed, Outcome::Failed));
    assert_eq!(second.last().unwrap().turn, Some(2));
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// T3
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_interrupts_cancels_the_turn_and_then_runs() {
    let place = TestHome::new();
    let recording = RecordingModel::new(script(&json!(["A long story.", "Something else."])));
    let (model, gate) = GatedModel::new(recording.clone());
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let first = sends(&session, "tell");
    gate.reached().await;
    let mut watcher = session.watch();

    session.put(input("stop, do that", JoinMode::Interrupt), None).await.unwrap();

    assert_eq!(first.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    gate.reached().await;
    gate.open();
    collect_until(&mut watcher, ended_turn).await;
    let second = collect_until(&mut watcher, ended_turn).await;
    let EventKind::TurnEnded { outcome, text, .. } = &second.last().unwrap().kind else { panic!() };
    assert_eq!((*outcome, text.as_str()), (Outcome::Completed, "Something else."));
    assert_eq!(heard(&recording.requests()[1].items), ["tell", "stop, do that"]);
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// T10, T11: what was finished stays; a call that was complete is not run later; the outcome is on record when it is told.
#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_a_model_call_and_keeps_what_was_finished() {
    let place = TestHome::new();
    let recording = RecordingModel::new(script(&json!([
        {"text": "I write.", "calls": [{"name": "write_file", "arguments": {"path": "a", "content": "x"}}]},
        "Next.",
    ])));
    let (model, gate) = GatedModel::new(recording.clone());
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "write it");
    gate.reached().await;

    let asked_at = std::time::Instant::now();
    let cancelled = session.cancel().await.unwrap().expect("a turn was running");
    let took = asked_at.elapsed();

    assert_eq!((cancelled.outcome, cancelled.text.as_str()), (Outcome::Cancelled, "I write."));
    assert_eq!(sending.await.unwrap().unwrap(), cancelled);
    assert!(took < Duration::from_secs(60), "it waited for the model: {took:?}");
    let ended = |record: &longhaul_protocol::Record| record.kind == "turn_ended";
    let journal = place.journal().await;
    assert!(records_of(&*journal, session.id().unwrap()).await.iter().any(ended));
    let next = sends(&session, "go on");
    gate.reached().await;
    gate.open();
    assert_eq!(next.await.unwrap().unwrap().text, "Next.");
    assert!(!place.work().join("a").exists(), "it was run after all");
    let request = recording.requests().pop().unwrap();
    assert_eq!(heard(&request.items), ["write it", "not run: the user interrupted before it began", "go on"]);
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_without_a_turn_does_nothing_to_the_next_one() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!(["Hello.", "Again."])))).await;
    let session = runtime.session("a").await.unwrap();
    assert_eq!(session.cancel().await.unwrap(), None);
    session.send("hello").await.unwrap();

    let cancelled = session.cancel().await.unwrap();
    let next = session.send("again").await.unwrap();

    assert_eq!((cancelled, next.outcome), (None, Outcome::Completed));
    runtime.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_at_a_key_stores_nothing() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;

    let session = runtime.session("never:used").await.unwrap();
    let _watcher = session.watch();
    session.cancel().await.unwrap();

    assert_eq!(place.journal().await.sessions(None, 9).await.unwrap(), []);
    runtime.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_system_prompt_begins_an_epoch_and_keeps_the_conversation() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", "Two.", "Three."])));
    let first = open(&place, model.clone()).await;
    first.session("a").await.unwrap().send("one").await.unwrap();
    first.shutdown().await.unwrap();
    std::fs::write(place.work().join("AGENTS.md"), "Use tabs.").unwrap();

    let second = open(&place, model.clone()).await;
    let session = second.session("a").await.unwrap();
    session.send("two").await.unwrap();
    second.shutdown().await.unwrap();
    let third = open(&place, model.clone()).await;
    third.session("a").await.unwrap().send("three").await.unwrap();
    third.shutdown().await.unwrap();

    let requests = model.requests();
    assert!(!requests[0].system.contains("Use tabs.") && requests[1].system.contains("Use tabs."));
    assert!(requests.iter().all(|request| request.system.contains("The network is on.")));
    assert_eq!(heard(&requests[2].items), ["one", "two", "three"]);
    let records = sound_records(&place, &session).await;
    let epochs = records.iter().filter(|record| record.kind == "epoch_started").count();
    assert_eq!(epochs, 2);
    let last = SessionRecord::decode(records.last().unwrap()).unwrap();
    assert!(matches!(last, SessionRecord::TurnEnded(ended) if ended.turn == 3));
}

/// Waits until so much of the inbox is taken.
async fn wait_for_inbox(session: &longhaul_agent::Session, through: u64) {
    while session.state().await.unwrap().inbox_through < through {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
