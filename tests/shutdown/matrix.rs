//! Every signal in every mode at every moment.

use std::process::Command;
use std::time::{Duration, Instant};

use longhaul_protocol::{Outcome, Record, SessionRecord};
use rustix::process::Signal;

use crate::desk::{Desk, told};
use crate::leftovers::{Left, processes, records, sound_records};
use crate::modes::{Effect, Ended, Mode};
use crate::moments::{Busy, Moment};
use crate::{eventually, within};

/// The signals by which people and systems end programs.
const SIGNALS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// S1: what is durable, what is left, what is said, how soon; and that what is said leads back.
pub(crate) fn any_signal_ends_it(mode: Mode, moment: Moment) {
    for signal in SIGNALS {
        let busy = Busy::at(moment);
        let desk = Desk::with_model_of_config(&busy.config());
        let mut running = mode.start(&desk);
        busy.wait_until(moment, &desk);

        let mut signalled = Instant::now();
        running.signal(signal);
        let effect = mode.effect(signal, moment != Moment::Idle);
        if let Effect::CancelsAndStays(_) = effect {
            running.wait_for_prompt_after("cancelled");
            assert_eq!(outcome(&records(&desk)), Some(Outcome::Cancelled), "{mode:?}, {moment:?}");
            signalled = Instant::now();
            running.signal(signal);
        }
        let ended = running.end();
        let took = signalled.elapsed();

        let cell = format!("{mode:?}, {moment:?}, {signal:?}: {}", ended.said);
        let promised = if moment == Moment::Idle { 100 } else { 5_000 };
        assert!(took < within(Duration::from_millis(promised)), "{took:?} {cell}");
        let (Effect::Suspends(code) | Effect::Cancels(code) | Effect::CancelsAndStays(code)) = effect;
        assert_eq!(ended.code, Some(code), "{cell}");
        assert!(ended.terminal_is_restored, "{cell}");
        let records = sound_records(&desk);
        let expected = match (effect, moment) {
            (_, Moment::Idle) => Some(Outcome::Completed),
            (Effect::Suspends(_), _) => None,
            _ => Some(Outcome::Cancelled),
        };
        assert_eq!(outcome(&records), expected, "{cell}");
        match (effect, moment) {
            (Effect::Suspends(_), Moment::Command) => {
                let left = processes(&desk);
                assert!(left.contains(&Left::Keeper) && left.contains(&Left::Command), "{left:?} {cell}");
                assert!(!left.iter().any(|left| matches!(left, Left::Program(_))), "{left:?} {cell}");
            }
            _ => eventually(&format!("nobody is left {cell}"), || processes(&desk).is_empty()),
        }
        if expected.is_none() {
            busy.let_go();
            std::fs::write(desk.path("work/go.txt"), "").unwrap();
            go_on(&desk, &ended, &cell);
        }
    }
}

/// How the last turn ended, if it has.
fn outcome(records: &[Record]) -> Option<Outcome> {
    records.iter().rev().find_map(|record| match SessionRecord::decode(record) {
        Ok(SessionRecord::TurnEnded(ended)) => Some(Some(ended.outcome)),
        Ok(SessionRecord::TurnStarted(_)) => Some(None),
        _ => None,
    })?
}

/// Does, word for word, what was said to be the way on, and sees the turn come to its end.
pub(crate) fn go_on(desk: &Desk, ended: &Ended, cell: &str) {
    let (_, command) = ended.said.rsplit_once("to resume: ").unwrap_or_else(|| panic!("no way on: {cell}"));
    let command = command.lines().next().unwrap().trim();
    let longhaul = desk.command(&[]);
    let folder = std::path::Path::new(longhaul.get_program()).parent().unwrap().to_owned();
    let mut shell = Command::new("sh");
    let path = std::env::join_paths([folder, "/usr/bin".into(), "/bin".into()]).unwrap();
    shell.args(["-c", command]).current_dir(desk.path("work")).env("PATH", path);
    let variables = longhaul.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let (code, out, errors) = told(&shell.envs(variables).env_remove("LONGHAUL_MODEL").output().unwrap());

    assert_eq!((code, out.as_str()), (0, "Done.\n"), "`{command}`: {errors} after {cell}");
    assert_eq!(outcome(&sound_records(desk)), Some(Outcome::Completed), "{cell}");
    eventually(&format!("nobody is left after {cell}"), || processes(desk).is_empty());
}

/// S1, for each moment of a mode.
macro_rules! every_moment {
    ($($mode:ident as $variant:ident: $($name:ident at $moment:ident),*;)*) => {$(
        mod $mode {
            use super::*;
            $(
                /// S1
                #[test]
                fn $name() {
                    any_signal_ends_it(Mode::$variant, Moment::$moment);
                }
            )*
        }
    )*};
}

every_moment! {
    one_shot as OneShot:
        any_signal_ends_it_during_an_answer at Answer,
        any_signal_ends_it_during_a_command at Command,
        any_signal_ends_it_while_the_context_is_made_smaller at Compaction,
        any_signal_ends_it_during_a_wait_before_a_retry at RetryWait;
    screen as Screen:
        any_signal_ends_it_during_an_answer at Answer,
        any_signal_ends_it_during_a_command at Command,
        any_signal_ends_it_while_the_context_is_made_smaller at Compaction,
        any_signal_ends_it_during_a_wait_before_a_retry at RetryWait,
        any_signal_ends_it_while_it_is_idle at Idle;
    plain as Plain:
        any_signal_ends_it_during_an_answer at Answer,
        any_signal_ends_it_during_a_command at Command,
        any_signal_ends_it_while_the_context_is_made_smaller at Compaction,
        any_signal_ends_it_during_a_wait_before_a_retry at RetryWait,
        any_signal_ends_it_while_it_is_idle at Idle;
    piped as Piped:
        any_signal_ends_it_during_an_answer at Answer,
        any_signal_ends_it_during_a_command at Command,
        any_signal_ends_it_while_the_context_is_made_smaller at Compaction,
        any_signal_ends_it_during_a_wait_before_a_retry at RetryWait,
        any_signal_ends_it_while_it_is_idle at Idle;
    serve as Serve:
        any_signal_ends_it_during_an_answer at Answer,
        any_signal_ends_it_during_a_command at Command,
        any_signal_ends_it_while_the_context_is_made_smaller at Compaction,
        any_signal_ends_it_during_a_wait_before_a_retry at RetryWait,
        any_signal_ends_it_while_it_is_idle at Idle;
}
