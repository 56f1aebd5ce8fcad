//! The text of a summary, within a token budget.

use std::sync::Arc;

use longhaul_protocol::{Item, Role, Summary};

use super::fields::{Field, FieldValue};
use super::{ParsedSummary, WrittenSummary, parse_summary};
use crate::truncate::{largest_passing, max_bytes_for, neutralise_marks, one_line, truncate_middle};

/// The first line of the message.
const SUMMARY_MARK: &str = longhaul_protocol::SUMMARY_MARK;
/// The introduction, and a shorter one if there is little room.
const INTRODUCTION: &str = "Earlier parts of this conversation were taken out of the context, and this stands in their place; \
                            recall and recall_read reach all of it, word for word.";
const SHORT_INTRODUCTION: &str = "recall and recall_read reach all that was before.";
const TRUNCATED_MARK: &str = longhaul_protocol::SHORTENED_MARK;
/// Entries are not truncated below this as long as older entries can be dropped instead.
const MIN_ENTRY_BYTES: usize = 120;
/// A shorter line is not worth showing.
const MIN_LINE_BYTES: usize = 40;

/// Fields in the order in which they are truncated and dropped. The vital ones come last.
const ORDINARY_FIELDS: [Field; 8] = [
    Field::Commands,
    Field::Files,
    Field::Done,
    Field::Notes,
    Field::Decisions,
    Field::Constraints,
    Field::Blocked,
    Field::InProgress,
];
const VITAL_FIELDS: [Field; 3] = [Field::NextAction, Field::Goal, Field::Directives];

/// Renders a summary in at most `most` tokens. The least important fields are truncated first. `dropped` describes
/// what was dropped without being summarised.
pub fn render_summary(summary: Option<&Summary>, dropped: Option<&str>, most: u64) -> String {
    let room = max_bytes_for(most);
    let mut text = SUMMARY_MARK.to_owned();
    let left = |text: &str| room.saturating_sub(text.len() + 1);
    // With little room, the content is more important than the introduction.
    let introductions = [(INTRODUCTION, 2), (SHORT_INTRODUCTION, 1)];
    if let Some((line, _)) = introductions.iter().find(|(line, share)| line.len() * share <= left(&text)) {
        text = text + "\n" + line;
    }
    let for_dropped = if summary.is_some() { left(&text) / 2 } else { left(&text) };
    let dropped =
        dropped.map(|dropped| neutralise_marks(&one_line(dropped)).into_owned()).unwrap_or_default();
    if !dropped.is_empty() && dropped.len().min(MIN_LINE_BYTES) <= for_dropped {
        text = text + "\n" + &truncate_middle(&dropped, for_dropped, |_| format!(" {TRUNCATED_MARK} "));
    }
    if let Some(summary) = summary {
        let sections = render_sections(summary, left(&text).saturating_sub(1));
        if !sections.is_empty() {
            text = text + "\n\n" + &sections;
        }
    }
    text
}

/// Restores a summary from its rendered text, for an epoch whose record is gone.
pub fn parse_rendered_summary(rendered: &str) -> Option<Summary> {
    let body = rendered.strip_prefix(SUMMARY_MARK)?;
    let (_, body) = body.split_once("\n# ")?;
    let text = format!("# {body}");
    let answer = Arc::new(Item::Text { role: Role::Assistant, text });
    let Ok(ParsedSummary::InForm(written)) = parse_summary(&[answer]) else { return None };
    let mut summary = written.summary;
    for directive in &mut summary.directives {
        *directive = directive.trim_matches('"').to_owned();
    }
    Some(summary)
}

/// The fields of a summary under their headings, in at most `room` bytes.
pub(super) fn render_sections(summary: &Summary, room: usize) -> String {
    let mut sections = sections(summary);
    // Every section counts a line break before it, but the first has none.
    fit_sections(&mut sections, room.saturating_add(1));
    let sections = sections.iter().filter(|section| !section.lines.is_empty());
    let texts = sections.map(|section| format!("# {}\n{}", section.heading, section.lines.join("\n")));
    texts.collect::<Vec<_>>().join("\n")
}

