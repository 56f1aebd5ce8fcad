//! A disk that is full.

use longhaul_agent::Error;
use longhaul_journal::Error as JournalError;
use longhaul_protocol::{EventKind, Outcome, SessionRecord};
use longhaul_testkit::{GatedModel, RecordingModel, TestHome, collect_until, ended_turn};
use serde_json::json;

use crate::{disk_full, open_faulty, script, sends, sound_records};

/// J5: the turn stops with that reason, the unsaved tail stays in memory and is saved later, whoever waits is told "not
/// saved", and nothing that was acknowledged is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_the_turn_and_what_happened_is_saved_when_there_is_room() {
    let place = TestHome::new();
    let recording = RecordingModel::new(script(&json!([
        {"text": "I write.", "calls": [{"name": "write_file", "arguments": {"path": "a", "content": "x"}}]},
        "Next.",
    ])));
    let (model, gate) = GatedModel::new(recording.clone());
    let (runtime, journal) = open_faulty(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let sending = sends(&session, "go");
    gate.reached().await;

    journal.refuse(Some(disk_full()));
    gate.open();
    let told = sending.await.unwrap();
    let not_acknowledged = session.send("one more").await;
    let not_saved = |kind: &EventKind| matches!(kind, EventKind::Warning { code, text } if code == "not_saved" && text.starts_with("not saved"));
    collect_until(&mut watcher, not_saved).await;
    journal.refuse(None);
    let ended = collect_until(&mut watcher, ended_turn).await;

    assert!(matches!(told, Err(Error::NotSaved { .. })), "{told:?}");
    assert!(not_acknowledged.is_err(), "an input that is not on disk is not accepted");
    let EventKind::TurnEnded { outcome, text, error, .. } = &ended.last().unwrap().kind else { panic!() };
    assert_eq!((*outcome, text.as_str()), (Outcome::Failed, "I write."));
    assert!(error.as_ref().unwrap().contains("could not be saved"), "{error:?}");
    gate.open();
    assert_eq!(session.send("go on").await.unwrap().text, "Next.");
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let answer = records.iter().any(|record| {
        matches!(SessionRecord::decode(record).unwrap(), SessionRecord::AttemptEnded(ended) if ended.kept == 2)
    });
    assert!(answer, "what the model had said was saved");
    assert!(!place.work().join("a").exists(), "nothing was done that could not be written down first");
}

/// What can never be recorded ends the turn, with that reason; tried again it would cost a model call each time.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_the_journal_ends_the_turn_and_is_not_tried_again() {
    let place = TestHome::new();
    let recording = RecordingModel::new(script(&json!(["One.", "Two."])));
    let (model, gate) = GatedModel::new(recording.clone());
    let (runtime, journal) = open_faulty(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    gate.reached().await;

    journal.refuse_once(JournalError::TooLarge { what: "a record", bytes: 9, limit: 8 });
    gate.open();
    let ended = sending.await.unwrap().unwrap();

    assert_eq!(ended.outcome, Outcome::Failed);
    assert!(ended.error.unwrap().contains("a record"));
    assert_eq!(recording.requests().len(), 1);
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// J5: what was only announced when the disk was full is not done when there is room again.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_could_not_be_recorded_in_time_is_not_run() {
    let place = TestHome::new();
    let recording = RecordingModel::new(script(&json!([
        {"calls": [{"name": "read_file", "arguments": {"path": "a"}}]},
        {"calls": [{"name": "write_file", "arguments": {"path": "a", "content": "x"}}]},
        "Never.",
    ])));
    let (model, gate) = GatedModel::new(recording.clone());
    let (runtime, journal) = open_faulty(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let sending = sends(&session, "go");
    gate.reached().await;
    gate.open();
    gate.reached().await;
    journal.refuse_from("tool_started write_file", disk_full());
    gate.open();
    assert!(matches!(sending.await.unwrap(), Err(Error::NotSaved { .. })));

    journal.refuse(None);
    collect_until(&mut watcher, ended_turn).await;

    assert!(!place.work().join("a").exists());
    assert_eq!(recording.requests().len(), 2, "nobody is asked for what would not be used");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// J5: neither a lease that can't be renewed for a moment nor an inbox that can't be taken from stops anything for good.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_for_a_while_stops_no_session_for_good() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["One.", "Two."])));
    let (runtime, journal) = open_faulty(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    gate.reached().await;

    journal.refuse_renewals(Some(disk_full()));
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    journal.refuse_renewals(None);
    gate.open();

    assert_eq!(sending.await.unwrap().unwrap().text, "One.");
    let mut watcher = session.watch();
    journal.refuse_from("input_taken", disk_full());
    let told = sends(&session, "again").await.unwrap();
    assert!(matches!(told, Err(Error::NotSaved { .. })), "{told:?}");
    journal.refuse(None);
    gate.open();
    let ended = collect_until(&mut watcher, ended_turn).await;
    let EventKind::TurnEnded { text, .. } = &ended.last().unwrap().kind else { panic!() };
    assert_eq!(text, "Two.", "an input that was accepted is run");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}
