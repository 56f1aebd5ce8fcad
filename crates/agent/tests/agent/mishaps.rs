//! What goes wrong with models in ways that nobody thinks of first.
use std::time::{Duration, Instant};

use longhaul_agent::RetryMode;
use longhaul_model::{Protocol, StopKind};
use longhaul_protocol::{EventKind, Outcome, SessionRecord};
use longhaul_testkit::wire::{End, Reply, Script, ScriptedAnswer};
use longhaul_testkit::{TestHome, collect_until, ended_turn};
use serde_json::json;

use crate::{at_best, sound_records, wire};

const CHAT: Protocol = Protocol::OpenaiChat;

fn text(text: &str) -> Reply {
    Reply::stream(ScriptedAnswer::text(text).bytes(CHAT))
}

/// M18, M1: that a model can't call tools may be said within a stream too.
#[tokio::test(flavor = "multi_thread")]
async fn no_tools_said_in_a_stream_does_not_loop() {
    let place = TestHome::in_memory();
    let script = Script::by(|seen| {
        let has_tools = seen.json().get("tools").is_some();
        if has_tools {
            Reply::stream("data: {\"error\":{\"message\":\"m does not support tools\",\"code\":400}}\n\n")
        } else {
            text("Fine.")
        }
    });
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), session.send("hello")).await;
    let requests = wire.requests().len();
    let cancelled = session.cancel().await;
    drop(cancelled);
    runtime.shutdown().await.unwrap();
    assert!(ended.is_ok(), "after a minute the turn had not ended, and {requests} requests were made");
}

/// M9, M10: what there was of an answer is there for /continue, whatever the later tries gave.
#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_broken_answer_outlives_tries_without_any() {
    let place = TestHome::in_memory();
    let whole = ScriptedAnswer::text("A long answer that somebody has read half of already.").bytes(CHAT);
    let mut first = Some(Reply::stream(whole.clone()).cut_at(whole.len() / 2));
    let script = Script::by(move |_| first.take().unwrap_or_else(|| Reply::error(503, "{}")));
    let (runtime, _wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let ended = session.send("hello").await.unwrap();
    let events = collect_until(&mut watcher, ended_turn).await;
    let shown: String = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TextDelta { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let state = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!(ended.outcome, Outcome::Failed);
    assert!(!shown.is_empty(), "some of it was shown");
    assert_eq!(state.interrupted_answer.as_deref(), Some(shown.as_str()), "{shown:?} was shown");
}

/// M19, M16: a turn that is run again asks something.
#[tokio::test(flavor = "multi_thread")]
async fn retry_after_a_limit_does_not_end_with_what_the_model_said() {
    for protocol in wire::PROTOCOLS {
        let place = TestHome::in_memory();
        let cut =
            |text: &str| Reply::stream(ScriptedAnswer::text(text).stop(StopKind::Length).bytes(protocol));
        let fine = |text: &str| Reply::stream(ScriptedAnswer::text(text).bytes(protocol));
        let replies = vec![cut("One, "), cut("two, "), fine("three."), fine("four")];
        let (runtime, wire) = wire::open(wire::config(&place, protocol), Script::list(replies)).await;
        let session = runtime.session("a").await.unwrap();
        let ended = session.send("count").await.unwrap();
        assert_eq!(ended.outcome, Outcome::Limit);
        session.retry().await.unwrap().unwrap();
        session.send("more").await.unwrap();
        runtime.shutdown().await.unwrap();
        let requests = wire.requests();
        let key = match protocol {
            Protocol::Gemini => "contents",
            Protocol::OpenaiResponses => "input",
            _ => "messages",
        };
        let list = |at: usize| requests[at].json()[key].as_array().unwrap().clone();
        let third = list(2);
        let role = third.last().unwrap()["role"].as_str().unwrap().to_owned();
        assert!(role != "assistant" && role != "model", "{protocol:?}: the last message is the model's own");
    }
}

/// T10: also while the server is asked for its window.
#[tokio::test(flavor = "multi_thread")]
async fn cancel_does_not_wait_for_what_a_server_says_about_itself() {
    // It would wait for what is left of the two seconds of asking.
    at_best(Duration::from_millis(1_500), "cancelling", || async {
        let place = TestHome::in_memory();
        let mut config = wire::config(&place, CHAT);
        config.settings.model.context_window = None;
        config.settings.model.base_url = Some("http://127.0.0.1:9/v1".to_owned());
        let script = Script::by(|seen| match seen.protocol() {
            Some(_) => text("Fine."),
            None => Reply::json(&json!({})).after(Duration::from_secs(60)),
        });
        let (runtime, _wire) = wire::open(config, script).await;
        let session = runtime.session("a").await.unwrap();
        let sender = session.clone();
        let sending = tokio::spawn(async move { sender.send("hello").await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        let began = Instant::now();
        let _ = session.cancel().await;
        let took = began.elapsed();
        let _ = sending.await;
        runtime.shutdown().await.unwrap();
        took
    })
    .await;
}

/// M15: those of the answer that says no are the ones that people want to see.
#[tokio::test(flavor = "multi_thread")]
async fn rate_limits_of_a_refusal_are_kept() {
    let place = TestHome::in_memory();
    let mut config = wire::config(&place, CHAT);
    config.settings.retry.max_retries = 0;
    let refusal = Reply::error(429, "{\"error\":{\"message\":\"slow down\",\"type\":\"rate_limit\"}}")
        .header("x-ratelimit-remaining-requests", "0")
        .header("x-ratelimit-reset-requests", "1s");
    let (runtime, _wire) = wire::open(config, Script::list(vec![refusal])).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let state = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    assert!(!state.rate_limits.is_empty());
}

/// M11: blanks are nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_blanks_is_an_empty_one() {
    let place = TestHome::in_memory();
    let script = Script::list(vec![text("\n\n"), text("Here.")]);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!((ended.text.as_str(), wire.requests().len()), ("Here.", 2));
}

/// M13: with somebody to stand in, nobody waits for hours.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_delay_goes_to_the_fallback() {
    let place = TestHome::in_memory();
    let mut config = wire::config(&place, CHAT);
    config.settings.model.fallback = vec!["custom/other".to_owned()];
    config.retry_mode = RetryMode::Interactive;
    let script = Script::by(|seen| match seen.json()["model"].as_str() {
        Some("other") => text("Fine."),
        _ => Reply::error(429, "{\"error\":{\"message\":\"later\"}}").header("retry-after", "7200"),
    });
    let (runtime, _wire) = wire::open(config, script).await;
    let session = runtime.session("a").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), session.send("hello")).await;
    let is_over = ended.is_ok();
    let _ = session.cancel().await;
    runtime.shutdown().await.unwrap();
    assert!(is_over);
}

