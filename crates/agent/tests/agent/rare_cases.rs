//! Cases that come up rarely: a day that is used up, windows that change, orders beside cancelled inputs.
use std::time::Duration;

use longhaul_agent::{Config, RetryMode};
use longhaul_journal::put;
use longhaul_model::transport::TransportError;
use longhaul_model::{Protocol, StopKind};
use longhaul_protocol::{InboxRecord, Item, Limit, Order, OrderId, OrderKind, Outcome, SessionId};
use longhaul_testkit::TestHome;
use longhaul_testkit::wire::{Latch, Reply, ReplyPart, Script, ScriptedAnswer};
use serde_json::json;

use crate::{said, wire};

const CHAT: Protocol = Protocol::OpenaiChat;

fn text(text: &str) -> Reply {
    Reply::stream(ScriptedAnswer::text(text).bytes(CHAT))
}

fn priced(place: &TestHome, limit: f64) -> Config {
    let mut config = wire::config(place, Protocol::Anthropic);
    config.settings.model.name = "anthropic/claude-sonnet-4-5".to_owned();
    config.settings.model.api_key_env = Some("CARGO_MANIFEST_DIR".to_owned());
    config.settings.limits.cost_per_day = limit;
    config
}

/// T9, J4: one damaged session is no reason for all others to stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_session_does_not_stop_the_others_of_its_day() {
    let place = TestHome::new();
    let said = ScriptedAnswer::text("Fine.").usage(600, 100);
    let (runtime, _) = wire::open(priced(&place, 1.0), Script::saying(said.clone())).await;
    runtime.session("damaged").await.unwrap().send("MARKERMARKERMARKER").await.unwrap();
    runtime.shutdown().await.unwrap();
    drop(runtime);
    let file = place.home().join("journal.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let needle = b"MARKERMARKERMARKER";
    let places: Vec<usize> =
        bytes.windows(needle.len()).enumerate().filter(|(_, w)| w == needle).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = b'X';
    }
    std::fs::write(&file, bytes).unwrap();

    let (runtime, _) = wire::open(priced(&place, 1.0), Script::saying(said)).await;
    let session = runtime.session("other").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), session.send("hello")).await;
    runtime.shutdown().await.unwrap();
    let ended = ended.unwrap();
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(ended.unwrap().outcome, Outcome::Completed);
}

/// T9: what other sessions spend while a turn runs counts.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_spend_during_a_turn_counts() {
    let place = TestHome::new();
    let latch = Latch::new();
    let gate = latch.clone();
    let script = Script::by(move |seen| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        let cheap = |said: ScriptedAnswer| Reply::stream(said.usage(100, 10).bytes(Protocol::Anthropic));
        if body.contains("from the other") {
            return Reply::stream(
                ScriptedAnswer::text("Fine.").usage(85_000, 2_000).bytes(Protocol::Anthropic),
            );
        }
        if body.contains("tool_result") {
            return cheap(ScriptedAnswer::text("Done."));
        }
        let call = ScriptedAnswer::nothing().call("list_files", json!({"path": "."})).usage(100, 10);
        Reply::stream("")
            .then(ReplyPart::Gate(gate.clone()))
            .then(ReplyPart::Bytes(call.bytes(Protocol::Anthropic)))
    });
    let mut config = priced(&place, 0.3);
    // Both calls fit into the day together.
    config.settings.model.max_output_tokens = Some(4_000);
    let (runtime, _) = wire::open(config, script).await;
    let long = runtime.session("long").await.unwrap();
    let sender = long.clone();
    let sending = tokio::spawn(async move { sender.send("go").await });
    latch.reached().await;

    runtime.session("b").await.unwrap().send("from the other").await.unwrap();
    latch.open();
    let ended = sending.await.unwrap().unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!((ended.outcome, ended.limit), (Outcome::Limit, Some(Limit::Cost)), "{ended:?}");
}

/// A server that reads no more than 2,000 tokens of a long prompt, and says that the model could take far more.
fn cutting() -> Script {
    Script::by(|seen| match seen.protocol() {
        None => Reply::json(&json!({"data": [{"id": "m", "context_length": 131_072}]})),
        Some(_) => {
            let length = seen.body.len() as u64 / 4;
            let counted = if length > 6_000 { 2_000 } else { length };
            Reply::stream(ScriptedAnswer::text("Fine.").usage(counted, 2).bytes(CHAT))
        }
    })
}

