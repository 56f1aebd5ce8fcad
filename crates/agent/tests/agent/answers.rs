//! Answers that come to their end, and are not what a turn needs: cut at their length, empty, only thoughts, refused; and what
//! they cost.

use longhaul_model::{Protocol, StopKind};
use longhaul_protocol::{Event, EventKind, Limit, Outcome, SessionRecord};
use longhaul_testkit::wire::{Reply, Script, ScriptedAnswer};
use longhaul_testkit::{TestHome, collect_until, ended_turn};
use serde_json::{Value, json};

use crate::{sound_records, wire};

const CHAT: Protocol = Protocol::OpenaiChat;

fn reply(said: &ScriptedAnswer) -> Reply {
    Reply::stream(said.bytes(CHAT))
}

fn warnings(events: &[Event]) -> Vec<String> {
    let code = |event: &Event| match &event.kind {
        EventKind::Warning { code, .. } => Some(code.clone()),
        _ => None,
    };
    events.iter().filter_map(code).collect()
}

/// M11
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_cut_at_its_length_goes_on_once_with_a_higher_limit() {
    let place = TestHome::new();
    let cut = ScriptedAnswer::text("One, two, ").stop(StopKind::Length);
    let script = Script::list(vec![reply(&cut), reply(&ScriptedAnswer::text("three."))]);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("count").await.unwrap();

    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "One, two, three."));
    let limits: Vec<u64> =
        wire.requests().iter().map(|seen| seen.json()["max_tokens"].as_u64().unwrap()).collect();
    assert!(limits.len() == 2 && limits[1] > limits[0], "{limits:?}");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// M11
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cut_twice_ends_the_turn_as_not_complete() {
    let place = TestHome::new();
    let cut = |text| reply(&ScriptedAnswer::text(text).stop(StopKind::Length));
    let (runtime, wire) =
        wire::open(wire::config(&place, CHAT), Script::list(vec![cut("One, "), cut("two, ")])).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("count").await.unwrap();

    assert_eq!(
        (ended.outcome, ended.limit, ended.text.as_str()),
        (Outcome::Limit, Some(Limit::Tokens), "One, two, ")
    );
    assert!(ended.error.unwrap().contains("model.max_output_tokens"));
    assert_eq!(wire.requests().len(), 2);
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// The bytes of an answer up to the first place where this text has come, then these bytes.
fn cut_after(said: &ScriptedAnswer, protocol: Protocol, text: &str, rest: &str) -> Vec<u8> {
    let bytes = String::from_utf8(said.bytes(protocol)).unwrap();
    let frames: Vec<&str> = bytes.split_inclusive("\n\n").collect();
    let last = frames.iter().position(|frame| frame.contains(text)).unwrap();
    (frames[..=last].concat() + rest).into_bytes()
}

/// The notes of a session.
async fn notes(place: &TestHome, session: &longhaul_agent::Session) -> Vec<String> {
    let records = sound_records(place, session).await;
    let note = |fact| match fact {
        SessionRecord::Note(note) => Some(note.text),
        _ => None,
    };
    wire::facts(&records).into_iter().filter_map(note).collect()
}

/// M9, T5: a call that had begun when the stream broke is discarded. The model is told, after the results of those that ran.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_told_which_call_was_discarded_when_its_answer_broke_off() {
    let place = TestHome::new();
    let two = ScriptedAnswer::text("I look.")
        .call("list_files", json!({"path": "."}))
        .call("find_files", json!({"pattern": "*.md"}));
    let broken = Reply::stream(cut_after(&two, Protocol::Anthropic, "\"find_files\"", ""));
    let said = Reply::stream(ScriptedAnswer::text("Done.").bytes(Protocol::Anthropic));
    let config = wire::config(&place, Protocol::Anthropic);
    let (runtime, wire) = wire::open(config, Script::list(vec![broken, said])).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("look").await.unwrap();

    assert_eq!((ended.outcome, ended.text.as_str()), (Outcome::Completed, "Done."));
    let requests = wire.requests();
    let sent = requests[1].json()["messages"].as_array().unwrap().clone();
    assert!(sent[2]["content"][0]["type"] == "tool_result", "{sent:?}");
    let note = sent[3].to_string();
    assert!(note.contains("`find_files`") && note.contains("did not run"), "{note}");
    runtime.shutdown().await.unwrap();
    assert_eq!(notes(&place, &session).await.len(), 1);
}

