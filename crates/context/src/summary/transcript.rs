//! What was said, as a text: before each part stands a mark that says who said it. Material can't hold such a mark, so what a
//! program printed can't look like what a person said.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use longhaul_protocol::{CallId, Item, Role};

use crate::is_task_notification;
use crate::text::{grouped, head, largest, one_line, without_middle};

/// What marks begin with. In material there are spaces in place of every bracket but the first.
const OPENS: &str = "<<";
/// What the words of marks begin with.
const MARK_WORDS: [&str; 11] = [
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

/// Texts are not made shorter than this as long as there are others to leave out.
const SHORTEST: usize = 160;
/// The words of people are not made shorter than this part of the room, within these bounds, while there is anything else.
const SHORTEST_SAID_SHARE: usize = 16;
const SHORTEST_SAID: usize = 1_000;
/// When the oldest is left out, what is not the words of people goes first, down to this part of the room.
const REST_SHARE: usize = 3;
/// The name of a tool in a mark is at most so long.
const LONGEST_NAME: usize = 64;

/// Who said something, as far as that matters for what is shortened first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A tool, or a model that calls it.
    Tool,
    /// The model, or the runtime.
    Agent,
    /// A person.
    Person,
}

/// One part of a transcript.
struct Part<'a> {
    source: Source,
    mark: Cow<'static, str>,
    text: &'a str,
    is_left_out: bool,
}

/// How long the texts of each source may be.
#[derive(Clone, Copy)]
struct Longest {
    tool: usize,
    agent: usize,
    person: usize,
}

/// A mark with these words, as a line.
pub(super) fn mark(words: &str) -> String {
    format!("{OPENS}{words}>>\n")
}

/// What was said, in at most so many bytes: outputs are shortened first, then what the model said, then what people said; then the
/// oldest is left out.
pub(super) fn transcript(items: &[Arc<Item>], room: usize) -> String {
    let mut parts = parts(items);
    let longest = fit(&mut parts, room);
    let left_out = parts.iter().filter(|part| part.is_left_out).count();
    let mut text = if left_out > 0 { left_out_line(left_out) } else { String::new() };
    if text.len() > room {
        text.clear();
    }
    for part in parts.iter().filter(|part| !part.is_left_out) {
        text.push_str(&part.mark);
        let marker = |missing: usize| format!("\n[… {} bytes are left out here …]\n", grouped(missing));
        text.push_str(&neutralise_marks(&without_middle(part.text, longest.of(part.source), marker)));
        text.push('\n');
    }
    text
}

fn left_out_line(number: usize) -> String {
    format!("[{} parts, the oldest, are left out here]\n", grouped(number))
}

fn parts(items: &[Arc<Item>]) -> Vec<Part<'_>> {
    let mut names: HashMap<CallId, &str> = HashMap::new();
    items.iter().filter_map(|item| part(item, &mut names)).collect()
}

fn part<'a>(item: &'a Item, names: &mut HashMap<CallId, &'a str>) -> Option<Part<'a>> {
    let (source, words, text): (_, Cow<'static, str>, &str) = match item {
        Item::Text { role: Role::User, text } if is_task_notification(text) => {
            (Source::Tool, "notification of a task".into(), text)
        }
        Item::Text { role: Role::User, text } => (Source::Person, "user".into(), text),
        Item::Text { role: Role::Assistant, text } => (Source::Agent, "assistant".into(), text),
        Item::Text { role: Role::System, text } | Item::Note { text } => (Source::Agent, "note".into(), text),
        Item::Reasoning { .. } => return None,
        Item::ToolCall { call, name, arguments, .. } => {
            names.insert(*call, name);
            (Source::Tool, format!("call of {}", tool_name(name)).into(), arguments)
        }
        Item::ToolResult { call, content, images, is_error } => {
            let name = tool_name(names.get(call).copied().unwrap_or("a tool"));
            let failed = if *is_error { ", failed" } else { "" };
            let pictures = if images.is_empty() { "" } else { ", with a picture" };
            (Source::Tool, format!("result of {name}{failed}{pictures}").into(), content)
        }
        Item::Image(_) => (Source::Person, "picture".into(), ""),
    };
    Some(Part { source, mark: mark(&words).into(), text, is_left_out: false })
}

