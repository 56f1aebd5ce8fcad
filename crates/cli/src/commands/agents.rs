//! `longhaul agents`: subagents as a tree, from any process, also while no runtime runs.

use std::sync::Arc;

use longhaul_agent::tasks::{TaskOutput, TaskRegistry};
use longhaul_agent::{SubagentReport, list_subagents, now};
use longhaul_journal::{Error, Journal, SessionEntry};
use longhaul_protocol::{SessionId, TaskStatus};
use serde_json::json as object;

use crate::args::{AgentKillOptions, AgentListOptions, AgentShowOptions, AgentsCommand, GlobalArgs};
use crate::output::{format_duration, format_recent_moment, json, line, print, sanitize, truncate};
use crate::session_lookup::find_session;
use crate::{bad_usage, exit, suggested_command};

/// Characters of a description in the list.
const MAX_DESCRIPTION_CHARS: usize = 60;

pub(crate) async fn run(
    globals: &GlobalArgs,
    command: Option<AgentsCommand>,
    options: AgentListOptions,
) -> anyhow::Result<u8> {
    match command.unwrap_or(AgentsCommand::List(options)) {
        AgentsCommand::List(options) => list(globals, &options).await,
        AgentsCommand::Show(options) => show(globals, &options).await,
        AgentsCommand::Kill(options) => kill(globals, &options).await,
    }
}

async fn list(globals: &GlobalArgs, options: &AgentListOptions) -> anyhow::Result<u8> {
    let reports = match (globals.open_journal().await?, &globals.session) {
        (Some(journal), session) => {
            let below = match session {
                Some(name) => Some(find_session(&journal, name).await?.id),
                None => None,
            };
            let reports = list_subagents(&journal, below).await?;
            journal.close().await;
            reports
        }
        (None, Some(key)) => return Err(Error::NoSuchSession { key: key.clone() }.into()),
        (None, None) => vec![],
    };
    match (options.json, reports.is_empty()) {
        (true, _) => json(&reports)?,
        (false, true) => line("No subagents.")?,
        (false, false) => tree(&reports).into_iter().try_for_each(line)?,
    }
    Ok(exit::DONE)
}

/// The subagents as a tree, below the sessions that started them.
pub(crate) fn tree(reports: &[SubagentReport]) -> Vec<String> {
    let today = now();
    let mut lines = Vec::new();
    for report in reports {
        if report.depth == 1 && lines.last() != Some(&report.parent) {
            let is_new = !lines.contains(&report.parent);
            lines.extend(is_new.then(|| truncate(&report.parent, 200)));
        }
        let indent = "  ".repeat(usize::try_from(report.depth).unwrap_or(1));
        let lasted = report.duration_ms.map(|ms| format!(" in {}", format_duration(ms))).unwrap_or_default();
        let since = format_recent_moment(report.started_at, today);
        let (session, name) = (truncate(&report.session, 200), truncate(&report.name, 64));
        let about = truncate(&report.description, MAX_DESCRIPTION_CHARS);
        let message = report.message.as_ref().map(|message| format!(" ({})", truncate(message, 200)));
        lines.push(format!(
            "{indent}{session}  {}{lasted}, {since}  {name}: {about}{}",
            report.status.word(),
            message.unwrap_or_default()
        ));
    }
    lines
}

/// The subagent that the user named, and the tasks of the home.
async fn find_subagent(globals: &GlobalArgs, name: &str) -> anyhow::Result<(TaskRegistry, SubagentReport)> {
    let (Some(home), Some(journal)) = (globals.existing_home()?, globals.open_journal().await?) else {
        return Err(bad_usage(format!("no subagent {name:?}: there are no sessions yet")));
    };
    let registry = TaskRegistry::new(Arc::new(journal), home.folder())?;
    let report = find_report(&**registry.journal(), name).await?;
    Ok((registry, report))
}

async fn find_report(journal: &dyn Journal, name: &str) -> anyhow::Result<SubagentReport> {
    let reports = list_subagents(journal, None).await?;
    let by_task = reports.iter().find(|report| report.task_id.to_string() == name);
    if let Some(report) = by_task {
        return Ok(report.clone());
    }
    let SessionEntry { key, id, .. } = find_session(journal, name).await?;
    let is_it = |report: &&SubagentReport| report.id == id;
    let found = reports.iter().find(is_it).cloned();
    found.ok_or_else(|| {
        bad_usage(format!("{} is no subagent; `longhaul agents` lists them", truncate(&key, 200)))
    })
}

/// What a subagent said last.
async fn said(registry: &TaskRegistry, report: &SubagentReport) -> anyhow::Result<String> {
    let Some(task) = registry.with_id(report.task_id).await? else { return Ok(String::new()) };
    Ok(match registry.output(&task).await? {
        TaskOutput::Recorded(bytes) | TaskOutput::RecordedEnd(bytes) => {
            String::from_utf8_lossy(&bytes).into_owned()
        }
        TaskOutput::Kept(_) | TaskOutput::Gone => String::new(),
    })
}

async fn show(globals: &GlobalArgs, options: &AgentShowOptions) -> anyhow::Result<u8> {
    let (registry, report) = find_subagent(globals, &options.name).await?;
    let said = said(&registry, &report).await?;
    registry.journal().close().await;
    let open = suggested_command::command(globals, &["sessions", "show", &report.session]);
    let form = || {
        let mut form = object!(report);
        form["said"] = object!(said);
        form
    };
    print(options.json, form, || {
        let mut lines = tree(std::slice::from_ref(&report));
        lines.push(format!("Its conversation: {}", sanitize(&open)));
        if !said.is_empty() {
            lines.extend([String::new(), sanitize(&said)]);
        }
        lines
    })?;
    Ok(exit::DONE)
}

async fn kill(globals: &GlobalArgs, options: &AgentKillOptions) -> anyhow::Result<u8> {
    // Finds all before the first is stopped, so that a wrong name stops none.
    let mut wanted: Vec<(TaskRegistry, SubagentReport)> = Vec::new();
    for name in &options.names {
        wanted.push(find_subagent(globals, name).await?);
    }
    let mut stopped = Vec::new();
    for (registry, report) in wanted {
        let now = match registry.with_id(report.task_id).await? {
            Some(task) => registry.kill(&task).await?.status,
            None => report.status,
        };
        registry.journal().close().await;
        stopped.push((report.session, report.id, report.status, now));
    }
    if options.json {
        let form = |(session, id, _, now): &(String, SessionId, TaskStatus, TaskStatus)| object!({"session": session, "id": id, "status": now});
        json(&stopped.iter().map(form).collect::<Vec<_>>())?;
        return Ok(exit::DONE);
    }
    for (session, _, before, now) in &stopped {
        let session = truncate(session, 200);
        line(match (before, now) {
            (TaskStatus::Running, TaskStatus::Running) => {
                format!("{session} stops as soon as its session runs: no process runs it now")
            }
            (TaskStatus::Running, _) => format!("Stopped {session}"),
            (before, _) => format!("{session} had already ended ({})", before.word()),
        })?;
    }
    Ok(exit::DONE)
}
