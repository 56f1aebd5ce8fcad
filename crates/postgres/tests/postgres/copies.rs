//! N5: a journal that is copied between the engines is the same journal.

use std::sync::Arc;

use longhaul_journal::conformance::{append_notes, read_all};
use longhaul_journal::{
    Append, Blob, CopyReport, Error, Home, Journal, SqliteJournal, copy_journal, name_session, pin_session,
    restore, trash_session,
};
use longhaul_protocol::{BlobRef, CallId, SessionId, SessionRecord, StreamName, ToolFinished};

use crate::database::TestDatabase;

struct SqliteHome(tempfile::TempDir);

impl SqliteHome {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    async fn open(&self) -> SqliteJournal {
        SqliteJournal::open(&Home::create(self.0.path()).unwrap()).await.unwrap()
    }
}

/// A journal with sessions, blobs, an erased body, a removed stream, a pin and a trashed session.
async fn fill(journal: &dyn Journal) {
    let mut sessions = Vec::new();
    for number in 0..5 {
        sessions.push(name_session(journal, &format!("cli:{number}")).await.unwrap());
    }
    for (number, id) in sessions.iter().enumerate() {
        let stream = StreamName::session(*id);
        let output = format!("output {number}").repeat(500);
        let finished = ToolFinished {
            whole: Some(BlobRef::to(output.as_bytes(), "text/plain")),
            ..ToolFinished::new(CallId::generate(), "exec", "out …")
        };
        let record = SessionRecord::ToolFinished(finished).encode().with_key("once");
        journal
            .append(Append::to(&stream).record(record).blob(Blob::new(output.into_bytes())))
            .await
            .unwrap();
        append_notes(journal, &stream, &["one", "a secret", "three"]).await;
        append_notes(journal, &StreamName::inbox(*id), &["waiting"]).await;
    }
    journal.erase(&[(StreamName::session(sessions[1]), 3)], "a leaked secret").await.unwrap();
    journal.remove(&StreamName::inbox(sessions[2]), None).await.unwrap();
    pin_session(journal, "cli:3").await.unwrap();
    trash_session(journal, "cli:4").await.unwrap();
}

async fn copy(from: &dyn Journal, to: &dyn Journal) -> longhaul_journal::Result<CopyReport> {
    copy_journal(from, to, ("one", "two"), |_| {}).await
}

async fn contents(journal: &dyn Journal) -> Vec<String> {
    let mut all = Vec::new();
    for stream in journal.streams().await.unwrap() {
        for record in read_all(journal, &stream).await {
            all.push(serde_json::to_string(&record).unwrap());
        }
    }
    for entry in journal.sessions(None, 100).await.unwrap() {
        all.push(serde_json::to_string(&entry).unwrap());
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_goes_to_a_database_and_back_and_is_the_same() {
    let (home, database, back) = (SqliteHome::new(), TestDatabase::new(), SqliteHome::new());
    let (first, second, third) = (home.open().await, database.try_open().await.unwrap(), back.open().await);
    fill(&first).await;

    let there = copy(&first, &second).await.unwrap();
    let returned = copy(&second, &third).await.unwrap();

    assert!(there.report.is_sound() && returned.report.is_sound(), "{there:?} {returned:?}");
    assert_eq!((there.kept, there.copied), (0, there.report.records));
    assert_eq!((there.report.erased, there.report.blobs), (1, 5));
    let original = contents(&first).await;
    assert_eq!(contents(&second).await, original);
    assert_eq!(contents(&third).await, original);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_cut_short_goes_on_where_it_stopped() {
    let (home, database) = (SqliteHome::new(), TestDatabase::new());
    let (from, to) = (home.open().await, database.try_open().await.unwrap());
    fill(&from).await;
    let (cut, mut is_cut) = tokio::sync::mpsc::unbounded_channel();
    let progress = |progress: longhaul_journal::CopyProgress| {
        if progress.streams_done == 4 {
            let _ = cut.send(());
        }
    };

    tokio::select! {
        biased;
        _ = is_cut.recv() => {}
        copied = copy_journal(&from, &to, ("one", "two"), progress) => panic!("it was to be cut short: {copied:?}"),
    }
    let copied = copy(&from, &to).await.unwrap();
    let again = copy(&from, &to).await.unwrap();

    assert!(copied.kept > 0 && copied.copied > 0, "{copied:?}");
    assert_eq!(copied.kept + copied.copied, copied.report.records);
    assert_eq!((again.copied, again.kept), (0, again.report.records));
    assert_eq!(contents(&to).await, contents(&from).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_something_else_in_it_is_refused_and_left_alone() {
    let (home, database) = (SqliteHome::new(), TestDatabase::new());
    let (from, to) = (home.open().await, database.try_open().await.unwrap());
    fill(&from).await;
    append_notes(&to, &StreamName::session(SessionId::generate()), &["mine"]).await;
    let before = contents(&to).await;

    let refused = copy(&from, &to).await.unwrap_err();
    let backwards = copy(&to, &from).await.unwrap_err();

    assert!(refused.to_string().starts_with("can't copy one to two: the target is not empty"), "{refused}");
    assert!(matches!(backwards, Error::BadCopy { .. }), "{backwards}");
    assert_eq!(contents(&to).await, before);
}

/// A body that was erased in the original after a part of it was copied must not live on in the copy unnoticed.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_was_erased_after_it_was_copied_is_noticed() {
    let (home, database) = (SqliteHome::new(), TestDatabase::new());
    let (from, to) = (home.open().await, database.try_open().await.unwrap());
    let stream = StreamName::session(SessionId::generate());
    append_notes(&from, &stream, &["one", "a secret"]).await;
    copy(&from, &to).await.unwrap();
    from.erase(&[(stream.clone(), 2)], "leaked").await.unwrap();

    let refused = copy(&from, &to).await.unwrap_err();

    assert!(refused.to_string().contains(&format!("entry 2 of {stream} differs")), "{refused}");
}

/// J11: a backup of a database is a journal that a home can take.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_database_can_be_restored_to_a_home() {
    let (database, home) = (TestDatabase::new(), SqliteHome::new());
    let journal = Arc::new(database.try_open().await.unwrap());
    fill(&*journal).await;
    let file = home.0.path().join("backup.db");

    let report = journal.backup(&file).await.unwrap();
    let restored = restore(&Home::create(&home.0.path().join("home")).unwrap(), &file).unwrap();

    assert!(report.is_sound(), "{report:?}");
    assert_eq!(restored.report.records, report.records);
    let home = SqliteJournal::open(&Home::create(&home.0.path().join("home")).unwrap()).await.unwrap();
    assert_eq!(contents(&home).await, contents(&*journal).await);
}
