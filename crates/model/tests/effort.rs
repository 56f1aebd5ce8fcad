//! `model.effort` against servers: what they refuse is left out at once, and this is remembered.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::sync::Arc;

use longhaul_model::{Effort, ModelSpec, Models, Request};
use longhaul_testkit::wire::{MemoryTransport, Reply, Script};
use serde_json::{Value, json};

/// A server that refuses `reasoning_effort`.
fn without_effort() -> Arc<MemoryTransport> {
    Arc::new(MemoryTransport::new(Script::by(|seen| {
        let body: Value = serde_json::from_slice(&seen.body).unwrap();
        match body.get("reasoning_effort") {
            Some(_) => Reply::error(400, r#"{"error":{"message":"Unknown parameter: reasoning_effort"}}"#),
            None => Reply::stream("data: [DONE]\n\n"),
        }
    })))
}

fn wanted(name: &str, effort: Effort) -> ModelSpec {
    let base_url = Some("http://10.0.0.1:8080/v1".to_owned());
    ModelSpec { name: name.to_owned(), base_url, effort: Some(effort), ..ModelSpec::default() }
}

fn efforts(transport: &MemoryTransport) -> Vec<Value> {
    let body = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["reasoning_effort"].clone();
    transport.requests().iter().map(|seen| body(&seen.body)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_the_effort_is_answered_without_it_and_that_is_remembered() {
    let home = tempfile::tempdir().unwrap();
    let transport = without_effort();
    let ask = |effort| {
        let models = Models::at(home.path()).unwrap().through(transport.clone());
        let model = models.open(&wanted("custom/m", effort)).unwrap();
        async move {
            model
                .ask(
                    Request::default(),
                    &longhaul_model::CallPermit::unreserved(longhaul_protocol::Cause::Turn),
                )
                .await
                .map(drop)
        }
    };

    ask(Effort::High).await.unwrap();
    ask(Effort::High).await.unwrap();
    ask(Effort::Low).await.unwrap();

    let expected = [json!("high"), json!(null), json!(null), json!("low"), json!(null)];
    assert_eq!(efforts(&transport), expected);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_reason_gets_no_effort() {
    let home = tempfile::tempdir().unwrap();
    let transport = without_effort();
    let models = Models::at(home.path()).unwrap().through(transport.clone());

    let model = models.open(&wanted("openai/gpt-4.1", Effort::High)).unwrap();
    model
        .ask(Request::default(), &longhaul_model::CallPermit::unreserved(longhaul_protocol::Cause::Turn))
        .await
        .map(drop)
        .unwrap();

    assert_eq!(efforts(&transport), [json!(null)]);
}
