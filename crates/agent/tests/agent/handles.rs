//! Sessions as programs hold them: handles and watchers may come and go, and a session may leave memory, and nobody notices.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Config, Runtime, RuntimeBuilder};
use longhaul_journal::{Journal, rename_session};
use longhaul_protocol::{EventKind, Input, InputId, JoinMode, Outcome, StreamName};
use longhaul_testkit::{FaultyJournal, GatedModel, RecordingModel, TestHome, collect_until, ended_turn};
use serde_json::json;

use crate::{disk_full, eventually, open, open_faulty, script, sends, sound_records};

fn answers(count: usize) -> serde_json::Value {
    json!((0..count).map(|number| format!("Answer {number}.")).collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn handles_that_go_leave_the_others_as_they_are() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&answers(3)))).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    drop(session.clone());
    drop(runtime.session("a").await.unwrap());

    let again = runtime.session("a").await.unwrap();
    again.send("one").await.unwrap();
    session.send("two").await.unwrap();

    let mut ended = 0;
    while let Some(longhaul_agent::Watched::Event(event)) = watcher.try_next() {
        ended += usize::from(ended_turn(&event.kind));
    }
    assert_eq!(ended, 2, "there is one session, whoever holds it");
    runtime.shutdown().await.unwrap();
}

/// T14: whoever watches needs no handle.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_without_a_handle_sees_everything_up_to_the_end() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&answers(1)))).await;
    let mut watcher = runtime.session("a").await.unwrap().watch();

    runtime.session("a").await.unwrap().send("one").await.unwrap();
    collect_until(&mut watcher, ended_turn).await;
    runtime.shutdown().await.unwrap();

    assert_eq!(watcher.next().await, None);
}

/// A session that rests gives everything back, and comes again as if it had never gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_rests_leaves_memory_and_comes_back() {
    let place = TestHome::new();
    let config = Config { rest_time: Duration::from_millis(20), ..place.config() };
    let model = RecordingModel::new(script(&answers(8)));
    let runtime = Runtime::with_model(config, model.clone()).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    let journal = place.journal().await;

    for number in 0..4 {
        session.send(format!("input {number}")).await.unwrap();
        let stream = StreamName::session(session.id().unwrap());
        eventually("the lease is given back", || async { journal.holder(&stream).await.unwrap().is_none() })
            .await;
    }

    assert_eq!(crate::heard(&model.requests()[3].items).len(), 4, "nothing is forgotten");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// A runtime whose sessions leave memory almost at once, and a journal that can be made to fail.
async fn short_rests(place: &TestHome, count: usize) -> (Runtime, Arc<FaultyJournal>) {
    let journal = FaultyJournal::new(place.journal().await, None);
    let config = Config { rest_time: Duration::from_millis(20), ..place.config() };
    let model = RecordingModel::new(script(&answers(count)));
    (RuntimeBuilder::new(config).model(model).journal(journal.clone()).open().await.unwrap(), journal)
}

/// Whatever comes at the moment of leaving is run.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_a_session_leaves_is_not_lost() {
    let place = TestHome::new();
    let (runtime, journal) = short_rests(&place, 40).await;
    journal.release_slowly(Duration::from_millis(60));
    let session = runtime.session("a").await.unwrap();

    for pause in 0..20 {
        let ended = session.send("hello").await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed);
        tokio::time::sleep(Duration::from_millis(5 * pause)).await;
    }

    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// A lease that could not be given back is ours, and what is accepted is run.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_could_not_be_given_back_is_used_again() {
    let place = TestHome::new();
    let (runtime, journal) = short_rests(&place, 3).await;
    let session = runtime.session("a").await.unwrap();
    journal.refuse_releases(Some(disk_full()));
    session.send("one").await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;

    let ended = session.send("two").await.unwrap();

    assert_eq!(ended.turn, 2);
    journal.refuse_releases(None);
    runtime.shutdown().await.unwrap();
}

