//! Watchers see what is on disk, in its order, and hold up nobody.

use longhaul_agent::session::{State, event_of};
use longhaul_agent::{Request, Watched, Watcher};
use longhaul_protocol::{Event, EventKind, Record, Role};
use longhaul_testkit::{GatedModel, RecordingModel, TestHome, collect_until, ended_turn};
use serde_json::json;

use crate::{eventually, of_record, open, script, sends, sound_records};

/// T14: in commit order, and all of them are there before the call that caused them returns.
#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_the_order_of_their_commits_and_before_the_call_returns() {
    let place = TestHome::new();
    let script = script(&json!([
        {"text": "I look.", "usage": {"input": 3}, "calls": [{"name": "list_files", "arguments": {}}]}, "Done.",
    ]));
    let runtime = open(&place, RecordingModel::new(script)).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    session.send("go").await.unwrap();

    let mut events = Vec::new();
    while let Some(watched) = watcher.try_next() {
        let Watched::Event(event) = watched else { panic!("{watched:?}") };
        events.push(event);
    }
    let seqs: Vec<u64> = events.iter().filter_map(|event| event.seq).collect();
    assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");
    let kinds: Vec<String> = of_record(&events)
        .into_iter()
        .map(|kind| serde_json::to_value(kind).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "input_taken",
        "turn_started",
        "step_started",
        "message",
        "usage",
        "tool_started",
        "tool_finished",
        "step_started",
        "message",
        "turn_ended",
    ];
    assert_eq!(kinds, expected);
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// T14: whoever joins during an answer gets its text so far, then the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_joins_during_an_answer_gets_its_text_so_far() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["Once upon a time."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "tell");
    gate.reached().await;

    let mut watcher = session.watch();
    gate.open();
    let events = collect_until(&mut watcher, ended_turn).await;
    sending.await.unwrap().unwrap();

    assert!(matches!(&events[0].kind, EventKind::Partial { text, .. } if text == "Once upon a time."));
    let message = EventKind::Message { role: Role::Assistant, content: "Once upon a time.".to_owned() };
    assert!(events.iter().any(|event| event.kind == message));
    let mut late = session.watch();
    assert_eq!(late.try_next(), None, "nothing is open any more");
    runtime.shutdown().await.unwrap();
    assert_eq!(late.next().await, None, "the runtime has ended");
}

/// The events that these records make.
fn events_of(key: &str, records: &[Record]) -> Vec<Event> {
    let mut state = State::default();
    let event = |record: &Record| {
        let event = event_of(&state, key, record);
        state.apply(record).unwrap();
        event
    };
    records.iter().filter_map(event).collect()
}

fn recorded(events: &[Event], key: &str) -> Vec<Event> {
    events.iter().filter(|event| event.seq.is_some() && event.session == key).cloned().collect()
}

async fn all_until_end(watcher: &mut Watcher) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(watched) = watcher.next().await {
        match watched {
            Watched::Event(event) => events.push(event),
            Watched::Missed { from, .. } => assert_eq!(from, None, "what is on record is never missed"),
        }
    }
    events
}

/// T14: a watcher that doesn't read during a long answer holds up nobody; it gets every word and every record.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_pauses_during_a_long_answer_gets_all_of_it() {
    let place = TestHome::new();
    let text = "word ".repeat(6_000);
    let runtime = open(&place, RecordingModel::new(script(&json!([text, "Second."])))).await;
    let session = runtime.session("a").await.unwrap();
    let mut slow = session.watch();

    session.send("tell").await.unwrap();
    session.send("more").await.unwrap();
    runtime.shutdown().await.unwrap();
    let events = all_until_end(&mut slow).await;

    let records = sound_records(&place, &session).await;
    assert_eq!(recorded(&events, "a"), events_of("a", &records));
    let words: String = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TextDelta { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(words, text + "Second.");
}

/// T14: whoever does not read the events of a request holds few of them in memory, and every word is there later.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_events_are_read_late_keeps_few_of_them() {
    let place = TestHome::new();
    let text = "word ".repeat(6_000);
    let runtime = open(&place, RecordingModel::new(script(&json!([text])))).await;
    let session = runtime.session("a").await.unwrap();
    let mut pending = session.begin(Request::Send("tell".into()));
    let has_ended = || async { session.state().await.unwrap().turn_count == 1 };
    eventually("the turn", || async { has_ended().await && !session.is_unfinished().await.unwrap() }).await;

    let (mut words, mut events) = (String::new(), 0);
    while let Some(watched) = pending.next().await {
        events += 1;
        if let Watched::Event(Event { kind: EventKind::TextDelta { text }, .. }) = watched {
            words += &text;
        }
    }

    assert_eq!(words, text);
    assert!(events < 2_000, "{events}");
    assert!(pending.outcome().await.is_ok());
    runtime.shutdown().await.unwrap();
}

