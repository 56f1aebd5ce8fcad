//! The trait [`Tool`], for the runtime that calls it.
//!
//! A call has two halves, because what will happen must be on record before it happens. [`Tool::prepare`] parses the
//! arguments, resolves paths and computes what would be written, and changes nothing. The runtime then records the
//! call as started, with the hashes of a [`FileWrite`]. Only then does it run the prepared call.
//!
//! After a crash the runtime finds calls that started and did not finish, and asks [`Tool::resume`] about each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::{
    CallId, ChildSession, CommandReport, Effect, FileChange, FileSeen, FileWrite, Hash, ParentLink,
    PermissionMode, SessionId, SkillShown, TaskEnded, TaskId, TaskNews, TaskStarted, Todo, ToolSchema,
    ToolStarted,
};
use serde_json::Value;
use tokio::sync::watch;

use crate::blocking_run::{CancelFlag, run_cancellable};
use crate::{CallLine, SubagentStatus, UserQuestion};

/// A tool that the model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The description for the model and `docs/tools.md`. It never changes while the tool is offered.
    fn definition(&self) -> &ToolDefinition;

    /// Checks a call and works out what it would do, without changing anything. An error is the result that the model
    /// reads.
    async fn prepare(&self, call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome>;

    /// Finds out what became of a call that started before a crash.
    async fn resume(&self, _call: &ToolInvocation, started: &ToolStarted) -> ResumedCall {
        match started.effect {
            Effect::Read | Effect::Idempotent => ResumedCall::RunAgain,
            Effect::CheckedWrite | Effect::Command | Effect::Unknown => ResumedCall::Unknown(
                "the runtime ended while this was running; it may or may not have happened".to_owned(),
            ),
        }
    }
}

/// The description of a tool.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    pub name: Cow<'static, str>,
    /// For the model.
    pub description: Cow<'static, str>,
    /// What it may change.
    pub effect: Effect,
    pub schema: Value,
    /// For users, one line each.
    pub limits: &'static [&'static str],
    /// Arguments that show how to call it, as JSON.
    pub example: &'static str,
}

impl ToolDefinition {
    /// The tool as it is recorded and sent to a model.
    pub fn to_schema(&self) -> ToolSchema {
        ToolSchema {
            name: self.name.to_string(),
            description: self.description.to_string(),
            parameters: self.schema.clone(),
        }
    }
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct ToolInvocation {
    pub id: CallId,
    pub session: SessionId,
    /// Exactly as the model wrote them.
    pub arguments: String,
    /// By canonical path, the hash of each whole file as the model last saw it.
    pub seen: Arc<HashMap<String, Hash>>,
    /// How much output the model may read at once. Longer output is truncated to its head and tail.
    pub output_limit: OutputLimit,
    /// The session's tasks, the oldest first: all that run, and the newest of those that have ended.
    pub tasks: Arc<[SessionTask]>,
    /// Where its command runs.
    pub confinement: Confinement,
    /// The folders of the skills in use, by canonical path. Its command may read them, and may not write them.
    pub skill_folders: Arc<[PathBuf]>,
    /// Which URLs it may follow a redirect to.
    pub may_fetch: UrlPermission,
    /// The turn that it belongs to.
    pub turn: CallingTurn,
}

/// The turn that a call belongs to, for a tool that starts a session.
#[derive(Debug, Clone)]
pub struct CallingTurn {
    /// Its number.
    pub number: u64,
    /// Billionths of a US dollar that it may cost with everything that it starts, as its schedule says.
    pub max_cost_nano: Option<u64>,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The model of the session, if it has one of its own.
    pub model: Option<String>,
    /// The parent of the session, if it is a subagent itself.
    pub parent: Option<Arc<ParentLink>>,
    /// The subagent that the start of the call names, if it started before a crash.
    pub child: Option<ChildSession>,
}

impl Default for CallingTurn {
    /// A turn that may do nothing without asking.
    fn default() -> Self {
        Self {
            number: 0,
            max_cost_nano: None,
            mode: PermissionMode::Ask,
            model: None,
            parent: None,
            child: None,
        }
    }
}

/// Whether a URL may be fetched without asking the user. A page redirects where it likes, and the user's rules are about hosts.
#[derive(Clone)]
pub struct UrlPermission(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl UrlPermission {
    pub fn new(allows: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(allows))
    }

    pub fn allows(&self, url: &str) -> bool {
        (self.0)(url)
    }
}

impl Default for UrlPermission {
    /// No other host.
    fn default() -> Self {
        Self::new(|_| false)
    }
}

impl std::fmt::Debug for UrlPermission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UrlPermission")
    }
}

