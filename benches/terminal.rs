//! What a terminal costs whoever sits at it: how soon a key is seen, what streaming and waiting take of a core, how much memory is
//! held, and how soon there is a prompt. `scripts/bench` runs it; the figures with their machine are in `docs/performance.md`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use longhaul_journal::{Home, Journal as _, SqliteJournal};
use longhaul_testkit::{Terminal, repeat_turn};
use serde_json::{Value, json};

const KEYS: usize = 600;
/// So many keys are typed before the line is emptied again.
const LINE: usize = 30;
/// From key to key, as fast people type; it moves against the frames, so that each part of one is met.
const BETWEEN_KEYS: Duration = Duration::from_millis(13);
const FAST: usize = 1_000;
const USUAL: usize = 100;
const STREAMED: Duration = Duration::from_secs(20);
const IDLE: Duration = Duration::from_secs(10);
const STARTS: usize = 15;
/// Turns of the session that is opened again, and how many of them its newest compaction left.
const PAST_TURNS: u64 = 10_000;
const TURNS_OF_EPOCH: u64 = 100;
/// Files of the repository in which a path is typed, and the folders that they are in.
const FILES: usize = 100_000;
const MODULES: usize = 500;
const MEGABYTE: usize = 1_000_000;

/// What the model says again and again: what people see of models.
const SAID: &str = "The parser reads `src/parse.rs` **line by line**, and each line is checked before it is taken. What is left of a \
line that broke off stays where it is until the rest of it comes.\n\n1. It never looks at the end of the file.\n2. Numbers may \
overflow, and nobody is told.\n3. A name may be empty.\n\n```rust\nfn parse(text: &str) -> Option<u64> {\n    // what is no number is \
none\n    let first = text.lines().next()?;\n    first.trim().parse().ok()\n}\n```\n\nSo there are three things to do, and each of them \
is small enough for one step.\n\n";

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if std::env::args().any(|argument| argument == "files") {
        return files(&folder.path().join("files"));
    }
    if std::env::args().any(|argument| argument == "start") {
        return start_to_prompt(&folder.path().join("start"));
    }
    start_to_prompt(&folder.path().join("start"));
    keys(&folder.path().join("keys"));
    streaming(&folder.path().join("stream"));
    idle(&folder.path().join("idle"));
    memory(&folder.path().join("memory"));
    files(&folder.path().join("files"));
}

fn figure(name: &str, value: &str, against: f64, target: f64) {
    let verdict = if against <= target { "met" } else { "MISSED" };
    println!("{name:<56} {value:>12}   {against:>8.2}   target ≤ {target:<5} {verdict}");
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The median, and the one that only a hundredth is beyond.
fn middle_and_late(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// A model server that says so many pieces a second until it is told to stop.
struct Speaking {
    address: String,
    speaks: Arc<AtomicBool>,
    said: Arc<AtomicUsize>,
}

impl Speaking {
    fn at(rate: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let (speaks, said) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (goes_on, counted) = (speaks.clone(), said.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (goes_on, counted) = (goes_on.clone(), counted.clone());
                std::thread::spawn(move || speak(stream, rate, &goes_on, &counted));
            }
        });
        Self { address, speaks, said }
    }

    fn said(&self) -> usize {
        self.said.load(Ordering::SeqCst)
    }

    fn stop(&self) {
        self.speaks.store(false, Ordering::SeqCst);
    }
}

