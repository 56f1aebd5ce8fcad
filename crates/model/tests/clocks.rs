//! M7: how long each part of a call may take. The clock is paused, and there is no network.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::sync::Arc;
use std::time::Duration;

use longhaul_model::{AnswerPart, FailureClass, Model, ModelFailure, ModelSpec, Models, Request};
use longhaul_testkit::wire::{End, MemoryTransport, Reply, ReplyPart, Script, ScriptedAnswer};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

fn model(base_url: &str, reply: Reply) -> Arc<dyn Model> {
    let home = tempfile::tempdir().unwrap();
    let wire = Arc::new(MemoryTransport::new(Script::list(vec![reply])));
    let wanted = ModelSpec {
        name: "m".to_owned(),
        base_url: Some(base_url.to_owned()),
        context_window: Some(1_000),
        ..ModelSpec::default()
    };
    Models::at(home.path()).unwrap().through(wire).open(&wanted).unwrap()
}

/// What a call comes to, and how long it took.
async fn call(model: &dyn Model) -> (Result<Vec<AnswerPart>, ModelFailure>, Duration) {
    let began = Instant::now();
    let whole = async {
        let mut answer = model
            .ask(Request::default(), &longhaul_model::CallPermit::unreserved(longhaul_protocol::Cause::Turn))
            .await?;
        let mut parts = Vec::new();
        loop {
            let part = answer.next().await?;
            let is_end = matches!(part, AnswerPart::End(_));
            parts.push(part);
            if is_end {
                return Ok(parts);
            }
        }
    };
    (whole.await, began.elapsed())
}

const HOSTED: &str = "https://model.test/v1";
const LOCAL: &str = "http://127.0.0.1:9/v1";

fn whole() -> Vec<u8> {
    ScriptedAnswer::text("Fine.").bytes(longhaul_model::Protocol::OpenaiChat)
}

/// M7
#[tokio::test(start_paused = true)]
async fn connecting_may_take_ten_seconds() {
    for url in [HOSTED, LOCAL] {
        let (result, took) = call(&*model(url, Reply::stream(whole()).connecting(11 * SECOND))).await;

        let failure = result.unwrap_err();
        assert_eq!((failure.class, took), (FailureClass::Timeout, 10 * SECOND));
        assert!(failure.message.contains("model.connect_timeout_s"), "{failure}");
    }
}

/// M7
#[tokio::test(start_paused = true)]
async fn the_first_byte_of_the_body_has_a_clock_of_its_own() {
    for (url, seconds) in [(HOSTED, 300), (LOCAL, 900)] {
        let late_head = Reply::stream(whole()).after((seconds + 1) * SECOND);
        let no_body = Reply::stream("").ending(End::Stall);
        let in_time =
            Reply::stream("").then(ReplyPart::Pause((seconds - 1) * SECOND)).then(ReplyPart::Bytes(whole()));

        for reply in [late_head, no_body] {
            let (result, took) = call(&*model(url, reply)).await;
            let failure = result.unwrap_err();
            assert_eq!((failure.class, took), (FailureClass::Timeout, seconds * SECOND));
            assert!(failure.message.contains("model.first_byte_timeout_s"), "{failure}");
        }
        let (result, _) = call(&*model(url, in_time)).await;
        assert!(result.is_ok(), "{result:?}");
    }
}

/// M7
#[tokio::test(start_paused = true)]
async fn silence_has_a_clock_and_the_whole_has_none() {
    for (url, seconds) in [(HOSTED, 120), (LOCAL, 600)] {
        let slow = Reply::stream(whole()).in_pieces(7).with_pauses((seconds - 1) * SECOND);
        let silent = Reply::stream("data: {\"choices\":[]}\n\n").ending(End::Stall);

        let (result, took) = call(&*model(url, slow)).await;
        let (silence, until) = call(&*model(url, silent)).await;

        assert!(result.is_ok() && took > 10 * seconds * SECOND, "{result:?} after {took:?}");
        let failure = silence.unwrap_err();
        assert_eq!((failure.class, until), (FailureClass::Timeout, seconds * SECOND));
        assert!(failure.message.contains("model.silence_timeout_s"), "{failure}");
    }
}

/// M7: any byte counts, comments too.
#[tokio::test(start_paused = true)]
async fn a_comment_is_a_sign_of_life() {
    let mut reply = Reply::stream(": waiting\n\n");
    for _ in 0..20 {
        reply = reply.then(ReplyPart::Pause(100 * SECOND)).then(ReplyPart::Bytes(b": waiting\n\n".to_vec()));
    }

    let (result, took) = call(&*model(HOSTED, reply.then(ReplyPart::Bytes(whole())))).await;

    assert!(result.is_ok() && took >= 2_000 * SECOND, "{result:?}");
}

/// M8
#[tokio::test(start_paused = true)]
async fn a_stream_without_a_byte_or_without_its_end_mark_is_broken() {
    let without_mark = ScriptedAnswer::text("Fine.").frames(longhaul_model::Protocol::OpenaiChat);
    let frames = without_mark[..without_mark.len() - 1].to_vec();

    for reply in [Reply::stream(""), Reply::frames(frames), Reply::stream("data: {not json}\n\n")] {
        let (result, _) = call(&*model(HOSTED, reply)).await;
        assert_eq!(result.unwrap_err().class, FailureClass::Broken);
    }
}

/// M15
#[tokio::test(start_paused = true)]
async fn rate_limit_headers_come_with_the_answer() {
    let reply = Reply::stream(whole()).header("x-ratelimit-remaining-requests", "7");

    let (result, _) = call(&*model(HOSTED, reply)).await;

    let parts = result.unwrap();
    let limits =
        parts.iter().find_map(|part| if let AnswerPart::Limits(limits) = part { Some(limits) } else { None });
    assert_eq!(limits.unwrap()["x-ratelimit-remaining-requests"], "7");
}
