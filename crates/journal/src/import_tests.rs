use longhaul_protocol::{At, Body, Hash, Note, Record, SessionCreated, SessionId, SessionRecord};

use super::*;
use crate::chain::ChainLink;
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
        parent: None,
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

/// The beginning of a session, at any time.
fn beginning(id: SessionId, at: At) -> Record {
    let created = SessionRecord::SessionCreated(SessionCreated {
        id,
        key: "a".to_owned(),
        work_dir: None,
        origin: None,
        version: "0.1.0".to_owned(),
        parent: None,
    });
    let (stream, new) = (StreamName::session(id), created.encode());
    let (kind, prev) = (new.kind, Hash::ZERO);
    let body_hash = Hash::of(new.body.get());
    let hash = ChainLink { stream: &stream, seq: 1, at, kind: &kind, key: None, prev, body_hash }.hash();
    Record { stream, seq: 1, at, kind, key: None, body: Body::Here(new.body), prev, hash }
}

/// S5: no browser and no calendar has a date for such a time, and anybody can write a file that has one.
#[tokio::test]
async fn a_file_with_a_time_outside_of_the_calendar_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut refused = Vec::new();
    for (name, at) in [("far", At(9_000_000_000_000_000)), ("before", At(i64::MIN)), ("good", At(0))] {
        let open = async |home: &str| {
            SqliteJournal::open(&Home::create(&folder.path().join(home)).unwrap()).await.unwrap()
        };
        let there = open(&format!("{name}-there")).await;
        let id = SessionId::generate();
        let lease = there.acquire_lease(&StreamName::session(id)).await.unwrap();
        there.adopt(&lease, vec![beginning(id, at)], vec![]).await.unwrap();
        names::bind_key(&there, "a", id).await.unwrap();
        let (mut export, file) = (Vec::new(), folder.path().join(name));
        export_session(&there, "a", &mut export).await.unwrap();
        std::fs::write(&file, &export).unwrap();
        let here = open(&format!("{name}-here")).await;

        let imported = import_session(&here, &file, &ImportOptions::at(At(0))).await;

        refused.push(imported.err().map(|error| error.to_string().contains("is outside of the calendar")));
        assert_eq!(here.session("a").await.unwrap().is_some(), name == "good");
    }
    assert_eq!(refused, [Some(true), Some(true), None]);
}

/// S3: a key is what it looks like. A session that an older version gave such a key can be used and renamed.
#[tokio::test]
async fn a_new_key_has_no_hidden_characters_and_an_old_one_stays_usable() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&Home::create(&folder.path().join("home")).unwrap()).await.unwrap();
    let old = "a\u{202e}b";
    let id = names::bind_key(&journal, old, SessionId::generate()).await.unwrap();

    for key in [".", "..", "x\u{200b}y", "c\u{202e}d", "\u{feff}z", "\u{3164}", "e\u{e0041}f"] {
        let made = name_session(&journal, key).await;
        let renamed = crate::rename_session(&journal, old, key).await.map(|entry| entry.id);
        assert!(matches!(made, Err(Error::BadKey { .. })), "{key:?}: {made:?}");
        assert!(matches!(renamed, Err(Error::BadKey { .. })), "{key:?}: {renamed:?}");
    }
    assert_eq!(name_session(&journal, old).await.unwrap(), id);
    assert_eq!(crate::rename_session(&journal, old, "Ünï: ❤️ ok...").await.unwrap().id, id);
}