/// Where the command of a call runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confinement {
    /// In the sandbox, as the config says.
    #[default]
    Sandbox,
    /// Outside of it, as the call's second run: the sandbox refused the first one, and the user said yes to this one.
    Outside,
}

impl ToolInvocation {
    /// A new call of a session with these arguments. The model has seen no file, and there are no tasks and no skills.
    pub fn new(session: SessionId, arguments: impl Into<String>) -> Self {
        Self {
            id: CallId::generate(),
            session,
            arguments: arguments.into(),
            seen: Arc::default(),
            output_limit: OutputLimit::default(),
            tasks: Arc::default(),
            confinement: Confinement::default(),
            skill_folders: Arc::default(),
            may_fetch: UrlPermission::default(),
            turn: CallingTurn::default(),
        }
    }

    pub fn task(&self, id: TaskId) -> Option<&SessionTask> {
        self.tasks.iter().find(|task| task.started.task_id == id)
    }

    /// Running tasks of the session, as far as its records say.
    pub fn running(&self) -> usize {
        self.tasks.iter().filter(|task| task.ended.is_none()).count()
    }
}

/// A task of the session, as its records have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTask {
    pub started: TaskStarted,
    /// Once its end is on record.
    pub ended: Option<TaskEnded>,
    /// What the model has been told of it.
    pub told: Option<TaskNews>,
    /// Whether it seems to wait for input.
    pub is_waiting: bool,
    /// How the subagent is doing, if it is one and was asked about.
    pub subagent: Option<SubagentStatus>,
    /// The other node that has the command, where several share the journal.
    pub other_node: Option<String>,
}

impl From<TaskStarted> for SessionTask {
    /// A task without any other record.
    fn from(started: TaskStarted) -> Self {
        Self { started, ended: None, told: None, is_waiting: false, subagent: None, other_node: None }
    }
}

/// Removes secrets from a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// How much output the model may read at once. Longer output is truncated to its head and tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimit {
    pub lines: usize,
    pub bytes: usize,
}

impl Default for OutputLimit {
    fn default() -> Self {
        Self { lines: 2_000, bytes: 32 << 10 }
    }
}

/// A call that was checked and can run.
pub struct PreparedCall {
    /// The file that it will write.
    pub write: Option<FileWrite>,
    /// All files that it will change, in this order, if it may change several or remove one.
    pub writes: Vec<FileChange>,
    /// The folder of tasks that keeps its command.
    pub kept_in: Option<String>,
    /// The subagent that it will start.
    pub child: Option<ChildSession>,
    /// Its own time limit, in place of the general one.
    pub takes_up_to: Option<Duration>,
    /// Why the user has to agree first, whatever the approval rules say.
    pub caution: Option<String>,
    /// The change that it will make to files, as a unified diff for people.
    pub diff: Option<String>,
    /// What the user is asked. The answer is the result of the call, which is then never run.
    pub question: Option<UserQuestion>,
    pub run: RunCall,
}

/// The second half of a call. It may be dropped at any await point; a tool that must not be interrupted moves its work
/// to a thread of its own.
pub type RunCall = Box<dyn FnOnce(StopSignal) -> Pin<Box<dyn Future<Output = ToolOutcome> + Send>> + Send>;

