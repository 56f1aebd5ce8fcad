use longhaul_protocol::{
    AttemptStarted, Block as ItemRecord, Checkpoint, InputId, InputTaken, JoinMode, Outcome, TurnStarted,
};

use super::*;
use crate::notice::{Verbosity, notice_text};

fn at(at: i64) -> BlockOrigin {
    BlockOrigin { seq: None, turn: None, at: At(at) }
}

fn told(facts: Vec<SessionRecord>) -> Vec<Update> {
    let mut story = StoredTranscript::new();
    let facts = facts.into_iter().enumerate();
    let mut updates: Vec<Update> =
        facts.flat_map(|(place, fact)| story.apply_fact(fact, at(place as i64))).collect();
    updates.extend(story.end());
    updates
}

fn input(text: &str) -> SessionRecord {
    let (id, text) = (InputId::generate(), text.to_owned());
    SessionRecord::InputTaken(InputTaken {
        id,
        inbox_through: 1,
        text,
        images: vec![],
        mode: JoinMode::Join,
        client: None,
    })
}

fn turn(turn: u64) -> SessionRecord {
    SessionRecord::TurnStarted(TurnStarted { turn })
}

fn attempt(attempt: AttemptId) -> SessionRecord {
    SessionRecord::AttemptStarted(AttemptStarted { attempt, model: "a/b".into() })
}

fn block(attempt: AttemptId, index: u32, text: &str) -> SessionRecord {
    let item = Item::Text { role: Role::Assistant, text: text.into() };
    SessionRecord::Block(ItemRecord { attempt, index, item })
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

/// The text of each update, without the rest of it.
fn words(updates: &[Update]) -> Vec<String> {
    let words = updates.iter().filter_map(|update| match update {
        Update::Ended(Block {
            content: BlockContent::Input { text, .. } | BlockContent::Message { text, .. },
            ..
        }) => Some(text.clone()),
        update => notice_text(update, Verbosity::Verbose),
    });
    words.collect()
}

fn took(update: &Update) -> Option<u64> {
    match update {
        Update::Ended(Block { content: BlockContent::TurnEnd(end), .. }) => end.took_ms,
        _ => None,
    }
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

    assert!(
        matches!(&entries[0], Update::Ended(block) if block.turn == Some(1) && block.content == BlockContent::TurnStart)
    );
    assert_eq!(words(&entries), ["hi", "model: a/b", "Hello.", "and then?"], "what waits is not left out");
    assert!(entries.iter().any(|update| took(update) == Some(4)), "{entries:?}");
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
        ["model: a/b", "half a sen", "✗ no answer: the stream broke", "whole", "turn 1 is unfinished"]
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
    let mut story = StoredTranscript::new();
    story.apply_fact(turn(1), at(i64::MIN));

    let entries = story.apply_fact(SessionRecord::TurnEnded(end), at(i64::MAX));

    assert_eq!(entries.last().and_then(took), Some(i64::MAX as u64));
}
