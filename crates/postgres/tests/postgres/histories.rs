//! N1, N4: a checker of histories. Nodes take and lose leases and append while answers are lost, connections are ended and the server crashes; what
//! they were told is compared with what the streams hold, against the model of one stream with one writer at a time.
//!
//! The nodes are tasks of one process here; in `process_histories` they are processes, with the faults that only a process can have.
//!
//! `LONGHAUL_SEEDS` sets how many histories are played, `LONGHAUL_SEED` the first seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_journal::conformance::read_all;
use longhaul_journal::{Append, Error, Journal, Lease, Page};
use longhaul_postgres::PostgresOptions;
use longhaul_protocol::{Hash, NewRecord, Note, Record, Seq, SessionId, SessionRecord, StreamName};
use longhaul_testkit::{SeededRandom, StopMode};

use crate::database::TestDatabase;

pub(crate) const NODES: u64 = 3;
pub(crate) const STREAMS: u64 = 3;
const OPERATIONS: u64 = 30;
/// Faults in one history.
const FAULTS: u64 = 20;
pub(crate) const LEASE_EXPIRY: Duration = Duration::from_millis(60);

/// What a node was told about one append.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// Committed, with the position and the hash.
    Committed(Seq, Hash),
    /// Refused: it must not be there.
    Refused,
    /// A record with the same key is there, at this position.
    Duplicate(Seq),
    /// No answer: it may be there, once.
    Unknown,
    /// Not an append: this record was read at this position, and must stay.
    Read(Seq, Hash),
}

/// One append or read of a history.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) stream: usize,
    /// In the body of the record; retries of the same input have it again.
    pub(crate) name: String,
    /// The token under which it was appended.
    pub(crate) token: Option<u64>,
    pub(crate) told: Told,
}

/// Where a node writes down what it tries and what it is told.
pub(crate) trait HistoryLog: Send + Sync {
    /// Called before the append is sent: a process that is killed then was told nothing.
    fn begin(&self, stream: usize, name: &str, token: Option<u64>);
    fn end(&self, attempt: Attempt);
}

#[derive(Default)]
struct MemoryLog(Mutex<Vec<Attempt>>);

impl HistoryLog for MemoryLog {
    fn begin(&self, _: usize, _: &str, _: Option<u64>) {}

    fn end(&self, attempt: Attempt) {
        self.0.lock().unwrap().push(attempt);
    }
}

/// What the nodes of one history write to and read from.
#[derive(Clone)]
pub(crate) struct HistoryStreams {
    /// Written under leases.
    pub(crate) sessions: Vec<StreamName>,
    /// Written by every node, with keys.
    pub(crate) inboxes: Vec<StreamName>,
}

impl HistoryStreams {
    pub(crate) fn generate() -> Self {
        Self {
            sessions: (0..STREAMS).map(|_| StreamName::session(SessionId::generate())).collect(),
            inboxes: (0..STREAMS).map(|_| StreamName::inbox(SessionId::generate())).collect(),
        }
    }

    /// All of them. The place of one is its number in the history.
    pub(crate) fn all(&self) -> impl Iterator<Item = &StreamName> {
        self.sessions.iter().chain(&self.inboxes)
    }
}

/// The name and the token, and bytes that make the tables grow.
fn note(name: &str, token: Option<u64>) -> NewRecord {
    let padding = "x".repeat(1_200);
    SessionRecord::Note(Note::new(format!("{name} {} {padding}", token.unwrap_or(0)))).encode()
}

async fn attempt(
    journal: &dyn Journal,
    history: &dyn HistoryLog,
    stream: usize,
    name: String,
    append: Append,
    token: Option<u64>,
) -> Told {
    history.begin(stream, &name, token);
    let told = match journal.append(append).await {
        Ok(records) => Told::Committed(records[0].seq, records[0].hash),
        Err(Error::Duplicate { seq, .. }) => Told::Duplicate(seq),
        Err(Error::Unreachable { .. }) => Told::Unknown,
        Err(Error::Conflict { .. } | Error::Fenced { .. } | Error::DiskFull { .. }) => Told::Refused,
        Err(error) => panic!("{name}: {error:?}"),
    };
    history.end(Attempt { stream, name, token, told: told.clone() });
    told
}

