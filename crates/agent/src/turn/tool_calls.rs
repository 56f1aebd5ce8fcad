//! Running the calls of an answer, and finding out what became of those that a crash left open.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the answer | the calls | they are run |
//! | `tool_started`, before or during the effect | the call, its effect, the hashes of the file that it writes | by effect: a read is run again; a write is compared with the file; a command is asked of its keeper; anything else is told as unknown |
//! | the effect | the same | the same: a write that happened is not done again, a command that ended is not started again |
//! | `tool_finished` | the result | nothing: it is never run again |

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use longhaul_journal::Blob;
use longhaul_protocol::{
    BlobRef, CallId, Effect, FileWrite, Image, Question, SessionRecord, ToolFinished, ToolStarted,
};
use longhaul_tools::{Call, Finished, Resumed, Run, Stop, Stopper, cap};
use tokio::task::{self, JoinSet};
use tokio::time::Instant;

use crate::session::state::CallState;
use crate::turn::approval::Permission;
use crate::turn::full_output;
use crate::worker::toolset::cap_for;
use crate::worker::wait::{Attended, Heed};
use crate::worker::{Step, Stopped, Worker};

/// How long what must not be cut short may take when the runtime ends or the turn is cancelled.
const GRACE: Duration = Duration::from_secs(3);
/// How much of an output is kept whole.
const LONGEST_WHOLE: usize = 16 << 20;
const CANCELLED: &str = "stopped: the turn ended before this was done";
const HAS_MARK: &str = "not run: the arguments have [redacted] in them, which stands for a secret that is kept from you; do it \
                        without naming the secret, for example by a variable or by changing only other parts of the file";
const NOT_RUN: &str = "not run: the turn had to end before";

/// What became of something that a tool was asked.
enum Aside<T> {
    Done(T),
    /// The turn should end.
    Called,
    Failed(&'static str),
}

/// A call that is about to run, or that came to its result before it ran.
#[allow(clippy::large_enum_variant, reason = "there are a few of them, for a moment")]
enum Ready {
    Run {
        effect: Effect,
        run: Run,
        /// It takes longer than other tools may.
        takes_up_to: Option<Duration>,
    },
    Done(Finished),
    /// A person has to say whether it may run.
    Ask(Question),
}

/// The calls of a step that are running.
struct Running {
    tasks: JoinSet<Finished>,
    calls: HashMap<task::Id, (CallId, Effect, task::AbortHandle)>,
    stop: Stop,
    stopper: Stopper,
}

/// How a task of [`Running`] ended.
type Joined = Result<(task::Id, Finished), task::JoinError>;

impl Running {
    fn new() -> Self {
        let (stopper, stop) = Stop::pair();
        Self { tasks: JoinSet::new(), calls: HashMap::new(), stop, stopper }
    }

    /// Runs in a task of its own, from its first line on, so that a panic is only its own.
    fn spawn(&mut self, call: CallId, effect: Effect, run: Run, limit: Duration) {
        let limit = (effect != Effect::Command).then_some(limit);
        let stop = self.stop.clone();
        let handle = self.tasks.spawn(async move { within(limit, run(stop)).await });
        self.calls.insert(handle.id(), (call, effect, handle));
    }

    /// Cuts short what may be.
    fn abort(&self, which: impl Fn(Effect) -> bool) {
        for (_, _, handle) in self.calls.values().filter(|(_, effect, _)| which(*effect)) {
            handle.abort();
        }
    }

    /// The call that has ended, with its result.
    fn ended(&mut self, joined: Joined) -> Option<(CallId, Finished)> {
        let id = match &joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let (call, effect, _) = self.calls.remove(&id)?;
        let finished = match joined {
            Ok((_, finished)) => finished,
            Err(error) if !error.is_cancelled() => {
                Finished::error("the tool panicked; what it did until then may stand")
            }
            Err(_) if matches!(effect, Effect::Read | Effect::Idempotent) => Finished::error(CANCELLED),
            Err(_) => unknown("it was cut short, because the turn ended"),
        };
        Some((call, finished))
    }
}

impl Worker {
    /// Brings these calls to their results, side by side. Each is on record before it runs, and each result as it comes.
    pub(crate) async fn run_tools(&mut self, ids: &[CallId]) -> Step<()> {
        let calls: Vec<CallState> = ids.iter().filter_map(|id| self.state.call(*id)).cloned().collect();
        let (mut starts, mut ready) = (Vec::new(), Vec::new());
        for call in &calls {
            let (start, next) = match &call.started {
                Some(started) => (None, self.resume(call, started).await?),
                None => self.prepare(call).await?,
            };
            starts.extend(start.map(SessionRecord::ToolStarted));
            ready.push((call, next));
        }
        let asked = |(_, next): &(&CallState, Ready)| match next {
            Ready::Ask(question) => Some(SessionRecord::Question(question.clone())),
            Ready::Run { .. } | Ready::Done(_) => None,
        };
        let questions: Vec<SessionRecord> = ready.iter().filter_map(asked).collect();
        if !questions.is_empty() {
            // Nothing of it begins before they are answered, so that the order of the calls stays as it was.
            return self.commit(questions, vec![]).await;
        }
        self.commit(starts, vec![]).await?;
        let mut running = Running::new();
        for (call, next) in ready {
            match next {
                Ready::Done(finished) => self.finish(call.id, finished).await?,
                // It was asked above.
                Ready::Ask(_) => {}
                // It was recorded late, and the turn must end: what has not begun does not begin.
                Ready::Run { .. } if call.started.is_none() && self.policy.must_end_turn() => {
                    self.finish(call.id, Finished::error(NOT_RUN)).await?;
                }
                Ready::Run { effect, run, takes_up_to } => {
                    let limit = takes_up_to.unwrap_or(self.runtime.config.tool_time);
                    running.spawn(call.id, effect, run, limit);
                }
            }
        }
        self.wait_for(running).await
    }

