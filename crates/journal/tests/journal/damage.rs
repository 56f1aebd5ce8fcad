//! J4: damage is found and named, or no record changed; what can still be read stays readable.

use std::path::{Path, PathBuf};

use longhaul_journal::{
    Append, Blob, Error, Home, Journal, Page, SearchQuery, SqliteJournal, VerifyReport, name_session, put,
    records, verify_home,
};
use longhaul_protocol::{
    BlobRef, CallId, Hash, InboxRecord, Input, InputId, JoinMode, Note, Record, SessionRecord, StreamName,
    ToolFinished,
};

use longhaul_journal::conformance::{append_notes, read_all};

/// A folder in memory where there is one: these tests copy a journal thousands of times.
pub(crate) fn fast_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// A journal with a bit of everything, closed, so that its file is at rest.
pub(crate) async fn a_full_journal(folder: &Path) -> Home {
    let home = Home::create(folder).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    for number in 0..4 {
        let session = name_session(&journal, &format!("cli:session-{number}")).await.unwrap();
        let input = Input::new(InputId::generate(), format!("do {number}"), JoinMode::Join);
        put(&journal, session, InboxRecord::Input(input).encode().with_key("once")).await.unwrap();
        let stream = StreamName::session(session);
        let lease = journal.acquire_lease(&stream).await.unwrap();
        for line in 0..40 {
            let text = format!("line {line} of {number}: {}", "word ".repeat(line % 17));
            journal
                .append(Append::under(&lease).record(SessionRecord::Note(Note::new(text)).encode()))
                .await
                .unwrap();
        }
        let output = format!("output {number} ").repeat(900).into_bytes();
        let whole = Some(BlobRef::to(&output, "text/plain"));
        let (call, name, content) = (CallId::generate(), "exec".to_owned(), "head and tail".to_owned());
        let finished = ToolFinished { whole, ..ToolFinished::new(call, &name, content) };
        let append = Append::under(&lease).record(SessionRecord::ToolFinished(finished).encode());
        journal.append(append.blob(Blob::new(output))).await.unwrap();
        journal.erase(&[(stream.clone(), 3)], "on request").await.unwrap();
        journal.release_lease(&lease).await.unwrap();
    }
    journal.close().await;
    home
}

/// Everything that a journal holds, as far as it can be read: each record or the error in its place, each blob.
async fn everything(journal: &SqliteJournal, streams: &[StreamName], blobs: &[Hash]) -> Vec<String> {
    let mut found = Vec::new();
    for stream in streams {
        match journal.head(stream).await {
            Ok(head) => found.push(format!("{stream} {head:?}")),
            Err(error) => found.push(error.to_string()),
        }
        let mut next = 1;
        while let Ok(page) = journal.read(stream, next, Page::default()).await
            && let Some(last) = page.last()
        {
            next = last.seq + 1;
            found.extend(page.iter().map(|record| serde_json::to_string(record).unwrap()));
        }
    }
    for blob in blobs {
        found.push(
            journal
                .blob(*blob)
                .await
                .map_or_else(|error| error.to_string(), |bytes| Hash::of(bytes).to_string()),
        );
    }
    found
}

fn blobs_of(records: &[Record]) -> Vec<Hash> {
    let refs = records.iter().filter_map(Record::text).flat_map(longhaul_protocol::blob_refs);
    refs.map(|blob| blob.hash).collect()
}

/// What opening and verifying a damaged file has shown.
enum Verdict {
    /// Opening said so.
    Refused(Error),
    /// Verifying said so.
    Found(VerifyReport),
    /// Nobody noticed.
    Unnoticed(Vec<String>),
}

async fn judge(home: &Home, streams: &[StreamName], blobs: &[Hash]) -> Verdict {
    let journal = match SqliteJournal::open(home).await {
        Ok(journal) => journal,
        Err(error) => return Verdict::Refused(error),
    };
    let verdict = match journal.verify().await {
        Err(error) => Verdict::Refused(error),
        Ok(report) if !report.is_sound() => Verdict::Found(report),
        Ok(_) => Verdict::Unnoticed(everything(&journal, streams, blobs).await),
    };
    journal.close().await;
    verdict
}

struct Original {
    _folder: tempfile::TempDir,
    home: Home,
    bytes: Vec<u8>,
    heads: Vec<u8>,
    streams: Vec<StreamName>,
    blobs: Vec<Hash>,
    content: Vec<String>,
}

