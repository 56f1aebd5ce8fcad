//! An agent that says what the test wants, in both revisions of the protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::Desk;

/// How long a test waits before it gives up.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct McpClient {
    process: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    last_id: u64,
    /// What came while the client waited for something else.
    pub(crate) seen: Vec<Value>,
}

#[allow(clippy::needless_pass_by_value, reason = "tests hand over messages that they make on the spot")]
impl McpClient {
    pub(crate) fn start(desk: &Desk) -> Self {
        let mut command = desk.command(&["mcp", "serve"]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        Self { process, input, messages, last_id: 0, seen: Vec::new() }
    }

    /// Sends a line as it is.
    pub(crate) fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// Sends a request, and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.send_line(message.to_string().as_bytes());
        self.last_id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send_line(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().as_bytes());
    }

    /// The result of a request, or its error.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.result(id)
    }

    /// A request of the stateless revision, from a client that knows tasks and forms.
    pub(crate) fn modern(&mut self, method: &str, mut params: Value) -> Result<Value, Value> {
        params["_meta"] = modern_meta();
        self.call(method, params)
    }

    /// The result of a tool, for a client without tasks.
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.call("tools/call", json!({"name": name, "arguments": arguments})).unwrap()
    }

    /// Waits for the answer to a request. It may have come while something else was waited for.
    pub(crate) fn result(&mut self, id: u64) -> Result<Value, Value> {
        let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        let early = self.seen.iter().find(|message| is_answer(message)).cloned();
        let answer = early.unwrap_or_else(|| self.wait_for(is_answer));
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Waits for a message, and keeps the others.
    pub(crate) fn wait_for(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self
                .messages
                .recv_timeout(TEST_TIMEOUT)
                .unwrap_or_else(|error| panic!("no message: {error}; {:#?}", self.seen));
            if is_wanted(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    /// Asks for a task of the stateless revision until it is as wanted.
    pub(crate) fn poll(&mut self, task: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            let found = self.modern("tasks/get", json!({"taskId": task})).unwrap();
            if is_wanted(&found) {
                return found;
            }
            assert!(Instant::now() < deadline, "{found}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The whole process ends at once.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        drop(self.input.take());
    }

    /// The client ends: it closes the server's input and waits for its end.
    pub(crate) fn close(mut self) -> ExitStatus {
        self.close_input();
        let deadline = Instant::now() + TEST_TIMEOUT;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A test that fails leaves no server behind.
impl Drop for McpClient {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a request of the stateless revision says about its client.
pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "builder", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities":
            {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    })
}

/// The parameters of `session_send`.
pub(crate) fn send(session: &str, text: &str, key: &str) -> Value {
    json!({"name": "session_send", "arguments": {"session": session, "text": text, "key": key}})
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
