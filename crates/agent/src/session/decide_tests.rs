use longhaul_protocol::{Effect, Item, JoinMode, SessionRecord};

use super::*;
use crate::session::fixtures::*;

fn next(facts: &[SessionRecord]) -> Action {
    decide(&after(facts), &policy())
}

fn begun() -> Vec<SessionRecord> {
    vec![input(JoinMode::Join), turn(), step(1), attempt()]
}

fn with(mut facts: Vec<SessionRecord>, more: Vec<SessionRecord>) -> Vec<SessionRecord> {
    facts.extend(more);
    facts
}

#[test]
fn a_session_rests_until_an_input_comes_and_then_asks_the_model() {
    assert_eq!(next(&[]), Action::Rest);
    assert_eq!(next(&[cancel()]), Action::Rest);
    assert_eq!(next(&[input(JoinMode::After)]), Action::CallModel { turn: Some(1), step: Some(1) });
}

#[test]
fn what_a_context_begins_with_is_changed_only_between_turns() {
    let changed = Policy { system: Hash::of(b"other"), ..policy() };

    let between = decide(&after(&[input(JoinMode::Join)]), &changed);
    let within = decide(&after(&with(begun(), vec![text(), answered(1)])), &changed);
    let idle = decide(&after(&[]), &changed);

    assert_eq!((between, idle), (Action::StartEpoch, Action::Rest));
    assert!(matches!(within, Action::EndTurn(_)));
}

/// M10, T11: thoughts alone don't enter the context, and an interrupt keeps the text that followed them.
#[test]
fn thoughts_count_only_with_the_text_that_they_led_to() {
    let thought = Item::Reasoning { text: "Hm.".to_owned(), signature: None };
    let attempt = |unfinished: &str| crate::session::state::Attempt {
        id: longhaul_protocol::AttemptId::generate(),
        blocks: vec![std::sync::Arc::new(thought.clone())],
        unfinished: unfinished.to_owned(),
    };

    let kept =
        ["", "So I"].map(|text| (attempt(text).blocks_kept_on_stop(), attempt(text).blocks_kept_on_cancel()));

    assert_eq!(kept, [(0, 0), (0, 2)]);
}

/// M9, T12: what a broken attempt leaves.
#[test]
fn an_attempt_that_a_crash_left_open_is_closed_by_what_is_complete() {
    assert_eq!(next(&begun()), Action::CloseAttempt { kept: 0 });
    assert_eq!(next(&with(begun(), vec![text()])), Action::CloseAttempt { kept: 0 });
    assert_eq!(next(&with(begun(), vec![text(), asks(1, "look")])), Action::CloseAttempt { kept: 2 });
    assert_eq!(next(&with(begun(), vec![text(), broke(0)])), Action::CallModel { turn: None, step: None });
}

/// T10, T11
#[test]
fn a_cancelled_attempt_keeps_what_is_complete_unless_it_is_thoughts_alone() {
    assert_eq!(next(&with(begun(), vec![text(), cancel()])), Action::CloseAttempt { kept: 1 });
    assert_eq!(next(&with(begun(), vec![thought(), cancel()])), Action::CloseAttempt { kept: 0 });
    let ended = next(&with(begun(), vec![asks(1, "look"), cancel(), broke(1)]));
    assert_eq!(ended, Action::EndTurn(TurnEnding::plain(Outcome::Cancelled)), "the call is not run");
}

/// T4
#[test]
fn calls_that_look_run_together_and_the_rest_one_by_one() {
    let answer = vec![asks(1, "look"), asks(2, "look"), asks(3, "write"), asks(4, "look"), answered(4)];
    let asked = with(begun(), answer);

    assert_eq!(next(&asked), Action::RunTools(vec![call_id(1), call_id(2)]));
    let both = with(asked, vec![finishes(2, "look", "b"), finishes(1, "look", "a")]);
    assert_eq!(next(&both), Action::RunTools(vec![call_id(3)]));
    let written = with(both, vec![finishes(3, "write", "c")]);
    assert_eq!(next(&written), Action::RunTools(vec![call_id(4)]));
    let all = with(written, vec![finishes(4, "look", "d")]);
    assert_eq!(next(&all), Action::CallModel { turn: None, step: Some(2) });
}

