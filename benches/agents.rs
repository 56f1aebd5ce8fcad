//! What agents that start by themselves cost besides the model. A subagent: its start against a plain turn of a new session, and the
//! memory of 100 that wait against 100 plain sessions that do. Schedules: 1,000 at rest against none, and 1,000 that fire in the same
//! second against as many inputs. `scripts/bench` runs it; the figures with their machine are in `docs/performance.md`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::{Config, Runtime, Watched, Watcher};
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, Model, ModelFailure, Request, StopKind, StopReason,
};
use longhaul_protocol::{At, EventKind, Input, InputId, Item, JoinMode, Role, ScheduleSpec};

const ROUNDS: usize = 31;
const WAITING: usize = 100;
const SCHEDULES: usize = 1_000;
/// How long a runtime at rest is measured, after a pause in which what it began with is done.
const REST: Duration = Duration::from_secs(20);
/// Longer than the runtime keeps the threads of its start: the work of a thread that ends is no longer counted.
const SETTLING: Duration = Duration::from_secs(15);
/// From the start of a runtime to the second in which its schedules fire.
const UNTIL_FIRING: Duration = Duration::from_secs(10);

/// How often the time of a plain turn the start of a subagent may take.
const MOST_START: f64 = 2.0;
/// How often the memory of a plain session that waits a subagent may take.
const MOST_MEMORY: f64 = 1.5;
/// What schedules at rest may cost: none, but for what can't be measured.
const MOST_RESTING_CPU_MS: f64 = 0.2;
const MOST_RESTING_WAITS: f64 = 1.0;
/// How often the time of as many inputs the schedules of one second may take.
const MOST_FIRING: f64 = 2.0;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(start_against_turn(&folder.path().join("start")));
    tokio.block_on(memory_of_waiting(&folder.path().join("waiting")));
    tokio.block_on(rest_against_none(folder.path()));
    tokio.block_on(fire_together(&folder.path().join("together")));
}

/// Prints a figure beside the one that it is held against, and its target.
fn figure(name: &str, value: &str, against: f64, target: f64) {
    let verdict = if against <= target { "met" } else { "MISSED" };
    println!("{name:<64} {value:>14}   {against:>8.2}   target ≤ {target:<5} {verdict}");
}

/// Starts subagents when it is told to, and answers everything else at once; a subagent that is told to wait gets no answer.
struct Starting;

struct Said(Vec<AnswerPart>);

fn first_text(request: &Request) -> String {
    let text = |item: &Arc<Item>| match &**item {
        Item::Text { role: Role::User, text } => Some(text.clone()),
        _ => None,
    };
    request.items.iter().find_map(text).unwrap_or_default()
}

#[async_trait::async_trait]
impl Model for Starting {
    fn name(&self) -> &'static str {
        "scripted/starting"
    }

    async fn ask(
        &self,
        request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let told = first_text(&request);
        let has_results = request.items.iter().any(|item| matches!(&**item, Item::ToolResult { .. }));
        let calls = match told.as_str() {
            "start one" if !has_results => vec![r#"{"prompt": "answer"}"#],
            "start many" if !has_results => vec![r#"{"prompt": "wait", "background": true}"#; WAITING],
            "wait" => std::future::pending().await,
            _ => vec![],
        };
        let mut parts = Vec::new();
        for arguments in &calls {
            parts.push(AnswerPart::CallStart { wire_id: None, name: "agent".to_owned() });
            parts.push(AnswerPart::ArgumentsDelta((*arguments).to_owned()));
            parts.push(AnswerPart::CallStop { signature: None });
        }
        if calls.is_empty() {
            parts.extend([
                AnswerPart::TextStart,
                AnswerPart::TextDelta("Done.".to_owned()),
                AnswerPart::TextStop,
            ]);
        }
        parts.push(AnswerPart::End(StopReason::new(StopKind::Finished, "stop")));
        parts.reverse();
        Ok(Box::new(Said(parts)))
    }
}

#[async_trait::async_trait]
impl AnswerStream for Said {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        Ok(self.0.pop().expect("nobody asks after the end"))
    }
}

