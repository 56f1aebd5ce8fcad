//! Turn latency while a memory call hangs: memory must not slow turns down. `scripts/bench` runs it; the figures and their machine are
//! in `docs/performance.md`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use longhaul_agent::{Runtime, Session};
use longhaul_model::{
    AnswerPart, AnswerStream, CallPermit, Model, ModelFailure, Purpose, Request, StopKind, StopReason,
};
use longhaul_testkit::TestHome;
use tokio::sync::Notify;

/// So many turns are measured each time, in turn with the others, so that whatever else the machine does is everybody's.
const TURNS: usize = 300;

/// Answers a turn at once, and a call for memory only when it is let.
#[derive(Default)]
struct Stuck {
    asked: Notify,
    let_go: Notify,
}

struct Saying(std::vec::IntoIter<AnswerPart>);

#[async_trait]
impl Model for Stuck {
    fn name(&self) -> &'static str {
        "scripted/stuck"
    }

    async fn ask(
        &self,
        request: Request,
        _permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        if matches!(request.purpose, Purpose::Extract { .. } | Purpose::Consolidate { .. }) {
            self.asked.notify_one();
            self.let_go.notified().await;
        }
        let said = [AnswerPart::TextStart, AnswerPart::TextDelta("Yes.".to_owned()), AnswerPart::TextStop];
        let end = AnswerPart::End(StopReason::new(StopKind::Finished, "stop"));
        Ok(Box::new(Saying(said.into_iter().chain([end]).collect::<Vec<_>>().into_iter())))
    }
}

#[async_trait]
impl AnswerStream for Saying {
    async fn next(&mut self) -> Result<AnswerPart, ModelFailure> {
        Ok(self.0.next().expect("nobody asks after the end"))
    }
}

#[tokio::main]
async fn main() {
    let place = TestHome::in_memory();
    let model = Arc::new(Stuck::default());
    let runtime = Runtime::with_model(place.config(), model.clone()).await.expect("a runtime");
    let (same, other) = (open(&runtime, "same").await, open(&runtime, "other").await);

    // Once for nothing: what is used for the first time takes longer.
    median(&[&same, &other], TURNS).await;
    let before = median(&[&same, &other], TURNS).await;
    let extracting = tokio::spawn({
        let same = same.clone();
        async move { same.extract().await }
    });
    model.asked.notified().await;
    let with = median(&[&same, &other], TURNS).await;
    assert!(!extracting.is_finished(), "the call for memory was answered");
    model.let_go.notify_waiters();
    // It asks for the right form once more, and is told the same.
    while !extracting.is_finished() {
        model.let_go.notify_waiters();
        tokio::task::yield_now().await;
    }
    let after = median(&[&same, &other], TURNS).await;
    for (index, whose) in ["the session that is gone through", "another session"].into_iter().enumerate() {
        // Contexts grow meanwhile, and turns with them.
        let without = (before[index] + after[index]) / 2;
        let ratio = with[index].as_secs_f64() / without.as_secs_f64();
        println!(
            "a turn of {whose}: {without:?}; while a call for memory is not answered {:?}, {ratio:.2} of that",
            with[index]
        );
    }
    runtime.shutdown().await.expect("an end");
}

async fn open(runtime: &Runtime, key: &str) -> Session {
    let session = runtime.session(key).await.expect("a session");
    session.send("hello").await.expect("a turn");
    session
}

/// The median time of a turn in each of these sessions.
async fn median(sessions: &[&Session], turns: usize) -> Vec<Duration> {
    let mut times = vec![Vec::new(); sessions.len()];
    for _ in 0..turns {
        for (session, times) in sessions.iter().zip(&mut times) {
            let began = Instant::now();
            session.send("more").await.expect("a turn");
            times.push(began.elapsed());
        }
    }
    times.iter_mut().for_each(|times| times.sort_unstable());
    times.iter().map(|times| times[times.len() / 2]).collect()
}