/// A session whose last prompt was cut.
async fn cut_session(config: Config) -> SessionId {
    let (runtime, _) = wire::open(config, cutting()).await;
    let session = runtime.session("a").await.unwrap();
    for _ in 0..4 {
        session.send("hello").await.unwrap();
    }
    session.send("word ".repeat(8_000)).await.unwrap();
    runtime.shutdown().await.unwrap();
    session.id().unwrap()
}

/// M14: the advice that is given helps, whether more was set before or less, or more was assumed.
#[tokio::test(flavor = "multi_thread")]
async fn another_window_that_is_set_ends_the_cutting() {
    for (before, now) in [(Some(100_000), 200_000), (None, 32_768)] {
        let place = TestHome::in_memory();
        let mut config = wire::config(&place, CHAT);
        config.settings.model.context_window = before;
        cut_session(config.clone()).await;
        config.settings.model.context_window = Some(now);
        let reads_all = Script::by(|seen| {
            Reply::stream(ScriptedAnswer::text("Fine.").usage(seen.body.len() as u64 / 4, 2).bytes(CHAT))
        });
        let (runtime, wire) = wire::open(config, reads_all).await;

        let ended = runtime.session("a").await.unwrap().send("and now?").await.unwrap();

        assert_eq!((ended.outcome, wire.requests().len()), (Outcome::Completed, 1), "{:?}", ended.error);
        runtime.shutdown().await.unwrap();
    }
}

/// M14: a server that is not there yet, or still loads its model, as llama.cpp says with 503, is asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_could_not_be_asked_for_is_asked_for_again() {
    let loading = || Reply::error(503, r#"{"error":{"code":503,"message":"Loading model"}}"#);
    for not_yet in [Reply::trouble(TransportError::Refused), loading()] {
        let place = TestHome::in_memory();
        let mut config = wire::config(&place, CHAT);
        config.settings.model.context_window = None;
        let mut first = Some(not_yet);
        let script = Script::by(move |seen| match seen.protocol() {
            Some(_) => text("Fine."),
            None => first
                .take()
                .unwrap_or_else(|| Reply::json(&json!({"data": [{"id": "m", "max_model_len": 32_000}]}))),
        });
        let (runtime, _) = wire::open(config, script).await;
        let session = runtime.session("a").await.unwrap();

        session.send("hello").await.unwrap();
        session.send("hello").await.unwrap();

        let (_, facts) = runtime.model().await;
        assert_eq!(facts.window.map(|window| window.tokens), Some(32_000));
        runtime.shutdown().await.unwrap();
    }
}

/// M4, M13: a terminal waits without end, also if the one that could stand in can't be reached either.
#[tokio::test(flavor = "multi_thread")]
async fn offline_with_a_fallback_does_not_fail_a_turn_in_a_terminal() {
    let place = TestHome::in_memory();
    let mut config = wire::config(&place, CHAT);
    config.settings.model.fallback = vec!["ollama/other".to_owned()];
    config.settings.retry.offline_wait_s = 1;
    config.retry_mode = RetryMode::Interactive;
    let mut first = Some(text("Fine."));
    let script = Script::by(move |seen| {
        if seen.protocol().is_some()
            && let Some(first) = first.take()
        {
            return first;
        }
        Reply::trouble(if String::from_utf8_lossy(&seen.body).contains("\"model\":\"m\"") {
            TransportError::NoSuchHost("model.test".to_owned())
        } else {
            TransportError::Refused
        })
    });
    let (runtime, _wire) = wire::open(config, script).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(4), session.send("again")).await;
    let _ = session.cancel().await;
    runtime.shutdown().await.unwrap();
    assert!(ended.is_err(), "there is no network, and the turn ended: {ended:?}");
}