async fn open(folder: &Path) -> Runtime {
    open_with(folder, vec![]).await
}

async fn open_with(folder: &Path, schedules: Vec<ScheduleSpec>) -> Runtime {
    let mut config = Config::at(folder.join("home")).with_work_dir(folder);
    config.settings.schedule = schedules;
    (config.settings.agents.at_once, config.settings.agents.per_tree) = (WAITING as u64, WAITING as u64);
    config.settings.exec.max_tasks = WAITING as u64;
    std::fs::create_dir_all(folder).expect("a folder");
    Runtime::with_model(config, Arc::new(Starting)).await.expect("a runtime")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// From the record of the call to the record of the subagent's end, against a whole turn of a new session.
async fn start_against_turn(folder: &Path) {
    let runtime = open(folder).await;
    let (mut plain, mut started) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let session = runtime.session(&format!("plain-{round}")).await.expect("a session");
        let since = Instant::now();
        session.send("answer").await.expect("an answer");
        plain.push(since.elapsed());

        let session = runtime.session(&format!("parent-{round}")).await.expect("a session");
        let mut watcher = session.watch();
        let sending = tokio::spawn(async move { session.send("start one").await });
        let mut since = Instant::now();
        while let Some(Watched::Event(event)) = watcher.next().await {
            match event.kind {
                EventKind::ToolStarted { .. } => since = Instant::now(),
                EventKind::ChildEnded { .. } => break,
                _ => {}
            }
        }
        started.push(since.elapsed());
        sending.await.expect("a task").expect("an answer");
    }
    runtime.shutdown().await.expect("an end");
    let (plain, started) = (median(plain), median(started));
    let in_ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
    println!("{:<64} {:>14}", "a plain turn of a new session", in_ms(plain));
    let ratio = started.as_secs_f64() / plain.as_secs_f64();
    figure("a subagent, from its call to its end, against that turn", &in_ms(started), ratio, MOST_START);
}

/// The memory of sessions whose model does not answer: plain ones, then subagents of one session.
async fn memory_of_waiting(folder: &Path) {
    let runtime = open(folder).await;
    let warm = runtime.session("warm").await.expect("a session");
    warm.send("answer").await.expect("an answer");
    let mut watcher = runtime.watch();
    let before = resident_kb();
    for number in 0..WAITING {
        let session = runtime.session(&format!("plain-{number}")).await.expect("a session");
        tokio::spawn(async move { session.send("wait").await });
    }
    wait_for_steps(&mut watcher, "plain-").await;
    let plain = resident_kb().saturating_sub(before) / WAITING as u64;
    let before = resident_kb();
    let session = runtime.session("parent").await.expect("a session");
    session.send("start many").await.expect("an answer");
    wait_for_steps(&mut watcher, "agent:").await;
    let each = resident_kb().saturating_sub(before) / WAITING as u64;
    println!(
        "{:<64} {:>14}",
        format!("{WAITING} sessions that wait for a model, each"),
        format!("{plain} KiB")
    );
    let ratio = each as f64 / plain.max(1) as f64;
    let name = format!("{WAITING} subagents that wait for a model, each, against those");
    figure(&name, &format!("{each} KiB"), ratio, MOST_MEMORY);
    runtime.shutdown().await.expect("an end");
}

