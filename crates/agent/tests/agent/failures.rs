//! Model calls that fail: what is tried again, what is waited for, what is said.

use std::time::{Duration, Instant};

use longhaul_agent::{RetryMode, Session};
use longhaul_model::Protocol;
use longhaul_model::transport::TransportError;
use longhaul_protocol::{EventKind, Outcome, SessionRecord};
use longhaul_testkit::wire::{End, Reply, Script, ScriptedAnswer};
use longhaul_testkit::{TestHome, collect_until, ended_turn};

use crate::{sound_records, wire};

const CHAT: Protocol = Protocol::OpenaiChat;

fn fine() -> Reply {
    Reply::stream(ScriptedAnswer::text("Fine.").usage(10, 2).bytes(CHAT))
}

fn error(status: u16, kind: &str) -> Reply {
    Reply::error(status, format!(r#"{{"error":{{"message":"so it is","type":"{kind}"}}}}"#))
}

/// The waits of these events: class, which retry, of how many.
fn waits(events: &[longhaul_protocol::Event]) -> Vec<(String, u32, u32)> {
    let wait = |event: &longhaul_protocol::Event| match &event.kind {
        EventKind::RetryWait { class, attempt, of, .. } => Some((class.clone(), *attempt, *of)),
        _ => None,
    };
    events.iter().filter_map(wait).collect()
}

/// M1, M6
#[tokio::test(flavor = "multi_thread")]
async fn every_retry_is_announced_and_the_fifth_request_may_still_succeed() {
    let place = TestHome::new();
    let replies = (0..4).map(|_| error(503, "overloaded")).chain([fine()]).collect();
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), Script::list(replies)).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let ended = session.send("hello").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Fine."));
    let expected: Vec<_> = (1..=4).map(|retry| ("overloaded".to_owned(), retry, 4)).collect();
    assert_eq!(waits(&events), expected);
    let requests = wire.requests();
    assert_eq!(requests.len(), 5);
    assert!(requests.iter().all(|request| request.body == requests[0].body), "the same bytes each time");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// M1, M3
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_for_good_says_what_it_was_and_how_often_it_was_tried() {
    let table = [
        (503, "overloaded", 5..=5, "overloaded", "gave up after 5 requests"),
        (500, "server_error", 3..=3, "server_error", "the same error came 3 times"),
        (401, "invalid_api_key", 1..=1, "bad_key", "so it is"),
        (404, "model_not_found", 1..=1, "not_found", "has no model \"m\""),
        (
            429,
            "insufficient_quota",
            1..=1,
            "quota",
            "choose another model: /model, --model or model.fallback",
        ),
        // Each one after the first leaves less room for the answer; how many there are depends on the size of the prompt.
        (400, "context_length_exceeded", 2..=3, "context_too_long", "larger context window"),
        (400, "invalid_request_error", 1..=1, "invalid_request", "so it is"),
    ];

    for (status, kind, requests, code, words) in table {
        let place = TestHome::in_memory();
        let script = Script::by(move |_| error(status, kind));
        let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("hello").await.unwrap();

        let told = ended.error.unwrap();
        assert_eq!((ended.outcome, ended.code.as_deref()), (Outcome::Failed, Some(code)), "{told}");
        let asked = wire.requests().into_iter().filter(|request| request.method == "POST");
        assert!(requests.contains(&asked.count()), "{status} {kind}");
        assert!(told.contains(words), "{told}");
        runtime.shutdown().await.unwrap();
    }
}

/// What answers instead of a model is named as such, with the first line of what came.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_model_server_is_named_as_such() {
    let page = "<!DOCTYPE html>\n<title>Sign in</title>";
    let table = [
        (Reply::stream(page).header("content-type", "text/html"), "not_a_model_server", "<!DOCTYPE html>"),
        (
            Reply::error(302, "").header("location", "https://login.test/"),
            "not_a_model_server",
            "it redirects to https://login.test/",
        ),
        (Reply::stream("{\"status\":\"ok\"}"), "not_a_model_server", "did not answer with a stream"),
        (
            Reply::trouble(TransportError::Certificate("expired".to_owned())),
            "certificate",
            "invalid certificate: expired",
        ),
        (
            Reply::trouble(TransportError::NoSuchHost("no such name".to_owned())),
            "unreachable",
            "the address is set by",
        ),
    ];

    for (reply, code, words) in table {
        let place = TestHome::in_memory();
        let (runtime, wire) = wire::open(wire::config(&place, CHAT), Script::list(vec![reply])).await;
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("hello").await.unwrap();

        let told = ended.error.unwrap();
        assert_eq!((ended.code.as_deref(), wire.requests().len()), (Some(code), 1), "{told}");
        assert!(told.contains(words) && told.contains("model.test"), "{told}");
        runtime.shutdown().await.unwrap();
    }
}

