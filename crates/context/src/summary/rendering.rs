//! The text of a summary, in a size that is given.

use std::sync::Arc;

use longhaul_protocol::{Item, Role, Summary};

use super::fields::{Field, Value};
use super::{ReadSummary, Written, read_summary};
use crate::text::{bytes_of, largest, one_line, without_marks, without_middle};

/// What the message begins with.
const MARK: &str = longhaul_protocol::SUMMARY_MARK;
/// What it says about itself, and the same where there is little room.
const INTRODUCTION: &str = "Earlier parts of this conversation were taken out of the context, and this stands in their place; \
                            history_search and history_read reach all of it, word for word.";
const SHORT_INTRODUCTION: &str = "history_search and history_read reach all that was before.";
/// What stands where something was shortened.
const SHORTENED: &str = longhaul_protocol::SHORTENED_MARK;
/// Entries are not made shorter than this as long as there are others to leave out.
const SHORTEST_ENTRY: usize = 120;
/// Of a line that is shorter, there is nothing left to read.
const SHORTEST_LINE: usize = 40;

/// What can go, the least important first, before what is vital.
const ORDINARY: [Field; 8] = [
    Field::Commands,
    Field::Files,
    Field::Done,
    Field::Notes,
    Field::Decisions,
    Field::Constraints,
    Field::Blocked,
    Field::InProgress,
];
const VITAL: [Field; 3] = [Field::NextAction, Field::Goal, Field::Directives];

/// The text of a summary, which begins with `[Compacted context summary]`, in at most so many tokens: what matters least is
/// shortened first. `dropped` is what is said about what went without a summary.
pub fn render_summary(summary: Option<&Summary>, dropped: Option<&str>, most: u64) -> String {
    let room = bytes_of(most);
    let mut text = MARK.to_owned();
    let left = |text: &str| room.saturating_sub(text.len() + 1);
    // Where the introduction would take most of it, there are more important things to say.
    let introductions = [(INTRODUCTION, 2), (SHORT_INTRODUCTION, 1)];
    if let Some((line, _)) = introductions.iter().find(|(line, share)| line.len() * share <= left(&text)) {
        text = text + "\n" + line;
    }
    let for_dropped = if summary.is_some() { left(&text) / 2 } else { left(&text) };
    let dropped = dropped.map(|dropped| without_marks(&one_line(dropped)).into_owned()).unwrap_or_default();
    if !dropped.is_empty() && dropped.len().min(SHORTEST_LINE) <= for_dropped {
        text = text + "\n" + &without_middle(&dropped, for_dropped, |_| format!(" {SHORTENED} "));
    }
    if let Some(summary) = summary {
        let body = body(summary, left(&text).saturating_sub(1));
        if !body.is_empty() {
            text = text + "\n\n" + &body;
        }
    }
    text
}

/// A summary, as far as what the model read of it tells: for an epoch whose record is gone.
pub fn read_back(rendered: &str) -> Option<Summary> {
    let body = rendered.strip_prefix(MARK)?;
    let (_, body) = body.split_once("\n# ")?;
    let text = format!("# {body}");
    let answer = Arc::new(Item::Text { role: Role::Assistant, text });
    let Ok(ReadSummary::InForm(written)) = read_summary(&[answer]) else { return None };
    let mut summary = written.summary;
    for directive in &mut summary.directives {
        *directive = directive.trim_matches('"').to_owned();
    }
    Some(summary)
}

/// The parts of a summary under their headings, in at most so many bytes.
pub(super) fn body(summary: &Summary, room: usize) -> String {
    let mut sections = sections(summary);
    // Every section counts the line break before it; the first has none.
    fit(&mut sections, room.saturating_add(1));
    let sections = sections.iter().filter(|section| !section.lines.is_empty());
    let texts = sections.map(|section| format!("# {}\n{}", section.heading, section.lines.join("\n")));
    texts.collect::<Vec<_>>().join("\n")
}

