//! A spec, parsed and checked, and the names that follow from a schedule and a slot.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use longhaul_protocol::{At, MissedPolicy, OverlapPolicy, ScheduleSpec};

use crate::slots::{Slots, whole_second};
use crate::{Error, Interval};

/// The longest name of a schedule.
pub(crate) const MAX_NAME_CHARS: usize = 64;
/// The longest prompt. Every run and every list of schedules repeats it.
pub const MAX_PROMPT_BYTES: usize = 128 << 10;

/// When a schedule is due, and its policies.
#[derive(Debug, Clone)]
pub struct Timing {
    pub slots: Slots,
    pub missed: MissedPolicy,
    pub overlap: OverlapPolicy,
    /// How late a slot may still fire.
    pub grace: Interval,
    /// How long after its slot a run starts: the same for all slots of a schedule, and at most its `jitter`.
    pub delay: Interval,
}

impl Timing {
    /// Parses and checks a spec. The slots of an `every` are counted from `anchor`.
    pub fn parse(id: &str, spec: &ScheduleSpec, anchor: At) -> Result<Self, Error> {
        check_name(&spec.name)?;
        check_prompt(&spec.prompt)?;
        if !(spec.cost_per_run.is_finite() && spec.cost_per_run >= 0.0) {
            return Err(Error::Cost);
        }
        let jitter = parse_interval("jitter", &spec.jitter)?;
        Ok(Self {
            slots: parse_slots(spec, anchor)?,
            missed: spec.missed,
            overlap: spec.overlap,
            grace: parse_interval("grace", &spec.grace)?,
            delay: fixed_delay(id, jitter),
        })
    }

    /// Checks a spec that a person or an agent has just written: like [`parse`](Self::parse), and its only time must be ahead.
    pub fn check_new(spec: &ScheduleSpec, now: At) -> Result<Self, Error> {
        let timing = Self::parse(&spec.name, spec, now)?;
        match (&timing.slots, &spec.at) {
            (Slots::Once { at }, Some(text)) if *at <= now => Err(Error::PastTime { text: text.clone() }),
            _ => Ok(timing),
        }
    }

    /// When the first slot after this one is due, its delay included.
    pub fn next_due(&self, after: At) -> Option<At> {
        self.slots.next_after(after).map(|slot| At(slot.0.saturating_add(self.delay.milliseconds())))
    }
}

/// Checks the name of a schedule. It is part of the name of a stream.
pub fn check_name(name: &str) -> Result<(), Error> {
    let in_name = |character: char| character.is_alphanumeric() || "-_.".contains(character);
    let is_valid = !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && name.chars().all(in_name);
    if is_valid { Ok(()) } else { Err(Error::Name { name: name.chars().take(MAX_NAME_CHARS).collect() }) }
}

fn check_prompt(prompt: &str) -> Result<(), Error> {
    if prompt.trim().is_empty() {
        return Err(Error::NoPrompt);
    }
    if prompt.len() > MAX_PROMPT_BYTES {
        return Err(Error::LongPrompt { bytes: prompt.len() });
    }
    Ok(())
}

fn parse_slots(spec: &ScheduleSpec, anchor: At) -> Result<Slots, Error> {
    let zone = match &spec.zone {
        Some(name) => TimeZone::get(name).map_err(|_| Error::Zone { zone: name.clone() })?,
        None => TimeZone::system(),
    };
    match (&spec.cron, &spec.every, &spec.at) {
        (Some(line), None, None) => Slots::parse_cron(line, zone),
        (None, Some(text), None) => {
            let interval = parse_interval("every", text)?;
            if interval.seconds() == 0 {
                return Err(Error::ShortInterval { text: text.clone() });
            }
            Ok(Slots::Every { interval, anchor })
        }
        (None, None, Some(text)) => Ok(Slots::Once { at: parse_time(text, &zone)? }),
        (None, None, None) => Err(Error::NoTime),
        (Some(_), Some(_), _) => Err(Error::SeveralTimes { first: "cron", second: "every" }),
        (Some(_), _, Some(_)) => Err(Error::SeveralTimes { first: "cron", second: "at" }),
        (_, Some(_), Some(_)) => Err(Error::SeveralTimes { first: "every", second: "at" }),
    }
}

fn parse_interval(key: &'static str, text: &str) -> Result<Interval, Error> {
    text.parse().map_err(|()| Error::Interval { key, text: text.to_owned() })
}

/// Parses a time as people write it: with an offset or a zone of its own, or by the clock of this zone. A time that the clock jumps
/// over is taken as if it did not; of a time that comes twice, the first one counts.
pub fn parse_time(text: &str, zone: &TimeZone) -> Result<At, Error> {
    let text = text.trim();
    let own_zone =
        text.parse::<Zoned>().map(|zoned| zoned.timestamp()).or_else(|_| text.parse::<Timestamp>());
    let by_clock = || text.parse::<DateTime>()?.to_zoned(zone.clone()).map(|zoned| zoned.timestamp());
    // A date without a time is not enough.
    let has_time = text.contains([':']) || text.contains(['T', 't', ' ']);
    let at = own_zone.or_else(|_| by_clock()).ok().filter(|_| has_time);
    at.map(|at| whole_second(At(at.as_millisecond()))).ok_or_else(|| Error::Time { text: text.to_owned() })
}

/// The delay of a schedule's runs: a share of the jitter that its id alone determines, so that no restart changes it.
fn fixed_delay(id: &str, jitter: Interval) -> Interval {
    if jitter.seconds() == 0 {
        return jitter;
    }
    let hash = blake3::hash(id.as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&hash.as_bytes()[..8]);
    Interval::from_seconds(u64::from_le_bytes(head) % (jitter.seconds() + 1))
}

/// A slot in UTC, as in the keys of sessions and inputs.
pub fn format_slot(slot: At) -> String {
    match Timestamp::from_millisecond(slot.0) {
        Ok(moment) => moment.to_string(),
        Err(_) => slot.0.to_string(),
    }
}

/// The idempotency key of the input that a slot becomes.
pub fn input_key(id: &str, slot: At) -> String {
    format!("schedule/{id}/{}", format_slot(slot))
}

/// The key of the session that a run has of its own.
pub fn run_session_key(name: &str, slot: At) -> String {
    format!("schedule:{name}/{}", format_slot(slot))
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod tests;