/// M11, T5: a call in which an answer reached its greatest length is discarded, and the model is told, whatever else was in
/// the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_told_which_call_was_discarded_when_its_answer_was_too_long() {
    let incomplete = "event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"status\":\
                      \"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n";
    let protocol = Protocol::OpenaiResponses;
    let write = |said: ScriptedAnswer| said.call("write_file", json!({"path": "a", "content": "long"}));
    let answers = [
        write(ScriptedAnswer::text("I write.")),
        write(ScriptedAnswer::nothing()),
        write(ScriptedAnswer::nothing().call("list_files", json!({"path": "."}))),
    ];

    for said in answers {
        let place = TestHome::new();
        let cut = Reply::stream(cut_after(&said, protocol, "\"write_file\"", incomplete));
        let done = Reply::stream(ScriptedAnswer::text("Done.").bytes(protocol));
        let (runtime, wire) = wire::open(wire::config(&place, protocol), Script::list(vec![cut, done])).await;
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("write").await.unwrap();

        assert_eq!(ended.outcome, Outcome::Completed, "{ended:?}");
        let requests = wire.requests();
        let sent = requests[1].json()["input"].as_array().unwrap().clone();
        let last = sent.last().unwrap().to_string();
        assert!(last.contains("`write_file`: that call was discarded and did not run"), "{last}");
        let before = serde_json::to_string(&requests[0].json()["input"]).unwrap();
        let after = serde_json::to_string(&sent).unwrap();
        assert!(after.starts_with(before.trim_end_matches(']')), "the prefix stays");
        runtime.shutdown().await.unwrap();
        assert_eq!(notes(&place, &session).await.len(), 1);
    }
}

/// M11, T5: a call that is whole for its protocol, but whose arguments were cut, gets an error as its result, and a note says
/// why. If the next answer is cut as well, the turn ends, and its calls are named too.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_arguments_were_cut_is_named_also_when_the_turn_ends() {
    let place = TestHome::new();
    let said = ScriptedAnswer::nothing().call("write_file", json!({"path": "a", "content": "long"}));
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
    let cut = || Reply::stream(cut_after(&said, CHAT, "\"write_file\"", end));
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), Script::list(vec![cut(), cut()])).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("write").await.unwrap();

    assert_eq!((ended.outcome, ended.limit), (Outcome::Limit, Some(Limit::Tokens)), "{ended:?}");
    assert_eq!(wire.requests().len(), 2);
    runtime.shutdown().await.unwrap();
    let notes = notes(&place, &session).await;
    assert!(notes.len() == 2 && notes.iter().all(|note| note.contains("`write_file`")), "{notes:?}");
}

/// M11
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_asked_for_once_more_and_then_told() {
    let place = TestHome::new();
    let empty = || reply(&ScriptedAnswer::nothing());
    let script = Script::list(vec![empty(), reply(&ScriptedAnswer::text("Here.")), empty(), empty()]);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    let mended = session.send("hello").await.unwrap();
    let first = collect_until(&mut watcher, ended_turn).await;
    let empty = session.send("hello").await.unwrap();
    let second = collect_until(&mut watcher, ended_turn).await;

    assert_eq!((mended.text.as_str(), warnings(&first)), ("Here.", vec![]));
    assert_eq!((empty.outcome, empty.text.as_str()), (Outcome::Completed, ""));
    assert_eq!((warnings(&second), wire.requests().len()), (vec!["empty_answer".to_owned()], 4));
    runtime.shutdown().await.unwrap();
}

