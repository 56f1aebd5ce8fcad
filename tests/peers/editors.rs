//! Clients of editors, unchanged, against `longhaul acp`: the official client library, whose schema judges every line, and a headless editor.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::installed::peer;
use crate::servers::TEST_TIMEOUT;

const ASK_FOR_EXEC: &str = "[[approval.rule]]\ntool = \"exec\"\naction = \"ask\"\n";

fn desk(script: &Value) -> Desk {
    let desk = Desk::new(ASK_FOR_EXEC);
    std::fs::write(desk.home().join("script.json"), script.to_string()).unwrap();
    desk
}

/// Node of the peers, with the program and the home of the desk.
fn node(desk: &Desk, script: &Path) -> Command {
    let model = format!("scripted/{}", desk.home().join("script.json").display());
    let mut command = Command::new(peer("editors/node_modules/.bin/node"));
    command
        .arg(script)
        .current_dir(desk.work())
        .env("EDITORS", peer("editors"))
        .env("LONGHAUL_HOME", desk.home())
        .env("LONGHAUL_MODEL", model);
    command
}

fn work(desk: &Desk) -> PathBuf {
    desk.work().canonicalize().unwrap()
}

/// E6: the official client drives a whole session, and every message is valid.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_official_client_of_editors_drives_a_whole_session() {
    let desk = desk(&json!([
        {"text": "I write it.", "calls": [
            {"name": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}},
            {"name": "exec", "arguments": {"command": "echo ran >> ran.txt"}},
        ]},
        "Written.",
        {"calls": [{"name": "todo", "arguments": {"items": [{"text": "Wait", "status": "in_progress"}]}}]},
        {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
        {"calls": [{"name": "exec", "arguments": {"command": "touch waiting; while [ ! -e go ]; do sleep 0.01; done"}}]},
        "It went on.",
        {"text": "Slowly, slowly. ".repeat(1_000), "piece_ms": 100},
        {"calls": [{"name": "ask_user", "arguments": {"question": "Who is it?"}}]},
        "Hello Ada.",
        {"calls": [{"name": "exec", "arguments": {"command": "touch outliving; while [ ! -e outlive ]; do sleep 0.01; done"}}]},
        "It outlived the editor.",
    ]));

    drive(&desk, "acp_client.mjs");
}

/// E6: the official client for version 2 drives a session, and every message is valid.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_official_client_for_version_2_drives_a_session() {
    let desk = desk(&json!([
        {"text": "I write it.", "calls": [
            {"name": "todo", "arguments": {"items": [{"text": "Write", "status": "in_progress"}]}},
            {"name": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}},
            {"name": "exec", "arguments": {"command": "echo ran >> ran.txt"}},
        ]},
        "Written.",
    ]));

    drive(&desk, "acp_client_v2.mjs");
}

/// Runs a script of `tests/peers` that drives `longhaul acp`.
fn drive(desk: &Desk, script: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers").join(script);
    let output =
        node(desk, &script).arg(work(desk)).args([env!("CARGO_BIN_EXE_longhaul"), "acp"]).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("all of it works"), "{out}{errors}");
}

/// E6: a headless editor; a permission, a diff, a cancel, the editor's death by SIGKILL, and the session resumed. Every line is valid.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn a_headless_editor_runs_a_session_cancels_may_be_killed_and_resumes_it() {
    let desk = desk(&json!([
        {"text": "I write it.", "calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}}]},
        "Written.",
        {"calls": [{"name": "exec", "arguments": {"command": "touch slow; while [ ! -e never ]; do sleep 0.01; done"}}]},
        {"calls": [{"name": "exec", "arguments": {"command": "touch waiting; while [ ! -e go ]; do sleep 0.01; done"}}]},
        "Done without the editor.",
        "Loaded.",
    ]));
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers");
    let lines = desk.home().join("acp-lines");
    let acpx = |words: &[&str]| {
        let mut command = node(&desk, &peer("editors/node_modules/acpx/dist/cli.js"));
        let node = peer("editors/node_modules/.bin/node");
        let agent = format!(
            "{} {} {} acp",
            node.display(),
            scripts.join("acp_tee.mjs").display(),
            env!("CARGO_BIN_EXE_longhaul")
        );
        command.args(["--agent", &agent, "--approve-all", "--format", "json", "--ttl", "1", "--cwd"]);
        command.arg(work(&desk)).args(words).env("HOME", desk.home()).env("ACP_LINES", &lines);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let run = |words: &[&str]| assert!(acpx(words).status().unwrap().success(), "{words:?}");

    run(&["sessions", "new"]);
    run(&["prompt", "Write."]);
    let mut cancelled = acpx(&["prompt", "Slowly."]).spawn().unwrap();
    wait_until("the slow command runs", || desk.work().join("slow").exists());
    run(&["cancel"]);
    cancelled.wait().unwrap();
    let mut killed = acpx(&["prompt", "Wait."]).spawn().unwrap();
    wait_until("the command was approved and runs", || desk.work().join("waiting").exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    std::fs::write(desk.work().join("go"), "").unwrap();
    wait_until("the turn ends without the editor", || has_said(&desk, "Done without the editor."));
    run(&["prompt", "Again."]);

    assert!(has_said(&desk, "Loaded."));
    assert_eq!(std::fs::read_to_string(desk.work().join("a.txt")).unwrap(), "one\n");
    let judged = node(&desk, &scripts.join("acp_judge.mjs")).arg(&lines).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&judged.stdout), String::from_utf8_lossy(&judged.stderr));
    assert!(judged.status.success(), "{out}{errors}");
    let methods = ["session/new", "session/prompt", "session/cancel", "session/resume"];
    assert!(methods.iter().all(|method| out.contains(method)), "{out}");
}

/// Whether a session of the home has this text.
fn has_said(desk: &Desk, text: &str) -> bool {
    let list = desk.command(&["sessions", "list", "--json"]).output().unwrap();
    let list: Value = serde_json::from_slice(&list.stdout).unwrap_or_default();
    let sessions = list.as_array().or(list["sessions"].as_array()).cloned().unwrap_or_default();
    sessions.iter().any(|session| {
        let key = session["key"].as_str().unwrap();
        let shown = desk.command(&["sessions", "show", key]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).contains(text)
    })
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
