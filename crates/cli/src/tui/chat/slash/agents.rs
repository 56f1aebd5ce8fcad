//! `/agents`: the subagents of this conversation.

use longhaul_agent::list_subagents;

use super::CommandContext;
use crate::commands::agents::tree;

pub(crate) async fn run(context: &mut CommandContext<'_>) -> anyhow::Result<()> {
    let reports = match context.session.id() {
        Some(id) => list_subagents(&**context.registry.journal(), Some(id)).await?,
        None => vec![],
    };
    if reports.is_empty() {
        context.printer.note("this session has no subagents");
        return Ok(());
    }
    let hint = "longhaul agents show KEY shows one; longhaul -s KEY opens its conversation; longhaul agents kill KEY stops it";
    let lines: Vec<String> = tree(&reports).into_iter().chain([hint.to_owned()]).collect();
    context.printer.page(&lines.join("\n"));
    Ok(())
}
