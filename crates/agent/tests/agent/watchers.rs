//! Watchers see what is on disk, in its order, and hold up nobody.

use longhaul_agent::Watched;
use longhaul_protocol::{EventKind, Role};
use longhaul_testkit::{Gated, Place, Recording, collect_until, ended_turn};
use serde_json::json;

use crate::{of_record, open, script, sends, sound_records};

/// T14: in commit order, and all of them are there before the call that caused them returns.
#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_the_order_of_their_commits_and_before_the_call_returns() {
    let place = Place::new();
    let script = script(&json!([
        {"text": "I look.", "usage": {"input": 3}, "calls": [{"name": "list_files", "arguments": {}}]}, "Done.",
    ]));
    let runtime = open(&place, Recording::new(script)).await;
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
    let place = Place::new();
    let (model, gate) = Gated::new(script(&json!(["Once upon a time."])));
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

/// T14: a watcher that doesn't read holds up nobody, and is told what it missed and where to read it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_watcher_holds_up_nobody_and_is_told_what_it_missed() {
    let place = Place::new();
    let text = "word ".repeat(3_000);
    let runtime = open(&place, Recording::new(script(&json!([text, "Second."])))).await;
    let session = runtime.session("a").await.unwrap();
    let mut slow = session.watch();

    session.send("tell").await.unwrap();
    session.send("more").await.unwrap();

    let mut seen = Vec::new();
    let (events, from) = loop {
        match slow.try_next().expect("it is told what it missed") {
            Watched::Event(event) => seen.push(event),
            Watched::Missed { events, from } => break (events, from.unwrap()),
        }
    };
    assert!(events > 1_900, "{events}");
    let last_seen = seen.iter().rev().find_map(|event| event.seq).unwrap();
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let ended = records.iter().filter(|record| record.seq >= from && record.kind == "turn_ended").count();
    assert!(from > last_seen && ended == 2, "reading from {from} on misses nothing");
}