/// Waits until all sessions with such a key have asked their model.
async fn wait_for_steps(watcher: &mut Watcher, prefix: &str) {
    let mut asked = 0;
    while asked < WAITING {
        match watcher.next().await {
            Some(Watched::Event(event)) if matches!(event.kind, EventKind::StepStarted) => {
                asked += usize::from(event.session.starts_with(prefix));
            }
            Some(_) => {}
            None => panic!("the runtime has ended"),
        }
    }
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// What all threads of this process have done so far: the time on a processor, and how often one began to wait.
fn work_so_far() -> (Duration, u64) {
    let (mut on_cpu, mut waits) = (0, 0);
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        on_cpu += read("schedstat").split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0);
        let status = read("status");
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        waits += line.and_then(|line| line.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    (Duration::from_nanos(on_cpu), waits)
}

/// What a host does in a second: milliseconds on a processor, and how often a thread began to wait.
struct RestingHost {
    cpu_ms: f64,
    waits: f64,
}

async fn rest_against_none(folder: &Path) {
    let none = schedules_at_rest(&folder.join("rest-0"), 0).await;
    let many = schedules_at_rest(&folder.join("rest-1000"), SCHEDULES).await;
    let text = |host: &RestingHost| format!("{:.2} ms, {:.1}", host.cpu_ms, host.waits);
    println!("{:<64} {:>14}", "a host without schedules: CPU and wake-ups a second", text(&none));
    println!("{:<64} {:>14}", format!("a host with {SCHEDULES} schedules at rest"), text(&many));
    let more_cpu = (many.cpu_ms - none.cpu_ms).max(0.0);
    figure("of that the schedules: CPU", &format!("{more_cpu:.2} ms"), more_cpu, MOST_RESTING_CPU_MS);
    let more_waits = (many.waits - none.waits).max(0.0);
    figure("of that the schedules: wake-ups", &format!("{more_waits:.1}"), more_waits, MOST_RESTING_WAITS);
}

/// A host whose schedules are all due in a few hours.
async fn schedules_at_rest(folder: &Path, count: usize) -> RestingHost {
    let resting = |number| {
        let every = Some(format!("{}m", 300 + number % 60));
        ScheduleSpec { every, ..ScheduleSpec::new(format!("rest-{number}"), "answer") }
    };
    let runtime = open_with(folder, (0..count).map(resting).collect()).await;
    runtime.start().await.expect("a host");
    tokio::time::sleep(SETTLING).await;

    let before = work_so_far();
    tokio::time::sleep(REST).await;
    let after = work_so_far();

    runtime.shutdown().await.expect("an end");
    RestingHost {
        cpu_ms: after.0.saturating_sub(before.0).as_secs_f64() * 1e3 / REST.as_secs_f64(),
        waits: after.1.saturating_sub(before.1) as f64 / REST.as_secs_f64(),
    }
}

/// From the second in which 1,000 schedules fire to the end of the last run, against as many inputs to new sessions.
async fn fire_together(folder: &Path) {
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let at = now().as_secs() + UNTIL_FIRING.as_secs();
    let time = At(i64::try_from(at).expect("a time") * 1_000).to_string();
    let firing = |number| {
        let at = Some(time.clone());
        ScheduleSpec { at, ..ScheduleSpec::new(format!("together-{number}"), "answer") }
    };
    let runtime = open_with(&folder.join("schedules"), (0..SCHEDULES).map(firing).collect()).await;
    let mut watcher = runtime.watch();
    runtime.start().await.expect("a host");
    count_ends(&mut watcher).await;
    let fired = now() - Duration::from_secs(at);
    runtime.shutdown().await.expect("an end");

    let runtime = open(&folder.join("inputs")).await;
    let mut watcher = runtime.watch();
    runtime.start().await.expect("a host");
    let since = Instant::now();
    for number in 0..SCHEDULES {
        let session = runtime.session(&format!("input-{number}")).await.expect("a session");
        let input = Input::new(InputId::generate(), "answer", JoinMode::After);
        session.put(input, None).await.expect("an input");
    }
    count_ends(&mut watcher).await;
    let put = since.elapsed();
    runtime.shutdown().await.expect("an end");
    let in_s = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    let inputs = format!("{SCHEDULES} inputs, put one after the other, to the end of the last turn");
    println!("{inputs:<64} {:>14}", in_s(put));
    let name = format!("{SCHEDULES} schedules of the same second, to the end of the last run");
    figure(&name, &in_s(fired), fired.as_secs_f64() / put.as_secs_f64(), MOST_FIRING);
}

async fn count_ends(watcher: &mut Watcher) {
    let mut ends = 0;
    while ends < SCHEDULES {
        match watcher.next().await {
            Some(Watched::Event(event)) if matches!(event.kind, EventKind::TurnEnded { .. }) => ends += 1,
            // Deltas of answers may be missed, records never.
            Some(Watched::Missed { events, from: Some(_) }) => panic!("{events} events were missed"),
            Some(_) => {}
            None => panic!("the runtime has ended"),
        }
    }
}
