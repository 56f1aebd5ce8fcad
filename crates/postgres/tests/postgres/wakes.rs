//! N3: wakes are hints. They reach another machine through the database where that works, and nothing depends on them.

use std::time::Duration;

use longhaul_journal::conformance::append_notes;
use longhaul_journal::{Home, Journal, SearchQuery, WakeSignal};
use longhaul_postgres::{DatabaseAddress, PostgresJournal};
use longhaul_protocol::{SessionId, StreamName};

use crate::database::TestDatabase;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A journal of another machine: it has a home of its own, so that no socket of this one can be reached from there.
async fn open_elsewhere(database: &TestDatabase, home: &tempfile::TempDir) -> PostgresJournal {
    let address = DatabaseAddress::parse(&database.url()).unwrap();
    PostgresJournal::open(&address, &Home::create(home.path()).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_from_another_machine_comes_through_the_database() {
    let (database, other_home) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let holder = database.try_open().await.unwrap();
    let visitor = open_elsewhere(&database, &other_home).await;
    let streams: Vec<StreamName> = (0..300).map(|_| StreamName::session(SessionId::generate())).collect();
    let mut wakes = holder.wake_signals().await.unwrap();
    for stream in &streams {
        holder.acquire_lease(stream).await.unwrap();
    }
    assert!(holder.delivers_wakes().await.unwrap());

    for stream in &streams {
        visitor.wake_holder(stream).await.unwrap();
    }

    let mut heard = Vec::new();
    for _ in &streams {
        match tokio::time::timeout(TEST_TIMEOUT, wakes.next()).await.expect("a wake") {
            WakeSignal::Stream(stream) => heard.push(stream),
            other => panic!("{other:?}"),
        }
    }
    heard.sort();
    let mut expected = streams;
    expected.sort();
    assert_eq!(heard, expected);
}

/// PgBouncer in transaction mode takes LISTEN and delivers nothing: the journal says so, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_delivers_no_notifications_is_noticed() {
    let database = TestDatabase::behind_pooler("transaction");
    let journal = database.try_open().await.unwrap();
    let stream = StreamName::session(SessionId::generate());
    let _wakes = journal.wake_signals().await.unwrap();
    append_notes(&journal, &stream, &["one"]).await;

    let delivers = journal.delivers_wakes().await.unwrap();

    assert!(!delivers);
    assert_eq!(journal.head(&stream).await.unwrap().seq, 1);
}

/// J10: what one machine erases is gone from the search index of another.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_erased_on_one_machine_is_not_found_on_another() {
    let (database, other_home) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let (here, there) = (database.try_open().await.unwrap(), open_elsewhere(&database, &other_home).await);
    let stream = StreamName::session(SessionId::generate());
    append_notes(&here, &stream, &["the password is xyzzyword", "plain"]).await;
    let found = async |journal: &PostgresJournal, words: &str| {
        journal.search(&SearchQuery::new(words, 10)).await.unwrap().hits.len()
    };
    assert_eq!((found(&here, "xyzzyword").await, found(&there, "xyzzyword").await), (1, 1));
    let index = other_home.path().join("cache/search.db");

    here.erase(&[(stream, 1)], "leaked").await.unwrap();

    assert_eq!((found(&here, "xyzzyword").await, found(&there, "xyzzyword").await), (0, 0));
    assert_eq!(found(&there, "plain").await, 1);
    there.close().await;
    let bytes = std::fs::read(index).unwrap();
    assert!(!bytes.windows(9).any(|window| window == b"xyzzyword"), "its words are still in the file");
}
