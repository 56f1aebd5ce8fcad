//! What a keeper costs, each figure against its floor in the same run; what bounds cost besides is in `tasks.rs`. `scripts/bench`
//! runs it; the figures with their machine are in `docs/performance.md`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longhaul_keeper::{FORMAT, Launcher, Spec, Task, Tasks};
use longhaul_protocol::CallId;

const ROUNDS: usize = 41;
const LARGE_ROUNDS: usize = 5;
const LARGE: &str = "head -c 268435456 /dev/zero";
const MEBIBYTES: f64 = 256.0;
/// What the runtime and the keeper write to disk, one after the other, for one command: four files and, in between, three
/// times the folder of one.
const SYNCS: usize = 7;

fn main() {
    longhaul_keeper::main_if_asked();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bench = Bench::new(folder.path());
    starting(&bench);
    memory(&bench);
    throughput(&bench);
}

struct Bench {
    folder: PathBuf,
    tasks: Tasks,
}

impl Bench {
    fn new(folder: &Path) -> Self {
        fs::create_dir(folder.join("run")).expect("a folder");
        fs::write(folder.join("run/token"), "token").expect("a token");
        let launcher = Launcher::this_program().expect("this program");
        Self {
            folder: folder.to_owned(),
            tasks: Tasks::at(&folder.join("tasks"), launcher).expect("a folder of tasks"),
        }
    }

    fn start(&self, command: &str) -> Task {
        let spec = Spec {
            format: FORMAT,
            task_id: CallId::generate().into(),
            command: command.to_owned(),
            work_dir: self.folder.clone(),
            environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            output_cap: 64 << 20,
            max_runtime_s: None,
            session: None,
            description: None,
            target: "local".to_owned(),
            token_file: "../../run/token".to_owned(),
            bounds: None,
            relay: false,
        };
        self.tasks.start(&spec).expect("a start")
    }

    fn run(&self, command: &str) -> Duration {
        let since = Instant::now();
        let task = self.start(command);
        let mut end = task.connect().expect("a connection");
        end.read_to_end(&mut Vec::new()).expect("its end");
        task.status().expect("a status").expect("it has ended");
        since.elapsed()
    }
}

fn plain(command: &str, output: impl Into<Stdio>) -> Duration {
    let since = Instant::now();
    Command::new("sh").args(["-c", command]).stdout(output).status().expect("a shell");
    since.elapsed()
}

/// The middle of several measurements, taken in turn with others so that a slow moment hits all alike.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// What a figure should be.
#[derive(Clone, Copy)]
enum Target {
    AtLeast(f64),
    AtMost(f64),
}

fn figure(name: &str, value: &str, figure: f64, target: Target) {
    let (met, sign, target) = match target {
        Target::AtLeast(target) => (figure >= target, "≥", target),
        Target::AtMost(target) => (figure <= target, "≤", target),
    };
    let verdict = if met { "met" } else { "MISSED" };
    println!("{name:<56} {value:>16}   figure {figure:>6.2}   target {sign} {target:<5} {verdict}");
}

/// A command that does nothing, with and without a keeper, and the writing to disk by itself.
fn starting(bench: &Bench) {
    let (mut kept, mut bare, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        bare.push(plain("true", Stdio::null()));
        kept.push(bench.run("true"));
        syncs.push(write_and_sync(&bench.folder, round));
    }
    let (kept, bare, syncs) =
        (milliseconds(median(kept)), milliseconds(median(bare)), milliseconds(median(syncs)));
    println!("{:<56} {bare:>13.2} ms   the floor", "sh -c true");
    println!(
        "{:<56} {syncs:>13.2} ms   the disk's part",
        format!("{SYNCS} syncs of new files and their folder")
    );
    println!("{:<56} {kept:>13.2} ms   ratio {:.2}", "true under a keeper", kept / bare);
    let more = (kept - bare - syncs).max(0.0);
    figure("a keeper's own part", &format!("{more:.2} ms more"), more, Target::AtMost(5.0));
}

fn write_and_sync(folder: &Path, round: usize) -> Duration {
    let handle = File::open(folder).expect("a folder");
    let since = Instant::now();
    for number in 0..SYNCS {
        if number % 2 == 0 {
            let mut file = File::create(folder.join(format!("synced-{round}-{number}"))).expect("a file");
            file.write_all(b"{}").and_then(|()| file.sync_all()).expect("a sync");
        } else {
            handle.sync_all().expect("a sync");
        }
    }
    since.elapsed()
}

/// What of a keeper's memory nobody else has.
fn memory(bench: &Bench) {
    let task = bench.start("sleep 600");
    let keeper = fs::read_dir("/proc").expect("/proc").flatten().find(|process| {
        let folder = fs::read_link(process.path().join("cwd")).unwrap_or_default();
        folder.ends_with(task.id().to_string())
    });
    let text =
        keeper.map(|keeper| fs::read_to_string(keeper.path().join("smaps_rollup")).unwrap_or_default());
    let _ = task.kill();
    let text = text.unwrap_or_default();
    let private = text.lines().filter(|line| line.starts_with("Private_"));
    let kilobytes: f64 = private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).sum();
    figure(
        "a keeper's private memory",
        &format!("{kilobytes:.0} kB"),
        kilobytes / 1024.0,
        Target::AtMost(3.0),
    );
}

/// Much output through a keeper against the same into a file.
fn throughput(bench: &Bench) {
    let (mut kept, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..LARGE_ROUNDS {
        let file = bench.folder.join("plain");
        bare.push(plain(LARGE, File::create(&file).expect("a file")));
        let _ = fs::remove_file(file);
        kept.push(bench.run(LARGE));
    }
    let speed = |times| MEBIBYTES / median(times).as_secs_f64();
    let (kept, bare) = (speed(kept), speed(bare));
    println!("{:<56} {bare:>10.0} MiB/s   the floor", "256 MiB of output into a file");
    figure(
        "256 MiB of output through a keeper",
        &format!("{kept:.0} MiB/s"),
        kept / bare,
        Target::AtLeast(0.6),
    );
}