/// One node: it takes leases, appends under them, puts inputs with keys, and forgets what it held now and then.
pub(crate) async fn play_node(
    journal: Arc<dyn Journal>,
    streams: HistoryStreams,
    history: Arc<dyn HistoryLog>,
    node: u64,
    seed: u64,
) {
    let HistoryStreams { sessions, inboxes } = streams;
    let mut random = SeededRandom::from_seed(seed.wrapping_mul(31).wrapping_add(node));
    let mut leases: BTreeMap<usize, Lease> = BTreeMap::new();
    for number in 0..OPERATIONS {
        let place = usize::try_from(random.below(STREAMS)).unwrap();
        let name = format!("n{node}o{number}");
        match random.below(10) {
            0 => drop(leases.remove(&place)),
            1 => tokio::time::sleep(Duration::from_millis(random.below(100))).await,
            2 => {
                let streams: Vec<&StreamName> = sessions.iter().chain(&inboxes).collect();
                let stream = usize::try_from(random.below(2 * STREAMS)).unwrap();
                if let Some(told) = read_newest(&*journal, streams[stream]).await {
                    history.end(Attempt { stream, name, token: None, told });
                }
            }
            3..=5 => put_input(&*journal, &inboxes, &*history, sessions.len() + place, name).await,
            _ => {
                let lease = match leases.get(&place) {
                    Some(lease) => lease.clone(),
                    None => match journal.acquire_lease(&sessions[place]).await {
                        Ok(lease) => leases.entry(place).or_insert(lease).clone(),
                        Err(Error::Held { .. } | Error::Unreachable { .. } | Error::DiskFull { .. }) => {
                            continue;
                        }
                        Err(error) => panic!("{error:?}"),
                    },
                };
                let token = Some(lease.token);
                let mut append = Append::under(&lease).record(note(&name, token));
                if random.below(2) == 0
                    && let Ok(head) = journal.head(&sessions[place]).await
                {
                    append = append.expecting(head.seq);
                }
                if !matches!(
                    attempt(&*journal, &*history, place, name, append, token).await,
                    Told::Committed(..)
                ) {
                    leases.remove(&place);
                }
            }
        }
    }
}

