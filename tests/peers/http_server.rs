//! Judges of the HTTP server: a fuzzer of its whole document, a validator of that document, a client of event streams that
//! reconnects by itself, and Prometheus' own check of the figures.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use longhaul_testkit::wire::{ModelServer, Script, ScriptedAnswer};
use serde_json::Value;

use crate::desk::Desk;
use crate::installed::{lines_of, peer, start_serve};
use crate::servers::TEST_TIMEOUT;

/// Seconds that the fuzzer may take in a run of all tests.
const FUZZ_SECONDS: u64 = 60;
/// The name that clients behind a proxy know.
pub(crate) const PUBLIC_NAME: &str = "agent.example.org";
pub(crate) const TOKEN: &str = "a-token-of-the-test-0123456789abcdef";

/// `longhaul serve` on loopback, with a model server that always answers.
pub(crate) struct HttpServer {
    pub(crate) desk: Desk,
    port: u16,
    process: Child,
    /// Answers as long as the server runs.
    _model: ModelServer,
}

impl HttpServer {
    pub(crate) fn start() -> Self {
        let said = ScriptedAnswer::text("Done.").usage(10, 5);
        let model = ModelServer::start(Script::saying(said).forgetful());
        let config = format!(
            "[model]\nname = \"custom/judge\"\nbase_url = \"{}/v1\"\nprotocol = \"openai-chat\"\n\
             [memory]\nextract_at_tokens = 0\n[server]\nallowed_hosts = [\"{PUBLIC_NAME}\"]\n",
            model.url()
        );
        let desk = Desk::new(&config);
        let (process, port) = start_serve(desk.command(&[]).env("LONGHAUL_TOKEN", TOKEN), 0);
        Self { desk, port, process, _model: model }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Kills the server and starts the next one on the same port.
    fn kill_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        (self.process, _) = start_serve(self.desk.command(&[]).env("LONGHAUL_TOKEN", TOKEN), self.port);
    }

    /// The body of the answer to a GET.
    fn get(&self, path: &str) -> String {
        let mut client = Command::new(peer("judges/bin/python"));
        let fetch = "import sys, urllib.request as r; \
                     q = r.Request(sys.argv[1], headers={'Authorization': 'Bearer ' + sys.argv[2]}); \
                     sys.stdout.write(r.build_opener(r.ProxyHandler({})).open(q).read().decode())";
        let output = client.args(["-c", fetch, &format!("{}{path}", self.url()), TOKEN]).output().unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// H3: no 5xx, no undocumented status, no answer that breaks its schema: with made-up names in the paths, and with names of
/// what is there.
#[test]
#[ignore = "needs scripts/peers"]
fn a_fuzzer_of_the_whole_document_finds_nothing() {
    let server = HttpServer::start();
    for key in ["fuzz-a", "fuzz-b"] {
        assert!(server.desk.command(&["send", "-s", key, "hello"]).status().unwrap().success());
    }
    let seconds = std::env::var("LONGHAUL_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let examples = (seconds.unwrap_or(FUZZ_SECONDS) / 6).max(5).to_string();

    fuzz(&server, &examples, "");
    let scopes: Value = serde_json::from_str(&server.get("/api/memory")).unwrap();
    let scope = scopes["items"][0]["scope"].as_str().unwrap();
    let names = [("key", "fuzz-a"), ("scope", scope), ("page", "core"), ("provider", "anthropic")];
    let names: String =
        names.iter().map(|(name, value)| format!("\"path.{name}\" = \"{value}\"\n")).collect();
    fuzz(&server, &examples, &format!("[parameters]\n{names}"));
}

fn fuzz(server: &HttpServer, examples: &str, config: &str) {
    std::fs::write(server.desk.work().join("schemathesis.toml"), config).unwrap();
    let mut fuzzer = Command::new(peer("judges/bin/schemathesis"));
    // One worker: before 3.11.9, Python's parser counts its recursion for all threads together, and the fuzzer parses its own source
    // in each of them. Now and then it dies of "AST constructor recursion depth mismatch".
    fuzzer
        .args(["run", &format!("{}/openapi.json", server.url()), "--workers", "1", "--request-timeout", "60"])
        .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
        .args(["--phases", "examples,coverage,fuzzing", "--generation-deterministic"])
        .args(["--max-examples", examples, "--checks"])
        .arg(
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        )
        // Streams that never end have judges of their own; the fuzzer can't write JSON lines.
        .args(["--exclude-path-regex", "/events$", "--exclude-path", "/api/sessions/import"])
        .env("NO_COLOR", "1")
        .current_dir(server.desk.work());

    let output = fuzzer.output().unwrap();

    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// H3.
#[test]
#[ignore = "needs scripts/peers"]
fn a_validator_accepts_the_document() {
    let server = HttpServer::start();
    let file = server.desk.work().join("openapi.json");
    std::fs::write(&file, server.get("/openapi.json")).unwrap();

    let output = Command::new(peer("judges/bin/openapi-spec-validator")).arg(&file).output().unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// H7.
#[test]
#[ignore = "needs scripts/peers"]
fn prometheus_accepts_the_figures() {
    let server = HttpServer::start();
    let mut check = Command::new(peer("promtool"));
    check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check = check.spawn().unwrap();
    check.stdin.take().unwrap().write_all(server.get("/metrics").as_bytes()).unwrap();

    let output = check.wait_with_output().unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// H2: a client that nobody wrote for us gets every record once, in order, though the server is killed meanwhile.
#[test]
#[ignore = "needs scripts/peers"]
fn a_client_that_reconnects_by_itself_sees_every_record_once() {
    let mut server = HttpServer::start();
    let send = |desk: &Desk, text: &str| {
        assert!(desk.command(&["send", "-s", "watched", text]).status().unwrap().success());
    };
    send(&server.desk, "first");
    let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/event_source.mjs");
    let mut client = Command::new("node");
    client
        .arg(program)
        .arg(peer("eventsource/node_modules/eventsource/dist/index.js"))
        .arg(format!("{}/api/sessions/watched/events?from=start", server.url()))
        .arg(TOKEN)
        .stdout(Stdio::piped());
    let mut client = client.spawn().unwrap();
    let seqs = lines_of(client.stdout.take().unwrap());

    let mut seen: Vec<u64> = Vec::new();
    let mut turns_ended = 0;
    for round in 0..3 {
        while turns_ended <= round {
            let line = seqs.recv_timeout(TEST_TIMEOUT).unwrap_or_else(|_| panic!("after {seen:?}"));
            let event: Value = serde_json::from_str(&line).unwrap();
            seen.extend(event["id"].as_str().and_then(|id| id.parse::<u64>().ok()));
            turns_ended += usize::from(event["type"] == "turn_ended");
        }
        if round < 2 {
            server.kill_and_restart();
            send(&server.desk, "next");
        }
    }
    client.kill().unwrap();
    client.wait().unwrap();

    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "each once, in order: {seen:?}");
    let told: Value = serde_json::from_str(&server.get("/api/sessions/watched/records?limit=1000")).unwrap();
    let last = seen.last().copied().unwrap();
    // Records without an event have no message; all others were seen.
    let missed: Vec<&Value> = told["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|record| {
            let seq = record["seq"].as_u64().unwrap();
            let has_event =
                ["turn_started", "turn_ended", "message"].iter().any(|kind| record["kind"] == *kind);
            has_event && seq <= last && !seen.contains(&seq)
        })
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}
