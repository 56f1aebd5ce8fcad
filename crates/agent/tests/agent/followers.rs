//! A session that another runtime has is followed: its records once each and in their order, its words as they come.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::session::event_of;
use longhaul_agent::{Followed, Follower, Watched};
use longhaul_journal::{Journal, SqliteJournal};
use longhaul_protocol::{Event, EventKind, SessionRecord};
use longhaul_testkit::{FaultyJournal, GatedModel, RecordingModel, TestHome};
use serde_json::json;

use crate::{eventually, of_record, open, script, sends, sound_records};

/// How long a test waits before it gives up.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A journal of another process, as it were, to follow with.
async fn visitor(place: &TestHome) -> Arc<SqliteJournal> {
    place.journal().await
}

/// Everything up to and with the first event that this is true of.
async fn until(follower: &mut Follower, last: impl Fn(&EventKind) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let next = tokio::time::timeout(TEST_TIMEOUT, follower.next()).await;
        let next = next.unwrap_or_else(|_| panic!("it did not come; until then there were {events:#?}"));
        let Some(Watched::Event(event)) = next else { panic!("{next:?}") };
        let is_last = last(&event.kind);
        events.push(event);
        if is_last {
            return events;
        }
    }
}

fn ended(kind: &EventKind) -> bool {
    matches!(kind, EventKind::TurnEnded { .. })
}

/// The words of answers as they came.
fn words(events: &[Event]) -> String {
    let words = events.iter().map(|event| match &event.kind {
        EventKind::TextDelta { text } | EventKind::Partial { text, .. } => text.as_str(),
        _ => "",
    });
    words.collect()
}

/// What followers should have seen of these records.
fn expected(records: &[longhaul_protocol::Record]) -> Vec<Event> {
    let mut state = longhaul_agent::session::State::default();
    let event = |record| {
        let event = event_of(&state, "a", record);
        state.apply(record).unwrap();
        event
    };
    records.iter().filter_map(event).collect()
}

/// T14: the words come before the answer is over, and nothing is polled for them.
#[tokio::test(flavor = "multi_thread")]
async fn words_of_a_turn_in_another_runtime_come_while_they_are_said() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["Once upon a time.", "The end."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let first = sends(&session, "tell");
    gate.reached().await;
    let journal = visitor(&place).await;
    let mut follower = crate::detached(&journal, "a").await.follow(0).await.unwrap();

    // Somebody who joins during an answer.
    let begun = until(&mut follower, |kind| matches!(kind, EventKind::Partial { .. })).await;
    gate.open();
    let rest = until(&mut follower, ended).await;
    first.await.unwrap().unwrap();
    // Somebody who was there before it began.
    let second = sends(&session, "more");
    gate.reached().await;
    let is_whole = |kind: &EventKind| matches!(kind, EventKind::TextDelta { text } if text.ends_with("end."));
    let whole = until(&mut follower, is_whole).await;
    gate.open();
    let last = until(&mut follower, ended).await;
    second.await.unwrap().unwrap();

    assert_eq!(words(&begun), "Once upon a time.");
    assert_eq!(words(&rest), "", "no word comes twice");
    assert_eq!(words(&whole), "The end.");
    let seen = [begun, rest, whole, last].concat();
    drop(follower);
    journal.close().await;
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let seen: Vec<&EventKind> = of_record(&seen);
    let expected = expected(&records);
    assert_eq!(seen, expected.iter().map(|event| &event.kind).collect::<Vec<_>>());
}

/// T14, T12: one runtime stops in the middle of an answer, another goes on with it; whoever follows sees both.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_followed_from_one_runtime_to_the_next() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["Once upon a time."])));
    let one = open(&place, model).await;
    let session = one.session("a").await.unwrap();
    let journal = visitor(&place).await;
    let sending = sends(&session, "tell");
    gate.reached().await;
    let mut follower = crate::detached(&journal, "a").await.follow(0).await.unwrap();
    let mut seen = until(&mut follower, |kind| matches!(kind, EventKind::Partial { .. })).await;

    one.shutdown().await.unwrap();
    sending.await.unwrap().unwrap_err();
    let other = open(&place, RecordingModel::new(script(&json!(["Once upon a time."])))).await;
    let resumed = other.session("a").await.unwrap();
    resumed.resume().await.unwrap();
    seen.extend(until(&mut follower, ended).await);

    journal.close().await;
    assert!(follower.next().await.is_none(), "the journal is closed");
    other.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let seqs: Vec<u64> = seen.iter().filter_map(|event| event.seq).collect();
    let expected: Vec<u64> = expected(&records).iter().filter_map(|event| event.seq).collect();
    assert_eq!(seqs, expected);
}

