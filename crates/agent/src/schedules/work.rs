//! The next action of a schedule. Pure.

use longhaul_protocol::{At, OverlapPolicy};
use longhaul_schedule::{Decision, Moment, Plan, Timing, Wait, decide};

use super::catalog::{CatalogEntry, RunRequest, ScheduleSource};
use super::state::ScheduleState;

/// An action of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Work {
    /// Record that its slots count from here on; without a time, from now on.
    Begin { from: Option<At> },
    /// Put the input of a decided slot into the inbox.
    Deliver { slot: At },
    /// Check whether the turns of its runs have ended.
    CheckRuns,
    /// Record the decisions about its slots. At most one fires.
    Decide(Vec<Decision>),
    /// Record that it runs because a person asked for it.
    RunNow { request: RunRequest, slot: At },
    /// Pause it, because too many runs failed.
    Pause { failures: u32 },
}

/// What comes next for a schedule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    Work(Work),
    Wait(Wait),
}

/// What the next step depends on, besides the schedule itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    pub(crate) now: At,
    /// Whether a late slot may start now.
    pub(crate) has_room: bool,
    /// A turn may have ended since its runs were last looked at.
    pub(crate) check_runs: bool,
}

/// What comes next. `timing` is absent while the schedule has not begun with its present terms, or can't be used.
pub(crate) fn next_step(
    entry: &CatalogEntry,
    timing: Option<&Timing>,
    state: &ScheduleState,
    situation: Situation,
) -> Next {
    if let Some(run) = state.runs.iter().find(|run| run.fired.is_none()) {
        return Next::Work(Work::Deliver { slot: run.slot });
    }
    if situation.check_runs && state.is_running() {
        return Next::Work(Work::CheckRuns);
    }
    if entry.problem.is_some() {
        return Next::Wait(Wait::Never);
    }
    if !has_begun(entry, state) {
        return Next::Work(Work::Begin { from: begins_at(entry, state) });
    }
    let max_failures = entry.spec.max_failures;
    if entry.pause.is_none() && max_failures > 0 && state.failures >= max_failures {
        return Next::Work(Work::Pause { failures: state.failures });
    }
    let Some(timing) = timing else { return Next::Wait(Wait::Never) };
    if let Some(request) = entry.requests.iter().find(|request| request.seq > state.requests_through) {
        if state.is_running() && timing.overlap != OverlapPolicy::Interrupt {
            return Next::Wait(Wait::RunEnd);
        }
        return Next::Work(Work::RunNow { request: *request, slot: requested_slot(*request, state) });
    }
    if entry.pause.is_some() || !entry.spec.enabled {
        return Next::Wait(Wait::Never);
    }
    let moment = Moment {
        at: situation.now,
        is_running: state.is_running(),
        free_since: state.free_since,
        late_run_began: state.late_run_began,
        has_room: situation.has_room,
    };
    let Plan { decisions, wait } = decide(timing, state.through, moment);
    if decisions.is_empty() { Next::Wait(wait) } else { Next::Work(Work::Decide(decisions)) }
}

/// Whether the schedule's stream knows its present terms.
pub(crate) fn has_begun(entry: &CatalogEntry, state: &ScheduleState) -> bool {
    state.began.as_ref().is_some_and(|began| {
        began.terms == entry.spec.terms() && entry.since.is_none_or(|since| began.from >= since)
    })
}

/// When the slots of a schedule that has not begun with its present terms count from; `None` for now. The config does not say when it
/// was changed: its new terms count from when a runtime sees them. Since the schedule was last resumed, slots may have fired already.
pub(crate) fn begins_at(entry: &CatalogEntry, state: &ScheduleState) -> Option<At> {
    let has_other_terms = state.began.as_ref().is_some_and(|began| began.terms != entry.spec.terms());
    let is_of_config = entry.source == ScheduleSource::Config;
    entry.since.filter(|_| !(is_of_config && has_other_terms))
}

/// The slot of a request: when it was made, but never a whole second, which may be a slot of the schedule's own, and never one that an
/// earlier request has.
fn requested_slot(request: RunRequest, state: &ScheduleState) -> At {
    let earliest = state.last_requested_slot.map_or(request.at, |last| request.at.max(At(last.0 + 1)));
    if earliest.0 % 1_000 == 0 { At(earliest.0 + 1) } else { earliest }
}
