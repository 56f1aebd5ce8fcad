//! Whole sessions in which a recorded answer is cut at every boundary of a frame, and one byte before and after it, closed or
//! reset, in each protocol. (Every single byte is cut in `attempt_tests.rs`, without a journal.)
//!
//! | the cut comes | what counts | requests |
//! | --- | --- | --- |
//! | before the first call is complete | nothing; the same bytes are sent again | 3 |
//! | after a complete call, before the end mark | what is complete; its calls are run, the next step goes on | 2 |
//! | after the end mark | everything | 2 |
//!
//! Never: text twice in the session, a call that is run twice, a request more or less.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};

use longhaul_journal::Journal;
use longhaul_model::Protocol;
use longhaul_protocol::{Item, Outcome, Role, SessionRecord};
use longhaul_testkit::wire::{End, ReceivedRequest, Reply, Script, ScriptedAnswer};
use longhaul_testkit::{TestHome, broken_rules, records_of};
use serde_json::json;

use crate::wire;

/// Text, then two calls. They only look, so that a thousand sessions cost little.
fn answer() -> ScriptedAnswer {
    ScriptedAnswer::text("I look at both.")
        .call("list_files", json!({"path": "."}))
        .call("find_files", json!({"pattern": "*.md"}))
        .usage(120, 30)
}

fn last() -> ScriptedAnswer {
    ScriptedAnswer::text("There is nothing.").usage(200, 5)
}

/// Whether a request has the results of tools in it.
fn has_results(seen: &ReceivedRequest) -> bool {
    let body = String::from_utf8_lossy(&seen.body);
    ["\"role\":\"tool\"", "function_call_output", "tool_result", "functionResponse"]
        .iter()
        .any(|mark| body.contains(mark))
}

/// Where a frame of the answer ends, and how many calls are complete there.
fn expected_calls(protocol: Protocol, cut: usize) -> Expected {
    let frames = answer().frames(protocol);
    let mut end = 0;
    let mut whole = Vec::new();
    for frame in &frames {
        end += frame.len();
        // A blank line is over with its CR; the LF after it only belongs to it.
        let needed = end - usize::from(frame.ends_with(b"\r\n"));
        if needed <= cut {
            whole.push(String::from_utf8(frame.clone()).unwrap());
        }
    }
    if cut >= end {
        return Expected::Whole;
    }
    let count = |mark: &str| whole.iter().filter(|frame| frame.contains(mark)).count();
    let calls = match protocol {
        // A call is complete when the next index begins or the finish reason came.
        Protocol::OpenaiChat => match (count("\"finish_reason\":\"tool_calls\""), count("\"index\":1")) {
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        },
        Protocol::OpenaiResponses => whole
            .iter()
            .filter(|frame| frame.contains("response.output_item.done") && frame.contains("function_call"))
            .count(),
        Protocol::Anthropic => {
            let stops =
                |frame: &&String| frame.contains("content_block_stop") && !frame.contains("\"index\":0");
            whole.iter().filter(stops).count()
        }
        Protocol::Gemini => whole.iter().map(|frame| frame.matches("functionCall").count()).sum(),
    };
    let is_over = match protocol {
        Protocol::OpenaiChat => count("[DONE]") > 0,
        Protocol::OpenaiResponses => count("\"type\":\"response.completed\"") > 0,
        Protocol::Anthropic => count("message_stop") > 0,
        Protocol::Gemini => count("finishReason") > 0,
    };
    match (is_over, calls) {
        (true, _) => Expected::Whole,
        (false, 0) => Expected::Discarded,
        (false, calls) => Expected::Kept { calls },
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Whole,
    Discarded,
    Kept { calls: usize },
}

/// The boundaries of frames, and one byte before and after each.
fn cuts(protocol: Protocol) -> BTreeSet<usize> {
    let mut end = 0;
    let mut cuts = BTreeSet::from([0]);
    for frame in answer().frames(protocol) {
        end += frame.len();
        cuts.extend([end - 1, end, end + 1]);
    }
    cuts.retain(|cut| *cut <= end);
    cuts
}

async fn every_cut(protocol: Protocol, end: End) {
    let place = TestHome::in_memory();
    let cut = Arc::new(Mutex::new((0, false)));
    let bodies: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let script = Script::by({
        let (cut, bodies) = (cut.clone(), bodies.clone());
        move |seen: &ReceivedRequest| {
            let mut cut = cut.lock().unwrap();
            bodies.lock().unwrap().push(seen.body.clone());
            if has_results(seen) {
                return Reply::stream(last().bytes(protocol));
            }
            let whole = Reply::stream(answer().bytes(protocol));
            let is_first = !std::mem::replace(&mut cut.1, true);
            if is_first && cut.0 < answer().bytes(protocol).len() {
                whole.cut_at(cut.0).ending(end)
            } else {
                whole
            }
        }
    });
    let (runtime, _wire) = wire::open(wire::config(&place, protocol), script.forgetful()).await;
    let journal = place.journal().await;
    let mut kinds = HashSet::new();
    for byte in cuts(protocol) {
        *cut.lock().unwrap() = (byte, false);
        let session = runtime.session(&format!("cut-{byte}")).await.unwrap();

        let ended = session.send("look").await.unwrap();

        let told = format!("{protocol:?} cut at {byte}, {end:?}");
        assert_eq!(
            (ended.outcome, ended.text.as_str()),
            (Outcome::Completed, "There is nothing."),
            "{told}: {ended:?}"
        );
        let expected = expected_calls(protocol, byte);
        let requests = std::mem::take(&mut *bodies.lock().unwrap());
        let wanted = if expected == Expected::Discarded { 3 } else { 2 };
        assert_eq!(requests.len(), wanted, "{told}: {expected:?}");
        if expected == Expected::Discarded {
            assert_eq!(requests[0], requests[1], "{told}: the same bytes are sent again");
        }
        let records = records_of(&*journal, session.id().unwrap()).await;
        assert_eq!(broken_rules(&records), Vec::<String>::new(), "{told}");
        let run: Vec<String> = wire::facts(&records)
            .into_iter()
            .filter_map(|fact| match fact {
                SessionRecord::ToolStarted(started) => Some(started.name),
                _ => None,
            })
            .collect();
        let calls = if let Expected::Kept { calls } = expected { calls } else { 2 };
        assert_eq!(run, ["list_files", "find_files"][..calls], "{told}: each once");
        let state = session.state().await.unwrap();
        let said = state.items.iter().filter(|item| {
            matches!(&***item, Item::Text { role: Role::Assistant, text } if text == "I look at both.")
        });
        assert_eq!(said.count(), 1, "{told}: text appears once");
        kinds.insert(std::mem::discriminant(&expected_calls(protocol, byte)));
    }
    assert_eq!(kinds.len(), 3, "every row of the table came up");
    runtime.shutdown().await.unwrap();
    journal.close().await;
}

/// M8, M9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_closed_at_any_frame_loses_and_repeats_nothing() {
    for protocol in wire::PROTOCOLS {
        every_cut(protocol, End::Close).await;
    }
}

/// M8, M9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_reset_at_any_frame_loses_and_repeats_nothing() {
    for protocol in wire::PROTOCOLS {
        every_cut(protocol, End::Reset).await;
    }
}