/// M11: a higher limit that a server does not take must not lose the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_higher_limit_that_is_refused_is_said_and_loses_nothing() {
    let place = TestHome::in_memory();
    let script = Script::by(|seen| {
        if seen.json()["max_tokens"].as_u64() > Some(8_192) {
            return Reply::error(
                400,
                "{\"error\":{\"message\":\"max_tokens: 32768 > 8192, which is the most that this model gives\",\"type\":\"invalid_request_error\"}}",
            );
        }
        Reply::stream(ScriptedAnswer::text("One, two, ").stop(StopKind::Length).bytes(CHAT))
    });
    let mut config = wire::config(&place, CHAT);
    config.settings.model.context_window = Some(200_000);
    let (runtime, _) = wire::open(config, script).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("count").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert!(ended.text.contains("One, two, "), "{:?}", ended.text);
}

/// T9: the record says why.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_the_time_ended_does_not_say_that_the_disk_did() {
    let place = TestHome::in_memory();
    let mut config = wire::config(&place, CHAT);
    config.settings.limits.seconds_per_turn = 5;
    let bytes = ScriptedAnswer::text("One, two, three and four.").bytes(CHAT);
    let stalls = Reply::stream(bytes[..bytes.len() / 2].to_vec()).ending(End::Stall);
    let (runtime, _wire) = wire::open(config, Script::list(vec![stalls])).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("count").await.unwrap();
    runtime.shutdown().await.unwrap();
    let facts = wire::facts(&sound_records(&place, &session).await);
    let error = facts.iter().find_map(|fact| match fact {
        SessionRecord::AttemptEnded(ended) => ended.error.clone(),
        _ => None,
    });
    assert_eq!(ended.outcome, Outcome::Limit);
    assert!(!error.clone().unwrap().contains("saved"), "{error:?}");
}

/// M17: Mistral's thinking models send their content as a list.
#[tokio::test(flavor = "multi_thread")]
async fn content_that_is_a_list_is_read() {
    let place = TestHome::in_memory();
    let frames = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]}]},\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (runtime, wire) =
        wire::open(wire::config(&place, CHAT), Script::by(move |_| Reply::stream(frames))).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!(ended.outcome, Outcome::Completed, "{} requests: {:?}", wire.requests().len(), ended.error);
}

/// M3: what the model garbled is not an invalid request of ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_call_of_gemini_is_tried_again() {
    let place = TestHome::in_memory();
    let bad = "data: {\"candidates\":[{\"content\":{},\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":\"Malformed function call: x(\"}]}\n\n";
    let fine = Reply::stream(ScriptedAnswer::text("Fine.").bytes(Protocol::Gemini));
    let (runtime, wire) =
        wire::open(wire::config(&place, Protocol::Gemini), Script::list(vec![Reply::stream(bad), fine]))
            .await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!(
        ended.outcome,
        Outcome::Completed,
        "{} requests: {:?} {:?}",
        wire.requests().len(),
        ended.code,
        ended.error
    );
}

