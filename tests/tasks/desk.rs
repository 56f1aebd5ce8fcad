//! A home with sessions, tasks and questions in it.

#[path = "../desk.rs"]
mod plain;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime};

use longhaul_agent::keeper::{FORMAT, Spec};
use longhaul_journal::{Append, Blob, Journal, accept, name_session, resolve};
use longhaul_protocol::{
    At, AttemptEnded, AttemptId, AttemptStarted, Block, CallId, InboxRecord, Input, InputId, InputTaken,
    Item, JoinMode, Question, QuestionId, QuestionKind, SessionCreated, SessionId, SessionRecord,
    StepStarted, StreamName, TaskId, TaskStarted, TurnStarted,
};
use longhaul_testkit::{broken_rules, records_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) use plain::{Desk, told};

/// How long a test waits before it gives up. One of them prints a gigabyte.
const TEST_TIMEOUT: Duration = Duration::from_secs(240);
/// Prints a line, and another one when the test says so.
pub(crate) const WAITS: &str = "echo begun; while [ ! -e go.txt ]; do sleep 0.02; done; echo the end";

impl Desk {
    /// All records of a session, which break no rule.
    pub(crate) fn sound_records(&self, key: &str) -> Vec<SessionRecord> {
        let records = self.with_journal(|journal| async move {
            let id = resolve(&*journal, key).await.unwrap().id;
            records_of(&*journal, id).await
        });
        assert_eq!(broken_rules(&records), Vec::<String>::new(), "{key}");
        records.iter().map(|record| SessionRecord::decode(record).unwrap()).collect()
    }

    pub(crate) fn let_go(&self) {
        std::fs::write(self.path("work/go.txt"), "").unwrap();
    }

    /// Adds records to a session, which begins with them if it has none.
    pub(crate) fn record(&self, key: &str, facts: Vec<SessionRecord>, blobs: Vec<Blob>) -> SessionId {
        self.with_journal(|journal| async move {
            let id = name_session(&*journal, key).await.unwrap();
            let stream = StreamName::session(id);
            let lease = journal.acquire_lease(&stream).await.unwrap();
            let mut append = Append::under(&lease);
            if journal.head(&stream).await.unwrap().seq == 0 {
                let created = SessionCreated {
                    id,
                    key: key.to_owned(),
                    work_dir: Some(self.path("work").display().to_string()),
                    origin: None,
                    parent: None,
                    version: "0.0.0".to_owned(),
                };
                append = append.record(SessionRecord::SessionCreated(created).encode());
            }
            for fact in facts {
                append = append.record(fact.encode());
            }
            append = blobs.into_iter().fold(append, Append::blob);
            journal.append(append).await.unwrap();
            journal.release_lease(&lease).await.unwrap();
            id
        })
    }

    /// A command that a keeper has, on record as a task of this session.
    pub(crate) fn task(&self, key: &str, command: &str) -> TaskId {
        let started = TaskStarted {
            task_id: CallId::generate().into(),
            command: command.to_owned(),
            description: format!("a task of {key}"),
            target: "local".to_owned(),
            started_at: Some(now()),
            session: None,
        };
        let id = started.task_id;
        let session = self.record(key, vec![SessionRecord::TaskStarted(started)], vec![]);
        self.tasks().start(&self.spec(id, session, command)).unwrap();
        id
    }

    fn spec(&self, task_id: TaskId, session: SessionId, command: &str) -> Spec {
        Spec {
            bounds: None,
            relay: false,
            format: FORMAT,
            task_id,
            command: command.to_owned(),
            work_dir: self.path("work"),
            environment: std::env::vars().filter(|(name, _)| name == "PATH").collect(),
            output_cap: 1 << 20,
            max_runtime_s: None,
            session: Some(session),
            description: None,
            target: "local".to_owned(),
            token_file: "../../run/token".to_owned(),
        }
    }

    /// A session whose turn waits for the answer whether a command may run.
    pub(crate) fn asked(&self, key: &str, command: &str) -> QuestionId {
        let (input, question) = (InputId::generate(), QuestionId::generate());
        let (attempt, call) = (AttemptId::generate(), CallId::generate());
        let text = "go".to_owned();
        let accepted = Input::new(input, text.clone(), JoinMode::Join);
        let inbox_through = self.with_journal(|journal| async move {
            let session = name_session(&*journal, key).await.unwrap();
            accept(&*journal, session, InboxRecord::Input(accepted).encode()).await.unwrap()
        });
        let arguments = serde_json::json!({"command": command}).to_string();
        let name = "exec".to_owned();
        let item = Item::ToolCall { call, wire_id: None, name, arguments, signature: None };
        let mode = JoinMode::Join;
        let ended =
            AttemptEnded { attempt, kept: 1, stop: None, error: None, goes_on: false, too_long: None };
        let asked =
            Question { call: Some(call), ..Question::new(question, QuestionKind::Approval, "May exec run?") };
        let facts = vec![
            SessionRecord::InputTaken(InputTaken::of(Input::new(input, text, mode), inbox_through)),
            SessionRecord::TurnStarted(TurnStarted::new(1)),
            SessionRecord::StepStarted(StepStarted::new(1)),
            SessionRecord::AttemptStarted(AttemptStarted { attempt, model: "m".to_owned() }),
            SessionRecord::Block(Block { attempt, index: 0, item }),
            SessionRecord::AttemptEnded(ended),
            SessionRecord::Question(asked),
        ];
        self.record(key, facts, vec![]);
        question
    }
}

fn now() -> At {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    At(i64::try_from(since.as_millis()).unwrap())
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process whose standard output is read line by line.
pub(crate) struct Running {
    process: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let printed = BufReader::new(process.stdout.take().unwrap()).lines();
        let (send, lines) = channel();
        std::thread::spawn(move || printed.map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { process, lines }
    }

    pub(crate) fn line(&mut self) -> String {
        self.lines.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|error| panic!("no further line: {error}"))
    }

    /// The next event of this type.
    pub(crate) fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            let event: Value = serde_json::from_str(&self.line()).unwrap();
            if event["type"] == kind {
                return event;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// The exit code, and what stands on both outputs from here on.
    pub(crate) fn end(mut self) -> (i32, String, String) {
        let rest: String = self.lines.iter().map(|line| line + "\n").collect();
        let mut errors = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.process.wait().unwrap().code().unwrap_or(-1), rest, errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
