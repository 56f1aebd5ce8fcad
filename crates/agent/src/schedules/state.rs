//! The state of a schedule: the stream `schedule/<id>`, folded. Pure, except for loading.

use longhaul_journal::{Journal, records};
use longhaul_protocol::{
    At, DecodeError, InputId, LastRun, Record, RunOutcome, ScheduleBegan, ScheduleCheckpoint, ScheduleRecord,
    Seq, SessionId, SlotAction, SlotDecided, SlotFired, StreamName,
};

use crate::Result;

/// Records per read when the start of the fold is looked for.
const LOAD_PAGE_LEN: u64 = 64;

/// The state of a schedule.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ScheduleState {
    pub(crate) head: Seq,
    /// How it began, with the session that its runs go to. `None` before its first record.
    pub(crate) began: Option<ScheduleBegan>,
    /// Slots up to here are decided.
    pub(crate) through: At,
    /// Failed runs since the last one that succeeded.
    pub(crate) failures: u32,
    /// The last request to run now that was decided.
    pub(crate) requests_through: Seq,
    /// The slot of the last request. It is never a slot of the schedule's own.
    pub(crate) last_requested_slot: Option<At>,
    /// Runs that have not ended, oldest first.
    pub(crate) runs: Vec<OpenRun>,
    /// When the last run ended, if none has begun since.
    pub(crate) free_since: Option<At>,
    /// When the last run began, if it made up for an outage.
    pub(crate) late_run_began: Option<At>,
    pub(crate) last: Option<LastRun>,
    /// The last decision.
    pub(crate) last_decision: Option<(At, SlotAction)>,
}

/// A slot that fires, until its turn has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenRun {
    pub(crate) slot: At,
    pub(crate) session: SessionId,
    pub(crate) input: InputId,
    /// It fires late, after an outage.
    pub(crate) is_late: bool,
    /// Its place in the inbox, once the input is there.
    pub(crate) fired: Option<SlotFired>,
    /// The session's head when the run was last looked at. Not recorded.
    pub(crate) seen_head: Option<Seq>,
}

impl ScheduleState {
    pub(crate) fn is_running(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The state for the next decision, if a fold can begin with it.
    pub(crate) fn checkpoint(&self) -> Option<Box<ScheduleCheckpoint>> {
        let began = self.began.clone().filter(|_| self.runs.is_empty())?;
        Some(Box::new(ScheduleCheckpoint {
            through: self.through,
            failures: self.failures,
            requests_through: self.requests_through,
            began,
            last: self.last.clone(),
        }))
    }

    pub(crate) fn apply(&mut self, record: &Record) -> std::result::Result<(), DecodeError> {
        match ScheduleRecord::decode(record)? {
            ScheduleRecord::Began(began) => {
                (self.through, self.failures) = (began.from, 0);
                self.began = Some(began);
            }
            ScheduleRecord::Decided(decided) => self.apply_decision(decided, record.at),
            ScheduleRecord::Fired(fired) => {
                if let Some(run) = self.runs.iter_mut().find(|run| run.slot == fired.slot) {
                    run.fired = Some(fired);
                }
            }
            ScheduleRecord::Ended(ended) => {
                if let Some(place) = self.runs.iter().position(|run| run.slot == ended.slot) {
                    let run = self.runs.remove(place);
                    match ended.outcome {
                        RunOutcome::Completed => self.failures = 0,
                        RunOutcome::Failed | RunOutcome::Limit => {
                            self.failures = self.failures.saturating_add(1);
                        }
                        RunOutcome::Cancelled | RunOutcome::Abandoned => {}
                    }
                    self.free_since = Some(ended.at);
                    self.last = Some(LastRun {
                        slot: ended.slot,
                        session: run.session,
                        outcome: ended.outcome,
                        cost: ended.cost,
                        error: ended.error,
                    });
                }
            }
            ScheduleRecord::Unknown { .. } => {}
        }
        self.head = record.seq;
        Ok(())
    }

    fn apply_decision(&mut self, decided: SlotDecided, at: At) {
        if let Some(checkpoint) = decided.state {
            self.through = checkpoint.through;
            self.failures = checkpoint.failures;
            self.requests_through = checkpoint.requests_through;
            self.began = Some(checkpoint.began);
            self.last = checkpoint.last;
            self.runs.clear();
        }
        match decided.request {
            Some(request) => {
                self.requests_through = request;
                self.last_requested_slot = Some(decided.slot);
            }
            None => self.through = decided.slot,
        }
        self.last_decision = Some((decided.slot, decided.action));
        let (SlotAction::Fire, Some(session), Some(input)) = (decided.action, decided.session, decided.input)
        else {
            return;
        };
        // A schedule with a session keeps to it, whatever its key becomes.
        if let Some(began) = self.began.as_mut().filter(|began| began.terms.session.is_some()) {
            began.session = Some(session);
        }
        self.free_since = None;
        self.late_run_began = decided.late.then_some(at);
        self.runs.push(OpenRun {
            slot: decided.slot,
            session,
            input,
            is_late: decided.late,
            fired: None,
            seen_head: None,
        });
    }
}

/// Loads the state of a schedule. Reads from the newest decision that was made while no run was open: a few records, however long the
/// schedule has run.
pub(crate) async fn load_state(journal: &dyn Journal, stream: &StreamName) -> Result<ScheduleState> {
    let head = journal.head(stream).await?.seq;
    let (mut tail, mut from) = (Vec::new(), head + 1);
    while from > 1 && !tail.first().is_some_and(is_fold_start) {
        let start = from.saturating_sub(LOAD_PAGE_LEN).max(1);
        let mut page = records(journal, stream, start).through(from - 1).collect().await?;
        if let Some(place) = page.iter().rposition(is_fold_start) {
            page.drain(..place);
        }
        page.append(&mut tail);
        (tail, from) = (page, start);
    }
    let mut state = ScheduleState::default();
    for record in &tail {
        let unreadable = |reason| crate::Error::Unreadable { key: stream.to_string(), reason };
        state.apply(record).map_err(unreadable)?;
    }
    Ok(state)
}

fn is_fold_start(record: &Record) -> bool {
    matches!(ScheduleRecord::decode(record), Ok(ScheduleRecord::Decided(SlotDecided { state: Some(_), .. })))
}
