//! J5: a full disk, a folder that can't be written, a locked file: a clear error, nothing lost, and the journal works
//! again when the cause is gone.

use std::process::{Command, Stdio};

use longhaul_journal::{Append, Error, Home, Journal, SqliteJournal};
use longhaul_protocol::{NewRecord, Note, SessionId, SessionRecord, StreamName};

use rusqlite::Connection;

use crate::child::{self, Part};
use longhaul_journal::conformance::read_all;

fn stream() -> StreamName {
    StreamName::session(SessionId::from_bits(5))
}

fn note(text: &str) -> NewRecord {
    SessionRecord::Note(Note::new(text)).encode()
}

async fn append(journal: &SqliteJournal, text: &str) -> Result<(), Error> {
    journal.append(Append::to(&stream()).record(note(text))).await.map(|_| ())
}

#[test]
#[ignore = "a part that the test below plays in another process"]
fn keep_the_file_locked() {
    let db = Connection::open(child::home().journal_file()).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("locked by {}", std::process::id());
    std::thread::sleep(std::time::Duration::from_secs(600));
}

/// J5.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_file_is_said_with_its_holder_and_then_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    append(&journal, "before").await.unwrap();
    let mut locker = Part::start("trouble::keep_the_file_locked", folder.path());
    let pid = locker.hear("locked by").unwrap();

    let refused = append(&journal, "while it is locked").await.unwrap_err();
    let readable = read_all(&journal, &stream()).await.len();
    locker.kill();
    append(&journal, "after").await.unwrap();

    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    assert!(refused.to_string().contains(&format!("journal.db is locked by process {pid}")), "{refused}");
    assert_eq!(readable, 1);
    assert_eq!(read_all(&journal, &stream()).await.len(), 2, "what was refused is not there");
}

/// The rest needs a small disk and a folder that can't be written even by root, so it happens in a mount namespace of
/// its own: this program, started again there.
fn in_own_mounts(part: &str, mount: &str) {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(r#"mount -t tmpfs -o {mount} none "$LONGHAUL_TEST_HOME" && exec "$0" "$@""#);
    // Root may mount without a user namespace, which some systems refuse.
    let namespaces: &[&str] = if rustix::process::getuid().is_root() {
        &["--mount"]
    } else {
        &["--user", "--map-root-user", "--mount"]
    };
    let status = Command::new("unshare")
        .args(namespaces)
        .args(["sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args([part, "--exact", "--ignored", "--nocapture"])
        .env("LONGHAUL_TEST_HOME", folder.path())
        .stdin(Stdio::null())
        .status()
        .expect("unshare, of util-linux");
    assert!(status.success(), "{part} failed: see above");
}

/// J5.
#[test]
fn a_full_disk_is_said_and_then_it_goes_on() {
    in_own_mounts("trouble::fill_the_disk", "size=600k,mode=700");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part that the test above plays on a small disk"]
async fn fill_the_disk() {
    let home = child::home();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let ballast = home.folder().join("ballast");
    std::fs::write(&ballast, vec![0; 100_000]).unwrap();
    let mut acknowledged = 0;

    let refused = loop {
        match append(&journal, &"x".repeat(5_000)).await {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1_000, "the disk never fills");
    };
    let still_refused = append(&journal, &"x".repeat(5_000)).await;
    let readable = read_all(&journal, &stream()).await.len();
    std::fs::remove_file(&ballast).unwrap();
    let again = append(&journal, "there is room").await;

    assert!(matches!(refused, Error::DiskFull { .. }), "{refused}");
    assert!(still_refused.is_err());
    assert_eq!(readable, acknowledged, "what was acknowledged is there, and nothing else");
    assert_eq!(again, Ok(()));
    let report = journal.verify().await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(read_all(&journal, &stream()).await.len(), acknowledged + 1);
}

/// J5.
#[test]
fn a_folder_that_can_not_be_written_is_said_and_then_it_goes_on() {
    in_own_mounts("trouble::make_the_folder_read_only", "size=8m,mode=700");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part that the test above plays on a disk that it can remount"]
async fn make_the_folder_read_only() {
    let home = child::home();
    let remount = |options: &str| {
        let status = Command::new("mount").args(["-o", options]).arg(home.folder()).status().unwrap();
        assert!(status.success(), "mount -o {options}");
    };
    let journal = SqliteJournal::open(&home).await.unwrap();
    append(&journal, "before").await.unwrap();
    journal.close().await;
    drop(journal);

    remount("remount,ro");
    let journal = SqliteJournal::open(&home).await.unwrap();
    let readable = read_all(&journal, &stream()).await.len();
    let refused = append(&journal, "while it can't be written").await.unwrap_err();
    let new_home = Home::create(&home.folder().join("inside")).unwrap_err();
    drop(journal);
    remount("remount,rw");
    let journal = SqliteJournal::open(&home).await.unwrap();
    append(&journal, "after").await.unwrap();

    assert!(matches!(refused, Error::ReadOnly { .. }), "{refused}");
    assert!(matches!(new_home, Error::ReadOnly { .. }), "{new_home}");
    assert_eq!(readable, 1, "reading needs no writing");
    assert_eq!(read_all(&journal, &stream()).await.len(), 2);
}
