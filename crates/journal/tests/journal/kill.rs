//! J1: what was acknowledged is there after `kill -9`, and nothing is half there.

use std::path::Path;
use std::time::Duration;

use crate::child::{self, Part};
use crate::random::TestRandom;
use longhaul_journal::{
    Append, Blob, Home, Journal, SearchQuery, SqliteJournal, SqliteOptions, name_session, records, resolve,
};
use longhaul_protocol::{BlobRef, CallId, Note, Record, SessionRecord, StreamName, ToolFinished};

const KEY: &str = "cli:killed";

/// How often the suite kills; `scripts/kill-journal N` sets another number.
fn rounds() -> u64 {
    std::env::var("LONGHAUL_KILLS").ok().and_then(|number| number.parse().ok()).unwrap_or(200)
}

/// A record that says which append it belongs to, where it stands in it, and of how many.
fn piece(group: u64, index: u64, of: u64, blob: &Blob, bytes: &[u8]) -> SessionRecord {
    let name = format!("{group} {index} {of}");
    let content = "x".repeat(usize::try_from(group * 37 % 900).unwrap());
    let whole =
        (index == 0).then(|| BlobRef::to(bytes, "text/plain")).filter(|whole| whole.hash == blob.hash());
    SessionRecord::ToolFinished(ToolFinished {
        whole,
        ..ToolFinished::new(CallId::generate(), &name, content)
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part that the test below plays in other processes"]
async fn append_as_fast_as_possible() {
    // A short log, so that kills hit checkpoints too.
    let options = SqliteOptions { checkpoint_pages: 40, ..SqliteOptions::default() };
    let journal = SqliteJournal::open_with(&child::home(), options).await.unwrap();
    let stream = StreamName::session(name_session(&journal, KEY).await.unwrap());
    let lease = journal.acquire_lease(&stream).await.unwrap();
    let mut head = journal.head(&stream).await.unwrap().seq;
    loop {
        let (group, of) = (head, head % 3 + 1);
        let bytes = format!("blob of {group}").into_bytes();
        let blob = Blob::new(bytes.clone());
        let pieces = (0..of).map(|index| piece(group, index, of, &blob, &bytes).encode());
        let append = pieces.fold(Append::under(&lease).expecting(head), Append::record).blob(blob.clone());
        head = journal.append(append).await.unwrap().last().unwrap().seq;
        println!("acknowledged {head}");
    }
}

#[test]
fn every_acknowledged_record_is_there_after_kill_9() {
    let seed = TestRandom::any_seed();
    let mut random = TestRandom::new(seed);
    let mut folder = tempfile::tempdir().unwrap();

    for round in 0..rounds() {
        if round % 20 == 0 {
            folder = tempfile::tempdir().unwrap();
        }
        let mut part = Part::start("kill::append_as_fast_as_possible", folder.path());
        let first = part.hear("acknowledged").expect("the part appends");
        std::thread::sleep(Duration::from_micros(random.below(25_000) as u64));
        part.kill();
        let acknowledged = part.hear_all("acknowledged").pop().unwrap_or(first).parse().unwrap();

        check(folder.path(), acknowledged, &format!("round {round} of seed {seed}"));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn check(folder: &Path, acknowledged: u64, when: &str) {
    let journal = SqliteJournal::open(&Home::existing(folder).unwrap()).await.unwrap();
    let stream = StreamName::session(resolve(&journal, KEY).await.unwrap().id);
    let head = journal.head(&stream).await.unwrap().seq;
    assert!(head >= acknowledged, "{when}: acknowledged up to {acknowledged}, there up to {head}");
    let report = journal.verify().await.unwrap();
    assert!(report.is_sound(), "{when}: {:?}", report.damage);

    let mut cursor = records(&journal, &stream, 1);
    let mut last = 0;
    while let Some(record) = cursor.next().await.unwrap() {
        let (group, index, of) = place_in_append(&record);
        assert_eq!(record.seq, group + index + 1, "{when}: an append is half there");
        assert!(group + of <= head, "{when}: the end of an append is missing");
        last = record.seq;
    }
    assert_eq!(last, head, "{when}");
    journal.close().await;
}

fn place_in_append(record: &Record) -> (u64, u64, u64) {
    let Ok(SessionRecord::ToolFinished(piece)) = SessionRecord::decode(record) else { panic!("{record:?}") };
    let numbers: Vec<u64> = piece.name.split(' ').map(|number| number.parse().unwrap()).collect();
    (numbers[0], numbers[1], numbers[2])
}

/// Records that the search index has to be made of.
const NOTES: u64 = 5_000;

fn needle() -> SearchQuery {
    SearchQuery::new("pebbles", 2 * usize::try_from(NOTES).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part that the test below plays in other processes"]
async fn index_everything() {
    let journal = SqliteJournal::open(&child::home()).await.unwrap();
    println!("indexes");
    journal.search(&needle()).await.unwrap();
    println!("done");
}

/// Rule 1: a search that is killed while it indexes leaves an index from which the next one answers rightly.
#[test]
fn a_search_answers_rightly_after_an_indexing_was_killed() {
    let seed = TestRandom::any_seed();
    let mut random = TestRandom::new(seed);
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());

    for round in 0..8 {
        let _ = std::fs::remove_dir_all(folder.path().join("cache"));
        // Several kills in one index, so that one of them hits a batch after the first.
        for _ in 0..=round % 3 {
            let mut part = Part::start("kill::index_everything", folder.path());
            part.hear("indexes").expect("the part searches");
            std::thread::sleep(Duration::from_micros(random.below(900_000) as u64));
            part.kill();
        }

        find_all(folder.path(), &format!("round {round} of seed {seed}"));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn fill(folder: &Path) {
    let journal = SqliteJournal::open(&Home::create(folder).unwrap()).await.unwrap();
    let stream = StreamName::session(name_session(&journal, KEY).await.unwrap());
    let note =
        |number: u64| SessionRecord::Note(Note::new(format!("pebble {number} of {}", number % 97))).encode();
    journal.append((0..NOTES).map(note).fold(Append::to(&stream), Append::record)).await.unwrap();
    journal.close().await;
}

#[tokio::main(flavor = "current_thread")]
async fn find_all(folder: &Path, when: &str) {
    let journal = SqliteJournal::open(&Home::existing(folder).unwrap()).await.unwrap();
    let found = journal.search(&needle()).await.unwrap();
    let mut seqs: Vec<u64> = found.hits.iter().map(|hit| hit.seq).collect();
    seqs.sort_unstable();
    assert_eq!(found.unindexed, 0, "{when}");
    assert!(seqs.into_iter().eq(1..=NOTES), "{when}");
    journal.close().await;
}
