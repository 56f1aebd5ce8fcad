//! What was sent and is taken back: it is in a turn or withdrawn, never both and never neither.

use std::time::Duration;

use longhaul_agent::{Request, RequestOutcome, RuntimeBuilder, Session};
use longhaul_journal::Journal;
use longhaul_protocol::{
    EventKind, InboxRecord, InputId, OrderKind, Outcome, Record, SessionRecord, StreamName, UnreadInputs,
};
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, GatedModel, RecordingModel, TestHome, broken_rules, collect_until,
    ended_turn, records_of,
};
use serde_json::json;

use crate::{eventually, heard, open, said, script, sends, sound_records};

async fn withdraw(session: &Session, input: InputId) {
    session.order(OrderKind::Withdraw { input }).await.unwrap();
}

async fn wait_until_taken(session: &Session, inbox: u64) {
    eventually("the inbox is taken", async || session.state().await.unwrap().inbox_through >= inbox).await;
}

/// How many inputs the records take back.
fn withdrawn(records: &[Record]) -> usize {
    let mut unread = UnreadInputs::default();
    records.iter().filter_map(|record| unread.apply(record)).count()
}

/// T3: what is taken back while the turn runs is in no request, and begins no turn when the turn is cancelled.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_taken_back_reaches_no_model_and_begins_no_turn() {
    for ends_by_itself in [true, false] {
        let place = TestHome::new();
        let recording = RecordingModel::new(script(&json!(["One.", "Two."])));
        let (model, gate) = GatedModel::new(recording.clone());
        let runtime = open(&place, model).await;
        let session = runtime.session("a").await.unwrap();
        let mut watcher = session.watch();
        let sending = sends(&session, "go");
        gate.reached().await;

        let queued = session.put(said("never mind"), None).await.unwrap();
        withdraw(&session, queued.id).await;
        if ends_by_itself {
            wait_until_taken(&session, 3).await;
            gate.open();
        } else {
            session.cancel().await.unwrap();
        }
        let outcome = sending.await.unwrap().unwrap().outcome;
        let events = collect_until(&mut watcher, ended_turn).await;

        let expected = if ends_by_itself { Outcome::Completed } else { Outcome::Cancelled };
        assert_eq!(outcome, expected);
        let is_told = |kind: &EventKind| matches!(kind, EventKind::InputWithdrawn { id } if *id == queued.id);
        assert_eq!(events.iter().filter(|event| is_told(&event.kind)).count(), 1);
        assert!(!session.is_unfinished().await.unwrap());
        gate.open();
        assert_eq!(session.send("and now?").await.unwrap().turn, 2);
        let requests = recording.requests();
        assert!(requests.iter().all(|request| !heard(&request.items).contains(&"never mind".to_owned())));
        runtime.shutdown().await.unwrap();
        sound_records(&place, &session).await;
    }
}

/// T3: the order comes too late for a message that a step has shown to the model, and for one that is not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_a_turn_has_cannot_be_taken_back() {
    let place = TestHome::new();
    let recording = RecordingModel::new(script(&json!(["One.", "Two."])));
    let (model, gate) = GatedModel::new(recording.clone());
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    gate.reached().await;
    let joined = session.put(said("and this"), None).await.unwrap();
    wait_until_taken(&session, 2).await;
    gate.open();
    gate.reached().await;

    let mut watcher = session.watch();
    withdraw(&session, joined.id).await;
    withdraw(&session, InputId::generate()).await;
    wait_until_taken(&session, 4).await;
    gate.open();

    assert_eq!(sending.await.unwrap().unwrap().text, "Two.");
    let events = collect_until(&mut watcher, ended_turn).await;
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::InputWithdrawn { .. })));
    assert_eq!(heard(&recording.requests()[1].items), ["go", "and this"]);
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// A caller that waits for the answer to a message is told that there is none, in this process and in another.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_message_that_is_taken_back_waits_no_longer() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["One."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    gate.reached().await;
    let journal = place.journal().await;
    let elsewhere = crate::detached(&journal, "a").await;

    for (waiting, inbox) in [(&session, 2), (&elsewhere, 4)] {
        let pending = waiting.begin(Request::Send("never mind".into()));
        wait_until_taken(&session, inbox).await;
        let queued = session.state().await.unwrap().pending_inputs[0].id;
        withdraw(&session, queued).await;
        assert_eq!(pending.outcome().await.unwrap(), RequestOutcome::Nothing);
    }

    gate.open();
    assert_eq!(sending.await.unwrap().unwrap().text, "One.");
    runtime.shutdown().await.unwrap();
    journal.close().await;
    sound_records(&place, &session).await;
}