/// M5: nothing sleeps silently where nobody is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_delay_of_the_server_ends_a_one_shot_call_with_the_time() {
    let place = TestHome::new();
    let throttled = error(429, "rate_limit_error").header("retry-after", "300");
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), Script::list(vec![throttled])).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("hello").await.unwrap();

    assert_eq!((ended.code.as_deref(), wire.requests().len()), (Some("throttled"), 1));
    assert!(ended.error.as_ref().unwrap().contains("asks to wait 300 s"), "{ended:?}");
    runtime.shutdown().await.unwrap();
}

async fn waiting(
    session: &Session,
    watcher: &mut longhaul_agent::Watcher,
) -> tokio::task::JoinHandle<longhaul_protocol::TurnEnded> {
    let sending = tokio::spawn({
        let session = session.clone();
        async move { session.send("hello").await.unwrap() }
    });
    collect_until(watcher, |kind| matches!(kind, EventKind::RetryWait { .. })).await;
    sending
}

/// M5, M6, T3: retry now.
#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_is_there_can_end_a_long_wait() {
    let place = TestHome::new();
    let throttled = error(429, "rate_limit_error").header("retry-after-ms", "300000");
    let mut config = wire::config(&place, CHAT);
    config.retry_mode = RetryMode::Interactive;
    let (runtime, wire) = wire::open(config, Script::list(vec![throttled, fine()])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let sending = waiting(&session, &mut watcher).await;
    let began = Instant::now();

    let ended = session.retry().await.unwrap().unwrap();

    assert_eq!((ended.text.as_str(), wire.requests().len()), ("Fine.", 2));
    assert_eq!(sending.await.unwrap(), ended);
    assert!(began.elapsed() < Duration::from_secs(60), "it was not waited for");
    runtime.shutdown().await.unwrap();
}

/// M6, T10
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_at_once_when_the_turn_is_cancelled_or_the_runtime_ends() {
    let place = TestHome::new();
    let throttled = || error(429, "rate_limit_error").header("retry-after", "600");
    let mut config = wire::config(&place, CHAT);
    config.retry_mode = RetryMode::Interactive;
    let (runtime, _) = wire::open(config.clone(), Script::list(vec![throttled(), throttled()])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();
    let sending = waiting(&session, &mut watcher).await;

    let cancelled = session.cancel().await.unwrap().unwrap();
    drop(sending);
    let _unfinished = session.put(crate::said("again"), None).await.unwrap();
    collect_until(&mut watcher, |kind| matches!(kind, EventKind::RetryWait { .. })).await;
    let began = Instant::now();
    runtime.shutdown().await.unwrap();

    assert_eq!(cancelled.outcome, Outcome::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(30));
    // The turn that waited is open, and the next runtime asks again at once.
    let (runtime, wire) = wire::open(config, Script::list(vec![fine()])).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.resume().await.unwrap().unwrap();
    assert_eq!((ended.text.as_str(), wire.requests().len()), ("Fine.", 1));
    runtime.shutdown().await.unwrap();
}

/// M4
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_has_answered_before_is_waited_for_and_one_that_never_did_is_not() {
    let place = TestHome::new();
    let gone = || Reply::trouble(TransportError::NoSuchHost("no such name".to_owned()));
    let mut config = wire::config(&place, CHAT);
    config.retry_mode = RetryMode::Interactive;
    let (runtime, _) = wire::open(config.clone(), Script::list(vec![gone(), fine(), gone(), fine()])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let unknown = session.send("hello").await.unwrap();
    let known = session.send("hello").await.unwrap();
    collect_until(&mut watcher, ended_turn).await;
    collect_until(&mut watcher, ended_turn).await;
    let sending = tokio::spawn({
        let session = session.clone();
        async move { session.send("again").await.unwrap() }
    });
    let events = collect_until(&mut watcher, |kind| matches!(kind, EventKind::RetryWait { .. })).await;
    session.retry().await.unwrap();

    assert_eq!(unknown.code.as_deref(), Some("unreachable"));
    assert!(unknown.error.unwrap().contains("model.base_url"));
    assert_eq!(known.text, "Fine.");
    assert_eq!(waits(&events), [("offline".to_owned(), 1, 0)]);
    assert_eq!(sending.await.unwrap().text, "Fine.");
    runtime.shutdown().await.unwrap();
}

/// M8: an error event ends the attempt at once, whatever follows.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_the_middle_of_a_stream_is_an_error() {
    let place = TestHome::new();
    let mut frames = ScriptedAnswer::text("Half of it").frames(CHAT);
    frames.truncate(3);
    frames.push(b"data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}\n\n".to_vec());
    frames.extend(ScriptedAnswer::text("never read").frames(CHAT));
    let script = Script::list(vec![Reply::frames(frames).ending(End::Stall), fine()]);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let ended = session.send("hello").await.unwrap();

    let events = collect_until(&mut watcher, ended_turn).await;
    assert_eq!((ended.text.as_str(), wire.requests().len()), ("Fine.", 2));
    assert_eq!(waits(&events), [("overloaded".to_owned(), 1, 4)]);
    let discarded =
        events.iter().any(|event| matches!(event.kind, EventKind::AttemptDiscarded { kept_blocks: 0, .. }));
    assert!(discarded, "watchers are told what was kept");
    runtime.shutdown().await.unwrap();
}

/// M10
#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_an_answer_that_failed_is_kept_and_goes_on_only_when_somebody_says_so() {
    let place = TestHome::new();
    let cut = |text: &str| {
        Reply::stream(ScriptedAnswer::text(text).bytes(CHAT))
            .cut_at(ScriptedAnswer::text(text).bytes(CHAT).len() - 60)
    };
    let second = Reply::stream(ScriptedAnswer::text("two, three.").bytes(CHAT));
    let mut config = wire::config(&place, CHAT);
    config.settings.retry.max_retries = 0;
    let script = Script::list(vec![cut("One, and then"), second]);
    let (runtime, wire) = wire::open(config, script).await;
    let session = runtime.session("a").await.unwrap();

    let failed = session.send("count").await.unwrap();
    let kept = session.state().await.unwrap();
    let went_on = session.go_on().await.unwrap().unwrap();

    assert_eq!(failed.code.as_deref(), Some("broken_stream"));
    let interrupted = kept.interrupted_answer.clone().unwrap();
    assert!(
        "One, and then".starts_with(interrupted.trim_end()) && !interrupted.is_empty(),
        "{interrupted:?}"
    );
    assert_eq!(kept.items.len(), 1, "the model has not seen it");
    assert_eq!(went_on.text, "two, three.");
    let body = wire.requests()[1].json();
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(messages[2]["content"], interrupted.as_str());
    runtime.shutdown().await.unwrap();
}

