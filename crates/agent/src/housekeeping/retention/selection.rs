//! Selects the sessions that retention removes. Pure.

use longhaul_journal::{SessionEntry, SessionTimes};
use longhaul_protocol::At;

use crate::config::SessionSettings;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
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
    /// It was not used for longer than `sessions.max_age_days`.
    TooOld,
    /// All sessions together have more than `sessions.max_bytes`.
    TooLarge,
    /// It has been in the trash for two weeks.
    InTrash,
    /// It has a key but no records.
    Empty,
}

/// A session that may go to the trash.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) entry: SessionEntry,
    /// When it was last used. A fork of an old session counts as new.
    last_used: At,
    bytes: u64,
}

impl Candidate {
    pub(super) fn new(entry: SessionEntry, named: Option<At>, bytes: u64) -> Self {
        let last_used = entry.last_at.max(named).unwrap_or(At(0));
        Self { entry, last_used, bytes }
    }
}

/// Sorts the candidates and returns their totals.
pub(super) fn sort_newest_first(candidates: &mut [Candidate]) -> SessionTotals {
    candidates.sort_by(|one, other| {
        other.last_used.cmp(&one.last_used).then_with(|| one.entry.key.cmp(&other.entry.key))
    });
    SessionTotals {
        count: candidates.len() as u64,
        bytes: candidates.iter().map(|candidate| candidate.bytes).sum(),
        newest: candidates.first().map(|newest| newest.entry.key.clone()),
    }
}

#[derive(Debug)]
pub(super) struct SessionTotals {
    count: u64,
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
        let SessionSettings { keep, max_age_days, max_bytes } = *self.settings;
        if candidate.entry.pinned || Some(&candidate.entry.key) == self.remaining.newest.as_ref() {
            return None;
        }
        let oldest = i64::try_from(max_age_days).unwrap_or(i64::MAX).saturating_mul(DAY_MS);
        let age = self.now.0.saturating_sub(candidate.last_used.0);
        if max_age_days > 0 && age > oldest {
            Some(PruneReason::TooOld)
        } else if keep > 0 && self.remaining.count > keep {
            Some(PruneReason::TooMany)
        } else if max_bytes > 0 && self.remaining.bytes > max_bytes {
            Some(PruneReason::TooLarge)
        } else {
            None
        }
    }

    pub(super) fn record_trashed(&mut self, candidate: &Candidate) {
        self.remaining.count -= 1;
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
