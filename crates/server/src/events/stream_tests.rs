//! Catching up, on a real runtime.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::time::Duration;

use axum::body::{Body, to_bytes};
use longhaul_agent::Runtime;
use longhaul_model::ScriptedModel;
use longhaul_testkit::TestHome;
use tokio::sync::watch;

use super::super::body::written_body;
use super::*;

/// Answers of so many bytes, which make more parts than a body holds.
const ANSWER_BYTES: usize = 200 << 10;
const ANSWERS: usize = 12;

fn seqs(body: &[u8]) -> Vec<Seq> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

/// H6: a follower that does not read holds up nobody who catches up, and gets every event once when it reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_does_not_read_gives_its_place_to_others() {
    let home = TestHome::new();
    let answers: Vec<String> = (0..ANSWERS).map(|_| "x".repeat(ANSWER_BYTES)).collect();
    let model = ScriptedModel::from_json(&serde_json::json!(answers).to_string()).unwrap();
    let runtime = Runtime::with_model(home.config(), Arc::new(model)).await.unwrap();
    let session = runtime.session("a").await.unwrap();
    for _ in 0..ANSWERS {
        session.send("more").await.unwrap();
    }
    let head = session.state().await.unwrap().head;
    let (_shutdown, stopped) = watch::channel(false);
    let places = Arc::new(Semaphore::new(1));
    let catch_up = || -> Body {
        let (mut writer, body) = written_body(stopped.clone(), Duration::from_secs(60));
        let (session, places) = (session.clone(), places.clone());
        tokio::spawn(async move { write_recorded(&mut writer, &session, 0, head, &places).await.is_ok() });
        body
    };

    let slow = catch_up();
    while places.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let quick = tokio::time::timeout(Duration::from_secs(30), to_bytes(catch_up(), usize::MAX)).await;
    let slow = to_bytes(slow, usize::MAX).await.unwrap();

    let quick = quick.expect("the place of the slow one is free").unwrap();
    assert!(quick.len() > ANSWERS * ANSWER_BYTES, "{}", quick.len());
    assert_eq!(seqs(&quick), seqs(&slow));
    assert!(quick == slow && seqs(&slow).is_sorted());
    runtime.shutdown().await.unwrap();
}