/// Answers one request. Whatever is due is sent at once, so the rate holds however late this thread wakes up.
fn speak(mut stream: TcpStream, rate: usize, goes_on: &AtomicBool, counted: &AtomicUsize) {
    let Some(request) = read_request(&mut stream) else { return };
    if !request.starts_with("POST ") {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        return;
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    if stream.set_nodelay(true).and_then(|()| stream.write_all(head.as_bytes())).is_err() {
        return;
    }
    let mut pieces = SAID.split_inclusive(' ').cycle();
    let (began, mut sent) = (Instant::now(), 0);
    let between = Duration::from_secs(1) / u32::try_from(rate).expect("a small number");
    while goes_on.load(Ordering::SeqCst) {
        std::thread::sleep(between);
        while (sent as f64) < began.elapsed().as_secs_f64() * rate as f64 {
            let piece = pieces.next().expect("it has no end");
            if stream.write_all(&frame(&json!({"content": piece}), &Value::Null)).is_err() {
                return;
            }
            sent += 1;
            counted.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _ = stream.write_all(&frame(&json!({}), &json!("stop")));
    let _ = stream.write_all(b"data: [DONE]\n\n");
}

/// Reads a request to its end, and returns its head.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut received = Vec::new();
    let mut buffer = [0; 65_536];
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(head.to_owned());
            }
        }
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        received.extend_from_slice(&buffer[..count]);
    }
}

fn frame(delta: &Value, finish: &Value) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"choices": [choice]})).into_bytes()
}

/// The program with a home in this folder, and this model.
fn program(folder: &Path, model: &str, config: &str) -> Command {
    let (home, work) = (folder.join("home"), folder.join("work"));
    std::fs::create_dir_all(&home).expect("a folder");
    std::fs::create_dir_all(&work).expect("a folder");
    std::fs::write(home.join("config.toml"), config).expect("a config");
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command
        .args(["--model", model])
        .current_dir(work)
        .env("LONGHAUL_HOME", home)
        .env("TERM", "xterm-256color")
        .env("no_proxy", "127.0.0.1")
        .env_remove("NO_COLOR")
        .env_remove("LONGHAUL_MODEL");
    command
}

/// The program with a model that answers with this text at once.
fn scripted(folder: &Path, answer: &str) -> Command {
    std::fs::create_dir_all(folder).expect("a folder");
    let script = folder.join("script.json");
    std::fs::write(&script, json!([answer]).to_string()).expect("a script");
    program(folder, &format!("scripted/{}", script.display()), "")
}

/// The program in a terminal, at its prompt; and the server that it talks to.
fn attended(folder: &Path, rate: usize) -> (Terminal, Speaking) {
    let speaking = Speaking::at(rate);
    let config = format!("[model]\nbase_url = \"{}\"\ncontext_window = 100000000\n", speaking.address);
    let mut terminal = Terminal::start(program(folder, "custom/m", &config));
    terminal.wait_for_row(">");
    (terminal, speaking)
}

fn start_to_prompt(folder: &Path) {
    let middle = median_start(folder, ">");
    println!("{:<56} {:>9.2} ms", "from the start to the prompt, a new session", milliseconds(middle));
    let mut terminal = Terminal::start(scripted(folder, "Done."));
    terminal.wait_for_row(">");
    terminal.keys("go\r");
    terminal.wait_for("Done.");
    terminal.wait_for_row(">");
    terminal.keys("\x04");
    terminal.wait();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let home = folder.join("home");
        let key = only_session(&home).await;
        repeat_turn(&home, &key, PAST_TURNS, Some(TURNS_OF_EPOCH)).await;
    });
    let middle = median_start(folder, "… 9,997 turns before");
    figure("the same with 10,000 turns, whose end is shown, ms", "median", milliseconds(middle), 10.0);
}

/// From the start of the program to its prompt, below a screen with this text.
fn median_start(folder: &Path, shown: &str) -> Duration {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let command = scripted(folder, "Done.");
        let began = Instant::now();
        let mut terminal = Terminal::start(command);
        terminal.wait_for(shown);
        terminal.wait_for_row(">");
        times.push(began.elapsed());
        terminal.keys("\x04");
        terminal.wait();
    }
    middle_and_late(times).0
}

/// The key of the one session in this home.
async fn only_session(home: &Path) -> String {
    let journal = SqliteJournal::open(&Home::existing(home).expect("a home")).await.expect("a journal");
    let sessions = journal.sessions(None, 2).await.expect("a list");
    let [session] = &sessions[..] else { panic!("{} sessions", sessions.len()) };
    journal.close().await;
    session.key.clone()
}

