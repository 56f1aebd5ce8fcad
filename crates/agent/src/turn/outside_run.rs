//! A command that the sandbox refused: the user is asked whether to run it once more, outside of the sandbox.
//!
//! The call stays open until then, so it has one result. The question holds the result of the run in the sandbox. The second run is a
//! task of its own, whose id is derived from the call ([`TaskId::outside_sandbox`]): its folder is made with `O_EXCL`, so there is at
//! most one.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the refusal, before the question | the end of the run in the sandbox, with its keeper | it is read again, recognised again, and the question is asked |
//! | `question` | the question, with the result of the run in the sandbox | the question waits. If the turn ends, that result is recorded |
//! | `answered` with anything but yes | the answer | that result is recorded, with the user's words |
//! | `answered` with yes, before the command starts outside | the yes | the rules are looked at again, and the command starts |
//! | the start outside | the task's folder | its keeper is asked, as for any command; it never starts again |
//! | the end outside, before `tool_finished` | the status, with the keeper | it becomes the result |
//! | `tool_finished` | the result | nothing |
//!
//! Never: a second run without a yes on record; two second runs; a call without a result, or with two. If the record of the answer was
//! erased and the task is there, the answer was yes. If it is not there, the user is asked again.

use longhaul_keeper::Found;
use longhaul_protocol::{
    Answer, CallId, CommandReport, Effect, PermissionMode, SessionRecord, TaskId, ToolFinished, ToolStarted,
};
use longhaul_tools::{
    ApprovalAction, Confinement, JudgedCall, RefusedAccess, ResumedCall, SandboxRefusal, ToolInvocation,
    ToolOutcome,
};

use crate::config::SandboxMode;
use crate::session::state::{CallState, RefusedRun};
use crate::turn::approval_question::outside_question;
use crate::turn::tool_calls::{
    CheckedCall, ToolReply, ask_tool, tool_call, unknown_result, with_current_name,
};
use crate::turn::tool_result::{compose_result, record_result};
use crate::worker::wait::WakeOn;
use crate::worker::{Worker, WorkerResult};

const TURN_ENDED: &str = "the turn ended";
const ENDED: &str = "the runtime ended while this ran outside of the sandbox";

/// Records the result of a call, or asks the user whether to run its command outside of the sandbox that refused it.
pub(super) async fn finish_call(
    worker: &mut Worker,
    id: CallId,
    mut finished: ToolOutcome,
) -> WorkerResult<()> {
    let refusal = finished.refusal.take();
    let Some(call) = worker.state().call(id).map(with_current_name) else { return Ok(()) };
    if let Some(refused) = call.refused.as_ref().filter(|_| finished.report.is_empty()) {
        // It did not run outside, or that is unknown. The result in the sandbox is not lost.
        let mut result = refused.result.clone();
        result.is_error |= finished.is_error;
        let said = worker.runtime().redactor.redact(&finished.content).into_owned();
        add_message(&mut result, &format!("the user let it run outside of the sandbox: {said}"));
        return worker.commit(vec![SessionRecord::ToolFinished(result)], vec![]).await;
    }
    let Some(refusal) = refusal else { return record_result(worker, id, finished).await };
    if !may_ask(worker, &call) || has_begun_outside(worker, id).await {
        return record_result(worker, id, finished).await;
    }
    let Some((result, blobs)) = compose_result(worker, id, finished) else { return Ok(()) };
    let question = outside_question(&call, &refusal, result);
    worker.commit(vec![SessionRecord::Question(question)], blobs).await
}

/// Goes on with a call whose command the sandbox refused.
pub(super) async fn resume_refused(
    worker: &mut Worker,
    call: &CallState,
    started: &ToolStarted,
    refused: &RefusedRun,
) -> WorkerResult<CheckedCall> {
    let settle = |said: Option<String>| {
        let mut result = refused.result.clone();
        if let Some(said) = said {
            add_message(&mut result, &format!("the user was asked to run it outside, and {said}"));
        }
        Ok(CheckedCall::Settled(Box::new(result)))
    };
    match refused.answer.as_deref().map(Answer::parse) {
        Some(Answer::Yes) => run_outside(worker, call, started).await,
        Some(Answer::No) => settle(Some("said no".to_owned())),
        // Nothing but a yes counts as one: no other answer was offered.
        Some(said) => settle(Some(format!("did not say yes, but: {}", said.word()))),
        // The turn ends before the user has answered.
        None if worker.state().question_about(call.id).is_some() => settle(None),
        None if has_begun_outside(worker, call.id).await => run_outside(worker, call, started).await,
        None if may_ask(worker, call) => {
            let refusal = SandboxRefusal { access: RefusedAccess::Files, line: "(erased)".to_owned() };
            Ok(CheckedCall::Ask(outside_question(call, &refusal, refused.result.clone())))
        }
        None => settle(None),
    }
}

