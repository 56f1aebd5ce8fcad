//! Running the calls of an answer, and finding out what became of those that a crash left open.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the answer | the calls | they are run |
//! | `tool_started`, before or during the effect | the call, its effect, the hashes of the file that it writes | by effect: a read is run again; a write is compared with the file; a command is asked of its keeper; anything else is told as unknown |
//! | the effect | the same | the same: a write that happened is not done again, a command that ended is not started again |
//! | `tool_finished` | the result | nothing: it is never run again |

use std::collections::HashMap;
use std::time::Duration;

use longhaul_journal::Blob;
use longhaul_protocol::{
    BlobRef, CallId, Effect, FileWrite, Image, SessionRecord, ToolFinished, ToolStarted,
};
use longhaul_tools::{Call, Finished, Resumed, Run, Stop, cap};
use tokio::task::{self, JoinSet};

use crate::decide::Policy;
use crate::outputs;
use crate::state::CallState;
use crate::worker::{Attended, Heed, Stopped, Worker};

/// How long what must not be cut short may take when the runtime ends.
const GRACE: Duration = Duration::from_secs(3);
/// How much of an output is kept whole.
const LONGEST_WHOLE: usize = 16 << 20;
const CANCELLED: &str = "stopped: the turn was cancelled";

/// A call that is about to run, or that came to its result before it ran.
enum Ready {
    Run { effect: Effect, run: Run },
    Done(Finished),
}

/// Calls that are running, each with its effect.
type Running = HashMap<task::Id, (CallId, Effect, task::AbortHandle)>;

impl Worker {
    /// Brings these calls to their results, side by side. Each is on record before it runs, and each result as it comes.
    pub(crate) async fn run_tools(&mut self, ids: Vec<CallId>) -> Result<(), Stopped> {
        let (mut starts, mut ready) = (Vec::new(), Vec::new());
        for call in ids.iter().filter_map(|id| self.state.call(*id)).cloned().collect::<Vec<_>>() {
            let (start, next) = match &call.started {
                Some(started) => (None, self.resume(&call, started).await),
                None => self.prepare(&call).await,
            };
            starts.extend(start.map(SessionRecord::ToolStarted));
            ready.push((call.id, next));
        }
        self.commit(starts, vec![]).await?;

        let (stopper, stop) = Stop::pair();
        let mut tasks = JoinSet::new();
        let mut running = Running::new();
        for (id, next) in ready {
            match next {
                Ready::Done(finished) => self.finish(id, finished).await?,
                Ready::Run { effect, run } => {
                    let limit = (effect != Effect::Command).then_some(self.runtime.config.tool_time);
                    let handle = tasks.spawn(within(limit, run(stop.clone())));
                    running.insert(handle.id(), (id, effect, handle));
                }
            }
        }
        let mut heed = Heed::Cancel;
        while !running.is_empty() {
            let attended = {
                let next = std::pin::pin!(tasks.join_next_with_id());
                self.attend(&mut { next }, heed, None).await?
            };
            match attended {
                Attended::Done(Some(ended)) => self.ended(&mut running, ended).await?,
                Attended::Done(None) => break,
                Attended::Called => {
                    heed = Heed::Nothing;
                    stopper.stop();
                    abort(&running, |effect| Policy::only_looks(Some(effect)));
                }
                Attended::Suspended => return self.suspend_tools(tasks, running).await,
                Attended::Due => {}
            }
        }
        Ok(())
    }

    /// Commands stay with their keepers and reads are done again; what must not be cut short gets a moment.
    async fn suspend_tools(
        &mut self,
        mut tasks: JoinSet<Finished>,
        mut running: Running,
    ) -> Result<(), Stopped> {
        let can_wait = |effect| matches!(effect, Effect::Command | Effect::Read | Effect::Idempotent);
        abort(&running, can_wait);
        running.retain(|_, (_, effect, _)| !can_wait(*effect));
        let deadline = tokio::time::Instant::now() + GRACE;
        while !running.is_empty() {
            match tokio::time::timeout_at(deadline, tasks.join_next_with_id()).await {
                Ok(Some(ended)) => self.ended(&mut running, ended).await?,
                Ok(None) | Err(_) => break,
            }
        }
        Err(Stopped::Suspended)
    }

    async fn ended(
        &mut self,
        running: &mut Running,
        ended: Result<(task::Id, Finished), task::JoinError>,
    ) -> Result<(), Stopped> {
        let (id, finished) = match ended {
            Ok((id, finished)) => (id, finished),
            Err(error) if error.is_cancelled() => (error.id(), Finished::error(CANCELLED)),
            Err(error) => {
                (error.id(), Finished::error("the tool failed in a way that it should not: it panicked"))
            }
        };
        match running.remove(&id) {
            Some((call, _, _)) => self.finish(call, finished).await,
            None => Ok(()),
        }
    }

