//! MCP servers in sessions: real programs under real keepers. Only the model is scripted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::mcp::{ServerSettings, ServerState, ServerStatus};
use longhaul_agent::{Config, Runtime};
use longhaul_model::ScriptedModel;
use longhaul_protocol::{EventKind, Item, Outcome, PermissionMode, QuestionKind, Record, SessionRecord};
use longhaul_testkit::{RecordingModel, TestHome, collect_until, ended_turn, write_mcp_server};
use serde_json::{Value, json};

use crate::{eventually, said, script, sound_records};

pub(crate) fn server(arguments: &[&str]) -> ServerSettings {
    let args = std::iter::once("server.py").chain(arguments.iter().copied()).map(str::to_owned).collect();
    ServerSettings { command: "python3".to_owned(), args, timeout_s: 30, ..ServerSettings::default() }
}

pub(crate) fn config(place: &TestHome, servers: &[(&str, ServerSettings)]) -> Config {
    write_mcp_server(&place.work());
    let mut config = place.config();
    config.settings.mcp.servers =
        servers.iter().map(|(name, settings)| ((*name).to_owned(), settings.clone())).collect();
    config.settings.mcp.start_timeout_s = 30;
    config
}

pub(crate) async fn open(config: Config, answers: &Value) -> (Runtime, Arc<RecordingModel<ScriptedModel>>) {
    let model = RecordingModel::new(script(answers));
    (Runtime::with_model(config, model.clone()).await.unwrap(), model)
}

/// The words of a server in a result for the model, without the line that says whose they are.
pub(crate) fn words_of(content: &str) -> String {
    let marked =
        content.split_once("\n\n").filter(|(mark, _)| mark.starts_with("untrusted: everything below"));
    marked.map_or(content, |(_, words)| words).to_owned()
}

/// The results of tools, with the words of the server alone.
pub(crate) fn results(records: &[Record]) -> Vec<(String, bool, String)> {
    let results = crate::results(records).into_iter();
    results.map(|(name, is_error, content)| (name, is_error, words_of(&content))).collect()
}

/// What was said to the model, with the words of the server alone.
pub(crate) fn heard(items: &[Arc<Item>]) -> Vec<String> {
    crate::heard(items).iter().map(|said| words_of(said)).collect()
}

pub(crate) fn call(name: &str, text: &str) -> Value {
    json!({"calls": [{"name": name, "arguments": {"text": text}}]})
}

/// The processes of servers that have started, by the log of the test's server.
pub(crate) fn started(place: &TestHome) -> Vec<String> {
    place.file("calls.log").lines().filter(|line| line.starts_with("started")).map(str::to_owned).collect()
}

pub(crate) fn keepers_of_servers(place: &TestHome) -> usize {
    let folder = place.home().join("mcp/servers");
    let tasks = longhaul_agent::keeper::Tasks::existing(&folder, place.config().launcher.unwrap()).unwrap();
    tasks.map_or(0, |tasks| tasks.all().unwrap().into_iter().filter(|id| tasks.is_kept(*id).unwrap()).count())
}

