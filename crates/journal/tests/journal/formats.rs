//! J6: journals of other formats, and files that are none.

use std::path::Path;

use longhaul_journal::{
    Append, Error, Home, ImportOptions, Journal, SqliteJournal, export_session, import_session,
};
use longhaul_protocol::{At, Note, SessionRecord, StreamName};
use rusqlite::Connection;

use crate::child::{self, Part};
use crate::damage::{a_full_journal, fast_folder};
use longhaul_journal::conformance::read_all;

fn set_format(home: &Home, format: u32) {
    let db = Connection::open(home.journal_file()).unwrap();
    db.pragma_update(None, "user_version", format).unwrap();
}

fn format_of(home: &Home) -> u32 {
    let db = Connection::open(home.journal_file()).unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// J6.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_format_is_open_for_reading_only() {
    let folder = fast_folder();
    let home = a_full_journal(folder.path()).await;
    set_format(&home, 99);

    let journal = SqliteJournal::open(&home).await.unwrap();
    let read = read_all(&journal, &StreamName::names()).await;
    let note = SessionRecord::Note(Note::new("x")).encode();
    let refused = journal.append(Append::to(&StreamName::names()).record(note)).await.unwrap_err();

    assert_eq!(read.len(), 4);
    assert!(matches!(refused, Error::Newer { format: 99, .. }), "{refused}");
    assert_eq!(journal.read_only(), Some(&refused));
    assert!(refused.to_string().contains("update longhaul"), "{refused}");
}

/// Nothing but a journal is opened as one, and nothing is changed in what isn't.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_program_is_left_alone() {
    let other_program = |path: &Path| {
        let db = Connection::open(path).unwrap();
        db.execute_batch("CREATE TABLE songs (name TEXT); INSERT INTO songs VALUES ('one');").unwrap();
    };
    let text = |path: &Path| std::fs::write(path, "not a database at all, ".repeat(20)).unwrap();
    let short = |path: &Path| std::fs::write(path, "short").unwrap();
    let empty = |path: &Path| std::fs::write(path, "").unwrap();

    for make in [&other_program as &dyn Fn(&Path), &text, &short, &empty] {
        let folder = fast_folder();
        let home = Home::create(folder.path()).unwrap();
        make(&home.journal_file());
        let before = std::fs::read(home.journal_file()).unwrap();

        let refused = SqliteJournal::open(&home).await.err().unwrap();

        assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
        assert_eq!(std::fs::read(home.journal_file()).unwrap(), before);
    }
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A home whose journal was written by an earlier format.
fn an_old_home(folder: &Path) -> Home {
    let home = Home::create(folder).unwrap();
    std::fs::copy(fixture("format-1.db"), home.journal_file()).unwrap();
    std::fs::copy(fixture("heads-1.json"), folder.join("heads.json")).unwrap();
    home
}

/// What the fixture of the first format must export, byte for byte, in every later one.
async fn exports_as_ever(home: &Home) {
    let journal = SqliteJournal::open(home).await.unwrap();
    let mut export = Vec::new();
    export_session(&journal, "cli:fixture", &mut export).await.unwrap();
    let report = journal.verify().await.unwrap();
    journal.close().await;
    assert_eq!(
        String::from_utf8(export).unwrap(),
        std::fs::read_to_string(fixture("export-1.jsonl")).unwrap()
    );
    assert!(report.is_sound(), "{report:?}");
}

/// J6.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_format_is_brought_up_to_date_and_loses_nothing() {
    let folder = fast_folder();
    let home = an_old_home(folder.path());
    assert_eq!(format_of(&home), 1);
    let as_it_is = longhaul_journal::verify_home(&home).unwrap();

    exports_as_ever(&home).await;

    assert!(as_it_is.is_sound(), "what later formats have is not missed in an earlier one: {as_it_is:?}");
    assert_eq!(format_of(&home), 3);
    let left_over: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left_over.iter().any(|name| name.to_string_lossy().contains("format")), "{left_over:?}");
}

/// J6: a crash leaves the old format and a copy beside it, or the new one; either way the next to open goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_was_cut_short_is_done_again() {
    let folder = fast_folder();
    let home = an_old_home(folder.path());
    std::fs::write(folder.path().join("journal.format-1.db"), b"half a copy").unwrap();

    exports_as_ever(&home).await;

    assert_eq!(format_of(&home), 3);
    assert!(!folder.path().join("journal.format-1.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part that the test below plays in another process"]
async fn use_the_home() {
    let _journal = SqliteJournal::open(&child::home()).await.unwrap();
    println!("process {}", std::process::id());
    std::thread::sleep(std::time::Duration::from_secs(600));
}

/// J6.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_waits_for_nobody_and_names_who_is_in_the_way() {
    let folder = fast_folder();
    let home = an_old_home(folder.path());
    let mut other = Part::start("formats::use_the_home", folder.path());
    let pid = other.hear("process").unwrap();
    set_format(&home, 1);

    let refused = SqliteJournal::open(&home).await.err().unwrap();
    let format = format_of(&home);
    other.kill();

    assert!(
        matches!(&refused, Error::InUse { by, .. } if by.contains(&format!("process {pid}"))),
        "{refused}"
    );
    assert_eq!(format, 1, "nothing was changed");
    exports_as_ever(&home).await;
}

/// The export of the first format comes back in this one.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_an_earlier_format_is_imported() {
    let folder = fast_folder();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();

    let imported =
        import_session(&journal, &fixture("export-1.jsonl"), &ImportOptions::at(At(0))).await.unwrap();
    journal.close().await;
    drop(journal);

    assert_eq!((imported.key.as_str(), imported.records, imported.blobs), ("cli:fixture", 8, 2));
    let journal = SqliteJournal::open(&home).await.unwrap();
    let records = read_all(&journal, &StreamName::session(imported.id)).await;
    let lines = std::fs::read_to_string(fixture("export-1.jsonl")).unwrap();
    let (mark, brought) = records.split_last().unwrap();
    assert_eq!(mark.kind, "imported");
    assert!(!brought.is_empty());
    for record in brought {
        let line = serde_json::to_string(record).unwrap();
        assert!(lines.contains(&line), "no imported record is changed: {line}");
    }
    assert!(journal.verify().await.unwrap().is_sound());
}
