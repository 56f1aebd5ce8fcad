//! `longhaul` without a command, as people and pipes use it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod attachments;
mod crash;
#[path = "../desk.rs"]
mod desk;
mod display;
mod exit;
mod opening;
mod permission;
mod pictures;
mod piped;
mod run_input;
mod server_content;
mod sessions;
mod terminal;
mod tmux;
mod trash;
mod typing;
mod user_command;

use std::time::{Duration, Instant};

use desk::Desk;
use serde_json::Value;

impl Desk {
    fn keys(&self) -> Vec<String> {
        let sessions = self.json(&["sessions", "list", "--all", "--json"]);
        let keys = sessions.as_array().unwrap().iter();
        let mut keys: Vec<String> = keys.map(|session| session["key"].as_str().unwrap().to_owned()).collect();
        keys.sort();
        keys
    }

    /// A field of the records of this kind, of the folder's session.
    fn recorded(&self, kind: &str, field: &str) -> Vec<Value> {
        self.records(&self.keys()[0], kind).iter().map(|body| body[field].clone()).collect()
    }

    /// Waits until the folder's session has so many records of this kind.
    fn wait_for(&self, count: usize, kind: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.keys().is_empty() || self.records(&self.keys()[0], kind).len() < count {
            assert!(Instant::now() < deadline, "no {kind}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
