//! Appends to the ledger that are on disk although the journal reported an error. `spend.rs` has the table.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::{Config, Runtime, RuntimeBuilder};
use longhaul_journal::{Error, Journal};
use longhaul_model::Model;
use longhaul_protocol::{AttemptId, Outcome, SpendSource};
use longhaul_testkit::{FaultyJournal, TestHome};
use serde_json::json;

use crate::eventually;
use crate::spend::{costing, first_prompt_tokens, ledger_attempts, limited, priced, total};

fn lost_connection() -> Error {
    Error::Io { path: "journal".into(), reason: "lost the connection".to_owned() }
}

/// A runtime whose journal reports an error after it has committed the first append with such a record.
async fn open_ambiguous(
    config: Config,
    place: &TestHome,
    kind: &str,
    model: Arc<dyn Model>,
) -> (Runtime, Arc<FaultyJournal>) {
    let journal = FaultyJournal::of_ledger(place.journal().await, None);
    journal.fail_after_commit(kind, lost_connection());
    let runtime = RuntimeBuilder::new(config).model(model).journal(journal.clone()).open().await.unwrap();
    (runtime, journal)
}

/// B1: an append that the journal reports as failed, but that is on disk, is neither repeated nor waited for. The limit has
/// room for one call at a time.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_failed_after_its_commit_counts_once() {
    let limit = first_prompt_tokens().await + 2_000;
    for (tokens_per_day, kind) in
        [(limit, "spend_reserved"), (limit, "spend_settled"), (0, "spend_reserved"), (0, "spend_settled")]
    {
        let place = TestHome::in_memory();
        let config = limited(&place, |limits| limits.tokens_per_day = tokens_per_day);
        let model = Arc::new(priced(&json!([costing(100)])));
        let (runtime, journal) = open_ambiguous(config, &place, kind, model).await;

        let session = runtime.session("a").await.unwrap();
        let sent = tokio::time::timeout(Duration::from_secs(60), session.send("hello")).await;

        let context = format!("{kind}, tokens_per_day {tokens_per_day}");
        let ended = sent.unwrap_or_else(|_| panic!("{context}: the call waits for itself")).unwrap();
        assert_eq!(ended.outcome, Outcome::Completed, "{context}: {ended:?}");
        eventually("the settlement", || async { ledger_attempts(&*journal).await.1.len() == 1 }).await;
        runtime.shutdown().await.unwrap();
        assert!(!journal.fails_after_commit(), "{context}");
        let journal = place.journal().await;
        let (reserved, settled) = ledger_attempts(&*journal).await;
        assert_eq!((reserved.len(), settled.len()), (1, 1), "{context}");
        assert_eq!(total(&*journal).await, (1, 0.000_1), "{context}");
        journal.close().await;
    }
}

/// B1: a reservation that is on disk although the journal reported an error is given back if its turn no longer waits, and if
/// the error is one that does not pass. Otherwise what it holds would be lost to all until this process ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_that_no_one_waits_for_any_more_is_given_back() {
    for error in [lost_connection(), Error::Closed] {
        let place = TestHome::in_memory();
        let config = limited(&place, |limits| limits.tokens_per_day = 1_000_000);
        let journal = FaultyJournal::of_ledger(place.journal().await, None);
        journal.fail_after_commit("spend_reserved", error.clone());
        let model = Arc::new(priced(&json!([costing(100), costing(100)])));
        let builder = RuntimeBuilder::new(config).model(model).journal(journal.clone());
        let runtime = builder.open().await.unwrap();
        let session = runtime.session("a").await.unwrap();
        let sending = tokio::spawn({
            let session = session.clone();
            async move { session.send("hello").await }
        });
        eventually("the append", || async { !journal.fails_after_commit() }).await;
        // With an error that does not pass, the turn may have failed already.
        let _ = session.cancel().await;
        let _ = sending.await.unwrap();

        runtime.session("b").await.unwrap().send("hello").await.unwrap();

        runtime.shutdown().await.unwrap();
        let journal = place.journal().await;
        let (reserved, settled) = ledger_attempts(&*journal).await;
        let attempts: Vec<AttemptId> = settled.iter().map(|(attempt, _)| *attempt).collect();
        assert_eq!(reserved, attempts, "{error:?}");
        assert!(settled.iter().all(|(_, source)| *source != SpendSource::Bound), "{error:?}: {settled:?}");
        journal.close().await;
    }
}