/// T14: what a full queue has no room for is read from the journal, for each session in its order and each event once.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_pauses_for_many_turns_reads_what_it_missed_from_the_journal() {
    let place = TestHome::in_memory();
    let answers: Vec<String> = (0..300).map(|number| format!("Answer {number}.")).collect();
    let runtime = open(&place, RecordingModel::new(script(&json!(answers)))).await;
    let sessions = [runtime.session("a").await.unwrap(), runtime.session("b").await.unwrap()];
    let mut of_all = runtime.watch();
    let mut of_one = sessions[0].watch();
    for _ in 0..130 {
        for session in &sessions {
            session.send("more").await.unwrap();
        }
    }

    // Giving up in the middle of a read loses nothing.
    let mut events = Vec::new();
    let is_last = |events: &[Event], key: &str| {
        let ends = events.iter().filter(|event| event.session == key && ended_turn(&event.kind));
        ends.count() == 130
    };
    while !is_last(&events, "a") || !is_last(&events, "b") {
        tokio::select! {
            biased;
            watched = of_all.next() => match watched.unwrap() {
                Watched::Event(event) => events.push(event),
                Watched::Missed { from, .. } => assert_eq!(from, None),
            },
            () = tokio::task::yield_now() => {}
        }
    }
    let of_one = collect_until(
        &mut of_one,
        |kind| matches!(kind, EventKind::TurnEnded { text, .. } if text == "Answer 129."),
    )
    .await;

    runtime.shutdown().await.unwrap();
    for session in &sessions {
        let expected = events_of(session.key(), &sound_records(&place, session).await);
        assert_eq!(recorded(&events, session.key()), expected);
    }
    assert_eq!(recorded(&of_one, "a"), recorded(&events, "a"));
}

/// Reads until a watcher would have to wait, and gives up in the middle of whatever it began then.
async fn read_until_it_waits(watcher: &mut Watcher) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let watched = tokio::select! { biased; watched = watcher.next() => watched, () = std::future::ready(()) => None };
        match watched {
            Some(Watched::Event(event)) => events.push(event),
            Some(Watched::Missed { from, .. }) => assert_eq!(from, None),
            None => return events,
        }
    }
}

/// T14: a watcher that gave up in the middle of catching up gets the rest, or is told of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_watcher_includes_the_records_that_it_was_about_to_read() {
    let place = TestHome::in_memory();
    let answers: Vec<String> = (0..300).map(|number| format!("Answer {number}.")).collect();
    let runtime = open(&place, RecordingModel::new(script(&json!(answers)))).await;
    let session = runtime.session("a").await.unwrap();
    let (mut reading, mut told) = (session.watch(), session.watch());
    for _ in 0..260 {
        session.send("more").await.unwrap();
    }

    let mut events = read_until_it_waits(&mut reading).await;
    while let Some(watched) = reading.next_waiting().await {
        let Watched::Event(event) = watched else { continue };
        events.push(event);
    }
    let mut seen = recorded(&read_until_it_waits(&mut told).await, "a").len() as u64;
    while let Some(watched) = told.try_next() {
        seen += match watched {
            Watched::Event(event) => u64::from(event.seq.is_some()),
            Watched::Missed { events, from } => from.map_or(0, |_| events),
        };
    }
    runtime.shutdown().await.unwrap();

    let expected = events_of("a", &sound_records(&place, &session).await);
    assert_eq!(recorded(&events, "a"), expected);
    assert!(seen >= expected.len() as u64, "{seen} of {}", expected.len());
}

/// T14: what was missed is found by the session's id, which a rename does not change.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_catches_up_with_a_session_that_was_renamed_meanwhile() {
    let place = TestHome::in_memory();
    let answers: Vec<String> = (0..200).map(|number| format!("Answer {number}.")).collect();
    let runtime = open(&place, RecordingModel::new(script(&json!(answers)))).await;
    let session = runtime.session("a").await.unwrap();
    let mut slow = runtime.watch();
    for _ in 0..200 {
        session.send("more").await.unwrap();
    }
    longhaul_journal::rename_session(&*runtime.journal(), "a", "b").await.unwrap();

    let mut events = Vec::new();
    while let Some(watched) = slow.next_waiting().await {
        match watched {
            Watched::Event(event) => events.push(event),
            Watched::Missed { from, .. } => assert_eq!(from, None, "what is on record is never missed"),
        }
    }
    runtime.shutdown().await.unwrap();

    assert_eq!(recorded(&events, "a"), events_of("a", &sound_records(&place, &session).await));
}

/// T14: a watcher that can't read the journal any more is told what it missed, and from where to read.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_can_not_catch_up_is_told_what_it_missed() {
    let place = TestHome::in_memory();
    let answers: Vec<String> = (0..300).map(|number| format!("Answer {number}.")).collect();
    let runtime = open(&place, RecordingModel::new(script(&json!(answers)))).await;
    let session = runtime.session("a").await.unwrap();
    let mut slow = session.watch();
    for _ in 0..200 {
        session.send("more").await.unwrap();
    }
    runtime.shutdown().await.unwrap();

    let (mut last_seen, mut missed) = (0, None);
    while let Some(watched) = slow.next().await {
        match watched {
            Watched::Event(event) => last_seen = event.seq.unwrap_or(last_seen),
            Watched::Missed { events, from } => missed = from.map(|from| (events, from)).or(missed),
        }
    }

    let (events, from) = missed.expect("it is told what it missed");
    let records = sound_records(&place, &session).await;
    let is_missed = |event: &&Event| event.seq >= Some(from);
    assert_eq!(events_of("a", &records).iter().filter(is_missed).count() as u64, events);
    assert!(from > last_seen, "reading from {from} on misses nothing");
}