/// An input is accepted once, also where another process takes the session meanwhile; when that one is gone, it is answered here.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_another_process_should_run_is_accepted_once_and_answered() {
    let place = TestHome::new();
    let (runtime, journal) = short_rests(&place, 3).await;
    let session = runtime.session("a").await.unwrap();
    journal.release_slowly(Duration::from_millis(600));
    session.send("one").await.unwrap();
    eventually("the session is leaving", || async { journal.releases() > 0 }).await;
    let taken = journal.take_over().await;

    let sending = sends(&session, "two");
    let inbox = StreamName::inbox(session.id().unwrap());
    let other = place.journal().await;
    eventually("it is accepted", || async { other.head(&inbox).await.unwrap().seq >= 2 }).await;
    assert!(!sending.is_finished(), "the other process has not answered it");
    journal.end_takeover(taken).await;
    let ended = sending.await.unwrap().unwrap();

    assert_eq!((ended.turn, ended.outcome), (2, Outcome::Completed));
    let records = inputs(&*other, &inbox).await;
    assert_eq!(records, ["one", "two"]);
    runtime.shutdown().await.unwrap();
}

/// The texts of all inputs in an inbox; orders are left out.
async fn inputs(journal: &dyn Journal, inbox: &StreamName) -> Vec<String> {
    let mut texts = Vec::new();
    let mut records = longhaul_journal::records(journal, inbox, 1);
    while let Some(record) = records.next().await.unwrap() {
        if let Ok(longhaul_protocol::InboxRecord::Input(input)) =
            longhaul_protocol::InboxRecord::decode(&record)
        {
            texts.push(input.text);
        }
    }
    texts
}

/// T14: what is taken was accepted first, however busy the session is.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_shown_as_accepted_before_it_is_shown_as_taken() {
    let place = TestHome::in_memory();
    let runtime = open(&place, RecordingModel::new(script(&answers(200)))).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    for _ in 0..60 {
        let (id, text) = (InputId::generate(), "x".to_owned());
        let input = Input::new(id, text, JoinMode::After);
        session.put(input, None).await.unwrap();
    }
    eventually("all is taken", || async { session.state().await.unwrap().inbox_through == 60 }).await;
    runtime.shutdown().await.unwrap();

    let mut accepted = std::collections::HashSet::new();
    while let Some(longhaul_agent::Watched::Event(event)) = watcher.try_next() {
        match event.kind {
            EventKind::InputAccepted { id, .. } => drop(accepted.insert(id)),
            EventKind::InputTaken { id } => assert!(accepted.contains(&id), "taken before it was accepted"),
            _ => {}
        }
    }
    assert_eq!(accepted.len(), 60);
}

/// J2, J7: a session that another process took over is let go of, and watchers are told. When that process is gone, the turn is finished
/// here, and the caller gets its outcome.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_taken_over_is_let_go_of_and_taken_back() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&answers(2)));
    let (runtime, journal) = open_faulty(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let sending = sends(&session, "go");
    gate.reached().await;

    let taken = journal.take_over().await;
    gate.open();
    let stopped =
        |kind: &EventKind| matches!(kind, EventKind::Warning { code, .. } if code == "session_stopped");
    collect_until(&mut watcher, stopped).await;
    assert_eq!(session.watch().try_next(), None, "no text of an answer that is not ours");
    assert!(!sending.is_finished(), "the turn goes on in the other process");
    journal.end_takeover(taken).await;
    gate.open();
    let ended = sending.await.unwrap().unwrap();

    assert_eq!((ended.turn, ended.outcome), (1, Outcome::Completed));
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// S3: a key that was given away leads nowhere, and then elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_renamed_away_begins_another_session() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&answers(3)))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    session.release().await;

    rename_session(&*runtime.journal(), "a", "b").await.unwrap();
    let new = runtime.session("a").await.unwrap();
    new.send("two").await.unwrap();
    let renamed = runtime.session("b").await.unwrap();
    renamed.send("three").await.unwrap();

    assert_eq!((new.state().await.unwrap().turn_count, renamed.state().await.unwrap().turn_count), (1, 2));
    assert_ne!(new.id(), renamed.id());
    runtime.shutdown().await.unwrap();
}

/// S3: whoever deletes a session needs it to be nobody's, at once and not when it has rested long enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_parted_with_is_nobodys() {
    let place = TestHome::new();
    let config = Config { rest_time: Duration::from_secs(3_600), ..place.config() };
    let runtime =
        Runtime::with_model(config, Arc::new(RecordingModel::new(script(&answers(2))))).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    session.send("one").await.unwrap();
    let stream = StreamName::session(session.id().unwrap());
    assert!(runtime.journal().holder(&stream).await.unwrap().is_some());

    session.release().await;

    assert_eq!(runtime.journal().holder(&stream).await.unwrap(), None);
    session.send("two").await.unwrap();
    runtime.shutdown().await.unwrap();
}
