//! Killed while its context is made smaller, and right after: the real program, a real model server, a real `kill -9`.

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use longhaul_model::Protocol;
use longhaul_protocol::SessionRecord;
use longhaul_testkit::wire::{End, ModelServer, ReceivedRequest, Reply, Script, ScriptedAnswer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Desk, eventually, said};

const CHAT: Protocol = Protocol::OpenaiChat;

/// What the model was asked, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    First,
    Summary,
    Second,
}

fn asked(seen: &ReceivedRequest) -> Asked {
    let body = seen.json();
    let is_summary = |tool: &Value| tool["function"]["name"] == "write_summary";
    let messages = body["messages"].to_string();
    match body["tools"].as_array() {
        Some(tools) if tools.iter().any(is_summary) => Asked::Summary,
        _ if messages.contains("[Compacted context summary]") => Asked::Second,
        _ => Asked::First,
    }
}

/// A server that does not come to the end of its first summary, nor of its first answer after it.
fn server(log: Arc<Mutex<Vec<Asked>>>) -> ModelServer {
    ModelServer::start(Script::by(move |seen| {
        if seen.protocol() != Some(CHAT) {
            return Reply::error(404, "{}");
        }
        let asked = asked(seen);
        let mut log = log.lock().unwrap();
        let is_new = !log.contains(&asked);
        log.push(asked);
        let stream = |said: ScriptedAnswer| Reply::stream(said.bytes(CHAT));
        match asked {
            Asked::First => {
                let words = "lorem-ip".repeat(1_950);
                stream(ScriptedAnswer::text(&words).call("exec", json!({"command": "echo once >> log.txt"})))
            }
            Asked::Summary | Asked::Second if is_new => {
                stream(ScriptedAnswer::text("…")).cut_at(0).ending(End::Stall)
            }
            Asked::Summary => {
                let summary = json!({"goal": "write a line", "next_action": "say so"});
                stream(ScriptedAnswer::nothing().call("write_summary", summary))
            }
            Asked::Second => stream(ScriptedAnswer::text("Done.")),
        }
    }))
}

/// The kinds of the records that concern compactions, as the program shows them.
fn shown(desk: &Desk) -> Vec<String> {
    let arguments = ["sessions", "show", "a", "--from", "1", "--limit", "1000", "--json"];
    let output = command(desk, &arguments).output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    let kinds = shown["records_shown"].as_array().unwrap().iter();
    let kinds = kinds.map(|record| record["kind"].as_str().unwrap().to_owned());
    kinds.filter(|kind| kind.starts_with("compact_") || kind == "turn_ended").collect()
}

fn command(desk: &Desk, arguments: &[&str]) -> Command {
    let mut command = desk.command(arguments);
    command.env_remove("LONGHAUL_MODEL").env("no_proxy", "127.0.0.1");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program until the model is asked this, and kills it there.
fn kill_at(desk: &Desk, arguments: &[&str], log: &Mutex<Vec<Asked>>, at: Asked) {
    let process = Running(command(desk, arguments).spawn().unwrap());
    eventually("the model is asked", || log.lock().unwrap().last() == Some(&at));
    drop(process);
}

/// A process that is killed when nobody needs it any more, also by a test that fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// T12, T13, C3, C4
#[test]
fn killed_while_a_summary_is_written_and_right_after_it_a_turn_comes_to_its_end() {
    let desk = Desk::new(&json!([]));
    let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let server = server(log.clone());
    std::fs::create_dir(desk.home()).unwrap();
    let config = format!(
        "[model]\nname = 'custom/m'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\ncontext_window = 8000\n",
        server.url()
    );
    std::fs::write(desk.home().join("config.toml"), config).unwrap();

    kill_at(&desk, &["run", "-s", "a", "go"], &log, Asked::Summary);
    let within = shown(&desk);
    kill_at(&desk, &["resume", "a"], &log, Asked::Second);
    let after = shown(&desk);
    let resumed = command(&desk, &["resume", "a"]).output().unwrap();

    assert_eq!(within, ["compact_start"]);
    assert_eq!(after, ["compact_start", "compact_failed", "compact_start", "compact_done"]);
    assert_eq!(String::from_utf8_lossy(&resumed.stdout), "Done.\n", "{}", said(&resumed));
    let records = desk.sound_records();
    let facts: Vec<SessionRecord> =
        records.iter().map(|record| SessionRecord::decode(record).unwrap()).collect();
    let ends: Vec<String> = facts
        .iter()
        .filter_map(|fact| match fact {
            SessionRecord::CompactFailed(failed) => Some(failed.reason.clone()),
            SessionRecord::CompactDone(done) => Some(format!("{:?}", done.by)),
            SessionRecord::TurnEnded(ended) => Some(ended.text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ends, ["interrupted", "Model", "Done."]);
    assert_eq!(desk.file("log.txt"), "once\n", "the command ran once");
    let asked = [Asked::First, Asked::Summary, Asked::Summary, Asked::Second, Asked::Second];
    assert_eq!(*log.lock().unwrap(), asked);
    let messages: Vec<Value> = server
        .requests()
        .iter()
        .filter(|seen| seen.protocol().is_some())
        .skip(3)
        .map(|seen| seen.json()["messages"].clone())
        .collect();
    assert_eq!(messages[0], messages[1], "M16: the new context is the same for the next process");
}
