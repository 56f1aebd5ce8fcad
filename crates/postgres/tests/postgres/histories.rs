//! N1, N4: a checker of histories. Nodes take and lose leases and append while answers are lost, connections are ended and the server crashes; what
//! they were told is compared with what the streams hold, against the model of one stream with one writer at a time.
//!
//! `LONGHAUL_SEEDS` sets how many histories are played, `LONGHAUL_SEED` the first seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_journal::conformance::read_all;
use longhaul_journal::{Append, Error, Journal, Lease};
use longhaul_postgres::PostgresOptions;
use longhaul_protocol::{Hash, NewRecord, Note, Record, Seq, SessionId, SessionRecord, StreamName};
use longhaul_testkit::{SeededRandom, StopMode};

use crate::database::TestDatabase;

const NODES: u64 = 3;
const STREAMS: u64 = 3;
const OPERATIONS: u64 = 30;
/// Faults in one history.
const FAULTS: u64 = 20;
const LEASE_EXPIRY: Duration = Duration::from_millis(60);

/// What a node was told about one append.
#[derive(Debug, Clone)]
enum Told {
    /// Committed, with the position and the hash.
    Committed(Seq, Hash),
    /// Refused: it must not be there.
    Refused,
    /// A record with the same key is there, at this position.
    Duplicate(Seq),
    /// No answer: it may be there, once.
    Unknown,
}

/// One append of a history.
#[derive(Debug, Clone)]
struct Attempt {
    stream: usize,
    /// In the body of the record; retries of the same input have it again.
    name: String,
    /// The token under which it was appended.
    token: Option<u64>,
    told: Told,
}

type History = Arc<Mutex<Vec<Attempt>>>;

fn note(name: &str, token: Option<u64>) -> NewRecord {
    SessionRecord::Note(Note::new(format!("{name} {}", token.unwrap_or(0)))).encode()
}

async fn attempt(
    journal: &dyn Journal,
    history: &History,
    stream: usize,
    name: String,
    append: Append,
    token: Option<u64>,
) -> Told {
    let told = match journal.append(append).await {
        Ok(records) => Told::Committed(records[0].seq, records[0].hash),
        Err(Error::Duplicate { seq, .. }) => Told::Duplicate(seq),
        Err(Error::Unreachable { .. }) => Told::Unknown,
        Err(Error::Conflict { .. } | Error::Fenced { .. }) => Told::Refused,
        Err(error) => panic!("{name}: {error:?}"),
    };
    history.lock().unwrap().push(Attempt { stream, name, token, told: told.clone() });
    told
}

/// One node: it takes leases, appends under them, puts inputs with keys, and forgets what it held now and then.
async fn play_node(
    journal: Arc<dyn Journal>,
    streams: Vec<StreamName>,
    inboxes: Vec<StreamName>,
    history: History,
    node: u64,
    seed: u64,
) {
    let mut random = SeededRandom::from_seed(seed.wrapping_mul(31).wrapping_add(node));
    let mut leases: BTreeMap<usize, Lease> = BTreeMap::new();
    for number in 0..OPERATIONS {
        let place = usize::try_from(random.below(STREAMS)).unwrap();
        let name = format!("n{node}o{number}");
        match random.below(10) {
            0 => drop(leases.remove(&place)),
            1 => tokio::time::sleep(Duration::from_millis(random.below(100))).await,
            2..=4 => {
                let record = note(&name, None).with_key(&name);
                let append = Append::to(&inboxes[place]).record(record);
                let inbox = place + streams.len();
                // A client that got no answer puts the same input again, under the same key.
                while let Told::Unknown =
                    attempt(&*journal, &history, inbox, name.clone(), append.clone(), None).await
                {
                }
            }
            _ => {
                let lease = match leases.get(&place) {
                    Some(lease) => lease.clone(),
                    None => match journal.acquire_lease(&streams[place]).await {
                        Ok(lease) => leases.entry(place).or_insert(lease).clone(),
                        Err(Error::Held { .. } | Error::Unreachable { .. }) => continue,
                        Err(error) => panic!("{error:?}"),
                    },
                };
                let token = Some(lease.token);
                let mut append = Append::under(&lease).record(note(&name, token));
                if random.below(2) == 0
                    && let Ok(head) = journal.head(&streams[place]).await
                {
                    append = append.expecting(head.seq);
                }
                if !matches!(
                    attempt(&*journal, &history, place, name, append, token).await,
                    Told::Committed(..)
                ) {
                    leases.remove(&place);
                }
            }
        }
    }
}

/// What is wrong with a stream, given what the nodes were told.
fn violations(place: usize, records: &[Record], history: &[Attempt]) -> Vec<String> {
    let mut found = Vec::new();
    let held: Vec<(String, u64)> = records
        .iter()
        .map(|record| match SessionRecord::decode(record) {
            Ok(SessionRecord::Note(note)) => {
                let (name, token) = note.text.split_once(' ').unwrap();
                (name.to_owned(), token.parse().unwrap())
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
    let streams: Vec<StreamName> = (0..STREAMS).map(|_| StreamName::session(SessionId::generate())).collect();
    let inboxes: Vec<StreamName> = (0..STREAMS).map(|_| StreamName::inbox(SessionId::generate())).collect();
    let history = History::default();
    let options = PostgresOptions { lease_expiry: LEASE_EXPIRY, ..PostgresOptions::default() };
    let mut nodes = Vec::new();
    for node in 0..NODES {
        let journal: Arc<dyn Journal> = Arc::new(database.open_with(options.clone()).await.unwrap());
        nodes.push(tokio::spawn(play_node(
            journal,
            streams.clone(),
            inboxes.clone(),
            history.clone(),
            node,
            seed,
        )));
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

    // The last answer to be lost may be the first one that the reader gets.
    let reader = match database.try_open().await {
        Ok(reader) => reader,
        Err(_) => database.try_open().await.unwrap(),
    };
    let history = history.lock().unwrap().clone();
    for (place, stream) in streams.iter().chain(&inboxes).enumerate() {
        let found = violations(place, &read_all(&reader, stream).await, &history);
        assert!(found.is_empty(), "seed {seed}, {stream}: {found:#?}\n{history:#?}");
    }
    let acknowledged = history.iter().filter(|attempt| matches!(attempt.told, Told::Committed(..))).count();
    assert!(acknowledged > 0, "seed {seed}: nothing was written");
    assert!(reader.verify().await.unwrap().is_sound(), "seed {seed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn random_faults_lose_nothing_and_repeat_nothing() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (first, count) = (number("LONGHAUL_SEED", 1), number("LONGHAUL_SEEDS", 50));
    let database = TestDatabase::behind_proxy();
    for seed in first..first + count {
        println!("LONGHAUL_SEED={seed} LONGHAUL_SEEDS=1");
        play_history(&database, seed).await;
    }
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
    assert!(
        found(&[record(1, "a", 1), record(2, "b", 2), record(3, "e", 2)], &sound)
            .contains("e came from nowhere")
    );
}