/// M3, M8: an error in one piece after blanks, which some servers send to keep a connection alive.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_blanks_is_told() {
    let place = TestHome::in_memory();
    let body = "{\"error\":{\"message\":\"credit balance is too low\",\"code\":402}}";
    let reply = move || Reply::frames(vec![b"\n\n".to_vec(), body.as_bytes().to_vec()]);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), Script::by(move |_| reply())).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!((ended.code.as_deref(), wire.requests().len()), (Some("quota"), 1), "{:?}", ended.error);
}

/// M11, T12: a restart in the middle of going on neither lowers the limit again nor goes on twice.
#[tokio::test(flavor = "multi_thread")]
async fn going_on_survives_a_restart() {
    let place = TestHome::new();
    let cut = |text: &str| Reply::stream(ScriptedAnswer::text(text).stop(StopKind::Length).bytes(CHAT));
    let stalls = Reply::stream("").ending(End::Stall);
    let (runtime, wire) =
        wire::open(wire::config(&place, CHAT), Script::list(vec![cut("One, "), stalls])).await;
    let session = runtime.session("a").await.unwrap();
    let sender = session.clone();
    let sending = tokio::spawn(async move { sender.send("count").await });
    while wire.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = wire.requests()[1].json()["max_tokens"].as_u64().unwrap();
    runtime.shutdown().await.unwrap();
    let _ = sending.await;

    let (runtime, wire) = wire::open(
        wire::config(&place, CHAT),
        Script::list(vec![cut("two, "), cut("three, "), text("four")]),
    )
    .await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.resume().await.unwrap().unwrap();
    runtime.shutdown().await.unwrap();
    let after: Vec<u64> =
        wire.requests().iter().map(|seen| seen.json()["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!((after, ended.outcome), (vec![before], Outcome::Limit));
}

/// S2: no empty session is stored.
#[tokio::test(flavor = "multi_thread")]
async fn choosing_a_model_stores_no_session() {
    let place = TestHome::in_memory();
    let (runtime, _wire) = wire::open(wire::config(&place, CHAT), Script::list(vec![])).await;
    let _session = runtime.session("only looked at").await.unwrap();
    runtime.use_model("custom/other").unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let stored = runtime.journal().session("only looked at").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert!(stored.is_none(), "{stored:?}");
}

/// J8: a password in an address is a secret.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_in_the_address_is_not_told() {
    let place = TestHome::new();
    let mut config = wire::config(&place, CHAT);
    config.settings.model.base_url = Some("https://me:hunter2hunter2@model.test/v1".to_owned());
    let home = config.home.clone();
    let (runtime, _wire) = wire::open(config, Script::by(|_| Reply::error(401, "{}"))).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();
    let hosts = std::fs::read_to_string(home.join("cache/hosts")).unwrap_or_default();
    assert!(
        !ended.error.clone().unwrap().contains("hunter2") && !hosts.contains("hunter2"),
        "{:?} {hosts:?}",
        ended.error
    );
}

/// M11: a call that never fits is not asked for two hundred times.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_cut_again_and_again_come_to_an_end() {
    let place = TestHome::in_memory();
    let mut asked = 0;
    let script = Script::by(move |_| {
        asked += 1;
        Reply::stream(format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c{asked}\",\"function\":{{\"name\":\"write_file\",\"arguments\":\"{{\\\"path\\\":\\\"a\\\",\\\"content\\\":\\\"{asked}\"}}}}]}},\"finish_reason\":\"length\"}}]}}\n\ndata: [DONE]\n\n"
        ))
    });
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("write").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert!(
        wire.requests().len() < 10,
        "{} requests: {:?} {:?}",
        wire.requests().len(),
        ended.outcome,
        ended.error
    );
}

/// T6: a call that was cut before its arguments came is not run without them.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_cut_is_not_run() {
    let place = TestHome::in_memory();
    let cut = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"list_files\",\"arguments\":\"\"}}]},\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
    let (runtime, _wire) =
        wire::open(wire::config(&place, CHAT), Script::list(vec![Reply::stream(cut), text("Done.")])).await;
    let session = runtime.session("a").await.unwrap();
    session.send("look").await.unwrap();
    runtime.shutdown().await.unwrap();
    let facts = wire::facts(&sound_records(&place, &session).await);
    let ran = facts.iter().any(|fact| matches!(fact, SessionRecord::ToolStarted(_)));
    assert!(!ran, "it ran");
}

