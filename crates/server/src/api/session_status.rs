//! The status of one session.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::{
    ContextReport, LimitStatus, SessionStatus, StatementItem, SubagentReport, list_subagents,
};
use longhaul_protocol::Question;
use schemars::JsonSchema;
use serde::Serialize;

use super::named_session::NamedSession;
use super::session_summary::{SessionSummary, summarise};
use crate::access::{Access, Scope};
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/sessions/{key}", read, "The status of a session", show_session)
            .answers::<SessionDetail>(StatusCode::OK, "The status."),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionDetail {
    #[serde(flatten)]
    summary: SessionSummary,
    /// The model of the last request; the configured one before the first.
    model: String,
    /// The permission mode: `ask`, `auto-edit`, `auto` or `plan`.
    mode: String,
    /// The open turn.
    turn: Option<OpenTurn>,
    /// Turns that have begun.
    turns: u64,
    /// Inputs that no turn has taken yet.
    waiting: u64,
    context: ContextUse,
    /// Running tasks.
    tasks: Vec<RunningTask>,
    /// Questions that wait for an answer.
    questions: Vec<OpenQuestion>,
    cost: SpentSoFar,
    /// What is left of the limits on spending. Those that are not set are left out.
    limits: Vec<LimitStatus>,
    /// The keys of its subagents, the oldest first.
    children: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OpenTurn {
    number: u64,
    /// Steps that have begun.
    steps: u64,
    /// When it began.
    started_at: Option<String>,
}

/// How full the context is. All sizes are in tokens.
#[derive(Debug, Serialize, JsonSchema)]
struct ContextUse {
    tokens: u64,
    /// `provider`: the provider's last count, and an estimate of what came since. `estimate`: there is no such count.
    source: &'static str,
    /// The provider's last count.
    reported: Option<u64>,
    /// The model's context window.
    window: Option<u64>,
    /// Where that figure comes from.
    window_source: Option<String>,
    /// What is free, without the room for the answer.
    free: Option<u64>,
    parts: ContextParts,
    /// The number of the current epoch.
    epoch: Option<u64>,
    compactions: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ContextParts {
    system: u64,
    tools: u64,
    memory: u64,
    summary: u64,
    pins: u64,
    turns: u64,
    tool_output: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RunningTask {
    id: String,
    description: String,
    /// The key of its session, if it is a subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OpenQuestion {
    id: String,
    /// `approval`, `ask`, `budget`, `plan` or `elicitation`.
    kind: String,
    text: String,
    choices: Vec<String>,
    /// What the call would change, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

/// What the model calls for the session have used, as the statement counts them.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct SpentSoFar {
    input: u64,
    output: u64,
    cached: u64,
    /// US dollars, as far as prices are known; null if none is.
    cost: Option<f64>,
    /// Calls whose price is not known.
    unpriced: u64,
}

async fn show_session(
    State(state): State<ServerState>,
    NamedSession(entry): NamedSession,
) -> ApiResult<Json<SessionDetail>> {
    let runtime = state.runtime();
    let session = runtime.session(&entry.key).await?;
    let status = session.status().await?;
    let report = runtime.context_report(&status.key, &status.state).await;
    let summary = summarise(runtime, &entry).await?;
    let StatementItem { input, output, cached, cost, unpriced, .. } =
        runtime.session_spending(entry.id).await?;
    let cost = SpentSoFar { input, output, cached, cost, unpriced };
    let turn = status.state.turn.as_ref().map(|turn| turn.number);
    let limits = runtime.limit_status(Some(entry.id), turn).await?;
    let configured = runtime.config().settings.approval.mode;
    let of_parent = status.state.parent().map(|parent| parent.mode);
    let below = list_subagents(&*state.journal(), Some(entry.id)).await?;
    let own: Vec<SubagentReport> = below.into_iter().filter(|report| report.depth == 1).collect();
    let mut detail = session_detail(summary, &status, &report, cost);
    for task in &mut detail.tasks {
        let subagent = own.iter().find(|report| report.task_id.to_string() == task.id);
        task.session = subagent.map(|report| report.session.clone());
    }
    Ok(Json(SessionDetail {
        mode: status.state.permission.mode.or(of_parent).unwrap_or(configured).to_string(),
        limits,
        children: own.into_iter().map(|report| report.session).collect(),
        ..detail
    }))
}

fn session_detail(
    summary: SessionSummary,
    status: &SessionStatus,
    report: &ContextReport,
    cost: SpentSoFar,
) -> SessionDetail {
    let state = &status.state;
    let name_of = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let turn = state.turn.as_ref().map(|turn| OpenTurn {
        number: turn.number,
        steps: turn.steps,
        started_at: turn.started_at.map(|at| at.to_string()),
    });
    let task = |task: &longhaul_agent::session::TaskState| RunningTask {
        id: task.id().to_string(),
        description: task.started.description.clone(),
        session: None,
    };
    let question = |open: &Question| OpenQuestion {
        id: open.id.to_string(),
        kind: name_of(serde_json::json!(open.kind)),
        text: open.text.clone(),
        choices: open.choices.clone(),
        diff: open.diff.clone(),
    };
    SessionDetail {
        summary,
        model: state.model.clone().unwrap_or_else(|| report.model.clone()),
        mode: String::new(),
        turn,
        turns: state.turn_count,
        waiting: status.waiting,
        context: context_use(report),
        tasks: state.tasks.running().map(task).collect(),
        questions: status.questions.iter().map(question).collect(),
        cost,
        limits: vec![],
        children: vec![],
    }
}

fn context_use(report: &ContextReport) -> ContextUse {
    let parts = report.parts;
    ContextUse {
        tokens: report.tokens(),
        source: if report.reported.is_some() { "provider" } else { "estimate" },
        reported: report.reported,
        window: report.window.map(|window| window.tokens),
        window_source: report.window.map(|window| window.source.to_string()),
        free: report.free(),
        parts: ContextParts {
            system: parts.system,
            tools: parts.tools,
            memory: parts.memory,
            summary: parts.summary,
            pins: parts.pins,
            turns: parts.turns,
            tool_output: parts.tool_output,
        },
        epoch: report.epoch,
        compactions: report.compactions,
    }
}