/// Starts the command outside of the sandbox, or finds the one that was started there.
async fn run_outside(
    worker: &mut Worker,
    call: &CallState,
    started: &ToolStarted,
) -> WorkerResult<CheckedCall> {
    let call = &with_current_name(call);
    let unknown = |reason: &str| CheckedCall::Finished(unknown_result(reason));
    let Some(tool) = worker.toolset().tool(worker.id(), &call.name) else {
        return Ok(unknown(&format!("{ENDED}, and the tool is not there any more")));
    };
    let invocation = ToolInvocation { confinement: Confinement::Outside, ..tool_call(worker, call) };
    let resuming = {
        let (tool, invocation, started) = (tool.clone(), invocation.clone(), started.clone());
        async move { tool.resume(&invocation, &started).await }
    };
    let run = |run| CheckedCall::Run { effect: Effect::Command, run, takes_up_to: None };
    // A cancelled turn also waits for this, because a command must be found before it can be killed.
    match ask_tool(worker, resuming, WakeOn::Nothing).await? {
        ToolReply::Done(ResumedCall::Finished(finished)) => return Ok(CheckedCall::Finished(finished)),
        ToolReply::Done(ResumedCall::Running { run: running, .. }) => return Ok(run(running)),
        ToolReply::Done(ResumedCall::Unknown(known)) => return Ok(unknown(&known)),
        ToolReply::Failed(reason) => return Ok(unknown(&format!("{ENDED}, and the tool {reason}"))),
        ToolReply::Done(ResumedCall::RunAgain) | ToolReply::Cancelled => {}
    }
    let not_run = |why: &str| CheckedCall::Finished(ToolOutcome::error(format!("not run: {why}")));
    if let Some(reason) = refusal_reason(worker, call) {
        return Ok(not_run(&reason));
    }
    let preparing = async move { tool.prepare(&invocation).await };
    Ok(match ask_tool(worker, preparing, WakeOn::Cancel).await? {
        ToolReply::Done(Ok(prepared)) => run(prepared.run),
        ToolReply::Done(Err(failed)) => CheckedCall::Finished(failed),
        ToolReply::Cancelled => not_run(TURN_ENDED),
        ToolReply::Failed(reason) => not_run(&format!("the tool {reason}")),
    })
}

/// Whether to ask the user about running a refused command outside.
fn may_ask(worker: &Worker, call: &CallState) -> bool {
    worker.runtime().config.is_attended && refusal_reason(worker, call).is_none()
}

/// Why a command may not run outside, whatever the user says: the turn ends, or the present settings forbid it.
fn refusal_reason(worker: &Worker, call: &CallState) -> Option<String> {
    let is_broken = |turn: &crate::session::state::Turn| turn.cancelled || turn.lost_record.is_some();
    if worker.policy().must_end_turn() || worker.state().turn.as_ref().is_none_or(is_broken) {
        return Some(TURN_ENDED.to_owned());
    }
    if worker.runtime().config.settings.sandbox.mode != SandboxMode::On {
        return Some("sandbox.mode does not allow it".to_owned());
    }
    let mode = worker.permission_mode();
    let verdict = worker.runtime().approvals.judge_in_mode(&JudgedCall {
        mode,
        effect: Effect::Command,
        tool: &call.name,
        arguments: &call.arguments,
        is_sandboxed: false,
    });
    match (verdict.action, mode) {
        (ApprovalAction::Deny, PermissionMode::Plan) => Some("plan mode is on".to_owned()),
        (ApprovalAction::Deny, _) => Some(verdict.reason),
        (ApprovalAction::Auto | ApprovalAction::Ask, _) => None,
    }
}

/// Whether a second run has begun, or may have.
async fn has_begun_outside(worker: &Worker, call: CallId) -> bool {
    let tasks = worker.runtime().tasks.clone();
    let looking = move || !matches!(tasks.find(TaskId::outside_sandbox(call)), Ok(Found::NotStarted));
    tokio::task::spawn_blocking(looking).await.unwrap_or(true)
}

/// Adds to the message in the head of a result.
fn add_message(result: &mut ToolFinished, said: &str) {
    match CommandReport::parse(&result.content) {
        Some((mut report, output)) => {
            let told = report.message.map(|message| format!("{message}; ")).unwrap_or_default();
            report.message = Some(told + said);
            result.content = report.with_output(&output);
            result.report.message = CommandReport::parse(&result.content).and_then(|(told, _)| told.message);
        }
        None => result.content.push_str(&format!("\n[{said}]")),
    }
}