/// E1, E2
#[tokio::test(flavor = "multi_thread")]
async fn the_model_calls_a_tool_of_a_server_and_gets_its_result() {
    let place = TestHome::new();
    let config = config(&place, &[("test", server(&["--noise"]))]);
    let (runtime, model) = open(config, &json!([call("test__echo", "hello"), "Done."])).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.outcome, Outcome::Completed);
    let requests = model.requests();
    assert_eq!(heard(&requests[1].items).last().unwrap(), "hello");
    let names: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    let of_server: Vec<&str> = names.iter().filter(|name| name.starts_with("test__")).copied().collect();
    assert!(of_server.is_sorted() && of_server.len() == 10 && names.ends_with(&of_server), "{names:?}");
    let status = &runtime.mcp_servers()[0];
    assert_eq!((status.state, status.protocol.as_deref()), (ServerState::Ready, Some("2025-11-25")));
    assert!(status.warnings[0].contains("Welcome to the server!"), "{status:?}");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// E1: the environment of a server has what its settings name, and neither keys nor anything else.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_sees_only_variables_that_are_named() {
    let place = TestHome::new();
    let named = ServerSettings { env: vec!["CARGO_PKG_NAME".to_owned()], ..server(&[]) };
    let (runtime, model) =
        open(config(&place, &[("test", named)]), &json!([call("test__variables", ""), "Done."])).await;

    runtime.session("a").await.unwrap().send("go").await.unwrap();

    let heard = heard(&model.requests()[1].items).pop().unwrap();
    let names: Vec<&str> = heard.split(' ').collect();
    assert!(names.contains(&"PATH") && names.contains(&"CARGO_PKG_NAME"), "{names:?}");
    // The test itself has this one.
    assert!(
        std::env::var("CARGO_MANIFEST_DIR").is_ok() && !names.contains(&"CARGO_MANIFEST_DIR"),
        "{names:?}"
    );
    runtime.shutdown().await.unwrap();
}

/// E1: fifty sessions, one program for each server.
#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_a_folder_share_their_servers() {
    let place = TestHome::new();
    let servers = ["a", "b", "c", "d", "e"].map(|name| (name, server(&[])));
    let answers: Vec<Value> = (0..50).map(|_| json!("Done.")).collect();
    let (runtime, _) = open(config(&place, &servers), &Value::Array(answers)).await;

    for number in 0..50 {
        runtime.session(&format!("s{number}")).await.unwrap().send("go").await.unwrap();
    }

    assert_eq!((started(&place).len(), keepers_of_servers(&place)), (5, 5));
    runtime.shutdown().await.unwrap();
    eventually("the servers end with the runtime", || async { keepers_of_servers(&place) == 0 }).await;
}

/// E1
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_ends_and_starts_again_for_the_next_call() {
    let place = TestHome::new();
    let mut config = config(&place, &[("test", server(&[]))]);
    config.settings.mcp.idle_s = 1;
    let (runtime, model) =
        open(config, &json!([call("test__echo", "one"), "Done.", call("test__echo", "two"), "Done."])).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();

    eventually("it is ended when idle", || async { keepers_of_servers(&place) == 0 }).await;
    session.send("again").await.unwrap();

    assert_eq!(heard(&model.requests()[3].items).last().unwrap(), "two");
    assert_eq!(started(&place).len(), 2);
    runtime.shutdown().await.unwrap();
}

/// E1: only the server that is wrong suffers, and its state says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_server_costs_only_its_own_tools() {
    let place = TestHome::new();
    let missing = ServerSettings { command: "no-such-program".to_owned(), ..server(&[]) };
    let silent = ServerSettings { command: "sleep".to_owned(), args: vec!["600".to_owned()], ..server(&[]) };
    let ends = ServerSettings {
        command: "sh".to_owned(),
        args: vec!["-c".to_owned(), "echo no licence >&2; exit 4".to_owned()],
        ..server(&[])
    };
    let servers = [("ends", ends), ("good", server(&[])), ("missing", missing), ("silent", silent)];
    let mut config = config(&place, &servers);
    config.settings.mcp.start_timeout_s = 3;
    let (runtime, model) =
        open(config, &json!([call("good__echo", "hello"), call("missing__x", ""), "Done."])).await;

    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.outcome, Outcome::Completed);
    let heard = heard(&model.requests()[2].items);
    assert!(heard.iter().any(|said| said == "hello"), "{heard:?}");
    let refused = "the MCP server missing can't be used, so its tools are missing: the command `no-such-program` is not on the PATH";
    assert!(heard.last().unwrap().starts_with(refused), "{heard:?}");
    let events = collect_until(&mut watcher, ended_turn).await;
    let warned = events.iter().filter_map(|event| match &event.kind {
        EventKind::Warning { code, text } if code == "mcp_failed" => Some(text.as_str()),
        _ => None,
    });
    let warned: Vec<&str> = warned.collect();
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert_eq!(
        warned[0],
        "the MCP server ends can't be used: it ended with exit code 4: no licence; /mcp shows the servers"
    );
    let states = || -> BTreeMap<String, (ServerState, String)> {
        let state = |status: ServerStatus| (status.name, (status.state, status.reason.unwrap_or_default()));
        runtime.mcp_servers().into_iter().map(state).collect()
    };
    // The turn may have started them once more.
    let has_failed = |name: &str| states()[name].0 == ServerState::Failed;
    eventually("both fail", || async { has_failed("ends") && has_failed("missing") }).await;
    let states = states();
    assert_eq!(states["good"].0, ServerState::Ready);
    assert_eq!(states["silent"].0, ServerState::Starting);
    assert_eq!(states["ends"], (ServerState::Failed, "it ended with exit code 4: no licence".to_owned()));
    assert!(states["missing"].1.contains("`no-such-program` is not on the PATH"), "{states:?}");
    runtime.shutdown().await.unwrap();
}

