//! Judges and clients of Longhaul's own MCP server: the official conformance suite over HTTP, and the inspector over both transports.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::installed::{lines_of, peer, start_serve};
use crate::servers::{Server, TEST_TIMEOUT};

const TOKEN: &str = "a-token-of-the-test-0123456789abcdef";
/// It lists what does not pass.
const PAGE: &str = include_str!("../../docs/mcp.md");

/// A process that ends with its test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `longhaul serve`, with a model server that knows what the suite's tools do.
struct Stage {
    desk: Desk,
    port: u16,
    _serve: Ending,
    _model: Server,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixtures.json");
        std::fs::write(&file, fixtures().to_string()).unwrap();
        let model = Server::scripted(&file);
        let desk = Desk::new(&format!(
            "[model]\nname = 'scripted-server/m'\nprotocol = 'openai-chat'\nbase_url = '{}/v1'\n\
             api_key_env = 'PEERS_KEY'\ncontext_window = 100000\n[retry]\nbase_ms = 5\ncap_ms = 20\n\
             [memory]\nextract_at_tokens = 0\n[[approval.rule]]\ntool = 'exec'\ncommand = 'true ask*'\naction = 'ask'\n",
            model.url()
        ));
        let (serve, port) = start_serve(desk.command(&[]).env("LONGHAUL_TOKEN", TOKEN), 0);
        Self { desk, port, _serve: Ending(serve), _model: model }
    }
}

/// What the model says to the texts of `mcp_fixtures.mjs`.
fn fixtures() -> Value {
    let says = |text: &str, response: Value| json!({"match": {"userMessage": text}, "response": response});
    let runs = |text: &str, command: &str| {
        let arguments = json!({"command": command}).to_string();
        let response = json!({"toolCalls": [{"name": "exec", "arguments": arguments}]});
        json!({"match": {"userMessage": text, "hasToolResult": false}, "response": response})
    };
    let failure = json!({"error": {"message": "this job always fails", "type": "invalid_request_error"}, "status": 400});
    json!({"fixtures": [
        says("greet World", json!({"content": "Hello, World!"})),
        says("greet sep-2243", json!({"content": "Hello, sep-2243!"})),
        says("greet", json!({"content": "Hello!"})),
        runs("compute for 60 seconds", "sleep 60"),
        runs("compute for 2 seconds", "sleep 2"),
        runs("compute for 1 seconds", "sleep 1"),
        says("fail", failure),
        runs("confirm one", "true ask"),
        {"match": {}, "response": {"content": "Done."}},
    ]})
}

fn node() -> Command {
    Command::new(peer("mcp-suite/node_modules/.bin/node"))
}

/// Starts what stands between the suite and the server. Returns its port. `calls` is `translated` or `unchanged`.
fn start_translation(stage: &Stage, calls: &str) -> (Ending, u16) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/mcp_fixtures.mjs");
    let mut command = node();
    command
        .arg(script)
        .args([&stage.port.to_string(), TOKEN, calls])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = lines_of(process.stdout.take().unwrap());
    let process = Ending(process);
    let port = lines.recv_timeout(TEST_TIMEOUT).expect("the port");
    (process, port.parse().unwrap())
}

