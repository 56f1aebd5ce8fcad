//! What lies between a model server and whoever watches: how late an event is, and what a long tool call costs. `scripts/bench`
//! runs it; the figures with their machine are in `docs/performance.md`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use longhaul_agent::{Config, Runtime, RuntimeBuilder, Watched};
use longhaul_model::Protocol;
use longhaul_protocol::EventKind;
use longhaul_testkit::wire::{MemoryTransport, Reply, Script, ScriptedAnswer};
use serde_json::{Value, json};

const DELTAS: usize = 3_000;
/// All deltas have this length, so that what has come says how many have.
const DELTA_BYTES: usize = 8;
const BETWEEN_DELTAS: Duration = Duration::from_millis(1);
const MEGABYTE: usize = 1_000_000;
const ARGUMENT_DELTA: usize = 10;
const ROUNDS: usize = 7;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(byte_to_watcher(&folder.path().join("deltas")));
    tokio.block_on(long_arguments(&folder.path().join("arguments")));
    size_of_the_program();
}

fn figure(name: &str, value: &str, against: f64, target: f64) {
    let verdict = if against <= target { "met" } else { "MISSED" };
    println!("{name:<56} {value:>12}   {against:>8.2}   target ≤ {target:<5} {verdict}");
}

/// A config for a model of this address.
fn config(folder: &Path, base_url: &str) -> Config {
    std::fs::create_dir_all(folder).expect("a folder");
    let mut config = Config::at(folder.join("home")).with_work_dir(folder);
    config.settings.model.name = "bench/m".to_owned();
    config.settings.model.base_url = Some(base_url.to_owned());
    config.settings.model.protocol = Some(Protocol::OpenaiChat);
    config.settings.model.context_window = Some(100_000_000);
    config
}

/// From the moment when a server hands a delta to the system to the moment when a watcher has the event.
async fn byte_to_watcher(folder: &Path) {
    let (written, times) = channel();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let serving = std::thread::spawn(move || serve_deltas(&listener, &written));
    let runtime = Runtime::open(config(folder, &base_url)).await.expect("a runtime");
    let session = runtime.session("deltas").await.expect("a session");
    let mut watcher = session.watch();
    let watching = tokio::spawn(async move {
        let (mut bytes, mut arrivals) = (0, Vec::with_capacity(DELTAS));
        while arrivals.len() < DELTAS {
            match watcher.next().await.expect("the runtime goes on") {
                Watched::Event(event) => {
                    if let EventKind::TextDelta { text } = event.kind {
                        let now = Instant::now();
                        bytes += text.len();
                        arrivals.resize((bytes / DELTA_BYTES).min(DELTAS), now);
                    }
                }
                Watched::Missed { events, .. } => panic!("{events} events were missed"),
            }
        }
        arrivals
    });
    session.send("hello").await.expect("a turn");
    let arrivals = watching.await.expect("a watcher");
    serving.join().expect("a server");
    runtime.shutdown().await.expect("an end");
    let mut delays = delays(&times, &arrivals);
    delays.sort();
    for (name, place) in [("p50", DELTAS / 2), ("p99", DELTAS * 99 / 100)] {
        let microseconds = delays[place].as_secs_f64() * 1e6;
        println!("{:<56} {microseconds:>9.0} µs", format!("from a byte's arrival to its event, {name}"));
    }
}

fn delays(written: &Receiver<Instant>, arrivals: &[Instant]) -> Vec<Duration> {
    written.iter().zip(arrivals).map(|(sent, came)| came.saturating_duration_since(sent)).collect()
}

/// Answers one request with many deltas, and tells when each was written.
fn serve_deltas(listener: &TcpListener, written: &Sender<Instant>) {
    let (mut stream, _) = listener.accept().expect("a client");
    stream.set_nodelay(true).expect("a socket");
    read_request(&mut stream);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("a client");
    for number in 0..DELTAS {
        let text = format!("{number:0DELTA_BYTES$}");
        let frame = frame(&json!({"content": text}), &Value::Null);
        std::thread::sleep(BETWEEN_DELTAS);
        written.send(Instant::now()).expect("somebody counts");
        stream.write_all(&frame).expect("a client");
    }
    stream.write_all(&frame(&json!({}), &json!("stop"))).expect("a client");
    stream.write_all(b"data: [DONE]\n\n").expect("a client");
}

/// Reads a request to its end.
fn read_request(stream: &mut TcpStream) {
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
                return;
            }
        }
        let count = stream.read(&mut buffer).expect("a request");
        assert!(count > 0, "the client has gone");
        received.extend_from_slice(&buffer[..count]);
    }
}

fn frame(delta: &Value, finish: &Value) -> Vec<u8> {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"choices": [choice]})).into_bytes()
}

/// A turn that writes a file whose content the model dictates in small pieces.
async fn long_arguments(folder: &Path) {
    let mut times = [vec![], vec![]];
    for round in 0..ROUNDS {
        for (place, size) in [MEGABYTE, 2 * MEGABYTE].into_iter().enumerate() {
            times[place].push(dictation(&folder.join(format!("{round}-{size}")), size).await);
        }
    }
    let [one, two] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    let value = format!("{:.0} ms", one.as_secs_f64() * 1e3);
    println!("{:<56} {value:>12}", "a call with 1 MB of arguments, 10 bytes at a time");
    let value = format!("{:.0} ms", two.as_secs_f64() * 1e3);
    figure("the same with 2 MB", &value, two.as_secs_f64() / one.as_secs_f64(), 2.3);
}

/// The time of one turn whose call has so many bytes of arguments.
async fn dictation(folder: &Path, size: usize) -> Duration {
    let script = Script::list(vec![dictated(size), answer("Written.")]);
    let wire: Arc<MemoryTransport> = Arc::new(MemoryTransport::new(script));
    let config = config(folder, "https://model.test/v1");
    let runtime = RuntimeBuilder::new(config).transport(wire).open().await.expect("a runtime");
    let session = runtime.session("arguments").await.expect("a session");
    let began = Instant::now();
    let ended = session.send("write it").await.expect("a turn");
    let time = began.elapsed();
    assert_eq!(ended.text, "Written.");
    assert_eq!(std::fs::metadata(folder.join("long.txt")).expect("a file").len(), size as u64);
    runtime.shutdown().await.expect("an end");
    time
}

fn answer(text: &str) -> Reply {
    Reply::frames(ScriptedAnswer::text(text).frames(Protocol::OpenaiChat))
}

fn dictated(size: usize) -> Reply {
    let arguments = format!(r#"{{"path":"long.txt","content":"{}"}}"#, "a".repeat(size));
    let call = |call: Value| json!({"tool_calls": [call]});
    let begun = json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "write_file", "arguments": ""}});
    let mut frames = vec![frame(&call(begun), &Value::Null)];
    frames.extend(arguments.as_bytes().chunks(ARGUMENT_DELTA).map(|piece| {
        let piece = String::from_utf8_lossy(piece);
        frame(&call(json!({"index": 0, "function": {"arguments": piece}})), &Value::Null)
    }));
    frames.push(frame(&json!({}), &json!("tool_calls")));
    frames.push(b"data: [DONE]\n\n".to_vec());
    Reply::frames(frames)
}

fn size_of_the_program() {
    let program = std::fs::metadata(env!("CARGO_BIN_EXE_longhaul")).expect("the program");
    let megabytes = program.len() as f64 / 1e6;
    println!("{:<56} {megabytes:>9.1} MB", "the program");
}
