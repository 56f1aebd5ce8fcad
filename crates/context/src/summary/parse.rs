//! Parses a summary from a model's answer. Models differ in how well they follow the format, so the parser accepts
//! everything that it can understand.

use std::sync::Arc;

use longhaul_protocol::{Item, Summary};
use serde_json::{Map, Value as Json};

use super::fields::{Field, FieldValue};
use super::{ParsedSummary, WRITE_SUMMARY, WrittenSummary};
use crate::structured::{answer_text, call_arguments};
use crate::truncate::one_line;

/// What models write into an empty field.
const EMPTY_WORDS: [&str; 8] = ["none", "(none)", "n/a", "nothing", "-", "null", "(empty)", "none so far"];
const QUOTE_PAIRS: [(char, char); 7] =
    [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('„', '“'), ('«', '»')];

/// The summary in an answer. The error says what is wrong with the answer.
pub fn parse_summary(answer: &[Arc<Item>]) -> Result<ParsedSummary, String> {
    let read = match call_arguments(answer, WRITE_SUMMARY).next() {
        Some(arguments) => ParsedSummary::InForm(summary_from_arguments(arguments)?),
        None => summary_from_text(&answer_text(answer)),
    };
    let (ParsedSummary::InForm(written) | ParsedSummary::Prose(written)) = &read;
    if written.summary == Summary::default() {
        return Err("the summary is empty".to_owned());
    }
    Ok(read)
}

fn summary_from_arguments(arguments: &str) -> Result<WrittenSummary, String> {
    match serde_json::from_str(arguments) {
        Ok(Json::Object(fields)) => Ok(summary_from_fields(&fields)),
        Ok(_) => Err(format!("the arguments of {WRITE_SUMMARY} are not a JSON object")),
        Err(error) => Err(format!("the arguments of {WRITE_SUMMARY} are not JSON: {error}")),
    }
}

fn summary_from_fields(fields: &Map<String, Json>) -> WrittenSummary {
    let mut written = WrittenSummary::default();
    for field in Field::ALL {
        if let Some(value) = fields.get(field.name()) {
            add_entries(&mut written, field, &entries_of_value(value, field));
        }
    }
    written
}

/// The entries of a JSON value of any type.
fn entries_of_value(value: &Json, field: Field) -> Vec<String> {
    match value {
        Json::Null => vec![],
        Json::String(text) if field == Field::Notes => vec![text.clone()],
        Json::String(text) => entries_from_lines(text),
        // An entry of several lines stays one entry.
        Json::Array(values) => values
            .iter()
            .flat_map(|value| match value {
                Json::String(text) => vec![text.clone()],
                other => entries_of_value(other, field),
            })
            .collect(),
        other => vec![other.to_string()],
    }
}

/// Parses text under headings. Text without a known heading goes to the notes.
fn summary_from_text(text: &str) -> ParsedSummary {
    let text = strip_fence(text);
    if let Ok(Json::Object(fields)) = serde_json::from_str(text) {
        let written = summary_from_fields(&fields);
        if written != WrittenSummary::default() {
            return ParsedSummary::InForm(written);
        }
    }
    let mut written = WrittenSummary::default();
    let mut has_headings = false;
    let (mut field, mut lines) = (Field::Notes, Vec::new());
    for line in text.lines() {
        if let Some((next, rest)) = known_heading(line) {
            add_entries(&mut written, field, &section_entries(field, &lines));
            (field, lines) = (next, Vec::new());
            lines.extend(rest.filter(|rest| !rest.is_empty()));
            has_headings = true;
        } else if is_unknown_heading(line) {
            add_entries(&mut written, field, &section_entries(field, &lines));
            (field, lines) = (Field::Notes, vec![line]);
            has_headings = true;
        } else {
            lines.push(line);
        }
    }
    add_entries(&mut written, field, &section_entries(field, &lines));
    if has_headings { ParsedSummary::InForm(written) } else { ParsedSummary::Prose(written) }
}

/// The content of a fenced block, if the whole text is one.
fn strip_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text.strip_prefix("```") else { return text };
    let inside = inside.split_once('\n').map_or("", |(_, inside)| inside);
    inside.trim_end().strip_suffix("```").unwrap_or(inside).trim()
}

/// The field of a heading line, and the text after its colon.
fn known_heading(line: &str) -> Option<(Field, Option<&str>)> {
    let decoration = |c: char| matches!(c, '#' | '*' | '_' | ':') || c.is_whitespace();
    if let Some(field) = Field::from_name(line.trim_matches(decoration)) {
        return Some((field, None));
    }
    let (name, rest) = line.split_once(':')?;
    // A list entry that begins with such a word is not a heading.
    let is_entry = line.trim_start().starts_with("- ") || line.trim_start().starts_with("* ");
    let field = Field::from_name(name.trim_matches(decoration)).filter(|_| !is_entry)?;
    Some((field, Some(rest.trim_start_matches(['*', '_']).trim())))
}

fn is_unknown_heading(line: &str) -> bool {
    let name = line.trim_start_matches('#');
    name.len() < line.len() && line.len() - name.len() <= 6 && name.starts_with(' ')
}

fn section_entries(field: Field, lines: &[&str]) -> Vec<String> {
    if field == Field::Notes { vec![lines.join("\n")] } else { entries_from_lines(&lines.join("\n")) }
}

/// One entry for each line. An indented line without a bullet continues the previous one.
fn entries_from_lines(text: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines() {
        let (words, is_marked) = strip_bullet(line);
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

/// The line without its bullet or number, and whether it had one.
fn strip_bullet(line: &str) -> (&str, bool) {
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

fn add_entries(written: &mut WrittenSummary, field: Field, entries: &[String]) {
    let is_word_for_word = matches!(field, Field::Directives | Field::Withdrawn);
    match field.value_in(written) {
        FieldValue::List(list) => {
            let entries = entries.iter().map(|entry| one_line(entry));
            let entries = entries.map(|entry| match is_word_for_word {
                true => strip_quotes(&entry).to_owned(),
                false => entry,
            });
            list.extend(entries.filter(|entry| !is_empty_entry(entry)));
        }
        FieldValue::Text(text) => {
            for entry in entries.iter().map(|entry| entry.trim()).filter(|entry| !is_empty_entry(entry)) {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(entry);
            }
        }
    }
}

fn is_empty_entry(entry: &str) -> bool {
    entry.is_empty() || EMPTY_WORDS.contains(&entry.trim_end_matches('.').to_lowercase().as_str())
}

pub(super) fn strip_quotes(text: &str) -> &str {
    let text = text.trim();
    let inside =
        QUOTE_PAIRS.iter().find_map(|(opens, closes)| text.strip_prefix(*opens)?.strip_suffix(*closes));
    inside.map_or(text, str::trim)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
