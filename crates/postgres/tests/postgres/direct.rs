//! J9: the suite of every engine, word for word, on PostgreSQL.

use longhaul_journal::conformance::read_all;
use longhaul_journal::{Append, Journal};
use longhaul_protocol::{Note, SessionId, SessionRecord, StreamName};

use crate::database::TestDatabase;

longhaul_journal::conformance_tests! { TestDatabase::new() }

/// J9: of several nodes that find an empty database, one makes the tables and the others wait.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_together_make_one_journal() {
    let database = TestDatabase::new();

    let opened = tokio::join!(
        database.try_open(),
        database.try_open(),
        database.try_open(),
        database.try_open(),
        database.try_open()
    );

    let (one, two, three, four, five) = opened;
    for journal in [one, two, three, four, five] {
        assert!(journal.is_ok(), "{:?}", journal.err());
    }
    assert_eq!(database.sql("SELECT count(*) FROM longhaul.format"), "1");
}

/// J9: a database of an older version is brought up to date and loses nothing.
#[tokio::test]
async fn a_database_of_the_format_before_is_brought_up_to_date() {
    let database = TestDatabase::new();
    let stream = StreamName::session(SessionId::generate());
    let append = |text: &str| Append::to(&stream).record(SessionRecord::Note(Note::new(text)).encode());
    let before = database.try_open().await.unwrap();
    before.append(append("one")).await.unwrap();
    before.close().await;
    database.sql(
        "DROP FUNCTION longhaul.append_record; UPDATE longhaul.format SET format = 3 WHERE application = 'longhaul journal'",
    );

    let after = database.try_open().await.unwrap();
    after.append(append("two")).await.unwrap();

    assert_eq!(database.sql("SELECT format FROM longhaul.format"), "4");
    assert_eq!(read_all(&after, &stream).await.len(), 2);
    assert!(after.verify().await.unwrap().is_sound());
}
