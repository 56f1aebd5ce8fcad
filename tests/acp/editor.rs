//! An editor that says what the test wants and keeps what it gets.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::desk::Desk;

/// How long a test waits before it gives up.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Editor {
    process: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    last_id: u64,
    /// The updates and requests of the agent that came while the editor waited for something else.
    pub(crate) seen: Vec<Value>,
}

#[allow(clippy::needless_pass_by_value, reason = "tests hand over messages that they make on the spot")]
impl Editor {
    /// An editor that has started its agent.
    pub(crate) fn start(desk: &Desk) -> Self {
        Self::start_with(desk, &[])
    }

    pub(crate) fn start_with(desk: &Desk, arguments: &[&str]) -> Self {
        let mut command = desk.command(&[&["acp"], arguments].concat());
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

    /// An editor that has initialized its agent.
    pub(crate) fn ready(desk: &Desk) -> Self {
        let mut editor = Self::start(desk);
        editor.initialize(json!({}));
        editor
    }

    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        self.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).unwrap()
    }

    /// Sends a line as it is.
    pub(crate) fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    /// Sends a request, and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request of the agent.
    pub(crate) fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Chooses an option of a permission request.
    pub(crate) fn choose(&mut self, request: &Value, option: &str) {
        self.reply(request, json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    /// The result of a request, or its error.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.result(id)
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

    /// The next message, which must come.
    pub(crate) fn next(&self) -> Value {
        self.messages
            .recv_timeout(REPLY_TIMEOUT)
            .unwrap_or_else(|error| panic!("no message: {error}; {:#?}", self.seen))
    }

    /// Waits for a message, and keeps the others.
    pub(crate) fn wait_for(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            if is_wanted(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    pub(crate) fn wait_for_update(&mut self, kind: &str) -> Value {
        self.wait_for(|message| message["params"]["update"]["sessionUpdate"] == kind)["params"]["update"]
            .clone()
    }

    pub(crate) fn wait_for_question(&mut self) -> Value {
        self.wait_for(|message| message["method"] == "session/request_permission")
    }

    pub(crate) fn new_session(&mut self, folder: &Path) -> String {
        let opened = self.call("session/new", json!({"cwd": folder, "mcpServers": []})).unwrap();
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn load(&mut self, session: &str, folder: &Path) -> Result<Value, Value> {
        self.call("session/load", json!({"sessionId": session, "cwd": folder, "mcpServers": []}))
    }

    /// Sends a prompt, and returns the id of the request.
    pub(crate) fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.request("session/prompt", prompt(session, text))
    }

    /// Sends a prompt and waits for its end.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Result<Value, Value> {
        self.call("session/prompt", prompt(session, text))
    }

    /// The updates of this kind so far.
    pub(crate) fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The text of all chunks of this kind so far.
    pub(crate) fn text(&self, kind: &str) -> String {
        self.updates(kind)
            .iter()
            .map(|update| update["content"]["text"].as_str().unwrap_or_default())
            .collect()
    }

    pub(crate) fn answer_text(&self) -> String {
        self.text("agent_message_chunk")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Closes the agent's input.
    pub(crate) fn close(&mut self) {
        drop(self.input.take());
    }

    /// Bytes of memory that the agent has now.
    pub(crate) fn memory(&self) -> u64 {
        self.status_kib("VmRSS:") << 10
    }

    /// The most bytes of memory that the agent had.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.status_kib("VmHWM:") << 10
    }

    fn status_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// The editor dies: both ends of its pipes close.
    pub(crate) fn die(mut self) -> ExitStatus {
        self.close();
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + REPLY_TIMEOUT;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the agent does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A test that fails leaves no process behind.
impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + REPLY_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
