//! Kill anywhere, for memory: a runtime that goes through sessions and puts pages in order is stopped at each of its appends, before and
//! after it is on disk, and a fresh one goes on.
//!
//! | durable | must happen | must never happen |
//! | --- | --- | --- |
//! | nothing of a part | the same part is gone through | |
//! | `extracted` | the next part begins after it | the same records again; records left out |
//! | nothing of a consolidation | the same items are read | |
//! | `pages_changed` | what is new since then is read | an item read twice, or never; a page of which a half is written |

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_agent::{Config, Runtime, RuntimeBuilder, Session};
use longhaul_journal::{Journal, Page};
use longhaul_memory::PageSet;
use longhaul_model::{
    AnswerStream, CallPermit, Capabilities, ContextWindow, Model, ModelFailure, Purpose, Request,
    ScriptedModel, WindowSource,
};
use longhaul_protocol::{Item, MemoryRecord, SessionId, StreamName};
use longhaul_testkit::{Crash, CrashMoment, FaultyJournal, SeededRandom, TestHome, broken_rules, records_of};
use serde_json::{Value, json};

use crate::compaction::summary;
use crate::memory::extracts;
use crate::{eventually, script};

const DEADLINE: Duration = Duration::from_secs(120);

/// A model that finds one thing worth remembering in each part, and puts each thing it is shown on a page of its own.
struct Diligent {
    steps: ScriptedModel,
}

impl Diligent {
    fn new() -> Arc<Self> {
        let answers: Vec<Value> = (0..40).map(|number| json!(format!("Answer {number}."))).collect();
        let summaries = (0..20).map(|_| summary("go on"));
        Arc::new(Self { steps: script(&answers.into_iter().chain(summaries).collect()) })
    }
}

/// The numbers that begin entries, as `[12] user: …`.
fn numbers(request: &Request) -> Vec<u64> {
    let texts = request.items.iter().filter_map(|item| match &**item {
        Item::Text { text, .. } => Some(text.clone()),
        _ => None,
    });
    let number = |line: &str| line.strip_prefix('[')?.split_once(']')?.0.parse().ok();
    texts.flat_map(|text| text.lines().filter_map(number).collect::<Vec<_>>()).collect()
}

#[async_trait]
impl Model for Diligent {
    fn name(&self) -> &'static str {
        "scripted/diligent"
    }

    async fn capabilities(&self) -> Capabilities {
        let window = Some(ContextWindow { tokens: 16_000, source: WindowSource::Config });
        Capabilities { window, ..Capabilities::default() }
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let (tool, arguments) = match request.purpose {
            Purpose::Step { .. } | Purpose::Summary { .. } | Purpose::Search => {
                return self.steps.ask(request, permit).await;
            }
            Purpose::Extract { .. } => {
                let source = numbers(&request)[0];
                let text = format!("The answer of record {source} is remembered.");
                let item = json!({"kind": "fact", "text": text, "sources": [source], "speaker": "user"});
                ("write_extracted", json!({"items": [item]}))
            }
            Purpose::Consolidate { consolidations_before } => {
                let items = numbers(&request);
                let lines: Vec<String> = items
                    .iter()
                    .map(|number| format!("- The answer of record {number} is remembered."))
                    .collect();
                let text = format!("# Round {consolidations_before}\n\n{}\n", lines.join("\n"));
                let page = format!("round-{consolidations_before}");
                let page = json!({"page": page, "text": text, "reason": "new", "items": items});
                ("write_pages", json!({"pages": [page]}))
            }
        };
        let call = json!({"name": tool, "arguments": arguments});
        let purpose = match request.purpose {
            Purpose::Extract { .. } => Purpose::Extract { extracts_before: 0 },
            _ => Purpose::Consolidate { consolidations_before: 0 },
        };
        script(&json!([{"calls": [call]}])).ask(Request { purpose, items: vec![], ..request }, permit).await
    }
}

