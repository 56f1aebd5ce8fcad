//! Runs the tool calls of an answer, and finds out what happened to those that a crash left open.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the answer | the calls | they are run |
//! | `tool_started`, before or during the effect | the call, its effect, the hashes of the files that it changes | by effect: a read is run again; a write is compared with the file; a command's keeper is asked; anything else is reported as unknown |
//! | the effect | the same | the same: a write that happened is not done again, a command that ended is not started again |
//! | `tool_finished` | the result | nothing: it is never run again |
//!
//! Right before a call begins, the worker makes sure that no other node runs the session by now (`Worker::confirm_alone`): the
//! process may have been stopped, or cut off from the database, since `tool_started`.
//!
//! `outside_run` has the table of a command that the sandbox refused, `user_question` that of a question of the agent.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use longhaul_mcp::{TOOLS_CALL, is_mcp_tool, unwrap_tools_call};
use longhaul_protocol::{CallId, Effect, Question, SessionRecord, ToolFinished, ToolStarted};
use longhaul_tools::{
    CallMessage, CallingTurn, Confinement, ResumedCall, RunCall, StopHandle, StopSignal, ToolInvocation,
    ToolOutcome, only_looks, renamed_call,
};
use tokio::task::{self, JoinSet};
use tokio::time::Instant;

use crate::session::state::CallState;
use crate::skills::prepare_skill_read;
use crate::subagents::AGENT_TOOL;
use crate::turn::approval::{CallEffect, CallPermission, check_permission, url_permission};
use crate::turn::call_lines::{CALL_ENDED, CallLines, RUNTIME_ENDED, withdraw_elicitations};
use crate::turn::full_output;
use crate::turn::outside_run::{finish_call, resume_refused};
use crate::turn::request::effective_window;
use crate::turn::tool_result::{output_cap, record_result};
use crate::turn::user_question::ask_user;
use crate::worker::server_tools::failure_of_server;
use crate::worker::tasks::known_tasks;
use crate::worker::wait::{WaitOutcome, WakeOn};
use crate::worker::{Worker, WorkerResult, WorkerStop};

/// How long a call that must not be aborted may continue after a cancel or a shutdown.
const ABORT_GRACE: Duration = Duration::from_secs(3);
const CANCELLED: &str = "stopped: the turn ended before this was done";
const HAS_MARK: &str = "not run: the arguments have [redacted] in them, which stands for a secret that is kept from you; do it \
                        without naming the secret, for example by a variable or by changing only other parts of the file";
const NOT_RUN: &str = "not run: the turn had to end before";

/// A tool's reply before the call has any effect: whether the call is valid, or what happened to it.
pub(super) enum ToolReply<T> {
    Done(T),
    /// The turn should end.
    Cancelled,
    /// The tool panicked or took too long.
    Failed(&'static str),
}

/// A call whose arguments were checked.
#[allow(clippy::large_enum_variant, reason = "there are a few of them, for a moment")]
pub(super) enum CheckedCall {
    Run {
        effect: Effect,
        run: RunCall,
        /// The tool's own time limit, if it is longer than that of other tools.
        takes_up_to: Option<Duration>,
    },
    Finished(ToolOutcome),
    /// This is already its result.
    Settled(Box<ToolFinished>),
    /// The user has to approve it.
    Ask(Question),
}

/// The calls of a step that are running.
struct RunningCalls {
    tasks: JoinSet<ToolOutcome>,
    calls: HashMap<task::Id, RunningCall>,
    stop: StopSignal,
    stopper: StopHandle,
    lines: CallLines,
}

/// A call that is running.
struct RunningCall {
    id: CallId,
    effect: Effect,
    /// Its server is told when it is stopped, so that it ends by itself.
    is_remote: bool,
    handle: task::AbortHandle,
}

/// What ends one round of waiting for calls.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
enum CallNews {
    Ended(Option<Result<(task::Id, ToolOutcome), task::JoinError>>),
    Said(CallMessage),
}

impl RunningCalls {
    fn new() -> Self {
        let (stopper, stop) = StopSignal::pair();
        let lines = CallLines::new();
        Self { tasks: JoinSet::new(), calls: HashMap::new(), stop, stopper, lines }
    }

    async fn next_news(&mut self) -> CallNews {
        tokio::select! {
            ended = self.tasks.join_next_with_id() => CallNews::Ended(ended),
            said = self.lines.next_message() => CallNews::Said(said),
        }
    }

