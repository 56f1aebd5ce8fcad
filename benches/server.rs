//! What HTTP adds, each figure against its floor in the same run: inputs against appends, followers against a watcher in the
//! process, a turn against `longhaul run`. `scripts/bench` runs it; the figures with their machine are in `docs/performance.md`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longhaul_agent::model::ScriptedModel;
use longhaul_agent::{Config, Runtime, Watched};
use longhaul_journal::{Append, Home, Journal, SqliteJournal};
use longhaul_protocol::{InboxRecord, Input, InputId, JoinMode, SessionId, StreamName};
use longhaul_server::{Scope, Server, ServerOptions, TokenStore};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: &str = "a-token-of-the-bench-0123456789abcdef";
const CONNECTIONS: usize = 16;
const INPUTS_EACH: usize = 60;
const TURNS: usize = 50;
const FOLLOWERS: usize = 1_000;
const ONE_SHOT_ROUNDS: usize = 15;
/// How long a part of the bench may take before it gives up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(async {
        accepted_inputs(&folder.path().join("inputs")).await;
        record_to_follower(&folder.path().join("latency")).await;
        many_followers(&folder.path().join("one"), 1).await;
        many_followers(&folder.path().join("many"), FOLLOWERS).await;
        one_shot(&folder.path().join("turn")).await;
    });
}

/// `longhaul serve` in a process of its own.
struct Serving {
    process: Child,
    port: u16,
}

impl Serving {
    /// The model plays these answers.
    async fn start(folder: &Path, answers: &str) -> Self {
        let script = write_script(folder, answers);
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .expect("a port")
            .port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(["--model", &format!("scripted/{}", script.display()), "serve", "--listen"])
            .arg(format!("127.0.0.1:{port}"))
            .env("LONGHAUL_HOME", folder.join("home"))
            .env("LONGHAUL_TOKEN", TOKEN)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let serving = Self { process: command.spawn().expect("the program"), port };
        let deadline = Instant::now() + GIVE_UP_AFTER;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(Instant::now() < deadline, "it does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        serving
    }

    /// Resident memory in MiB, and CPU time in seconds.
    fn usage(&self) -> (f64, f64) {
        let read = |name: &str| {
            std::fs::read_to_string(format!("/proc/{}/{name}", self.process.id())).unwrap_or_default()
        };
        let status = read("status");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: f64 =
            resident.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default();
        let stat = read("stat");
        let ticks: f64 = stat
            .rsplit(')')
            .next()
            .map(|rest| {
                rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum()
            })
            .unwrap_or_default();
        (kilobytes / 1024.0, ticks / 100.0)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn write_script(folder: &Path, answers: &str) -> PathBuf {
    std::fs::create_dir_all(folder).expect("a folder");
    let script = folder.join("script.json");
    std::fs::write(&script, answers).expect("a file");
    script
}

/// A script of so many short answers.
fn short_answers(many: usize) -> String {
    let answers = vec!["\"Done.\""; many].join(",");
    format!("[{answers}]")
}

/// A connection that stays open for further requests.
struct Connection(BufReader<TcpStream>);

impl Connection {
    async fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self(BufReader::new(stream))
    }

    /// Sends a request and reads the head of its answer. Returns the status and the length of the body.
    async fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, usize) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(request.as_bytes()).await.expect("a request");
        let (mut status, mut length) = (0, 0);
        loop {
            let line = self.line().await;
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().expect("a status");
            } else if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            } else if line.is_empty() {
                return (status, length);
            }
        }
    }

    /// A request whose answer has a length.
    async fn call(&mut self, method: &str, path: &str, body: &str) -> u16 {
        let (status, length) = self.ask(method, path, body).await;
        let mut rest = vec![0; length];
        self.0.read_exact(&mut rest).await.expect("a body");
        status
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).await.expect("a line");
        assert!(read > 0, "the connection ended");
        line.trim_end().to_owned()
    }

    /// The next event of a stream, as its JSON.
    async fn event(&mut self) -> String {
        loop {
            if let Some(data) = self.line().await.strip_prefix("data:") {
                return data.trim_start().to_owned();
            }
        }
    }
}