/// E1, E2: what a server does in the middle of a call is told, and the turn goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_its_server_ruins_is_told_and_the_turn_goes_on() {
    let place = TestHome::new();
    let settings = ServerSettings { timeout_s: 2, ..server(&[]) };
    let answers = json!([
        call("test__fail", ""),
        call("test__hang", ""),
        call("test__die", ""),
        call("test__echo", "alive"),
        call("test__huge", ""),
        call("test__echo", "still"),
        "Done."
    ]);
    let (runtime, _) = open(config(&place, &[("test", settings)]), &answers).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("go").await.unwrap();

    assert_eq!(ended.outcome, Outcome::Completed);
    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    let expected = [
        "it went wrong",
        "it did not answer within 2 s; it may or may not have happened",
        "it ended with exit code 3: the disk is on fire; it may or may not have happened",
        "alive",
        "it sent a message of more than 16 MiB; it may or may not have happened",
        "still",
    ];
    for ((_, _, content), expected) in found.iter().zip(expected) {
        assert!(content.contains(expected), "{content}");
    }
    assert_eq!(found.len(), expected.len());
}

/// E2, M16: servers that come late, change their tools or go never move the beginning of a request.
#[tokio::test(flavor = "multi_thread")]
async fn requests_keep_their_tools_while_servers_come_change_and_go() {
    let place = TestHome::new();
    // The tools of two are known, and the third is late.
    let known = [("gone", server(&[])), ("test", server(&[]))];
    let (runtime, _) = open(config(&place, &known), &json!(["Known."])).await;
    runtime.session("before").await.unwrap().send("go").await.unwrap();
    runtime.shutdown().await.unwrap();
    let [gone, test] = known;
    let mut config = config(&place, &[gone, ("late", server(&["--late", "3"])), test]);
    config.settings.mcp.start_timeout_s = 1;
    let answers = json!([
        call("test__echo", "one"), "First.", call("test__echo", "two"), "Second.",
        {"calls": [{"name": "tools_call", "arguments": {"name": "late__echo", "arguments": {"text": "late"}}}]}, "Third.",
        call("gone__die", ""), call("gone__echo", "gone"), "Fourth."
    ]);
    let (runtime, model) = open(config, &answers).await;
    let session = runtime.session("a").await.unwrap();

    session.send("one").await.unwrap();
    std::fs::write(place.work().join("tools.txt"), "brand_new").unwrap();
    std::fs::write(place.work().join("change.now"), "").unwrap();
    session.send("two").await.unwrap();
    let is_known =
        |name: &str| runtime.mcp_servers().iter().any(|status| status.tools.iter().any(|tool| tool == name));
    eventually("both servers have new tools", || async {
        is_known("late__echo") && is_known("test__brand_new")
    })
    .await;
    session.send("three").await.unwrap();
    // It dies in its call, and is not there for the next one.
    std::fs::write(place.work().join("server.py"), "raise SystemExit(1)").unwrap();
    session.send("four").await.unwrap();

    let requests = model.requests();
    assert_eq!(requests.len(), 9);
    let beginning = |request: &longhaul_model::Request| (request.system.clone(), request.tools.clone());
    assert!(requests.iter().all(|request| beginning(request) == beginning(&requests[0])));
    for (one, next) in requests.iter().zip(&requests[1..]) {
        assert_eq!(next.items[..one.items.len()], one.items[..]);
    }
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let notes: Vec<String> = records
        .iter()
        .filter_map(|record| match SessionRecord::decode(record).unwrap() {
            SessionRecord::Note(note) => Some(note.text),
            _ => None,
        })
        .collect();
    assert!(notes.iter().any(|note| note.contains("the MCP server late is ready now")), "{notes:?}");
    assert!(
        notes.iter().any(|note| note.contains("the MCP server test now also has test__brand_new")),
        "{notes:?}"
    );
    let found = results(&records);
    assert_eq!(found[2].2, "late");
    assert!(found[4].1 && found[4].2.contains("the MCP server gone can't be used"), "{found:?}");
}

