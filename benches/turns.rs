//! What a turn costs besides the model, each figure against its floor in the same run. `scripts/bench` runs it; the figures
//! with their machine are in `docs/performance.md`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::{Config, Runtime, Session};
use longhaul_journal::{Append, Blob, Home, Journal, SqliteJournal, name_session, put};
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, Model, ModelFailure, Request, StopKind, StopReason,
};
use longhaul_protocol::{
    BlobRef, EpochReason, EpochStarted, InboxRecord, Input, InputId, JoinMode, Note, SessionCreated,
    SessionRecord, StreamName,
};

const PAST: usize = 100_000;
const ROUNDS: usize = 31;
const IDLE: usize = 1_000;
const INPUTS: usize = 40;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, part, folder] = &arguments[..]
        && part == "idle-sessions"
    {
        return idle_sessions(Path::new(folder));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(turn_by_age(&folder.path().join("age")));
    memory_of_idle_sessions(&folder.path().join("idle"));
    tokio.block_on(between_processes(&folder.path().join("two")));
}

/// A model that takes no time and always says the same.
struct Instantly;

struct Said(Vec<AnswerPart>);

#[async_trait::async_trait]
impl Model for Instantly {
    fn name(&self) -> &'static str {
        "scripted/instantly"
    }

    async fn ask(
        &self,
        _request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let parts = [
            AnswerPart::TextStart,
            AnswerPart::TextDelta("Done.".to_owned()),
            AnswerPart::TextStop,
            AnswerPart::End(StopReason::new(StopKind::Finished, "stop")),
        ];
        Ok(Box::new(Said(parts.into_iter().rev().collect())))
    }
}

#[async_trait::async_trait]
impl AnswerStream for Said {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        Ok(self.0.pop().expect("nobody asks after the end"))
    }
}

async fn open(folder: &Path) -> Runtime {
    let config = Config::at(folder.join("home")).with_work_dir(folder);
    Runtime::with_model(config, Arc::new(Instantly)).await.expect("a runtime")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn figure(name: &str, value: &str, against: f64, target: f64) {
    let verdict = if against <= target { "met" } else { "MISSED" };
    println!("{name:<56} {value:>12}   {against:>8.2}   target ≤ {target:<5} {verdict}");
}

/// A session whose newest epoch begins after so many records.
async fn with_past(journal: &SqliteJournal, key: &str, past: usize) {
    let id = name_session(journal, key).await.expect("a name");
    let lease = journal.acquire_lease(&StreamName::session(id)).await.expect("a lease");
    let (key, version) = (key.to_owned(), "1".to_owned());
    let created = SessionCreated { id, key, work_dir: None, origin: None, parent: None, version };
    let created = SessionRecord::SessionCreated(created).encode();
    journal.append(Append::under(&lease).record(created)).await.expect("an append");
    let note = SessionRecord::Note(Note::new("x".repeat(200))).encode();
    for _ in 0..past / 1_000 {
        let append = (0..1_000).fold(Append::under(&lease), |append, _| append.record(note.clone()));
        journal.append(append).await.expect("an append");
    }
    let blob = BlobRef::to(b"x", "text/plain");
    let epoch = EpochStarted::new(1, EpochReason::Created, blob.clone(), blob);
    let epoch = SessionRecord::EpochStarted(epoch).encode();
    journal.append(Append::under(&lease).record(epoch).blob(Blob::new(*b"x"))).await.expect("an append");
    journal.release_lease(&lease).await.expect("a release");
}

/// The runtime's own time for a turn: in memory, and with everything opened and loaded first.
async fn turn_by_age(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let journal =
        SqliteJournal::open(&Home::create(&folder.join("home")).expect("a home")).await.expect("a journal");
    with_past(&journal, "young", 0).await;
    with_past(&journal, "old", PAST).await;
    journal.close().await;
    let (mut cold, mut warm) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..ROUNDS {
        for (place, key) in ["young", "old"].into_iter().enumerate() {
            let began = Instant::now();
            let runtime = open(folder).await;
            let session = runtime.session(key).await.expect("a session");
            turn(&session).await;
            cold[place].push(began.elapsed());
            let began = Instant::now();
            turn(&session).await;
            warm[place].push(began.elapsed());
            runtime.shutdown().await.expect("an end");
        }
    }
    for (name, times) in [("a turn in memory", warm), ("a turn of a session that was on disk", cold)] {
        let [young, old] = times.map(median);
        let value = format!("{:.2} ms", old.as_secs_f64() * 1e3);
        figure(
            &format!("{name}, {PAST} records of past"),
            &value,
            old.as_secs_f64() / young.as_secs_f64(),
            1.2,
        );
    }
}

async fn turn(session: &Session) {
    let ended = session.send("hello").await.expect("a turn");
    assert_eq!(ended.text, "Done.");
}

fn memory_of_idle_sessions(folder: &Path) {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).arg("idle-sessions").arg(folder).output().expect("a process");
    let text = String::from_utf8_lossy(&output.stdout);
    let sizes: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let [resting, left] = sizes[..] else { panic!("{text}{}", String::from_utf8_lossy(&output.stderr)) };
    let value = |size: f64| format!("{size:.1} MB");
    figure(&format!("a process with {IDLE} sessions that just had a turn"), &value(resting), resting, 50.0);
    figure("the same when they have left memory, handles kept", &value(left), left, 50.0);
}