struct Section {
    field: Field,
    heading: &'static str,
    lines: Vec<String>,
}

fn sections(summary: &Summary) -> Vec<Section> {
    let mut written = WrittenSummary { summary: summary.clone(), withdrawn: vec![] };
    let section = |field: Field| {
        let heading = match field {
            Field::Directives => "Directives of the user that still hold",
            other => other.heading(),
        };
        Section { field, heading, lines: lines(field, field.value_in(&mut written)) }
    };
    Field::ALL.into_iter().map(section).collect()
}

/// The lines of a field, escaped so that none looks like a heading or a message of the runtime.
fn lines(field: Field, value: FieldValue<'_>) -> Vec<String> {
    let entry = |entry: &String| match field {
        Field::Directives => format!("- \"{}\"", neutralise_marks(&one_line(entry))),
        _ => format!("- {}", neutralise_marks(&one_line(entry))),
    };
    match value {
        FieldValue::List(list) => list.iter().map(entry).collect(),
        FieldValue::Text(text) => {
            let lines = text.lines().map(one_line).filter(|line| !line.is_empty());
            let lines = lines.map(|line| neutralise_marks(&line).into_owned());
            lines.map(|line| if line.starts_with('#') { format!("#{line}") } else { line }).collect()
        }
    }
}

impl Section {
    /// The bytes of the section, including the line break before each line.
    fn lines_len(&self) -> usize {
        if self.lines.is_empty() { 0 } else { self.size_of_heading() + lines_len(&self.lines) }
    }

    fn size_of_heading(&self) -> usize {
        "\n# ".len() + self.heading.len()
    }

    /// Truncates long entries, then drops the oldest, until the section has at most `to` bytes. The heading stays.
    fn shorten(&mut self, to: usize) {
        let room = to.saturating_sub(self.size_of_heading());
        let shortest = if self.lines.len() == 1 { MIN_LINE_BYTES } else { MIN_ENTRY_BYTES };
        let longest = max_line_within(&self.lines, room);
        self.truncate_lines(longest.max(shortest));
        if longest >= shortest {
            return;
        }
        let mut left = room.saturating_sub(TRUNCATED_MARK.len() + 1);
        let newest = self.lines.iter().rev().take_while(|line| match left.checked_sub(line.len() + 1) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
        let gone = self.lines.len() - newest.count();
        self.lines.drain(..gone);
        self.lines.insert(0, TRUNCATED_MARK.to_owned());
    }

    fn truncate_lines(&mut self, longest: usize) {
        for line in &mut self.lines {
            if line.len() > longest {
                *line = truncate_middle(line, longest, |_| format!(" {TRUNCATED_MARK} ")).into_owned();
            }
        }
    }
}

fn lines_len(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// The length to which lines must be truncated so that all fit.
fn max_line_within(lines: &[String], room: usize) -> usize {
    let longest = lines.iter().map(String::len).max().unwrap_or(0);
    largest_passing(0..=longest, |most| {
        lines.iter().map(|line| line.len().min(most) + 1).sum::<usize>() <= room
    })
}

/// Shrinks sections until all fit: first the ordinary fields, which may disappear, then the vital ones.
fn fit_sections(sections: &mut [Section], room: usize) {
    let remove = |section: &mut Section, _| section.lines.clear();
    for fields in [&ORDINARY_FIELDS[..], &VITAL_FIELDS[..]] {
        shrink_fields(sections, fields, room, Section::shorten);
        shrink_fields(sections, fields, room, remove);
    }
}

fn shrink_fields(
    sections: &mut [Section],
    fields: &[Field],
    room: usize,
    shrink: impl Fn(&mut Section, usize),
) {
    for field in fields {
        let over = sections.iter().map(Section::lines_len).sum::<usize>().saturating_sub(room);
        let section = sections.iter_mut().find(|section| section.field == *field && over > 0);
        if let Some(section) = section.filter(|section| !section.lines.is_empty()) {
            shrink(section, section.lines_len().saturating_sub(over));
        }
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
