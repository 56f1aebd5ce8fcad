use longhaul_protocol::{Outcome, QuestionId};

use super::*;

fn ended() -> EventKind {
    EventKind::TurnEnded {
        outcome: Outcome::Completed,
        limit: None,
        text: String::new(),
        error: None,
        code: None,
    }
}

fn question() -> EventKind {
    EventKind::Question {
        id: QuestionId::generate(),
        kind: None,
        text: "May it?".to_owned(),
        choices: vec![],
        call_id: None,
        diff: None,
    }
}

#[test]
fn a_user_who_looks_elsewhere_is_told_and_one_who_looks_here_is_not() {
    let now = Instant::now();
    let mut notifier = Notifier::in_terminal(Notify::Auto, "");

    notifier.set_focused(true);
    assert_eq!(notifier.signal_for(&ended(), now), None);
    notifier.set_focused(false);
    assert_eq!(notifier.signal_for(&EventKind::StepStarted, now), None);
    assert_eq!(notifier.signal_for(&ended(), now), Some(BELL));
    assert_eq!(notifier.signal_for(&question(), now), Some(BELL));
}

#[test]
fn without_reports_of_the_focus_only_long_turns_are_told() {
    let now = Instant::now();
    let mut notifier = Notifier::in_terminal(Notify::Bell, "");

    notifier.signal_for(&EventKind::TurnStarted { cause: None }, now);
    assert_eq!(notifier.signal_for(&ended(), now + LONG_TURN), None);
    notifier.signal_for(&EventKind::TurnStarted { cause: None }, now);
    assert_eq!(notifier.signal_for(&question(), now + 2 * LONG_TURN), Some(BELL));
    assert_eq!(notifier.signal_for(&ended(), now + 2 * LONG_TURN), Some(BELL));
    assert_eq!(notifier.signal_for(&ended(), now + 3 * LONG_TURN), None, "that turn has not begun here");
}

#[test]
fn the_signal_is_the_one_that_the_config_or_the_terminal_asks_for() {
    let now = Instant::now();
    let signal = |notify, program| {
        let mut notifier = Notifier::in_terminal(notify, program);
        notifier.set_focused(false);
        notifier.signal_for(&ended(), now)
    };

    assert_eq!(signal(Notify::Auto, "WezTerm"), Some("\x1b]9;Longhaul is done\x07"));
    assert_eq!(signal(Notify::Osc9, ""), Some("\x1b]9;Longhaul is done\x07"));
    assert_eq!(signal(Notify::Auto, "Apple_Terminal"), Some(BELL));
    assert_eq!(signal(Notify::Bell, "WezTerm"), Some(BELL));
    assert_eq!(signal(Notify::Off, "WezTerm"), None);
}
