//! The scheduler as a program has it: started, stopped, and asked how it is doing.

use std::time::{Duration, Instant};

use longhaul_agent::housekeeping::IdleStatus;
use longhaul_agent::{Error, Runtime, Watched, Watcher};
use longhaul_journal::accept;
use longhaul_protocol::{EventKind, InboxRecord};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::json;

use crate::{at_best, disk_full, eventually, open, open_faulty, said, script};

const INTERVAL: Duration = Duration::from_millis(5);
const OFF: IdleStatus = IdleStatus { running: false, last_check: None, trouble: None };

/// Waits for so many more checks.
async fn checks(runtime: &Runtime, count: usize) {
    for _ in 0..count {
        let last = runtime.idle_status().last_check;
        eventually("there is a check", || async { runtime.idle_status().last_check != last }).await;
    }
}

/// The warnings so far that concern all sessions.
fn warnings(watcher: &mut Watcher) -> Vec<(String, String)> {
    let seen = std::iter::from_fn(|| watcher.try_next());
    let warning = |watched| match watched {
        Watched::Event(event) if event.session.is_empty() => match event.kind {
            EventKind::Warning { code, text } => Some((code, text)),
            _ => None,
        },
        _ => None,
    };
    seen.filter_map(warning).collect()
}

/// Y4: started once by `start`, or alone; `open` starts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn opening_starts_nothing_and_starting_does() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;
    assert_eq!(runtime.idle_status(), OFF);

    runtime.start().await.unwrap();
    runtime.start().await.unwrap();
    runtime.start_idle().await.unwrap();

    assert_eq!(runtime.idle_status(), IdleStatus { running: true, ..OFF });
    runtime.stop_idle().await;
    assert_eq!(runtime.idle_status(), OFF);
    runtime.shutdown().await.unwrap();
}

/// Y4, T12: whoever is at a terminal has a session of their own; the turns of others are not begun there.
#[tokio::test(flavor = "multi_thread")]
async fn started_alone_it_begins_no_turn_of_sessions_that_nobody_holds() {
    let place = TestHome::new();
    let model = RecordingModel::new(script(&json!(["Yes.", "Never."])));
    let first = open(&place, model.clone()).await;
    let session = first.session("a").await.unwrap();
    session.send("hello").await.unwrap();
    first.shutdown().await.unwrap();
    let second = open(&place, model.clone()).await;
    second.set_check_interval(INTERVAL);
    let record = InboxRecord::Input(said("more")).encode();
    accept(&*second.journal(), session.id().unwrap(), record).await.unwrap();

    second.start_idle().await.unwrap();
    checks(&second, 10).await;

    assert_eq!(model.requests().len(), 1);
    second.shutdown().await.unwrap();
}

/// Y4: it stops at once, also from a wait of any length, and can be started again.
#[tokio::test(flavor = "multi_thread")]
async fn it_stops_at_once_from_a_wait_of_any_length() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;
    for interval in [Duration::from_secs(3_600), Duration::MAX] {
        runtime.set_check_interval(interval);
        runtime.start_idle().await.unwrap();

        tokio::time::timeout(Duration::from_secs(30), runtime.stop_idle()).await.unwrap();

        assert!(!runtime.idle_status().running);
        runtime.start_idle().await.unwrap();
    }
    runtime.shutdown().await.unwrap();
    at_best(Duration::from_secs(3), "the end of one that waits", || async {
        let place = TestHome::new();
        let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;
        runtime.set_check_interval(Duration::MAX);
        runtime.start_idle().await.unwrap();

        let began = Instant::now();
        runtime.shutdown().await.unwrap();

        assert!(!runtime.idle_status().running);
        began.elapsed()
    })
    .await;
}

/// Y3: the interval can change while running, and does so for the wait that is under way.
#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_interval_ends_a_long_wait() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;
    runtime.set_check_interval(Duration::MAX);
    runtime.start_idle().await.unwrap();

    runtime.set_check_interval(INTERVAL);

    checks(&runtime, 3).await;
    // As short as none at all is as short as it gets.
    runtime.set_check_interval(Duration::ZERO);
    checks(&runtime, 3).await;
    runtime.shutdown().await.unwrap();
}

/// Y4: gone before `shutdown` returns, also after a failed start.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_after_the_end_fails_and_leaves_nothing() {
    let place = TestHome::new();
    let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;
    runtime.shutdown().await.unwrap();

    let started = [runtime.start_idle().await, runtime.start().await];

    assert!(started.iter().all(|started| matches!(started, Err(Error::Suspended))), "{started:?}");
    assert_eq!(runtime.idle_status(), OFF);
    runtime.stop_idle().await;
    runtime.shutdown().await.unwrap();
}

/// Y4: sessions that can't be listed: told once per change, and shown in the status.
#[tokio::test(flavor = "multi_thread")]
async fn that_the_sessions_can_not_be_listed_is_told_once_and_shown_in_the_status() {
    let place = TestHome::new();
    let (runtime, journal) = open_faulty(&place, RecordingModel::new(script(&json!([])))).await;
    runtime.set_check_interval(INTERVAL);
    let mut watcher = runtime.watch();
    journal.refuse_listings(Some(disk_full()));
    runtime.start_idle().await.unwrap();
    checks(&runtime, 5).await;

    let reason = disk_full().to_string();
    let told = ("sessions_unlisted".to_owned(), format!("can't list the sessions: {reason}"));
    assert_eq!(runtime.idle_status().trouble, Some(reason));
    // The daily look at old sessions may tell of the same trouble, in its own words and its own time.
    let of_listing = |watcher: &mut _| -> Vec<(String, String)> {
        warnings(watcher).into_iter().filter(|(code, _)| code == "sessions_unlisted").collect()
    };
    assert_eq!(of_listing(&mut watcher), std::slice::from_ref(&told));

    journal.refuse_listings(None);
    eventually("it is over", || async { runtime.idle_status().trouble.is_none() }).await;
    journal.refuse_listings(Some(disk_full()));
    eventually("it is back", || async { runtime.idle_status().trouble.is_some() }).await;
    checks(&runtime, 2).await;

    assert_eq!(of_listing(&mut watcher), [told]);
    runtime.shutdown().await.unwrap();
}
