use longhaul_protocol::{At, EventKind};

use super::*;

fn event(seq: Option<u64>) -> Event {
    Event {
        seq,
        at: At(0),
        session: "a".to_owned(),
        turn: None,
        kind: EventKind::TurnStarted { cause: None },
    }
}

fn watch(hub: &Arc<EventHub>) -> Watcher {
    hub.join(hub.clone(), WatchScope::Events, None).0
}

fn delta(session: &str, text: &str) -> Event {
    let kind = EventKind::TextDelta { text: text.to_owned() };
    Event { session: session.to_owned(), kind, ..event(None) }
}

/// T14: deltas are merged only where many events wait, never across another event of their session.
#[test]
fn deltas_of_one_answer_are_merged_in_a_long_queue() {
    let hub = Arc::new(EventHub::default());
    let mut slow = watch(&hub);
    for _ in 0..10_000 {
        hub.show(&delta("a", "x"), None);
        hub.show(&delta("b", "y"), None);
    }
    hub.show(&event(Some(1)), None);
    hub.show(&delta("a", "z"), None);

    let mut seen = Vec::new();
    while let Some(watched) = slow.try_next() {
        let Watched::Event(event) = watched else { panic!("{watched:?}") };
        seen.push(event);
    }

    let text = |session: &str| -> String {
        let deltas = seen.iter().filter(|event| event.session == session).map(|event| match &event.kind {
            EventKind::TextDelta { text } => text.as_str(),
            _ => "|",
        });
        deltas.collect()
    };
    assert_eq!(text("a"), "x".repeat(10_000) + "|z");
    assert_eq!(text("b"), "y".repeat(10_000));
    assert_eq!(seen.len(), MERGE_DELTAS_FROM + 2);
    assert_eq!(seen[0], delta("a", "x"), "as long as few wait, each stands alone");
}

/// T14
#[test]
fn what_a_slow_watcher_misses_is_one_stretch_and_nothing_overtakes_it() {
    let hub = Arc::new(EventHub::default());
    let mut slow = watch(&hub);
    for seq in 1..=MAX_QUEUED_EVENTS as u64 + 3 {
        hub.show(&event(Some(seq)), None);
    }

    for seq in 1..=MAX_QUEUED_EVENTS as u64 {
        assert_eq!(slow.try_next(), Some(Watched::Event(event(Some(seq)))));
    }
    hub.show(&event(Some(5_000)), None);

    let first_missed = MAX_QUEUED_EVENTS as u64 + 1;
    assert_eq!(slow.try_next(), Some(Watched::Missed { events: 4, from: Some(first_missed) }));
    assert_eq!(slow.try_next(), None);
    hub.show(&event(None), None);
    assert_eq!(slow.try_next(), Some(Watched::Event(event(None))));
}

#[tokio::test]
async fn a_watcher_of_a_runtime_that_has_ended_sees_what_was_left_and_then_the_end() {
    let hub = Arc::new(EventHub::default());
    let mut early = watch(&hub);
    hub.show(&event(Some(1)), None);

    hub.close();

    assert_eq!(early.next().await, Some(Watched::Event(event(Some(1)))));
    assert_eq!(early.next().await, None);
    assert_eq!(watch(&hub).next().await, None);
}

/// A reader of the records learns where the live events stand among them.
#[test]
fn heads_stand_in_their_place_among_events_and_one_is_enough_for_many_records() {
    let hub = Arc::new(EventHub::default());
    hub.show(&event(Some(1)), None);
    let (watcher, head) = hub.watch_with_heads(hub.clone());
    let mut plain = watch(&hub);

    hub.advance_head(2);
    hub.advance_head(3);
    hub.show(&event(None), None);
    hub.advance_head(4);
    let seen: Vec<NextItem> = (0..4).map(|_| watcher.take()).collect();
    for seq in 5..=MAX_QUEUED_EVENTS as u64 + 6 {
        hub.show(&event(Some(seq)), None);
    }
    hub.advance_head(5_000);
    let last: Vec<NextItem> =
        (0..MAX_QUEUED_EVENTS + 3).map(|_| watcher.take()).skip(MAX_QUEUED_EVENTS).collect();

    assert_eq!(head, 1);
    let shown = NextItem::Event(event(None));
    assert_eq!(seen, [NextItem::Head(3), shown, NextItem::Head(4), NextItem::Nothing]);
    let [NextItem::Missed(missed), rest @ ..] = &last[..] else { panic!("{last:?}") };
    assert_eq!(missed.to_watched(), Watched::Missed { events: 2, from: Some(MAX_QUEUED_EVENTS as u64 + 5) });
    assert_eq!(rest, [NextItem::Head(5_000), NextItem::Nothing]);
    assert_eq!(plain.try_next(), Some(Watched::Event(event(None))), "others see only events");
}

/// B3: who follows only for others does not attend; whoever could answer does, as long as they are there.
#[test]
fn a_session_is_attended_by_those_who_could_answer() {
    let hub = Arc::new(EventHub::default());
    let feed = watch(&hub);
    feed.set_unattended();

    let for_others = hub.is_attended();
    let attendance = hub.attend();
    let by_a_client = hub.is_attended();
    drop(attendance);
    let after = hub.is_attended();
    let _person = watch(&hub);

    assert_eq!((for_others, by_a_client, after, hub.is_attended()), (false, true, false, true));
}
