//! A terminal that is gone: its window was closed, or its connection broke.

use longhaul_protocol::SessionRecord;

use crate::desk::Desk;
use crate::leftovers::{Left, processes, sound_records};
use crate::modes::Mode;
use crate::moments::{Busy, Moment};

fn a_lost_terminal_suspends(mode: Mode) {
    for moment in [Moment::Answer, Moment::Command, Moment::Compaction, Moment::RetryWait, Moment::Idle] {
        let busy = Busy::at(moment);
        let desk = Desk::with_model_of_config(&busy.config());
        let mut running = mode.start(&desk);
        busy.wait_until(moment, &desk);

        running.terminal().hang_up();
        let status = running.terminal().wait();

        assert_eq!(status.code(), Some(129), "{moment:?}");
        let ended = sound_records(&desk)
            .iter()
            .any(|record| matches!(SessionRecord::decode(record), Ok(SessionRecord::TurnEnded(_))));
        assert_eq!(ended, moment == Moment::Idle, "{moment:?}");
        assert!(!processes(&desk).iter().any(|left| matches!(left, Left::Program(_))), "{moment:?}");
    }
}

/// S1
#[test]
fn a_lost_terminal_suspends_a_conversation_on_a_screen() {
    a_lost_terminal_suspends(Mode::Screen);
}

/// S1
#[test]
fn a_lost_terminal_suspends_a_conversation_line_by_line() {
    a_lost_terminal_suspends(Mode::Plain);
}
