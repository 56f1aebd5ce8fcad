//! `longhaul` without a command, as people and pipes use it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod piped;
mod terminal;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A folder with a home, a work folder and a script.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new(script: &Value) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(desk.path("work")).unwrap();
        std::fs::write(desk.path("script.json"), script.to_string()).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env("LONGHAUL_HOME", self.path("home"))
            .env("LONGHAUL_MODEL", format!("scripted/{}", self.path("script.json").display()))
            .env("TERM", "xterm")
            .stdin(Stdio::null());
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn keys(&self) -> Vec<String> {
        let sessions = self.json(&["sessions", "list", "--json"]);
        let keys = sessions.as_array().unwrap().iter();
        keys.map(|session| session["key"].as_str().unwrap().to_owned()).collect()
    }

    /// A field of the records of this kind, of the folder's session.
    fn recorded(&self, kind: &str, field: &str) -> Vec<Value> {
        let key = &self.keys()[0];
        let shown = self.json(&["sessions", "show", key, "--from", "1", "--limit", "10000", "--json"]);
        let records = shown["records_shown"].as_array().unwrap().iter();
        records.filter(|record| record["kind"] == kind).map(|record| record["body"][field].clone()).collect()
    }
}
