//! A wake can't be lost: not while a session leaves memory, not to another process, not to a file that can't be read for a moment.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Config, Runtime};
use longhaul_journal::Journal;
use longhaul_model::Model;
use longhaul_protocol::StreamName;
use longhaul_testkit::{RecordingModel, TaskProcesses, TestHome};
use serde_json::{Value, json};

use crate::{eventually, open, script};

const LONG_ENOUGH: Duration = Duration::from_secs(60);

fn build() -> Value {
    let command = "while [ ! -e go ]; do sleep 0.02; done; echo built";
    let arguments = json!({"command": command, "run_in_background": true});
    json!([{"calls": [{"name": "exec", "arguments": arguments}]}, "It runs.", "It is built."])
}

async fn open_with(place: &TestHome, model: Arc<dyn Model>, change: impl FnOnce(&mut Config)) -> Runtime {
    let mut config = place.config();
    change(&mut config);
    Runtime::with_model(config, model).await.unwrap()
}

/// K6: the session is about to leave memory when the task ends: the 300 ms of gathering outlast what is left of its rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_not_leave_memory_while_it_gathers_ends() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&build()));
    let runtime =
        open_with(&place, model.clone(), |config| config.rest_time = Duration::from_millis(100)).await;
    let session = runtime.session("a").await.unwrap();
    session.send("build it").await.unwrap();

    std::fs::write(place.work().join("go"), "").unwrap();
    let settled = tokio::time::timeout(LONG_ENOUGH, session.settle()).await;

    assert!(settled.is_ok(), "the end was recorded, and no turn ever began with it");
    assert_eq!(model.requests().len(), 3);
    runtime.shutdown().await.unwrap();
}

/// K6: whoever stays for tasks learns that they have ended, also where another process was the one to record that.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_settles_hears_of_an_end_that_another_process_has_recorded() {
    let place = TestHome::new();
    let waits = open_with(&place, RecordingModel::new(script(&build())), |config| {
        config.rest_time = Duration::from_millis(50);
    })
    .await;
    let session = waits.session("a").await.unwrap();
    session.send("build it").await.unwrap();
    let settling = tokio::spawn({
        let session = session.clone();
        async move { session.settle().await }
    });
    let other = open(&place, RecordingModel::new(script(&build()))).await;
    let held = other.session("a").await.unwrap();
    while held.wake().await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    std::fs::write(place.work().join("go"), "").unwrap();
    eventually("the other one has answered", || async { held.state().await.unwrap().turn_count == 2 }).await;
    let settled = tokio::time::timeout(LONG_ENOUGH, settling).await;

    assert!(settled.is_ok(), "it waits for ever, though nothing runs and nothing is open");
    waits.shutdown().await.unwrap();
    other.shutdown().await.unwrap();
}

/// K6: the task ends in the moment in which another process has the session, which then leaves without a look.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_comes_while_another_process_has_the_session_wakes_it_afterwards() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&build()));
    let runtime =
        open_with(&place, model.clone(), |config| config.rest_time = Duration::from_millis(50)).await;
    let session = runtime.session("a").await.unwrap();
    session.send("build it").await.unwrap();
    let journal = place.journal().await;
    let stream = StreamName::session(session.id().unwrap());
    let lease = loop {
        match journal.acquire_lease(&stream).await {
            Ok(lease) => break lease,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };

    std::fs::write(place.work().join("go"), "").unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    journal.release_lease(&lease).await.unwrap();
    let woken = tokio::time::timeout(LONG_ENOUGH, async {
        while session.state().await.unwrap().turn_count < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });

    assert!(woken.await.is_ok(), "nobody looked again");
    runtime.shutdown().await.unwrap();
    journal.close().await;
}

/// K6, K9: what can't be looked at for a moment is looked at again, as the comment in `record_ends` says.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_could_not_be_read_at_once_is_recorded_later() {
    let place = TestHome::new();
    let command = "echo > begun; while true; do sleep 1; done";
    let arguments = json!({"command": command, "run_in_background": true});
    let answers = json!([{"calls": [{"name": "exec", "arguments": arguments}]}, "It runs.", "It is lost."]);
    let runtime = open(&place, RecordingModel::new(script(&answers))).await;
    let session = runtime.session("a").await.unwrap();
    session.send("go").await.unwrap();
    eventually("the command runs", || async { place.file("begun").ends_with('\n') }).await;
    let keeper = TaskProcesses::of_first(&place.home()).keeper;
    let task = session.state().await.unwrap().tasks.all()[0].id();
    let status = place.home().join("tasks").join(task.to_string()).join("status.json");

    std::fs::write(&status, r#"{"format": 9999}"#).unwrap();
    std::process::Command::new("kill").args(["-9", &keeper.to_string()]).status().unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    std::fs::remove_file(&status).unwrap();
    let recorded = tokio::time::timeout(LONG_ENOUGH, async {
        while session.state().await.unwrap().tasks.running().next().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });

    assert!(recorded.await.is_ok(), "nobody looked again");
    runtime.shutdown().await.unwrap();
}
