//! Every end is an end: bounded, once, and with everything on disk that was promised.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use longhaul_agent::{Error, RuntimeBuilder};
use longhaul_model::{AnswerStream, CallPermit, Model, ModelFailure, Request};
use longhaul_protocol::{Effect, EventKind, Outcome};
use longhaul_testkit::{GatedModel, RecordingModel, TestHome, collect_until, ended_turn};
use longhaul_tools::Tool;
use serde_json::json;

use crate::tool_calls::{Does, Odd};
use crate::{at_best, disk_full, eventually, open, open_faulty, script, sends};

/// S1: whatever hangs.
const BOUND: Duration = Duration::from_secs(5);

/// S1
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_hangs_does_not_hold_up_the_end() {
    for does in [|| Does::Hang, || Does::HangAtOnce] {
        at_best(BOUND, "the end", || async {
            let place = TestHome::new();
            let answers = json!([{"calls": [{"name": "odd", "arguments": {}}]}, "Never."]);
            let tools: Vec<Arc<dyn Tool>> = vec![Odd::new("odd", Effect::Unknown, does())];
            let model = RecordingModel::new(script(&answers));
            let runtime = RuntimeBuilder::new(place.config()).model(model).tools(tools).open().await.unwrap();
            let session = runtime.session("a").await.unwrap();
            let sending = sends(&session, "go");
            eventually("the answer has come", || async {
                session.state().await.unwrap().turn.is_some_and(|turn| !turn.calls.is_empty())
            })
            .await;

            let asked = Instant::now();
            runtime.shutdown().await.unwrap();

            let took = asked.elapsed();
            assert!(matches!(sending.await.unwrap(), Err(Error::Suspended)));
            took
        })
        .await;
    }
}

/// S1
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_hangs_does_not_hold_up_the_end() {
    at_best(BOUND, "the end", || async {
        let place = TestHome::new();
        let (model, gate) = GatedModel::new(script(&json!(["Never."])));
        let (runtime, journal) = open_faulty(&place, model).await;
        runtime.start().await.unwrap();
        let sending = sends(&runtime.session("a").await.unwrap(), "go");
        gate.reached().await;

        journal.hang();
        gate.open();
        let asked = Instant::now();
        runtime.shutdown().await.unwrap();

        let took = asked.elapsed();
        assert!(matches!(sending.await.unwrap(), Err(Error::Suspended)), "whoever waits is told");
        took
    })
    .await;
}

/// S1: two who end it end it once, and both return when it has ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_is_asked_for_twice_is_one_end() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["Once upon a time."])));
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
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;

    runtime.start().await.unwrap();
    runtime.start().await.unwrap();
    runtime.shutdown().await.unwrap();
    let ended = open(&place, RecordingModel::new(script(&json!([])))).await;
    ended.shutdown().await.unwrap();

    assert!(matches!(ended.start().await, Err(Error::Suspended)));
}

/// S1: whoever gives up on an end can ask for it again, and nobody waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_given_up_leaves_nobody_waiting() {
    let place = TestHome::new();
    let model =
        RecordingModel::new(script(&json!([{"calls": [{"name": "odd", "arguments": {}}]}, "Never."])));
    let tools: Vec<Arc<dyn Tool>> = vec![Odd::new("odd", Effect::Unknown, Does::Hang)];
    let runtime = RuntimeBuilder::new(place.config()).model(model).tools(tools).open().await.unwrap();
    let session = runtime.session("a").await.unwrap();
    let sending = sends(&session, "go");
    eventually("the tool has started", || async {
        session.state().await.unwrap().turn.is_some_and(|turn| turn.calls.iter().any(|call| call.is_open()))
    })
    .await;

    let given_up = tokio::time::timeout(Duration::from_millis(200), runtime.shutdown()).await;
    runtime.shutdown().await.unwrap();

    assert!(given_up.is_err());
    assert!(matches!(sending.await.unwrap(), Err(Error::Suspended)));
}

/// A model that can't be asked.
struct Panics(AtomicUsize);

#[async_trait]
impl Model for Panics {
    fn name(&self) -> &'static str {
        "scripted/panics"
    }

    async fn ask(
        &self,
        _request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("as it should")
    }
}

/// Whatever goes wrong in a turn ends it: it would go wrong again, at the cost of a model call each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_panics_ends_as_failed_and_is_not_tried_for_ever() {
    let place = TestHome::new();
    let model = Arc::new(Panics(AtomicUsize::new(0)));
    let runtime = open(&place, model.clone()).await;
    runtime.start().await.unwrap();

    let ended = runtime.session("a").await.unwrap().send("go").await.unwrap();

    assert_eq!(ended.outcome, Outcome::Failed);
    assert_eq!(model.0.load(Ordering::SeqCst), 1);
    runtime.shutdown().await.unwrap();
}

/// T12: a session that could not be read for a moment is resumed when it can be.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_could_not_be_read_once_is_looked_at_again() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["One."])));
    let first = open(&place, model).await;
    let _sending = sends(&first.session("a").await.unwrap(), "go");
    gate.reached().await;
    first.shutdown().await.unwrap();
    let (second, journal) = open_faulty(&place, RecordingModel::new(script(&json!(["One."])))).await;
    let mut watcher = second.watch();

    journal.refuse_reads(Some(disk_full()));
    second.start().await.unwrap();
    let unreadable =
        |kind: &EventKind| matches!(kind, EventKind::Warning { code, .. } if code == "session_unreadable");
    collect_until(&mut watcher, unreadable).await;
    journal.refuse_reads(None);
    collect_until(&mut watcher, ended_turn).await;

    second.shutdown().await.unwrap();
}

/// Whoever ends gives back what it held, at whatever moment it is asked to: the next host need not wait for a lease to expire.
#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_ends_is_the_host_no_longer() {
    let place = TestHome::new();
    let journal = place.journal().await;
    for round in 0..20 {
        let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;
        runtime.start().await.unwrap();
        tokio::time::sleep(Duration::from_micros(100 * round)).await;

        runtime.shutdown().await.unwrap();

        let host = longhaul_protocol::StreamName::host();
        assert_eq!(longhaul_journal::Journal::holder(&*journal, &host).await.unwrap(), None, "round {round}");
    }
}

/// A model that can be asked only every other time.
struct PanicsFirst(AtomicUsize);

#[async_trait]
impl Model for PanicsFirst {
    fn name(&self) -> &'static str {
        "scripted/panics-first"
    }

    async fn ask(
        &self,
        _request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst);
        assert!(asked % 2 == 1, "as it should");
        script(&json!(["Fine."])).ask(Request::default(), permit).await
    }
}

/// Each turn that goes wrong is ended, not only the first one of a session's life.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_failed_once_gets_over_it() {
    let place = TestHome::new();
    let runtime = open(&place, Arc::new(PanicsFirst(AtomicUsize::new(0)))).await;
    let session = runtime.session("a").await.unwrap();

    let mut outcomes = Vec::new();
    for _ in 0..4 {
        outcomes.push(session.send("go").await.unwrap().outcome);
    }

    assert_eq!(outcomes, [Outcome::Failed, Outcome::Completed, Outcome::Failed, Outcome::Completed]);
    runtime.shutdown().await.unwrap();
}
