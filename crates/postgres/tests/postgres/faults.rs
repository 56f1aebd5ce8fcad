//! N4: a database that ends connections, restarts or crashes loses nothing that was acknowledged, and repeats nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longhaul_journal::conformance::read_all;
use longhaul_journal::{Append, Error, Journal, Lease};
use longhaul_protocol::{NewRecord, Note, Record, SessionId, SessionRecord, StreamName};
use longhaul_testkit::{PostgresServer, StopMode};

use crate::database::TestDatabase;

const TERMINATE: &str =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'longhaul'";

fn note(text: &str) -> NewRecord {
    SessionRecord::Note(Note::new(text)).encode()
}

fn texts(records: &[Record]) -> Vec<String> {
    let text = |record: &Record| match SessionRecord::decode(record) {
        Ok(SessionRecord::Note(note)) => note.text,
        other => panic!("not a note: {other:?}"),
    };
    records.iter().map(text).collect()
}

/// Appends numbers, each after the last, until it is told to stop. Returns how many were acknowledged.
async fn write_numbers(journal: Arc<dyn Journal>, lease: Lease, stop: Arc<AtomicBool>) -> u64 {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let append = Append::under(&lease).expecting(number).record(note(&number.to_string()));
        let records = journal.append(append).await.unwrap_or_else(|error| panic!("append {number}: {error}"));
        assert_eq!(records[0].seq, number + 1);
        number += 1;
    }
    number
}