/// M19: a turn that failed is run again without new input.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_failed_can_be_run_again_without_new_input() {
    let place = TestHome::new();
    let script = Script::list(vec![error(429, "insufficient_quota"), fine()]);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();

    let failed = session.send("hello").await.unwrap();
    let again = session.retry().await.unwrap().unwrap();
    let nothing = session.retry().await.unwrap();

    assert_eq!((failed.outcome, failed.turn), (Outcome::Failed, 1));
    assert_eq!((again.outcome, again.turn, again.text.as_str()), (Outcome::Completed, 2, "Fine."));
    assert_eq!(nothing, None, "a turn that completed is not run again");
    let requests = wire.requests();
    assert_eq!(requests[0].body, requests[1].body);
    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let inputs =
        wire::facts(&records).iter().filter(|fact| matches!(fact, SessionRecord::InputTaken(_))).count();
    assert_eq!(inputs, 1);
}

/// M13
#[tokio::test(flavor = "multi_thread")]
async fn another_model_stands_in_when_the_tries_are_spent_or_nothing_more_is_paid_for() {
    for (status, kind, requests) in [(503, "overloaded", 5), (429, "insufficient_quota", 1)] {
        let place = TestHome::in_memory();
        let mut config = wire::config(&place, CHAT);
        config.settings.model.fallback = vec!["custom/second".to_owned()];
        // The second one is asked for its window first.
        let script = Script::by(move |seen| match seen.method == "POST" && seen.json()["model"] == "m" {
            true => error(status, kind),
            false if seen.method == "GET" => error(404, "not_found"),
            false => fine(),
        });
        let (runtime, wire) = wire::open(config, script).await;
        let session = runtime.session("a").await.unwrap();
        let mut watcher = session.watch();

        let first = session.send("hello").await.unwrap();
        let events = collect_until(&mut watcher, ended_turn).await;
        let second = session.send("hello").await.unwrap();
        let later = collect_until(&mut watcher, ended_turn).await;

        assert_eq!((first.text.as_str(), second.text.as_str()), ("Fine.", "Fine."));
        let changes = |events: &[longhaul_protocol::Event]| -> Vec<(String, String)> {
            let change = |event: &longhaul_protocol::Event| match &event.kind {
                EventKind::ModelChanged { from, to, .. } => Some((from.clone(), to.clone())),
                _ => None,
            };
            events.iter().filter_map(change).collect()
        };
        let (there, back) = (
            ("custom/m".to_owned(), "custom/second".to_owned()),
            ("custom/second".to_owned(), "custom/m".to_owned()),
        );
        assert_eq!(changes(&events), std::slice::from_ref(&there));
        assert_eq!(changes(&later), [back, there], "a new turn begins with the model that is set");
        let asked = wire.requests().iter().filter(|seen| seen.method == "POST").count();
        assert_eq!(asked, 2 * (requests + 1));
        runtime.shutdown().await.unwrap();
        sound_records(&place, &session).await;
    }
}
