//! One turn of ours beside one turn of others, against the same server that answers at once. `scripts/peers --bench` installs the
//! others, `scripts/bench` runs this; the figures with their machine are in `docs/performance.md`. Only ratios of one run count.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longhaul_testkit::wire::{ModelServer, Reply, Script, ScriptedAnswer};
use serde_json::json;

const ROUNDS: usize = 15;
/// Measured apart from the times, because what measures memory takes time.
const MEMORY_ROUNDS: usize = 5;
const PROMPT: &str = "say pong";
/// Bytes that a first request may have: about 3,000 tokens.
const BODY: f64 = 12_000.0;

fn main() {
    let Some(others) = installed() else {
        println!("the peers are not there: scripts/peers --bench installs them");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = ModelServer::start(instant_answers());
    let base_url = format!("{}/v1", server.url());
    let ours = longhaul(&folder.path().join("longhaul"), &base_url);
    let peers = [
        ours,
        codex(&folder.path().join("codex"), &base_url, &others),
        pi(&folder.path().join("pi"), &base_url, &others),
    ];
    let bodies = peers.each_ref().map(|peer| first_body(peer, &server));
    let times = times(&peers);
    let memory = memory(&peers, folder.path());
    report(&peers, &times, &memory, &bodies);
}

/// A program that can have a turn.
struct Peer {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    work: PathBuf,
}

impl Peer {
    /// With a home and an empty work folder of its own.
    fn new(name: &'static str, folder: &Path, program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        let (home, work) = (folder.join("home"), folder.join("work"));
        std::fs::create_dir_all(&home).expect("a folder");
        std::fs::create_dir_all(&work).expect("a folder");
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let environment = vec![("HOME", home.display().to_string()), ("OPENAI_API_KEY", "x".repeat(24))];
        Self { name, program: program.into(), arguments, environment, work }
    }

    fn home(&self) -> PathBuf {
        self.work.with_file_name("home")
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// A file of its home.
    fn writes(self, path: &str, text: &str) -> Self {
        let file = self.home().join(path);
        std::fs::create_dir_all(file.parent().expect("a folder above it")).expect("a folder");
        std::fs::write(file, text).expect("a file");
        self
    }

    /// The command, behind whatever is to start it.
    fn command(&self, behind: &[&str]) -> Command {
        let mut words = behind.iter().map(PathBuf::from).chain([self.program.clone()]);
        let mut command = Command::new(words.next().expect("the program at least"));
        command.args(words).args(&self.arguments).envs(self.environment.iter().cloned());
        command.env("no_proxy", "127.0.0.1").current_dir(&self.work).stdin(Stdio::null());
        command
    }

    fn run(&self, behind: &[&str]) {
        let output = self.command(behind).output().expect("a process");
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.contains("pong"), "{}: {said}{errors}", self.name);
    }
}

/// Where `scripts/peers --bench` has put them.
fn installed() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let peers = variable("LONGHAUL_PEERS").or_else(|| Some(cache()?.join("longhaul/peers")))?;
    peers.join("rivals.made-of").exists().then(|| peers.join("rivals/node_modules"))
}

fn instant_answers() -> Script {
    let said = ScriptedAnswer::text("pong").usage(10, 5);
    Script::by(move |seen| match seen.protocol() {
        Some(protocol) => Reply::stream(said.bytes(protocol)),
        None => Reply::error(404, r#"{"error":{"message":"there is no such path"}}"#),
    })
}

fn longhaul(folder: &Path, base_url: &str) -> Peer {
    let config =
        format!("[model]\nname = 'mock/mock-model'\nbase_url = '{base_url}'\nprotocol = 'openai-chat'\n");
    let peer = Peer::new("longhaul", folder, longhaul_program(), &["run", PROMPT]);
    peer.writes(".longhaul/config.toml", &config)
}

/// The program that is measured: the one that was built with this bench, or that of `LONGHAUL_PROGRAM`.
fn longhaul_program() -> PathBuf {
    std::env::var_os("LONGHAUL_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_longhaul").into(), PathBuf::from)
}