fn config(place: &TestHome) -> Config {
    let mut config = place.config();
    config.settings.memory.consolidate_at_items = 2;
    config
}

async fn open(place: &TestHome, crash: Option<Crash>) -> (Runtime, Arc<FaultyJournal>) {
    let journal = FaultyJournal::new(place.journal().await, crash);
    let runtime = RuntimeBuilder::new(config(place))
        .model(Diligent::new())
        .journal(journal.clone())
        .open()
        .await
        .unwrap();
    (runtime, journal)
}

/// What breaks the rules of extracts: what they cover must begin with 1, follow each other, and end where the session does.
async fn broken_extracts(journal: &dyn Journal, id: SessionId, through: Option<u64>) -> Vec<String> {
    let (mut broken, mut next) = (Vec::new(), 1);
    for extract in extracts(journal, id).await {
        if extract.from != next || extract.through < extract.from {
            broken.push(format!("{} to {} where {next} is next", extract.from, extract.through));
        }
        next = extract.through + 1;
    }
    if through.is_some_and(|through| next != through + 1) {
        broken.push(format!("it ends before {next}, not with {through:?}"));
    }
    broken
}

/// Every item that consolidations have read, by their own account.
async fn read_items(journal: &dyn Journal, scope: &str) -> Vec<(SessionId, u64)> {
    let stream = StreamName::memory(scope).unwrap();
    let mut read = Vec::new();
    let mut before: std::collections::BTreeMap<SessionId, u64> = std::collections::BTreeMap::new();
    for record in journal.read(&stream, 1, Page::default()).await.unwrap() {
        let Ok(MemoryRecord::PagesChanged(changed)) = MemoryRecord::decode(&record) else { continue };
        for source in changed.extracts {
            let from = before.insert(source.session, source.through).unwrap_or(0);
            assert!(source.through > from, "a position that does not move is not said: {source:?}");
            read.extend((from + 1..=source.through).map(|seq| (source.session, seq)));
        }
    }
    read
}

/// Lets the worker run until everything is gone through and put in order, or the journal has died.
async fn settle(runtime: &Runtime, journal: &FaultyJournal, sessions: &[Session], scope: &str) {
    runtime.set_check_interval(Duration::from_millis(5));
    runtime.start_idle().await.unwrap();
    let is_done = || async {
        for session in sessions {
            let Some(id) = session.id() else { continue };
            let head = journal.head(&StreamName::session(id)).await.unwrap().seq;
            if longhaul_memory::extracted_through(journal, id).await.unwrap() < head {
                return false;
            }
        }
        let book = PageSet::load(journal, scope).await.unwrap();
        let mut unread = 0;
        for session in sessions {
            let Some(id) = session.id() else { continue };
            let head = journal.head(&StreamName::extract(id)).await.unwrap().seq;
            unread += head - book.read.get(&id).copied().unwrap_or(0);
        }
        unread < 2
    };
    tokio::select! {
        () = journal.crashed() => {}
        () = eventually("everything is remembered", is_done) => {}
    }
}