impl Original {
    async fn new() -> Self {
        let folder = fast_folder();
        let home = a_full_journal(folder.path()).await;
        let bytes = std::fs::read(home.journal_file()).unwrap();
        let heads = std::fs::read(folder.path().join("heads.json")).unwrap();
        let journal = SqliteJournal::open(&home).await.unwrap();
        let streams = journal.streams().await.unwrap();
        let mut blobs = Vec::new();
        for stream in &streams {
            blobs.extend(blobs_of(&read_all(&journal, stream).await));
        }
        let content = everything(&journal, &streams, &blobs).await;
        journal.close().await;
        Self { _folder: folder, home, bytes, heads, streams, blobs, content }
    }

    /// A home with this journal, changed.
    fn copy(&self, folder: &Path, change: impl FnOnce(&mut Vec<u8>)) -> (Home, PathBuf) {
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        let home = Home::create(folder).unwrap();
        std::fs::write(home.journal_file(), bytes).unwrap();
        std::fs::write(folder.join("heads.json"), &self.heads).unwrap();
        (home.clone(), home.journal_file())
    }
}

/// J4.
#[tokio::test(flavor = "multi_thread")]
async fn every_flipped_byte_is_found_or_changes_no_record() {
    let original = Original::new().await;
    let step = std::env::var("LONGHAUL_FLIP_STEP").map_or(101, |step| step.parse().unwrap());
    let (mut found, mut named, mut harmless) = (0, 0, 0);

    for place in (0..original.bytes.len()).step_by(step) {
        for flip in [0x01, 0xff] {
            let folder = fast_folder();
            let (home, file) = original.copy(folder.path(), |bytes| bytes[place] ^= flip);
            match judge(&home, &original.streams, &original.blobs).await {
                Verdict::Refused(error) => {
                    found += 1;
                    assert!(error.to_string().contains("journal.db"), "byte {place}: {error} names nothing");
                }
                Verdict::Found(report) => {
                    found += 1;
                    named += u64::from(report.damage.iter().any(|damage| damage.stream.is_some()));
                }
                Verdict::Unnoticed(content) => {
                    harmless += 1;
                    assert_eq!(
                        content, original.content,
                        "byte {place} flipped by {flip:#x} changed a record, unnoticed"
                    );
                }
            }
            assert!(file.exists());
        }
    }

    // The file holds more records than slack, so most flips must be found, and most of those traced to a stream.
    assert!(found > harmless / 4 && named * 2 > found, "found {found}, named {named}, harmless {harmless}");
}

/// J4.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_is_named_and_the_others_stay_readable() {
    let original = Original::new().await;
    let folder = fast_folder();
    let text = b"line 20 of 2";
    let place = original.bytes.windows(text.len()).position(|window| window == text).unwrap();
    let (home, _) = original.copy(folder.path(), |bytes| bytes[place] = b'L');
    let journal = SqliteJournal::open(&home).await.unwrap();
    let stream = StreamName::session(journal.session("cli:session-2").await.unwrap().unwrap().id);

    let report = journal.verify().await.unwrap();
    let before = journal.read(&stream, 1, Page::default()).await.unwrap();
    let at = journal.read(&stream, 21, Page::default()).await.unwrap_err();
    let after = journal.read(&stream, 22, Page::default()).await.unwrap();
    let mut cursor = records(&journal, &stream, 1);
    let mut passed_over = Vec::new();
    while let Some(record) = cursor.next_undamaged().await.unwrap() {
        passed_over.push(record.seq);
    }

    let reason = "content does not match its hash".to_owned();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert_eq!(report.damage[0].to_string(), format!("{stream} entry 21: {reason}"));
    assert_eq!((before.len(), after.len()), (20, 20));
    assert_eq!(passed_over, (1..=20).chain(22..=41).collect::<Vec<_>>());
    assert_eq!(at, Error::Damaged { stream: stream.clone(), seq: 21, reason });
}

/// J4.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_tail_is_said() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let early = std::fs::read(home.journal_file()).unwrap();
    let stream = add_notes(&home, "cli:session-1", &["one", "two"]).await;

    std::fs::write(home.journal_file(), early).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let report = journal.verify().await.unwrap();

    assert_eq!(report.damage.len(), 1, "{report:?}");
    let said = report.damage[0].to_string();
    assert_eq!(
        said,
        format!("{stream} entries 42 to 43: the end is lost: it ended at entry 43 when last seen")
    );
}

