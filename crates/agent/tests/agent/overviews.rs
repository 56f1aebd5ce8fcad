//! What a session is doing, for lists of many sessions.

use std::sync::Arc;

use longhaul_agent::{SessionActivity, session_overview};
use longhaul_journal::Journal;
use longhaul_protocol::{Outcome, PermissionMode};
use longhaul_testkit::TestHome;
use serde_json::json;

use crate::{open_faulty, script};

/// S2: a list of sessions at rest reads their last records, however long they are.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_rest_is_not_replayed_for_a_list() {
    let place = TestHome::new();
    let answers: Vec<_> = (0..20).map(|_| json!("Fine.")).collect();
    let (runtime, journal) = open_faulty(&place, Arc::new(script(&json!(answers)))).await;
    let session = runtime.session("a").await.unwrap();
    for _ in 0..20 {
        session.send("hello").await.unwrap();
    }
    session.release().await;
    let entry = journal.session("a").await.unwrap().unwrap();
    let before = journal.records_read();

    let overview = session_overview(&*journal, &entry).await.unwrap();

    assert_eq!(journal.records_read() - before, 2, "of {}", entry.head.seq);
    assert_eq!((overview.activity, overview.last_outcome), (SessionActivity::Idle, Some(Outcome::Completed)));
    runtime.shutdown().await.unwrap();
}

/// T9: why the last turn failed is known, also after records that came since.
#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_failed_turn_is_found_behind_later_records() {
    let place = TestHome::new();
    let (runtime, journal) = open_faulty(&place, Arc::new(script(&json!([])))).await;
    let session = runtime.session("a").await.unwrap();
    let ended = session.send("hello").await.unwrap();
    let overview = async || {
        let entry = journal.session("a").await.unwrap().unwrap();
        (entry.head.seq, session_overview(&*journal, &entry).await.unwrap())
    };

    let (head, at_once) = overview().await;
    session.set_permission_mode(PermissionMode::Plan).await.unwrap();
    session.compact().await.ok();
    let (later_head, later) = overview().await;

    assert!(ended.error.is_some() && later_head > head, "{ended:?}");
    assert_eq!((at_once.last_outcome, &at_once.failure), (Some(Outcome::Failed), &ended.error));
    assert_eq!((later.last_outcome, &later.failure), (Some(Outcome::Failed), &ended.error));
    runtime.shutdown().await.unwrap();
}
