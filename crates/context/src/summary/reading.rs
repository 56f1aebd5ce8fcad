//! From what a model answered to a summary. Models differ in how well they keep to a form, so whatever can be understood is.

use std::sync::Arc;

use longhaul_protocol::{Item, Role, Summary};
use serde_json::{Map, Value as Json};

use super::fields::{Field, Value};
use super::{ParsedSummary, WRITE_SUMMARY, WrittenSummary};
use crate::text::one_line;

/// What a model writes where it has nothing to write.
const NOTHING: [&str; 8] = ["none", "(none)", "n/a", "nothing", "-", "null", "(empty)", "none so far"];
/// What quotes begin and end with.
const QUOTES: [(char, char); 7] =
    [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('„', '“'), ('«', '»')];

/// What a model answered, as a summary. The error says what is wrong with it.
pub fn parse_summary(answer: &[Arc<Item>]) -> Result<ParsedSummary, String> {
    let read = match answer.iter().find_map(|item| arguments(item)) {
        Some(arguments) => ParsedSummary::InForm(from_arguments(arguments)?),
        None => from_text(&words(answer)),
    };
    let (ParsedSummary::InForm(written) | ParsedSummary::Prose(written)) = &read;
    if written.summary == Summary::default() {
        return Err("the summary is empty".to_owned());
    }
    Ok(read)
}

fn arguments(item: &Item) -> Option<&str> {
    match item {
        Item::ToolCall { name, arguments, .. } if name.trim().eq_ignore_ascii_case(WRITE_SUMMARY) => {
            Some(arguments)
        }
        _ => None,
    }
}

fn words(answer: &[Arc<Item>]) -> String {
    let texts = answer.iter().filter_map(|item| match &**item {
        Item::Text { role: Role::Assistant, text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn from_arguments(arguments: &str) -> Result<WrittenSummary, String> {
    match serde_json::from_str(arguments) {
        Ok(Json::Object(fields)) => Ok(from_fields(&fields)),
        Ok(_) => Err(format!("the arguments of {WRITE_SUMMARY} are not a JSON object")),
        Err(error) => Err(format!("the arguments of {WRITE_SUMMARY} are not JSON: {error}")),
    }
}

fn from_fields(fields: &Map<String, Json>) -> WrittenSummary {
    let mut written = WrittenSummary::default();
    for field in Field::ALL {
        if let Some(value) = fields.get(field.name()) {
            fill(&mut written, field, &entries(value, field));
        }
    }
    written
}

/// The entries of a value, whatever its form.
fn entries(value: &Json, field: Field) -> Vec<String> {
    match value {
        Json::Null => vec![],
        Json::String(text) if field == Field::Notes => vec![text.clone()],
        Json::String(text) => from_lines(text),
        // An entry that has several lines is one entry all the same.
        Json::Array(values) => values
            .iter()
            .flat_map(|value| match value {
                Json::String(text) => vec![text.clone()],
                other => entries(other, field),
            })
            .collect(),
        other => vec![other.to_string()],
    }
}

/// A text under headings; what stands under none of them is notes.
fn from_text(text: &str) -> ParsedSummary {
    let text = without_fence(text);
    if let Ok(Json::Object(fields)) = serde_json::from_str(text) {
        let written = from_fields(&fields);
        if written != WrittenSummary::default() {
            return ParsedSummary::InForm(written);
        }
    }
    let mut written = WrittenSummary::default();
    let mut has_headings = false;
    let (mut field, mut lines) = (Field::Notes, Vec::new());
    for line in text.lines() {
        if let Some((next, rest)) = heading(line) {
            fill(&mut written, field, &section(field, &lines));
            (field, lines) = (next, Vec::new());
            lines.extend(rest.filter(|rest| !rest.is_empty()));
            has_headings = true;
        } else if is_unknown_heading(line) {
            fill(&mut written, field, &section(field, &lines));
            (field, lines) = (Field::Notes, vec![line]);
            has_headings = true;
        } else {
            lines.push(line);
        }
    }
    fill(&mut written, field, &section(field, &lines));
    if has_headings { ParsedSummary::InForm(written) } else { ParsedSummary::Prose(written) }
}

/// What stands in a block of code, if all of it does.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```") else { return text };
    let inside = inside.split_once('\n').map_or("", |(_, inside)| inside);
    inside.trim_end().strip_suffix("```").unwrap_or(inside).trim()
}

/// The field whose heading a line is, and what follows behind a colon.
fn heading(line: &str) -> Option<(Field, Option<&str>)> {
    let decoration = |c: char| matches!(c, '#' | '*' | '_' | ':') || c.is_whitespace();
    if let Some(field) = Field::named(line.trim_matches(decoration)) {
        return Some((field, None));
    }
    let (name, rest) = line.split_once(':')?;
    // An entry that begins with such a word is none.
    let is_entry = line.trim_start().starts_with("- ") || line.trim_start().starts_with("* ");
    let field = Field::named(name.trim_matches(decoration)).filter(|_| !is_entry)?;
    Some((field, Some(rest.trim_start_matches(['*', '_']).trim())))
}

fn is_unknown_heading(line: &str) -> bool {
    let name = line.trim_start_matches('#');
    name.len() < line.len() && line.len() - name.len() <= 6 && name.starts_with(' ')
}

fn section(field: Field, lines: &[&str]) -> Vec<String> {
    if field == Field::Notes { vec![lines.join("\n")] } else { from_lines(&lines.join("\n")) }
}

/// One entry a line; a line that is set in, and is no entry itself, belongs to the one before it.
fn from_lines(text: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines() {
        let (words, is_marked) = without_bullet(line);
        match entries.last_mut() {
            Some(last) if !is_marked && line.starts_with([' ', '\t']) && !words.is_empty() => {
                last.push(' ');
                last.push_str(words);
            }
            _ => entries.push(words.to_owned()),
        }
    }
    entries
}

/// A line without the sign that makes it an entry, and whether it had one.
fn without_bullet(line: &str) -> (&str, bool) {
    let line = line.trim();
    for sign in ["- [ ] ", "- [x] ", "- [X] ", "- [~] ", "- ", "* ", "• ", "> ", "+ "] {
        if let Some(rest) = line.strip_prefix(sign) {
            return (rest.trim(), true);
        }
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let numbered = line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") "));
    match numbered.filter(|_| (1..=3).contains(&digits)) {
        Some(rest) => (rest.trim(), true),
        None => (line, false),
    }
}

/// Adds entries to a field.
fn fill(written: &mut WrittenSummary, field: Field, entries: &[String]) {
    let is_word_for_word = matches!(field, Field::Directives | Field::Withdrawn);
    match field.of(written) {
        Value::List(list) => {
            let entries = entries.iter().map(|entry| one_line(entry));
            let entries = entries.map(|entry| match is_word_for_word {
                true => without_quotes(&entry).to_owned(),
                false => entry,
            });
            list.extend(entries.filter(|entry| !is_nothing(entry)));
        }
        Value::Text(text) => {
            for entry in entries.iter().map(|entry| entry.trim()).filter(|entry| !is_nothing(entry)) {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(entry);
            }
        }
    }
}

fn is_nothing(entry: &str) -> bool {
    entry.is_empty() || NOTHING.contains(&entry.trim_end_matches('.').to_lowercase().as_str())
}

/// A text without the quotes around all of it.
pub(super) fn without_quotes(text: &str) -> &str {
    let text = text.trim();
    let inside = QUOTES.iter().find_map(|(opens, closes)| text.strip_prefix(*opens)?.strip_suffix(*closes));
    inside.map_or(text, str::trim)
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