/// J4.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_has_vanished_is_not_quietly_begun_anew() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    std::fs::remove_file(home.journal_file()).unwrap();

    let refused = SqliteJournal::open(&home).await.err().unwrap();

    assert!(matches!(&refused, Error::Missing { left, .. } if left.ends_with("heads.json")), "{refused}");
    assert!(!home.journal_file().exists());
}

/// J4: the log of an old journal would be played into a new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_journal_is_not_begun_beside_the_log_of_an_old_one() {
    let folder = fast_folder();
    let home = Home::create(folder.path()).unwrap();
    std::fs::write(folder.path().join("journal.db-wal"), b"what was committed last").unwrap();

    let refused = SqliteJournal::open(&home).await.err().unwrap();

    assert!(matches!(&refused, Error::Missing { left, .. } if left.ends_with("journal.db-wal")), "{refused}");
    assert!(!home.journal_file().exists());
}

/// J4: going on after a loss does not destroy the evidence of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_tail_is_still_said_after_going_on() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let early = std::fs::read(home.journal_file()).unwrap();
    let stream = add_notes(&home, "cli:session-1", &["one", "two"]).await;
    std::fs::write(home.journal_file(), early).unwrap();

    add_notes(&home, "cli:session-1", &["on", "and", "on", "and"]).await;

    let damage = verify_home(&home).unwrap().damage;
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!((damage[0].stream.as_ref(), damage[0].seq), (Some(&stream), Some(43)));
    assert!(damage[0].reason.contains("a tail is lost"), "{damage:?}");
}

/// Adds notes to a session in a process's lifetime of its own.
pub(crate) async fn add_notes(home: &Home, key: &str, texts: &[&str]) -> StreamName {
    let journal = SqliteJournal::open(home).await.unwrap();
    let stream = StreamName::session(journal.session(key).await.unwrap().unwrap().id);
    append_notes(&journal, &stream, texts).await;
    journal.close().await;
    stream
}

/// A stream that was removed on purpose is no lost tail, while its remover runs and when another notes its heads later.
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_stream_is_not_taken_for_a_lost_tail() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let (one, other) = (SqliteJournal::open(&home).await.unwrap(), SqliteJournal::open(&home).await.unwrap());
    let stream = StreamName::session(one.session("cli:session-1").await.unwrap().unwrap().id);
    let note = SessionRecord::Note(Note::new("x")).encode();
    other.append(Append::to(&stream).record(note)).await.unwrap();

    one.remove(&stream, None).await.unwrap();
    let while_it_runs = verify_home(&home).unwrap();
    one.close().await;
    other.close().await;
    let afterwards = verify_home(&home).unwrap();

    assert!(while_it_runs.is_sound(), "{while_it_runs:?}");
    assert!(afterwards.is_sound(), "{afterwards:?}");
}

/// A journal of 400 records whose page with the 200th can't be read any more.
async fn a_journal_with_a_broken_page(folder: &Path) -> (Home, StreamName) {
    let home = Home::create(folder).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let stream = StreamName::session(name_session(&journal, "cli:broken").await.unwrap());
    for number in 1..=400 {
        let text = format!("number {number} {}", "filler ".repeat(20));
        journal
            .append(Append::to(&stream).record(SessionRecord::Note(Note::new(text)).encode()))
            .await
            .unwrap();
    }
    journal.close().await;
    let mut bytes = std::fs::read(home.journal_file()).unwrap();
    let words = b"number 200 ";
    let place = bytes.windows(words.len()).position(|window| window == words).unwrap();
    bytes[place / 4096 * 4096] = 0x77;
    std::fs::write(home.journal_file(), bytes).unwrap();
    (home, stream)
}

