//! `longhaul` without a command, as people and pipes use it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[path = "../desk.rs"]
mod desk;
mod piped;
mod terminal;

use desk::Desk;
use serde_json::Value;

impl Desk {
    fn keys(&self) -> Vec<String> {
        let sessions = self.json(&["sessions", "list", "--json"]);
        let keys = sessions.as_array().unwrap().iter();
        keys.map(|session| session["key"].as_str().unwrap().to_owned()).collect()
    }

    /// A field of the records of this kind, of the folder's session.
    fn recorded(&self, kind: &str, field: &str) -> Vec<Value> {
        self.records(&self.keys()[0], kind).iter().map(|body| body[field].clone()).collect()
    }
}
