//! S3, S5: what becomes of a session after it was made.

use crate::{
    Append, Blob, Error, Head, Journal, StreamSize, delete_session, finish_deletions, name_session,
    pin_session, put, rename_session, resolve, restore_session, session_times, trash_session, unpin_session,
};
use longhaul_protocol::{
    BlobRef, Image, InboxRecord, Input, InputId, JoinMode, NamesRecord, NewRecord, SessionDeleted, SessionId,
    StreamName,
};

use super::{Place, append_notes, read_all};

fn a_key(prefix: &str) -> String {
    format!("{prefix}:{}", SessionId::generate())
}

async fn a_session(journal: &dyn Journal, key: &str) -> SessionId {
    let id = name_session(journal, key).await.unwrap();
    append_notes(journal, &StreamName::session(id), &["one", "two"]).await;
    append_notes(journal, &StreamName::extract(id), &["remembered"]).await;
    let input = Input::new(InputId::generate(), "hi", JoinMode::Join);
    put(journal, id, InboxRecord::Input(input).encode()).await.unwrap();
    id
}

async fn with_picture(journal: &dyn Journal, id: SessionId, bytes: &[u8]) {
    let image = Image { data: BlobRef::to(bytes, "image/png") };
    let body = serde_json::value::to_raw_value(&serde_json::json!({ "image": image })).unwrap();
    let record = NewRecord { kind: "from_the_future".into(), body, key: None };
    let append = Append::to(&StreamName::session(id)).record(record).blob(Blob::new(bytes));
    journal.append(append).await.unwrap();
}

/// S3.
pub async fn a_session_gets_another_key_and_keeps_everything_else(place: &impl Place) {
    let journal = place.open().await;
    let (old, new, other) = (a_key("old"), a_key("new"), a_key("other"));
    let id = a_session(&*journal, &old).await;
    a_session(&*journal, &other).await;
    let before = resolve(&*journal, &old).await.unwrap();
    let lease = journal.acquire_lease(&StreamName::session(id)).await.unwrap();

    let taken = rename_session(&*journal, &old, &other).await;
    let bad = rename_session(&*journal, &old, "two\nlines").await;
    let renamed = rename_session(&*journal, &old, &new).await.unwrap();
    let again = rename_session(&*journal, &new, &new).await.unwrap();

    journal.release_lease(&lease).await.unwrap();
    assert_eq!(taken, Err(Error::SessionExists { key: other }));
    assert!(matches!(bad, Err(Error::BadKey { .. })), "{bad:?}");
    assert_eq!(renamed, crate::SessionEntry { key: new.clone(), ..before });
    assert_eq!(again, renamed);
    assert_eq!(resolve(&*journal, &new).await.unwrap(), renamed);
    assert_eq!(journal.session(&old).await.unwrap(), None);
    assert!(journal.verify().await.unwrap().is_sound());
}

/// S5.
pub async fn a_pin_stays_until_it_is_taken_off(place: &impl Place) {
    let journal = place.open().await;
    let (key, renamed) = (a_key("cli"), a_key("renamed"));
    let id = a_session(&*journal, &key).await;
    let said = async || journal.head(&StreamName::names()).await.unwrap().seq;

    pin_session(&*journal, &key).await.unwrap();
    let once = said().await;
    pin_session(&*journal, &key).await.unwrap();
    let twice = said().await;
    rename_session(&*journal, &key, &renamed).await.unwrap();
    let pinned = resolve(&*place.open().await, &renamed).await.unwrap().pinned;
    let sound = journal.verify().await.unwrap();
    unpin_session(&*journal, &renamed).await.unwrap();

    assert_eq!(once, twice, "what is asked for twice is said once");
    assert!(pinned);
    assert!(sound.is_sound(), "{sound:?}");
    assert!(!journal.session_with_id(id).await.unwrap().unwrap().pinned);
    assert!(journal.verify().await.unwrap().is_sound());
}

/// S5.
pub async fn what_was_put_away_can_be_brought_back(place: &impl Place) {
    let journal = place.open().await;
    let key = a_key("cli");
    let id = a_session(&*journal, &key).await;

    let trashed = trash_session(&*journal, &key).await.unwrap();
    let again = trash_session(&*journal, &key).await.unwrap();
    let times = session_times(&*journal).await.unwrap()[&id];
    let record = read_all(&*journal, &StreamName::names()).await.pop().unwrap();
    let back = restore_session(&*journal, &key).await.unwrap();

    assert!(trashed.trashed);
    assert_eq!(again, trashed);
    assert_eq!((record.kind.as_str(), times.trashed), ("session_trashed", Some(record.at)));
    assert!(!back.trashed);
    assert_eq!(restore_session(&*journal, &key).await.unwrap(), back);
    assert_eq!(session_times(&*journal).await.unwrap()[&id].trashed, None);
    assert!(journal.verify().await.unwrap().is_sound());
}