    /// Runs a call in its own task, so that a panic ends only this call. A command has its own timeout.
    /// It begins when `is_alone` is done.
    fn spawn(
        &mut self,
        call: &CallState,
        effect: Effect,
        run: RunCall,
        limit: Duration,
        is_alone: impl Future<Output = ()> + Send + 'static,
    ) {
        let limit = (effect != Effect::Command).then_some(limit);
        let stop = self.stop.clone().with_line(self.lines.line_of(call.id));
        let handle = self.tasks.spawn(async move {
            is_alone.await;
            run_with_timeout(limit, run(stop)).await
        });
        let is_remote = is_mcp_tool(&with_current_name(call).name);
        self.calls.insert(handle.id(), RunningCall { id: call.id, effect, is_remote, handle });
    }

    fn abort(&self, should_abort: impl Fn(&RunningCall) -> bool) {
        self.calls.values().filter(|call| should_abort(call)).for_each(|call| call.handle.abort());
    }

    /// The call that has ended, with its result.
    fn take_result(
        &mut self,
        joined: Result<(task::Id, ToolOutcome), task::JoinError>,
    ) -> Option<(CallId, ToolOutcome)> {
        let id = match &joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let RunningCall { id: call, effect, .. } = self.calls.remove(&id)?;
        let finished = match joined {
            Ok((_, finished)) => finished,
            Err(error) if !error.is_cancelled() => {
                ToolOutcome::error("the tool panicked; what it did until then may stand")
            }
            Err(_) if matches!(effect, Effect::Read | Effect::Idempotent) => ToolOutcome::error(CANCELLED),
            Err(_) => unknown_result("it was cut short, because the turn ended"),
        };
        Some((call, finished))
    }
}

/// Runs these calls in parallel. Each call is recorded before it runs, and each result as it arrives.
pub(crate) async fn run_tool_calls(worker: &mut Worker, ids: &[CallId]) -> WorkerResult<()> {
    let calls: Vec<CallState> = ids.iter().filter_map(|id| worker.state().call(*id)).cloned().collect();
    let (mut starts, mut checked) = (Vec::new(), Vec::new());
    for call in &calls {
        let (start, next) = match &call.started {
            Some(started) => (None, resume_call(worker, call, started).await?),
            None => check_call(worker, call).await?,
        };
        starts.extend(start.map(SessionRecord::ToolStarted));
        checked.push((call, next));
    }
    let question = |(_, next): &(&CallState, CheckedCall)| match next {
        CheckedCall::Ask(question) => Some(SessionRecord::Question(question.clone())),
        CheckedCall::Run { .. } | CheckedCall::Finished(_) | CheckedCall::Settled(_) => None,
    };
    let questions: Vec<SessionRecord> = checked.iter().filter_map(question).collect();
    if !questions.is_empty() {
        // None of these calls begins before the user has answered, so that they run in order.
        return worker.commit(questions, vec![]).await;
    }
    worker.commit(starts, vec![]).await?;
    let mut running = RunningCalls::new();
    // A resumed call must not begin anything new in a turn that has to end.
    if worker.should_end_turn() {
        running.stopper.stop();
    }
    for (call, next) in checked {
        match next {
            CheckedCall::Finished(finished) => {
                finish_call(worker, call.id, finished).await?;
                withdraw_elicitations(worker, call.id, CALL_ENDED).await?;
            }
            CheckedCall::Settled(result) => {
                worker.commit(vec![SessionRecord::ToolFinished(*result)], vec![]).await?;
            }
            CheckedCall::Ask(_) => {}
            // Recording its start needed several tries, and now the turn must end.
            CheckedCall::Run { .. } if call.started.is_none() && worker.policy().must_end_turn() => {
                record_result(worker, call.id, ToolOutcome::error(NOT_RUN)).await?;
            }
            CheckedCall::Run { effect, run, takes_up_to } => {
                if call.started.is_some() {
                    withdraw_elicitations(worker, call.id, RUNTIME_ENDED).await?;
                }
                let limit = takes_up_to.unwrap_or(worker.runtime().config.tool_time);
                running.spawn(call, effect, run, limit, worker.confirm_alone());
            }
        }
    }
    wait_for_calls(worker, running).await
}

/// Records the result of each running call as it arrives. After a cancel, our own reads are aborted at once, commands are
/// killed, and all other calls get a grace period. Those of MCP servers use it to tell their server.
async fn wait_for_calls(worker: &mut Worker, mut running: RunningCalls) -> WorkerResult<()> {
    let (mut wake_on, mut deadline) = (WakeOn::Cancel, None);
    if worker.policy().must_end_turn() {
        running.stopper.stop();
    }
    while !running.calls.is_empty() {
        let outcome = {
            let wake_on = running.lines.wake_on(wake_on);
            let mut next = pin!(running.next_news());
            worker.wait_for(&mut next, wake_on, deadline).await?
        };
        match outcome {
            WaitOutcome::Done(CallNews::Ended(Some(joined))) => {
                if let Some((call, finished)) = running.take_result(joined) {
                    finish_call(worker, call, finished).await?;
                    running.lines.withdraw_questions(worker, call).await?;
                }
            }
            WaitOutcome::Done(CallNews::Said(message)) => running.lines.hear(worker, message).await?,
            WaitOutcome::Done(CallNews::Ended(None)) => break,
            WaitOutcome::Interrupted if running.lines.pass_answers(worker) && !worker.should_end_turn() => {}
            WaitOutcome::Interrupted => {
                (wake_on, deadline) = (WakeOn::Nothing, Some(Instant::now() + ABORT_GRACE));
                running.stopper.stop();
                running.abort(|call| call.effect == Effect::Read && !call.is_remote);
            }
            // A command ends when its keeper confirms it. The grace period of all other calls is over.
            WaitOutcome::Deadline => {
                deadline = None;
                running.abort(|call| call.effect != Effect::Command);
            }
            WaitOutcome::Suspended => return suspend_calls(worker, running).await,
        }
    }
    Ok(())
}

/// Leaves commands to their keepers, aborts calls that can run again, and gives all others a grace period.
async fn suspend_calls(worker: &mut Worker, mut running: RunningCalls) -> WorkerResult<()> {
    let can_resume =
        |call: &RunningCall| matches!(call.effect, Effect::Command | Effect::Read | Effect::Idempotent);
    running.abort(can_resume);
    running.calls.retain(|_, call| !can_resume(call));
    let deadline = Instant::now() + ABORT_GRACE;
    while !running.calls.is_empty() {
        match tokio::time::timeout_at(deadline, running.tasks.join_next_with_id()).await {
            Ok(Some(joined)) => {
                if let Some((call, finished)) = running.take_result(joined) {
                    record_result(worker, call, finished).await?;
                }
            }
            Ok(None) | Err(_) => break,
        }
    }
    Err(WorkerStop::Suspended)
}

/// Checks the arguments and the permission of a call. The call has no effect before this returns.
async fn check_call(
    worker: &mut Worker,
    call: &CallState,
) -> WorkerResult<(Option<ToolStarted>, CheckedCall)> {
    let refuse = |finished| Ok((None, CheckedCall::Finished(finished)));
    let recorded = call;
    let call = &with_current_name(recorded);
    let Some(tool) = worker.toolset().tool(worker.id(), &call.name) else {
        if let Some(why) = failure_of_server(worker, &call.name) {
            return refuse(ToolOutcome::error(why));
        }
        let names = worker.toolset().tool_names();
        return refuse(ToolOutcome::error(format!("there is no tool {:?}; there are: {names}", call.name)));
    };
    let effect = tool.definition().effect;
    let permission_effect = effect_for_permission(&call.name, effect);
    // The model sees a mark instead of a secret. It must not overwrite the secret with the mark.
    let is_harmless = matches!(permission_effect, Effect::Read | Effect::Idempotent);
    if !is_harmless && worker.runtime().redactor.has_redaction_mark(&call.arguments) {
        return refuse(ToolOutcome::error(HAS_MARK));
    }
    let arguments = tool_call(worker, call);
    let journal = &worker.runtime().journal;
    if let Some(run) = full_output::read_output(&call.name, &arguments, &worker.state().full_outputs, journal)
    {
        let effect = Effect::Read;
        let next = CheckedCall::Run { effect, run, takes_up_to: None };
        return Ok((Some(tool_started(recorded, effect)), next));
    }
    let work_dir = worker.toolset().usable_work_dir().map(Path::to_owned);
    let skill_read = prepare_skill_read(worker.runtime(), work_dir, &call.name, &arguments.arguments);
    let preparing = async move {
        match skill_read {
            Some(prepared) => Ok(prepared),
            None => tool.prepare(&arguments).await,
        }
    };
    let prepared = match ask_tool(worker, preparing, WakeOn::Cancel).await? {
        ToolReply::Done(Ok(prepared)) => prepared,
        ToolReply::Done(Err(refused)) => return refuse(refused),
        ToolReply::Cancelled => return refuse(ToolOutcome::error(CANCELLED)),
        ToolReply::Failed(reason) => {
            return refuse(ToolOutcome::error(format!("not run: the tool {reason}")));
        }
    };
    if let Some(question) = &prepared.question {
        return Ok(match ask_user(worker, call, question) {
            asked @ CheckedCall::Ask(_) => (None, asked),
            answered => (Some(tool_started(recorded, effect)), answered),
        });
    }
    match check_permission(worker, call, CallEffect::new(permission_effect, &prepared)).await? {
        CallPermission::Granted => {
            let next = CheckedCall::Run { effect, run: prepared.run, takes_up_to: prepared.takes_up_to };
            let started = ToolStarted {
                write: prepared.write,
                writes: prepared.writes,
                kept_in: prepared.kept_in,
                child: prepared.child.map(Box::new),
                ..tool_started(recorded, effect)
            };
            Ok((Some(started), next))
        }
        CallPermission::Refused(reason) => refuse(ToolOutcome::error(reason)),
        CallPermission::Ask(question) => Ok((None, CheckedCall::Ask(question))),
    }
}

/// Finds out what happened to a call that started before a crash.
async fn resume_call(
    worker: &mut Worker,
    call: &CallState,
    started: &ToolStarted,
) -> WorkerResult<CheckedCall> {
    if started.name == "read_file" && full_output::is_output(&call.arguments) {
        return rerun_call(worker, call).await;
    }
    if let Some(refused) = &call.refused {
        return resume_refused(worker, call, started, refused).await;
    }
    let recorded = call;
    let call = &with_current_name(recorded);
    let ended = "the runtime ended while this was running";
    let unknown = |reason: &str| CheckedCall::Finished(unknown_result(reason));
    let Some(tool) = worker.toolset().tool(worker.id(), &call.name) else {
        return Ok(unknown(&format!("{ended}, and the tool is not there any more")));
    };
    let (arguments, started) = (tool_call(worker, call), started.clone());
    let effect = started.effect;
    if effect == Effect::Unknown && tool.definition().effect != Effect::Unknown {
        return Ok(unknown("its record is gone"));
    }
    let resuming = async move { tool.resume(&arguments, &started).await };
    // A cancelled turn also waits for this, because a command must be found before it can be killed.
    Ok(match ask_tool(worker, resuming, WakeOn::Nothing).await? {
        ToolReply::Done(ResumedCall::Finished(finished)) => CheckedCall::Finished(finished),
        ToolReply::Done(ResumedCall::Running { run, takes_up_to }) => {
            CheckedCall::Run { effect, run, takes_up_to }
        }
        ToolReply::Done(ResumedCall::RunAgain) => return rerun_call(worker, recorded).await,
        ToolReply::Done(ResumedCall::Unknown(known)) => unknown(&known),
        ToolReply::Cancelled => CheckedCall::Finished(ToolOutcome::error(CANCELLED)),
        ToolReply::Failed(reason) => unknown(&format!("{ended}, and the tool {reason} when it was asked")),
    })
}

/// Runs a call that did not happen, or that may safely run twice. Its start is already recorded.
async fn rerun_call(worker: &mut Worker, call: &CallState) -> WorkerResult<CheckedCall> {
    if worker.state().is_cancelled() {
        return Ok(CheckedCall::Finished(ToolOutcome::error(CANCELLED)));
    }
    if worker.policy().must_end_turn() {
        return Ok(CheckedCall::Finished(ToolOutcome::error(NOT_RUN)));
    }
    Ok(check_call(worker, call).await?.1)
}

/// Lets a tool check or resume a call. Runs in its own task, so that a panic ends only this call, and with a time
/// limit.
pub(super) async fn ask_tool<T: Send + 'static>(
    worker: &mut Worker,
    work: impl Future<Output = T> + Send + 'static,
    wake_on: WakeOn,
) -> WorkerResult<ToolReply<T>> {
    let mut task = tokio::spawn(work);
    let deadline = Instant::now() + worker.runtime().config.tool_time;
    let outcome = worker.wait_for(&mut task, wake_on, Some(deadline)).await;
    if !matches!(outcome, Ok(WaitOutcome::Done(_))) {
        task.abort();
    }
    match outcome? {
        WaitOutcome::Done(Ok(done)) => Ok(ToolReply::Done(done)),
        WaitOutcome::Done(Err(_)) => Ok(ToolReply::Failed("panicked")),
        WaitOutcome::Interrupted => Ok(ToolReply::Cancelled),
        WaitOutcome::Deadline => Ok(ToolReply::Failed("took too long")),
        WaitOutcome::Suspended => Err(WorkerStop::Suspended),
    }
}

