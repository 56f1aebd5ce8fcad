//! Contexts that people look at and make smaller by hand, through the real program.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod context;
#[path = "../desk.rs"]
mod desk;
mod manual;
mod other_process;
mod slash_command;
mod windows;

use desk::Desk;
use serde_json::{Value, json};

/// An answer that is worth a summary. It is one word, since each is an event.
fn long() -> String {
    "count-".repeat(2_000)
}

/// An answer that is a summary.
fn summary() -> Value {
    json!({"calls": [{"name": "write_summary", "arguments": {"goal": "Count.", "done": ["one"]}}]})
}

/// A session `a` with one turn, whose model has more to say.
fn told(more: &[Value]) -> Desk {
    let script: Vec<Value> = std::iter::once(json!(long())).chain(more.iter().cloned()).collect();
    let desk = Desk::new(&json!(script));
    let (code, _, errors) = desk.run(&["run", "-s", "a", "speak"]);
    assert_eq!(code, 0, "{errors}");
    desk
}
