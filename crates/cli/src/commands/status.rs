//! `longhaul status` and `/status`: the present state of a session.

use std::path::PathBuf;
use std::sync::Arc;

use longhaul_agent::memory_pages::memory_scope_of;
use longhaul_agent::tasks::{TaskEntry, TaskRegistry, TaskReport};
use longhaul_agent::{
    Client, Config, ContextReport, LimitStatus, Redactor, Session, SessionNode, SessionStatus,
    context_report, instruction_files, limit_status,
};
use longhaul_journal::Journal;
use longhaul_memory::{MemoryCalls, consolidation_calls};
use longhaul_model::ContextWindow;
use longhaul_protocol::PermissionMode;
use longhaul_protocol::{Question, SessionId};
use longhaul_transcript::{format_money, question_with_choices};
use serde_json::{Value, json};

use crate::args::{GlobalArgs, SessionOptions};
use crate::commands::context;
use crate::commands::tasks::lookup::description;
use crate::output::{
    format_count, format_duration, format_number, named, outcome_text, print, sanitize, truncate,
};
use crate::questions::how_to_answer;
use crate::session_lookup::{open_live_entry, session_name};
use crate::short_id::short;
use crate::{config, event_text, exit};

/// The status of a session with what this program knows beside it.
pub(crate) struct StatusReport {
    pub(crate) status: SessionStatus,
    /// The model of the last request; the configured one before the first.
    pub(crate) model: String,
    /// How full the context is, for the configured model.
    pub(crate) report: ContextReport,
    /// Running tasks.
    pub(crate) tasks: Vec<TaskEntry>,
    pub(crate) memory_scope: String,
    /// The permission mode.
    pub(crate) mode: PermissionMode,
    /// Whether extraction is on in the config.
    pub(crate) memory_is_on: bool,
    /// The model calls for the pages of the memory scope.
    pub(crate) page_calls: MemoryCalls,
    /// The limits on spending, and what is left of each.
    pub(crate) limits: Vec<LimitStatus>,
    /// The files with instructions that the next turn is told.
    pub(crate) instructions: Vec<String>,
}

pub(crate) async fn run(globals: &GlobalArgs, options: SessionOptions) -> anyhow::Result<u8> {
    let (journal, entry) = open_live_entry(globals, &session_name(globals, None).await?).await?;
    let journal: Arc<dyn Journal> = Arc::new(journal);
    // A client that only reads sends nothing that could hold a secret.
    let session = Client::new(journal.clone(), Redactor::default()).session(&entry.key).await?;
    let status = session.status().await?;
    let registry = TaskRegistry::new(journal.clone(), &globals.home_dir()?)?;
    let config = config::load(globals)?;
    let report = context_report(&config, &*journal, &status.state).await;
    let mut report = StatusReport::new(&session, status, report, &registry, &config).await?;
    journal.close().await;
    if let Some(model) = &report.status.state.model {
        report.model.clone_from(model);
    }
    print(options.json, || report.as_json(), || report.lines())?;
    Ok(exit::DONE)
}

pub(crate) async fn running_tasks(
    registry: &TaskRegistry,
    key: &str,
    id: SessionId,
) -> anyhow::Result<Vec<TaskEntry>> {
    let tasks = registry.of_session(key, id).await?;
    Ok(tasks.into_iter().filter(TaskEntry::is_running).collect())
}

