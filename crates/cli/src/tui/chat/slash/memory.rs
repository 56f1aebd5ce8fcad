//! `/memory` and `/remember`.

use longhaul_agent::memory_pages::{MemorySearch, memory_scope_of};
use longhaul_memory::{page_log, unindexed_notice};

use super::{CommandContext, TurnPhase};
use crate::commands::memory::{MemoryHandle, hit_lines, log_lines};
use crate::commands::remember;
use crate::commands::remember::EXTRACTION_OFF;
use crate::output::sanitize;
use crate::signals::SIGINT;
use crate::tui::chat::background::BackgroundOutcome;

const USAGE: &str = "/memory [list|show PAGE|search WORDS|log [PAGE]]";
/// Hits and changes that the chat lists; `longhaul memory` has all.
const MAX_HITS: usize = 5;
const MAX_CHANGES: usize = 10;

pub(crate) async fn run(context: &mut CommandContext<'_>, arguments: &str) -> anyhow::Result<()> {
    let lines = memory_lines(context, arguments).await?;
    context.printer.page(&sanitize(&lines.join("\n")));
    Ok(())
}

async fn memory_lines(context: &CommandContext<'_>, arguments: &str) -> anyhow::Result<Vec<String>> {
    let memory = open_memory(context).await?;
    let (command, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    let rest = rest.trim();
    Ok(match (command, rest) {
        ("" | "list", "") => memory.listing().await?.lines(),
        ("show", page) if !page.is_empty() => vec![memory.page(page)?.text.trim_end().to_owned()],
        ("search", query) if !query.is_empty() => {
            let MemorySearch { hits, unindexed } = memory.search(query, MAX_HITS).await?;
            let found = if hits.is_empty() { vec!["no matches".to_owned()] } else { hit_lines(&hits) };
            found.into_iter().chain(unindexed_notice(unindexed)).collect()
        }
        ("log", page) => {
            let page = Some(page).filter(|page| !page.is_empty());
            let entries = page_log(&*memory.journal, &memory.book.scope, page).await?;
            let mut lines = log_lines(&entries[..entries.len().min(MAX_CHANGES)]);
            match entries.len().saturating_sub(MAX_CHANGES) {
                0 if entries.is_empty() => lines.push("no changes yet".to_owned()),
                0 => {}
                more => lines.push(format!("and {more} older; see `longhaul memory log`")),
            }
            lines
        }
        _ => vec![format!("usage: {USAGE}")],
    })
}

/// The memory of this session.
async fn open_memory(context: &CommandContext<'_>) -> anyhow::Result<MemoryHandle> {
    let journal = context.runtime.journal();
    let scope =
        memory_scope_of(context.config, &*journal, context.session.key(), context.session.id()).await?;
    MemoryHandle::new(journal, context.config.clone(), &scope).await
}

/// `/remember [TEXT]`. During a turn the extraction runs in the background.
pub(crate) async fn remember(context: &mut CommandContext<'_>, text: &str, phase: TurnPhase) {
    if !text.is_empty() {
        return remember_text(context, text).await;
    }
    if context.config.settings.memory.extract_at_tokens == 0 {
        return context.printer.note(EXTRACTION_OFF);
    }
    let mut extraction = context.background.take_extraction(context.session);
    if phase == TurnPhase::DuringTurn {
        context.printer.note("updating memory in the background; the turn goes on");
        return context.background.keep_extraction(extraction);
    }
    tokio::select! {
        biased;
        number = context.signals.next() => {
            context.printer.note("it goes on while you do");
            context.background.keep_extraction(extraction);
            // Any other signal suspends the chat; the prompt loop sees it next.
            *context.suspended = (number != SIGINT).then_some(number);
        }
        done = &mut extraction => BackgroundOutcome::Extraction(done).note(context.printer),
    }
}

async fn remember_text(context: &mut CommandContext<'_>, text: &str) {
    let changed = match context.session.remember(text).await {
        Ok(changed) => changed,
        Err(error) => return context.printer.note(error),
    };
    match open_memory(context).await {
        Ok(memory) => {
            context.printer.note(remember::remembered(&changed, &memory.flag()));
            memory.write_files().await.iter().for_each(|left| context.printer.note(left));
        }
        Err(error) => context.printer.note(format!("{error:#}")),
    }
}
