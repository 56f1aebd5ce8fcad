//! What the journal on PostgreSQL costs, against a bare conditional insert over as many connections in the same run.
//! `scripts/bench` runs it; the figures with their machine are in `docs/performance.md`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_journal::{Append, Cluster, Home, Journal};
use longhaul_postgres::{DatabaseAddress, PostgresJournal};
use longhaul_protocol::{NewRecord, Note, SessionId, SessionRecord, StreamName};
use longhaul_testkit::PostgresServer;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls};

const BODY: usize = 400;
const SECONDS: f64 = 3.0;
/// As many as the journal has for appends.
const CONNECTIONS: usize = 4;
const BATCH: usize = 100;

/// A head, a record, and the function that checks the one and inserts the other.
const FLOOR: &str = "
    CREATE SCHEMA floor;
    CREATE TABLE floor.stream (id bigint PRIMARY KEY, head bigint NOT NULL) WITH (fillfactor = 60);
    CREATE TABLE floor.record (stream bigint, seq bigint, body text, PRIMARY KEY (stream, seq));
    CREATE FUNCTION floor.append(stream_id bigint, expected bigint, text text) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE floor.stream SET head = head + 1 WHERE id = stream_id AND head = expected;
        IF NOT FOUND THEN RETURN false; END IF;
        INSERT INTO floor.record VALUES (stream_id, expected + 1, text);
        RETURN true;
    END $$";

/// Sessions as the list has them, each with a stream and an inbox. An id has 26 letters.
const IDLE_SESSIONS: &str = "
    INSERT INTO longhaul.session (id, key, trashed, pinned)
        SELECT '01JDFJM' || lpad(n::text, 19, '0'), 'idle:' || n, false, false FROM generate_series(1, 10000) AS n;
    INSERT INTO longhaul.stream (name) SELECT family || '/' || id FROM longhaul.session, unnest(ARRAY['session', 'inbox']) AS family;
    ANALYZE";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let server = PostgresServer::durable();
    let name = server.create_database();
    let home = tempfile::tempdir().expect("a temporary folder");
    let address = DatabaseAddress::parse(&server.url(&name)).expect("an address");
    let home = Home::create(home.path()).expect("a home");
    let journal = Arc::new(PostgresJournal::open(&address, &home).await.expect("a journal"));
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let (client, connection) =
            tokio_postgres::connect(&server.url(&name), NoTls).await.expect("a connection");
        tokio::spawn(connection);
        clients.push(Arc::new(client));
    }
    clients[0].batch_execute(FLOOR).await.expect("the floor");
    println!(
        "{:<28} {:>10} {:>9} {:>9}   {:>10} {:>9} {:>9}   {:>6}",
        "", "floor/s", "p50 ms", "p99 ms", "journal/s", "p50 ms", "p99 ms", "ratio"
    );
    let mut next = 0;
    for sessions in [1, 8, 32, 128] {
        // Warm, then floor and journal in turn, so that a slow moment hits both.
        run_floor(&clients, sessions, &mut next, 0.3).await;
        run_journal(&journal, sessions, 0.3).await;
        let (mut floor, mut own) = (Latencies::default(), Latencies::default());
        for _ in 0..3 {
            floor.add(run_floor(&clients, sessions, &mut next, SECONDS / 3.0).await);
            own.add(run_journal(&journal, sessions, SECONDS / 3.0).await);
        }
        let ratio = own.per_second() / floor.per_second();
        let verdict = if ratio >= 0.6 { "met" } else { "MISSED" };
        println!(
            "{:<28} {floor}   {own}   {ratio:>6.2}   target ≥ 0.6 {verdict}",
            format!("{sessions} sessions")
        );
    }
    let batches = run_batches(&journal).await;
    println!("{:<28} {batches:>10.0}/s", format!("records, {BATCH} an append"));
    clients[0].batch_execute(IDLE_SESSIONS).await.expect("sessions");
    for due in [0_u32, 100, 1_000] {
        let looks = run_looks(&journal, &clients[0], due).await;
        println!("{:<28} {looks}", format!("10,000 sessions, {due} due"));
    }
    journal.close().await;
}