/// T14: whoever doesn't read holds up nobody, and is missing nothing when it does.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_follower_holds_up_nobody_and_misses_no_record_and_no_word() {
    let place = TestHome::new();
    let text = "word ".repeat(30_000);
    let runtime = open(&place, RecordingModel::new(script(&json!([text, "Second."])))).await;
    let session = runtime.session("a").await.unwrap();
    session.put(crate::said("tell"), None).await.unwrap();
    let journal = visitor(&place).await;
    let mut follower = crate::detached(&journal, "a").await.follow(0).await.unwrap();
    // It has begun to be told, and stops to listen.
    until(&mut follower, |kind| matches!(kind, EventKind::StepStarted)).await;

    eventually("the first answer", || async { session.state().await.unwrap().last_outcome.is_some() }).await;
    session.send("more").await.unwrap();
    let first = until(&mut follower, ended).await;
    let second = until(&mut follower, ended).await;

    let heard = words(&first);
    assert!(heard.is_empty() || heard == text, "{} of {} bytes", heard.len(), text.len());
    assert!(matches!(&second.last().unwrap().kind, EventKind::TurnEnded { text, .. } if text == "Second."));
    runtime.shutdown().await.unwrap();
}

/// For whoever waits for something that makes no event.
#[tokio::test(flavor = "multi_thread")]
async fn every_record_comes_also_one_that_makes_no_event() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!(["Hello.", "Again."])))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let before = session.state().await.unwrap().head;
    let journal = visitor(&place).await;
    let mut follower = crate::detached(&journal, "a").await.follow(before).await.unwrap();

    session.send("again").await.unwrap();
    let mut kinds = Vec::new();
    loop {
        let step = tokio::time::timeout(TEST_TIMEOUT, follower.step()).await.unwrap().unwrap().unwrap();
        let Followed::Record(record, _) = step else { continue };
        assert_eq!(record.seq, before + 1 + kinds.len() as u64);
        let is_last = matches!(SessionRecord::decode(&record), Ok(SessionRecord::TurnEnded(_)));
        kinds.push(record.kind.clone());
        if is_last {
            break;
        }
    }

    assert!(kinds.contains(&"attempt_started".to_owned()), "{kinds:?}");
    assert!(follower.holder().is_some());
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let all: Vec<String> = records.into_iter().skip(before as usize).map(|record| record.kind).collect();
    assert_eq!(kinds, all);
}

/// Who looks after sessions that nobody is at tells of the turns that begin there.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_rests_is_followed_into_the_turn_that_somebody_begins() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["Hello.", "Here I am."])));
    let config = longhaul_agent::Config { rest_time: Duration::ZERO, ..place.config() };
    let runtime = longhaul_agent::Runtime::with_model(config, model).await.unwrap();
    runtime.start().await.unwrap();
    let session = runtime.session("a").await.unwrap();
    gate.open();
    session.send("hello").await.unwrap();
    let (journal, id) = (visitor(&place).await, session.id().unwrap());
    drop(session);
    let is_free = || async {
        let stream = longhaul_protocol::StreamName::session(id);
        journal.holder(&stream).await.unwrap().is_none()
    };
    eventually("nobody is at it", is_free).await;
    let head = journal.head(&longhaul_protocol::StreamName::session(id)).await.unwrap().seq;
    let mut follower = crate::detached(&journal, "a").await.follow(head).await.unwrap();

    let input = longhaul_protocol::InboxRecord::Input(crate::said("are you there?"));
    longhaul_journal::put(&*journal, id, input.encode()).await.unwrap();
    gate.reached().await;
    gate.reached().await;
    let is_whole = |kind: &EventKind| match kind {
        EventKind::TextDelta { text } | EventKind::Partial { text, .. } => text.ends_with("am."),
        _ => false,
    };
    let said = until(&mut follower, is_whole).await;
    gate.open();
    until(&mut follower, ended).await;

    assert_eq!(words(&said), "Here I am.");
    runtime.shutdown().await.unwrap();
}

