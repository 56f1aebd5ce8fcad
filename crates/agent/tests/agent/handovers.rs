//! A session that passes from one process to another while a client waits for an outcome.

use std::time::Duration;

use longhaul_journal::{Home, Journal, SqliteJournal, SqliteOptions, records};
use longhaul_protocol::{InboxRecord, Outcome, StreamName};
use longhaul_testkit::{GatedModel, RecordingModel, TestHome};
use serde_json::json;

use crate::{disk_full, eventually, open, open_faulty, script, sends, sound_records};

/// The texts of the inputs in an inbox.
async fn sent_texts(journal: &dyn Journal, inbox: &StreamName) -> Vec<String> {
    let mut texts = Vec::new();
    let mut cursor = records(journal, inbox, 1);
    while let Some(record) = cursor.next().await.unwrap() {
        if let Ok(InboxRecord::Input(input)) = InboxRecord::decode(&record) {
            texts.push(input.text);
        }
    }
    texts
}

/// J7: a holder that lives but renews nothing, such as one that was stopped, holds up a client only until its lease expires.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_its_holder_does_not_renew_holds_up_nobody() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!(["One.", "Two."])))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    session.release().await;
    let options = SqliteOptions { lease_expiry: Duration::from_secs(2), ..SqliteOptions::default() };
    let stopped = SqliteJournal::open_with(&Home::create(&place.home()).unwrap(), options).await.unwrap();
    stopped.acquire_lease(&StreamName::session(session.id().unwrap())).await.unwrap();

    let ended = tokio::time::timeout(Duration::from_secs(120), session.send("two")).await;

    let ended = ended.expect("the lease expires, and this runtime takes it").unwrap();
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Two."));
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// T3: what is sent while the worker here learns that it was taken over is not lost.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_comes_while_a_worker_leaves_a_session_to_another_process_is_answered() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["One.", "Two.", "Three."])));
    let (runtime, journal) = open_faulty(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    journal.release_slowly(Duration::from_secs(1));
    let taken = journal.take_over().await;
    eventually("the worker leaves", || async { journal.releases() > 0 }).await;

    let sending = sends(&session, "two");
    tokio::time::sleep(Duration::from_millis(100)).await;
    journal.end_takeover(taken).await;

    let ended = sending.await.unwrap().unwrap();
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Two."));
    let other = place.journal().await;
    assert_eq!(sent_texts(&*other, &StreamName::inbox(session.id().unwrap())).await, ["one", "two"]);
    runtime.shutdown().await.unwrap();
}

/// T10: a caller gets the end of its own turn, although another process finished it before this one noticed.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_another_process_finished_is_reported_as_it_ended_there() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["One.", "Two."])));
    let (runtime, journal) = open_faulty(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    gate.reached().await;
    journal.refuse_renewals(Some(disk_full()));
    let taken = journal.take_over().await;
    journal.end_takeover(taken).await;
    let other = open(&place, RecordingModel::new(script(&json!(["Answered elsewhere."])))).await;
    other.session("a").await.unwrap().resume().await.unwrap();
    other.shutdown().await.unwrap();

    gate.open();

    let ended = sending.await.unwrap().unwrap();
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Answered elsewhere."));
    runtime.shutdown().await.unwrap();
}

/// S3: a handle without a runtime tells what a session is doing, as one with a runtime does.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_session_is_the_same_from_every_handle() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["One."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let unused = session.status().await.unwrap();
    let sending = sends(&session, "go");
    gate.reached().await;
    let journal = place.journal().await;

    let here = session.status().await.unwrap();
    let detached = crate::detached(&journal, "a").await.status().await.unwrap();

    assert_eq!((unused.id, unused.is_running, unused.state.turn_count), (None, false, 0));
    for status in [here, detached] {
        assert_eq!((status.id, status.key.as_str()), (session.id(), "a"));
        assert!(status.is_running && status.run_by.is_none(), "this process runs it");
        assert_eq!(status.state.turn.map(|turn| turn.number), Some(1));
    }
    gate.open();
    sending.await.unwrap().unwrap();
    runtime.shutdown().await.unwrap();
}
