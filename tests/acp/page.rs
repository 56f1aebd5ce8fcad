//! `docs/acp.md`: its example works as it stands there.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::desk::Desk;

/// E6.
#[test]
fn the_example_of_the_page_works() {
    let page = include_str!("../../docs/acp.md");
    let example = page.split("```json-lines\n").nth(1).unwrap().split("```").next().unwrap();
    let desk = Desk::new(&json!(["Hello."]));
    let lines = example.replace("/home/me/project", &desk.path("work").display().to_string());
    let mut agent = desk
        .command(&["acp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();

    agent.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = agent.wait_with_output().unwrap();

    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["result"]["protocolVersion"], 1, "{answers:?}");
    let opened = answers.iter().find(|answer| answer["id"] == 2).unwrap();
    assert!(opened["result"]["sessionId"].as_str().unwrap().starts_with("acp:work-"), "{opened}");
}
