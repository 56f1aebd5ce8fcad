use longhaul_protocol::{AttemptId, CallId, Effect, QuestionId};
use proptest::prelude::*;

use super::*;

fn event(at: i64, kind: EventKind) -> Event {
    Event { seq: None, at: At(at), session: "s".to_owned(), turn: Some(1), kind }
}

fn delta(text: &str) -> EventKind {
    EventKind::TextDelta { text: text.to_owned() }
}

fn message(text: &str) -> EventKind {
    EventKind::Message { role: Role::Assistant, content: text.to_owned() }
}

fn partial(text: &str) -> EventKind {
    EventKind::Partial { attempt: AttemptId::from_bits(1), text: text.to_owned() }
}

fn discarded(kept_blocks: u32) -> EventKind {
    EventKind::AttemptDiscarded { attempt: AttemptId::from_bits(1), kept_blocks }
}

fn call_started(id: u128) -> EventKind {
    let (name, arguments) = ("exec".to_owned(), "{}".to_owned());
    EventKind::ToolStarted { call_id: CallId::from_bits(id), name, arguments, effect: Effect::Command }
}

fn call_finished(id: u128, is_error: bool) -> EventKind {
    let (name, content) = ("exec".to_owned(), "done".to_owned());
    EventKind::ToolFinished {
        call_id: CallId::from_bits(id),
        name,
        is_error,
        content,
        diff: None,
        lines: None,
        report: Box::default(),
    }
}

fn turn_ended(outcome: Outcome) -> EventKind {
    EventKind::TurnEnded { outcome, limit: None, text: "bye".to_owned(), error: None, code: None }
}

/// Applies the events, one each millisecond.
fn apply(transcript: &mut Transcript, kinds: impl IntoIterator<Item = EventKind>) -> Vec<Update> {
    let events = kinds.into_iter().enumerate();
    events.flat_map(|(at, kind)| transcript.apply(&event(at as i64, kind))).collect()
}

/// The messages that ended, with their states.
fn messages(updates: &[Update]) -> Vec<(BlockState, String)> {
    let messages = updates.iter().filter_map(|update| match update {
        Update::Ended(Block { state, content: BlockContent::Message { text, .. }, .. }) => {
            Some((*state, text.clone()))
        }
        _ => None,
    });
    messages.collect()
}

fn ended(updates: &[Update]) -> Vec<&Block> {
    let blocks = updates.iter().filter_map(|update| match update {
        Update::Ended(block) => Some(block),
        _ => None,
    });
    blocks.collect()
}

