//! J11: a backup comes back only if it is sound, and a restore that was cut short is finished.

use longhaul_journal::{Append, Error, Home, Journal, SearchQuery, SqliteJournal, resolve, restore};
use longhaul_protocol::{Note, SessionRecord, StreamName};

use crate::child::Part;
use crate::damage::{a_full_journal, add_notes, fast_folder};
use longhaul_journal::conformance::read_all;

async fn head_of(home: &Home, key: &str) -> u64 {
    let journal = SqliteJournal::open(home).await.unwrap();
    assert!(journal.verify().await.unwrap().is_sound(), "{:?}", journal.verify().await);
    let head = resolve(&journal, key).await.unwrap().head.seq;
    journal.close().await;
    head
}

async fn backup(home: &Home) -> std::path::PathBuf {
    let file = home.folder().join("backup.db");
    let journal = SqliteJournal::open(home).await.unwrap();
    journal.backup(&file).await.unwrap();
    journal.close().await;
    file
}

/// J11.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_brings_the_backup_back_and_keeps_what_it_replaced() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let file = backup(&home).await;
    add_notes(&home, "cli:session-0", &["after the backup, xylophone"]).await;
    assert_eq!(head_of(&home, "cli:session-0").await, 42);

    let restored = restore(&home, &file).unwrap();

    assert_eq!(head_of(&home, "cli:session-0").await, 41);
    let journal = SqliteJournal::open(&home).await.unwrap();
    let found = journal.search(&SearchQuery::new("xylophone", 1)).await.unwrap();
    assert!(found.hits.is_empty(), "the search knows nothing that is no more");
    let kept = Home::create(&folder.path().join("kept")).unwrap();
    std::fs::copy(restored.kept.unwrap(), kept.journal_file()).unwrap();
    assert_eq!(head_of(&kept, "cli:session-0").await, 42, "the journal that it replaced is kept whole");
}

/// J11.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_foreign_backup_replaces_nothing() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let file = backup(&home).await;
    let mut bytes = std::fs::read(&file).unwrap();
    let place = bytes.windows(12).position(|window| window == b"line 20 of 2").unwrap();
    bytes[place] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let text = folder.path().join("letter.txt");
    std::fs::write(&text, "dear journal, ".repeat(100)).unwrap();
    let before = std::fs::read(home.journal_file()).unwrap();

    let damaged = restore(&home, &file).unwrap_err();
    let foreign = restore(&home, &text).unwrap_err();
    let missing = restore(&home, &folder.path().join("nowhere")).unwrap_err();

    assert!(damaged.to_string().contains("entry 21"), "{damaged}");
    assert!(foreign.to_string().contains("not a longhaul journal"), "{foreign}");
    assert!(matches!(missing, Error::BadFile { .. }), "{missing}");
    assert_eq!(std::fs::read(home.journal_file()).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_needs_the_home_for_itself_and_says_who_has_it() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let file = backup(&home).await;
    let journal = SqliteJournal::open(&home).await.unwrap();

    let refused = restore(&home, &file).unwrap_err();
    journal.close().await;
    let alone = restore(&home, &file);

    assert!(matches!(&refused, Error::InUse { .. }), "{refused}");
    assert!(alone.is_ok(), "{alone:?}");
}

/// J11: the restored file is complete under its waiting name before anything is replaced; whoever opens the home
/// next puts it into its place, and the log of the old journal is never played into it.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_was_cut_short_is_finished_by_the_next_to_open() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let file = backup(&home).await;
    restore(&home, &file).unwrap();
    let restored = std::fs::read(home.journal_file()).unwrap();
    add_notes(&home, "cli:session-0", &["newer"]).await;
    std::fs::write(folder.path().join("journal.db.restoring"), restored).unwrap();
    std::fs::write(folder.path().join("journal.db-wal"), b"left over").unwrap();

    assert_eq!(head_of(&home, "cli:session-0").await, 41);

    assert!(!folder.path().join("journal.db.restoring").exists());
    let journal = SqliteJournal::open(&home).await.unwrap();
    assert_eq!(read_all(&journal, &StreamName::names()).await.len(), 4);
}

/// Where the journal is gone and only its log is left, the log goes to the trash too.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_journal_that_is_gone_is_not_played_into_the_restored_one() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let file = backup(&home).await;
    let journal = SqliteJournal::open(&home).await.unwrap();
    let stream = StreamName::session(resolve(&journal, "cli:session-0").await.unwrap().id);
    for _ in 0..50 {
        let note = SessionRecord::Note(Note::new("only in the log")).encode();
        journal.append(Append::to(&stream).record(note)).await.unwrap();
    }
    let log = std::fs::read(folder.path().join("journal.db-wal")).unwrap();
    journal.close().await;
    std::fs::remove_file(home.journal_file()).unwrap();
    std::fs::write(folder.path().join("journal.db-wal"), log).unwrap();

    let refused = SqliteJournal::open(&home).await.err().unwrap();
    restore(&home, &file).unwrap();

    assert!(matches!(refused, Error::Missing { .. }), "{refused}");
    assert_eq!(head_of(&home, "cli:session-0").await, 41);
}

/// A close that nobody waits for still keeps the home until the writer has left.
#[tokio::test(flavor = "multi_thread")]
async fn the_home_is_let_go_only_when_the_last_connection_is() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let file = backup(&home).await;

    for _ in 0..20 {
        let journal = std::sync::Arc::new(SqliteJournal::open(&home).await.unwrap());
        let stream = StreamName::session(resolve(&*journal, "cli:session-0").await.unwrap().id);
        let busy: Vec<_> = (0..50)
            .map(|_| {
                let (journal, stream) = (journal.clone(), stream.clone());
                let note = SessionRecord::Note(Note::new("late")).encode();
                tokio::spawn(async move { drop(journal.append(Append::to(&stream).record(note)).await) })
            })
            .collect();
        let _ = tokio::time::timeout(std::time::Duration::ZERO, journal.close()).await;
        drop(journal);
        while let Err(Error::InUse { .. }) = restore(&home, &file) {}
        for task in busy {
            task.await.unwrap();
        }
        assert_eq!(
            head_of(&home, "cli:session-0").await,
            41,
            "and the noted heads are those of the restored one"
        );
    }
}

/// Another program does not know the home's lock, but it has SQLite's.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_does_not_replace_a_file_that_another_program_writes() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    let file = backup(&home).await;
    let before = std::fs::read(home.journal_file()).unwrap();
    let mut other = Part::start("trouble::keep_the_file_locked", folder.path());
    let pid = other.hear("locked by").unwrap();

    let refused = restore(&home, &file).unwrap_err();
    other.kill();

    assert!(refused.to_string().contains(&format!("process {pid}")), "{refused}");
    assert_eq!(std::fs::read(home.journal_file()).unwrap(), before);
}
