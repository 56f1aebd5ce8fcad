//! Whether a call may run. This depends on the approval rules, the permission mode, the user's answers, and whether the sandbox works here.

use std::path::PathBuf;

use longhaul_protocol::{Answer, ApprovalGrant, Effect, PermissionMode, Question, SessionRecord, Warning};
use longhaul_tools::{
    ApprovalAction, ApprovalVerdict, JudgedCall, PreparedCall, UrlPermission, is_granted, suggest_grant,
};

use crate::config::{SandboxMode, WithoutSandbox};
use crate::project_approvals::{load_project_grants, save_project_grant};
use crate::session::state::{ApprovalAnswer, CallState};
use crate::turn::approval_question::approval_question;
use crate::worker::{Worker, WorkerResult};

/// The tool that runs in the sandbox.
const EXEC: &str = "exec";
/// The tool whose redirects need permission.
const WEB_FETCH: &str = "web_fetch";
const PLAN_REFUSAL: &str = "not run: plan mode is on, and only reads run in it. Go on without it, and end with the plan: the user can \
                            accept it, or leave plan mode.";

/// Whether a call may run.
#[allow(clippy::large_enum_variant, reason = "there is one a call, and it is taken apart at once")]
pub(super) enum CallPermission {
    Granted,
    Refused(String),
    /// The user has to approve it.
    Ask(Question),
}

/// What a call would do, as far as its permission depends on it.
pub(super) struct CallEffect {
    pub(super) effect: Effect,
    /// A reason to ask the user whatever the rules say.
    pub(super) caution: Option<String>,
    /// What it would change, as a unified diff.
    pub(super) diff: Option<String>,
}

impl CallEffect {
    pub(super) fn new(effect: Effect, prepared: &PreparedCall) -> Self {
        Self { effect, caution: prepared.caution.clone(), diff: prepared.diff.clone() }
    }
}

/// Whether a call that has not begun may run.
pub(super) async fn check_permission(
    worker: &mut Worker,
    call: &CallState,
    prepared: CallEffect,
) -> WorkerResult<CallPermission> {
    if let Some(refused) = call.approval.as_ref().and_then(|answer| refusal(&answer.text)) {
        return Ok(refused);
    }
    let (mode, effect) = (worker.permission_mode(), prepared.effect);
    let unenforced = if call.name == EXEC { worker.runtime().not_enforced().await } else { None };
    let sandbox = &worker.runtime().config.settings.sandbox;
    // The current rules and the current mode decide, even about a call that the user approved under earlier ones.
    let ApprovalVerdict { action, reason } = worker.runtime().approvals.judge_in_mode(&JudgedCall {
        mode,
        effect,
        tool: &call.name,
        arguments: &call.arguments,
        is_sandboxed: unenforced.is_none() && sandbox.mode != SandboxMode::Off,
    });
    let is_change = !matches!(effect, Effect::Read | Effect::Idempotent);
    if action == ApprovalAction::Deny && mode == PermissionMode::Plan && is_change {
        return Ok(CallPermission::Refused(PLAN_REFUSAL.to_owned()));
    }
    if action == ApprovalAction::Deny {
        let refusal = format!("not run: {reason}; do it another way, or ask the user");
        return Ok(CallPermission::Refused(refusal));
    }
    // Reasons that no rule is about. A link may have been created on the path since the question.
    let mut others: Vec<String> = prepared.caution.iter().cloned().collect();
    if let Some(reason) = unenforced {
        match sandbox.unavailable {
            WithoutSandbox::Allow => {}
            WithoutSandbox::Ask => others.push(format!("it would run without bounds: {reason}")),
            WithoutSandbox::Refuse => {
                let policy = "sandbox.unavailable is \"refuse\"; ask the user";
                return Ok(CallPermission::Refused(format!("not run: {reason}, and {policy}")));
            }
        }
    }
    let rule = (action == ApprovalAction::Ask).then_some(reason);
    let reasons: Vec<String> = rule.iter().chain(&others).cloned().collect();
    // A call that began before a crash had its permission then.
    if call.started.is_some() || reasons.is_empty() {
        return Ok(CallPermission::Granted);
    }
    if let Some(answer) = call.approval.as_ref().filter(|answer| covers_reasons(answer, &reasons, &prepared))
    {
        save_answer_for_project(worker, answer).await?;
        return Ok(CallPermission::Granted);
    }
    if is_always_allowed(worker, call, rule.is_some(), &others) {
        return Ok(CallPermission::Granted);
    }
    let beyond_session = !others.is_empty();
    let grant = suggest_grant(&call.name, &call.arguments, others);
    let question = approval_question(call, &reasons, prepared.diff.as_deref(), grant);
    Ok(CallPermission::Ask(Question { beyond_session, ..question }))
}