/// Reads the newest record of a stream. What one client has seen, every other one must see.
async fn read_newest(journal: &dyn Journal, stream: &StreamName) -> Option<Told> {
    let newest = async {
        let head = journal.head(stream).await?;
        let page = Page { records: 1, bytes: usize::MAX };
        Ok(journal.read(stream, head.seq.max(1), page).await?.pop())
    };
    match newest.await {
        Ok(record) => record.map(|record| Told::Read(record.seq, record.hash)),
        Err(Error::Unreachable { .. }) => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// Puts an input. A client that got no answer puts the same input again, under the same key.
pub(crate) async fn put_input(
    journal: &dyn Journal,
    inboxes: &[StreamName],
    history: &dyn HistoryLog,
    place: usize,
    name: String,
) {
    let inbox = &inboxes[place % inboxes.len()];
    let append = Append::to(inbox).record(note(&name, None).with_key(&name));
    while let Told::Unknown = attempt(journal, history, place, name.clone(), append.clone(), None).await {}
}

/// What is wrong with a stream, given what the nodes were told.
pub(crate) fn violations(place: usize, records: &[Record], history: &[Attempt]) -> Vec<String> {
    let mut found = Vec::new();
    let held: Vec<(String, u64)> = records
        .iter()
        .map(|record| match SessionRecord::decode(record) {
            Ok(SessionRecord::Note(note)) => {
                let mut words = note.text.split(' ');
                (words.next().unwrap().to_owned(), words.next().unwrap().parse().unwrap())
            }
            other => panic!("not a note: {other:?}"),
        })
        .collect();
    let mut names = BTreeSet::new();
    for (name, _) in &held {
        if !names.insert(name) {
            found.push(format!("{name} is there twice"));
        }
    }
    if !held.is_sorted_by(|(_, one), (_, other)| one <= other) {
        found.push("a writer whose lease was taken over has written".to_owned());
    }
    let here = |attempt: &&Attempt| attempt.stream == place;
    let mut allowed = BTreeSet::new();
    for Attempt { name, token, told, .. } in history.iter().filter(here) {
        let is_there = held.iter().any(|(held, by)| held == name && *by == token.unwrap_or(0));
        match told {
            Told::Committed(seq, hash) => {
                let record = records.get(usize::try_from(*seq).unwrap() - 1);
                if record.is_none_or(|record| record.hash != *hash) {
                    found.push(format!("{name} was acknowledged at {seq} and is lost"));
                }
                allowed.insert(name);
            }
            Told::Duplicate(seq) => {
                if held.get(usize::try_from(*seq).unwrap() - 1).is_none_or(|(held, _)| held != name) {
                    found.push(format!("{name} was said to be at {seq}"));
                }
                allowed.insert(name);
            }
            Told::Read(seq, hash) => {
                let record = records.get(usize::try_from(*seq).unwrap() - 1);
                if record.is_none_or(|record| record.hash != *hash) {
                    found.push(format!("entry {seq} was read and is lost"));
                }
            }
            Told::Refused if is_there => found.push(format!("{name} was refused and is there")),
            Told::Refused => {}
            Told::Unknown => drop(allowed.insert(name)),
        }
    }
    found.extend(
        held.iter()
            .filter(|(name, _)| !allowed.contains(name))
            .map(|(name, _)| format!("{name} came from nowhere")),
    );
    found
}

async fn play_history(database: &TestDatabase, seed: u64) {
    let mut random = SeededRandom::from_seed(seed);
    let streams = HistoryStreams::generate();
    let log = Arc::new(MemoryLog::default());
    let options = PostgresOptions { lease_expiry: LEASE_EXPIRY, ..PostgresOptions::default() };
    let mut nodes = Vec::new();
    for node in 0..NODES {
        let journal: Arc<dyn Journal> = Arc::new(database.open_with(options.clone()).await.unwrap());
        nodes.push(tokio::spawn(play_node(journal, streams.clone(), log.clone(), node, seed)));
    }
    // A crash takes a second, a lost answer nothing.
    let crash_at = (random.below(10) == 0).then(|| random.below(FAULTS));
    for fault in 0..FAULTS {
        tokio::time::sleep(Duration::from_millis(random.below(20))).await;
        let victim = random.below(3);
        let terminate = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'longhaul' AND pid % 3 = {victim}"
        );
        if crash_at == Some(fault) {
            tokio::task::block_in_place(|| {
                database.server.stop(StopMode::Immediate);
                database.server.start();
            });
        } else if fault % 5 == 0 {
            tokio::task::block_in_place(|| database.sql(&terminate));
        } else {
            database.proxy.as_ref().unwrap().lose_next_answer();
        }
    }
    for node in nodes {
        node.await.unwrap();
    }

    let history = log.0.lock().unwrap().clone();
    check_history(database, &streams, &history, seed).await;
}

/// Compares what nodes were told with what the streams hold.
pub(crate) async fn check_history(
    database: &TestDatabase,
    streams: &HistoryStreams,
    history: &[Attempt],
    seed: u64,
) {
    // The last answer to be lost may be the first one that the reader gets.
    let reader = match database.try_open().await {
        Ok(reader) => reader,
        Err(_) => database.try_open().await.unwrap(),
    };
    for (place, stream) in streams.all().enumerate() {
        let found = violations(place, &read_all(&reader, stream).await, history);
        assert!(found.is_empty(), "seed {seed}, {stream}: {found:#?}\n{history:#?}");
    }
    let acknowledged = history.iter().filter(|attempt| matches!(attempt.told, Told::Committed(..))).count();
    assert!(acknowledged > 0, "seed {seed}: nothing was written");
    assert!(reader.verify().await.unwrap().is_sound(), "seed {seed}");
}

/// Plays histories on one database: `LONGHAUL_SEEDS` of them, from `LONGHAUL_SEED`.
pub(crate) async fn play_seeds(play: impl AsyncFn(u64)) {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (first, count) = (number("LONGHAUL_SEED", 1), number("LONGHAUL_SEEDS", 50));
    for seed in first..first + count {
        println!("LONGHAUL_SEED={seed} LONGHAUL_SEEDS=1");
        play(seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_faults_lose_nothing_and_repeat_nothing() {
    let database = TestDatabase::behind_proxy();
    play_seeds(async |seed| play_history(&database, seed).await).await;
}

/// The checker finds each kind of violation.
#[test]
fn a_broken_history_is_found() {
    let record = |seq: Seq, name: &str, token: u64| {
        let NewRecord { kind, body, .. } = note(name, Some(token));
        let (stream, prev) = (StreamName::names(), Hash::ZERO);
        let body = longhaul_protocol::Body::Here(body);
        Record {
            stream,
            seq,
            at: longhaul_protocol::At(0),
            kind,
            key: None,
            body,
            prev,
            hash: Hash::of(name),
        }
    };
    let told = |name: &str, token: u64, told: Told| Attempt {
        stream: 0,
        name: name.to_owned(),
        token: Some(token),
        told,
    };
    let committed =
        |name: &str, token: u64, seq: Seq| told(name, token, Told::Committed(seq, Hash::of(name)));
    let sound = [
        committed("a", 1, 1),
        committed("b", 2, 2),
        told("c", 1, Told::Refused),
        told("d", 2, Told::Unknown),
    ];
    let found = |records: &[Record], history: &[Attempt]| violations(0, records, history).join("; ");

    assert_eq!(found(&[record(1, "a", 1), record(2, "b", 2)], &sound), "");
    assert_eq!(found(&[record(1, "a", 1), record(2, "b", 2), record(3, "d", 2)], &sound), "");
    assert_eq!(found(&[record(1, "a", 1)], &sound), "b was acknowledged at 2 and is lost");
    assert!(
        found(&[record(1, "a", 1), record(2, "b", 2), record(3, "b", 2)], &sound)
            .contains("b is there twice")
    );
    let late = [record(1, "a", 1), record(2, "b", 2), record(3, "c", 1)];
    assert!(found(&late, &sound).contains("a writer whose lease was taken over has written"));
    assert!(found(&late, &sound).contains("c was refused and is there"));
    let read = [committed("a", 1, 1), told("r", 1, Told::Read(2, Hash::of("b")))];
    assert_eq!(found(&[record(1, "a", 1)], &read), "entry 2 was read and is lost");
    assert!(
        found(&[record(1, "a", 1), record(2, "b", 2), record(3, "e", 2)], &sound)
            .contains("e came from nowhere")
    );
}
