//! Killed at every append of what follows from a failed model call: retries, a model that stands in, an answer that goes on, a
//! nudge, and the orders `retry` and `continue`. Whatever the moment, the end is the same.
//!
//! | killed | the next runtime |
//! | --- | --- |
//! | before or after a failed attempt, or its wait | asks again |
//! | before or after `model_changed` | asks the one that stands in |
//! | before or after an answer that was cut, or its note | goes on with the next step |
//! | before or after an order was taken | begins the turn that it asks for, once |

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Config, RuntimeBuilder};
use longhaul_journal::Journal;
use longhaul_model::{Protocol, StopKind};
use longhaul_protocol::{Input, InputId, JoinMode, Outcome, SessionRecord};
use longhaul_testkit::wire::{MemoryTransport, ReceivedRequest, Reply, Script, ScriptedAnswer};
use longhaul_testkit::{
    Crash, CrashMoment, FaultyJournal, TestHome, broken_rules, collect_until, ended_turn, records_of,
};
use serde_json::json;

use crate::wire;

const CHAT: Protocol = Protocol::OpenaiChat;

fn text(text: &str) -> Reply {
    Reply::stream(ScriptedAnswer::text(text).bytes(CHAT))
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// What a run came to: its appends, and whether it was killed.
type Run = (Vec<Vec<String>>, bool);

/// Runs it, killed before and after each of its appends; a fresh runtime must come to the same end each time.
fn killed_anywhere(run: impl Fn(&TestHome, Option<Crash>) -> Run, resume: impl Fn(&TestHome) -> String) {
    let place = TestHome::in_memory();
    let (appends, _) = run(&place, None);
    let expected = resume(&place);
    for append in 1..=appends.len() {
        for when in [CrashMoment::Before, CrashMoment::After] {
            let place = TestHome::in_memory();
            let (_, crashed) = run(&place, Some(Crash { append, when }));

            let end = resume(&place);

            assert_eq!(end, expected, "{when:?} {append} {:?}, crashed {crashed}", appends[append - 1]);
        }
    }
}

/// T12, M9, M11, M13
mod calls {
    use super::*;

    fn config_of(place: &TestHome) -> Config {
        let mut config = wire::config(place, CHAT);
        config.settings.model.fallback = vec!["custom/other".to_owned()];
        config.settings.retry.max_retries = 1;
        config
    }

    fn answer(seen: &ReceivedRequest) -> Reply {
        if seen.protocol().is_none() {
            return Reply::json(&json!({"data": [{"id": "other", "max_model_len": 64_000}]}));
        }
        let body = seen.json();
        if body["model"] == "m" {
            return Reply::error(503, "{}");
        }
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        let words = last["content"].as_str().unwrap_or_default().to_owned();
        let reply = |said: ScriptedAnswer| Reply::stream(said.usage(100, 5).bytes(CHAT));
        if words.contains("reached the limit") {
            reply(ScriptedAnswer::nothing().thought("hm"))
        } else if words.contains("You have thought") {
            reply(ScriptedAnswer::text("two, ").call("list_files", json!({"path": "."})))
        } else if last["role"] == "tool" {
            reply(ScriptedAnswer::text("done."))
        } else {
            reply(ScriptedAnswer::text("One, ").stop(StopKind::Length))
        }
    }

    fn run(place: &TestHome, crash: Option<Crash>) -> Run {
        let tokio = tokio_runtime();
        let run = tokio.block_on(async {
            let journal = FaultyJournal::new(place.journal().await, crash);
            let wire = Arc::new(MemoryTransport::new(Script::by(answer)));
            let runtime = RuntimeBuilder::new(config_of(place))
                .transport(wire)
                .journal(journal.clone())
                .open()
                .await
                .unwrap();
            let session = runtime.session("a").await.unwrap();
            let mut watcher = session.watch();
            let input = Input::new(InputId::generate(), "go", JoinMode::Join);
            session.put(input, Some("once")).await.unwrap();
            tokio::select! {
                () = journal.crashed() => {}
                _ = collect_until(&mut watcher, ended_turn) => {}
            }
            journal.release_leases().await;
            (journal.appends(), journal.has_crashed())
        });
        tokio.shutdown_timeout(Duration::from_secs(10));
        run
    }

    fn resume(place: &TestHome) -> String {
        tokio_runtime().block_on(async {
            let wire = Arc::new(MemoryTransport::new(Script::by(answer)));
            let runtime = RuntimeBuilder::new(config_of(place)).transport(wire.clone()).open().await.unwrap();
            let session = runtime.session("a").await.unwrap();
            let mut watcher = session.watch();
            runtime.start().await.unwrap();
            let state = session.state().await.unwrap();
            if state.turn.is_some() || state.turn_count == 0 {
                let ended =
                    tokio::time::timeout(Duration::from_secs(60), collect_until(&mut watcher, ended_turn))
                        .await;
                if ended.is_err() {
                    return format!("stuck after {} requests", wire.requests().len());
                }
            }
            runtime.shutdown().await.unwrap();
            let journal = place.journal().await;
            let records = records_of(&*journal, session.id().unwrap()).await;
            journal.close().await;
            let facts = wire::facts(&records);
            let turns = facts.iter().filter(|fact| matches!(fact, SessionRecord::TurnStarted(_))).count();
            let ends = facts.iter().filter(|fact| matches!(fact, SessionRecord::TurnEnded(_))).count();
            let tools = facts.iter().filter(|fact| matches!(fact, SessionRecord::ToolFinished(_))).count();
            let Some(SessionRecord::TurnEnded(ended)) = facts.last() else { return "not ended".to_owned() };
            format!(
                "{turns} {ends} {tools} {:?} {} {:?} {:?}",
                ended.outcome,
                ended.text,
                ended.error,
                broken_rules(&records)
            )
        })
    }

    #[test]
    fn killed_anywhere_in_retries_fallback_going_on_and_nudges() {
        killed_anywhere(run, resume);
    }
}

/// T12, M10, M19
mod orders {
    use super::*;
    use longhaul_agent::Session;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn config_of(place: &TestHome) -> Config {
        let mut config = wire::config(place, CHAT);
        config.settings.retry.max_retries = 0;
        config
    }

    /// Turn 1 fails at once, its retry (turn 2) breaks off, going on (turn 3) works.
    fn script(phase: Arc<AtomicUsize>) -> Script {
        Script::by(move |seen: &ReceivedRequest| {
            let body = seen.json();
            let last = body["messages"].as_array().unwrap().last().unwrap().clone();
            if last["content"].as_str().unwrap_or_default().contains("was interrupted here") {
                return text("and the rest.");
            }
            match phase.load(Ordering::SeqCst) {
                0 => Reply::error(401, "{}"),
                _ => {
                    let whole = ScriptedAnswer::text("The first half of it").bytes(CHAT);
                    let at = whole.windows(4).position(|w| w == b"half").unwrap() + 120;
                    Reply::stream(whole).cut_at(at)
                }
            }
        })
    }

    async fn drive(session: &Session, phase: &AtomicUsize) -> Result<(), String> {
        for _ in 0..8 {
            while session.is_unfinished().await.map_err(|e| e.to_string())? {
                // What is open is of a turn that was ordered.
                let state = session.state().await.map_err(|e| e.to_string())?;
                if state.turn_count >= 1
                    && (state.turn_request.is_some()
                        || state.turn.as_ref().is_some_and(|t| t.number > 1)
                        || state.turn.is_none())
                {
                    phase.store(1, Ordering::SeqCst);
                }
                session.resume().await.map_err(|e| e.to_string())?;
            }
            let state = session.state().await.map_err(|e| e.to_string())?;
            if state.turn_count == 0 {
                let input = Input::new(InputId::generate(), "go", JoinMode::Join);
                session.put(input, Some("once")).await.map_err(|e| e.to_string())?;
                continue;
            }
            if state.last_outcome == Some(Outcome::Completed) {
                return Ok(());
            }
            phase.store(1, Ordering::SeqCst);
            if state.interrupted_answer.is_some() {
                session.go_on().await.map_err(|e| e.to_string())?;
            } else {
                session.retry().await.map_err(|e| e.to_string())?;
            }
        }
        Err("no end".to_owned())
    }

    fn run(place: &TestHome, crash: Option<Crash>) -> Run {
        let tokio = tokio_runtime();
        let run = tokio.block_on(async {
            let journal = FaultyJournal::new(place.journal().await, crash);
            let phase = Arc::new(AtomicUsize::new(0));
            let wire = Arc::new(MemoryTransport::new(script(phase.clone())));
            let runtime = RuntimeBuilder::new(config_of(place))
                .transport(wire)
                .journal(journal.clone())
                .open()
                .await
                .unwrap();
            let session = runtime.session("a").await.unwrap();
            tokio::select! {
                () = journal.crashed() => {}
                done = drive(&session, &phase) => if crash.is_none() { done.unwrap() },
            }
            journal.release_leases().await;
            (journal.appends(), journal.has_crashed())
        });
        tokio.shutdown_timeout(Duration::from_secs(10));
        run
    }

    fn resume(place: &TestHome) -> String {
        tokio_runtime().block_on(async {
            let phase = Arc::new(AtomicUsize::new(0));
            let wire = Arc::new(MemoryTransport::new(script(phase.clone())));
            let runtime = RuntimeBuilder::new(config_of(place)).transport(wire).open().await.unwrap();
            let session = runtime.session("a").await.unwrap();
            let done = tokio::time::timeout(Duration::from_secs(60), drive(&session, &phase)).await;
            runtime.shutdown().await.unwrap();
            let journal = place.journal().await;
            let records = records_of(&*journal, session.id().unwrap()).await;
            journal.close().await;
            let facts = wire::facts(&records);
            let ends: Vec<String> = facts
                .iter()
                .filter_map(|fact| match fact {
                    SessionRecord::TurnEnded(ended) => Some(format!("{:?} {}", ended.outcome, ended.text)),
                    _ => None,
                })
                .collect();
            format!("{done:?} {ends:?} {:?}", broken_rules(&records))
        })
    }

    #[test]
    fn killed_anywhere_around_retry_and_continue() {
        killed_anywhere(run, resume);
    }
}