/// Y6, Y8: nothing is lost and nothing is doubled, wherever it is stopped.
#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_dies_in_the_middle_loses_and_doubles_nothing() {
    let mut append = 0;
    loop {
        append += 1;
        let mut has_crashed = false;
        for when in [CrashMoment::Before, CrashMoment::After] {
            let place = TestHome::in_memory();
            let scope = config(&place).memory_scope("", Some(&place.work().canonicalize().unwrap()));
            let (first, sound) = open(&place, None).await;
            let mut keys = Vec::new();
            for key in ["a", "b", "c"] {
                let session = first.session(key).await.unwrap();
                session.send(format!("the answer of {key}")).await.unwrap();
                keys.push(key);
            }
            first.shutdown().await.unwrap();
            drop(sound);

            let (second, journal) = open(&place, Some(Crash { append, when })).await;
            let sessions = sessions_of(&second, &keys).await;
            settle(&second, &journal, &sessions, &scope).await;
            has_crashed |= journal.has_crashed();
            if journal.has_crashed() {
                journal.release_leases().await;
            } else {
                second.shutdown().await.unwrap();
            }
            let (third, journal) = open(&place, None).await;
            let sessions = sessions_of(&third, &keys).await;
            tokio::time::timeout(DEADLINE, settle(&third, &journal, &sessions, &scope)).await.unwrap();

            for session in &sessions {
                let id = session.id().unwrap();
                let head = journal.head(&StreamName::session(id)).await.unwrap().seq;
                assert_eq!(broken_extracts(&*journal, id, Some(head)).await, Vec::<String>::new());
                assert_eq!(broken_rules(&records_of(&*journal, id).await), Vec::<String>::new());
            }
            let read = read_items(&*journal, &scope).await;
            assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), read.len(), "{read:?}");
            third.shutdown().await.unwrap();
        }
        if !has_crashed {
            break;
        }
    }
    // One for each extract, one at least for the pages, and one more that never came.
    assert!(append >= 5, "{append}");
}

async fn sessions_of(runtime: &Runtime, keys: &[&str]) -> Vec<Session> {
    let mut sessions = Vec::new();
    for key in keys {
        sessions.push(runtime.session(key).await.unwrap());
    }
    sessions
}

/// The dead hold nothing.
async fn release(dead: &[Arc<FaultyJournal>]) {
    for journal in dead {
        journal.release_leases().await;
    }
}

/// Y6, J3: whatever the order of turns, compactions, extractions and crashes, no record is covered twice or skipped.
#[tokio::test(flavor = "multi_thread")]
async fn no_record_is_covered_twice_or_skipped_whatever_happens() {
    let mut chance = SeededRandom::new();
    for round in 0..30 {
        let place = TestHome::in_memory();
        let (mut runtime, mut journal) = open(&place, None).await;
        let mut session = runtime.session("a").await.unwrap();
        session.send("begin").await.unwrap();
        let mut dead = Vec::new();
        for _ in 0..12 {
            let act = async {
                match chance.below(4) {
                    0 | 1 => drop(session.send("more").await),
                    2 => drop(session.compact().await),
                    _ => drop(session.extract().await),
                }
            };
            tokio::select! {
                () = journal.crashed() => {}
                () = act => {}
            }
            let is_cut = chance.below(3) == 0;
            if journal.has_crashed() || is_cut {
                if !journal.has_crashed() {
                    runtime.shutdown().await.unwrap();
                }
                // It may also have died while it shut down.
                dead.extend(Some(journal).filter(|journal| journal.has_crashed()));
                let when = if chance.below(2) == 0 { CrashMoment::Before } else { CrashMoment::After };
                let append = usize::try_from(1 + chance.below(9)).unwrap();
                release(&dead).await;
                (runtime, journal) = open(&place, Some(Crash { append, when })).await;
                session = runtime.session("a").await.unwrap();
            }
            let id = session.id().unwrap();
            let reading = place.journal().await;
            assert_eq!(broken_extracts(&*reading, id, None).await, Vec::<String>::new(), "round {round}");
            reading.close().await;
        }
        if !journal.has_crashed() {
            runtime.shutdown().await.unwrap();
        }
        dead.extend(Some(journal).filter(|journal| journal.has_crashed()));
        let (last, journal) = open(&place, None).await;
        let session = last.session("a").await.unwrap();
        release(&dead).await;
        session.resume().await.unwrap();
        // Records in which nobody says anything are covered with the next in which somebody does.
        session.send("end").await.unwrap();
        session.extract().await.unwrap();
        let id = session.id().unwrap();
        let head = journal.head(&StreamName::session(id)).await.unwrap().seq;

        assert_eq!(broken_extracts(&*journal, id, Some(head)).await, Vec::<String>::new(), "round {round}");
        assert_eq!(broken_rules(&records_of(&*journal, id).await), Vec::<String>::new(), "round {round}");
        last.shutdown().await.unwrap();
    }
}