/// One heading with what stands under it.
struct Section {
    field: Field,
    heading: &'static str,
    lines: Vec<String>,
}

fn sections(summary: &Summary) -> Vec<Section> {
    let mut written = Written { summary: summary.clone(), withdrawn: vec![] };
    let section = |field: Field| {
        let heading = match field {
            Field::Directives => "Directives of the user that still hold",
            other => other.heading(),
        };
        Section { field, heading, lines: lines(field, field.of(&mut written)) }
    };
    Field::ALL.into_iter().map(section).collect()
}

/// The lines of a field. Nothing in them can look like a heading or like a message of the runtime.
fn lines(field: Field, value: Value<'_>) -> Vec<String> {
    let entry = |entry: &String| match field {
        Field::Directives => format!("- \"{}\"", without_marks(&one_line(entry))),
        _ => format!("- {}", without_marks(&one_line(entry))),
    };
    match value {
        Value::List(list) => list.iter().map(entry).collect(),
        Value::Text(text) => {
            let lines = text.lines().map(one_line).filter(|line| !line.is_empty());
            let lines = lines.map(|line| without_marks(&line).into_owned());
            lines.map(|line| if line.starts_with('#') { format!("#{line}") } else { line }).collect()
        }
    }
}

impl Section {
    /// How many bytes it takes, with the line breaks before each of its lines.
    fn size(&self) -> usize {
        if self.lines.is_empty() { 0 } else { self.size_of_heading() + size(&self.lines) }
    }

    fn size_of_heading(&self) -> usize {
        "\n# ".len() + self.heading.len()
    }

    /// Makes it so small, or as small as it gets with its heading: long entries are shortened, then the oldest go.
    fn shorten(&mut self, to: usize) {
        let room = to.saturating_sub(self.size_of_heading());
        let shortest = if self.lines.len() == 1 { SHORTEST_LINE } else { SHORTEST_ENTRY };
        let longest = longest_within(&self.lines, room);
        self.cut(longest.max(shortest));
        if longest >= shortest {
            return;
        }
        let mut left = room.saturating_sub(SHORTENED.len() + 1);
        let newest = self.lines.iter().rev().take_while(|line| match left.checked_sub(line.len() + 1) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
        let gone = self.lines.len() - newest.count();
        self.lines.drain(..gone);
        self.lines.insert(0, SHORTENED.to_owned());
    }

    fn cut(&mut self, longest: usize) {
        for line in &mut self.lines {
            if line.len() > longest {
                *line = without_middle(line, longest, |_| format!(" {SHORTENED} ")).into_owned();
            }
        }
    }
}

fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// How long a line may be if all of them, cut to that, have room.
fn longest_within(lines: &[String], room: usize) -> usize {
    let longest = lines.iter().map(String::len).max().unwrap_or(0);
    largest(0..=longest, |most| lines.iter().map(|line| line.len().min(most) + 1).sum::<usize>() <= room)
}

/// Makes sections smaller until all of them have room: the ordinary ones first, of which nothing may be left in the end.
fn fit(sections: &mut [Section], room: usize) {
    let remove = |section: &mut Section, _| section.lines.clear();
    for fields in [&ORDINARY[..], &VITAL[..]] {
        make_smaller(sections, fields, room, Section::shorten);
        make_smaller(sections, fields, room, remove);
    }
}

fn make_smaller(sections: &mut [Section], fields: &[Field], room: usize, way: impl Fn(&mut Section, usize)) {
    for field in fields {
        let over = sections.iter().map(Section::size).sum::<usize>().saturating_sub(room);
        let section = sections.iter_mut().find(|section| section.field == *field && over > 0);
        if let Some(section) = section.filter(|section| !section.lines.is_empty()) {
            way(section, section.size().saturating_sub(over));
        }
    }
}

#[cfg(test)]
#[path = "rendering_tests.rs"]
mod tests;