/// From the moment when a key is written into the terminal to the moment when it stands on the screen.
fn keys(folder: &Path) {
    let (mut terminal, speaking) = attended(folder, FAST);
    let (calm, calm_late) = middle_and_late(typed(&mut terminal));
    terminal.keys("go\r");
    while speaking.said() == 0 {
        terminal.watch_for(Duration::from_millis(10));
    }
    let (before, began) = (speaking.said(), Instant::now());
    let (busy, busy_late) = middle_and_late(typed(&mut terminal));
    let rate = (speaking.said() - before) as f64 / began.elapsed().as_secs_f64();
    speaking.stop();
    terminal.keys("at the end");
    terminal.wait_for_row("> at the end");
    for (name, time) in [("median", calm), ("p99", calm_late)] {
        println!(
            "{:<56} {:>9.2} ms",
            format!("a key is seen, nothing else happens, {name}"),
            milliseconds(time)
        );
    }
    println!(
        "{:<56} {:>9.2} ms",
        format!("the same at {rate:.0} pieces a second, median"),
        milliseconds(busy)
    );
    let (late, bound) = (milliseconds(busy_late), 16.0_f64.max(2.0 * milliseconds(calm_late)));
    figure("the same, p99, ms", &format!("{late:.2} ms"), late, (bound * 10.0).round() / 10.0);
}

fn typed(terminal: &mut Terminal) -> Vec<Duration> {
    let mut times = Vec::with_capacity(KEYS);
    let mut line = String::from("> ");
    while times.len() < KEYS {
        if line.len() == LINE {
            terminal.keys("\x15");
            line.truncate(2);
            terminal.wait_for_row(">");
        }
        let key = char::from(b'a' + u8::try_from(times.len() % 26).expect("a letter"));
        line.push(key);
        terminal.watch_for(BETWEEN_KEYS);
        let began = Instant::now();
        terminal.keys(&key.to_string());
        terminal.wait_for_row(&line);
        times.push(began.elapsed());
    }
    terminal.keys("\x15");
    terminal.wait_for_row(">");
    times
}

/// From a key of a path after `@` to the moment when the list shows its best match, in a repository of 100,000 files.
fn files(folder: &Path) {
    let command = scripted(folder, "Done.");
    for module in 0..MODULES {
        let path = folder.join(format!("work/crates/part_{module:03}/src"));
        std::fs::create_dir_all(&path).expect("a folder");
        for file in 0..FILES / MODULES {
            std::fs::write(path.join(format!("file_{module:03}_{file:03}.rs")), "").expect("a file");
        }
    }
    let needle = folder.join("work/crates/part_250/src/needle_in_haystack.rs");
    std::fs::write(needle, "").expect("a file");
    let mut terminal = Terminal::start(command);
    terminal.wait_for_row(">");
    let began = Instant::now();
    terminal.keys("@needle");
    terminal.wait_for_row("> crates/part_250/src/needle_in_haystack.rs");
    println!("{:<56} {:>9.2} ms", format!("{FILES} files are indexed"), milliseconds(began.elapsed()));
    terminal.keys("\x15");
    terminal.wait_for_row(">");
    let mut times = Vec::new();
    for _ in 0..20 {
        let mut line = String::from("> ");
        for key in "@crhaystack".chars() {
            line.push(key);
            terminal.watch_for(BETWEEN_KEYS);
            let began = Instant::now();
            terminal.keys(&key.to_string());
            terminal.wait_for_row(&line);
            times.push(began.elapsed());
        }
        terminal.wait_for_row("> crates/part_250/src/needle_in_haystack.rs");
        terminal.keys("\x15");
        terminal.wait_for_row(">");
    }
    let (middle, late) = middle_and_late(times);
    println!("{:<56} {:>9.2} ms", format!("a key after @ in {FILES} files, median"), milliseconds(middle));
    let late = milliseconds(late);
    figure("the same, p99, ms", &format!("{late:.2} ms"), late, 30.0);
}

