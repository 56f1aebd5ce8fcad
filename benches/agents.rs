//! What a subagent costs besides the model: its start against a plain turn of a new session, and the memory of 100 that wait.
//! `scripts/bench` runs it; the figures with their machine are in `docs/performance.md`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::{Config, Runtime, Watched};
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, Model, ModelFailure, Request, StopKind, StopReason,
};
use longhaul_protocol::{EventKind, Item, Role};

const ROUNDS: usize = 31;
const WAITING: usize = 100;

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    tokio.block_on(start_against_turn(&folder.path().join("start")));
    tokio.block_on(memory_of_waiting(&folder.path().join("waiting")));
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
    let mut config = Config::at(folder.join("home")).with_work_dir(folder);
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
    println!(
        "a subagent, from its call to its end: {:.2} ms, a plain turn of a new session: {:.2} ms ({:.2} times)",
        started.as_secs_f64() * 1e3,
        plain.as_secs_f64() * 1e3,
        started.as_secs_f64() / plain.as_secs_f64()
    );
}

async fn memory_of_waiting(folder: &Path) {
    let runtime = open(folder).await;
    let warm = runtime.session("warm").await.expect("a session");
    warm.send("answer").await.expect("an answer");
    let before = resident_kb();
    let session = runtime.session("parent").await.expect("a session");
    let mut watcher = runtime.watch();
    session.send("start many").await.expect("an answer");
    let mut asked = 0;
    while asked < WAITING {
        match watcher.next().await {
            Some(Watched::Event(event)) if matches!(event.kind, EventKind::StepStarted) => {
                asked += usize::from(event.session.starts_with("agent:"));
            }
            Some(_) => {}
            None => break,
        }
    }
    let each = resident_kb().saturating_sub(before) / WAITING as u64;
    println!("{WAITING} subagents that wait for a model: {each} KiB each");
    runtime.shutdown().await.expect("an end");
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
