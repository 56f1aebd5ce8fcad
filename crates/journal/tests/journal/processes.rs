//! J2, J7: processes that share one home.

use std::time::{Duration, Instant};

use crate::child::{self, Part};
use longhaul_journal::{Append, Error, Home, Journal, Page, SqliteJournal, SqliteOptions};
use longhaul_protocol::{NewRecord, Note, SessionId, SessionRecord, StreamName};
use rustix::process::Signal;

const EXPIRY: Duration = Duration::from_millis(400);
/// Far longer than any test takes: what happens within it was not waited for.
const LONG: Duration = Duration::from_secs(600);

fn note(text: &str) -> NewRecord {
    SessionRecord::Note(Note::new(text)).encode()
}

/// The one stream of these tests.
fn stream() -> StreamName {
    StreamName::session(SessionId::from_bits(7))
}

async fn open(home: &Home, lease_expiry: Duration) -> SqliteJournal {
    let options = SqliteOptions { lease_expiry, ..SqliteOptions::default() };
    SqliteJournal::open_with(home, options).await.unwrap()
}

fn expiry_of_part() -> Duration {
    Duration::from_millis(std::env::var("EXPIRY_MS").unwrap().parse().unwrap())
}

fn start(name: &str, home: &Home, expiry: Duration) -> Part {
    Part::start_with(name, home.folder(), &[("EXPIRY_MS", &expiry.as_millis().to_string())])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part that the tests below play in another process"]
async fn append_until_fenced() {
    let journal = open(&child::home(), expiry_of_part()).await;
    let lease = journal.acquire_lease(&stream()).await.unwrap();
    let mut head = journal.head(&stream()).await.unwrap().seq;
    loop {
        match journal.append(Append::under(&lease).expecting(head).record(note("part"))).await {
            Ok(records) => {
                head = records[0].seq;
                println!("acknowledged {head}");
            }
            Err(error @ Error::Fenced { .. }) => {
                println!("fenced {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// J2.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_stopped_past_its_expiry_and_taken_over_is_fenced() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let mut part = start("processes::append_until_fenced", &home, EXPIRY);
    for _ in 0..5 {
        part.hear("acknowledged").unwrap();
    }
    part.signal(Signal::STOP);
    let journal = open(&home, EXPIRY).await;

    let lease = take_over(&journal).await;
    let head = journal.head(&stream()).await.unwrap().seq;
    let mine = journal.append(Append::under(&lease).expecting(head).record(note("rival"))).await.unwrap();
    part.signal(Signal::CONT);
    let fenced = part.hear("fenced").expect("the stale writer learns of it");
    let after = journal.append(Append::under(&lease).expecting(mine[0].seq).record(note("rival"))).await;

    assert!(fenced.contains(&format!("process {}", std::process::id())), "it names the new holder: {fenced}");
    assert!(after.is_ok(), "nobody came between: {after:?}");
    assert!(journal.verify().await.unwrap().is_sound(), "no gap, no seq twice");
}

/// J2.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_stopped_past_its_expiry_without_a_rival_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let mut part = start("processes::append_until_fenced", &home, EXPIRY);
    part.hear("acknowledged").unwrap();

    part.signal(Signal::STOP);
    let stopped = Instant::now();
    let journal = open(&home, EXPIRY).await;
    let before = journal.head(&stream()).await.unwrap().seq;
    while stopped.elapsed() < 2 * EXPIRY {
        tokio::time::sleep(EXPIRY / 4).await;
    }
    part.signal(Signal::CONT);

    let mut last = 0;
    while last < before + 5 {
        last = part.hear("acknowledged").expect("it goes on").parse().unwrap();
    }
    part.kill();
    assert!(journal.verify().await.unwrap().is_sound());
}

/// J7: the expiry is ten minutes here, so whoever gets the lease did not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_a_dead_process_is_taken_over_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let mut part = start("processes::append_until_fenced", &home, LONG);
    part.hear("acknowledged").unwrap();
    let journal = open(&home, LONG).await;

    let while_it_lives = journal.acquire_lease(&stream()).await;
    part.kill();
    let when_it_is_dead = journal.acquire_lease(&stream()).await;

    assert!(matches!(while_it_lives, Err(Error::Held { .. })), "{while_it_lives:?}");
    assert!(when_it_is_dead.is_ok(), "{when_it_is_dead:?}");
}

/// J7: a process on another machine can't be seen from here, so only expiry permits a takeover.
#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_another_machine_is_taken_over_when_it_expires() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let expiry = Duration::from_secs(2);
    let journal = open(&home, expiry).await;
    let since = Instant::now();
    let lease = journal.acquire_lease(&stream()).await.unwrap();
    rusqlite::Connection::open(home.journal_file())
        .unwrap()
        .execute_batch("UPDATE leases SET holder = json_set(holder, '$.host', 'elsewhere', '$.pid', 999999)")
        .unwrap();

    let early = journal.acquire_lease(&stream()).await;
    let early_enough = since.elapsed() < expiry;
    let taken = take_over(&journal).await;

    assert!(matches!(early, Err(Error::Held { .. })) || !early_enough, "{early:?}");
    assert!(since.elapsed() >= expiry - Duration::from_millis(100), "not before it expired");
    assert!(taken.token > lease.token);
}

/// However many begin with a new home at the same time, in one process or several, they share one journal.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_home_can_be_opened_by_many_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(folder.path()).unwrap();
        let opening: Vec<_> = (0..6)
            .map(|number| {
                let home = home.clone();
                tokio::spawn(async move {
                    let journal = SqliteJournal::open(&home).await.unwrap();
                    journal.append(Append::to(&stream()).record(note(&number.to_string()))).await.unwrap();
                    journal
                })
            })
            .collect();
        for task in opening {
            task.await.unwrap().close().await;
        }
        let journal = open(&home, LONG).await;
        assert_eq!(journal.head(&stream()).await.unwrap().seq, 6);
        let left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("partial")), "{left:?}");
    }
}

/// J7.
#[tokio::test(flavor = "multi_thread")]
async fn reading_goes_on_while_another_process_writes() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let mut part = start("processes::append_until_fenced", &home, LONG);
    part.hear("acknowledged").unwrap();
    let journal = open(&home, LONG).await;

    let mut seen = 0;
    while seen < 20 {
        let page = journal.read(&stream(), seen + 1, Page::default()).await.unwrap();
        seen += page.len() as u64;
    }

    part.kill();
    assert!(journal.verify().await.unwrap().is_sound());
}

async fn take_over(journal: &SqliteJournal) -> longhaul_journal::Lease {
    let since = Instant::now();
    loop {
        match journal.acquire_lease(&stream()).await {
            Ok(lease) => return lease,
            Err(Error::Held { .. }) if since.elapsed() < 150 * EXPIRY => {
                tokio::time::sleep(EXPIRY / 10).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}
