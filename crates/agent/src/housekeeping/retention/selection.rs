//! Which sessions have to go. Pure.

use longhaul_journal::{SessionEntry, SessionTimes};
use longhaul_protocol::At;

use crate::SessionSettings;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// So many days what was put away can be brought back.
const DAYS_IN_TRASH: i64 = 14;
/// A session in which nothing is after so many days was never begun.
const DAYS_EMPTY: i64 = 1;

/// Why a session goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// There are more than `sessions.keep`.
    TooMany,
    /// It was not used for longer than `sessions.max_age_days`.
    TooOld,
    /// All of them together have more than `sessions.max_bytes`.
    TooLarge,
    /// It has been in the trash for two weeks.
    InTrash,
    /// A key was given, and nothing came of it.
    Empty,
}

/// A session that may have to go.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) entry: SessionEntry,
    /// When it was last used: a fork of something old is new.
    used: At,
    bytes: u64,
}

impl Candidate {
    pub(super) fn new(entry: SessionEntry, named: Option<At>, bytes: u64) -> Self {
        let used = entry.last_at.max(named).unwrap_or(At(0));
        Self { entry, used, bytes }
    }
}

/// Puts the candidates into their order, the newest first; how many bytes they have.
pub(super) fn order(candidates: &mut [Candidate]) -> Totals {
    candidates
        .sort_by(|one, other| other.used.cmp(&one.used).then_with(|| one.entry.key.cmp(&other.entry.key)));
    Totals {
        count: candidates.len() as u64,
        bytes: candidates.iter().map(|candidate| candidate.bytes).sum(),
        newest: candidates.first().map(|newest| newest.entry.key.clone()),
    }
}

/// What all sessions come to.
#[derive(Debug)]
pub(super) struct Totals {
    count: u64,
    bytes: u64,
    newest: Option<String>,
}

/// Decides session by session, from the oldest on.
pub(super) struct Choice<'a> {
    settings: &'a SessionSettings,
    now: At,
    left: Totals,
}

impl<'a> Choice<'a> {
    pub(super) fn new(settings: &'a SessionSettings, now: At, left: Totals) -> Self {
        Self { settings, now, left }
    }

    /// Why this one has to go, if it has to.
    pub(super) fn reason(&self, candidate: &Candidate) -> Option<Reason> {
        let SessionSettings { keep, max_age_days, max_bytes } = *self.settings;
        if candidate.entry.pinned || Some(&candidate.entry.key) == self.left.newest.as_ref() {
            return None;
        }
        let oldest = i64::try_from(max_age_days).unwrap_or(i64::MAX).saturating_mul(DAY_MS);
        let age = self.now.0.saturating_sub(candidate.used.0);
        if max_age_days > 0 && age > oldest {
            Some(Reason::TooOld)
        } else if keep > 0 && self.left.count > keep {
            Some(Reason::TooMany)
        } else if max_bytes > 0 && self.left.bytes > max_bytes {
            Some(Reason::TooLarge)
        } else {
            None
        }
    }

    /// This one goes.
    pub(super) fn goes(&mut self, candidate: &Candidate) {
        self.left.count -= 1;
        self.left.bytes = self.left.bytes.saturating_sub(candidate.bytes);
    }
}

/// Whether a session has been in the trash for long enough. One that somebody was still at since then has more time.
pub(super) fn gone_from_trash(entry: &SessionEntry, times: &SessionTimes, now: At) -> Option<Reason> {
    let since = times.trashed.filter(|_| entry.trashed)?.max(entry.last_at.unwrap_or(At(0)));
    (now.0.saturating_sub(since.0) >= DAYS_IN_TRASH * DAY_MS).then_some(Reason::InTrash)
}

/// Whether nothing ever came of a session.
pub(super) fn is_left_empty(entry: &SessionEntry, times: &SessionTimes, now: At) -> Option<Reason> {
    let is_empty = entry.head.seq == 0 && entry.inbox_head == 0;
    let is_old = now.0.saturating_sub(times.named.0) >= DAYS_EMPTY * DAY_MS;
    (is_empty && is_old).then_some(Reason::Empty)
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