impl StatusReport {
    pub(crate) async fn new(
        session: &Session,
        status: SessionStatus,
        report: ContextReport,
        registry: &TaskRegistry,
        config: &Config,
    ) -> anyhow::Result<Self> {
        let tasks = match status.id {
            Some(id) => running_tasks(registry, &status.key, id).await?,
            None => vec![],
        };
        let journal = &**session.journal();
        let memory_scope = memory_scope_of(config, journal, &status.key, status.id).await?;
        let turn = status.state.turn.as_ref().map(|turn| turn.number);
        Ok(Self {
            limits: limit_status(journal, &config.settings.limits, status.id, turn).await?,
            page_calls: consolidation_calls(journal, &memory_scope).await?,
            memory_scope,
            mode: status.state.permission.mode.unwrap_or(config.settings.approval.mode),
            memory_is_on: config.settings.memory.extract_at_tokens > 0,
            model: report.model.clone(),
            instructions: instruction_files(config, &work_dir(&status, config)),
            status,
            report,
            tasks,
        })
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let state = &self.status.state;
        let id = self.status.id.map_or_else(|| "not saved yet".to_owned(), |id| id.to_string());
        let mut lines = vec![
            named("session", truncate(&self.status.key, 200)),
            named("id", id),
            named(
                "model",
                if self.model.is_empty() { "none yet".to_owned() } else { truncate(&self.model, 200) },
            ),
            named("mode", self.mode.to_string()),
            named("turn", self.turn()),
            named("turns", format_count(state.turn_count, "turn")),
            named("context", self.context()),
            named(
                "compactions",
                context::compactions(state.compaction.count, self.status.last_compaction.as_ref()),
            ),
            named("memory", self.memory()),
            named("last outcome", state.last_outcome.map_or("none yet", outcome_text)),
        ];
        if let Some(imported) = event_text::imported(&self.status.import) {
            lines.push(named("imported", imported));
        }
        if let Some(text) = &state.interrupted_answer {
            let text = truncate(text, 60);
            lines.push(named("interrupted", format!("{text:?}; to continue it: /continue")));
        }
        if self.status.waiting > 0 {
            lines.push(named("waiting", format_count(self.status.waiting, "message")));
        }
        for open in &self.status.questions {
            // Not shortened: the user approves it on the strength of this text.
            let text = question_with_choices(open.kind, &open.text, &open.choices);
            let text = sanitize(text.trim_end()).replace('\n', "\n              ");
            lines.push(named("question", format!("{}: {text}", open.id)));
            lines.push(named("", how_to_answer(&self.status.key, open.id, open.kind)));
        }
        for task in &self.tasks {
            let lasted = task.now.duration_ms.map(|lasted| format!(", for {}", format_duration(lasted)));
            let what =
                format!("{}: {}{}", short(task.id()), description(&task.started), lasted.unwrap_or_default());
            lines.push(named("task", what));
        }
        if let Some(folder) = state.created.as_ref().and_then(|created| created.work_dir.as_deref()) {
            lines.push(named("work folder", truncate(folder, 300)));
        }
        if !self.instructions.is_empty() {
            lines.push(named("instructions", truncate(&self.instructions.join(", "), 600)));
        }
        if let Some(holder) = &self.status.run_by {
            lines.push(named("run by", holder.to_string()));
        }
        if let Some(node) = &self.status.node {
            lines.push(named("node", node_text(node)));
            if node.is_away() {
                let key = truncate(&self.status.key, 200);
                lines.push(named("", format!("to let other nodes run it: longhaul sessions portable {key}")));
            }
        }
        lines.extend(self.limits.iter().map(|limit| named("limit", limit_text(limit))));
        let limits = state.rate_limits.iter();
        lines.extend(limits.map(|(name, value)| {
            named("rate limit", format!("{}: {}", truncate(name, 60), truncate(value, 60)))
        }));
        lines
    }

    fn memory(&self) -> String {
        let (scope, through) = (&self.memory_scope, self.status.extracted_through);
        let off = if self.memory_is_on { "" } else { "; off (memory.extract_at_tokens is 0)" };
        let (through, head) = (format_number(through), format_number(self.status.state.head));
        let calls = memory_calls(&self.status.memory_calls);
        let pages = match self.page_calls.calls {
            0 => String::new(),
            _ => format!("; for all pages {}", memory_calls(&self.page_calls)),
        };
        format!("{through} of {head} entries read, into {scope}{off}; {calls}{pages}")
    }

    fn turn(&self) -> String {
        match &self.status.state.turn {
            None => "none running".to_owned(),
            Some(turn) => {
                let (number, step, what) =
                    (turn.number, turn.steps.max(1), self.status.state.describe_open_work());
                match self.status.is_running {
                    true => format!("turn {number} is running, in step {step}: {what}"),
                    false => format!(
                        "turn {number} was interrupted in step {step}: {what}; run `longhaul resume` to go on"
                    ),
                }
            }
        }
    }

    /// The tokens of the context for the model of the last request, and how many of them the provider counted.
    fn tokens(&self) -> (u64, Option<u64>) {
        if self.report.model == self.model {
            return (self.report.tokens(), self.report.reported);
        }
        let (tokens, reported) = self.status.state.context_tokens(&self.model);
        (tokens, reported.map(|reported| reported.tokens))
    }