/// M11
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_only_thinks_is_asked_again_then_nudged_then_given_up() {
    let place = TestHome::new();
    let thinking = || reply(&ScriptedAnswer::nothing().thought("hm"));
    let script = Script::list(vec![thinking(), thinking(), thinking()]);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("hello").await.unwrap();

    assert_eq!((ended.outcome, ended.code.as_deref()), (Outcome::Failed, Some("empty_answer")));
    let requests = wire.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].body, requests[1].body, "first the same again");
    let nudged = requests[2].json();
    let last = nudged["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(last["content"].as_str().unwrap().starts_with("[runtime note] You have thought"), "{last}");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// M3, M17
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_ends_the_turn_in_its_own_words_and_is_not_tried_again() {
    for protocol in wire::PROTOCOLS {
        let place = TestHome::in_memory();
        let refused = ScriptedAnswer::text("I would rather not.").stop(StopKind::Refused).bytes(protocol);
        let (runtime, wire) =
            wire::open(wire::config(&place, protocol), Script::list(vec![Reply::stream(refused)])).await;
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("hello").await.unwrap();

        assert_eq!(
            (ended.outcome, ended.code.as_deref()),
            (Outcome::Failed, Some("refused")),
            "{protocol:?}"
        );
        assert_eq!(wire.requests().len(), 1, "{protocol:?}");
        assert_eq!(session.state().await.unwrap().items.len(), 1, "{protocol:?}: it is not sent back");
        runtime.shutdown().await.unwrap();
    }
}

/// M15: usage is recorded for every attempt, failed ones too, with its cost and what the provider says about limits.
#[tokio::test(flavor = "multi_thread")]
async fn usage_is_recorded_for_every_attempt_that_says_it() {
    let place = TestHome::new();
    let mut config = wire::config(&place, Protocol::Anthropic);
    config.settings.model.name = "anthropic/claude-sonnet-4-5".to_owned();
    config.settings.model.api_key_env = Some("CARGO_MANIFEST_DIR".to_owned());
    let said = ScriptedAnswer::text("Hello.").usage(1_000, 200);
    let bytes = said.bytes(Protocol::Anthropic);
    let cut = Reply::stream(bytes.clone()).cut_at(bytes.len() - 90);
    let whole = Reply::stream(bytes).header("anthropic-ratelimit-requests-remaining", "49");
    let (runtime, _) = wire::open(config, Script::list(vec![cut, whole])).await;
    let session = runtime.session("a").await.unwrap();

    session.send("hello").await.unwrap();

    runtime.shutdown().await.unwrap();
    let records = sound_records(&place, &session).await;
    let usages: Vec<_> = wire::facts(&records)
        .into_iter()
        .filter_map(|fact| if let SessionRecord::Usage(usage) = fact { Some(usage) } else { None })
        .collect();
    assert_eq!(usages.len(), 2, "one for each attempt: {usages:?}");
    assert_eq!((usages[0].input, usages[0].cost), (Some(1_000), None), "what is unknown is absent");
    let (cost, limits) = (usages[1].cost.unwrap(), &usages[1].limits);
    assert!((cost - (1_000.0 * 3.0 + 200.0 * 15.0) / 1e6).abs() < 1e-9, "{cost}");
    assert_eq!(limits.get("anthropic-ratelimit-requests-remaining").map(String::as_str), Some("49"));
}

/// M15: what can't be a count is unknown, and harms nothing.
#[tokio::test(flavor = "multi_thread")]
async fn counts_that_no_model_can_have_are_none() {
    for protocol in wire::PROTOCOLS {
        let place = TestHome::in_memory();
        let script = Script::saying(ScriptedAnswer::text("Fine.").usage(u64::MAX / 2, u64::MAX / 4));
        let (runtime, _) = wire::open(wire::config(&place, protocol), script).await;
        let session = runtime.session("a").await.unwrap();

        for _ in 0..3 {
            assert_eq!(session.send("hello").await.unwrap().text, "Fine.", "{protocol:?}");
        }

        assert_eq!(session.state().await.unwrap().provider_count, None, "{protocol:?}");
        runtime.shutdown().await.unwrap();
    }
}

/// M14: a server that cuts prompts without a word is found out: a warning, and the context is made to fit what it reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cuts_prompts_is_found_out() {
    let place = TestHome::new();
    let script = Script::cutting_prompts(ScriptedAnswer::text("Yes."), 4_000);
    let (runtime, wire) = wire::open(wire::config(&place, CHAT), script).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    for _ in 0..3 {
        session.send("a word. ".repeat(40)).await.unwrap();
        let events = collect_until(&mut watcher, ended_turn).await;
        assert_eq!(warnings(&events), Vec::<String>::new());
    }
    session.send("a word. ".repeat(6_000)).await.unwrap();
    let events = collect_until(&mut watcher, ended_turn).await;
    let asked = wire.requests().len();
    let ended = session.send("and?").await.unwrap();

    assert_eq!(warnings(&events), ["prompt_cut"]);
    assert_eq!(ended.outcome, Outcome::Completed, "{ended:?}");
    let lengths: Vec<usize> = wire.requests()[asked..].iter().map(|seen| seen.body.len()).collect();
    assert!(lengths.len() == 3 && lengths.iter().all(|length| length / 4 < 4_000), "{lengths:?}");
    assert_eq!(session.state().await.unwrap().compaction.count, 1);
    runtime.shutdown().await.unwrap();
}

