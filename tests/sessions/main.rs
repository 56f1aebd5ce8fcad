//! The life of sessions, through the real program.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[path = "../desk.rs"]
mod desk;
mod fork;
mod import;
mod lifecycle;
mod list;
mod prune;
mod save;

use desk::Desk;
use serde_json::Value;

impl Desk {
    /// Says something in a session.
    fn say(&self, key: &str, text: &str) {
        let (code, out, errors) = self.run(&["run", "-s", key, text]);
        assert_eq!(code, 0, "{out}{errors}");
    }

    /// The keys of the sessions that are listed so, in their order.
    fn keys(&self, arguments: &[&str]) -> Vec<String> {
        let sessions = self.json(&[&["sessions", "list", "--json"], arguments].concat());
        sessions.as_array().unwrap().iter().map(|session| text(&session["key"])).collect()
    }

    fn is_sound(&self) -> bool {
        self.json(&["verify", "--json"])["ok"] == true
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