/// E2, M16: a new process sends the tools of the epoch's record, without waiting for servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_runtime_goes_on_with_the_tools_of_the_epoch() {
    let place = TestHome::new();
    let servers = [("test", server(&[]))];
    let (runtime, model) = open(config(&place, &servers), &json!(["First."])).await;
    runtime.session("a").await.unwrap().send("one").await.unwrap();
    runtime.shutdown().await.unwrap();
    let before = model.requests()[0].tools.clone();
    std::fs::write(place.work().join("tools.txt"), "brand_new").unwrap();

    let (runtime, model) =
        open(config(&place, &servers), &json!(["x", call("test__echo", "two"), "Second."])).await;
    runtime.session("a").await.unwrap().send("two").await.unwrap();

    let requests = model.requests();
    assert!(!requests.is_empty() && requests.iter().all(|request| request.tools == before));
    runtime.shutdown().await.unwrap();
}

/// E2: many tools are found by search, and a call by name obeys the rules of the tool that it names.
#[tokio::test(flavor = "multi_thread")]
async fn many_tools_are_deferred_and_approval_sees_through_a_call_by_name() {
    let place = TestHome::new();
    let mut config = config(&place, &[("test", server(&["--many", "200"]))]);
    config.settings.approval.rule = toml_rules("tool = \"test__write\"\naction = \"deny\"");
    let by_name = |name: &str| json!({"calls": [{"name": "tools_call", "arguments": {"name": name, "arguments": {"text": "x"}}}]});
    let answers = json!([
        {"calls": [{"name": "tools_find", "arguments": {"query": "give the text back"}}]},
        by_name("test__echo"), by_name("test__write"), by_name("exec"), "Done."
    ]);
    let (runtime, model) = open(config, &answers).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    let names: Vec<String> = model.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert!(
        names.iter().all(|name| !name.contains("__")) && names.iter().any(|name| name == "tools_find"),
        "{names:?}"
    );
    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    assert!(found[0].2.starts_with("test__echo\nGives the text back\narguments: {"), "{}", found[0].2);
    assert_eq!(found[1].2, "x");
    assert!(
        found[2].1 && found[2].2.contains("matches the rule for the tool `test__write`"),
        "{}",
        found[2].2
    );
    assert!(found[3].1 && found[3].2.contains("there is no tool of that name"), "{}", found[3].2);
    assert!(!place.file("calls.log").contains("write x"));
}

