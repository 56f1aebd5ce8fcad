//! What commands cost that an agent runs, in the background and within bounds, each figure against its floor in the same run.
//! `scripts/bench` runs it; the figures with their machine are in `docs/performance.md`.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::config::{SandboxMode, Wake};
use longhaul_agent::{Config, Runtime, Session};
use longhaul_model::ScriptedModel;
use longhaul_protocol::EventKind;
use longhaul_testkit::{TestHome, collect_until};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

const ENDS: usize = 250;
/// Long enough for the turn that starts a command to be over before the command is.
const BEFORE_THE_END: Duration = Duration::from_millis(80);
const TOGETHER: usize = 50;
const ROUNDS_TOGETHER: usize = 7;
const ROUNDS: usize = 41;
/// Between two turns. Models answer at about this pace; and ext4 doesn't reuse an inode for five seconds after it was freed, so that commands without
/// a pause between them would make each other slower.
const PACE: Duration = Duration::from_millis(500);
/// What this program is called, and told, when it plays a command whose last act is to say what time it is.
const LAST_ACT: &str = "last-act";
/// A command that waits until somebody else opens this pipe, too.
const WAIT: &str = ": < gate";
const GATE: &str = "gate";
/// What must be on disk between an end and its record, on any disk: the keeper's status with its name, and the record.
const SYNCS_OF_AN_END: Syncs = Syncs { files: 1, folders: 1, records: 1 };
/// The same for a start: the spec and the folder that has it, that it begins and the folder of that, its process, and two
/// records around it.
const SYNCS_OF_A_START: Syncs = Syncs { files: 3, folders: 2, records: 2 };
const PAUSE: Duration = Duration::from_millis(5);

fn main() {
    longhaul_agent::keeper::main_if_asked();
    if std::env::args().nth(1).is_some_and(|argument| argument == LAST_ACT) {
        std::thread::sleep(BEFORE_THE_END);
        println!("{}", monotonic().as_nanos());
        return;
    }
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(from_exit_to_record());
    tokio.block_on(many_at_once());
    tokio.block_on(within_bounds());
}

/// A time that is the same in all processes.
fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).expect("it counts from the start of the machine")
}

/// An agent with a home of its own, whose model says what it is told to.
struct Agent {
    place: TestHome,
    runtime: Runtime,
    session: Session,
}

impl Agent {
    async fn new(sandbox: SandboxMode, answers: Vec<Value>) -> Self {
        let place = TestHome::new();
        let mut config = Config::at(place.home()).with_work_dir(&place.work());
        config.settings.sandbox.mode = sandbox;
        config.settings.exec.wake = Wake::Never;
        config.settings.exec.max_tasks = TOGETHER as u64;
        let model = ScriptedModel::from_json(&Value::from(answers).to_string()).expect("a script");
        let runtime = Runtime::with_model(config, Arc::new(model)).await.expect("a runtime");
        let session = runtime.session("bench").await.expect("a session");
        Self { place, runtime, session }
    }

    /// The time of a turn.
    async fn turn(&self) -> Duration {
        let began = Instant::now();
        let ended = self.session.send("go").await.expect("a turn");
        let time = began.elapsed();
        assert_eq!(ended.text, "Done.", "{:?}", ended.error);
        time
    }

    /// How many of its tasks run, as far as is on record.
    async fn running(&self) -> usize {
        self.session.state().await.expect("a state").tasks.running().count()
    }

    /// When its newest task did its last act.
    async fn last_act(&self) -> Duration {
        let state = self.session.state().await.expect("a state");
        let end = state.tasks.all().last().and_then(|task| task.ended.as_ref());
        time_of(&end.expect("it has ended").tail)
    }
}

fn exec(command: &str) -> Value {
    json!({"name": "exec", "arguments": {"command": command}})
}

fn background(command: &str) -> Value {
    json!({"name": "exec", "arguments": {"command": command, "run_in_background": true}})
}

/// What a model says in so many turns, each with these calls.
fn turns(count: usize, calls: &[Value]) -> Vec<Value> {
    (0..count).flat_map(|_| [json!({"calls": calls}), json!("Done.")]).collect()
}

