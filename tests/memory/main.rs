//! Memory as people see and correct it, through the real program.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod crashes;
#[path = "../desk.rs"]
mod desk;
mod edit;
mod pages;
mod remember;
mod scopes;
mod slash_command;

use desk::Desk;
use serde_json::{Value, json};

/// The record in which the user says the first thing in a session.
const SAID: u64 = 3;

/// A place without a model.
fn without_model() -> Desk {
    Desk::with_model_of_config("")
}

/// Writes a page, and gives the number of the change.
fn write(desk: &Desk, page: &str, text: &str) -> String {
    let (code, out, errors) = desk.talk(&["memory", "edit", page, "-", "--json"], text);
    assert_eq!(code, 0, "{out}{errors}");
    let changed: Value = serde_json::from_str(&out).unwrap();
    changed["seq"].to_string()
}

/// The names of the pages that there are.
fn names(desk: &Desk) -> Vec<String> {
    let listing = desk.json(&["memory", "--json"]);
    let pages = listing["pages"].as_array().unwrap().iter();
    pages.map(|page| page["page"].as_str().unwrap().to_owned()).collect()
}

/// An answer that finds one thing, which came from this record.
fn extracted(text: &str, source: u64) -> Value {
    let item = json!({"kind": "preference", "text": text, "sources": [source]});
    json!({"calls": [{"name": "write_extracted", "arguments": {"items": [item]}}]})
}
