use std::fmt;
use std::str::FromStr;

/// A duration as people write it: a number with `s`, `m`, `h` or `d`. A day is 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    seconds: u64,
}

/// The longest interval, so that adding one to a moment stays within 64 bits: some 10,000 years.
const MAX_SECONDS: u64 = 10_000 * 366 * 86_400;

/// The units with their seconds, largest first.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl Interval {
    /// The interval of this many seconds, up to the longest one.
    pub fn from_seconds(seconds: u64) -> Self {
        Self { seconds: seconds.min(MAX_SECONDS) }
    }

    /// A constant interval.
    pub(crate) const fn from_whole_seconds(seconds: u64) -> Self {
        Self { seconds }
    }

    pub fn seconds(self) -> u64 {
        self.seconds
    }

    pub fn milliseconds(self) -> i64 {
        i64::try_from(self.seconds).unwrap_or(i64::MAX).saturating_mul(1_000)
    }
}

impl FromStr for Interval {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let unit = text.chars().next_back().ok_or(())?;
        let (_, scale) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(())?;
        let digits = &text[..text.len() - unit.len_utf8()];
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(());
        }
        let count: u64 = digits.parse().map_err(|_| ())?;
        count.checked_mul(scale).filter(|seconds| *seconds <= MAX_SECONDS).map(Self::from_seconds).ok_or(())
    }
}

impl fmt::Display for Interval {
    /// In the largest unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divides = |(_, scale): &(char, u64)| self.seconds > 0 && self.seconds.is_multiple_of(*scale);
        let (unit, scale) = UNITS.into_iter().find(divides).unwrap_or(('s', 1));
        write!(f, "{}{unit}", self.seconds / scale)
    }
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