/// M14: a count that is smaller than the system prompt and the tools says nothing about the next request. The session goes on.
#[tokio::test(flavor = "multi_thread")]
async fn one_answer_with_a_wrong_count_does_not_end_a_session() {
    let place = TestHome::new();
    let script = Script::cutting_prompts(ScriptedAnswer::text("Yes."), 1_500);
    let mut config = wire::config(&place, CHAT);
    config.settings.model.context_window = Some(60_000);
    let (runtime, _) = wire::open(config, script).await;
    let session = runtime.session("a").await.unwrap();

    for round in 0..6 {
        let ended = session.send("a word. ".repeat(300)).await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed, "{round}: {ended:?}");
    }

    runtime.shutdown().await.unwrap();
}

/// M16: within an epoch each request's messages are byte for byte the beginning of the next one's.
#[tokio::test(flavor = "multi_thread")]
async fn each_request_begins_with_the_bytes_of_the_one_before() {
    for protocol in wire::PROTOCOLS {
        let place = TestHome::in_memory();
        let call = ScriptedAnswer::text("I look.").call("list_files", json!({"path": "."}));
        let answers =
            [call.clone(), ScriptedAnswer::text("Nothing."), call, ScriptedAnswer::text("Still nothing.")];
        let replies = answers.iter().map(|said| Reply::stream(said.bytes(protocol))).collect();
        let (runtime, wire) = wire::open(wire::config(&place, protocol), Script::list(replies)).await;
        let session = runtime.session("a").await.unwrap();

        session.send("look").await.unwrap();
        session.send("again").await.unwrap();

        let bodies: Vec<String> = wire
            .requests()
            .iter()
            .map(|seen| {
                String::from_utf8(seen.body.clone())
                    .unwrap()
                    .replace(r#","cache_control":{"type":"ephemeral"}"#, "")
            })
            .collect();
        assert_eq!(bodies.len(), 4);
        for pair in bodies.windows(2) {
            let open = pair[0].trim_end_matches(['}', ']']);
            // Brackets of the last message itself were cut off with those of the body.
            assert!(pair[1].starts_with(open), "{protocol:?}:\n{}\n{}", pair[0], pair[1]);
        }
        runtime.shutdown().await.unwrap();
    }
}

/// M18
#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_tools_is_sent_none_and_this_is_told_once() {
    let place = TestHome::new();
    let refused = Reply::error(400, r#"{"error":{"message":"m does not support tools"}}"#);
    let fine = || reply(&ScriptedAnswer::text("Fine."));
    let (runtime, wire) =
        wire::open(wire::config(&place, CHAT), Script::list(vec![refused, fine(), fine()])).await;
    let session = runtime.session("a").await.unwrap();
    let mut watcher = session.watch();

    session.send("hello").await.unwrap();
    let first = collect_until(&mut watcher, ended_turn).await;
    session.send("hello").await.unwrap();
    let second = collect_until(&mut watcher, ended_turn).await;

    let with_tools: Vec<bool> =
        wire.requests().iter().map(|seen| seen.json()["tools"] != Value::Null).collect();
    assert_eq!(with_tools, [true, false, false]);
    assert_eq!((warnings(&first), warnings(&second)), (vec!["no_tools".to_owned()], vec![]));
    runtime.shutdown().await.unwrap();
}

/// T9, B1: before the call that would pass the limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_ends_when_its_tokens_or_its_money_are_used_up() {
    let call = ScriptedAnswer::text("I look.").call("list_files", json!({"path": "."})).usage(9_000, 100);
    for (tokens, cost, limit) in [(20_000, 0.0, Limit::Tokens), (0, 0.085, Limit::Cost)] {
        let place = TestHome::in_memory();
        let mut config = wire::config(&place, Protocol::Anthropic);
        config.settings.model.name = "anthropic/claude-sonnet-4-5".to_owned();
        config.settings.model.api_key_env = Some("CARGO_MANIFEST_DIR".to_owned());
        config.settings.limits.tokens_per_turn = tokens;
        config.settings.limits.cost_per_turn = cost;
        let script = Script::saying(call.clone());
        let (runtime, wire) = wire::open(config, script).await;
        let session = runtime.session("a").await.unwrap();

        let ended = session.send("look").await.unwrap();

        assert_eq!((ended.outcome, ended.limit), (Outcome::Limit, Some(limit)), "{ended:?}");
        assert!(ended.error.unwrap().contains("send a message to go on"));
        assert_eq!(wire.requests().len(), 2, "{limit:?}");
        runtime.shutdown().await.unwrap();
        sound_records(&place, &session).await;
    }
}

