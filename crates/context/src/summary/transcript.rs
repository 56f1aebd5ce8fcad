//! The conversation as text. A marker before each part says who it is from. Material can't contain a marker, so the
//! output of a program can't look like the user's words.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use longhaul_protocol::{CallId, Item, Role};

use crate::is_task_notification;
use crate::truncate::{largest_passing, one_line, truncate_end, truncate_middle, with_commas};

/// Markers begin with this. In material, every bracket of a run except the first becomes a space.
const MARKER_START: &str = "<<";
/// The first words of all markers.
const MARKER_WORDS: [&str; 11] = [
    "previous",
    "transcript",
    "user",
    "assistant",
    "call",
    "result",
    "note",
    "notification",
    "picture",
    "end",
    "system",
];

/// Texts are not truncated below this as long as older parts can be dropped instead.
const MIN_TEXT_BYTES: usize = 160;
/// As long as there is other text to truncate, the user's texts are not truncated below the room divided by this, or
/// below `MAX_MIN_USER_TEXT` if that is less.
const MIN_USER_TEXT_DIVISOR: usize = 16;
const MAX_MIN_USER_TEXT: usize = 1_000;
/// When the oldest parts are dropped, other parts than the user's go first, until they take at most the room divided
/// by this.
const OTHERS_DIVISOR: usize = 3;
const MAX_NAME_BYTES: usize = 64;

/// Who a part is from. It decides what is truncated first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartSource {
    /// A tool result or a call.
    Tool,
    Agent,
    User,
}

struct TranscriptPart<'a> {
    source: PartSource,
    marker_line: Cow<'static, str>,
    text: &'a str,
    is_left_out: bool,
}

/// The longest text for each source.
#[derive(Clone, Copy)]
struct TextLimits {
    tool: usize,
    agent: usize,
    person: usize,
}

pub(super) fn marker_line(words: &str) -> String {
    format!("{MARKER_START}{words}>>\n")
}

/// The transcript in at most `room` bytes. Outputs are truncated first, then the model's texts, then the user's.
/// After that, the oldest parts are dropped.
pub(super) fn transcript(items: &[Arc<Item>], room: usize) -> String {
    let mut parts = parts(items);
    let longest = fit_parts(&mut parts, room);
    let left_out = parts.iter().filter(|part| part.is_left_out).count();
    let mut text = if left_out > 0 { left_out_line(left_out) } else { String::new() };
    if text.len() > room {
        text.clear();
    }
    for part in parts.iter().filter(|part| !part.is_left_out) {
        text.push_str(&part.marker_line);
        let marker = |missing: usize| format!("\n[… {} bytes are left out here …]\n", with_commas(missing));
        text.push_str(&escape_markers(&truncate_middle(part.text, longest.of(part.source), marker)));
        text.push('\n');
    }
    text
}

fn left_out_line(number: usize) -> String {
    format!("[{} parts, the oldest, are left out here]\n", with_commas(number))
}

fn parts(items: &[Arc<Item>]) -> Vec<TranscriptPart<'_>> {
    let mut names: HashMap<CallId, &str> = HashMap::new();
    items.iter().filter_map(|item| part(item, &mut names)).collect()
}

fn part<'a>(item: &'a Item, names: &mut HashMap<CallId, &'a str>) -> Option<TranscriptPart<'a>> {
    let (source, words, text): (_, Cow<'static, str>, &str) = match item {
        Item::Text { role: Role::User, text } if is_task_notification(text) => {
            (PartSource::Tool, "notification of a task".into(), text)
        }
        Item::Text { role: Role::User, text } => (PartSource::User, "user".into(), text),
        Item::Text { role: Role::Assistant, text } => (PartSource::Agent, "assistant".into(), text),
        Item::Text { role: Role::System, text } | Item::Note { text } => {
            (PartSource::Agent, "note".into(), text)
        }
        Item::Reasoning { .. } => return None,
        Item::ToolCall { call, name, arguments, .. } => {
            names.insert(*call, name);
            (PartSource::Tool, format!("call of {}", tool_name(name)).into(), arguments)
        }
        Item::ToolResult { call, content, images, is_error } => {
            let name = tool_name(names.get(call).copied().unwrap_or("a tool"));
            let failed = if *is_error { ", failed" } else { "" };
            let pictures = if images.is_empty() { "" } else { ", with a picture" };
            (PartSource::Tool, format!("result of {name}{failed}{pictures}").into(), content)
        }
        Item::Image(_) => (PartSource::User, "picture".into(), ""),
    };
    Some(TranscriptPart { source, marker_line: marker_line(&words).into(), text, is_left_out: false })
}

