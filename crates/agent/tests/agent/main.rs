//! The agent against the real journal, real files and real commands. Only the model is scripted.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod ambiguous_spend;
mod amnesia;
mod answers;
mod approvals;
mod bad_input;
mod cancellation;
mod cleanup;
mod commands;
mod compaction;
mod compaction_edge_cases;
mod compaction_limits;
mod compaction_methods;
mod compaction_small_contexts;
mod connection_failures;
mod crash_table;
mod crashed_calls;
mod crashed_compactions;
mod crashed_memory;
mod crashed_permissions;
mod crashed_questions;
mod crashed_skills;
mod crashed_subagents;
mod crashed_tasks;
mod cut_streams;
mod embedding;
mod erased_epochs;
mod failures;
mod followers;
mod forks;
mod full_disk;
mod growth;
mod handles;
mod handovers;
mod heartbeats;
mod history;
mod idle;
mod imports;
mod inputs;
mod interleavings;
mod interrupts;
mod many_sessions;
mod mcp;
mod mcp_calls;
mod mcp_crashes;
mod mcp_http;
mod mcp_sharing;
mod memory;
mod memory_costs;
mod memory_embeddings;
mod mishaps;
mod outside_runs;
mod overviews;
mod permission;
mod project_rules;
mod prompt;
mod rare_cases;
mod retention;
mod role_orders;
mod schedules;
mod secrets;
mod senders;
mod server_content;
mod shutdown;
mod skill_trust;
mod skills;
mod soft_limits;
mod spend;
mod staged;
mod subagent_limits;
mod subagents;
mod tasks;
mod tool_calls;
mod user_questions;
mod wakeups;
mod watchers;
mod web_pages;
mod windows;
mod wire;
mod withdrawals;
mod work_folder;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::{Runtime, RuntimeBuilder, Session};
use longhaul_journal::{Error, Journal};
use longhaul_model::{Model, ScriptedModel};
use longhaul_protocol::{Event, EventKind, Item, Record, SessionRecord, TurnEnded};
use longhaul_testkit::{FaultyJournal, TestHome, broken_rules, records_of};
use longhaul_tools::Tool;

#[test]
#[ignore = "a part that keepers play in other processes"]
fn keeper_process() {
    longhaul_agent::keeper::keep_here()
}

/// What a promise in milliseconds is held to: itself, where `scripts/soak` says that the machine has nothing else to do; else that nothing
/// waits for a clock that is longer.
fn within(promised: Duration) -> Duration {
    match std::env::var_os("LONGHAUL_HOLD_TIMES") {
        Some(_) => promised,
        None => promised.max(Duration::from_secs(30)),
    }
}

/// A scripted model.
fn script(answers: &serde_json::Value) -> ScriptedModel {
    ScriptedModel::from_json(&answers.to_string()).unwrap()
}

/// An input.
fn said(text: &str) -> longhaul_protocol::Input {
    let (id, mode) = (longhaul_protocol::InputId::generate(), longhaul_protocol::JoinMode::Join);
    longhaul_protocol::Input::new(id, text.to_owned(), mode)
}

/// A runtime in this place.
async fn open(place: &TestHome, model: Arc<dyn Model>) -> Runtime {
    Runtime::with_model(place.config(), model).await.unwrap()
}

/// A runtime in this place, with one more tool.
async fn open_with_tool(place: &TestHome, model: Arc<dyn Model>, tool: Arc<dyn Tool>) -> Runtime {
    RuntimeBuilder::new(place.config()).model(model).tools(vec![tool]).open().await.unwrap()
}

/// The records of a session, which break no rule.
async fn sound_records(place: &TestHome, session: &Session) -> Vec<Record> {
    let journal = place.journal().await;
    let records = records_of(&*journal, session.id().unwrap()).await;
    journal.close().await;
    assert_eq!(broken_rules(&records), Vec::<String>::new());
    records
}

/// The results of tools, as the records hold them: name, whether it failed, content.
fn results(records: &[Record]) -> Vec<(String, bool, String)> {
    let result = |record: &Record| match SessionRecord::decode(record).unwrap() {
        SessionRecord::ToolFinished(finished) => Some((finished.name, finished.is_error, finished.content)),
        _ => None,
    };
    records.iter().filter_map(result).collect()
}

/// What was said to the model, as it stands in a request: user texts and results.
fn heard(items: &[Arc<Item>]) -> Vec<String> {
    let text = |item: &Arc<Item>| match &**item {
        Item::Text { role: longhaul_protocol::Role::User, text } => Some(text.clone()),
        Item::ToolResult { content, .. } => Some(content.clone()),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}

/// The kinds of events, without those that are only shown.
fn of_record(events: &[Event]) -> Vec<&EventKind> {
    events.iter().filter(|event| event.seq.is_some()).map(|event| &event.kind).collect()
}

/// Somebody sends something and waits for its outcome.
fn sends(
    session: &Session,
    text: &'static str,
) -> tokio::task::JoinHandle<longhaul_agent::Result<TurnEnded>> {
    let session = session.clone();
    tokio::spawn(async move { session.send(text).await })
}

/// A runtime with a journal that can be made to fail.
async fn open_faulty(place: &TestHome, model: Arc<dyn Model>) -> (Runtime, Arc<FaultyJournal>) {
    let journal = FaultyJournal::new(place.journal().await, None);
    (RuntimeBuilder::new(place.config()).model(model).journal(journal.clone()).open().await.unwrap(), journal)
}

/// A handle to a session without a runtime of its own.
async fn detached(journal: &Arc<longhaul_journal::SqliteJournal>, key: &str) -> Session {
    let client = longhaul_agent::Client::new(journal.clone(), longhaul_agent::Redactor::default());
    client.session(key).await.unwrap()
}

/// Waits until something is so.
async fn eventually<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Does something until it has once taken less than this. What waits for a clock never does; a machine that has much else to do
/// may be late, but not always.
async fn at_best<F: Future<Output = Duration>>(within: Duration, what: &str, attempt: impl Fn() -> F) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let took = attempt().await;
        if took < within {
            return;
        }
        assert!(Instant::now() < deadline, "{what} takes {took:?}");
    }
}

fn disk_full() -> Error {
    Error::DiskFull { path: PathBuf::from("journal.db") }
}
