//! J9: the suite of every engine, word for word, on PostgreSQL.

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
