//! Embeddings: made while a session is idle, used by `recall`, and on the statement.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Config, Runtime, StatementBy, StatementQuery, Watched};
use longhaul_protocol::{EventKind, SessionRecord};
use longhaul_testkit::{EmbeddingManner, EmbeddingServer, TestHome, records_of};
use serde_json::{Value, json};

use crate::{eventually, script};

fn config(place: &TestHome, server: &EmbeddingServer) -> Config {
    let mut config = place.config();
    config.settings.memory.extract_at_tokens = 0;
    config.settings.memory.consolidate_at_items = 0;
    config.settings.memory.embedding_model = Some("custom/small".to_owned());
    config.settings.model.base_url = Some(server.base_url.clone());
    config
}

/// In the first turn of a session the model notes something, in the second it recalls.
fn answers() -> Value {
    let call = json!({"name": "recall", "arguments": {"query": "Where is my doctor?", "scope": "memory"}});
    json!(["Noted.", {"calls": [call]}, "There."])
}

/// What `recall` showed in a session.
async fn shown(runtime: &Runtime, session: &longhaul_agent::Session) -> String {
    let records = records_of(&*runtime.journal(), session.id().unwrap()).await;
    let content = |record: &longhaul_protocol::Record| match SessionRecord::decode(record) {
        Ok(SessionRecord::ToolFinished(finished)) => Some(finished.content),
        _ => None,
    };
    records.iter().find_map(content).unwrap()
}

/// Y13, B4: what was said gets its vectors while the session is idle, another session finds it by its meaning, and the calls stand on the
/// statement.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_embedded_while_idle_and_recalled_in_other_words() {
    let place = TestHome::new();
    let server = EmbeddingServer::start(EmbeddingManner::Well(8));
    let model = Arc::new(script(&answers()));
    let runtime = Runtime::with_model(config(&place, &server), model).await.unwrap();
    let told = runtime.session("a").await.unwrap();
    told.send("The physician sits in Oak Street.").await.unwrap();
    assert_eq!(server.asked().len(), 0, "no turn waits for it");

    runtime.set_check_interval(Duration::from_millis(5));
    runtime.start_idle().await.unwrap();
    let stream = longhaul_protocol::StreamName::session(told.id().unwrap());
    eventually("the session is embedded", || async {
        runtime.journal().unembedded(&stream, "custom/small", 1).await.unwrap().is_empty()
    })
    .await;
    runtime.stop_idle().await;
    let session = runtime.session("b").await.unwrap();
    session.send("hello").await.unwrap();
    session.send("Go and see.").await.unwrap();

    let shown = shown(&runtime, &session).await;
    assert!(shown.contains("Oak Street"), "{shown}");
    let query = StatementQuery { by: StatementBy::Model, ..StatementQuery::default() };
    let items = runtime.statement(&query).await.unwrap().items;
    let embedding = items.iter().find(|item| item.name == "custom/small").unwrap();
    assert!(embedding.calls >= 2 && embedding.input > 0, "{embedding:?}");
    runtime.shutdown().await.unwrap();
}

/// Y13: a server that fails costs a warning, and neither the answer nor the other jobs.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_embedding_server_is_a_warning() {
    let place = TestHome::new();
    let server = EmbeddingServer::start(EmbeddingManner::Failing);
    let model = Arc::new(script(&answers()));
    let runtime = Runtime::with_model(config(&place, &server), model).await.unwrap();
    let mut everybody = runtime.watch();
    runtime.session("a").await.unwrap().send("My doctor sits in Oak Street.").await.unwrap();

    runtime.set_check_interval(Duration::from_millis(5));
    runtime.start_idle().await.unwrap();
    let is_warning = |watched: &Watched| match watched {
        Watched::Event(event) => {
            matches!(&event.kind, EventKind::Warning { code, .. } if code == "memory_embeddings")
        }
        _ => false,
    };
    let mut warnings = 0;
    let mut count_warnings = || {
        warnings += std::iter::from_fn(|| everybody.try_next()).filter(is_warning).count();
        warnings
    };
    let since = std::time::Instant::now();
    while count_warnings() == 0 {
        assert!(since.elapsed() < Duration::from_secs(30), "no warning after {:?}", server.asked());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    runtime.stop_idle().await;
    let session = runtime.session("b").await.unwrap();
    session.send("hello").await.unwrap();
    session.send("Go and see.").await.unwrap();

    let shown = shown(&runtime, &session).await;
    assert!(shown.contains("Oak Street") && shown.contains("only words were searched"), "{shown}");
    assert_eq!(count_warnings(), 1);
    runtime.shutdown().await.unwrap();
}
