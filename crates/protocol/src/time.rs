use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since 1970, UTC. A number in records; [`fmt::Display`] gives RFC 3339 with
/// milliseconds, which is the form of events and listings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct At(pub i64);

impl At {
    /// Whether the moment has a date, in the years -9999 to 9999. A foreign file may have a number outside.
    pub fn is_in_calendar(self) -> bool {
        jiff::Timestamp::from_millisecond(self.0).is_ok()
    }
}

impl From<SystemTime> for At {
    /// A time before 1970, which only a wrong clock gives, is 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            // A damaged or foreign file may have a number outside the calendar.
            Err(_) => write!(f, "{} ms since 1970", self.0),
        }
    }
}

impl FromStr for At {
    type Err = jiff::Error;

    /// Parses RFC 3339.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let moment: jiff::Timestamp = text.parse()?;
        Ok(Self(moment.as_millisecond()))
    }
}

/// A moment as RFC 3339, for `#[serde(with = …)]`.
pub(crate) mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::At;

    pub(crate) fn serialize<S: Serializer>(at: &At, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(at)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<At, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
