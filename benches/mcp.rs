//! What configured MCP servers cost: the time of a turn with none and with ten of them, and the tokens of 200 tools that are sent or
//! found by search. `scripts/bench` runs it; the figures with their machine are in `docs/performance.md`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::mcp::{ServerSettings, ServerState};
use longhaul_agent::{Config, Runtime};
use longhaul_model::ScriptedModel;
use longhaul_protocol::ToolSchema;
use longhaul_testkit::{RecordingModel, TestHome, write_mcp_server};

const SERVERS: usize = 10;
const ROUNDS: usize = 31;
const COLD_ROUNDS: usize = 15;
const PACE: Duration = Duration::from_secs(1);
const TOOLS: usize = 200;
/// The tools that the test's server has besides those that it is told to have.
const OWN_TOOLS: usize = 10;

fn main() {
    longhaul_agent::keeper::main_if_asked();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(turns_with_running_servers());
    tokio.block_on(turns_while_servers_start());
    tokio.block_on(tokens_of_many_tools());
}

fn config(place: &TestHome, servers: usize, arguments: &[&str]) -> Config {
    write_mcp_server(&place.work());
    let mut config = Config::at(place.home()).with_work_dir(&place.work());
    let args = ["server.py"].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
    let server = ServerSettings { command: "python3".to_owned(), args, ..ServerSettings::default() };
    config.settings.mcp.servers = (0..servers).map(|number| (format!("s{number}"), server.clone())).collect();
    config.settings.mcp.start_timeout_s = 60;
    config
}

async fn open(config: Config) -> Runtime {
    let script = format!("[{}]", vec!["\"Done.\""; ROUNDS + 2].join(","));
    let model = Arc::new(ScriptedModel::from_json(&script).expect("a script"));
    Runtime::with_model(config, model).await.expect("a runtime")
}

async fn turn(runtime: &Runtime, key: &str) -> Duration {
    let session = runtime.session(key).await.expect("a session");
    let began = Instant::now();
    let ended = session.send("go").await.expect("a turn");
    assert_eq!(ended.text, "Done.", "{:?}", ended.error);
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn report(what: &str, none: Vec<Duration>, ten: Vec<Duration>) {
    let (none, ten) = (median(none), median(ten));
    println!("{what}: {none:.2} ms with no server, {ten:.2} ms with {SERVERS}: {:+.2} ms", ten - none);
}

/// The two take turns, so that whatever else the machine does meets both.
async fn turns_with_running_servers() {
    let (without, with) = (TestHome::new(), TestHome::new());
    let (none, ten) = (open(config(&without, 0, &[])).await, open(config(&with, SERVERS, &[])).await);
    turn(&none, "warm").await;
    turn(&ten, "warm").await;
    assert!(ten.mcp_servers().iter().all(|server| server.state == ServerState::Ready));
    let (mut first, mut further) = ((vec![], vec![]), (vec![], vec![]));
    for round in 0..ROUNDS {
        let key = format!("round {round}");
        first.0.push(turn(&none, &key).await);
        first.1.push(turn(&ten, &key).await);
        further.0.push(turn(&none, "warm").await);
        further.1.push(turn(&ten, "warm").await);
    }
    report("the first turn of a session", first.0, first.1);
    report("a further turn", further.0, further.1);
    none.shutdown().await.expect("the end");
    ten.shutdown().await.expect("the end");
}

/// New processes: the servers have run before, and none of them runs when the turn begins.
async fn turns_while_servers_start() {
    let (without, with) = (TestHome::new(), TestHome::new());
    let known = open(config(&with, SERVERS, &[])).await;
    turn(&known, "warm").await;
    known.shutdown().await.expect("the end");
    let (mut none_times, mut ten_times) = (vec![], vec![]);
    for round in 0..COLD_ROUNDS {
        let key = format!("round {round}");
        for (servers, place, times) in [(0, &without, &mut none_times), (SERVERS, &with, &mut ten_times)] {
            let runtime = open(config(place, servers, &[])).await;
            times.push(turn(&runtime, &key).await);
            runtime.shutdown().await.expect("the end");
            // Servers that end take time from whoever comes next.
            tokio::time::sleep(PACE).await;
        }
    }
    report("the first turn of a process, while its servers start", none_times, ten_times);
}

async fn tokens_of_many_tools() {
    let mut tokens = Vec::new();
    for defer_past in [TOOLS as u64, 40] {
        let place = TestHome::new();
        let more = (TOOLS - OWN_TOOLS).to_string();
        let mut config = config(&place, 1, &["--many", &more]);
        config.settings.mcp.defer_past = defer_past;
        let script = ScriptedModel::from_json(r#"["Done."]"#).expect("a script");
        let model = RecordingModel::new(script);
        let runtime = Runtime::with_model(config, model.clone()).await.expect("a runtime");
        turn(&runtime, "bench").await;
        let requests = model.requests();
        let is_of_server =
            |tool: &&ToolSchema| tool.name.starts_with("s0__") || tool.name.starts_with("tools_");
        let tools: Vec<ToolSchema> = requests[0].tools.iter().filter(is_of_server).cloned().collect();
        tokens.push((tools.len(), longhaul_context::estimate("", &tools, &[])));
        runtime.shutdown().await.expect("the end");
    }
    let [(all, all_tokens), (deferred, deferred_tokens)] = tokens[..] else { unreachable!("two of them") };
    println!(
        "{TOOLS} tools: {all_tokens} tokens for {all} schemas in each request, {deferred_tokens} for {deferred} deferred: {:.3}",
        deferred_tokens as f64 / all_tokens as f64
    );
}
