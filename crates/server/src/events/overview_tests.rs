//! The overview over time, on a real runtime. Only the clock is given.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use longhaul_agent::RuntimeBuilder;
use longhaul_model::{Capabilities, Prices, ScriptedModel};
use longhaul_testkit::{FaultyJournal, TestHome};

use super::*;

/// A runtime with the sessions `a` and `b`. Each has cost a cent.
async fn used_runtime(home: &TestHome) -> (Runtime, Arc<FaultyJournal>) {
    let answer = r#"{"text": "Fine.", "usage": {"input": 10000, "output": 0}}"#;
    let prices = Some(Prices { input: 1.0, output: 1.0, cached: None, written: None });
    let extract = r#"{"calls": [{"name": "write_extracted", "arguments": {"items": []}}], "usage": {"input": 10000, "output": 0}}"#;
    let model = ScriptedModel::from_json(&format!("[{answer}, {answer}, {answer}, {extract}]")).unwrap();
    let model = model.with_capabilities(Capabilities { prices, ..Capabilities::default() });
    let journal = FaultyJournal::new(home.journal().await, None);
    let builder = RuntimeBuilder::new(home.config()).model(Arc::new(model)).journal(journal.clone());
    let runtime = builder.open().await.unwrap();
    for key in ["a", "b"] {
        runtime.session(key).await.unwrap().send("hello").await.unwrap();
    }
    (runtime, journal)
}

fn costs(messages: &[SessionMessage]) -> Vec<(&str, f64)> {
    messages.iter().map(|message| (&*message.key, message.cost_today)).collect()
}

/// H3: at midnight, what sessions at rest have cost today is nothing, for those who follow and for those who come.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_rest_has_cost_nothing_on_the_next_day() {
    let home = TestHome::new();
    let (runtime, _) = used_runtime(&home).await;
    let mut sessions = Sessions::default();
    let first = sessions.look(&runtime, now()).await.unwrap();
    let again = sessions.look(&runtime, now()).await.unwrap();

    let tomorrow = At(now().0 + DAY_MS);
    let changed = sessions.look(&runtime, tomorrow).await.unwrap();
    let after = sessions.look(&runtime, tomorrow).await.unwrap();

    assert_eq!((costs(&first), again), (vec![("a", 0.01), ("b", 0.01)], vec![]));
    assert_eq!((costs(&changed), after), (vec![("a", 0.0), ("b", 0.0)], vec![]));
    let snapshot = String::from_utf8(sessions.snapshot().to_vec()).unwrap();
    assert_eq!(snapshot.matches(r#""cost_today":0.0"#).count(), 2, "{snapshot}");
    runtime.shutdown().await.unwrap();
}

/// H3: a look that fails forgets nothing. The next one tells the changes, and only these.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_fails_is_made_up_for_by_the_next() {
    let home = TestHome::new();
    let (runtime, journal) = used_runtime(&home).await;
    let mut sessions = Sessions::default();
    sessions.look(&runtime, now()).await.unwrap();
    runtime.session("b").await.unwrap().send("more").await.unwrap();
    runtime.session("a").await.unwrap().release().await;
    longhaul_journal::delete_session(&*journal, "a").await.unwrap();

    let reason = "unplugged".to_owned();
    journal.refuse_reads(Some(longhaul_journal::Error::Io { path: "journal".into(), reason }));
    let failed = sessions.look(&runtime, now()).await;
    journal.refuse_reads(None);
    let changed = sessions.look(&runtime, now()).await.unwrap();

    assert!(failed.is_err());
    assert_eq!(costs(&changed), [("b", 0.02), ("a", 0.01)]);
    assert_eq!((changed[0].state.is_some(), changed[1].state.is_none()), (true, true), "a is deleted");
    runtime.shutdown().await.unwrap();
}

/// H3, B2: what memory spends on a session at rest is in its cost, as the statement counts it.
#[tokio::test(flavor = "multi_thread")]
async fn what_memory_spends_on_a_session_is_in_its_cost() {
    let home = TestHome::new();
    let (runtime, _) = used_runtime(&home).await;
    let mut sessions = Sessions::default();
    sessions.look(&runtime, now()).await.unwrap();

    runtime.session("a").await.unwrap().extract().await.unwrap().unwrap();
    let changed = sessions.look(&runtime, now()).await.unwrap();

    assert_eq!(costs(&changed), [("a", 0.02)]);
    runtime.shutdown().await.unwrap();
}