/// Inputs a second that are on disk when they are answered, against bare appends of the same records.
async fn accepted_inputs(folder: &Path) {
    let never = r#"[{"text": "late", "wait_ms": 600000}]"#;
    let serving = Serving::start(folder, never).await;
    let begun = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CONNECTIONS {
        let port = serving.port;
        clients.spawn(async move {
            let mut connection = Connection::open(port).await;
            let key = format!("bench-{client}");
            connection.call("POST", "/api/sessions", &format!("{{\"key\":\"{key}\"}}")).await;
            for _ in 0..INPUTS_EACH {
                let path = format!("/api/sessions/{key}/inputs");
                let status = connection.call("POST", &path, r#"{"text":"hello","mode":"after"}"#).await;
                assert_eq!(status, 202);
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.expect("a client");
    }
    let over_http = per_second(begun.elapsed());
    drop(serving);
    let floor = appends_per_second(&folder.join("floor")).await;
    println!(
        "accepted inputs, {CONNECTIONS} connections: {over_http:.0}/s over HTTP, {floor:.0}/s appends alone, {:.2} of the floor",
        over_http / floor
    );
}

fn per_second(took: Duration) -> f64 {
    (CONNECTIONS * INPUTS_EACH) as f64 / took.as_secs_f64()
}

async fn appends_per_second(folder: &Path) -> f64 {
    let home = Home::create(folder).expect("a home");
    let journal = Arc::new(SqliteJournal::open(&home).await.expect("a journal"));
    let begun = Instant::now();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let journal = journal.clone();
        writers.spawn(async move {
            let inbox = StreamName::inbox(SessionId::generate());
            for _ in 0..INPUTS_EACH {
                let input = Input::new(InputId::generate(), "hello", JoinMode::After);
                let record = InboxRecord::Input(input).encode();
                journal.append(Append::to(&inbox).record(record)).await.expect("an append");
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.expect("a writer");
    }
    let speed = per_second(begun.elapsed());
    journal.close().await;
    speed
}

/// From the moment at which a watcher in the process sees a committed record to its byte at a follower.
async fn record_to_follower(folder: &Path) {
    let script = ScriptedModel::from_json(&short_answers(TURNS)).expect("a script");
    let runtime = Runtime::with_model(Config::at(folder), Arc::new(script)).await.expect("a runtime");
    runtime.start().await.expect("a host");
    let mut tokens = TokenStore::default();
    tokens.insert("bench", Scope::Admin, TOKEN);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server =
        Server::start(listener, runtime.clone(), tokens, &ServerOptions::default()).expect("a server");
    let mut connection = Connection::open(server.address().port()).await;
    connection.call("POST", "/api/sessions", r#"{"key":"watched"}"#).await;
    let session = runtime.session("watched").await.expect("a session");
    let mut watcher = session.watch();
    let (status, _) = connection.ask("GET", "/api/sessions/watched/events", "").await;
    assert_eq!(status, 200);
    let followed = tokio::spawn(async move {
        let mut seen = Vec::new();
        loop {
            let event = connection.event().await;
            seen.extend(seq_of(&event).map(|seq| (seq, Instant::now())));
            if event.contains("\"turn_ended\"") && event.contains(&format!("\"turn\":{TURNS}")) {
                return seen;
            }
        }
    });
    let watched = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Some(watched) = watcher.next().await {
            if let Watched::Event(event) = watched {
                seen.extend(event.seq.map(|seq| (seq, Instant::now())));
            }
        }
        seen
    });
    for _ in 0..TURNS {
        session.send("go").await.expect("a turn");
    }
    let followed =
        tokio::time::timeout(GIVE_UP_AFTER, followed).await.expect("all records").expect("a follower");
    server.shutdown().await;
    runtime.shutdown().await.expect("the end");
    let watched: std::collections::HashMap<u64, Instant> =
        watched.await.expect("a watcher").into_iter().collect();
    let took = followed.iter().filter_map(|(seq, at)| Some(at.saturating_duration_since(*watched.get(seq)?)));
    let mut took: Vec<f64> = took.map(|took| took.as_secs_f64() * 1e3).collect();
    println!(
        "record to follower: p50 {:.2} ms, p99 {:.2} ms after a watcher in the process ({} records)",
        quantile(&mut took, 0.5),
        quantile(&mut took, 0.99),
        took.len()
    );
}

fn seq_of(event: &str) -> Option<u64> {
    let rest = event.split("\"seq\":").nth(1)?;
    rest.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// Milliseconds since a record was committed.
fn age_ms(event: &str) -> Option<f64> {
    let event: longhaul_protocol::Event = serde_json::from_str(event).ok()?;
    let at = event.seq.map(|_| event.at)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(now.as_secs_f64() * 1e3 - at.0 as f64)
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = ((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1));
    values.get(index).copied().unwrap_or(f64::NAN)
}

/// A thousand followers, spread over so many sessions, each of which has one turn.
async fn many_followers(folder: &Path, sessions: usize) {
    let serving = Serving::start(folder, &short_answers(1)).await;
    let mut control = Connection::open(serving.port).await;
    for session in 0..sessions {
        let status = control.call("POST", "/api/sessions", &format!("{{\"key\":\"s{session}\"}}")).await;
        assert_eq!(status, 201);
    }
    let (before, _) = serving.usage();
    let mut followers = tokio::task::JoinSet::new();
    let (ready, mut are_ready) = tokio::sync::mpsc::channel(FOLLOWERS);
    for follower in 0..FOLLOWERS {
        let (port, ready) = (serving.port, ready.clone());
        followers.spawn(async move {
            let mut connection = Connection::open(port).await;
            let path = format!("/api/sessions/s{}/events", follower % sessions);
            let (status, _) = connection.ask("GET", &path, "").await;
            assert_eq!(status, 200);
            ready.send(()).await.expect("a listener");
            let mut ages = Vec::new();
            loop {
                let event = connection.event().await;
                ages.extend(age_ms(&event));
                if event.contains("\"turn_ended\"") {
                    return ages;
                }
            }
        });
    }
    for _ in 0..FOLLOWERS {
        are_ready.recv().await.expect("a follower");
    }
    let (waiting, cpu_before) = serving.usage();
    let begun = Instant::now();
    for session in 0..sessions {
        let status =
            control.call("POST", &format!("/api/sessions/s{session}/inputs"), r#"{"text":"go"}"#).await;
        assert_eq!(status, 202);
    }
    let mut ages = Vec::new();
    let all = async {
        while let Some(followed) = followers.join_next().await {
            ages.extend(followed.expect("a follower"));
        }
    };
    tokio::time::timeout(GIVE_UP_AFTER, all).await.expect("every follower sees the end of its turn");
    let (after, cpu) = serving.usage();
    println!(
        "{FOLLOWERS} followers of {sessions} session(s): {:.1} MiB more for them, {:.1} MiB after the turn; {:.2} s of CPU in {:.2} s; p99 {:.0} ms from the record",
        waiting - before,
        after - before,
        cpu - cpu_before,
        begun.elapsed().as_secs_f64(),
        quantile(&mut ages, 0.99)
    );
}

/// A turn over HTTP, from the request to the end of the turn, against `longhaul run`.
async fn one_shot(folder: &Path) {
    let serving = Serving::start(folder, &short_answers(1)).await;
    let script = write_script(folder, &short_answers(1));
    let (mut over_http, mut by_run) = (Vec::new(), Vec::new());
    for round in 0..ONE_SHOT_ROUNDS {
        let begun = Instant::now();
        let mut control = Connection::open(serving.port).await;
        control.call("POST", "/api/sessions", &format!("{{\"key\":\"t{round}\"}}")).await;
        control.call("POST", &format!("/api/sessions/t{round}/inputs"), r#"{"text":"go"}"#).await;
        control.ask("GET", &format!("/api/sessions/t{round}/events?from=start"), "").await;
        while !control.event().await.contains("\"turn_ended\"") {}
        over_http.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        let status = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(["--model", &format!("scripted/{}", script.display()), "run", "go"])
            .env("LONGHAUL_HOME", folder.join("run-home"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.expect("the program").success());
        by_run.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let (http, run) = (quantile(&mut over_http, 0.5), quantile(&mut by_run, 0.5));
    println!("a turn: {http:.1} ms over HTTP, {run:.1} ms with `longhaul run`, {:.2} of it", http / run);
}
