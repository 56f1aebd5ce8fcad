//! What the tests against installed programs share: where these programs are, and `longhaul serve` for them.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a server may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A file of what `scripts/peers` installs.
pub(crate) fn peer(path: &str) -> PathBuf {
    let cache = || match std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"),
    };
    let folder = std::env::var_os("LONGHAUL_PEERS").map(PathBuf::from);
    let file = folder.unwrap_or_else(|| cache().join("longhaul/peers")).join(path);
    assert!(file.exists(), "{} is missing: run scripts/peers", file.display());
    file
}

/// The lines that a process writes. All of them are read, so that it never waits for a reader.
pub(crate) fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    let output = BufReader::new(output).lines();
    std::thread::spawn(move || output.map_while(Result::ok).for_each(|line| drop(send.send(line))));
    lines
}

/// Starts `longhaul` with the arguments of `serve`, and returns once it listens: on this port, or on a free one if it is 0.
pub(crate) fn start_serve(longhaul: &mut Command, port: u16) -> (Child, u16) {
    longhaul.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
    let mut process = longhaul.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = lines_of(process.stderr.take().unwrap());
    let port = listening_port(&lines);
    (process, port)
}

/// Waits for the line that says where the server listens.
fn listening_port(lines: &Receiver<String>) -> u16 {
    let deadline = Instant::now() + START_TIMEOUT;
    let mut printed = Vec::new();
    loop {
        let wait = deadline.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(wait).unwrap_or_else(|_| panic!("it does not listen: {printed:?}"));
        if let Some((_, port)) = line.split_once("listening on http://127.0.0.1:") {
            return port.trim_end_matches('/').parse().unwrap();
        }
        printed.push(line);
    }
}