/// Runs the scenarios of a revision. Returns the checks that failed, each with its scenario, and how many passed.
fn judge(port: u16, revision: &str) -> (BTreeSet<(String, String)>, usize) {
    let results = tempfile::tempdir().unwrap();
    let output = node()
        .arg(peer("mcp-suite/node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", &format!("http://127.0.0.1:{port}/mcp"), "--requirements", revision, "-o"])
        .arg(results.path())
        .env("no_proxy", "127.0.0.1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (mut failed, mut passed) = (BTreeSet::new(), 0);
    for folder in std::fs::read_dir(results.path()).unwrap().map(|entry| entry.unwrap().path()) {
        // `server-` and the scenario, then the time.
        let name = folder.file_name().unwrap().to_str().unwrap().strip_prefix("server-").unwrap();
        let scenario = &name[..name.len() - "-2026-11-18T09-19-29-954Z".len()];
        let checks = std::fs::read(folder.join("checks.json"));
        let checks: Vec<Value> = serde_json::from_slice(&checks.unwrap_or_default()).unwrap_or_default();
        assert!(!checks.is_empty(), "{scenario} broke off: {}", String::from_utf8_lossy(&output.stderr));
        for check in checks {
            match check["status"].as_str() {
                Some("FAILURE") => {
                    let id = check["id"].as_str().unwrap().to_owned();
                    failed.insert((scenario.to_owned(), id));
                }
                Some("SUCCESS") => passed += 1,
                _ => {}
            }
        }
    }
    (failed, passed)
}

/// What the page says of the server: the checks that fail, each with its scenario, and the scenarios that fail without the suite's tools.
fn listed() -> (BTreeSet<(String, String)>, BTreeSet<String>) {
    let (_, of_server) = PAGE.rsplit_once("### Conformance").unwrap();
    let (table, without_tools) = of_server.split_once("If the suite calls the server without").unwrap();
    let mut checks = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let (mut scenario, mut is_within) = (String::new(), false);
        // Every other part stands between back quotes.
        for (number, part) in row.split(" | ").next().unwrap().split('`').enumerate() {
            match number % 2 {
                0 => is_within = if part.contains(['(', ')']) { part.contains('(') } else { is_within },
                _ if is_within => {
                    checks.remove(&(scenario.clone(), scenario.clone()));
                    checks.insert((scenario.clone(), part.to_owned()));
                }
                _ => {
                    part.clone_into(&mut scenario);
                    checks.insert((scenario.clone(), scenario.clone()));
                }
            }
        }
    }
    let quoted = without_tools.split('`').skip(1).step_by(2).map(str::to_owned);
    let scenarios = checks.iter().map(|(scenario, _)| scenario.clone()).chain(quoted).collect();
    (checks, scenarios)
}

/// E4: the server passes every check of both revisions, but for those that do not apply to it, and the page lists these.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_conformance_suite_finds_nothing_but_what_does_not_apply() {
    let stage = Stage::new();
    let (_translation, port) = start_translation(&stage, "translated");

    let (newer, passed_newer) = judge(port, "2026-07-28");
    let (older, passed_older) = judge(port, "2025-11-25");

    let failed: BTreeSet<_> = newer.union(&older).cloned().collect();
    assert_eq!(failed, listed().0);
    assert!(passed_newer > 100 && passed_older > 30, "{passed_newer} and {passed_older} checks passed");
}

/// E4: so does a run of the suite as anyone can repeat it.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_page_lists_what_fails_because_the_suite_does_not_find_its_tools() {
    let stage = Stage::new();
    let (_forwarding, port) = start_translation(&stage, "unchanged");

    let failed: Vec<_> =
        ["2026-07-28", "2025-11-25"].into_iter().map(|revision| judge(port, revision).0).collect();

    let scenarios: BTreeSet<String> = failed.into_iter().flatten().map(|(scenario, _)| scenario).collect();
    assert_eq!(scenarios, listed().1);
}

/// What the inspector's command line prints for a call of a tool.
fn inspect(desk: &Desk, target: &[&str], arguments: &[&str]) -> Value {
    let mut command = Command::new(peer("mcp-inspector/node_modules/.bin/node"));
    command
        .arg(peer(
            "mcp-inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
        ))
        .arg("--cli")
        .args(target)
        .args(arguments)
        .current_dir(desk.work())
        .env("HOME", desk.home())
        .env("no_proxy", "127.0.0.1")
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{errors}"))
}

/// E3: the inspector uses the server over standard input and over HTTP, and both show the same sessions.
#[test]
#[ignore = "needs the peers that scripts/peers installs; scripts/test runs it"]
fn the_inspector_sends_to_a_session_and_reads_it() {
    let stage = Stage::new();
    let home = format!("LONGHAUL_HOME={}", stage.desk.home().display());
    let stdio = ["-e", &home, "-e", "PEERS_KEY=x", env!("CARGO_BIN_EXE_longhaul"), "mcp", "serve"];
    let (url, header) =
        (format!("http://127.0.0.1:{}/mcp", stage.port), format!("Authorization: Bearer {TOKEN}"));
    let http = [url.as_str(), "--transport", "http", "--header", &header];
    let call = |name: &'static str| ["--method", "tools/call", "--tool-name", name, "--tool-arg"];

    let listed = inspect(&stage.desk, &stdio, &["--method", "tools/list", "--strict"]);
    let sent = inspect(
        &stage.desk,
        &stdio,
        &[&call("session_send")[..], &["session=judge:i", "text=greet World"]].concat(),
    );
    let read = inspect(&stage.desk, &http, &[&call("session_read")[..], &["session=judge:i"]].concat());

    assert_eq!(listed["tools"].as_array().unwrap().len(), 4);
    assert_eq!(sent["content"][0]["text"], "Hello, World!", "{sent}");
    assert!(read["content"][0]["text"].as_str().unwrap().contains("Hello, World!"), "{read}");
}