/// A call with the context that tools need.
pub(super) fn tool_call(worker: &Worker, call: &CallState) -> ToolInvocation {
    ToolInvocation {
        id: call.id,
        arguments: call.arguments.clone(),
        seen: worker.state().known_files.clone(),
        output_limit: output_cap(effective_window(worker)),
        session: worker.id(),
        tasks: known_tasks(worker),
        confinement: Confinement::Sandbox,
        skill_folders: worker
            .state()
            .active_skills
            .iter()
            .map(|skill| PathBuf::from(&skill.folder))
            .collect(),
        may_fetch: url_permission(worker),
        turn: calling_turn(worker, call),
    }
}

/// The turn of a call, for a tool that starts a session.
fn calling_turn(worker: &Worker, call: &CallState) -> CallingTurn {
    let state = worker.state();
    let model = worker.model_chain().primary().name().to_owned();
    let is_own = worker.runtime().model_chain().primary().name() != model;
    CallingTurn {
        number: state.turn.as_ref().map_or(0, |turn| turn.number),
        max_cost_nano: state.turn.as_ref().and_then(|turn| turn.max_cost_nano),
        mode: worker.permission_mode(),
        model: is_own.then_some(model),
        parent: state.parent().cloned(),
        child: call.started.as_ref().and_then(|started| started.child.as_deref().cloned()),
    }
}

