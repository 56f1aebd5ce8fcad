//! `longhaul serve` and its clients, as real processes: signals, kills, and inputs from elsewhere.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod checkpoints;
mod clients;
mod compactions;
mod followers;
mod http;
mod kills;
mod openai;
mod signals;
mod slow_reader;
mod subagents;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use longhaul_journal::{Home, Journal, SqliteJournal, records, resolve};
use longhaul_protocol::{Record, SessionId, StreamName};
use longhaul_testkit::broken_rules;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long a test waits before it gives up.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A folder with a home, a work folder and a script.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new(script: &Value) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(desk.work()).unwrap();
        std::fs::write(desk.0.path().join("script.json"), script.to_string()).unwrap();
        desk
    }

    fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("LONGHAUL_HOME", self.home())
            .env("LONGHAUL_MODEL", format!("scripted/{}", self.0.path().join("script.json").display()))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn send(&self, text: &str) -> Output {
        let sent = self.run(&["send", "-s", "a", text]);
        assert!(sent.status.success(), "{}", said(&sent));
        sent
    }

    fn serve(&self) -> Serving {
        Serving::start(self.command(&["serve", "--no-http", "--json"]))
    }

    /// The records of the session, which break no rule.
    fn sound_records(&self) -> Vec<Record> {
        let records = self.records();
        assert_eq!(broken_rules(&records), Vec::<String>::new());
        records
    }

    fn records(&self) -> Vec<Record> {
        self.records_in(StreamName::session)
    }

    /// The records of a stream of the session.
    fn records_in(&self, stream: impl Fn(SessionId) -> StreamName) -> Vec<Record> {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio.block_on(async {
            let journal = SqliteJournal::open(&Home::existing(&self.home()).unwrap()).await.unwrap();
            let id = resolve(&journal, "a").await.unwrap().id;
            let stream = stream(id);
            let records = records(&journal, &stream, 1).collect().await.unwrap();
            journal.close().await;
            records
        })
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A serving process, and the events that it prints.
struct Serving {
    process: Child,
    events: Receiver<(Instant, Value)>,
}

impl Serving {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (send, events) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if send.send((Instant::now(), event)).is_err() {
                    return;
                }
            }
        });
        Self { process, events }
    }

    /// One that has said that it serves.
    fn ready(mut self) -> Self {
        let mut line = String::new();
        let mut errors = BufReader::new(self.process.stderr.take().unwrap());
        errors.read_line(&mut line).unwrap();
        assert!(line.contains("serving"), "{line}");
        // Whoever prints to a pipe that nobody reads is ended by it.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        self
    }

    /// The next event, and when it came.
    fn next(&self) -> (Instant, Value) {
        self.events.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|error| panic!("no event: {error}"))
    }

    /// The next event of this type, and when it came.
    fn wait_for(&self, kind: &str) -> (Instant, Value) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (at, event) =
                self.events.recv_timeout(left).unwrap_or_else(|error| panic!("no {kind}: {error}"));
            if event["type"] == kind {
                return (at, event);
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    fn wait(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    fn end(self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.wait()
    }
}

/// A test that fails leaves nobody behind.
impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until something is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
