//! A stored session as a page of plain text.

use crate::block::{Block, BlockContent, BlockState, TurnEnd, Update};
use crate::local_time::format_moment;
use crate::notice::{Verbosity, WAITING_INPUT, notice_text};
use crate::text::{cause_text, format_count, format_duration, outcome_text, sanitize, truncate};

/// The lines of an update, each with its end. Empty if the update is not worth a line: the page leaves reasoning out.
pub fn page_text(update: &Update) -> String {
    let lines = match update {
        Update::Ended(block) => block_text(block),
        Update::Started(_) | Update::Appended { .. } => None,
    };
    let notice = || notice_text(update, Verbosity::Verbose).map(|text| prefix_lines("  ", &text));
    lines.or_else(notice).map(|lines| lines + "\n").unwrap_or_default()
}

fn block_text(block: &Block) -> Option<String> {
    Some(match &block.content {
        BlockContent::TurnStart { cause } => {
            let turn = block.turn.unwrap_or_default();
            let cause = cause_text(*cause).map(|text| format!(" {text}")).unwrap_or_default();
            format!("\n── turn {turn}{cause} · {} ──", format_moment(block.started_at))
        }
        BlockContent::Input { text, images, from, .. } => {
            let mut lines: Vec<String> = from.iter().map(|from| format!("> [from {from}]")).collect();
            lines.push(prefix_lines("> ", text));
            lines.extend((*images > 0).then(|| format!("> [{}]", format_count(*images as u64, "image"))));
            lines.extend((block.state == BlockState::Running).then(|| format!("  [{WAITING_INPUT}]")));
            lines.join("\n")
        }
        BlockContent::Message { text, .. } if block.state == BlockState::Interrupted => {
            format!("{}\n[interrupted here]", sanitize(text.trim_end()))
        }
        BlockContent::Message { text, .. } if block.state == BlockState::Discarded => {
            format!("{}\n[discarded; the model was asked again]", sanitize(text.trim_end()))
        }
        BlockContent::Message { text, .. } => sanitize(text.trim_end()),
        BlockContent::Summary { text } => prefix_lines("  │ ", text),
        BlockContent::TurnEnd(end) => turn_end_text(end),
        BlockContent::ErasedRecord { seq, kind, at, reason } => {
            let (kind, reason) = (truncate(kind, 40), truncate(reason, 80));
            format!("  [entry {seq}, {kind}: erased on {}: {reason}]", format_moment(*at))
        }
        BlockContent::DamagedRecord { seq, reason } => {
            format!("  [entry {seq} is damaged: {}]", truncate(reason, 200))
        }
        _ => return None,
    })
}

fn turn_end_text(end: &TurnEnd) -> String {
    let error = end.error.as_deref().map(|error| format!("  ✗ {}\n", truncate(error, 400)));
    format!("{}  {}", error.unwrap_or_default(), turn_totals_text(end))
}

/// `completed after 3 s: 2 steps, 1,234 tokens in, 56 out`.
pub(crate) fn turn_totals_text(end: &TurnEnd) -> String {
    let (took, steps) = (format_duration(end.took_ms.unwrap_or(0)), format_count(end.steps, "step"));
    format!("{} after {took}: {steps}, {}", outcome_text(end.outcome), end.spend)
}

fn prefix_lines(prefix: &str, text: &str) -> String {
    let lines: Vec<String> =
        sanitize(text.trim_end()).lines().map(|line| format!("{prefix}{line}")).collect();
    lines.join("\n")
}