/// J4.
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_before_and_after_a_broken_page_can_be_read_and_found() {
    let folder = fast_folder();
    let (home, stream) = a_journal_with_a_broken_page(folder.path()).await;
    let journal = SqliteJournal::open(&home).await.unwrap();

    let before = journal.read(&stream, 1, Page::default()).await.unwrap();
    let broken = before.last().unwrap().seq + 1;
    let at = journal.read(&stream, broken, Page::default()).await.unwrap_err();
    let after = journal.read(&stream, 300, Page::default()).await.unwrap();
    let mut cursor = records(&journal, &stream, 1);
    let mut last_read = None;
    while let Some(record) = cursor.next_undamaged().await.unwrap() {
        last_read = Some(record.seq);
    }
    let find = |words: &str| SearchQuery::new(words, 5);
    let found_before = journal.search(&find("number 17")).await.unwrap().hits;
    let found_after = journal.search(&find("number 399")).await.unwrap().hits;

    assert!((150..200).contains(&broken), "{broken}");
    assert!(matches!(at, Error::Damaged { seq, .. } if seq == broken), "{at:?}");
    assert_eq!((after.len(), last_read), (101, Some(400)));
    assert_eq!((found_before[0].seq, found_after[0].seq), (17, 399));
    let damage = journal.verify().await.unwrap().damage;
    let named = |seq| {
        damage
            .iter()
            .any(|one| one.seq <= Some(seq) && Some(seq) <= one.through.or(one.seq) && one.stream.is_some())
    };
    assert!(named(200) && named(broken) && !named(17) && !named(300), "{damage:?}");
}

/// A file from elsewhere may bring more than records. It is named, and it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_are_not_ours_are_named_and_triggers_do_nothing() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let trigger = "CREATE TRIGGER evil AFTER INSERT ON records BEGIN UPDATE records SET body = '{}'; END; DROP INDEX record_keys;";
    rusqlite::Connection::open(home.journal_file()).unwrap().execute_batch(trigger).unwrap();

    let report = verify_home(&home).unwrap();
    add_notes(&home, "cli:session-1", &["one"]).await;
    let afterwards = verify_home(&home).unwrap();

    let said: Vec<_> = report.damage.iter().map(ToString::to_string).collect();
    let expected = ["the file: unexpected trigger evil", "the file: missing index record_keys"];
    assert_eq!(said, expected);
    assert_eq!(afterwards.damage, report.damage, "no record was touched");
}

/// What a process that was killed had begun to write goes when the home is next opened.
#[tokio::test(flavor = "multi_thread")]
async fn half_written_files_are_swept_when_nobody_uses_the_home() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let left = folder.path().join("journal.db.4711-0.partial");
    let theirs = folder.path().join("my.partial.notes");
    let user = SqliteJournal::open(&home).await.unwrap();
    std::fs::write(&left, "half").unwrap();
    std::fs::write(&theirs, "whole").unwrap();

    SqliteJournal::open(&home).await.unwrap().close().await;
    let while_somebody_is_there = left.exists();
    user.close().await;
    SqliteJournal::open(&home).await.unwrap().close().await;

    assert!(while_somebody_is_there, "it may be that one's");
    assert!(!left.exists());
    assert!(theirs.exists(), "what we did not make is not ours to remove");
}

/// Where the home lies says nothing about what is in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_in_a_folder_with_an_unlucky_name_is_not_swept_away() {
    let folder = fast_folder();
    let home = a_full_journal(&folder.path().join("x.1-1.partial")).await;

    let report = verify_home(&home).unwrap();
    SqliteJournal::open(&home).await.unwrap().close().await;

    assert!(report.records > 100);
    assert_eq!(verify_home(&home).unwrap(), report);
}

/// Rule 1: an index can be deleted or damaged at any time and is made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_deleted_search_index_is_made_again() {
    let original = Original::new().await;
    let journal = SqliteJournal::open(&original.home).await.unwrap();
    let search = SearchQuery::new("line 20", 10);
    let before = journal.search(&search).await.unwrap().hits;
    journal.close().await;
    drop(journal);
    let index = original.home.folder().join("cache/search.db");

    for harm in ["overwrite", "delete", "truncate"] {
        match harm {
            "overwrite" => std::fs::write(&index, vec![0x5a; 40_000]).unwrap(),
            "delete" => std::fs::remove_file(&index).unwrap(),
            _ => std::fs::File::options().write(true).open(&index).unwrap().set_len(5_000).unwrap(),
        }
        let journal = SqliteJournal::open(&original.home).await.unwrap();
        let after = journal.search(&search).await.unwrap().hits;
        assert_eq!(after, before, "{harm}");
        journal.close().await;
    }
    assert!(before[0].excerpt.contains("line 20"), "{before:?}");
}
