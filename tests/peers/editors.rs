//! Clients of editors, unchanged, against `longhaul acp`: the official client library, whose schema judges every line, and a headless editor.

use std::path::{Path, PathBuf};
use std::process::Command;
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

/// E6: a headless editor; a permission, a diff, and the editor's death by SIGKILL.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn a_headless_editor_runs_a_session_and_may_be_killed() {
    let desk = desk(&json!([
        {"text": "I write it.", "calls": [
            {"name": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}},
            {"name": "exec", "arguments": {"command": "touch waiting; while [ ! -e go ]; do sleep 0.01; done"}},
        ]},
        "Done without the editor.",
    ]));
    let acpx = peer("editors/node_modules/acpx/dist/cli.js");
    let agent = format!("{} acp", env!("CARGO_BIN_EXE_longhaul"));
    let mut editor = node(&desk, &acpx)
        .args(["--agent", &agent, "--approve-all", "--format", "json", "--cwd"])
        .arg(work(&desk))
        .args(["exec", "Go."])
        .env("HOME", desk.home())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command was approved and runs", || desk.work().join("waiting").exists());

    editor.kill().unwrap();
    editor.wait().unwrap();
    std::fs::write(desk.work().join("go"), "").unwrap();

    wait_until("the turn ends without the editor", || {
        let list = desk.command(&["sessions", "list", "--json"]).output().unwrap();
        let list: Value = serde_json::from_slice(&list.stdout).unwrap_or_default();
        let sessions = list.as_array().or(list["sessions"].as_array()).cloned().unwrap_or_default();
        sessions.iter().any(|session| {
            let key = session["key"].as_str().unwrap();
            let shown = desk.command(&["sessions", "show", key]).output().unwrap();
            String::from_utf8_lossy(&shown.stdout).contains("Done without the editor.")
        })
    });
    assert_eq!(std::fs::read_to_string(desk.work().join("a.txt")).unwrap(), "one\n");
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
