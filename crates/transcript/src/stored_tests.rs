use longhaul_protocol::{
    AttemptStarted, Block as ItemRecord, Checkpoint, Input, InputId, JoinMode, Limit, Order, Outcome,
    StepStarted, TurnStarted,
};

use super::*;
use crate::notice::{Verbosity, notice_text};

fn at(at: i64) -> BlockOrigin {
    BlockOrigin { seq: None, turn: None, at: At(at) }
}

fn told(facts: Vec<SessionRecord>) -> Vec<Update> {
    let mut story = StoredTranscript::new();
    let facts = facts.into_iter().enumerate();
    let mut updates: Vec<Update> = facts
        .flat_map(|(place, fact)| story.apply_fact(fact, story.origin(None, At(place as i64))))
        .collect();
    updates.extend(story.end());
    updates
}

fn input(text: &str) -> SessionRecord {
    input_as(InputId::generate(), JoinMode::Join, text)
}

fn input_as(id: InputId, mode: JoinMode, text: &str) -> SessionRecord {
    let text = text.to_owned();
    SessionRecord::InputTaken(InputTaken::of(Input::new(id, text, mode), 1))
}

fn step(step: u64, later: Vec<InputId>) -> SessionRecord {
    SessionRecord::StepStarted(StepStarted { step, later })
}

fn end_of(turn: u64, outcome: Outcome) -> SessionRecord {
    let (limit, error, code) = ((outcome == Outcome::Limit).then_some(Limit::Cost), None, None);
    let text = String::new();
    SessionRecord::TurnEnded(TurnEnded { turn, outcome, limit, text, error, code, inbox_through: None })
}

fn order(kind: OrderKind) -> SessionRecord {
    let order = Order { id: longhaul_protocol::OrderId::generate(), kind };
    SessionRecord::OrderTaken(OrderTaken { inbox_through: 1, order })
}

