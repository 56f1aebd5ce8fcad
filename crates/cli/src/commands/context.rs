//! `longhaul context` and `/context`: how full the context of a session is, and of what.

use longhaul_agent::session::load;
use longhaul_agent::{ContextReport, context_report, last_compaction};
use longhaul_journal::Journal;
use longhaul_protocol::CompactDone;
use serde_json::{Value, json};

use crate::args::{GlobalArgs, SessionOptions};
use crate::output::{compacted_by_text, format_count, format_number, named, print, truncate};
use crate::session_lookup::{open_live_entry, session_name};
use crate::{config, exit};

/// Columns of the bar for the whole window.
const BAR_COLUMNS: u64 = 30;

/// The context of a session.
pub(crate) struct ContextUsage {
    pub(crate) key: String,
    pub(crate) report: ContextReport,
    pub(crate) last: Option<CompactDone>,
}

pub(crate) async fn run(globals: &GlobalArgs, options: SessionOptions) -> anyhow::Result<u8> {
    let (journal, entry) = open_live_entry(globals, &session_name(globals, None).await?).await?;
    let state = load(&journal, &entry.key, entry.id).await?;
    let last = last_compaction(&journal, entry.id, &state).await?;
    let report = context_report(&config::load(globals)?, &journal, &state).await;
    journal.close().await;
    let context = ContextUsage { key: entry.key, report, last };
    print(options.json, || context.as_json(), || context.lines())?;
    Ok(exit::DONE)
}

/// `3 compactions, the last by a summary`.
pub(crate) fn compactions(number: u64, last: Option<&CompactDone>) -> String {
    let last = last.map(|last| format!(", the last {}", compacted_by_text(last.by)));
    format!("{}{}", format_count(number, "compaction"), last.unwrap_or_default())
}

/// Where a number of tokens comes from; `reported` is the part that the provider counted.
pub(crate) fn token_source(reported: Option<u64>) -> String {
    match reported {
        Some(reported) => format!("{} counted by the provider, the rest estimated", format_number(reported)),
        None => "estimated".to_owned(),
    }
}

impl ContextUsage {
    pub(crate) fn lines(&self) -> Vec<String> {
        let report = &self.report;
        let model = Some(truncate(&report.model, 200)).filter(|model| !model.is_empty());
        let mut lines = vec![
            named("session", truncate(&self.key, 200)),
            named("model", model.unwrap_or_else(|| "none yet".to_owned())),
            named("window", self.window()),
            named("context", self.total()),
        ];
        lines.extend(self.parts().into_iter().filter_map(|part| self.part(part)));
        lines.push(named("compacts", self.checks()));
        lines.push(named(
            "context no.",
            report.epoch.map_or_else(|| "none yet".to_owned(), |epoch| epoch.to_string()),
        ));
        let last = self.last.as_ref();
        lines.push(named("compactions", compactions(report.compactions, last)));
        lines.extend(last.map(|last| {
            let (before, after) = (format_number(last.before), format_number(last.after));
            named("", format!("{before} → {after} tokens, entries {}–{}", last.from, last.through))
        }));
        lines
    }

    fn window(&self) -> String {
        let Some((window, room)) = self.report.window.zip(self.report.room) else {
            return "unknown; set model.context_window".to_owned();
        };
        let taken = match room.window < window.tokens {
            true => format!("; limited to {}, because the server refused more", format_number(room.window)),
            false => String::new(),
        };
        format!("{} tokens, {}{taken}", format_number(window.tokens), window.source)
    }

    fn total(&self) -> String {
        format!("{} tokens: {}", format_number(self.report.tokens()), token_source(self.report.reported))
    }

    fn checks(&self) -> String {
        let checks = &self.report.checks;
        if self.report.room.is_none() {
            return "only on request: the window size is unknown".to_owned();
        }
        let said = |moment: &str, at: Option<u64>| match at {
            Some(at) => format!("{moment} at {}", format_number(at)),
            None => format!("{moment}: off"),
        };
        let before = said("before a turn", checks.before_turn);
        let (within, idle) = (said("within a turn", checks.within_turn), said("when idle", checks.idle));
        format!("{before}, {within}, {idle}")
    }

    /// What takes room, in the order in which the model reads it, then what is free.
    fn parts(&self) -> [(&'static str, Option<u64>); 10] {
        let (report, parts) = (&self.report, &self.report.parts);
        [
            ("system", Some(parts.system)),
            ("tools", Some(parts.tools)),
            ("memory", Some(parts.memory)),
            ("summary", Some(parts.summary)),
            ("pins", Some(parts.pins)),
            ("turns", Some(parts.turns)),
            ("tool output", Some(parts.tool_output)),
            ("waiting", Some(report.incoming).filter(|tokens| *tokens > 0)),
            ("answer", report.room.map(|room| room.answer)),
            ("free", report.free()),
        ]
    }

    /// A part with its share of the window, as a percentage and as a bar.
    fn part(&self, (name, tokens): (&str, Option<u64>)) -> Option<String> {
        let tokens = tokens?;
        let figure = format!("  {name:<11} {:>12}", format_number(tokens));
        let window = self.report.room.map(|room| room.window).filter(|window| *window > 0);
        Some(match window {
            Some(window) => format!("{figure} {:>6}  {}", share(tokens, window), bar(tokens, window))
                .trim_end()
                .to_owned(),
            None => figure,
        })
    }

    pub(crate) fn as_json(&self) -> Value {
        let report = &self.report;
        json!({
            "session": self.key,
            "model": Some(&report.model).filter(|model| !model.is_empty()),
            "tokens": report.tokens(),
            "source": if report.reported.is_some() { "provider" } else { "estimate" },
            "reported": report.reported,
            "parts": report.parts,
            "waiting": report.incoming,
            "answer": report.room.map(|room| room.answer),
            "free": report.free(),
            "window": report.room.map(|room| room.window),
            "window_said": report.window.map(|window| window.tokens),
            "window_source": report.window.map(|window| window.source.to_string()),
            "usable": report.room.map(|room| room.usable()),
            "compact_at": report.checks.before_turn,
            "compact_now_at": report.checks.within_turn,
            "compact_idle_at": report.checks.idle,
            "epoch": report.epoch,
            "compactions": report.compactions,
            "last_compaction": self.last,
        })
    }
}

/// A share of the window: `12.5 %`.
fn share(tokens: u64, window: u64) -> String {
    let tenths = u128::from(tokens) * 1_000 / u128::from(window);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// The share as a bar. A part that is not empty shows at least a sliver.
fn bar(tokens: u64, window: u64) -> String {
    let full = u128::from(tokens.min(window)) * u128::from(BAR_COLUMNS) / u128::from(window);
    match usize::try_from(full).unwrap_or_default() {
        0 if tokens > 0 => "▏".to_owned(),
        full => "█".repeat(full),
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