/// The crash table of `worker/inbox.rs`: killed at any append, before and after it is on disk, the message is in the context or withdrawn.
#[test]
fn killed_at_any_boundary_a_message_is_in_a_turn_or_withdrawn() {
    let undisturbed = play(None);
    assert!(undisturbed > 5, "{undisturbed}");
    for append in 1..=undisturbed {
        for when in [CrashMoment::Before, CrashMoment::After] {
            play(Some(Crash { append, when }));
        }
    }
}

/// Sends a message during a turn, takes it back and cancels the turn, up to the crash. Then a fresh runtime goes on. Returns the number of
/// appends before the crash.
fn play(crash: Option<Crash>) -> usize {
    let tokio =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let place = TestHome::in_memory();
    let first = tokio();
    let appends = first.block_on(async {
        let journal = FaultyJournal::new(place.journal().await, crash);
        let (model, gate) = GatedModel::new(script(&json!(["One."])));
        let builder = RuntimeBuilder::new(place.config()).model(model).journal(journal.clone());
        let runtime = builder.open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        let scenario = async {
            session.put(said("go"), None).await.unwrap();
            gate.reached().await;
            let queued = session.put(said("never mind"), None).await.unwrap();
            wait_until_taken(&session, 2).await;
            withdraw(&session, queued.id).await;
            session.cancel().await.unwrap();
        };
        tokio::select! {
            () = journal.crashed() => {}
            () = scenario => {}
        }
        // The user's orders are on disk, whichever record the runtime died at.
        let client = place.journal().await;
        let inbox = StreamName::inbox(session.id().unwrap());
        let records = longhaul_journal::records(&*client, &inbox, 1).collect().await.unwrap();
        if records.len() < 3 {
            let elsewhere = crate::detached(&client, "a").await;
            let queued = match records.get(1).map(InboxRecord::decode) {
                Some(Ok(InboxRecord::Input(queued))) => queued.id,
                _ => elsewhere.put(said("never mind"), None).await.unwrap().id,
            };
            withdraw(&elsewhere, queued).await;
        }
        client.close().await;
        journal.release_leases().await;
        journal.appends().len()
    });
    first.shutdown_timeout(Duration::from_secs(10));
    tokio().block_on(check_resumed(&place, crash));
    appends
}

async fn check_resumed(place: &TestHome, crash: Option<Crash>) {
    let recording = RecordingModel::new(script(&json!(["One.", "Two.", "Three."])));
    let runtime = RuntimeBuilder::new(place.config()).model(recording.clone()).open().await.unwrap();
    let session = runtime.session("a").await.unwrap();
    runtime.start().await.unwrap();
    eventually("the session rests", async || !session.is_unfinished().await.unwrap()).await;
    session.send("and now?").await.unwrap();
    let state = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let records = records_of(&*journal, session.id().unwrap()).await;
    journal.close().await;

    assert_eq!(broken_rules(&records), Vec::<String>::new(), "{crash:?}");
    let taken = records.iter().filter_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::InputTaken(input)) if input.text == "never mind" => Some(input.id),
        _ => None,
    });
    let known = taken.count();
    let in_context = heard(&state.items).iter().filter(|text| *text == "never mind").count();
    assert_eq!(withdrawn(&records) + in_context, known, "{crash:?}");
    assert_eq!(in_context, 0, "{crash:?}: no step began after the order was in the inbox");
}
