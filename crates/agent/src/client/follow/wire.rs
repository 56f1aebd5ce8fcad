//! The lines between a process that runs a session and a follower. Each is one JSON object. Events have the same form
//! as everywhere else. Newer versions may send more.

use longhaul_protocol::{Event, Seq};
use serde_json::{Value, json};

use crate::client::watch::Watched;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    /// Every record up to this one is on disk, and every event before it has been sent. Always the first line.
    Head(Seq),
    Event(Box<Event>),
    /// The follower was too slow.
    Missed,
    /// A line of a newer version. Holds the record that it belongs to, if any.
    Unknown(Option<Seq>),
}

impl Line {
    pub(super) fn parse(line: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Self::Unknown(None) };
        if let Some(head) = value["head"].as_u64() {
            return Self::Head(head);
        }
        if value["type"] == "missed" {
            return Self::Missed;
        }
        let seq = value["seq"].as_u64();
        serde_json::from_value(value).map_or(Self::Unknown(seq), |event| Self::Event(Box::new(event)))
    }
}

pub(super) fn encode_head(head: Seq) -> String {
    json!({"head": head}).to_string()
}

pub(super) fn encode_watched(watched: &Watched) -> Option<String> {
    match watched {
        Watched::Event(event) => serde_json::to_string(event).ok(),
        Watched::Missed { events, from } => {
            Some(json!({"type": "missed", "events": events, "from": from}).to_string())
        }
    }
}
