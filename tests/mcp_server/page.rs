//! `docs/mcp.md`: the example for the server works as it stands there.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::desk::Desk;

/// E3.
#[test]
fn the_example_of_the_page_works() {
    let page = include_str!("../../docs/mcp.md");
    let example = page.split("```json-lines\n").nth(1).unwrap().split("```").next().unwrap();
    let desk = Desk::new(&json!(["Hello."]));
    let mut server = desk
        .command(&["mcp", "serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();

    server.stdin.take().unwrap().write_all(example.as_bytes()).unwrap();
    let output = server.wait_with_output().unwrap();

    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = |id: u64| &answers.iter().find(|answer| answer["id"] == id).unwrap()["result"];
    assert_eq!(result(1)["serverInfo"]["name"], "longhaul", "{answers:?}");
    assert_eq!(result(2)["content"][0]["text"], "Hello.", "{answers:?}");
}
