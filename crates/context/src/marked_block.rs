//! Text that a user sends along and has not said: a piped text, a file. It stands in a fenced block with a label, so that the model, memory
//! and directives take it for data. P8.

use crate::pasted_text::UserText;

/// Fences in fences that a user may have left open.
const MAX_OPEN_FENCES: usize = 8;
/// The shortest fence.
const MIN_FENCE: usize = 4;

/// A block with this label. Its fence is longer than any in the text, so the text can't end the block.
pub fn marked_block(label: &str, text: &str) -> String {
    let fence = "~".repeat(longest_run(text, '~').saturating_add(1).max(MIN_FENCE));
    let label: String = label.chars().filter(|letter| !letter.is_control() && *letter != '~').collect();
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{fence} {label}\n{text}{end}{fence}")
}

/// What a user said, with blocks below it.
pub fn with_blocks(said: &str, blocks: &[String]) -> String {
    let said = close_fences(said.trim_end());
    let parts = std::iter::once(said.as_str()).chain(blocks.iter().map(String::as_str));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Closes a fence that the user has left open. Otherwise a fence in a block would end it, and what follows would count as the user's words.
fn close_fences(said: &str) -> String {
    const PROBE: &str = "\n\nprobe";
    let is_open = |said: &str| !UserText::of(&format!("{said}{PROBE}")).own.ends_with("probe");
    let length = ['`', '~'].map(|mark| longest_run(said, mark)).into_iter().max().unwrap_or(0).max(3);
    let closed =
        |mark: &str, count: usize| format!("{said}{}", format!("\n{}", mark.repeat(length)).repeat(count));
    if !is_open(said) {
        return said.to_owned();
    }
    let candidates = (1..=MAX_OPEN_FENCES).flat_map(|count| [closed("`", count), closed("~", count)]);
    candidates.into_iter().find(|candidate| !is_open(candidate)).unwrap_or_else(|| said.to_owned())
}

/// How often this mark stands in a row at most.
fn longest_run(text: &str, mark: char) -> usize {
    text.split(|letter| letter != mark).map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "marked_block_tests.rs"]
mod tests;