fn time_of(text: &str) -> Duration {
    Duration::from_nanos(text.trim().parse().expect("a command that says what time it is"))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// What so many of a hundred measurements stay below, in milliseconds.
fn percentile(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort();
    milliseconds(times[(times.len() * percent / 100).min(times.len() - 1)])
}

fn median(times: &[Duration]) -> f64 {
    percentile(times, 50)
}

fn line(name: &str, value: f64, what: &str) {
    println!("{name:<56} {value:>10.2} ms   {what}");
}

fn figure(name: &str, value: &str, against: f64, target: f64) {
    let verdict = if against <= target { "met" } else { "MISSED" };
    println!("{name:<56} {value:>13}   {against:>8.2}   target ≤ {target:<5} {verdict}");
}

/// From a command's last act to the moment when a watcher has the record of its end, against somebody who does nothing but
/// wait for a child of his own.
async fn from_exit_to_record() {
    let command = format!("exec ./{LAST_ACT} {LAST_ACT}");
    let agent = Agent::new(SandboxMode::On, turns(ENDS, &[background(&command)])).await;
    let work = agent.place.work();
    let program = std::env::current_exe().expect("this program");
    fs::copy(program, work.join(LAST_ACT)).expect("a copy that the sandbox lets run");
    let mut disk = Disk::new(&agent.place);
    let mut watcher = agent.session.watch();
    let (mut bare, mut syncs, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ENDS {
        bare.push(waited_for(&work, &command));
        syncs.push(disk.time(&SYNCS_OF_AN_END));
        agent.turn().await;
        collect_until(&mut watcher, |kind| matches!(kind, EventKind::TaskEnded { .. })).await;
        let seen = monotonic();
        recorded.push(seen.saturating_sub(agent.last_act().await));
    }
    agent.runtime.shutdown().await.expect("an end");
    line("from a last act to the end of `wait`, p50", median(&bare), "the floor");
    line("the same, p99", percentile(&bare, 99), "");
    line("its three syncs by themselves", median(&syncs), "the disk's part");
    line("from a last act to the record of the end, p50", median(&recorded), "");
    let own = (median(&recorded) - median(&bare) - median(&syncs)).max(0.0);
    figure("of that neither the floor nor the disk, ms", &format!("{own:.2} ms"), own, 2.0);
    let late = percentile(&recorded, 99);
    figure("from a last act to the record of the end, p99, ms", &format!("{late:.2} ms"), late, 50.0);
}

/// How long after its last act a child is known to have ended.
fn waited_for(folder: &Path, command: &str) -> Duration {
    let mut child = Command::new("bash")
        .args(["-c", command])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut output = child.stdout.take().expect("a pipe");
    child.wait().expect("an end");
    let ended = monotonic();
    let mut text = String::new();
    output.read_to_string(&mut text).expect("an output");
    ended.saturating_sub(time_of(&text))
}

/// Writes to disk, one after the other.
struct Syncs {
    /// New files.
    files: usize,
    /// Names in a folder.
    folders: usize,
    /// Pages at the end of a log.
    records: usize,
}

/// The disk's part of something, by itself.
struct Disk {
    folder: PathBuf,
    log: File,
    files: usize,
}

impl Disk {
    fn new(place: &TestHome) -> Self {
        let folder = place.work().join("synced");
        fs::create_dir(&folder).expect("a folder");
        Self { log: File::create(folder.join("log")).expect("a file"), folder, files: 0 }
    }

    fn time(&mut self, syncs: &Syncs) -> Duration {
        let handle = File::open(&self.folder).expect("a folder");
        let since = Instant::now();
        for _ in 0..syncs.files {
            self.files += 1;
            let mut file = File::create(self.folder.join(self.files.to_string())).expect("a file");
            file.write_all(&[b' '; 200]).and_then(|()| file.sync_all()).expect("a sync");
        }
        for number in 0..syncs.folders {
            fs::write(self.folder.join(format!("{}-{number}", self.files)), "").expect("a file");
            handle.sync_all().expect("a sync");
        }
        for _ in 0..syncs.records {
            self.log.write_all(&[b' '; 4096]).and_then(|()| self.log.sync_data()).expect("a sync");
        }
        since.elapsed()
    }
}

/// One turn that starts many commands, which it does in their order, against starting as many shells; and the memory of their
/// keepers.
async fn many_at_once() {
    // A model that asks for the same again and again would be stopped.
    let calls: Vec<Value> = (1..=TOGETHER).map(|number| background(&format!("{WAIT} # {number}"))).collect();
    let free = Agent::new(SandboxMode::Off, turns(ROUNDS_TOGETHER, &calls)).await;
    let held = Agent::new(SandboxMode::On, turns(ROUNDS_TOGETHER, &calls)).await;
    for agent in [&free, &held] {
        let made = Command::new("mkfifo").arg(GATE).current_dir(agent.place.work()).status();
        assert!(made.expect("a program").success());
    }
    let mut disk = Disk::new(&free.place);
    let (mut bare, mut syncs) = (Vec::new(), Vec::new());
    let (mut times, mut memory) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..ROUNDS_TOGETHER {
        bare.push(plain_starts(&free.place.work()));
        syncs.push((0..TOGETHER).map(|_| disk.time(&SYNCS_OF_A_START)).sum());
        for (place, agent) in [&free, &held].into_iter().enumerate() {
            times[place].push(agent.turn().await);
            assert_eq!(agent.running().await, TOGETHER, "all of them wait");
            memory[place].extend(keepers_memory(&agent.place.home()));
            let _open = gate(&agent.place.work());
            while agent.running().await > 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    for agent in [free, held] {
        agent.runtime.shutdown().await.expect("an end");
    }
    let each = |times: &[Duration]| median(times) / TOGETHER as f64;
    line(&format!("starting {TOGETHER} of `sh -c`, each"), each(&bare), "the floor");
    line("seven syncs of a start by themselves", each(&syncs), "the disk's part");
    for (name, times, target) in
        [("as tasks of one turn, each", &times[0], 5.0), ("the same within bounds, each", &times[1], 8.0)]
    {
        line(name, each(times), "");
        let own = (each(times) - each(&bare) - each(&syncs)).max(0.0);
        figure("of that neither the floor nor the disk, ms", &format!("{own:.2} ms"), own, target);
    }
    for (name, mut sizes) in ["a keeper's private memory", "the same with bounds"].into_iter().zip(memory) {
        sizes.sort_unstable();
        let kilobytes = sizes[sizes.len() / 2];
        figure(&format!("{name}, MB"), &format!("{kilobytes} kB"), kilobytes as f64 / 1024.0, 3.0);
    }
}

/// The time until so many shells are started. All are ended afterwards.
fn plain_starts(folder: &Path) -> Duration {
    let since = Instant::now();
    let start = |_| Command::new("sh").args(["-c", WAIT]).current_dir(folder).spawn().expect("a shell");
    let children: Vec<Child> = (0..TOGETHER).map(start).collect();
    let time = since.elapsed();
    let _open = gate(folder);
    for mut child in children {
        child.wait().expect("an end");
    }
    time
}

/// As long as this is open, whoever opens the pipe to read goes on at once.
fn gate(folder: &Path) -> File {
    File::options().read(true).write(true).open(folder.join(GATE)).expect("a pipe")
}

/// What of their memory the keepers of a home have for themselves, in kB.
fn keepers_memory(home: &Path) -> Vec<u64> {
    let home = home.canonicalize().expect("a home");
    let processes = fs::read_dir("/proc").expect("/proc").flatten().map(|process| process.path());
    let works_here = |process: &PathBuf| {
        fs::read_link(process.join("cwd")).is_ok_and(|folder| folder.starts_with(home.join("tasks")))
    };
    let private = |process: PathBuf| {
        let text = fs::read_to_string(process.join("smaps_rollup")).ok()?;
        let lines = text.lines().filter(|line| line.starts_with("Private_"));
        Some(lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum())
    };
    processes.filter(works_here).filter_map(private).collect()
}

/// A turn that runs a command which does nothing, within its session's bounds and without any.
async fn within_bounds() {
    let answers = || turns(ROUNDS, &[exec("true")]);
    let free = Agent::new(SandboxMode::Off, answers()).await;
    let held = Agent::new(SandboxMode::On, answers()).await;
    let mut times = [vec![], vec![]];
    for _ in 0..ROUNDS {
        for (place, agent) in [&free, &held].into_iter().enumerate() {
            tokio::time::sleep(PACE / 2).await;
            times[place].push(agent.turn().await);
        }
    }
    for agent in [free, held] {
        let state = agent.session.state().await.expect("a state");
        assert!(state.items.iter().any(|item| format!("{item:?}").contains("exit_code")), "it ran");
        agent.runtime.shutdown().await.expect("an end");
    }
    let [free, held] = times.map(|times| median(&times));
    line("a turn with `exec true`, without bounds", free, "the floor");
    let more = (held - free).max(0.0);
    figure("bounds around a command, ms", &format!("{more:.2} ms more"), more, 3.0);
}