    /// Waits for what is running, and records each result as it comes.
    async fn wait_for(&mut self, mut running: Running) -> Step<()> {
        let (mut heed, mut due) = (Heed::Cancel, None);
        if self.policy.must_end_turn() {
            running.stopper.stop();
        }
        while !running.calls.is_empty() {
            let attended = {
                let next = pin!(running.tasks.join_next_with_id());
                self.attend(&mut { next }, heed, due).await?
            };
            match attended {
                Attended::Done(Some(joined)) => {
                    if let Some((call, finished)) = running.ended(joined) {
                        self.finish(call, finished).await?;
                    }
                }
                Attended::Done(None) => break,
                Attended::Called => {
                    (heed, due) = (Heed::Nothing, Some(Instant::now() + GRACE));
                    running.stopper.stop();
                    running.abort(|effect| effect == Effect::Read);
                }
                // A command ends when its keeper confirms it; everything else has had its time.
                Attended::Due => {
                    due = None;
                    running.abort(|effect| effect != Effect::Command);
                }
                Attended::Suspended => return self.suspend_tools(running).await,
            }
        }
        Ok(())
    }

    /// Commands stay with their keepers and reads are done again; what must not be cut short gets a moment.
    async fn suspend_tools(&mut self, mut running: Running) -> Step<()> {
        let can_wait = |effect| matches!(effect, Effect::Command | Effect::Read | Effect::Idempotent);
        running.abort(can_wait);
        running.calls.retain(|_, (_, effect, _)| !can_wait(*effect));
        let deadline = Instant::now() + GRACE;
        while !running.calls.is_empty() {
            match tokio::time::timeout_at(deadline, running.tasks.join_next_with_id()).await {
                Ok(Some(joined)) => {
                    if let Some((call, finished)) = running.ended(joined) {
                        self.finish(call, finished).await?;
                    }
                }
                Ok(None) | Err(_) => break,
            }
        }
        Err(Stopped::Suspended)
    }

    /// Checks a call. What will happen is known after this, and nothing has happened.
    async fn prepare(&mut self, call: &CallState) -> Step<(Option<ToolStarted>, Ready)> {
        let done = |finished| Ok((None, Ready::Done(finished)));
        let Some(tool) = self.equipment.tools.get(&call.name).cloned() else {
            let names = self.equipment.tools.names();
            return done(Finished::error(format!("there is no tool {:?}; there are: {names}", call.name)));
        };
        let effect = tool.about().effect;
        // What the model saw of a secret must not be written in place of the secret itself.
        let only_looks = matches!(effect, Effect::Read | Effect::Idempotent);
        if !only_looks && self.runtime.redactor.has_redaction_mark(&call.arguments) {
            return done(Finished::error(HAS_MARK));
        }
        let asked = self.asked(call);
        let journal = &self.runtime.journal;
        if let Some(run) = full_output::read(&call.name, &asked, &self.state.full_outputs, journal) {
            let effect = Effect::Read;
            let next = Ready::Run { effect, run, takes_up_to: None };
            return Ok((Some(started(call, effect, None, None)), next));
        }
        let preparing = async move { tool.prepare(&asked).await };
        match self.aside(preparing, Heed::Cancel).await? {
            Aside::Done(Ok(prepared)) => {
                let next = match self.permission(call, prepared.caution.as_deref()).await {
                    Permission::Given => {
                        Ready::Run { effect, run: prepared.run, takes_up_to: prepared.takes_up_to }
                    }
                    Permission::Refused(why) => return done(Finished::error(why)),
                    Permission::Asked(question) => return Ok((None, Ready::Ask(question))),
                };
                Ok((Some(started(call, effect, prepared.write, prepared.kept_in)), next))
            }
            Aside::Done(Err(refused)) => done(refused),
            Aside::Called => done(Finished::error(CANCELLED)),
            Aside::Failed(why) => done(Finished::error(format!("not run: the tool {why}"))),
        }
    }