/// T3, M19: a retry that comes in the same moment as a cancelled input.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_beside_a_cancelled_input_is_not_lost() {
    use longhaul_journal::put;
    use longhaul_protocol::{InboxRecord, Input, InputId, JoinMode, Order, OrderId, OrderKind};
    let place = TestHome::new();
    let (runtime, _wire) = wire::open(
        wire::config(&place, CHAT),
        Script::list(vec![Reply::error(401, "{}"), text("Fine."), text("Fine."), text("Fine.")]),
    )
    .await;
    let session = runtime.session("a").await.unwrap();
    session.send("do it").await.unwrap();
    let id = session.id().unwrap();
    runtime.shutdown().await.unwrap();
    let journal = place.journal().await;
    let input = Input::new(InputId::generate(), "no, wait", JoinMode::Join);
    put(&*journal, id, InboxRecord::Input(input).encode()).await.unwrap();
    for kind in [OrderKind::Cancel, OrderKind::Retry] {
        put(&*journal, id, InboxRecord::Order(Order { id: OrderId::generate(), kind }).encode())
            .await
            .unwrap();
    }
    use longhaul_journal::Journal;
    journal.close().await;
    drop(journal);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), Script::by(|_| text("Fine."))).await;
    let session = runtime.session("a").await.unwrap();
    while session.is_unfinished().await.unwrap() {
        let _ = session.resume().await;
    }
    let state = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!((state.last_outcome, wire.requests().len()), (Some(Outcome::Completed), 1));
}

/// M5: one-shot ends with its own code whatever the status is that comes with the delay.
#[tokio::test(flavor = "multi_thread")]
async fn an_overload_with_a_long_delay_is_told_apart() {
    let place = TestHome::in_memory();
    let reply = Reply::error(503, "{}").header("retry-after", "3600");
    let (runtime, _wire) = wire::open(wire::config(&place, CHAT), Script::list(vec![reply])).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert!(
        matches!(ended.code.as_deref(), Some("throttled" | "quota")),
        "{:?}: exit code 1, not 3",
        ended.code
    );
}

/// C1: an occupancy counts the system prompt and the tools.
#[tokio::test(flavor = "multi_thread")]
async fn occupancy_counts_tools() {
    let place = TestHome::in_memory();
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), Script::list(vec![text("Fine.")])).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let state = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    let (tokens, _) = state.context_tokens("custom/m");
    let sent = wire.requests()[0].body.len() as u64;
    assert!(tokens > sent / 8, "{tokens} tokens for a request of {sent} bytes");
}

/// M10: a refusal is no half of an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_not_offered_to_go_on_from() {
    let place = TestHome::in_memory();
    let refused =
        Reply::stream(ScriptedAnswer::text("I would rather not.").stop(StopKind::Refused).bytes(CHAT));
    let (runtime, _wire) = wire::open(wire::config(&place, CHAT), Script::list(vec![refused])).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let state = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!(state.interrupted_answer, None);
}

/// M11: reasoning only, where some blanks came with it.
#[tokio::test(flavor = "multi_thread")]
async fn thoughts_and_blanks_are_only_thoughts() {
    let place = TestHome::in_memory();
    let frames = "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\n\\n\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (runtime, wire) =
        wire::open(wire::config(&place, CHAT), Script::list(vec![Reply::stream(frames), text("Here.")]))
            .await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("hello").await.unwrap();
    runtime.shutdown().await.unwrap();
    assert_eq!((ended.text.as_str(), wire.requests().len()), ("Here.", 2));
}

/// C1: what one model's provider counted is not what another's would.
#[tokio::test(flavor = "multi_thread")]
async fn the_count_of_one_model_is_not_shown_as_that_of_another() {
    let place = TestHome::in_memory();
    let script = Script::list(vec![Reply::stream(ScriptedAnswer::text("Fine.").usage(1_000, 2).bytes(CHAT))]);
    let (runtime, _wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    let state = session.state().await.unwrap();
    runtime.shutdown().await.unwrap();
    assert!(state.context_tokens("custom/m").1.is_some());
    assert!(
        state.context_tokens("anthropic/other").1.is_none(),
        "the provider of another model counted nothing"
    );
}

/// T10
#[tokio::test(flavor = "multi_thread")]
async fn cancel_while_an_error_body_hangs() {
    let place = TestHome::in_memory();
    let hangs = Reply { length: None, ..Reply::error(500, "{") }.ending(End::Stall);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), Script::list(vec![hangs])).await;
    let session = runtime.session("a").await.unwrap();
    let sender = session.clone();
    let sending = tokio::spawn(async move { sender.send("hello").await });
    while wire.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let began = Instant::now();
    session.cancel().await.unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "it does not wait for the ten seconds of reading: {:?}",
        began.elapsed()
    );
    let _ = sending.await;
    runtime.shutdown().await.unwrap();
}
