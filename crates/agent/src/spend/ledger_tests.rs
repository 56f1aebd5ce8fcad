use longhaul_journal::{Home, SqliteJournal};

use super::*;

/// B3: a session that made no call in this process still has a further call, also after many others.
#[tokio::test(flavor = "multi_thread")]
async fn a_background_call_of_an_unknown_session_leaves_room_for_one_like_it() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(SqliteJournal::open(&Home::create(folder.path()).unwrap()).await.unwrap());
    let ledger = SpendLedger::open(journal, SpendLimits::default());
    let (own, last) = (CallBound::new(1_000, 2_000, None), CallBound::new(50_000, 8_000, None));
    let session = SessionId::from_bits;

    let unknown = ledger.background(session(0), own);
    for number in 0..=MAX_REMEMBERED_CALLS as u128 {
        ledger.remember_call(session(number), last);
    }
    let known = (0..=MAX_REMEMBERED_CALLS as u128)
        .filter(|number| ledger.background(session(*number), own) == Urgency::Background { further: last })
        .count();

    assert_eq!(unknown, Urgency::Background { further: own });
    assert_eq!(known, MAX_REMEMBERED_CALLS, "one more forgets one, not all");
}