/// T12: what had started comes first, also when the turn is cancelled: what it did must be known.
#[test]
fn a_call_that_a_crash_left_open_is_looked_after_before_anything_else() {
    let open = with(
        begun(),
        vec![asks(1, "write"), asks(2, "look"), answered(2), starts(1, "write", Effect::CheckedWrite)],
    );

    assert_eq!(next(&open), Action::RunTools(vec![call_id(1)]));
    assert_eq!(next(&with(open, vec![cancel()])), Action::RunTools(vec![call_id(1)]));
}

/// T3
#[test]
fn a_turn_ends_with_an_answer_unless_somebody_joined() {
    let answer = with(begun(), vec![text(), answered(1)]);

    assert_eq!(next(&answer), Action::EndTurn(TurnEnding::plain(Outcome::Completed)));
    let joined = with(answer.clone(), vec![input(JoinMode::Join)]);
    assert_eq!(next(&joined), Action::CallModel { turn: None, step: Some(2) });
    let later = with(answer, vec![input(JoinMode::After)]);
    assert_eq!(next(&later), Action::EndTurn(TurnEnding::plain(Outcome::Completed)));
}

/// T9
#[test]
fn a_turn_has_a_limit_of_steps() {
    let third = vec![step(3), attempt(), asks(1, "look"), answered(1), finishes(1, "look", "a")];

    let Action::EndTurn(ending) = next(&with(begun(), third)) else { panic!("it goes on") };

    assert_eq!((ending.outcome, ending.limit), (Outcome::Limit, Some(Limit::Steps)));
}

/// J5
#[test]
fn what_could_not_be_saved_ends_the_turn_once_what_started_is_known() {
    let refused = Policy { forced_end: Some("disk full".to_owned()), ..policy() };
    let asked = with(begun(), vec![asks(1, "write"), answered(1)]);

    let ending = decide(&after(&asked), &refused);
    let open = decide(&after(&with(asked, vec![starts(1, "write", Effect::Unknown)])), &refused);

    assert_eq!(ending, Action::EndTurn(TurnEnding::failed("disk full")));
    assert_eq!(open, Action::RunTools(vec![call_id(1)]));
}

/// T9: a turn whose answer is complete is complete, however long it took.
#[test]
fn time_that_is_over_ends_only_what_is_not_done() {
    let late = Policy { is_out_of_time: true, ..policy() };
    let begun = [input(JoinMode::Join), turn(), step(1), attempt(), text()];

    let done = after(&[&begun[..], &[answered(1)]].concat());
    let failed = after(&[&begun[..], &[broke(0)]].concat());

    let ending = |state: &State| match decide(state, &late) {
        Action::EndTurn(ending) => (ending.outcome, ending.limit),
        other => panic!("{other:?}"),
    };
    assert_eq!(ending(&done), (Outcome::Completed, None));
    assert_eq!(ending(&failed), (Outcome::Limit, Some(Limit::Time)));
}

/// P1: whatever was started before a crash is known first.
#[test]
fn a_turn_that_is_refused_begins_only_to_say_why() {
    let refused = Policy { refusal: Some("a link".to_owned()), ..policy() };
    let waiting = [input(JoinMode::Join)];
    let asked = with(begun(), vec![asks(1, "write"), answered(1)]);

    let beginning = decide(&after(&waiting), &refused);
    let ending = decide(&after(&asked), &refused);
    let open = decide(&after(&with(asked, vec![starts(1, "write", Effect::Unknown)])), &refused);

    assert_eq!(beginning, Action::BeginTurn(1));
    let code = Some("work_folder_moved".to_owned());
    assert_eq!(ending, Action::EndTurn(TurnEnding { code, ..TurnEnding::failed("a link") }));
    assert_eq!(open, Action::RunTools(vec![call_id(1)]));
}