/// S5.
pub async fn a_session_that_somebody_holds_is_neither_put_away_nor_deleted(place: &impl Place) {
    let journal = place.open().await;
    let key = a_key("cli");
    let id = a_session(&*journal, &key).await;
    let before = journal.head(&StreamName::names()).await.unwrap();
    for stream in [StreamName::session(id), StreamName::extract(id)] {
        let lease = journal.acquire_lease(&stream).await.unwrap();
        let is_session = stream == StreamName::session(id);

        let trashed = if is_session { trash_session(&*journal, &key).await.err() } else { None };
        let deleted = delete_session(&*journal, &key).await.unwrap_err();

        for refused in trashed.into_iter().chain([deleted]) {
            let holder = journal.holder(&stream).await.unwrap().unwrap();
            assert!(refused.to_string().contains(&holder.to_string()), "{refused}");
            assert!(refused.to_string().contains(&key), "{refused}");
        }
        journal.release_lease(&lease).await.unwrap();
    }

    assert_eq!(journal.head(&StreamName::names()).await.unwrap(), before, "nothing was changed");
    assert_eq!(read_all(&*journal, &StreamName::session(id)).await.len(), 2);
    delete_session(&*journal, &key).await.unwrap();
}

/// S5.
pub async fn a_deleted_session_takes_its_streams_and_unshared_blobs_along(place: &impl Place) {
    let journal = place.open().await;
    let (key, other) = (a_key("cli"), a_key("other"));
    let id = a_session(&*journal, &key).await;
    let other_id = a_session(&*journal, &other).await;
    let (own, shared) = (id.to_string().into_bytes(), other_id.to_string().into_bytes());
    with_picture(&*journal, id, &own).await;
    with_picture(&*journal, id, &shared).await;
    with_picture(&*journal, other_id, &shared).await;

    let deleted = delete_session(&*journal, &key).await.unwrap();
    let again = delete_session(&*journal, &key).await;

    assert_eq!((deleted.key.as_str(), deleted.id, deleted.records), (key.as_str(), id, 4));
    assert_eq!(again, Err(Error::NoSuchSession { key: key.clone() }));
    for stream in [StreamName::session(id), StreamName::inbox(id), StreamName::extract(id)] {
        assert_eq!(journal.head(&stream).await.unwrap(), Head::EMPTY, "{stream}");
    }
    assert!(journal.blob(Blob::new(own).hash()).await.is_err());
    assert!(journal.blob(Blob::new(shared).hash()).await.is_ok());
    assert_ne!(name_session(&*journal, &key).await.unwrap(), id, "the key is free");
    assert!(journal.verify().await.unwrap().is_sound());
}

/// S5, after a crash: the record was there, and some or none of the streams had gone.
pub async fn a_deletion_that_was_cut_short_is_finished_by_the_next(place: &impl Place) {
    for gone in 0..3 {
        let journal = place.open().await;
        let (key, other) = (a_key("cli"), a_key("other"));
        let id = a_session(&*journal, &key).await;
        a_session(&*journal, &other).await;
        let record = NamesRecord::Deleted(SessionDeleted { id }).encode();
        journal.append(Append::to(&StreamName::names()).record(record)).await.unwrap();
        let streams = [StreamName::inbox(id), StreamName::extract(id), StreamName::session(id)];
        for stream in streams.iter().take(gone) {
            journal.remove(stream, None).await.unwrap();
        }

        delete_session(&*journal, &other).await.unwrap();

        for stream in &streams {
            assert_eq!(journal.head(stream).await.unwrap(), Head::EMPTY, "after {gone}: {stream}");
        }
        assert_eq!(finish_deletions(&*journal).await.unwrap(), vec![], "after {gone}");
        let report = journal.verify().await.unwrap();
        assert!(report.is_sound() && report.unnamed.is_empty(), "after {gone}: {report:?}");
    }
}

/// S3.
pub async fn of_two_that_rename_to_one_key_one_succeeds(place: &impl Place) {
    let journal = place.open().await;
    let (one, two, new) = (a_key("one"), a_key("two"), a_key("new"));
    a_session(&*journal, &one).await;
    a_session(&*journal, &two).await;

    let (first, second) =
        tokio::join!(rename_session(&*journal, &one, &new), rename_session(&*journal, &two, &new));

    assert_eq!([&first, &second].iter().filter(|answer| answer.is_ok()).count(), 1, "{first:?} {second:?}");
    assert!(journal.verify().await.unwrap().is_sound());
}

pub async fn a_stream_says_how_much_it_holds(place: &impl Place) {
    let journal = place.open().await;
    let id = a_session(&*journal, &a_key("cli")).await;
    let stream = StreamName::session(id);
    let bodies = async || {
        let records = read_all(&*journal, &stream).await;
        records.iter().map(|record| record.text().unwrap().len() as u64).sum::<u64>()
    };
    let before = journal.size(&stream).await.unwrap();
    let bodies_before = bodies().await;

    with_picture(&*journal, id, &[7; 5_000]).await;
    let after = journal.size(&stream).await.unwrap();

    assert_eq!(before, StreamSize { records: 2, bytes: bodies_before });
    assert_eq!(after, StreamSize { records: 3, bytes: bodies().await + 5_000 });
    assert_eq!(journal.size(&StreamName::inbox(SessionId::generate())).await.unwrap(), StreamSize::default());
    assert_eq!(journal.drop_unused_blobs().await.unwrap(), 0);
    journal.sync().await.unwrap();
}
