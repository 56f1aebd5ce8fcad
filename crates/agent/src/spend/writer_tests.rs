use longhaul_journal::{Home, SqliteJournal};

use super::super::limits::{LimitKind, SpendLimit};
use super::*;

/// B1: while the total of a session is read, and if that fails, others still judge by what the ledger says.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_read_of_a_sessions_total_leaves_the_ledger_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(SqliteJournal::open(&Home::create(folder.path()).unwrap()).await.unwrap());
    let limit = SpendLimit { kind: LimitKind::CostPerSession, max: 1 };
    let limits = SpendLimits { limits: vec![limit], soft: 0.0 };
    let mut opened = LedgerFold::default();
    opened.opened = Some((1, 1));
    let fold = Arc::new(Mutex::new(Some(opened.clone())));
    let holder = Arc::new(LiveHolder::new());
    let mut writer = LedgerWriter::new(journal.clone(), Arc::new(limits), Arc::clone(&fold), holder);
    writer.loads.push((vec![SessionId::from_bits(7)], oneshot::channel().0));
    journal.close().await;

    let loaded = writer.load().await;

    assert!(loaded.is_err());
    assert_eq!(*lock(&fold), Some(opened));
}
