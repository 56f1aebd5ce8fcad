//! A home of its own for each test, and the program in it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;

use crate::servers::TEST_TIMEOUT;

/// The key that every server of these tests is sent.
const KEY: &str = "sk-a-key-of-nobody-0123456789";

/// A folder with a home, its config, and a work folder.
pub(crate) struct Desk(tempfile::TempDir);

/// How a turn of `longhaul run --json` went.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) events: Vec<Value>,
    pub(crate) errors: String,
}

impl Desk {
    pub(crate) fn new(config: &str) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(desk.home()).unwrap();
        std::fs::create_dir(desk.work()).unwrap();
        std::fs::write(desk.home().join("config.toml"), config).unwrap();
        desk
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("LONGHAUL_HOME", self.home())
            .env("PEERS_KEY", KEY)
            .env("no_proxy", "127.0.0.1")
            .env_remove("LONGHAUL_MODEL")
            .stdin(Stdio::null());
        command
    }

    /// One turn.
    pub(crate) fn run(&self, prompt: &str) -> Ran {
        Ran::of(&self.command(&["run", "--json", prompt]).output().unwrap())
    }

    /// The same with a prompt that is too long for a command line.
    pub(crate) fn run_long(&self, prompt: &str) -> Ran {
        let mut command = self.command(&["run", "--json", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        process.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
        Ran::of(&process.wait_with_output().unwrap())
    }
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let lines = String::from_utf8(output.stdout.clone()).unwrap();
        let events = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), events, errors }
    }

    /// The events of this type.
    pub(crate) fn events(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    /// The end of its turn.
    pub(crate) fn end(&self) -> &Value {
        let ends = self.events("turn_ended");
        assert_eq!(ends.len(), 1, "{:?} {}", self.events, self.errors);
        ends[0]
    }
}

/// A process of the program and the events that it prints.
pub(crate) struct Printing {
    pub(crate) process: Child,
    events: Receiver<Value>,
}

impl Printing {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (send, events) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if send.send(event).is_err() {
                    return;
                }
            }
        });
        Self { process, events }
    }

    /// The next event of this type.
    pub(crate) fn wait_for(&self, kind: &str) -> Value {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).unwrap_or_else(|error| panic!("no {kind}: {error}"));
            if event["type"] == kind {
                return event;
            }
        }
    }
}

/// A test that fails leaves nobody behind.
impl Drop for Printing {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
