use crate::timing::{MAX_NAME_CHARS, MAX_PROMPT_BYTES};

/// Why a schedule can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("the name {name:?} is not valid; use up to {MAX_NAME_CHARS} letters, digits, - _ and .")]
    Name { name: String },
    #[error("the prompt is empty")]
    NoPrompt,
    #[error(
        "the prompt has {bytes} bytes, more than {} KiB; put the text into a file and let the prompt name it",
        MAX_PROMPT_BYTES >> 10
    )]
    LongPrompt { bytes: usize },
    #[error("it has no time; set one of cron, every and at")]
    NoTime,
    #[error("it has {first} and {second}; set one of cron, every and at")]
    SeveralTimes { first: &'static str, second: &'static str },
    #[error("cron {line:?} has {count} fields; it needs five: minute hour day month weekday")]
    FieldCount { line: String, count: usize },
    #[error(
        "there is no nickname {line:?}; there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"
    )]
    Nickname { line: String },
    #[error("cron {line:?} is not valid: {reason}")]
    Cron { line: String, reason: String },
    #[error("cron {line:?} never fires")]
    NeverFires { line: String },
    #[error("there is no time zone {zone:?} on this system; use a name such as Europe/Berlin or UTC")]
    Zone { zone: String },
    #[error("{key} {text:?} is not a duration; use a number with s, m, h or d, such as 90s, 30m, 2h, 1d")]
    Interval { key: &'static str, text: String },
    #[error("every {text:?} is too short; the shortest is 1s")]
    ShortInterval { text: String },
    #[error("at {text:?} is not a time; write it as 2026-12-24T18:00 or 2026-12-24T18:00:00+01:00")]
    Time { text: String },
    #[error("at {text:?} is in the past; it would never fire")]
    PastTime { text: String },
    #[error("cost_per_run must be 0 or more")]
    Cost,
}