/// What a node does each second: it looks for sessions that are due.
async fn run_looks(journal: &PostgresJournal, client: &Client, due: u32) -> Latencies {
    let mark = "DELETE FROM longhaul.due; INSERT INTO longhaul.due SELECT id, 1 FROM longhaul.session LIMIT";
    client.batch_execute(&format!("{mark} {due}; ANALYZE longhaul.due")).await.expect("marks");
    let (since, mut looks) = (Instant::now(), Latencies::default());
    while since.elapsed().as_secs_f64() < 1.0 {
        let begun = Instant::now();
        let found = journal.due_sessions().await.expect("the sessions that are due");
        looks.times.push(begun.elapsed());
        assert_eq!(u32::try_from(found.len()), Ok(due));
    }
    looks.total = since.elapsed();
    looks
}

#[derive(Default)]
struct Latencies {
    times: Vec<Duration>,
    total: Duration,
}

impl Latencies {
    fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.total += other.total;
    }

    #[allow(clippy::cast_precision_loss, reason = "a count of appends")]
    fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.total.as_secs_f64()
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.times.clone();
        sorted.sort();
        let at = |share: usize| {
            sorted.get(sorted.len() * share / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        write!(f, "{:>10.0} {:>9.2} {:>9.2}", self.per_second(), at(50), at(99))
    }
}

/// Each session appends one record after the other, over the connection that its number gives.
async fn run_floor(clients: &[Arc<Client>], sessions: usize, next: &mut i64, seconds: f64) -> Latencies {
    let since = Instant::now();
    let mut writers = Vec::new();
    for place in 0..sessions {
        *next += 1;
        let (client, id) = (Arc::clone(&clients[place % clients.len()]), *next);
        client.execute("INSERT INTO floor.stream VALUES ($1, 0)", &[&id]).await.expect("a stream");
        writers.push(tokio::spawn(async move {
            let (body, mut head, mut times) = ("x".repeat(BODY), 0_i64, Vec::new());
            while since.elapsed().as_secs_f64() < seconds {
                let begun = Instant::now();
                let parameters: [(&(dyn ToSql + Sync), Type); 3] =
                    [(&id, Type::INT8), (&head, Type::INT8), (&body, Type::TEXT)];
                client.query_typed("SELECT floor.append($1, $2, $3)", &parameters).await.expect("an append");
                head += 1;
                times.push(begun.elapsed());
            }
            times
        }));
    }
    collect(writers, since).await
}

async fn run_journal(journal: &Arc<PostgresJournal>, sessions: usize, seconds: f64) -> Latencies {
    let since = Instant::now();
    let mut writers = Vec::new();
    for _ in 0..sessions {
        let journal = Arc::clone(journal);
        let stream = StreamName::session(SessionId::generate());
        let lease = journal.acquire_lease(&stream).await.expect("a lease");
        writers.push(tokio::spawn(async move {
            let (mut head, mut times) = (0, Vec::new());
            while since.elapsed().as_secs_f64() < seconds {
                let begun = Instant::now();
                journal
                    .append(Append::under(&lease).expecting(head).record(note()))
                    .await
                    .expect("an append");
                head += 1;
                times.push(begun.elapsed());
            }
            times
        }));
    }
    collect(writers, since).await
}

async fn collect(writers: Vec<tokio::task::JoinHandle<Vec<Duration>>>, since: Instant) -> Latencies {
    let mut all = Latencies::default();
    for writer in writers {
        all.times.extend(writer.await.expect("a writer"));
    }
    all.total = since.elapsed();
    all
}

async fn run_batches(journal: &PostgresJournal) -> f64 {
    let stream = StreamName::session(SessionId::generate());
    let (since, mut records) = (Instant::now(), 0_u32);
    while since.elapsed().as_secs_f64() < 2.0 {
        let append = (0..BATCH).fold(Append::to(&stream), |append, _| append.record(note()));
        records += u32::try_from(journal.append(append).await.expect("an append").len()).unwrap_or(0);
    }
    f64::from(records) / since.elapsed().as_secs_f64()
}

fn note() -> NewRecord {
    SessionRecord::Note(Note::new("x".repeat(BODY - 11))).encode()
}