fn codex(folder: &Path, base_url: &str, others: &Path) -> Peer {
    // Its own launcher is a script that would count as well.
    let inside = |target: &str, machine: &str| {
        others.join(format!("@openai/codex-{machine}/vendor/{target}/bin/codex"))
    };
    let native = match std::env::consts::ARCH {
        "aarch64" => inside("aarch64-unknown-linux-musl", "linux-arm64"),
        _ => inside("x86_64-unknown-linux-musl", "linux-x64"),
    };
    let config = format!(
        "model = 'mock-model'\nmodel_provider = 'mock'\n[model_providers.mock]\nname = 'mock'\n\
         base_url = '{base_url}'\nenv_key = 'OPENAI_API_KEY'\nwire_api = 'responses'\n"
    );
    let arguments = ["exec", "--skip-git-repo-check", "--sandbox", "read-only", PROMPT];
    Peer::new("codex", folder, native, &arguments).writes(".codex/config.toml", &config)
}

fn pi(folder: &Path, base_url: &str, others: &Path) -> Peer {
    let models = json!({"providers": {"mock": {
        "baseUrl": base_url, "api": "openai-completions", "apiKey": "x", "models": [{"id": "mock-model"}],
    }}});
    let script = others.join(".bin/pi");
    let script = script.to_str().expect("a path in UTF-8");
    let arguments = [script, "--provider", "mock", "--model", "mock-model", "-p", PROMPT];
    let peer = Peer::new("pi", folder, others.join(".bin/node"), &arguments).with("PI_OFFLINE", "1");
    peer.writes(".pi/agent/models.json", &models.to_string())
}

/// One turn to warm up, and how many bytes its first request of a model had.
fn first_body(peer: &Peer, server: &ModelServer) -> f64 {
    let before = server.requests().len();
    peer.run(&[]);
    let requests = server.requests().split_off(before);
    let first = requests.into_iter().find(|seen| seen.protocol().is_some()).expect("it asked");
    first.body.len() as f64
}

/// Of each the median, in milliseconds; the last is the floor: our program that only says its version.
fn times(peers: &[Peer]) -> Vec<f64> {
    let mut times = vec![vec![]; peers.len() + 1];
    for _ in 0..ROUNDS {
        for (peer, times) in peers.iter().zip(&mut times) {
            times.push(timed(|| peer.run(&[])));
        }
        let version = || Command::new(longhaul_program()).arg("--version").output();
        times[peers.len()].push(timed(|| drop(version().expect("a process"))));
    }
    times.into_iter().map(|times| median(times).as_secs_f64() * 1e3).collect()
}

fn timed(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|one, other| one.partial_cmp(other).expect("numbers"));
    values[values.len() / 2]
}

/// Of each the median of the most memory that a process of it had, in MB.
fn memory(peers: &[Peer], folder: &Path) -> Vec<f64> {
    let file = folder.join("memory");
    let most = |peer: &Peer| {
        let name = file.to_str().expect("a path in UTF-8");
        peer.run(&["/usr/bin/time", "--format=%M", "--output", name]);
        let kilobytes = std::fs::read_to_string(&file).expect("a figure");
        kilobytes.trim().parse::<f64>().expect("a number") / 1e3
    };
    let mut figures = vec![vec![]; peers.len()];
    for _ in 0..MEMORY_ROUNDS {
        for (peer, figures) in peers.iter().zip(&mut figures) {
            figures.push(most(peer));
        }
    }
    figures.into_iter().map(median).collect()
}

fn report(peers: &[Peer], times: &[f64], memory: &[f64], bodies: &[f64]) {
    for (place, peer) in peers.iter().enumerate() {
        let (time, memory, body) = (times[place], memory[place], bodies[place]);
        println!(
            "{:<56} {time:>9.1} ms {memory:>9.1} MB {body:>9.0} B",
            format!("one turn of {}", peer.name)
        );
    }
    println!("{:<56} {:>9.1} ms", "longhaul --version", times[peers.len()]);
    let least = |figures: &[f64]| figures[1..peers.len()].iter().copied().fold(f64::INFINITY, f64::min);
    figure("one turn, of the time of the fastest other", times[0] / least(times), 0.07);
    figure("its memory, of that of the smallest other", memory[0] / least(memory), 0.16);
    figure("its first request, of 12 KB", bodies[0] / BODY, 1.0);
}

fn figure(name: &str, against: f64, target: f64) {
    let verdict = if against <= target { "met" } else { "MISSED" };
    println!("{name:<56} {:>12}   {against:>8.3}   target ≤ {target:<5.3} {verdict}", "");
}
