//! A session in small, so that the trait is proved by use: a counter that takes "add n" from its inbox, in processes
//! that fight for its lease, ring each other and are killed. The sum is always right, each input counted once.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::child::{self, Part};
use crate::random::TestRandom;
use longhaul_journal::{
    Append, Error, Home, Journal, Lease, Page, SqliteJournal, name_session, put, resolve,
};
use longhaul_protocol::{
    InboxRecord, Input, InputId, InputTaken, JoinMode, Record, Seq, SessionId, SessionRecord, StreamName,
};

const KEY: &str = "toy:counter";

/// What folding the session's records gives.
#[derive(Debug, Default)]
struct Counter {
    sum: u64,
    head: Seq,
    inbox_through: Seq,
    counted: Vec<InputId>,
}

impl Counter {
    fn apply(&mut self, record: &Record) {
        self.head = record.seq;
        if let Ok(SessionRecord::InputTaken(taken)) = SessionRecord::decode(record) {
            self.sum += taken.text.strip_prefix("add ").unwrap().parse::<u64>().unwrap();
            self.inbox_through = taken.inbox_through;
            self.counted.push(taken.id);
        }
    }

    async fn load(journal: &dyn Journal, session: SessionId) -> Self {
        let mut counter = Self::default();
        loop {
            let page =
                journal.read(&StreamName::session(session), counter.head + 1, Page::default()).await.unwrap();
            if page.is_empty() {
                return counter;
            }
            page.iter().for_each(|record| counter.apply(record));
        }
    }

    /// Takes everything that waits in the inbox, one append an input.
    async fn take(&mut self, journal: &dyn Journal, lease: &Lease, session: SessionId) -> Result<(), Error> {
        let inbox = StreamName::inbox(session);
        loop {
            let waiting =
                journal.read(&inbox, self.inbox_through + 1, Page { records: 8, bytes: 1 << 20 }).await?;
            if waiting.is_empty() {
                return Ok(());
            }
            for record in waiting {
                let Ok(InboxRecord::Input(input)) = InboxRecord::decode(&record) else {
                    panic!("{record:?}")
                };
                let taken = InputTaken::of(input, record.seq);
                let append = Append::under(lease)
                    .expecting(self.head)
                    .record(SessionRecord::InputTaken(taken).encode());
                journal.append(append).await?.iter().for_each(|record| self.apply(record));
            }
        }
    }
}

async fn add(journal: &dyn Journal, session: SessionId, number: u64, key: &str) {
    let (id, text) = (InputId::generate(), format!("add {number}"));
    let input = InboxRecord::Input(Input::new(id, text, JoinMode::Join));
    put(journal, session, input.encode().with_key(key)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part that the tests below play in several processes"]
async fn count() {
    let journal = SqliteJournal::open(&child::home()).await.unwrap();
    let session = name_session(&journal, KEY).await.unwrap();
    let stream = StreamName::session(session);
    let fallback = Duration::from_millis(std::env::var("FALLBACK_MS").unwrap().parse().unwrap());
    let mut rings = journal.wake_signals().await.unwrap();
    loop {
        let lease = match journal.acquire_lease(&stream).await {
            Ok(lease) => lease,
            Err(Error::Held { .. }) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        println!("holds {}", lease.token);
        let mut counter = Counter::load(&journal, session).await;
        while counter.take(&journal, &lease, session).await.is_ok() {
            // Now and then the lease goes to whoever wants it.
            if fallback < Duration::from_secs(1) && counter.head % 13 == 5 {
                journal.release_lease(&lease).await.unwrap();
                tokio::time::sleep(Duration::from_millis(30)).await;
                break;
            }
            let _ = tokio::time::timeout(fallback, rings.next()).await;
        }
    }
}

fn start(home: &Home, fallback: Duration) -> Part {
    Part::start_with(
        "toy_session::count",
        home.folder(),
        &[("FALLBACK_MS", &fallback.as_millis().to_string())],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sum_is_right_whoever_is_killed() {
    let seed = TestRandom::any_seed();
    let mut random = TestRandom::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = name_session(&journal, KEY).await.unwrap();
    let mut parts: Vec<Part> = (0..2).map(|_| start(&home, Duration::from_millis(50))).collect();
    let mut expected = 0;

    for number in 1..=120 {
        add(&journal, session, number, &format!("input {number}")).await;
        if random.below(3) == 0 {
            // A client that did not hear the answer asks again.
            add(&journal, session, number, &format!("input {number}")).await;
        }
        expected += number;
        if random.below(8) == 0 {
            let victim = random.below(2);
            tokio::time::sleep(Duration::from_millis(random.below(40) as u64)).await;
            parts[victim].kill();
            parts[victim] = start(&home, Duration::from_millis(50));
        }
    }

    let counter = settled(&journal, session, expected).await;
    drop(parts);
    assert_eq!(counter.sum, expected, "seed {seed}: {counter:?}");
    let once: HashSet<InputId> = counter.counted.iter().copied().collect();
    assert_eq!((once.len(), counter.counted.len()), (120, 120), "seed {seed}: each input is counted once");
    assert!(journal.verify().await.unwrap().is_sound(), "seed {seed}");
}

/// The fallback is an hour here, so whatever is counted was rung for.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_from_another_process_is_rung_for() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = name_session(&journal, KEY).await.unwrap();
    let mut part = start(&home, Duration::from_secs(3_600));
    part.hear("holds").unwrap();

    for number in 1..=20 {
        add(&journal, session, number, &number.to_string()).await;
    }

    let counter = settled(&journal, session, 210).await;
    assert_eq!((counter.sum, counter.counted.len()), (210, 20));
    assert_eq!(resolve(&journal, KEY).await.unwrap().inbox_head, 20);
}

/// The counter once it has come to the sum, or as it is when a minute has passed.
async fn settled(journal: &dyn Journal, session: SessionId, expected: u64) -> Counter {
    let since = Instant::now();
    loop {
        let counter = Counter::load(journal, session).await;
        if counter.sum >= expected || since.elapsed() > Duration::from_secs(60) {
            return counter;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