impl PreparedCall {
    /// A call that writes no file.
    pub fn new<F>(run: impl FnOnce(StopSignal) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ToolOutcome> + Send + 'static,
    {
        Self {
            write: None,
            writes: Vec::new(),
            kept_in: None,
            child: None,
            takes_up_to: None,
            caution: None,
            diff: None,
            question: None,
            run: Box::new(|stop| Box::pin(run(stop))),
        }
    }

    /// A call that only reads, on a thread of its own, until it is cancelled.
    pub(crate) fn cancellable(work: impl FnOnce(&CancelFlag) -> ToolOutcome + Send + 'static) -> Self {
        Self::new(move |stop| run_cancellable(stop, work))
    }

    /// Sets the file that the call writes.
    #[must_use]
    pub fn writing(self, write: FileWrite) -> Self {
        Self { write: Some(write), ..self }
    }

    /// Sets the files that the call changes.
    #[must_use]
    pub fn changing(self, writes: Vec<FileChange>) -> Self {
        Self { writes, ..self }
    }

    /// Sets the time limit.
    #[must_use]
    pub fn taking_up_to(self, time: Duration) -> Self {
        Self { takes_up_to: Some(time), ..self }
    }

    /// Sets why the user has to agree first.
    #[must_use]
    pub fn with_caution(self, caution: Option<String>) -> Self {
        Self { caution, ..self }
    }

    /// Sets the change that the call makes to files.
    #[must_use]
    pub fn with_diff(self, diff: Option<String>) -> Self {
        Self { diff, ..self }
    }

    /// Sets what the user is asked.
    #[must_use]
    pub fn asking(self, question: UserQuestion) -> Self {
        Self { question: Some(question), ..self }
    }

    /// Sets the subagent that the call starts.
    #[must_use]
    pub fn starting(self, child: ChildSession) -> Self {
        Self { child: Some(child), ..self }
    }

    /// Sets the folder of tasks that keeps its command.
    #[must_use]
    pub fn kept_in(self, tasks: &str) -> Self {
        Self { kept_in: Some(tasks.to_owned()), ..self }
    }
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutcome {
    /// For the model.
    pub content: String,
    pub is_error: bool,
    /// Images for the model.
    pub images: Vec<ToolImage>,
    /// The complete output, where `content` has only its head and tail.
    pub whole: Option<Vec<u8>>,
    /// The file that the model has now seen.
    pub seen: Option<FileSeen>,
    /// The skill whose file the model has now seen.
    pub skill: Option<SkillShown>,
    /// The new todo list.
    pub todo: Option<Vec<Todo>>,
    /// The task as which its command goes on.
    pub task: Option<TaskStarted>,
    /// The end of the subagent that it waited for.
    pub ended: Option<TaskEnded>,
    /// What the model now knows of a task.
    pub news: Option<TaskNews>,
    /// The change that the call made to files, as a unified diff for people.
    pub diff: Option<String>,
    /// Lines of the complete output, where `content` has only its head and tail.
    pub lines: Option<u64>,
    /// How the command or the task is doing. The head of `content` says the same.
    pub report: CommandReport,
    /// The command failed in the sandbox, and its output looks as if the sandbox was the reason.
    pub refusal: Option<SandboxRefusal>,
}

/// What the sandbox has probably refused to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRefusal {
    pub access: RefusedAccess,
    /// The line of the command's output that says so. The command chose these words.
    pub line: String,
}

/// What a command may not reach in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedAccess {
    /// A file, or an operation of the system.
    Files,
    Network,
}

impl ToolOutcome {
    /// A success.
    pub fn ok(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// A failure, with the reason for the model.
    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, ..Self::default() }
    }
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolImage {
    /// Such as `image/png`.
    pub media: String,
    pub bytes: Vec<u8>,
}

/// What became of a call that a crash interrupted.
#[allow(clippy::large_enum_variant, reason = "there is one a call, and it is taken apart at once")]
pub enum ResumedCall {
    /// It ended.
    Finished(ToolOutcome),
    /// It did not happen, or does no harm twice: prepare and run it again.
    RunAgain,
    /// It is still running: wait for it.
    Running {
        run: RunCall,
        /// The tool's own time limit, if it is longer than that of other tools.
        takes_up_to: Option<Duration>,
    },
    /// It may or may not have happened; this is what is known.
    Unknown(String),
}

/// Tells a running call to stop, and lets it reach its session.
#[derive(Debug, Clone)]
pub struct StopSignal {
    asked: watch::Receiver<bool>,
    line: CallLine,
}

/// Stops the call that has the [`StopSignal`].
#[derive(Debug)]
pub struct StopHandle(watch::Sender<bool>);

impl StopSignal {
    pub fn pair() -> (StopHandle, Self) {
        let (sender, asked) = watch::channel(false);
        (StopHandle(sender), Self { asked, line: CallLine::default() })
    }

    /// The signal for a call that can reach its session.
    #[must_use]
    pub fn with_line(self, line: CallLine) -> Self {
        Self { line, ..self }
    }

    /// The line from the call to its session.
    pub fn line(&self) -> &CallLine {
        &self.line
    }

    /// Waits until the call should stop; for ever, if its [`StopHandle`] was dropped.
    pub async fn asked(&mut self) {
        if self.asked.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl StopHandle {
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}