fn tool_name(name: &str) -> String {
    let plain =
        |c: char| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | ' ') { c } else { '?' };
    head(&one_line(name), LONGEST_NAME).chars().map(plain).collect()
}

impl Longest {
    fn of(&self, source: Source) -> usize {
        match source {
            Source::Tool => self.tool,
            Source::Agent => self.agent,
            Source::Person => self.person,
        }
    }

    fn with(self, source: Source, longest: usize) -> Self {
        match source {
            Source::Tool => Self { tool: longest, ..self },
            Source::Agent => Self { agent: longest, ..self },
            Source::Person => Self { person: longest, ..self },
        }
    }

    /// At most so many bytes a part takes.
    fn size(&self, part: &Part<'_>) -> usize {
        if part.is_left_out {
            return 0;
        }
        part.mark.len() + part.text.len().min(self.of(part.source)) + 1
    }

    fn size_of_all(&self, parts: &[Part<'_>]) -> usize {
        parts.iter().map(|part| self.size(part)).sum()
    }
}

/// How long texts may be for all of them to have room, and which parts have none even so.
fn fit(parts: &mut [Part<'_>], room: usize) -> Longest {
    let mut longest = Longest { tool: usize::MAX, agent: usize::MAX, person: usize::MAX };
    let shortest_said = (room / SHORTEST_SAID_SHARE).clamp(SHORTEST, SHORTEST_SAID);
    for (source, shortest) in
        [(Source::Tool, SHORTEST), (Source::Agent, SHORTEST), (Source::Person, shortest_said)]
    {
        if longest.size_of_all(parts) <= room {
            return longest;
        }
        longest = longest.with(source, longest_within(parts, longest, source, shortest, room));
    }
    leave_out(parts, longest, room);
    longest
}

/// How long the texts of a source may be for everything to have room; if nothing helps, the least that they may be cut to.
fn longest_within(
    parts: &[Part<'_>],
    longest: Longest,
    source: Source,
    shortest: usize,
    room: usize,
) -> usize {
    let of_source = parts.iter().filter(|part| part.source == source);
    let all = of_source.map(|part| part.text.len()).max().unwrap_or(0);
    largest(shortest..=all, |most| longest.with(source, most).size_of_all(parts) <= room)
}

/// Leaves the oldest parts out until the others have room.
fn leave_out(parts: &mut [Part<'_>], longest: Longest, room: usize) {
    let mut size = longest.size_of_all(parts);
    if size <= room {
        return;
    }
    let room = room.saturating_sub(left_out_line(parts.len()).len());
    let rest = parts.iter().filter(|part| part.source != Source::Person);
    let mut rest: usize = rest.map(|part| longest.size(part)).sum();
    for part in parts.iter_mut().filter(|part| part.source != Source::Person) {
        if size <= room || rest <= room / REST_SHARE {
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

/// A text in which nothing looks like a mark. It stays as long as it was.
pub(super) fn neutralise_marks(text: &str) -> Cow<'_, str> {
    let mut safe = String::new();
    let (mut copied, mut looked) = (0, 0);
    while let Some(distance) = text[looked..].find(OPENS) {
        let begin = looked + distance;
        // All brackets of a run: if one of them stayed beside another, that would be a mark again.
        let after = text[begin..].trim_start_matches('<');
        looked = text.len() - after.len();
        if begins_with_word_of_mark(after) {
            safe.push_str(&text[copied..=begin]);
            safe.extend(std::iter::repeat_n(' ', looked - begin - 1));
            copied = looked;
        }
    }
    if copied == 0 { text.into() } else { (safe + &text[copied..]).into() }
}

fn begins_with_word_of_mark(text: &str) -> bool {
    let words = text.as_bytes().trim_ascii_start();
    let begins = |word: &&str| {
        words.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
    };
    MARK_WORDS.iter().any(begins)
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