/// The call as the tool of today takes it, if its tool had another name when the model made the call.
pub(super) fn with_current_name(call: &CallState) -> CallState {
    let mut call = call.clone();
    if let Some((name, arguments)) = renamed_call(&call.name, &call.arguments) {
        (call.name, call.arguments) = (name.to_owned(), arguments);
    }
    // So that approval, effect and limits are those of the tool that is called.
    if call.name == TOOLS_CALL
        && let Some((name, arguments)) = unwrap_tools_call(&call.arguments)
    {
        (call.name, call.arguments) = (name, arguments);
    }
    call
}

/// The effect that approval judges. An idempotent tool of ours keeps the agent's own books; one of a server changes something elsewhere,
/// and only says that doing it twice does no more.
fn effect_for_permission(name: &str, effect: Effect) -> Effect {
    match effect {
        Effect::Idempotent if is_mcp_tool(name) => Effect::Unknown,
        // Whatever a subagent does is judged in its own session.
        Effect::Command if name == AGENT_TOOL => Effect::Idempotent,
        effect => effect,
    }
}

/// The start of a call that writes no file.
fn tool_started(call: &CallState, effect: Effect) -> ToolStarted {
    let (name, arguments) = (call.name.clone(), call.arguments.clone());
    let changes_nothing = effect == Effect::Command && only_looks(&name, &arguments);
    ToolStarted {
        call: call.id,
        changes_nothing,
        name,
        arguments,
        effect,
        write: None,
        writes: vec![],
        kept_in: None,
        remote_task: None,
        child: None,
    }
}

/// The result of a call if the runtime can't tell whether it happened.
pub(super) fn unknown_result(reason: &str) -> ToolOutcome {
    ToolOutcome::error(format!("unknown: {reason}. Find out what happened before doing it again."))
}

async fn run_with_timeout(limit: Option<Duration>, run: impl Future<Output = ToolOutcome>) -> ToolOutcome {
    let Some(limit) = limit else { return run.await };
    tokio::time::timeout(limit, run).await.unwrap_or_else(|_| {
        let seconds = limit.as_secs_f64();
        ToolOutcome::error(format!(
            "the tool was still running after {seconds} s and was given up; what it did until then may stand"
        ))
    })
}