/// The part of another process: every session has a turn, and nobody lets go of it.
fn idle_sessions(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(async {
        let runtime = open(folder).await;
        let mut sessions = Vec::new();
        for number in 0..IDLE {
            let session = runtime.session(&format!("idle:{number}")).await.expect("a session");
            turn(&session).await;
            sessions.push(session);
        }
        println!("{}", resident());
        tokio::time::sleep(Duration::from_secs(12)).await;
        println!("{}", resident());
        drop(sessions);
        runtime.shutdown().await.expect("an end");
    });
}

/// The memory of this process, in MB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes / 1e3
}

/// From an input that one process has put to the record with which another one takes it.
async fn between_processes(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let answers: Vec<String> = (0..=INPUTS).map(|number| format!("Answer {number}.")).collect();
    let script = folder.join("script.json");
    std::fs::write(&script, serde_json::to_string(&answers).expect("JSON")).expect("a script");
    let mut serving = Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(["serve", "--no-http", "--json", "--home"])
        .arg(folder.join("home"))
        .arg(format!("--model=scripted/{}", script.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let mut lines = BufReader::new(serving.stdout.take().expect("an output")).lines();
    let home = Home::create(&folder.join("home")).expect("a home");
    let journal = SqliteJournal::open(&home).await.expect("a journal");
    let id = name_session(&journal, "a").await.expect("a name");
    let mut delays = Vec::new();
    for _ in 0..INPUTS {
        let (id_of_input, text) = (InputId::generate(), "hello".to_owned());
        let input = Input::new(id_of_input, text, JoinMode::Join);
        put(&journal, id, InboxRecord::Input(input).encode()).await.expect("an input");
        let put_at = Instant::now();
        wait_for(&mut lines, "input_taken");
        delays.push(put_at.elapsed());
        wait_for(&mut lines, "turn_ended");
    }
    serving.kill().expect("a kill");
    serving.wait().expect("an end");
    delays.sort();
    // The first may come before the other process has begun to listen.
    let (middle, last) = (delays[delays.len() / 2], delays[delays.len() - 2]);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    figure("an input from another process is taken, ms", "median", milliseconds(middle), 50.0);
    figure("the same, the slowest but one", "", milliseconds(last), 50.0);
}

fn wait_for(lines: &mut impl Iterator<Item = std::io::Result<String>>, kind: &str) {
    let wanted = format!("\"type\":\"{kind}\"");
    lines
        .find(|line| line.as_ref().is_ok_and(|line| line.contains(&wanted)))
        .expect("it comes")
        .expect("a line");
}
