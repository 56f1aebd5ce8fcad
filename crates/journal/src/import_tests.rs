use longhaul_protocol::{At, Note, SessionCreated, SessionRecord};

use super::*;
use crate::{Append, Home, SqliteJournal, export_session, name_session};

async fn say(journal: &SqliteJournal, stream: StreamName, text: &str) {
    let record = SessionRecord::Note(Note::new(text)).encode();
    journal.append(Append::to(&stream).record(record)).await.unwrap();
}

/// S5: what is adopted is what was verified.
#[tokio::test]
async fn a_file_that_is_replaced_after_it_was_verified_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let open = async |home: &str| {
        SqliteJournal::open(&Home::create(&folder.path().join(home)).unwrap()).await.unwrap()
    };
    let there = open("there").await;
    let id = name_session(&there, "a").await.unwrap();
    let created = SessionRecord::SessionCreated(SessionCreated {
        id,
        key: "a".to_owned(),
        work_dir: None,
        origin: None,
        version: "0.1.0".to_owned(),
    });
    there.append(Append::to(&StreamName::session(id)).record(created.encode())).await.unwrap();
    let mut exports = [Vec::new(), Vec::new()];
    export_session(&there, "a", &mut exports[0]).await.unwrap();
    say(&there, StreamName::session(id), "two").await;
    export_session(&there, "a", &mut exports[1]).await.unwrap();
    let here = open("here").await;
    std::fs::write(&file, &exports[0]).unwrap();
    let verified = verify_file(&file).unwrap();
    let lease = acquire_empty_session(&here, &verified.header).await.unwrap();

    std::fs::write(&file, &exports[1]).unwrap();
    let imported = import_records(&here, &lease, &file, &verified, "a", &ImportOptions::at(At(0))).await;

    let Err(Error::BadFile { reason, .. }) = imported else { panic!("{imported:?}") };
    assert!(reason.contains("changed while it was read"), "{reason}");
    assert!(here.session("a").await.unwrap().is_none());
    assert_eq!(here.head(&StreamName::session(id)).await.unwrap(), Head::EMPTY);
}
