//! J8, J10: what must not be left on the disk, or not for others to read.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use longhaul_journal::{
    Append, Blob, Error, Home, Journal, Match, Search, SqliteJournal, erase_record, name_session, put,
};
use longhaul_protocol::{
    BlobRef, CallId, InboxRecord, Input, InputId, InputTaken, JoinMode, Note, SessionRecord, StreamName,
    ToolFinished,
};

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { [files_below(&path), vec![path]].concat() } else { vec![path] })
        .collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// J8.
#[tokio::test(flavor = "multi_thread")]
async fn every_file_is_private_to_the_user() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("deep/home");
    let home = Home::create(&folder).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = name_session(&journal, "cli:x").await.unwrap();
    let stream = StreamName::session(session);
    journal.append(Append::to(&stream).record(SessionRecord::Note(Note::new("x")).encode())).await.unwrap();
    journal
        .search(&Search { words: "x".into(), matching: Match::All, streams: vec![], limit: 1 })
        .await
        .unwrap();
    let _rings = journal.rings().await.unwrap();
    journal.backup(&folder.join("backup.db")).await.unwrap();

    let mut open_to_others: Vec<_> = files_below(&folder);
    open_to_others.push(folder.clone());
    assert!(open_to_others.len() >= 10, "{open_to_others:?}");
    open_to_others.retain(|path| {
        let private = if path.is_dir() { 0o700 } else { 0o600 };
        let is_socket = path.extension().is_some_and(|ending| ending == "sock");
        mode(path) != private && !(is_socket && mode(path.parent().unwrap()) == 0o700)
    });

    assert_eq!(open_to_others, Vec::<PathBuf>::new());
    journal.close().await;
}

/// J8: a folder that was made for us is made private; one that somebody filled is left as it is.
#[test]
fn only_a_folder_of_our_own_is_made_private() {
    let parent = tempfile::tempdir().unwrap();
    let (empty, filled) = (parent.path().join("empty"), parent.path().join("filled"));
    for folder in [&empty, &filled] {
        std::fs::create_dir(folder).unwrap();
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(filled.join("letter.txt"), "mine").unwrap();

    Home::create(&empty).unwrap();
    Home::create(&filled).unwrap();

    assert_eq!((mode(&empty), mode(&filled)), (0o700, 0o755));
}

/// J10: bytes that another process still reads can't go yet. That is said, and erasing again finishes it, for the
/// inbox too.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_was_held_up_is_finished_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = name_session(&journal, "cli:x").await.unwrap();
    let input =
        Input { id: InputId::generate(), text: "xyzzysecret".into(), images: vec![], mode: JoinMode::Join };
    put(&journal, session, InboxRecord::Input(input.clone()).encode()).await.unwrap();
    let Input { id, text, images, mode } = input;
    let taken = SessionRecord::InputTaken(InputTaken { id, inbox_through: 1, text, images, mode });
    journal.append(Append::to(&StreamName::session(session)).record(taken.encode())).await.unwrap();
    let reader = rusqlite::Connection::open(home.journal_file()).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM records;").unwrap();

    let held_up = erase_record(&journal, session, 1, "a secret").await;
    reader.execute_batch("ROLLBACK").unwrap();
    erase_record(&journal, session, 1, "a secret").await.unwrap();

    assert!(matches!(held_up, Err(Error::NotScrubbed { .. })), "{held_up:?}");
    for path in files_below(folder.path()).into_iter().filter(|path| path.is_file()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(11).any(|window| window == b"xyzzysecret"), "{} still has it", path.display());
    }
}

/// J10: none of the files of the home holds the bytes any more, whatever the tree did with the row before.
#[tokio::test(flavor = "multi_thread")]
async fn erased_bytes_are_gone_from_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let streams: Vec<_> =
        (0..3).map(|_| StreamName::session(longhaul_protocol::SessionId::generate())).collect();
    let output = b"blobsecret ".repeat(3_000);
    for line in 0..300 {
        let stream = &streams[line % 3];
        let text = if line == 150 {
            "hunter2secret".to_owned()
        } else {
            format!("filler {line} ").repeat(line % 40)
        };
        journal
            .append(Append::to(stream).record(SessionRecord::Note(Note::new(text)).encode()))
            .await
            .unwrap();
    }
    let whole = Some(BlobRef::to(&output, "text/plain"));
    let (call, name, content) = (CallId::generate(), "exec".to_owned(), String::new());
    let finished = ToolFinished { whole, ..ToolFinished::new(call, &name, content) };
    let append = Append::to(&streams[0]).record(SessionRecord::ToolFinished(finished).encode());
    journal.append(append.blob(Blob::new(output))).await.unwrap();
    journal
        .search(&Search { words: "hunter2secret".into(), matching: Match::All, streams: vec![], limit: 1 })
        .await
        .unwrap();
    let holding = |secret: &str| -> Vec<PathBuf> {
        let holds = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap_or_default();
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        };
        files_below(folder.path()).into_iter().filter(|path| path.is_file()).filter(holds).collect()
    };
    assert!(!holding("hunter2secret").is_empty() && !holding("blobsecret").is_empty(), "they were there");

    journal.erase(&[(streams[0].clone(), 51)], "leaked").await.unwrap();
    journal.erase(&[(streams[0].clone(), 101)], "leaked").await.unwrap();

    assert_eq!(holding("hunter2secret"), Vec::<PathBuf>::new());
    assert_eq!(holding("blobsecret"), Vec::<PathBuf>::new());
    assert!(journal.verify().await.unwrap().is_sound());
}