#[test]
fn deltas_and_partial_texts_become_one_message() {
    let mut transcript = Transcript::new();

    let updates =
        apply(&mut transcript, [delta("Hel"), partial("Hello, "), delta("you"), message("Hello, you")]);

    let appended: String = updates
        .iter()
        .filter_map(|update| match update {
            Update::Appended { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(appended, "Hello, you", "nothing of it twice");
    assert_eq!(messages(&updates), [(BlockState::Finished, "Hello, you".to_owned())]);
    assert_eq!(transcript.open_blocks(), []);
}

#[test]
fn an_attempt_that_broke_off_is_discarded_or_counts_as_far_as_it_was_kept() {
    let mut transcript = Transcript::new();

    let updates =
        apply(&mut transcript, [delta("one"), discarded(0), delta("two"), discarded(1), message("three")]);

    let states = [BlockState::Discarded, BlockState::Truncated, BlockState::Finished];
    let texts = ["one", "two", "three"].map(str::to_owned);
    assert_eq!(messages(&updates), states.into_iter().zip(texts).collect::<Vec<_>>());
}

#[test]
fn reasoning_ends_where_the_answer_begins_and_has_its_time() {
    let mut transcript = Transcript::new();
    let think = |text: &str| EventKind::ReasoningDelta { text: text.to_owned() };

    let updates =
        apply(&mut transcript, [EventKind::TurnStarted { cause: None }, think("a"), think("b"), delta("c")]);

    let reasoning = ended(&updates)[1];
    assert_eq!(reasoning.content, BlockContent::Reasoning { text: "ab".to_owned() });
    assert_eq!(reasoning.elapsed(At(9)).as_millis(), 2);
    assert_eq!(transcript.message_text(), Some("c"));
}

#[test]
fn a_call_keeps_its_arguments_and_gets_its_result() {
    let mut transcript = Transcript::new();

    let updates = apply(
        &mut transcript,
        [call_started(1), call_started(2), call_finished(2, true), call_finished(3, false)],
    );

    let ended: Vec<_> = ended(&updates).iter().map(|block| (block.state, &block.content)).collect();
    let [(BlockState::Failed, BlockContent::Call(known)), (BlockState::Finished, BlockContent::Call(unseen))] =
        ended[..]
    else {
        panic!("{ended:?}")
    };
    assert_eq!((known.arguments.as_str(), unseen.arguments.as_str()), ("{}", ""));
    assert_eq!(transcript.open_blocks().len(), 1, "the first call runs");
}

#[test]
fn the_end_of_a_turn_interrupts_what_is_open_and_tasks_go_on() {
    let mut transcript = Transcript::new();
    let task_id = CallId::from_bits(7).into();
    let task = EventKind::TaskStarted { task_id, description: "serve".to_owned() };
    let question = EventKind::Question {
        id: QuestionId::from_bits(1),
        kind: None,
        text: "May it?".to_owned(),
        choices: vec![],
        call_id: None,
        diff: None,
    };
    apply(
        &mut transcript,
        [EventKind::TurnStarted { cause: None }, call_started(1), task, question, delta("half")],
    );

    let updates = transcript.apply(&event(5_000, turn_ended(Outcome::Cancelled)));

    let states: Vec<BlockState> = ended(&updates).iter().map(|block| block.state).collect();
    let interrupted = BlockState::Interrupted;
    assert_eq!(states, [interrupted, interrupted, interrupted, BlockState::Finished]);
    assert!(matches!(&ended(&updates)[3].content, BlockContent::TurnEnd(end) if end.took_ms == Some(5_000)));
    assert!(!transcript.has_open_questions());
    assert!(!transcript.is_active());
    assert_eq!(transcript.open_blocks().len(), 1);

    let end = EventKind::TaskEnded { task_id, status: TaskStatus::Completed, exit_code: Some(0) };
    let updates = transcript.apply(&event(9_000, end));

    let BlockContent::Task { description, .. } = &ended(&updates)[0].content else { panic!() };
    assert_eq!(description.as_deref(), Some("serve"));
    assert_eq!(ended(&updates)[0].elapsed(At(0)).as_millis(), 8_998);
}

#[test]
fn a_wait_ends_with_the_next_event_and_a_compaction_with_its_outcome() {
    let mut transcript = Transcript::new();
    let wait = || EventKind::RetryWait {
        class: "throttled".to_owned(),
        attempt: 1,
        of: 4,
        delay_ms: 9,
        reason: String::new(),
    };

    let updates =
        apply(&mut transcript, [wait(), wait(), EventKind::CompactStart { reason: "idle".to_owned() }]);

    assert_eq!(ended(&updates).len(), 1, "one wait replaces the other");
    assert!(transcript.is_active());

    let updates = apply(&mut transcript, [EventKind::CompactFailed { reason: "no".to_owned() }]);

    let outcome = Some(CompactionOutcome::Failed { reason: "no".to_owned() });
    let reason = Some("idle".to_owned());
    assert_eq!(ended(&updates)[0].content, BlockContent::Compaction { reason, outcome });
    assert!(!transcript.is_active());
}

#[test]
fn a_turn_that_is_abandoned_hands_over_its_text_alone() {
    let mut transcript = Transcript::new();
    apply(&mut transcript, [EventKind::TurnStarted { cause: None }, call_started(1), delta("half")]);

    let updates = transcript.abandon_turn(At(9));

    assert_eq!(messages(&updates), [(BlockState::Interrupted, "half".to_owned())]);
    assert_eq!(updates.len(), 1);
    assert_eq!((transcript.open_blocks(), transcript.turn_started_at()), (&[][..], None));
}

fn any_kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        "[a-c]{0,3}".prop_map(|text| delta(&text)),
        "[a-c]{0,3}".prop_map(|text| partial(&text)),
        "[a-c]{0,3}".prop_map(|text| EventKind::ReasoningDelta { text }),
        "[a-c]{0,3}".prop_map(|text| message(&text)),
        (0u32..2).prop_map(discarded),
        (0u128..3).prop_map(call_started),
        ((0u128..3), any::<bool>()).prop_map(|(id, is_error)| call_finished(id, is_error)),
        Just(EventKind::TurnStarted { cause: None }),
        Just(turn_ended(Outcome::Completed)),
        Just(EventKind::CompactStart { reason: "asked".to_owned() }),
        Just(EventKind::CompactFailed { reason: "no".to_owned() }),
    ]
}

proptest! {
    /// Whatever order events come in: a block ends at most once, and its text is what was appended to it.
    #[test]
    fn every_block_ends_once_and_text_is_appended_to_open_blocks_only(kinds in prop::collection::vec(any_kind(), 0..40)) {
        let mut transcript = Transcript::new();
        let mut open: Vec<BlockId> = Vec::new();
        let mut over: Vec<BlockId> = Vec::new();

        for update in apply(&mut transcript, kinds) {
            match update {
                Update::Started(block) => open.push(block.id),
                Update::Appended { block, .. } => prop_assert!(open.contains(&block)),
                Update::Ended(block) => {
                    prop_assert!(!over.contains(&block.id) && block.ended_at.is_some());
                    prop_assert_ne!(block.state, BlockState::Running);
                    open.retain(|id| *id != block.id);
                    over.push(block.id);
                }
            }
        }

        let left = |block: &Block| open.contains(&block.id) && block.state == BlockState::Running;
        prop_assert!(transcript.open_blocks().iter().all(left));
    }
}