/// A program that shows the events of all processes sees the words of its own process once, also while its follower does
/// not know yet that this process has taken the session again.
#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_this_process_are_not_shown_a_second_time() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["Hello.", "Here I am."])));
    let config = longhaul_agent::Config { rest_time: Duration::from_millis(1_500), ..place.config() };
    let runtime = longhaul_agent::Runtime::with_model(config, model).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    session.create_in(&place.work()).await.unwrap();
    let mut events = session.events(longhaul_agent::EventSources::AllProcesses);
    session.put(crate::said("hello"), None).await.unwrap();
    // The follower connects to this process while the answer is open, and sees afterwards that the session is free.
    let mut seen = events_during(&mut events, Duration::from_millis(1_500)).await;
    gate.open();
    seen.extend(events_during(&mut events, Duration::from_millis(4_000)).await);
    assert!(seen.iter().any(|event| ended(&event.kind)), "{seen:#?}");
    assert_eq!(words(&seen), "Hello.");

    session.put(crate::said("are you there?"), None).await.unwrap();
    gate.open();
    let seen = events_during(&mut events, Duration::from_millis(1_500)).await;

    assert!(seen.iter().any(|event| ended(&event.kind)), "{seen:#?}");
    assert_eq!(words(&seen), "Here I am.");
    runtime.shutdown().await.unwrap();
}

/// The events that come within this time. What must not happen can only be waited for.
async fn events_during(events: &mut longhaul_agent::SessionEvents, time: Duration) -> Vec<Event> {
    let (mut seen, deadline) = (Vec::new(), tokio::time::Instant::now() + time);
    while let Ok(watched) = tokio::time::timeout_at(deadline, events.next()).await {
        let Watched::Event(event) = watched.unwrap() else { panic!("an event was missed") };
        if events.is_new(&event) {
            seen.push(event);
        }
    }
    seen
}

/// A session with so many epochs of two turns each.
async fn session_with_epochs(place: &TestHome, epochs: usize) -> longhaul_protocol::SessionId {
    let answers: Vec<String> = (0..2 * epochs).map(|number| format!("Answer {number}.")).collect();
    let config = crate::compaction::config(place, 100_000);
    let runtime = crate::compaction::open(config, Arc::new(script(&json!(answers)))).await;
    let session = runtime.session("a").await.unwrap();
    for epoch in 0..epochs {
        if epoch > 0 {
            session.compact().await.unwrap().unwrap();
        }
        for _ in 0..2 {
            session.send("more").await.unwrap();
        }
    }
    runtime.shutdown().await.unwrap();
    session.id().unwrap()
}

/// The events after a record, as a client gets them that comes back with it; and how many records are read for the first
/// of them.
async fn events_after(place: &TestHome, after: u64) -> (Vec<Event>, usize) {
    let faulty = FaultyJournal::new(place.journal().await, None);
    let client = longhaul_agent::Client::new(faulty.clone(), longhaul_agent::Redactor::default());
    let session = client.session("a").await.unwrap();
    let before = faulty.records_read();
    let mut first = session.recorded_events(after, after + 1).await.unwrap();
    while first.next().await.unwrap().is_some() {}
    let cost = faulty.records_read() - before;
    let mut rest = session.recorded_events(after, u64::MAX).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = rest.next().await.unwrap() {
        events.push(event);
    }
    (events, cost)
}

/// H2: coming back with a cursor in an old epoch costs what that epoch has, however many came since, and shows the same
/// events as the whole session does.
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_in_an_old_epoch_costs_that_epoch_and_not_the_age_of_the_session() {
    let mut dearest = Vec::new();
    for epochs in [3, 12] {
        let place = TestHome::new();
        let id = session_with_epochs(&place, epochs).await;
        let journal = visitor(&place).await;
        let records = longhaul_testkit::records_of(&*journal, id).await;
        let begins = records.iter().filter(|record| record.kind == "epoch_started").count();
        assert_eq!(begins, epochs);
        let all = expected(&records);

        let mut costs = Vec::new();
        for after in (1..records.len() as u64).step_by(3) {
            let (events, cost) = events_after(&place, after).await;
            let rest: Vec<Event> = all.iter().filter(|event| event.seq > Some(after)).cloned().collect();
            assert_eq!(events, rest, "after {after}");
            costs.push(cost);
        }
        dearest.push((costs.into_iter().max().unwrap(), records.len()));
    }

    let ((young, _), (old, records)) = (dearest[0], dearest[1]);
    assert!(old <= young + 2 && old < records / 4, "{dearest:?}");
}