    /// Finds out what became of a call that started before a crash.
    async fn resume(&mut self, call: &CallState, started: &ToolStarted) -> Step<Ready> {
        if started.name == "read_file" && full_output::is_output(&call.arguments) {
            return self.again(call).await;
        }
        let ended = "the runtime ended while this was running";
        let Some(tool) = self.equipment.tools.get(&call.name).cloned() else {
            return Ok(Ready::Done(unknown(&format!("{ended}, and the tool is not there any more"))));
        };
        let (asked, started) = (self.asked(call), started.clone());
        let effect = started.effect;
        if effect == Effect::Unknown && tool.about().effect != Effect::Unknown {
            return Ok(Ready::Done(unknown("its record is gone")));
        }
        // Also for a turn that is cancelled: what can't be found can't be ended.
        let resuming = async move { tool.resume(&asked, &started).await };
        Ok(match self.aside(resuming, Heed::Nothing).await? {
            Aside::Done(Resumed::Finished(finished)) => Ready::Done(finished),
            Aside::Done(Resumed::Running(run)) => Ready::Run { effect, run, takes_up_to: None },
            Aside::Done(Resumed::RunAgain) => return self.again(call).await,
            Aside::Done(Resumed::Unknown(known)) => Ready::Done(unknown(&known)),
            Aside::Called => Ready::Done(Finished::error(CANCELLED)),
            Aside::Failed(why) => {
                Ready::Done(unknown(&format!("{ended}, and the tool {why} when it was asked")))
            }
        })
    }

    /// Runs a call that did not happen, or that does no harm twice; its start is on record.
    async fn again(&mut self, call: &CallState) -> Step<Ready> {
        if self.state.is_cancelled() {
            return Ok(Ready::Done(Finished::error(CANCELLED)));
        }
        if self.policy.must_end_turn() {
            return Ok(Ready::Done(Finished::error(NOT_RUN)));
        }
        Ok(self.prepare(call).await?.1)
    }

    /// What a tool is asked before anything happens: in a task of its own, so that a panic is only its own, within the time
    /// that tools have, while the inbox and the lease are attended to.
    async fn aside<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
        heed: Heed,
    ) -> Step<Aside<T>> {
        let mut task = tokio::spawn(work);
        let due = Instant::now() + self.runtime.config.tool_time;
        let attended = self.attend(&mut task, heed, Some(due)).await;
        if !matches!(attended, Ok(Attended::Done(_))) {
            task.abort();
        }
        match attended? {
            Attended::Done(Ok(done)) => Ok(Aside::Done(done)),
            Attended::Done(Err(_)) => Ok(Aside::Failed("panicked")),
            Attended::Called => Ok(Aside::Called),
            Attended::Due => Ok(Aside::Failed("took too long")),
            Attended::Suspended => Err(Stopped::Suspended),
        }
    }

    fn asked(&self, call: &CallState) -> Call {
        Call {
            id: call.id,
            arguments: call.arguments.clone(),
            seen: self.state.known_files.clone(),
            cap: cap_for(self.window()),
            session: self.id,
            tasks: self.known_tasks(),
        }
    }

    /// Records a result.
    async fn finish(&mut self, id: CallId, finished: Finished) -> Step<()> {
        let Some(call) = self.state.call(id).cloned() else { return Ok(()) };
        let Finished { content, is_error, images, whole, seen, todo, task, news } = finished;
        let redactor = &self.runtime.redactor;
        let mut content = redactor.redact(&content).into_owned();
        let mut whole = whole.map(|whole| redactor.redact_bytes(whole));
        if whole.is_none()
            && let Some(short) = cap(&content, cap_for(self.window()), id)
        {
            content.truncate(content.floor_char_boundary(LONGEST_WHOLE));
            whole = Some(std::mem::replace(&mut content, short).into_bytes());
        }
        if let Some(turn) = &self.state.turn {
            content = turn.repeats.with_repeat_warning(&call.name, &call.arguments, content);
        }
        let pictures =
            images.iter().map(|picture| Image { data: BlobRef::to(&picture.bytes, &picture.media) });
        let fact = ToolFinished {
            is_error,
            images: pictures.collect(),
            whole: whole.as_deref().map(|whole| BlobRef::to(whole, "text/plain")),
            seen,
            todo,
            news,
            ..ToolFinished::new(id, &call.name, content)
        };
        let blobs = images.into_iter().map(|picture| picture.bytes).chain(whole).map(Blob::new).collect();
        // That it goes on and what its call gave back are one fact: a crash between them would lose a task.
        let facts =
            task.map(SessionRecord::TaskStarted).into_iter().chain([SessionRecord::ToolFinished(fact)]);
        self.commit(facts.collect(), blobs).await
    }
}

fn started(
    call: &CallState,
    effect: Effect,
    write: Option<FileWrite>,
    kept_in: Option<String>,
) -> ToolStarted {
    let (name, arguments) = (call.name.clone(), call.arguments.clone());
    ToolStarted { call: call.id, name, arguments, effect, write, kept_in }
}

fn unknown(known: &str) -> Finished {
    Finished::error(format!("unknown: {known}. Find out what happened before doing it again."))
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