/// M10, T11: an input that was cancelled before its turn takes nothing from an answer that was interrupted before.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_input_does_not_take_what_continue_goes_on_from() {
    let place = TestHome::new();
    let whole = ScriptedAnswer::text("A long answer that somebody has read half of already.").bytes(CHAT);
    let mut first = Some(Reply::stream(whole.clone()).cut_at(whole.len() / 2));
    let mut config = wire::config(&place, CHAT);
    config.settings.retry.max_retries = 0;
    let script = Script::by(move |_| first.take().unwrap_or_else(|| text("and the rest.")));
    let (runtime, _wire) = wire::open(config.clone(), script).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let shown = session.state().await.unwrap().interrupted_answer.unwrap();
    let id = session.id().unwrap();
    runtime.shutdown().await.unwrap();

    let (runtime, wire) = wire::open(config, Script::by(|_| text("and the rest."))).await;
    let journal = runtime.journal();
    put(&*journal, id, InboxRecord::Input(said("never mind")).encode()).await.unwrap();
    for kind in [OrderKind::Cancel, OrderKind::Continue] {
        let order = Order { id: OrderId::generate(), kind };
        put(&*journal, id, InboxRecord::Order(order).encode()).await.unwrap();
    }
    let session = runtime.session("a").await.unwrap();
    // The cancelled input has a turn of its own, which ends first.
    while session.resume().await.unwrap().is_some() {}
    let state = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    let has = state.items.iter().any(|item| matches!(&**item, Item::Text { text, .. } if *text == shown));
    assert!(has, "{} requests; {:#?}", wire.requests().len(), state.items);
}

/// M11, T3: what joins between an answer that was cut and its rest.
#[tokio::test(flavor = "multi_thread")]
async fn what_joins_a_cut_answer() {
    let place = TestHome::new();
    let latch = Latch::new();
    let cut = ScriptedAnswer::text("One, two").stop(StopKind::Length).bytes(CHAT);
    let replies = vec![
        Reply::stream("").then(ReplyPart::Gate(latch.clone())).then(ReplyPart::Bytes(cut)),
        text("I stopped counting."),
    ];
    let (runtime, _) = wire::open(wire::config(&place, CHAT), Script::list(replies)).await;
    let session = runtime.session("a").await.unwrap();
    let sender = session.clone();
    let sending = tokio::spawn(async move { sender.send("count").await });
    latch.reached().await;

    session.put(said("stop counting"), None).await.unwrap();
    latch.open();
    let ended = sending.await.unwrap().unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!(ended.text, "One, two\n\nI stopped counting.");
}

/// M13: an answer that some other model would give is not lost to one that this one can't end.
#[tokio::test(flavor = "multi_thread")]
async fn more_calls_than_any_answer_may_have_run_none() {
    let place = TestHome::new();
    let mut many = ScriptedAnswer::nothing();
    for _ in 0..257 {
        many = many.call("list_files", json!({"path": "."}));
    }
    let replies = vec![Reply::stream(many.bytes(CHAT)), text("Fine.")];
    let (runtime, _) = wire::open(wire::config(&place, CHAT), Script::list(replies)).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    let state = session.state().await.unwrap();
    let results = state.items.iter().filter(|item| matches!(&***item, Item::ToolResult { .. })).count();
    runtime.shutdown().await.unwrap();
    assert_eq!(results, 0);
}

/// T2: a limit for the day costs each turn little, however many sessions there are.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_for_the_day_does_not_make_sessions_wait_for_each_other() {
    let mut took = vec![];
    for limit in [0.0, 1_000_000.0] {
        let place = TestHome::in_memory();
        let said = ScriptedAnswer::text("Fine.").usage(600, 100);
        let (runtime, _) = wire::open(priced(&place, limit), Script::saying(said)).await;
        let mut round = vec![];
        for _ in 0..2 {
            let began = std::time::Instant::now();
            let turns: Vec<_> = (0..400)
                .map(|number| {
                    let runtime = runtime.clone();
                    tokio::spawn(async move {
                        let session = runtime.session(&format!("s{number}")).await.unwrap();
                        session.send("hello").await.unwrap()
                    })
                })
                .collect();
            for turn in turns {
                turn.await.unwrap();
            }
            round.push(began.elapsed());
        }
        runtime.shutdown().await.unwrap();
        took.push(round);
    }
    assert!(took[1][1] < took[0][1] * 5, "{took:?}");
}

/// T10: what was cancelled ends as cancelled, whatever else is wrong with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_input_of_a_session_that_is_cut_ends_as_cancelled() {
    let place = TestHome::new();
    let id = cut_session(wire::config(&place, CHAT)).await;
    let (runtime, _) = wire::open(wire::config(&place, CHAT), cutting()).await;
    let journal = runtime.journal();
    put(&*journal, id, InboxRecord::Input(said("never mind")).encode()).await.unwrap();
    let order = Order { id: OrderId::generate(), kind: OrderKind::Cancel };
    put(&*journal, id, InboxRecord::Order(order).encode()).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    let ended = session.resume().await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!(ended.map(|ended| ended.outcome), Some(Outcome::Cancelled));
}