fn tool_name(name: &str) -> String {
    let plain =
        |c: char| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | ' ') { c } else { '?' };
    truncate_end(&one_line(name), MAX_NAME_BYTES).chars().map(plain).collect()
}

impl TextLimits {
    fn of(&self, source: PartSource) -> usize {
        match source {
            PartSource::Tool => self.tool,
            PartSource::Agent => self.agent,
            PartSource::User => self.person,
        }
    }

    fn with(self, source: PartSource, longest: usize) -> Self {
        match source {
            PartSource::Tool => Self { tool: longest, ..self },
            PartSource::Agent => Self { agent: longest, ..self },
            PartSource::User => Self { person: longest, ..self },
        }
    }

    /// An upper bound of the bytes that a part takes.
    fn size(&self, part: &TranscriptPart<'_>) -> usize {
        if part.is_left_out {
            return 0;
        }
        part.marker_line.len() + part.text.len().min(self.of(part.source)) + 1
    }

    fn size_of_all(&self, parts: &[TranscriptPart<'_>]) -> usize {
        parts.iter().map(|part| self.size(part)).sum()
    }
}

/// Finds the text limits with which all parts fit, and marks the parts that don't fit even then.
fn fit_parts(parts: &mut [TranscriptPart<'_>], room: usize) -> TextLimits {
    let mut longest = TextLimits { tool: usize::MAX, agent: usize::MAX, person: usize::MAX };
    let min_user_text = (room / MIN_USER_TEXT_DIVISOR).clamp(MIN_TEXT_BYTES, MAX_MIN_USER_TEXT);
    for (source, shortest) in [
        (PartSource::Tool, MIN_TEXT_BYTES),
        (PartSource::Agent, MIN_TEXT_BYTES),
        (PartSource::User, min_user_text),
    ] {
        if longest.size_of_all(parts) <= room {
            return longest;
        }
        longest = longest.with(source, max_text_within(parts, longest, source, shortest, room));
    }
    drop_oldest(parts, longest, room);
    longest
}

/// The longest text of one source with which everything fits, but at least `shortest`.
fn max_text_within(
    parts: &[TranscriptPart<'_>],
    longest: TextLimits,
    source: PartSource,
    shortest: usize,
    room: usize,
) -> usize {
    let of_source = parts.iter().filter(|part| part.source == source);
    let all = of_source.map(|part| part.text.len()).max().unwrap_or(0);
    largest_passing(shortest..=all, |most| longest.with(source, most).size_of_all(parts) <= room)
}

/// Drops the oldest parts until the others fit.
fn drop_oldest(parts: &mut [TranscriptPart<'_>], longest: TextLimits, room: usize) {
    let mut size = longest.size_of_all(parts);
    if size <= room {
        return;
    }
    let room = room.saturating_sub(left_out_line(parts.len()).len());
    let rest = parts.iter().filter(|part| part.source != PartSource::User);
    let mut rest: usize = rest.map(|part| longest.size(part)).sum();
    for part in parts.iter_mut().filter(|part| part.source != PartSource::User) {
        if size <= room || rest <= room / OTHERS_DIVISOR {
            break;
        }
        size -= longest.size(part);
        rest -= longest.size(part);
        part.is_left_out = true;
    }
    for part in parts.iter_mut() {
        if size <= room {
            break;
        }
        size -= longest.size(part);
        part.is_left_out = true;
    }
}

/// A text in which nothing looks like a marker. Its length stays the same.
pub(super) fn escape_markers(text: &str) -> Cow<'_, str> {
    let mut safe = String::new();
    let (mut copied, mut looked) = (0, 0);
    while let Some(distance) = text[looked..].find(MARKER_START) {
        let begin = looked + distance;
        // Replaces all brackets of a run, because two neighbours that remain would be a marker again.
        let after = text[begin..].trim_start_matches('<');
        looked = text.len() - after.len();
        if begins_with_marker_word(after) {
            safe.push_str(&text[copied..=begin]);
            safe.extend(std::iter::repeat_n(' ', looked - begin - 1));
            copied = looked;
        }
    }
    if copied == 0 { text.into() } else { (safe + &text[copied..]).into() }
}

fn begins_with_marker_word(text: &str) -> bool {
    let words = text.as_bytes().trim_ascii_start();
    let begins = |word: &&str| {
        words.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
    };
    MARKER_WORDS.iter().any(begins)
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
