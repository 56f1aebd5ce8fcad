//! `docs/config.md`: its table of keys is made from the schema, and its example is a config.

use std::path::Path;

use longhaul_config::{choices, sections_in_order, to_toml};
use serde_json::Value;

use super::format::parse_layer;
use super::settings::is_used;
use super::{Settings, config_schema};

const BEGIN: &str =
    "<!-- The table is made from the schema: UPDATE_DOCS=1 cargo test -p longhaul-agent docs -->\n";
const END: &str = "<!-- The end of the table. -->\n";

fn table() -> String {
    let mut table = String::new();
    for (section, keys) in sections_in_order(&Settings::default()) {
        let about = &config_schema()["properties"][&section];
        let is_list = about["type"] == "array";
        let title = if is_list { format!("[[{section}]]") } else { format!("[{section}]") };
        table.push_str(&format!("\n### `{title}`\n\n{}\n\n", about["description"].as_str().unwrap()));
        table.push_str("| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
        for (inner, field) in about["items"]["properties"].as_object().into_iter().flatten() {
            row(inner, field, "", &mut table);
        }
        for (key, _) in keys.into_iter().filter(|_| !is_list) {
            let field = &about["properties"][&key];
            let name = format!("{section}.{key}");
            row(&key, field, if is_used(&name) { "" } else { " *Not used yet.*" }, &mut table);
            for (inner, field) in field["items"]["properties"].as_object().into_iter().flatten() {
                row(&format!("{key}[].{inner}"), field, "", &mut table);
            }
            for (inner, field) in
                field["additionalProperties"]["properties"].as_object().into_iter().flatten()
            {
                row(&format!("{key}.NAME.{inner}"), field, "", &mut table);
            }
        }
    }
    table
}

fn row(key: &str, field: &Value, note: &str, table: &mut String) {
    let meaning = field["description"].as_str().unwrap_or_else(|| panic!("{key} has no description"));
    let default = match &field["default"] {
        Value::Null => String::new(),
        default => format!("`{}`", to_toml(default)),
    };
    let row = format!("| `{key}` | {} | {default} | {meaning}{note} |\n", kind(field).replace('|', "\\|"));
    table.push_str(&row);
}

fn kind(field: &Value) -> String {
    if let Some(words) = choices(field) {
        let words = words.iter().filter(|word| !word.is_empty()).map(|word| format!("`{word}`"));
        return words.collect::<Vec<_>>().join(", ");
    }
    let range = match (field["minimum"].as_f64(), field["maximum"].as_f64()) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) if least > 0.0 => format!(", from {least}"),
        _ => String::new(),
    };
    match field["type"].as_str() {
        Some("array") if field["items"]["type"] == "object" => "list of tables".to_owned(),
        Some("array") => "list of texts".to_owned(),
        Some("integer") => format!("whole number{range}"),
        Some("number") => format!("number{range}"),
        Some("boolean") => "true or false".to_owned(),
        Some("string") => "text".to_owned(),
        Some("object") if field["additionalProperties"]["type"] == "object" => "tables by name".to_owned(),
        Some("object") => "texts by name".to_owned(),
        other => panic!("no word for {other:?}"),
    }
}

#[test]
fn docs_config_md_has_the_keys_of_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let renewed = format!("{before}{BEGIN}{}\n{END}{after}", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &renewed).unwrap();
    }

    let stored = std::fs::read_to_string(&path).unwrap();

    assert!(
        stored == renewed,
        "docs/config.md is not as the schema says; renew it with `UPDATE_DOCS=1 cargo test -p longhaul-agent docs`"
    );
}

#[test]
fn the_examples_of_the_page_are_configs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let page = std::fs::read_to_string(&path).unwrap();

    let examples: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();

    assert!(!examples.is_empty());
    for example in examples {
        parse_layer(example, "docs/config.md").unwrap();
    }
}

#[test]
fn every_key_of_the_schema_is_described() {
    fn described(name: &str, schema: &Value) {
        assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        let below = [&schema["properties"], &schema["items"]["properties"]];
        for (key, field) in below.into_iter().filter_map(Value::as_object).flatten() {
            described(&format!("{name}.{key}"), field);
        }
    }

    described("config", config_schema());
}