/// Runs writers while `fault` is done to the server some times, and checks what they wrote.
async fn check_writers(database: &TestDatabase, times: usize, fault: impl Fn()) {
    let journal: Arc<dyn Journal> = Arc::new(database.try_open().await.unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let streams: Vec<StreamName> = (0..8).map(|_| StreamName::session(SessionId::generate())).collect();
    let mut writers = Vec::new();
    for stream in &streams {
        let lease = journal.acquire_lease(stream).await.unwrap();
        writers.push(tokio::spawn(write_numbers(journal.clone(), lease, stop.clone())));
    }
    for _ in 0..times {
        let heads = || async { journal.head(&streams[0]).await.unwrap().seq };
        let before = heads().await;
        let since = Instant::now();
        // The writers are at work before each fault.
        while heads().await < before + 3 {
            assert!(since.elapsed() < Duration::from_secs(60), "the writers stand still");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::task::block_in_place(&fault);
    }
    stop.store(true, Ordering::Relaxed);

    for (writer, stream) in writers.into_iter().zip(&streams) {
        let acknowledged = writer.await.unwrap();
        let expected: Vec<String> = (0..acknowledged).map(|number| number.to_string()).collect();
        assert_eq!(texts(&read_all(&*journal, stream).await), expected);
    }
    let report = journal.verify().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_whose_connections_are_ended_are_settled() {
    let database = TestDatabase::of(PostgresServer::alone());

    check_writers(&database, 20, || drop(database.sql(TERMINATE))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_survive_a_crash_of_the_server() {
    let database = TestDatabase::of(PostgresServer::alone());

    check_writers(&database, 4, || {
        database.server.stop(StopMode::Immediate);
        database.server.start();
    })
    .await;
}

/// The answer of each tenth append or so is lost after its commit.
#[tokio::test(flavor = "multi_thread")]
async fn appends_whose_answers_are_lost_are_settled_by_reading() {
    let database = TestDatabase::behind_proxy();
    let proxy = database.proxy.as_ref().unwrap();

    check_writers(&database, 60, || proxy.lose_next_answer()).await;

    assert!(proxy.lost_answers() >= 30, "{} answers were lost", proxy.lost_answers());
}

/// A lease whose answer is lost is not lost to its process until it expires.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_whose_answer_is_lost_is_acquired_all_the_same() {
    let database = TestDatabase::behind_proxy();
    let journal = database.try_open().await.unwrap();
    let stream = StreamName::session(SessionId::generate());

    database.proxy.as_ref().unwrap().lose_next_answer();
    let lease = journal.acquire_lease(&stream).await.unwrap();
    let appended = journal.append(Append::under(&lease).record(note("mine"))).await;

    assert_eq!(database.proxy.as_ref().unwrap().lost_answers(), 1);
    assert!(appended.is_ok(), "{appended:?}");
}

/// The same where the process holds a lease in another database that has the same token.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_in_another_database_is_not_taken_for_the_one_whose_answer_is_lost() {
    let (database, other) = (TestDatabase::behind_proxy(), TestDatabase::new());
    let (journal, elsewhere) = (database.try_open().await.unwrap(), other.try_open().await.unwrap());
    let held = elsewhere.acquire_lease(&StreamName::session(SessionId::generate())).await.unwrap();
    let stream = StreamName::session(SessionId::generate());

    database.proxy.as_ref().unwrap().lose_next_answer();
    let lease = journal.acquire_lease(&stream).await.unwrap();

    assert_eq!(
        lease.token,
        held.token + 1,
        "the one whose answer was lost had the token of the other database"
    );
}

/// The caller learns what keeps it from saving, and everything goes on when the server is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_named_and_waited_for() {
    let database = TestDatabase::of(PostgresServer::alone());
    let journal = database.try_open().await.unwrap();
    let stream = StreamName::session(SessionId::generate());
    journal.append(Append::to(&stream).record(note("before"))).await.unwrap();
    database.server.stop(StopMode::Fast);

    let read = journal.head(&stream).await.unwrap_err();
    let waiting = {
        let append = Append::to(&stream).record(note("meanwhile"));
        async { journal.append(append).await }
    };
    let (appended, ()) =
        tokio::join!(waiting, async { tokio::task::block_in_place(|| database.server.start()) });

    assert!(matches!(read, Error::Unreachable { .. }) && read.may_pass(), "{read:?}");
    assert!(read.to_string().starts_with("not saved: can't reach postgres://"), "{read}");
    assert_eq!(appended.unwrap()[0].seq, 2);
}

/// J2: whatever else it did meanwhile, a writer whose lease was taken over can't append.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_was_cut_off_is_fenced_when_it_comes_back() {
    let database = TestDatabase::of(PostgresServer::alone());
    let open = || async {
        let options = longhaul_postgres::PostgresOptions {
            lease_expiry: Duration::from_millis(200),
            ..longhaul_postgres::PostgresOptions::default()
        };
        database.open_with(options).await.unwrap()
    };
    let (stale, rival) = (open().await, open().await);
    let stream = StreamName::session(SessionId::generate());
    let old = stale.acquire_lease(&stream).await.unwrap();
    stale.append(Append::under(&old).record(note("mine"))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    let new = rival.acquire_lease(&stream).await.unwrap();
    database.sql(TERMINATE);

    let late = stale.append(Append::under(&old).record(note("late"))).await;
    rival.append(Append::under(&new).record(note("theirs"))).await.unwrap();

    assert!(matches!(late, Err(Error::Fenced { .. })), "{late:?}");
    assert_eq!(texts(&read_all(&rival, &stream).await), ["mine", "theirs"]);
}

/// J1: what the operator of the database has set for other programs doesn't weaken an acknowledgement.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_waits_for_the_disk_whatever_the_default_of_the_database_is() {
    let database = TestDatabase::new();
    database.sql(&format!("ALTER DATABASE {} SET synchronous_commit = off", database.name));
    database
        .sql(&format!("ALTER DATABASE {} SET default_transaction_isolation = 'serializable'", database.name));
    let journal = database.try_open().await.unwrap();
    database.sql(
        "CREATE TABLE longhaul.seen (setting text);
         CREATE FUNCTION longhaul.see() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO longhaul.seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER see AFTER INSERT ON longhaul.record DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION longhaul.see()",
    );
    let stream = StreamName::session(SessionId::generate());

    journal.append(Append::to(&stream).record(note("one"))).await.unwrap();

    assert_eq!(database.sql("SELECT DISTINCT setting FROM longhaul.seen"), "on");
}