    /// The window of that model; unknown if the configured model is another one.
    pub(crate) fn window(&self) -> Option<ContextWindow> {
        self.report.window.filter(|_| self.report.model == self.model)
    }

    pub(crate) fn context(&self) -> String {
        let (tokens, reported) = self.tokens();
        let source = context::token_source(reported);
        let of =
            self.window().map(|window| format!(" of {} ({})", format_number(window.tokens), window.source));
        format!("{} tokens{}: {source}", format_number(tokens), of.unwrap_or_default())
    }

    fn as_json(&self) -> Value {
        let state = &self.status.state;
        let (tokens, reported) = self.tokens();
        let turn = state.turn.as_ref().map(|turn| json!({"number": turn.number, "steps": turn.steps}));
        json!({
            "session": self.status.key,
            "id": self.status.id,
            "model": Some(&self.model).filter(|model| !model.is_empty()),
            "mode": self.mode,
            "turn": turn,
            "turns": state.turn_count,
            "context": {
                "tokens": tokens,
                "source": if reported.is_some() { "provider" } else { "estimate" },
                "reported": reported,
                "window": self.window().map(|window| window.tokens),
                "window_source": self.window().map(|window| window.source.to_string()),
            },
            "epoch": state.epoch.as_ref().map(|epoch| epoch.number),
            "compactions": state.compaction.count,
            "last_compaction": self.status.last_compaction,
            "memory": {
                "scope": self.memory_scope,
                "on": self.memory_is_on,
                "extracted_through": self.status.extracted_through,
                "records": state.head,
                "calls": self.status.memory_calls.calls,
                "cost": self.status.memory_calls.cost,
                "page_calls": self.page_calls.calls,
                "page_cost": self.page_calls.cost,
            },
            "imported": self.status.import.seq > 0,
            "foreign_through": self.status.import.foreign_through,
            "last_outcome": state.last_outcome,
            "interrupted": state.interrupted_answer,
            "waiting": self.status.waiting,
            "work_dir": state.created.as_ref().and_then(|created| created.work_dir.as_deref()),
            "instructions": self.instructions,
            "run_by": self.status.run_by.as_ref().map(|holder| json!({"host": holder.host, "pid": holder.pid})),
            "node": self.status.node.as_ref().map(|node| json!({
                "id": node.id, "away": node.is_away(), "seen_ago_ms": node.report.as_ref().map(|report| report.seen_ago_ms),
            })),
            "limits": self.limits,
            "rate_limits": state.rate_limits,
            "questions": self.status.questions.iter().map(question).collect::<Vec<_>>(),
            "tasks": self.tasks.iter().map(TaskReport::from).collect::<Vec<_>>(),
        })
    }
}

/// The node that a session is bound to, and whether it is there.
fn node_text(node: &SessionNode) -> String {
    let id = truncate(&node.id, 64);
    match &node.report {
        Some(report) if node.is_away() => format!("waits for node {id}, {}", report.last_seen()),
        Some(_) => id,
        None => format!("waits for node {id}, which never joined"),
    }
}

/// `cost_per_day: $0.4000 of $1.00 left`.
fn limit_text(limit: &LimitStatus) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole tokens")]
    let amount = |amount: f64| match limit.unit {
        "tokens" => format_count(amount as u64, "token"),
        _ => format_money(amount),
    };
    let (left, max) = (amount(limit.left), amount(limit.limit));
    let reserved = match limit.reserved > 0.0 {
        true => format!(", {} reserved by running calls", amount(limit.reserved)),
        false => String::new(),
    };
    format!("{}: {left} of {max} left{reserved}", limit.name)
}

/// The number and the cost of memory's calls: `2 model calls, $0.0123`.
pub(crate) fn memory_calls(calls: &MemoryCalls) -> String {
    let cost = calls.cost.map(|cost| format!(", {}", format_money(cost)));
    format!("{}{}", format_count(calls.calls, "model call"), cost.unwrap_or_default())
}

/// The folder that a session works in.
fn work_dir(status: &SessionStatus, config: &Config) -> PathBuf {
    let folder = status.state.created.as_ref().and_then(|created| created.work_dir.as_ref());
    folder.map_or_else(|| config.work_dir.clone(), PathBuf::from)
}

fn question(open: &Question) -> Value {
    json!({"id": open.id, "text": open.text})
}
