//! The slots of a schedule: the moments that it names, in whole seconds.
//!
//! `croner` says which times of the calendar a line names, without a zone. What these times mean in a zone is decided here, as Vixie cron
//! does (W2):
//!
//! | | where the clock jumps forward | where the clock goes back |
//! | --- | --- | --- |
//! | minute and hour are numbers | what lies in the gap runs once, at its end | runs the first time |
//! | minute or hour begins with `*` | what lies in the gap does not run | runs both times |

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use longhaul_protocol::At;

use crate::{Error, Interval};

/// Nicknames of common lines.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The moments that a schedule names.
#[derive(Debug, Clone)]
pub enum Slots {
    /// By the clock on the wall of a zone.
    Cron(Box<CronSlots>),
    /// Each interval after the moment at which the schedule was made.
    Every { interval: Interval, anchor: At },
    /// One moment.
    Once { at: At },
}

/// The slots of a cron line.
#[derive(Debug, Clone)]
pub struct CronSlots {
    cron: Cron,
    zone: TimeZone,
    /// The minute or the hour begins with `*`: the line is about the hours that pass, not about times of the day.
    follows_hours: bool,
}

impl CronSlots {
    /// The first calendar time that the line names after `start`; with `inclusive`, `start` itself counts.
    fn next_civil(&self, start: DateTime, inclusive: bool) -> Option<DateTime> {
        let start = start.to_zoned(TimeZone::UTC).ok()?;
        self.cron.find_next_occurrence(&start, inclusive).ok().map(|next| next.datetime())
    }

    fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        if self.follows_hours { self.next_by_hours(after) } else { self.next_by_day(after) }
    }

    /// The next slot of a line with fixed times of day. A time in a gap fires at the end of the gap; of a repeated time, the first counts.
    fn next_by_day(&self, after: Timestamp) -> Option<Timestamp> {
        let mut civil = self.zone.to_datetime(after);
        loop {
            civil = self.next_civil(civil, false)?;
            let moment = match self.zone.to_ambiguous_timestamp(civil).offset() {
                AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
                    offset.to_timestamp(civil).ok()?
                }
                AmbiguousOffset::Gap { before, .. } => self.end_of_gap(civil, before)?,
            };
            // All times in one gap fire at its end, and the repeat of an hour has no slots: both would give a moment that has passed.
            if moment > after {
                return Some(moment);
            }
        }
    }

    /// The moment at which the clock jumps over this time.
    fn end_of_gap(&self, civil: DateTime, before: Offset) -> Option<Timestamp> {
        let in_gap = before.to_timestamp(civil).ok()?;
        let second_later = Timestamp::from_second(in_gap.as_second().checked_add(1)?).ok()?;
        self.zone.preceding(second_later).next().map(|jump| jump.timestamp())
    }

    /// The next slot of a line that runs every so many minutes or hours: when the clock shows a time that the line names.
    fn next_by_hours(&self, after: Timestamp) -> Option<Timestamp> {
        let (mut start, mut inclusive) = (after, false);
        loop {
            let offset = self.zone.to_offset(start);
            let moment = offset.to_timestamp(self.next_civil(offset.to_datetime(start), inclusive)?).ok()?;
            match self.zone.following(start).next().map(|change| change.timestamp()) {
                // The clock changes before it shows that time, so look again from the change on.
                Some(change) if change <= moment => (start, inclusive) = (change, true),
                _ => return Some(moment),
            }
        }
    }
}

impl Slots {
    /// The slots of a cron line with five fields, or of a nickname such as `@daily`.
    pub(crate) fn parse_cron(line: &str, zone: TimeZone) -> Result<Self, Error> {
        let line = line.trim();
        let nickname = NICKNAMES.into_iter().find(|(name, _)| *name == line);
        let fields: Vec<&str> = nickname.map_or(line, |(_, fields)| fields).split_whitespace().collect();
        if fields.len() != 5 {
            return Err(Error::FieldCount { line: line.to_owned(), count: fields.len() });
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(&fields.join(" ")).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split_once(": ").map_or(reason.as_str(), |(_, reason)| reason);
            Error::Cron { line: line.to_owned(), reason: reason.trim_end_matches('.').to_owned() }
        })?;
        let follows_hours = fields[..2].iter().any(|field| field.starts_with('*'));
        let slots = Self::Cron(Box::new(CronSlots { cron, zone, follows_hours }));
        // A line without a year either fires in each cycle of the calendar or never does.
        match slots.next_after(At(0)) {
            Some(_) => Ok(slots),
            None => Err(Error::NeverFires { line: line.to_owned() }),
        }
    }

    /// The first slot after this moment. `None` if there is none, or none before the end of the calendar.
    pub fn next_after(&self, after: At) -> Option<At> {
        match self {
            Self::Cron(cron) => {
                // Slots are whole seconds: one is after a moment if it is after the second that the moment is in.
                let start = Timestamp::from_second(after.0.div_euclid(1_000)).ok()?;
                cron.next_after(start).map(|next| At(next.as_millisecond()))
            }
            Self::Every { interval, anchor } => {
                let step = interval.milliseconds().max(1);
                let first = whole_second(*anchor);
                let passed = after.0.saturating_sub(first.0).div_euclid(step).max(0);
                let next = passed.checked_add(1)?.checked_mul(step)?.checked_add(first.0)?;
                Some(At(next)).filter(|next| next.is_in_calendar())
            }
            Self::Once { at } => Some(*at).filter(|at| *at > after),
        }
    }

    /// The last slot after `after`, up to and including `until`. It is found by looking forward alone, so that it is always one that
    /// [`next_after`](Self::next_after) gives.
    pub fn last_until(&self, after: At, until: At) -> Option<At> {
        let next_within = |start: At| self.next_after(start).filter(|slot| *slot <= until);
        let mut found = next_within(after)?;
        if let Self::Every { interval, .. } = self {
            let step = interval.milliseconds().max(1);
            return Some(At(found.0 + (until.0 - found.0).div_euclid(step) * step));
        }
        // `found` is a slot up to `until`, and no slot is after `end`. The end is found in ever larger steps back, because the last
        // slot is most often near.
        let mut end = until;
        let mut step = 60_000;
        while end > found {
            let start = At(until.0.saturating_sub(step)).max(found);
            match next_within(start) {
                Some(slot) => {
                    found = slot;
                    break;
                }
                None => end = start,
            }
            step = step.saturating_mul(2);
        }
        while let Some(middle) = middle_of(found, end) {
            match next_within(middle) {
                Some(slot) => found = slot,
                None => end = middle,
            }
        }
        Some(found)
    }
}

/// A whole second between two moments, at least one second from the first.
fn middle_of(start: At, end: At) -> Option<At> {
    let middle = whole_second(At(start.0 + (end.0 - start.0) / 2));
    (middle > start && middle < end).then_some(middle)
}

/// The second that a moment is in.
pub(crate) fn whole_second(at: At) -> At {
    At(at.0.div_euclid(1_000) * 1_000)
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
