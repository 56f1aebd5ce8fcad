//! A recorded answer, truncated after every single byte, at the level of attempts: no journal, no clock.

use std::sync::{Arc, Mutex};

use longhaul_model::{
    Endpoint, KnownHosts, LearnedCapabilities, Model, Protocol, Quirks, RemoteModel, Request, RetryDecision,
    RetryPolicy, RetryState, SettingSources, Timeouts,
};
use longhaul_protocol::{AttemptId, Item, Role};
use longhaul_testkit::wire::{End, MemoryTransport, ReceivedRequest, Reply, Script, ScriptedAnswer};
use serde_json::json;

use crate::session::state::Attempt;
use longhaul_model::{BlockAssembler, BlockProgress};

const PROTOCOLS: [Protocol; 4] =
    [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini];

fn recorded() -> ScriptedAnswer {
    ScriptedAnswer::text("I look at both.")
        .call("look", json!({"at": "a"}))
        .call("look", json!({"at": "b"}))
        .usage(12, 3)
}

fn remote(protocol: Protocol, wire: Arc<MemoryTransport>) -> RemoteModel {
    let target = Endpoint {
        name: "custom/m".to_owned(),
        model: "m".to_owned(),
        protocol,
        base_url: "https://model.test/v1".to_owned(),
        quirks: Quirks::default(),
        key: None,
        provider: "custom".to_owned(),
        is_local: false,
        start: None,
        clocks: Timeouts::HOSTED,
        window: Some(1_000),
        tools: None,
        effort: None,
        entry: None,
        set_by: SettingSources::default(),
    };
    RemoteModel::new(target, wire, Arc::new(KnownHosts::default()), Arc::new(LearnedCapabilities::default()))
}

/// The complete blocks of one attempt, and whether the answer ended by itself.
async fn attempt(model: &RemoteModel) -> (Attempt, bool) {
    let request = Request {
        items: vec![Arc::new(Item::Text { role: Role::User, text: "look".into() })],
        ..Request::default()
    };
    let mut attempt = Attempt { id: AttemptId::generate(), blocks: vec![], unfinished: String::new() };
    let Ok(mut answer) =
        model.ask(request, &longhaul_model::CallPermit::unreserved(longhaul_protocol::Cause::Turn)).await
    else {
        return (attempt, false);
    };
    let mut blocks = BlockAssembler::default();
    while let Ok(part) = answer.next().await {
        match blocks.push(part) {
            BlockProgress::Block(item) => attempt.blocks.push(Arc::new(item)),
            BlockProgress::End(_) => return (attempt, true),
            BlockProgress::Odd(reason) | BlockProgress::TooLarge(reason) => panic!("{reason}"),
            BlockProgress::Nothing | BlockProgress::Text(_) | BlockProgress::Reasoning(_) => {}
        }
    }
    (attempt, false)
}

/// Retries until an attempt counts. Returns its blocks, and the requests that were sent.
async fn answered(protocol: Protocol, cut: usize, end: End) -> (Vec<Arc<Item>>, Vec<Vec<u8>>) {
    let sent: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let script = Script::by({
        let sent = sent.clone();
        move |seen: &ReceivedRequest| {
            let mut sent = sent.lock().unwrap();
            sent.push(seen.body.clone());
            let whole = Reply::stream(recorded().bytes(protocol));
            if sent.len() == 1 { whole.cut_at(cut).ending(end) } else { whole }
        }
    });
    let model = remote(protocol, Arc::new(MemoryTransport::new(script)));
    let mut tries = RetryState::new(RetryPolicy::default());
    loop {
        let (attempt, is_over) = attempt(&model).await;
        let kept = if is_over { attempt.blocks.len() } else { attempt.blocks_kept_on_failure() };
        if kept > 0 {
            let sent = sent.lock().unwrap().clone();
            return (attempt.blocks[..kept].to_vec(), sent);
        }
        let broken = longhaul_model::ModelFailure::new(longhaul_model::FailureClass::Broken, "cut");
        assert!(matches!(tries.failed(&broken, 0.0), RetryDecision::Wait(_)), "it is tried again");
    }
}

/// M8, M9, M17: with a complete call the step ends there; without one the same bytes are sent again. Nothing counts twice.
#[tokio::test(start_paused = true)]
async fn an_answer_cut_after_any_byte_counts_up_to_its_complete_calls_or_not_at_all() {
    for (protocol, end) in
        PROTOCOLS.into_iter().flat_map(|protocol| [(protocol, End::Close), (protocol, End::Reset)])
    {
        let whole = recorded().bytes(protocol).len();
        let mut calls_before = 0;
        for cut in 0..whole {
            let (items, sent) = answered(protocol, cut, end).await;

            let case = format!("{protocol:?} cut at {cut} of {whole}");
            let calls = items.iter().filter(|item| matches!(***item, Item::ToolCall { .. })).count();
            let texts = items.iter().filter(|item| matches!(***item, Item::Text { .. })).count();
            assert_eq!(texts, 1, "{case}");
            match sent.len() {
                1 => {
                    assert!((1..=2).contains(&calls) && calls >= calls_before, "{case}: {calls}");
                    calls_before = calls;
                }
                2 => {
                    assert_eq!(
                        (calls, calls_before),
                        (2, 0),
                        "{case}: discarded only before the first call is complete"
                    );
                    assert_eq!(sent[0], sent[1], "{case}: the same bytes are sent again");
                }
                sent => panic!("{case}: {sent} requests"),
            }
        }
        assert!(calls_before > 0, "{protocol:?}: some cuts come after a complete call");
    }
}