fn turn(turn: u64) -> SessionRecord {
    SessionRecord::TurnStarted(TurnStarted::new(turn))
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
        matches!(&entries[0], Update::Ended(block) if block.turn == Some(1) && block.content == BlockContent::TurnStart { cause: None })
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

/// Inputs and answers with their turns, in order.
fn said(updates: &[Update]) -> Vec<(Option<u64>, &str)> {
    let said = updates.iter().filter_map(|update| match update {
        Update::Ended(Block {
            turn,
            content: BlockContent::Input { text, .. } | BlockContent::Message { text, .. },
            ..
        }) => Some((*turn, text.as_str())),
        _ => None,
    });
    said.collect()
}

/// H8: an input that is taken while an answer arrives comes after that answer, in the turn in which the model gets it.
#[test]
fn an_input_stands_where_the_model_gets_it() {
    let (one, two, three) = (AttemptId::generate(), AttemptId::generate(), AttemptId::generate());
    let (long, cut) = (InputId::generate(), InputId::generate());

    let updates = told(vec![
        input("first"),
        turn(1),
        step(1, vec![]),
        attempt(one),
        input_as(InputId::generate(), JoinMode::After, "after the turn"),
        input("joins"),
        input_as(long, JoinMode::Join, "too long for this turn"),
        input_as(cut, JoinMode::Join, "taken back"),
        order(OrderKind::Withdraw { input: cut }),
        block(one, 0, "One."),
        ended(one, 1, None),
        step(2, vec![long]),
        attempt(two),
        block(two, 0, "Two."),
        ended(two, 1, None),
        end_of(1, Outcome::Completed),
        input("between"),
        turn(2),
        step(1, vec![]),
        attempt(three),
        block(three, 0, "Three."),
        ended(three, 1, None),
    ]);

    let (first, second) = (Some(1), Some(2));
    let expected = [
        (first, "first"),
        (first, "One."),
        (first, "joins"),
        (first, "Two."),
        (second, "after the turn"),
        (second, "too long for this turn"),
        (second, "between"),
        (second, "Three."),
    ];
    assert_eq!(said(&updates), expected);
}

/// Inputs that were cancelled before their turn began form a turn of their own. Later ones have the next.
#[test]
fn an_input_that_was_cancelled_before_its_turn_has_a_turn_of_its_own() {
    let updates = told(vec![
        input("wrong"),
        order(OrderKind::Cancel),
        input("right"),
        turn(1),
        step(1, vec![]),
        end_of(1, Outcome::Cancelled),
        turn(2),
        step(1, vec![]),
    ]);

    assert_eq!(said(&updates), [(Some(1), "wrong"), (Some(2), "right")]);
}

/// H8: what waits is open, below the answer that arrives.
#[test]
fn an_input_that_waits_is_the_last_of_what_goes_on() {
    let one = AttemptId::generate();
    let mut story = StoredTranscript::new();
    let text = "half a sen".to_owned();
    let partial = SessionRecord::Checkpoint(Checkpoint { attempt: one, text });
    for fact in [input("first"), turn(1), step(1, vec![]), attempt(one), input("joins"), partial] {
        story.apply_fact(fact, at(0));
    }

    let open = story.open_blocks();

    assert!(open.iter().all(|block| block.state == BlockState::Running), "{open:?}");
    let contents: Vec<&BlockContent> = open.iter().map(|block| &block.content).collect();
    assert!(
        matches!(
            contents[..],
            [BlockContent::TurnStart { cause: None }, BlockContent::Message { .. }, BlockContent::Input { text, .. }] if text == "joins"
        ),
        "{contents:?}"
    );
}

/// H8: a fork before an input has everything up to the end of the turn before, also if the input was taken in that turn.
#[test]
fn the_fork_point_of_an_input_is_the_end_of_the_turn_before_its_own() {
    let mut story = StoredTranscript::new();
    let facts = [
        input("first"),
        turn(1),
        step(1, vec![]),
        input_as(InputId::generate(), JoinMode::After, "after"),
        end_of(1, Outcome::Completed),
        turn(2),
        step(1, vec![]),
        input("joins"),
        step(2, vec![]),
    ];
    let updates = facts.into_iter().zip(1..).flat_map(|(fact, seq)| {
        let origin = story.origin(Some(seq), At(0));
        story.apply_fact(fact, origin)
    });
    let forks: Vec<(String, Option<Seq>)> = updates
        .filter_map(|update| match update {
            Update::Ended(Block { content: BlockContent::Input { text, fork_at, .. }, .. }) => {
                Some((text, fork_at))
            }
            _ => None,
        })
        .collect();

    let expected = [("first", None), ("after", Some(5)), ("joins", Some(5))];
    assert_eq!(forks, expected.map(|(text, seq)| (text.to_owned(), seq)));
}

/// B1: a limit that ends a turn before its first call has cost nothing; a call without usage has cost something unknown.
#[test]
fn a_turn_without_a_call_has_spent_nothing() {
    let limited = [turn(1), step(1, vec![]), end_of(1, Outcome::Limit)];
    let called = [turn(1), step(1, vec![]), attempt(AttemptId::generate()), end_of(1, Outcome::Cancelled)];
    let total = |facts: Vec<SessionRecord>| match told(facts).pop() {
        Some(Update::Ended(Block { content: BlockContent::TurnEnd(end), .. })) => end.spend.to_string(),
        update => panic!("{update:?}"),
    };

    assert_eq!(total(limited.to_vec()), "nothing spent");
    assert_eq!(total(called.to_vec()), "tokens unknown");
}

/// H8: text of an answer that was given up is no part of the conversation, whether the model was asked again or the turn failed. Text of one
/// that nobody went on with is.
#[test]
fn the_text_of_a_discarded_attempt_is_marked_and_has_no_html() {
    let (one, two, three) = (AttemptId::generate(), AttemptId::generate(), AttemptId::generate());
    let said = |attempt, text: &str| SessionRecord::Checkpoint(Checkpoint { attempt, text: text.into() });

    let entries = told(vec![
        turn(1),
        attempt(one),
        said(one, "broke off"),
        ended(one, 0, Some("the stream broke")),
        attempt(two),
        said(two, "killed"),
        attempt(three),
        said(three, "cut"),
    ]);

    let states: Vec<(String, BlockState, bool)> = entries
        .iter()
        .filter_map(|update| match update {
            Update::Ended(block) => match &block.content {
                BlockContent::Message { text, .. } => {
                    Some((text.clone(), block.state, crate::html::block_html(block).is_empty()))
                }
                _ => None,
            },
            _ => None,
        })
        .collect();
    let (discarded, interrupted) = (BlockState::Discarded, BlockState::Interrupted);
    assert_eq!(
        states,
        [
            ("broke off".to_owned(), discarded, true),
            ("killed".to_owned(), discarded, true),
            ("cut".to_owned(), interrupted, false)
        ]
    );
}
