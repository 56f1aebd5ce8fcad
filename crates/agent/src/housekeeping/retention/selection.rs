//! Selects the sessions that retention removes. Pure.

use std::collections::BTreeMap;

use longhaul_journal::{SessionEntry, SessionTimes};
use longhaul_protocol::At;

use crate::config::SessionSettings;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// The beginning of the key of a session that was made for a run of a schedule.
const RUN_KEY_PREFIX: &str = "schedule:";
/// Days that a session stays in the trash.
const TRASH_DAYS: i64 = 14;
/// Days after which an empty session is deleted.
const EMPTY_SESSION_DAYS: i64 = 1;

/// Why retention removes a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneReason {
    /// There are more than `sessions.keep`.
    TooMany,
    /// Its schedule has more than `sessions.keep_runs`.
    TooManyRuns,
    /// It was not used for longer than `sessions.max_age_days`.
    TooOld,
    /// All sessions together have more than `sessions.max_bytes`.
    TooLarge,
    /// It has been in the trash for two weeks.
    InTrash,
    /// It has a key but no records.
    Empty,
}

/// A session that may go to the trash, with its subagents.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) entry: SessionEntry,
    pub(super) subagents: Vec<SessionEntry>,
    /// The beginning of its key, if it was made for a run of a schedule.
    schedule: Option<String>,
    /// When it was last used. A fork of an old session counts as new.
    last_used: At,
    bytes: u64,
}

impl Candidate {
    pub(super) fn new(
        entry: SessionEntry,
        subagents: Vec<SessionEntry>,
        named: Option<At>,
        bytes: u64,
    ) -> Self {
        let of_subagents = subagents.iter().filter_map(|subagent| subagent.last_at).max();
        let last_used = entry.last_at.max(of_subagents).max(named).unwrap_or(At(0));
        let schedule = schedule_of(&entry.key).map(str::to_owned);
        Self { entry, subagents, schedule, last_used, bytes }
    }

    /// The session and its subagents.
    pub(super) fn entries(&self) -> impl Iterator<Item = &SessionEntry> {
        std::iter::once(&self.entry).chain(&self.subagents)
    }
}

/// `schedule:NAME` for the key of a run.
fn schedule_of(key: &str) -> Option<&str> {
    let (schedule, _) = key.split_once('/')?;
    schedule.starts_with(RUN_KEY_PREFIX).then_some(schedule)
}

/// Sorts the candidates and returns their totals.
pub(super) fn sort_newest_first(candidates: &mut [Candidate]) -> SessionTotals {
    candidates.sort_by(|one, other| {
        other.last_used.cmp(&one.last_used).then_with(|| one.entry.key.cmp(&other.entry.key))
    });
    let (of_schedules, own): (Vec<&Candidate>, Vec<&Candidate>) =
        candidates.iter().partition(|candidate| candidate.schedule.is_some());
    let mut runs = BTreeMap::new();
    for schedule in of_schedules.iter().filter_map(|run| run.schedule.clone()) {
        *runs.entry(schedule).or_insert(0) += 1;
    }
    let newest = own.first().or(of_schedules.first());
    SessionTotals {
        count: own.len() as u64,
        runs,
        bytes: candidates.iter().map(|candidate| candidate.bytes).sum(),
        newest: newest.map(|newest| newest.entry.key.clone()),
    }
}

#[derive(Debug)]
pub(super) struct SessionTotals {
    /// Without the runs of schedules.
    count: u64,
    /// The sessions of runs, by schedule.
    runs: BTreeMap<String, u64>,
    bytes: u64,
    newest: Option<String>,
}

/// Decides session by session, from the oldest.
pub(super) struct RetentionPolicy<'a> {
    settings: &'a SessionSettings,
    now: At,
    remaining: SessionTotals,
}

impl<'a> RetentionPolicy<'a> {
    pub(super) fn new(settings: &'a SessionSettings, now: At, remaining: SessionTotals) -> Self {
        Self { settings, now, remaining }
    }

    pub(super) fn reason_to_trash(&self, candidate: &Candidate) -> Option<PruneReason> {
        let SessionSettings { keep, keep_runs, max_age_days, max_bytes } = *self.settings;
        if candidate.entries().any(|entry| entry.pinned)
            || Some(&candidate.entry.key) == self.remaining.newest.as_ref()
        {
            return None;
        }
        let oldest = i64::try_from(max_age_days).unwrap_or(i64::MAX).saturating_mul(DAY_MS);
        let age = self.now.0.saturating_sub(candidate.last_used.0);
        let too_large = (max_bytes > 0 && self.remaining.bytes > max_bytes).then_some(PruneReason::TooLarge);
        if max_age_days > 0 && age > oldest {
            Some(PruneReason::TooOld)
        } else if let Some(schedule) = &candidate.schedule {
            let runs = self.remaining.runs.get(schedule).copied().unwrap_or(0);
            if keep_runs > 0 && runs > keep_runs { Some(PruneReason::TooManyRuns) } else { too_large }
        } else if keep > 0 && self.remaining.count > keep {
            Some(PruneReason::TooMany)
        } else {
            too_large
        }
    }

    pub(super) fn record_trashed(&mut self, candidate: &Candidate) {
        match &candidate.schedule {
            Some(schedule) => {
                if let Some(runs) = self.remaining.runs.get_mut(schedule) {
                    *runs -= 1;
                }
            }
            None => self.remaining.count -= 1,
        }
        self.remaining.bytes = self.remaining.bytes.saturating_sub(candidate.bytes);
    }
}

/// The reason to delete a session that was in the trash long enough. Use after it was trashed extends the time.
pub(super) fn expired_trash(entry: &SessionEntry, times: &SessionTimes, now: At) -> Option<PruneReason> {
    let since = times.trashed.filter(|_| entry.trashed)?.max(entry.last_at.unwrap_or(At(0)));
    (now.0.saturating_sub(since.0) >= TRASH_DAYS * DAY_MS).then_some(PruneReason::InTrash)
}

/// The reason to delete a session that was named and never used.
pub(super) fn expired_empty(entry: &SessionEntry, times: &SessionTimes, now: At) -> Option<PruneReason> {
    let is_empty = entry.head.seq == 0 && entry.inbox_head == 0;
    let is_old = now.0.saturating_sub(times.named.0) >= EMPTY_SESSION_DAYS * DAY_MS;
    (is_empty && is_old).then_some(PruneReason::Empty)
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