    /// Checks a call. What will happen is known after this, and nothing has happened.
    async fn prepare(&mut self, call: &CallState) -> (Option<ToolStarted>, Ready) {
        let Some(tool) = self.equipment.tools.get(&call.name).cloned() else {
            let content =
                format!("there is no tool {:?}; there are: {}", call.name, self.equipment.tools.names());
            return (None, Ready::Done(Finished::error(content)));
        };
        let effect = tool.about().effect;
        let asked = self.asked(call);
        let journal = &self.runtime.journal;
        if let Some(run) = outputs::read(&call.name, &asked, &self.state.outputs, journal) {
            return (Some(started(call, Effect::Read, None)), Ready::Run { effect: Effect::Read, run });
        }
        // In a task of its own, so that a panic is only its own.
        let prepared = tokio::spawn(async move { tool.prepare(&asked).await }).await;
        match prepared {
            Ok(Ok(prepared)) => {
                let started = started(call, effect, prepared.write);
                (Some(started), Ready::Run { effect, run: prepared.run })
            }
            Ok(Err(refused)) => (None, Ready::Done(refused)),
            Err(_) => (None, Ready::Done(Finished::error("the tool panicked; it was not run"))),
        }
    }

    /// Finds out what became of a call that started before a crash.
    async fn resume(&mut self, call: &CallState, started: &ToolStarted) -> Ready {
        let unknown = |known: &str| {
            Ready::Done(Finished::error(format!(
                "unknown: {known}. Find out what happened before doing it again."
            )))
        };
        if started.name == "read_file" && outputs::is_output(&call.arguments) {
            return self.again(call).await;
        }
        let Some(tool) = self.equipment.tools.get(&call.name).cloned() else {
            return unknown("the runtime ended while this was running, and the tool is not there any more");
        };
        let (asked, started) = (self.asked(call), started.clone());
        let effect = started.effect;
        let resumed = tokio::spawn(async move { tool.resume(&asked, &started).await }).await;
        match resumed {
            Ok(Resumed::Finished(finished)) => Ready::Done(finished),
            Ok(Resumed::Running(run)) => Ready::Run { effect, run },
            Ok(Resumed::RunAgain) => self.again(call).await,
            Ok(Resumed::Unknown(known)) => unknown(&known),
            Err(_) => unknown("the runtime ended while this was running, and asking for it panicked"),
        }
    }

    /// Runs a call that did not happen, or that does no harm twice; its start is on record.
    async fn again(&mut self, call: &CallState) -> Ready {
        if self.state.cancelled() {
            return Ready::Done(Finished::error(CANCELLED));
        }
        self.prepare(call).await.1
    }

    fn asked(&self, call: &CallState) -> Call {
        Call {
            id: call.id,
            arguments: call.arguments.clone(),
            seen: self.state.seen.clone(),
            cap: self.equipment.tools.cap,
        }
    }

    /// Records a result.
    async fn finish(&mut self, id: CallId, finished: Finished) -> Result<(), Stopped> {
        let Some(call) = self.state.call(id).cloned() else { return Ok(()) };
        let Finished { mut content, is_error, images, mut whole, seen, todo } = finished;
        if whole.is_none()
            && let Some(short) = cap(&content, self.equipment.tools.cap, id)
        {
            content.truncate(content.floor_char_boundary(LONGEST_WHOLE));
            whole = Some(std::mem::replace(&mut content, short).into_bytes());
        }
        if let Some(turn) = &self.state.turn {
            content = turn.repeats.told(&call.name, &call.arguments, content);
        }
        let pictures =
            images.iter().map(|picture| Image { data: BlobRef::to(&picture.bytes, &picture.media) });
        let fact = ToolFinished {
            is_error,
            images: pictures.collect(),
            whole: whole.as_deref().map(|whole| BlobRef::to(whole, "text/plain")),
            seen,
            todo,
            ..ToolFinished::new(id, &call.name, content)
        };
        let blobs = images.into_iter().map(|picture| picture.bytes).chain(whole).map(Blob::new).collect();
        self.commit(vec![SessionRecord::ToolFinished(fact)], blobs).await
    }
}

fn started(call: &CallState, effect: Effect, write: Option<FileWrite>) -> ToolStarted {
    let (name, arguments) = (call.name.clone(), call.arguments.clone());
    ToolStarted { call: call.id, name, arguments, effect, write }
}

fn abort(running: &Running, which: impl Fn(Effect) -> bool) {
    for (_, _, handle) in running.values().filter(|(_, effect, _)| which(*effect)) {
        handle.abort();
    }
}

async fn within(limit: Option<Duration>, run: impl Future<Output = Finished>) -> Finished {
    let Some(limit) = limit else { return run.await };
    tokio::time::timeout(limit, run).await.unwrap_or_else(|_| {
        let seconds = limit.as_secs_f64();
        Finished::error(format!(
            "the tool was still running after {seconds} s and was given up; what it did until then may stand"
        ))
    })
}
