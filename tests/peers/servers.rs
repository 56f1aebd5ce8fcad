//! The servers of other people, each started by the test that needs it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::installed::peer;

pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// How long a test waits before it gives up; nothing depends on it but how soon a failure is told.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Starts what follows it, and ends it when standard input ends: also when the test was killed and nothing of it runs any more.
const UNTIL_STDIN_ENDS: &str = r#"exec 3<&0; "$@" </dev/null 3<&- & server=$!; (cat <&3; kill -9 $server) 2>/dev/null & wait $server 2>/dev/null"#;

/// A server on loopback that ends with its test.
pub(crate) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// A judge that now and then fails, cuts a stream, stalls or hangs up.
    pub(crate) fn judge() -> Self {
        let port = free_port();
        let faults = [
            ["--error-rate", "429=0.1"],
            ["--error-rate", "503=0.05"],
            ["--stream-fault", "truncate=0.05"],
            ["--stream-fault", "disconnect=0.05"],
            ["--stream-fault", "stall=0.03"],
        ];
        // A call that was complete when the stream broke is run, not asked for again; the judge would take that for half an answer.
        let plain = ["--tool-mode", "off", "--response-style", "varied"];
        let mut command = Command::new(peer("python/bin/llmock"));
        command.args(["serve", "--log-level", "warning", "--stream-stall-seconds", "60"]);
        command.arg(format!("--port={port}")).args(faults.as_flattened()).args(plain);
        Self::start(&command, port, "/health")
    }

    /// A server that answers as these fixtures say, in all four formats.
    pub(crate) fn scripted(fixtures: &Path) -> Self {
        let port = free_port();
        let mut command = Command::new(peer("aimock/node_modules/.bin/node"));
        command.arg(peer("aimock/node_modules/.bin/llmock"));
        command.arg(format!("--port={port}")).arg("--fixtures").arg(fixtures);
        Self::start(&command, port, "/health")
    }

    /// A real model.
    pub(crate) fn small_model() -> Self {
        let port = free_port();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/small_model.py");
        let mut command = Command::new(peer("python/bin/python"));
        command.arg(program).arg(peer("model/smollm2.gguf")).arg(port.to_string());
        Self::start(&command, port, "/health")
    }

    /// A server of MCP made with a framework.
    pub(crate) fn mcp_framework() -> Self {
        let port = free_port();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/mcp_framework_server.py");
        let mut command = Command::new(peer("mcp-framework/bin/python"));
        command.arg(program).args(["http", &port.to_string()]);
        Self::start_and_wait(&command, port, |server| server.get("/mcp").is_some())
    }

    fn start(command: &Command, port: u16, ready: &str) -> Self {
        Self::start_and_wait(command, port, |server| {
            server.get(ready).is_some_and(|(status, _)| status == 200)
        })
    }

    fn start_and_wait(command: &Command, port: u16, is_ready: impl Fn(&Self) -> bool) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", UNTIL_STDIN_ENDS, "sh"]).arg(command.get_program()).args(command.get_args());
        let process =
            shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut server = Self { process, port };
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !is_ready(&server) {
            let ended = server.process.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "no {command:?} at {port}: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it says to a question that must have an answer.
    pub(crate) fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path).unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// The status and the body of an answer, if one comes. HTTP/1.0 has no chunks to put together.
    fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(TEST_TIMEOUT)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8(answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }
}

/// A test that fails leaves nobody behind.
impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
