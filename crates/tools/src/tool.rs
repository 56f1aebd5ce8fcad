//! What a tool is, for the runtime that calls it.
//!
//! A call has two halves, because what will happen must be on record before it happens. [`Tool::prepare`] reads the
//! arguments, resolves paths and computes what would be written, and changes nothing. The runtime then records the
//! call as started, with the hashes of a [`FileWrite`]. Only then does it run what was prepared.
//!
//! After a crash the runtime finds calls that started and did not finish, and asks [`Tool::resume`] what became of them.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::{
    CallId, Effect, FileSeen, FileWrite, Hash, SessionId, TaskEnded, TaskId, TaskNews, TaskStarted, Todo,
    ToolStarted,
};
use serde_json::Value;
use tokio::sync::watch;

use crate::blocking::{CancelFlag, run_cancellable};

/// Something that the agent may do.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model and `docs/tools.md` are told of it. It never changes while the program runs.
    fn about(&self) -> &About;

    /// Checks a call and works out what it would do. Nothing is changed yet. An error is the result that the model reads.
    async fn prepare(&self, call: &Call) -> Result<Prepared, Finished>;

    /// Finds out what became of a call that was started before a crash.
    async fn resume(&self, _call: &Call, started: &ToolStarted) -> Resumed {
        match started.effect {
            Effect::Read | Effect::Idempotent => Resumed::RunAgain,
            Effect::CheckedWrite | Effect::Command | Effect::Unknown => Resumed::Unknown(
                "the runtime ended while this was running; it may or may not have happened".to_owned(),
            ),
        }
    }
}

/// What is known of a tool without calling it.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// What it may do to the world.
    pub effect: Effect,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// Its limits, for people, one line each.
    pub limits: &'static [&'static str],
    /// Arguments that show how it is used, as JSON.
    pub example: &'static str,
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    /// Our id of it.
    pub id: CallId,
    /// The session that it belongs to.
    pub session: SessionId,
    /// The arguments, exactly as the model wrote them.
    pub arguments: String,
    /// What the model has seen of files, by canonical path: the hash of the whole file as it was then.
    pub seen: Arc<HashMap<String, Hash>>,
    /// How much of an output the model gets to read.
    pub cap: Cap,
    /// The session's tasks, the oldest first: all that run, and the newest of those that have ended.
    pub tasks: Arc<[KnownTask]>,
}

impl Call {
    /// The task of this session with this id.
    pub fn task(&self, id: TaskId) -> Option<&KnownTask> {
        self.tasks.iter().find(|task| task.started.task_id == id)
    }

    /// How many of the session's tasks run, as far as is known.
    pub fn running(&self) -> usize {
        self.tasks.iter().filter(|task| task.ended.is_none()).count()
    }
}

/// A task of the session, as its records have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTask {
    /// What it is.
    pub started: TaskStarted,
    /// How it ended, once that is on record.
    pub ended: Option<TaskEnded>,
    /// How far the model has been told of it.
    pub told: Option<TaskNews>,
    /// Whether it seems to wait for input.
    pub is_waiting: bool,
}

impl From<TaskStarted> for KnownTask {
    /// One of which nothing else is on record.
    fn from(started: TaskStarted) -> Self {
        Self { started, ended: None, told: None, is_waiting: false }
    }
}

/// Takes what nobody should see out of a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// How much of an output the model gets to read at once. Head and tail of more than that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// Lines.
    pub lines: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Default for Cap {
    fn default() -> Self {
        Self { lines: 2_000, bytes: 32 << 10 }
    }
}

/// A call that was checked and can run.
pub struct Prepared {
    /// The file that will be written, if one will.
    pub write: Option<FileWrite>,
    /// The folder of tasks that its command is kept in, if it is one.
    pub kept_in: Option<String>,
    /// How long it may take, where that is not as long as any other.
    pub takes_up_to: Option<Duration>,
    /// Why a person has to agree first, whatever the approval rules say.
    pub caution: Option<String>,
    /// Does it.
    pub run: Run,
}

/// The second half of a call. It may be dropped at any await point; a tool that must not be cut short moves its work to
/// a thread of its own.
pub type Run = Box<dyn FnOnce(Stop) -> Pin<Box<dyn Future<Output = Finished> + Send>> + Send>;

impl Prepared {
    /// A call that writes no file.
    pub fn new<F>(run: impl FnOnce(Stop) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Finished> + Send + 'static,
    {
        Self {
            write: None,
            kept_in: None,
            takes_up_to: None,
            caution: None,
            run: Box::new(|stop| Box::pin(run(stop))),
        }
    }

    /// A call that only reads, on a thread of its own, until it is cancelled.
    pub(crate) fn cancellable(work: impl FnOnce(&CancelFlag) -> Finished + Send + 'static) -> Self {
        Self::new(move |stop| run_cancellable(stop, work))
    }

    /// The same, with the file that it writes.
    #[must_use]
    pub fn writing(self, write: FileWrite) -> Self {
        Self { write: Some(write), ..self }
    }

    /// The same, with how long it may take.
    #[must_use]
    pub fn taking_up_to(self, time: Duration) -> Self {
        Self { takes_up_to: Some(time), ..self }
    }

    /// The same, with why a person has to agree first, if there is a reason.
    #[must_use]
    pub fn with_caution(self, caution: Option<String>) -> Self {
        Self { caution, ..self }
    }

    /// The same, with the folder of tasks that its command is kept in.
    #[must_use]
    pub fn kept_in(self, tasks: &str) -> Self {
        Self { kept_in: Some(tasks.to_owned()), ..self }
    }
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// What the model reads.
    pub content: String,
    /// Whether it failed.
    pub is_error: bool,
    /// Pictures for the model.
    pub images: Vec<Picture>,
    /// The whole output, where `content` holds only its head and tail.
    pub whole: Option<Vec<u8>>,
    /// What the model has now seen of a file.
    pub seen: Option<FileSeen>,
    /// The todo list from here on.
    pub todo: Option<Vec<Todo>>,
    /// The task as which its command goes on.
    pub task: Option<TaskStarted>,
    /// What the model now knows of a task.
    pub news: Option<TaskNews>,
}

impl Finished {
    /// It worked.
    pub fn ok(content: impl Into<String>) -> Self {
        Self { content: content.into(), ..Self::default() }
    }

    /// It failed, and the model should know why.
    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, ..Self::default() }
    }
}

/// The bytes of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Its media type, such as `image/png`.
    pub media: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What became of a call that a crash left open.
#[allow(clippy::large_enum_variant, reason = "there is one a call, and it is taken apart at once")]
pub enum Resumed {
    /// It is known how it ended.
    Finished(Finished),
    /// It did not happen, or does no harm twice: prepare and run it again.
    RunAgain,
    /// It is still running: wait for it as if nothing had happened.
    Running(Run),
    /// Nobody can tell whether it happened; this is what is known.
    Unknown(String),
}

/// Tells a running call that nobody wants it any more.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

/// The other end of [`Stop`].
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stop {
    /// A pair of them.
    pub fn pair() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Self(receiver))
    }

    /// Waits until the call should stop; for ever, if nobody can say so any more.
    pub async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Stopper {
    /// Asks the call to stop.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}