/// Which pages a call may be redirected to: those that could be fetched without asking.
pub(super) fn url_permission(worker: &Worker) -> UrlPermission {
    let (policy, mode) = (worker.runtime().approvals.clone(), worker.permission_mode());
    let of_session = worker.state().permission.grants.clone();
    let (home, folder) =
        (worker.runtime().config.home.clone(), worker.toolset().work_dir().map(PathBuf::from));
    UrlPermission::new(move |url| {
        let arguments = serde_json::json!({ "url": url }).to_string();
        let call = JudgedCall {
            mode,
            effect: Effect::Read,
            tool: WEB_FETCH,
            arguments: &arguments,
            is_sandboxed: true,
        };
        match policy.judge_in_mode(&call).action {
            ApprovalAction::Auto => true,
            ApprovalAction::Deny => false,
            ApprovalAction::Ask => {
                let of_project =
                    folder.as_deref().map(|folder| load_project_grants(&home, folder)).unwrap_or_default();
                is_granted(of_session.iter().chain(&of_project), WEB_FETCH, &arguments)
            }
        }
    })
}

/// Whether the user's yes was about all of these reasons.
fn covers_reasons(yes: &ApprovalAnswer, reasons: &[String], prepared: &CallEffect) -> bool {
    // Questions of earlier versions have no recorded reasons. Their only reasons were the rules.
    let is_of_rule = |reason: &String| yes.reasons.is_empty() && prepared.caution.as_ref() != Some(reason);
    reasons.iter().all(|reason| yes.reasons.contains(reason) || is_of_rule(reason))
}

/// Whether the user allowed calls like this one for the session or the project: in spite of the rule, and of each other reason.
fn is_always_allowed(worker: &Worker, call: &CallState, by_rule: bool, others: &[String]) -> bool {
    let folder = worker.toolset().work_dir();
    let home = &worker.runtime().config.home;
    let of_project = folder.map(|folder| load_project_grants(home, folder)).unwrap_or_default();
    let grants: Vec<&ApprovalGrant> = worker.state().permission.grants.iter().chain(&of_project).collect();
    let covers = |reason: &String| {
        let accepting = grants.iter().copied().filter(|grant| grant.reasons.contains(reason));
        is_granted(accepting, &call.name, &call.arguments)
    };
    (!by_rule || is_granted(grants.iter().copied(), &call.name, &call.arguments)) && others.iter().all(covers)
}

/// Saves the rule of an answer that is for the whole project, before its call runs. If that fails, the answer holds for the session.
async fn save_answer_for_project(worker: &mut Worker, answer: &ApprovalAnswer) -> WorkerResult<()> {
    let (Answer::Project, Some(grant)) = (Answer::parse(&answer.text), &answer.grant) else { return Ok(()) };
    let (home, folder) = (&worker.runtime().config.home, worker.toolset().work_dir());
    let Some(folder) = folder else { return Ok(()) };
    let Err(error) = save_project_grant(home, folder, grant) else { return Ok(()) };
    let text = format!("the rule is kept for this session only: {error}");
    worker.commit(vec![SessionRecord::Warning(Warning::new("rule_not_saved", text))], vec![]).await
}

/// The refusal in the user's answer, unless it is a yes.
fn refusal(answer: &str) -> Option<CallPermission> {
    match Answer::parse(answer) {
        Answer::Yes | Answer::Always | Answer::Project => None,
        Answer::No => Some(CallPermission::Refused("not run: the user said no".to_owned())),
        Answer::Text(text) => {
            Some(CallPermission::Refused(format!("not run: the user did not say yes, but: {text}")))
        }
    }
}
