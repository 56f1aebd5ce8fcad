//! Many sessions side by side, in one process and in two runtimes of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_model::{AnswerStream, CallPermit, Model, ModelFailure, Request, ScriptedModel};
use longhaul_protocol::Outcome;
use longhaul_testkit::{GatedModel, RecordingModel, TestHome};
use serde_json::json;

use crate::{eventually, heard, open, script, sends, sound_records};

/// A model that never answers what is said to be slow.
struct Selective(ScriptedModel);

#[async_trait]
impl Model for Selective {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn ask(
        &self,
        request: Request,
        permit: &CallPermit,
    ) -> Result<Box<dyn AnswerStream>, ModelFailure> {
        if heard(&request.items).contains(&"slow".to_owned()) {
            std::future::pending::<()>().await;
        }
        self.0.ask(request, permit).await
    }
}

/// T2: a slow session never delays another, in the same runtime.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_wait_for_their_model_delay_no_other() {
    let place = TestHome::in_memory();
    let runtime = open(&place, Arc::new(Selective(script(&json!(["Hello."]))))).await;
    let mut slow = Vec::new();
    for number in 0..20 {
        let session = runtime.session(&format!("slow:{number}")).await.unwrap();
        slow.push(sends(&session, "slow"));
        eventually("it has begun", || async { session.state().await.unwrap().turn.is_some() }).await;
    }

    let mut turns = tokio::task::JoinSet::new();
    for number in 0..200 {
        let session = runtime.session(&format!("many:{number}")).await.unwrap();
        turns.spawn(async move { session.send("hello").await.unwrap().outcome });
    }
    while let Some(outcome) = turns.join_next().await {
        assert_eq!(outcome.unwrap(), Outcome::Completed);
    }

    assert!(slow.iter().all(|sending| !sending.is_finished()));
    runtime.shutdown().await.unwrap();
}

/// T2: within a session, one turn at a time.
#[tokio::test(flavor = "multi_thread")]
async fn inputs_from_everywhere_make_one_turn_after_the_other() {
    let place = TestHome::in_memory();
    let answers: Vec<String> = (0..60).map(|number| format!("Answer {number}.")).collect();
    let runtime = open(&place, RecordingModel::new(script(&json!(answers)))).await;
    let session = runtime.session("a").await.unwrap();

    let mut sends = tokio::task::JoinSet::new();
    for number in 0..20 {
        let session = session.clone();
        sends.spawn(async move { session.send(format!("input {number}")).await.unwrap().outcome });
    }
    while let Some(outcome) = sends.join_next().await {
        assert_eq!(outcome.unwrap(), Outcome::Completed);
    }

    runtime.shutdown().await.unwrap();
    sound_records(&place, &session).await;
}

/// Whoever sends waits for the turn, so the process that has the session must be the one that is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_sent_to_a_session_of_another_runtime_is_answered_there() {
    let place = TestHome::new();
    let (model, gate) = GatedModel::new(script(&json!(["One.", "Both."])));
    let holder = open(&place, model).await;
    let visitor = open(&place, RecordingModel::new(script(&json!([])))).await;
    let held = holder.session("a").await.unwrap();
    let sending = sends(&held, "one");
    gate.reached().await;
    let visited = visitor.session("a").await.unwrap();

    let visiting = sends(&visited, "two");
    let input = longhaul_protocol::Input::new(
        longhaul_protocol::InputId::generate(),
        "three",
        longhaul_protocol::JoinMode::Join,
    );
    visited.put(input, None).await.unwrap();
    while held.state().await.unwrap().inbox_through < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    gate.open();
    gate.open();

    assert_eq!(sending.await.unwrap().unwrap().text, "Both.");
    assert_eq!(visiting.await.unwrap().unwrap().text, "Both.", "the visitor gets the outcome, too");
    visitor.shutdown().await.unwrap();
    holder.shutdown().await.unwrap();
    sound_records(&place, &held).await;
}
