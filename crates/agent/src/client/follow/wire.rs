//! What is said on the connection between whoever has a session and whoever follows it: one JSON object a line. Events are the
//! same objects as everywhere. Newer versions may say more.

use longhaul_protocol::{Event, Seq};
use serde_json::{Value, json};

use crate::client::watch::Watched;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    /// Everything up to this record is on disk, and all that was shown before it has been told. The first line is one of these.
    Head(Seq),
    Event(Box<Event>),
    /// Whoever follows was too slow.
    Missed,
    /// A newer version said something of this record, if of any.
    Odd(Option<Seq>),
}

impl Line {
    pub(super) fn read(line: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Self::Odd(None) };
        if let Some(head) = value["head"].as_u64() {
            return Self::Head(head);
        }
        if value["type"] == "missed" {
            return Self::Missed;
        }
        let seq = value["seq"].as_u64();
        serde_json::from_value(value).map_or(Self::Odd(seq), |event| Self::Event(Box::new(event)))
    }
}

pub(super) fn head(head: Seq) -> String {
    json!({"head": head}).to_string()
}

pub(super) fn watched(watched: &Watched) -> Option<String> {
    match watched {
        Watched::Event(event) => serde_json::to_string(event).ok(),
        Watched::Missed { events, from } => {
            Some(json!({"type": "missed", "events": events, "from": from}).to_string())
        }
    }
}
