//! Every end is an end: bounded, once, and with everything on disk that was promised.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::{Error, Parts, Runtime};
use longhaul_protocol::Effect;
use longhaul_testkit::{Gated, Place, Recording};
use longhaul_tools::Tool;
use serde_json::json;

use crate::tool_calls::{Does, Odd};
use crate::{eventually, open, open_faulty, script, sends};

/// S1: within five seconds, whatever hangs.
const BOUND: Duration = Duration::from_secs(9);

/// S1
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_hangs_does_not_hold_up_the_end() {
    for does in [Does::Hang, Does::HangAtOnce] {
        let place = Place::new();
        let model = Recording::new(script(&json!([{"calls": [{"name": "odd", "arguments": {}}]}, "Never."])));
        let tools: Vec<Arc<dyn Tool>> = vec![Odd::new("odd", Effect::Unknown, does)];
        let parts = Parts { model: Some(model), tools, ..Parts::default() };
        let runtime = Runtime::with_parts(place.config(), parts).await.unwrap();
        let session = runtime.session("a").await.unwrap();
        let sending = sends(&session, "go");
        eventually("the answer has come", || async {
            session.state().await.unwrap().turn.is_some_and(|turn| !turn.calls.is_empty())
        })
        .await;

        let asked = Instant::now();
        runtime.shutdown().await.unwrap();

        assert!(asked.elapsed() < BOUND, "{:?}", asked.elapsed());
        assert!(matches!(sending.await.unwrap(), Err(Error::Suspended)));
    }
}

/// S1
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_hangs_does_not_hold_up_the_end() {
    let place = Place::new();
    let (model, gate) = Gated::new(script(&json!(["Never."])));
    let (runtime, journal) = open_faulty(&place, model).await;
    runtime.start().await.unwrap();
    let _sending = sends(&runtime.session("a").await.unwrap(), "go");
    gate.reached().await;

    journal.hang();
    let asked = Instant::now();
    runtime.shutdown().await.unwrap();

    assert!(asked.elapsed() < BOUND, "{:?}", asked.elapsed());
}

/// S1: two who end it end it once, and both return when it has ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_is_asked_for_twice_is_one_end() {
    let place = Place::new();
    let (model, gate) = Gated::new(script(&json!(["Once upon a time."])));
    let runtime = open(&place, model).await;
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    gate.reached().await;

    let (one, other) = tokio::join!(runtime.shutdown(), runtime.shutdown());

    one.and(other).unwrap();
    assert!(matches!(sending.await.unwrap(), Err(Error::Suspended)));
    let journal = place.journal().await;
    let stream = longhaul_protocol::StreamName::session(session.id().unwrap());
    assert_eq!(
        longhaul_journal::Journal::holder(&*journal, &stream).await.unwrap(),
        None,
        "the lease is given back"
    );
}

/// Y4: it is started once, and not after its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_is_started_once_and_not_after_its_end() {
    let place = Place::new();
    let runtime = open(&place, Recording::new(script(&json!([])))).await;

    runtime.start().await.unwrap();
    runtime.start().await.unwrap();
    runtime.shutdown().await.unwrap();
    let ended = open(&place, Recording::new(script(&json!([])))).await;
    ended.shutdown().await.unwrap();

    assert!(matches!(ended.start().await, Err(Error::Suspended)));
}
