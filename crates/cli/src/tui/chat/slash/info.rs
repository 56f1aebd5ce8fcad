//! Slash commands that do the same during and between turns. `/help`, `/status`, `/context` and `/doctor` are here, the
//! others in modules of their own.

use longhaul_agent::last_compaction;
use longhaul_protocol::OrderKind;

use super::{
    CommandContext, SlashAction, TurnPhase, agents, help, mcp, memory, mode, model, session, skills, tasks,
};
use crate::commands::compact::focus_of;
use crate::commands::context::ContextUsage;
use crate::commands::doctor;
use crate::commands::status::StatusReport;

/// Runs a command that does the same during and between turns, and notes its error.
pub(crate) async fn run(
    context: &mut CommandContext<'_>,
    action: SlashAction,
    arguments: &str,
    phase: TurnPhase,
) {
    if let Err(error) = try_run(context, action, arguments, phase).await {
        context.printer.note(format!("{error:#}"));
    }
}

async fn try_run(
    context: &mut CommandContext<'_>,
    action: SlashAction,
    arguments: &str,
    phase: TurnPhase,
) -> anyhow::Result<()> {
    match action {
        SlashAction::Help => context.printer.page(&help()),
        SlashAction::Status => {
            let status = session_status(context).await?;
            context.printer.page(&status.lines().join("\n"));
        }
        SlashAction::Context => {
            let usage = context_usage(context).await?;
            context.printer.page(&usage.lines().join("\n"));
        }
        SlashAction::Compact => order_compaction(context, arguments).await?,
        SlashAction::Model => model::run(context, arguments, phase).await?,
        SlashAction::Mode => mode::run(context, arguments).await?,
        SlashAction::Save => session::save(context).await?,
        SlashAction::Doctor => show_doctor(context).await?,
        SlashAction::Tasks => tasks::run(context, arguments, phase).await?,
        SlashAction::Agents => agents::run(context).await?,
        SlashAction::Memory => memory::run(context, arguments).await?,
        SlashAction::Skills => skills::run(context).await?,
        SlashAction::Mcp => mcp::run(context).await?,
        SlashAction::Remember => memory::remember(context, arguments, phase).await,
        // These differ: the prompt loop and the loop of a turn run them.
        SlashAction::Retry
        | SlashAction::Continue
        | SlashAction::Cancel
        | SlashAction::Answer
        | SlashAction::Session
        | SlashAction::Fork
        | SlashAction::Clear
        | SlashAction::Exit => {}
    }
    Ok(())
}

/// Orders a compaction before the next step of the running turn, in whichever process.
async fn order_compaction(context: &mut CommandContext<'_>, focus: &str) -> anyhow::Result<()> {
    if context.session.id().is_none() {
        return Ok(());
    }
    context.session.order(OrderKind::Compact { focus: focus_of(focus) }).await?;
    context.printer.note("the context will be compacted before the next step");
    Ok(())
}

/// The same as `longhaul doctor`.
async fn show_doctor(context: &mut CommandContext<'_>) -> anyhow::Result<()> {
    let findings = doctor::run_checks(context.globals).await?;
    let lines: Vec<String> = findings.iter().map(doctor::line).collect();
    context.printer.page(&lines.join("\n"));
    Ok(())
}

async fn context_usage(context: &CommandContext<'_>) -> anyhow::Result<ContextUsage> {
    let state = context.session.state().await?;
    let last = match context.session.id() {
        Some(id) => last_compaction(&*context.runtime.journal(), id, &state).await?,
        None => None,
    };
    let report = context.runtime.context_report(context.session.key(), &state).await;
    Ok(ContextUsage { key: context.session.key().to_owned(), report, last })
}

pub(crate) async fn session_status(context: &CommandContext<'_>) -> anyhow::Result<StatusReport> {
    let status = context.session.status().await?;
    let report = context.runtime.context_report(context.session.key(), &status.state).await;
    StatusReport::new(context.session, status, report, context.registry, context.config).await
}
