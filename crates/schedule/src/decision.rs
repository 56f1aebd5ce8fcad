//! What is done about the slots that are due (W2).
//!
//! | the newest slot that is due | `latest` | `all` | `none` |
//! | --- | --- | --- | --- |
//! | is on time | fires; those before it are missed | the oldest fires, the others wait for its end | fires; those before it are missed |
//! | is late, within the grace period | fires; those before it are missed | the oldest in the period fires | is missed, like all before it |
//! | is later than the grace period | is missed, like all before it | the same | the same |
//!
//! | while a run goes on | `queue` | `skip` | `interrupt` |
//! | --- | --- | --- | --- |
//! | a slot is due | it waits for the end of the run; what is due then is decided together | it is skipped | it fires, and its input cancels the run |
//! | a slot is late | the same | it is skipped, unless `missed` is `all`: then it waits | it waits |

use longhaul_protocol::{At, MissedPolicy, OverlapPolicy, SlotAction};

use crate::{Interval, Timing};

/// A slot that is at most this late counts as on time: the runtime may have been restarted in between.
pub const ON_TIME: Interval = Interval::from_whole_seconds(60);

/// What a decision depends on, besides the schedule and its cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub at: At,
    /// Whether a run of the schedule goes on.
    pub is_running: bool,
    /// When the last run ended. A slot that waited for it is not late because of that.
    pub free_since: Option<At>,
    /// When the last run began, if it was late. A slot that was due before that waited for the end of the outage, too.
    pub late_run_began: Option<At>,
    /// Whether a late slot may start now, given the late runs of other schedules.
    pub has_room: bool,
}

impl Moment {
    /// A moment at which nothing runs.
    pub fn idle(at: At) -> Self {
        Self { at, is_running: false, free_since: None, late_run_began: None, has_room: true }
    }
}

/// The decision about one slot, or about a range of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The slot, or the last of the range.
    pub slot: At,
    /// The first of the range, if it has more than one slot. Only slots that don't fire have ranges.
    pub since: Option<At>,
    pub action: SlotAction,
    /// It fires late, after an outage.
    pub is_late: bool,
}

/// The decisions to carry out now, in this order, and what to wait for before deciding again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub decisions: Vec<Decision>,
    pub wait: Wait,
}

/// What the next decision waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The next slot is due then. It may be in the past: then there is more to decide at once.
    Until(At),
    /// The run of this schedule ends.
    RunEnd,
    /// Fewer late runs of other schedules go on.
    Room,
    /// There is no further slot.
    Never,
}

/// Decides about the slots after `through` that are due.
pub fn decide(timing: &Timing, through: At, now: Moment) -> Plan {
    let due = DueSlots { timing, through, now };
    let Some(newest) = timing.slots.last_until(through, due.horizon()) else {
        return Plan { decisions: vec![], wait: due.wait_after(through) };
    };
    if now.is_running {
        let oldest_is_late = timing.slots.next_after(through).is_some_and(|oldest| due.is_late(oldest));
        let has_backlog = timing.missed == MissedPolicy::All && oldest_is_late;
        match timing.overlap {
            OverlapPolicy::Queue => return Plan { decisions: vec![], wait: Wait::RunEnd },
            OverlapPolicy::Skip if has_backlog => {
                return Plan { decisions: vec![], wait: Wait::RunEnd };
            }
            OverlapPolicy::Skip => {
                let decisions = due.unfired(through, newest, SlotAction::Skip).into_iter().collect();
                return Plan { decisions, wait: due.wait_after(newest) };
            }
            OverlapPolicy::Interrupt if has_backlog || due.is_late(newest) => {
                return Plan { decisions: vec![], wait: Wait::RunEnd };
            }
            OverlapPolicy::Interrupt => {}
        }
    }
    due.decide_idle(newest)
}

/// The slots after a cursor, at a moment.
struct DueSlots<'a> {
    timing: &'a Timing,
    through: At,
    now: Moment,
}

impl DueSlots<'_> {
    /// Slots up to here are due.
    fn horizon(&self) -> At {
        At(self.now.at.0.saturating_sub(self.timing.delay.milliseconds()))
    }

    fn wait_after(&self, slot: At) -> Wait {
        self.timing.next_due(slot).map_or(Wait::Never, Wait::Until)
    }

    /// Whether a slot fires late, after an outage.
    fn is_late(&self, slot: At) -> bool {
        let due = At(slot.0.saturating_add(self.timing.delay.milliseconds()));
        let is_of_outage = self
            .now
            .late_run_began
            .is_some_and(|began| began.0.saturating_sub(due.0) > ON_TIME.milliseconds());
        let free_since = self.now.free_since.filter(|_| !is_of_outage);
        let ready = free_since.map_or(due, |free| due.max(free));
        self.now.at.0.saturating_sub(ready.0) > ON_TIME.milliseconds()
    }

    /// The last slot after the cursor that is later than the grace period.
    fn newest_expired(&self) -> Option<At> {
        let oldest_allowed = self.horizon().0.saturating_sub(self.timing.grace.milliseconds());
        self.timing.slots.last_until(self.through, At(oldest_allowed.saturating_sub(1)))
    }

    /// One decision about all slots after `after` up to the slot `last`, inclusive. `None` if there are none.
    fn unfired(&self, after: At, last: At, action: SlotAction) -> Option<Decision> {
        let first = self.timing.slots.next_after(after).filter(|first| *first <= last)?;
        let since = Some(first).filter(|first| *first < last);
        Some(Decision { slot: last, since, action, is_late: false })
    }

    /// Decides while no run goes on. `newest` is the last slot that is due.
    fn decide_idle(&self, newest: At) -> Plan {
        let expired = self.newest_expired();
        let fired = match self.timing.missed {
            _ if expired == Some(newest) => None,
            MissedPolicy::Latest => Some(newest),
            MissedPolicy::All => self.timing.slots.next_after(expired.unwrap_or(self.through)),
            MissedPolicy::None => Some(newest).filter(|newest| !self.is_late(*newest)),
        };
        let Some(fired) = fired else {
            let missed = self.unfired(self.through, newest, SlotAction::Missed);
            return Plan { decisions: missed.into_iter().collect(), wait: self.wait_after(newest) };
        };
        if self.is_late(fired) && !self.now.has_room {
            let missed = expired.and_then(|last| self.unfired(self.through, last, SlotAction::Missed));
            return Plan { decisions: missed.into_iter().collect(), wait: Wait::Room };
        }
        let before = self.timing.slots.last_until(self.through, At(fired.0 - 1));
        let missed = before.and_then(|last| self.unfired(self.through, last, SlotAction::Missed));
        let is_late = self.is_late(fired);
        let fire = Decision { slot: fired, since: None, action: SlotAction::Fire, is_late };
        let decisions = missed.into_iter().chain([fire]).collect();
        Plan { decisions, wait: self.wait_after(fired) }
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