/// What the program takes of a core while a model speaks as models do.
fn streaming(folder: &Path) {
    let (mut terminal, speaking) = attended(folder, USUAL);
    terminal.keys("go\r");
    while speaking.said() < USUAL {
        terminal.watch_for(Duration::from_millis(10));
    }
    let (before, said, began) = (processor_time(&terminal), speaking.said(), Instant::now());
    terminal.watch_for(STREAMED);
    let elapsed = began.elapsed().as_secs_f64();
    let share = (processor_time(&terminal) - before) / elapsed * 100.0;
    let rate = (speaking.said() - said) as f64 / elapsed;
    figure(&format!("% of a core, {rate:.0} pieces a second"), &format!("{share:.2} %"), share, 5.0);
    speaking.stop();
}

/// What it takes while nothing happens.
fn idle(folder: &Path) {
    let mut terminal = Terminal::start(scripted(folder, "Done."));
    terminal.wait_for_row(">");
    terminal.keys("go\r");
    terminal.wait_for_row("Done.");
    terminal.watch_for(Duration::from_secs(2));
    let (before, woken) = (run_time(&terminal), wakeups(&terminal));
    terminal.watch_for(IDLE);
    let share = (run_time(&terminal) - before) / IDLE.as_secs_f64() * 100.0;
    let woken = (wakeups(&terminal) - woken) as f64 / IDLE.as_secs_f64();
    figure("% of a core, nothing happens", &format!("{share:.3} %"), share, 0.1);
    println!("{:<56} {woken:>9.1} /s", "times that it wakes up meanwhile");
}

fn memory(folder: &Path) {
    let mut answer = String::with_capacity(MEGABYTE + SAID.len());
    while answer.len() < MEGABYTE {
        answer.push_str(SAID);
    }
    answer.push_str("That was all of it.\n");
    let mut terminal = Terminal::start(scripted(folder, &answer));
    terminal.wait_for_row(">");
    terminal.watch_for(Duration::from_secs(1));
    let most = |terminal: &Terminal| kilobytes(terminal, "VmHWM:") / 1e3;
    let idle = most(&terminal);
    figure("memory of an open terminal, MB", &format!("{idle:.1} MB"), idle, 50.0);
    let began = Instant::now();
    terminal.keys("go\r");
    terminal.wait_for_row("That was all of it.");
    let took = began.elapsed();
    let after = most(&terminal);
    figure("the same after an answer of 1 MB", &format!("{after:.1} MB"), after, 100.0);
    println!("{:<56} {:>9.0} ms", "until that is all on the screen", milliseconds(took));
}

/// Seconds of user and system time so far, in steps of a hundredth.
fn processor_time(terminal: &Terminal) -> f64 {
    let stat = read(terminal, "stat");
    let after_name = stat.rsplit_once(')').expect("the form of this file").1;
    let numbers: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |place: usize| numbers[place].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

/// Seconds that its threads have run, exactly; those that have ended are not counted.
fn run_time(terminal: &Terminal) -> f64 {
    let nanoseconds = |text: String| text.split_whitespace().next()?.parse::<f64>().ok();
    threads(terminal, "schedstat").into_iter().filter_map(nanoseconds).sum::<f64>() / 1e9
}

fn wakeups(terminal: &Terminal) -> u64 {
    let switches = |text: String| field(&text, "voluntary_ctxt_switches:")?.parse::<u64>().ok();
    threads(terminal, "status").into_iter().filter_map(switches).sum()
}

fn threads(terminal: &Terminal, file: &str) -> Vec<String> {
    let folder = format!("/proc/{}/task", terminal.process());
    let threads = std::fs::read_dir(folder).expect("a process").flatten();
    threads.filter_map(|thread| std::fs::read_to_string(thread.path().join(file)).ok()).collect()
}

fn kilobytes(terminal: &Terminal, name: &str) -> f64 {
    let status = read(terminal, "status");
    let value = field(&status, name).expect("its memory");
    value.trim_end_matches(" kB").parse().expect("a number")
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn read(terminal: &Terminal, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{}/{file}", terminal.process())).expect("a process")
}