/// E2: a few tools with large schemas are found by search as well.
#[tokio::test(flavor = "multi_thread")]
async fn tools_with_large_schemas_are_deferred_although_they_are_few() {
    for (bytes, is_deferred) in [("20000", true), ("100", false)] {
        let place = TestHome::new();
        let config = config(&place, &[("test", server(&["--schemas", bytes]))]);
        let (runtime, model) = open(config, &json!(["Done."])).await;

        runtime.session("a").await.unwrap().send("go").await.unwrap();

        let tools = model.requests()[0].tools.clone();
        assert_eq!(tools.iter().any(|tool| tool.name == "tools_find"), is_deferred);
        assert_eq!(tools.iter().all(|tool| !tool.name.starts_with("test__")), is_deferred);
        runtime.shutdown().await.unwrap();
    }
}

fn toml_rules(rule: &str) -> Vec<longhaul_agent::config::ApprovalRule> {
    let text = format!("[[approval.rule]]\n{rule}\n");
    Config::from_toml(&text).unwrap().settings.approval.rule
}

/// E2, P4: what a server calls idempotent still changes something.
#[tokio::test(flavor = "multi_thread")]
async fn only_reads_run_in_plan_mode_whatever_else_a_tool_promises() {
    let place = TestHome::new();
    let mut config = config(&place, &[("test", server(&[]))]);
    config.settings.approval.mode = PermissionMode::Plan;
    let (runtime, _) = open(config, &json!([call("test__put", "x"), call("test__echo", "y"), "Done."])).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    let found = results(&sound_records(&place, &session).await);
    assert!(found[0].1 && found[0].2.contains("plan mode is on"), "{found:?}");
    assert_eq!(found[1].2, "y");
    assert!(!place.file("calls.log").contains("put"));
}

/// E1
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_gets_the_answer_of_the_user() {
    let place = TestHome::new();
    let config = Config { is_attended: true, ..config(&place, &[("test", server(&[]))]) };
    let (runtime, _) = open(config, &json!([call("test__ask", ""), "Done."])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    session.put(said("go"), None).await.unwrap();

    let events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::Question { .. })).await;
    let EventKind::Question { id, kind, text, .. } = events.last().unwrap().kind.clone() else {
        unreachable!()
    };
    session.answer(id, "blue").await.unwrap();
    collect_until(&mut watcher, ended_turn).await;

    let asked = "The MCP server test asks (your answer goes to it):\nWhich colour?";
    assert_eq!((kind, text.as_str()), (Some(QuestionKind::Elicitation), asked));
    runtime.shutdown().await.unwrap();
    assert_eq!(results(&sound_records(&place, &session).await)[0].2, "accept blue");
}

/// E1
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_where_nobody_can_answer_is_declined() {
    let place = TestHome::new();
    let (runtime, _) =
        open(config(&place, &[("test", server(&[]))]), &json!([call("test__ask", ""), "Done."])).await;
    let session = runtime.session("a").await.unwrap();

    session.send("go").await.unwrap();

    runtime.shutdown().await.unwrap();
    assert_eq!(results(&sound_records(&place, &session).await)[0].2, "decline");
}

/// E1, E2: a turn with an epoch does not wait for its servers.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_a_running_epoch_does_not_wait_for_a_slow_server() {
    let place = TestHome::new();
    let servers = [("test", server(&[]))];
    let (runtime, _) = open(config(&place, &servers), &json!(["First."])).await;
    runtime.session("a").await.unwrap().send("one").await.unwrap();
    runtime.shutdown().await.unwrap();
    // It now takes longer to start than the turn may wait, and its settings are the same.
    let script = std::fs::read_to_string(place.work().join("server.py")).unwrap();
    let settings = config(&place, &servers);
    std::fs::write(place.work().join("server.py"), script.replace("\"--late\", \"0\"", "\"--late\", \"20\""))
        .unwrap();

    let model = RecordingModel::new(crate::script(&json!(["x", "Second."])));
    let runtime = Runtime::with_model(settings, model).await.unwrap();
    let since = Instant::now();
    runtime.session("a").await.unwrap().send("two").await.unwrap();

    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
    runtime.shutdown().await.unwrap();
}
