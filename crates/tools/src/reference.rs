//! The page `docs/tools.md`, made from the descriptions that the model reads, so that both say the same.

use std::fmt::Write;

use longhaul_protocol::Effect;
use serde_json::Value;

use crate::ToolDefinition;

/// The reference of these tools, in Markdown.
pub fn tools_reference(tools: &[&ToolDefinition]) -> String {
    let mut page = String::from(
        "# Tools\n\n\
         What the agent may do. This page is made from the tools' own schemas; after a change of them, renew it with\n\
         `UPDATE_DOCS=1 cargo test -p longhaul-agent docs`.\n\n\
         Files are bounded by the scope (`[[scope.allow]]`, `[[scope.deny]]`): nothing outside is read or written, through\n\
         links, `..`, case or races. Longhaul's own folder is always denied. A hard link to a file in a denied folder, or a bind\n\
         mount of a folder inside one, can't be told from any other. Arguments that don't fit are never guessed at: the call is\n\
         not run, and the model is told what is wrong.\n\n\
         | tool | effect |\n| --- | --- |\n",
    );
    for definition in tools {
        add(
            &mut page,
            format_args!("| [`{0}`](#{0}) | {1} |\n", definition.name, describe_effect(definition.effect)),
        );
    }
    for definition in tools {
        section(&mut page, definition);
    }
    page
}

fn section(page: &mut String, definition: &ToolDefinition) {
    add(page, format_args!("\n## {}\n\n{}\n\n", definition.name, definition.description));
    add(page, format_args!("**Effect:** {}.\n\n", describe_effect(definition.effect)));
    let mut rows = Vec::new();
    rows_of("", &definition.schema, &mut rows);
    if rows.is_empty() {
        page.push_str("It takes no arguments.\n");
    } else {
        page.push_str("| argument | type | required | meaning |\n| --- | --- | --- | --- |\n");
        rows.iter().for_each(|row| page.push_str(row));
    }
    if !definition.limits.is_empty() {
        page.push_str("\n**Limits**\n\n");
        definition.limits.iter().for_each(|limit| add(page, format_args!("- {limit}\n")));
    }
    add(page, format_args!("\n**Example**\n\n```json\n{}\n```\n", definition.example));
}

/// Writing to a string can't fail.
fn add(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = page.write_fmt(text);
}

/// One row for each field, including those of objects in a list; required ones first.
fn rows_of(outer: &str, schema: &Value, rows: &mut Vec<String>) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let place = |name: &str| required.iter().position(|required| *required == name).unwrap_or(usize::MAX);
    let mut fields: Vec<(&String, &Value)> = schema["properties"].as_object().into_iter().flatten().collect();
    fields.sort_by_key(|(name, _)| place(name));
    for (name, field) in fields {
        let name_there = format!("{outer}{name}");
        let is_required = if required.contains(&name.as_str()) { "yes" } else { "no" };
        let meaning = field["description"].as_str().unwrap_or_default().replace('|', "\\|");
        rows.push(format!("| `{name_there}` | {} | {is_required} | {meaning} |\n", type_of(field)));
        rows_of(&format!("{name_there}[]."), &field["items"], rows);
        rows_of(&format!("{name_there}."), field, rows);
    }
}

fn type_of(field: &Value) -> String {
    if let Some(words) = field["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return words.join(" or ");
    }
    match field["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&field["items"])),
        Some("integer") => match (field["minimum"].as_u64().unwrap_or(0), field["maximum"].as_u64()) {
            (least, Some(most)) => format!("whole number, {least} to {most}"),
            (0, None) => "whole number".to_owned(),
            (least, None) => format!("whole number from {least}"),
        },
        Some("string") => "text".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

fn describe_effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "it only looks; after a crash it is run again",
        Effect::Idempotent => "running it twice is like running it once; after a crash it is run again",
        Effect::CheckedWrite => "it writes a file; after a crash the file shows whether it happened",
        Effect::Command => "it runs a command; after a crash the command's keeper knows how it goes",
        Effect::Unknown => "after a crash it is unknown whether it happened, and the model is told so",
    }
}
