use longhaul_protocol::{Body, Effect, FileSeen, Gone, Hash, SessionRecord, TurnEnded};

use super::*;
use crate::facts::*;

fn texts(state: &State) -> Vec<String> {
    let text = |item: &Arc<Item>| match &**item {
        Item::Text { text, .. } => text.clone(),
        Item::ToolCall { name, .. } => format!("call {name}"),
        Item::ToolResult { content, .. } => format!("result {content}"),
        other => format!("{other:?}"),
    };
    state.items.iter().map(text).collect()
}

/// T3, T5: what joins in the middle of a step stands after its results, never between a call and its result.
#[test]
fn an_input_that_comes_between_a_call_and_its_result_is_seen_after_both() {
    let state = after(&[
        input(JoinMode::Join),
        turn(),
        step(1),
        attempt(),
        asks(1, "look"),
        asks(2, "look"),
        answered(2),
        finishes(2, "look", "b"),
        input(JoinMode::Join),
        finishes(1, "look", "a"),
        step(2),
    ]);

    assert_eq!(texts(&state), ["hello", "call look", "call look", "result a", "result b", "hello"]);
}

#[test]
fn blocks_count_only_through_the_end_of_their_attempt() {
    let open = [input(JoinMode::Join), turn(), step(1), attempt(), text()];

    assert_eq!(texts(&after(&open)), ["hello"]);
    assert_eq!(texts(&after(&[&open[..], &[broke(0)]].concat())), ["hello"]);
    assert_eq!(texts(&after(&[&open[..], &[answered(1)]].concat())), ["hello", "so"]);
}

/// T5: a turn that ended puts each result into the context once.
#[test]
fn results_are_in_the_context_once() {
    let ended = SessionRecord::TurnEnded(TurnEnded {
        turn: 1,
        outcome: longhaul_protocol::Outcome::Cancelled,
        limit: None,
        text: String::new(),
        error: None,
    });
    let state = after(&[
        input(JoinMode::Join),
        turn(),
        step(1),
        attempt(),
        asks(1, "look"),
        answered(1),
        finishes(1, "look", "a"),
        ended,
    ]);

    assert_eq!(texts(&state), ["hello", "call look", "result a"]);
    assert_eq!(state.turn, None);
}

/// T13: a result that was erased is still a result.
#[test]
fn a_call_whose_result_was_erased_is_not_run_again() {
    let mut state = after(&[
        input(JoinMode::Join),
        turn(),
        step(1),
        attempt(),
        asks(1, "write"),
        answered(1),
        starts(1, "write", Effect::Unknown),
    ]);
    let gone = Gone { at: longhaul_protocol::At(0), reason: "a secret".to_owned(), body_hash: None };
    let erased = Record { body: Body::Gone(gone), ..record(99, &finishes(1, "write", "x")) };

    state.apply(&erased).unwrap();

    assert_eq!(texts(&state).last().unwrap(), "result [erased: a secret]");
    assert!(!state.turn.unwrap().calls[0].is_open());
}

/// P2: what the model has seen of a file is the latest that a call has shown it.
#[test]
fn the_newest_sight_of_a_file_counts() {
    let seen = |content: &str| {
        let seen = FileSeen { path: "/a".to_owned(), hash: Hash::of(content.as_bytes()) };
        SessionRecord::ToolFinished(ToolFinished {
            seen: Some(seen),
            ..ToolFinished::new(call_id(1), "read_file", content)
        })
    };

    let state = after(&[seen("one"), seen("two")]);

    assert_eq!(state.seen.get("/a"), Some(&Hash::of(b"two")));
}
