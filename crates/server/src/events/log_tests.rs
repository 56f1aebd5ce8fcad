use super::*;
use longhaul_protocol::At;

fn event(seq: Option<Seq>, kind: EventKind) -> Event {
    Event { seq, at: At(0), session: "a".to_owned(), turn: Some(1), kind }
}

fn delta(text: &str) -> Event {
    event(None, EventKind::TextDelta { text: text.to_owned() })
}

fn log_with(after: Seq, seqs: impl IntoIterator<Item = Seq>) -> EventLog {
    let log = EventLog::new(after, after);
    for seq in seqs {
        log.add_record(seq, Some(&event(Some(seq), EventKind::StepStarted)));
    }
    log
}

fn read_all(log: &EventLog, cursor: &mut LogCursor) -> Vec<Option<Seq>> {
    let mut all = Vec::new();
    while let Some(LogRead::Frames(frames)) = log.read_now(cursor) {
        all.extend(frames.iter().map(|frame| frame.seq));
    }
    all
}

/// H2.
#[test]
fn a_follower_within_the_log_gets_each_later_record_once() {
    let log = log_with(4, [5, 6, 7]);
    log.add_live(&delta("x"));

    let mut joined = log.join(5);
    log.add_record(8, Some(&event(Some(8), EventKind::StepStarted)));

    assert_eq!(joined.catch_up, None);
    assert_eq!(read_all(&log, &mut joined.cursor), [Some(6), Some(7), None, Some(8)]);
}

/// H2: a client that comes back after a restart may have more than the new feed.
#[test]
fn a_follower_that_is_ahead_of_the_feed_gets_nothing_twice() {
    let log = log_with(4, [5]);

    let mut joined = log.join(6);
    for seq in [6, 7] {
        log.add_record(seq, Some(&event(Some(seq), EventKind::StepStarted)));
    }

    assert_eq!((joined.catch_up, read_all(&log, &mut joined.cursor)), (None, vec![Some(7)]));
}

/// H2: a replay is faster than any client.
#[test]
fn a_follower_that_a_replay_overtook_goes_on_from_the_journal() {
    let log = EventLog::new(0, 20);
    let mut follower = log.join(0).cursor;
    log.add_record(1, Some(&event(Some(1), EventKind::StepStarted)));
    assert_eq!(read_all(&log, &mut follower), [Some(1)]);
    let big = "x".repeat(MAX_BYTES / 8);
    for seq in 2..=20 {
        log.add_record(seq, Some(&event(Some(seq), EventKind::Note { text: big.clone() })));
    }

    assert!(matches!(log.read_now(&mut follower), Some(LogRead::Lagged)));
    let mut back = log.rejoin(&follower).unwrap();
    log.add_record(21, Some(&event(Some(21), EventKind::StepStarted)));

    assert_eq!(back.catch_up, Some((1, 20)));
    assert_eq!(read_all(&log, &mut back.cursor), [Some(21)]);
    assert_eq!(log.rejoin(&back.cursor), None, "what happens now is read in time, or not at all");
}

/// H6: the log is bounded, and a follower that was overtaken is told so.
#[test]
fn a_full_log_drops_its_oldest_events_and_closes_who_has_not_read_them() {
    let log = EventLog::new(0, 0);
    let mut slow = log.join(0).cursor;
    let big = "x".repeat(MAX_BYTES / 8);
    for seq in 1..=20 {
        log.add_record(seq, Some(&event(Some(seq), EventKind::Note { text: big.clone() })));
    }

    assert!(matches!(log.read_now(&mut slow), Some(LogRead::Lagged)));
    assert!(log.lock().bytes <= MAX_BYTES + big.len());
    let back = log.join(1);
    assert_eq!(back.catch_up, Some((1, 20)), "the journal has what the log no longer has");
    assert_eq!(log.join(20).catch_up, None);
}

/// T14: who joins during an answer gets its text so far.
#[test]
fn a_follower_that_joins_during_an_answer_gets_its_text_so_far_once() {
    let log = log_with(0, [1]);
    let attempt = AttemptId::from_bits(7);
    log.set_attempt(Some(attempt));
    log.add_live(&delta("one\n"));
    log.add_live(&delta("two"));

    let mut joined = log.join(1);
    log.add_live(&delta(" three"));

    let text = String::from_utf8(joined.partial.unwrap().to_vec()).unwrap();
    assert!(text.contains(r#""type":"partial""#) && text.contains(r#""text":"one\ntwo""#), "{text}");
    assert_eq!(text.lines().count(), 2, "one field and the end of the event: {text:?}");
    assert_eq!(read_all(&log, &mut joined.cursor), [None]);
    log.set_attempt(None);
    assert_eq!(log.join(1).partial, None);
}

/// H2: a record may come in the middle of an answer. A follower that begins with it gets the text before it, and the rest.
#[test]
fn a_follower_that_joins_in_the_middle_of_an_answer_gets_its_beginning() {
    let attempt = AttemptId::from_bits(1);
    let log = log_with(99, [100]);
    log.set_attempt(Some(attempt));
    log.add_live(&delta("one "));
    log.add_record(101, Some(&event(Some(101), EventKind::StepStarted)));
    log.add_live(&delta("two "));
    let text_of = |joined: &JoinPoint| {
        let frame = String::from_utf8(joined.partial.clone()?.to_vec()).unwrap();
        let event: serde_json::Value = serde_json::from_str(frame.trim().strip_prefix("data: ")?).unwrap();
        Some(event["text"].as_str()?.to_owned())
    };

    let mut before = log.join(99);
    let mut within = log.join(100);
    let mut after = log.join(101);
    log.add_live(&delta("three"));

    assert_eq!(
        [&before, &within, &after].map(text_of),
        [None, Some("one ".to_owned()), Some("one two ".to_owned())]
    );
    assert_eq!(read_all(&log, &mut before.cursor), [Some(100), None, Some(101), None, None]);
    assert_eq!(read_all(&log, &mut within.cursor), [Some(101), None, None]);
    assert_eq!(read_all(&log, &mut after.cursor), [None]);
    // That answer is over. Its message is a record that the follower reads.
    log.set_attempt(Some(AttemptId::from_bits(2)));
    assert_eq!(text_of(&log.join(100)), None);
}