/// T9
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_ends_when_its_time_is_over_also_in_the_middle_of_an_answer() {
    let place = TestHome::new();
    let mut config = wire::config(&place, CHAT);
    config.settings.limits.seconds_per_turn = 1;
    let stalling = Reply::frames(ScriptedAnswer::text("So").frames(CHAT))
        .cut_at(40)
        .ending(longhaul_testkit::wire::End::Stall);
    let (runtime, _) = wire::open(config, Script::list(vec![stalling])).await;
    let session = runtime.session("a").await.unwrap();

    let ended = session.send("hello").await.unwrap();

    assert_eq!((ended.outcome, ended.limit), (Outcome::Limit, Some(Limit::Time)), "{ended:?}");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// T9: over all sessions of the home, by their records.
#[tokio::test(flavor = "multi_thread")]
async fn all_sessions_together_stay_within_what_a_day_may_cost() {
    let place = TestHome::new();
    let mut config = wire::config(&place, Protocol::Anthropic);
    config.settings.model.name = "anthropic/claude-sonnet-4-5".to_owned();
    config.settings.model.api_key_env = Some("CARGO_MANIFEST_DIR".to_owned());
    config.settings.limits.cost_per_day = 0.06;
    let said = ScriptedAnswer::text("Fine.").usage(6_000, 100);
    let (runtime, _) = wire::open(config.clone(), Script::saying(said.clone())).await;
    for key in ["a", "b"] {
        let ended = runtime.session(key).await.unwrap().send("hello").await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed, "{key}: {ended:?}");
    }
    runtime.shutdown().await.unwrap();

    // Another process knows it from the records.
    let (runtime, wire) = wire::open(config, Script::saying(said)).await;
    let session = runtime.session("c").await.unwrap();
    let ended = session.send("hello").await.unwrap();

    assert_eq!((ended.outcome, ended.limit), (Outcome::Limit, Some(Limit::Cost)));
    assert!(ended.error.unwrap().contains("limits.cost_per_day"));
    assert_eq!(wire.requests().len(), 0, "nobody is asked");
    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}
