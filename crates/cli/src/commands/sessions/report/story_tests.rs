use longhaul_protocol::{
    At, AttemptEnded, AttemptId, AttemptStarted, Block, Checkpoint, InputId, InputTaken, Item, JoinMode,
    Outcome, Role, SessionRecord, TurnEnded, TurnStarted,
};

use super::{Entry, Story};

fn told(facts: Vec<SessionRecord>) -> Vec<Entry> {
    let mut story = Story::default();
    let mut entries: Vec<Entry> =
        facts.into_iter().enumerate().flat_map(|(at, fact)| story.happened(At(at as i64), fact)).collect();
    entries.extend(story.end());
    entries
}

fn input(text: &str) -> SessionRecord {
    let (id, text) = (InputId::generate(), text.to_owned());
    SessionRecord::InputTaken(InputTaken { id, inbox_through: 1, text, images: vec![], mode: JoinMode::Join })
}

fn turn(turn: u64) -> SessionRecord {
    SessionRecord::TurnStarted(TurnStarted { turn })
}

fn attempt(attempt: AttemptId) -> SessionRecord {
    SessionRecord::AttemptStarted(AttemptStarted { attempt, model: "a/b".into() })
}

fn block(attempt: AttemptId, index: u32, text: &str) -> SessionRecord {
    let item = Item::Text { role: Role::Assistant, text: text.into() };
    SessionRecord::Block(Block { attempt, index, item })
}

fn ended(attempt: AttemptId, kept: u32, error: Option<&str>) -> SessionRecord {
    let error = error.map(str::to_owned);
    SessionRecord::AttemptEnded(AttemptEnded {
        attempt,
        kept,
        stop: None,
        error,
        goes_on: false,
        too_long: None,
    })
}

/// What an entry says, without the rest of it.
fn words(entries: &[Entry]) -> Vec<&str> {
    let words = entries.iter().filter_map(|entry| match entry {
        Entry::Said { text, .. } | Entry::Answer(text) | Entry::Unfinished(text) | Entry::Aside(text) => {
            Some(text.as_str())
        }
        _ => None,
    });
    words.collect()
}

#[test]
fn what_was_said_stands_under_the_turn_that_answers_it() {
    let one = AttemptId::generate();
    let end = TurnEnded {
        turn: 1,
        outcome: Outcome::Completed,
        limit: None,
        text: "Hello.".into(),
        error: None,
        code: None,
        inbox_through: None,
    };

    let entries = told(vec![
        input("hi"),
        turn(1),
        attempt(one),
        block(one, 0, "Hello."),
        ended(one, 1, None),
        SessionRecord::TurnEnded(end),
        input("and then?"),
    ]);

    assert!(matches!(entries[0], Entry::Turn { number: 1, .. }));
    assert_eq!(words(&entries), ["hi", "model: a/b", "Hello.", "and then?"], "what waits is not left out");
    assert!(entries.iter().any(|entry| matches!(entry, Entry::Ended { took_ms: 4, .. })), "{entries:?}");
}

/// M9: what an attempt left that was given up counts only as far as it was kept.
#[test]
fn an_answer_that_broke_off_is_shown_as_such_and_its_blocks_are_not() {
    let (one, two) = (AttemptId::generate(), AttemptId::generate());

    let entries = told(vec![
        turn(1),
        attempt(one),
        block(one, 0, "not kept"),
        SessionRecord::Checkpoint(Checkpoint { attempt: one, text: "half a sen".into() }),
        ended(one, 0, Some("the stream broke")),
        attempt(two),
        block(two, 0, "whole"),
        ended(two, 1, None),
    ]);

    assert_eq!(
        words(&entries),
        [
            "model: a/b",
            "half a sen",
            "✗ the answer did not come: the stream broke",
            "whole",
            "turn 1 is not over yet"
        ]
    );
}

/// The clock of another machine may have said anything.
#[test]
fn a_turn_between_the_first_and_the_last_time_is_told() {
    let end = TurnEnded {
        turn: 1,
        outcome: Outcome::Completed,
        limit: None,
        text: String::new(),
        error: None,
        code: None,
        inbox_through: None,
    };
    let mut story = Story::default();
    story.happened(At(i64::MIN), turn(1));

    let entries = story.happened(At(i64::MAX), SessionRecord::TurnEnded(end));

    let Some(Entry::Ended { took_ms, .. }) = entries.last() else { panic!() };
    assert_eq!(*took_ms, i64::MAX as u64);
}
