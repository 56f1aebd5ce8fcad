use std::sync::Arc;

use crate::{
    Append, Author, Blob, Error, Head, ImportMark, ImportOptions, Journal, SessionEntry, all_sessions,
    erase_record, export_session, import_mark, import_session, name_session, newest_import, put, resolve,
};
use longhaul_protocol::{
    At, BlobRef, EpochReason, EpochStarted, Hash, Image, Imported, InboxRecord, Input, InputId, JoinMode,
    NamesRecord, NewRecord, Seq, SessionCreated, SessionDeleted, SessionId, SessionRecord, SessionRenamed,
    SessionTrashed, StreamName,
};

use super::{Place, a_stream, append_notes, read_all};

fn epoch(number: u64) -> SessionRecord {
    let blob = BlobRef::to(b"{}", "application/json");
    SessionRecord::EpochStarted(EpochStarted::new(number, EpochReason::Created, blob.clone(), blob))
}

async fn start_epoch(journal: &dyn Journal, stream: &StreamName, number: u64) {
    let append = Append::to(stream).record(epoch(number).encode()).blob(Blob::new(*b"{}"));
    journal.append(append).await.unwrap();
}

/// Appends the record that a session begins with.
async fn create(journal: &dyn Journal, id: SessionId) {
    let created = SessionRecord::SessionCreated(SessionCreated {
        id,
        key: "there".to_owned(),
        work_dir: Some("/home/ann/there".to_owned()),
        origin: None,
        version: "0.1.0".to_owned(),
        parent: None,
    });
    journal.append(Append::to(&StreamName::session(id)).record(created.encode())).await.unwrap();
}

/// A file with the session of this key, which is deleted then.
async fn take_out(journal: &dyn Journal, key: &str, id: SessionId) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    export_session(journal, key, file.as_file_mut()).await.unwrap();
    say(journal, NamesRecord::Deleted(SessionDeleted { id })).await;
    file
}

async fn say(journal: &dyn Journal, record: NamesRecord) {
    journal.append(Append::to(&StreamName::names()).record(record.encode())).await.unwrap();
}

/// A key that no other test uses.
fn a_key(prefix: &str) -> String {
    format!("{prefix}:{}", SessionId::generate())
}

pub async fn two_that_first_use_a_key_agree_on_one_session(place: &impl Place) {
    let key = a_key("cli");
    let journals = [place.open().await, place.open().await, place.open().await, place.open().await];

    let tasks: Vec<_> = journals
        .iter()
        .map(|journal| {
            let (journal, key) = (journal.clone(), key.clone());
            tokio::spawn(async move { name_session(&*journal, &key).await.unwrap() })
        })
        .collect();
    let mut ids = Vec::new();
    for task in tasks {
        ids.push(task.await.unwrap());
    }

    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(resolve(&*journals[0], &key).await.unwrap().id, ids[0]);
}

pub async fn names_follow_their_stream(place: &impl Place) {
    let journal = place.open().await;
    let (old, new) = (a_key("old"), a_key("new"));
    let id = name_session(&*journal, &old).await.unwrap();

    say(&*journal, NamesRecord::Renamed(SessionRenamed { id, from: old.clone(), to: new.clone() })).await;
    assert_eq!(journal.session(&old).await.unwrap(), None);
    assert_eq!(resolve(&*journal, &new).await.unwrap().id, id);
    assert_eq!(journal.session_with_id(id).await.unwrap().map(|entry| entry.key), Some(new.clone()));

    say(&*journal, NamesRecord::Trashed(SessionTrashed { id })).await;
    assert!(resolve(&*journal, &new).await.unwrap().trashed);

    say(&*journal, NamesRecord::Deleted(SessionDeleted { id })).await;
    assert_eq!(resolve(&*journal, &new).await.unwrap_err(), Error::NoSuchSession { key: new.clone() });
    assert_ne!(name_session(&*journal, &new).await.unwrap(), id, "the key is free for another session");
    assert!(journal.verify().await.unwrap().is_sound());
}

pub async fn sessions_are_listed_with_what_loading_them_needs(place: &impl Place) {
    let journal = place.open().await;
    let (empty, full) = (a_key("a"), a_key("b"));
    let empty_id = name_session(&*journal, &empty).await.unwrap();
    let full_id = name_session(&*journal, &full).await.unwrap();
    let stream = StreamName::session(full_id);
    append_notes(&*journal, &stream, &["one", "two"]).await;
    start_epoch(&*journal, &stream, 1).await;
    start_epoch(&*journal, &stream, 2).await;
    append_notes(&*journal, &stream, &["three"]).await;
    let input = Input::new(InputId::generate(), "hi", JoinMode::Join);
    put(&*journal, full_id, InboxRecord::Input(input).encode()).await.unwrap();

    let mut listed = Vec::new();
    while let page =
        journal.sessions(listed.last().map(|entry: &SessionEntry| entry.key.as_str()), 1).await.unwrap()
        && !page.is_empty()
    {
        listed.extend(page);
    }

    let keys: Vec<_> = listed.iter().map(|entry| entry.key.clone()).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let entry = |key: &str| listed.iter().find(|entry| entry.key == key).unwrap().clone();
    let last = read_all(&*journal, &stream).await.pop().unwrap();
    let nothing = Head::EMPTY;
    assert_eq!(
        entry(&empty),
        SessionEntry {
            key: empty,
            id: empty_id,
            trashed: false,
            pinned: false,
            head: nothing,
            last_at: None,
            epoch_from: None,
            inbox_head: 0
        }
    );
    assert_eq!(
        entry(&full),
        SessionEntry {
            key: full,
            id: full_id,
            trashed: false,
            pinned: false,
            head: Head { seq: 5, hash: last.hash },
            last_at: Some(last.at),
            epoch_from: Some(4),
            inbox_head: 1,
        }
    );
}

pub async fn all_sessions_are_listed_once(place: &impl Place) {
    let journal = place.open().await;
    let mut named = Vec::new();
    for number in 0..7 {
        named.push(name_session(&*journal, &a_key(&number.to_string())).await.unwrap());
    }

    let listed = all_sessions(&*journal).collect().await.unwrap();

    let ids: Vec<_> = listed.iter().map(|entry| entry.id).collect();
    assert!(listed.is_sorted_by(|one, other| one.key < other.key), "{listed:?}");
    assert!(named.iter().all(|id| ids.iter().filter(|listed| *listed == id).count() == 1), "{listed:?}");
}

pub async fn the_newest_epoch_is_found(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["before"]).await;
    assert_eq!(journal.newest_epoch(&stream, Seq::MAX).await.unwrap(), None);

    start_epoch(&*journal, &stream, 1).await;
    append_notes(&*journal, &stream, &["within"]).await;
    start_epoch(&*journal, &stream, 2).await;

    let mut found = Vec::new();
    for through in [0, 1, 2, 3, 4, 5, Seq::MAX] {
        found.push(journal.newest_epoch(&stream, through).await.unwrap());
    }
    assert_eq!(found, [None, None, Some(2), Some(2), Some(4), Some(4), Some(4)]);
}

pub async fn records_of_one_kind_are_found_in_their_order(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    assert!(journal.records_of_kind(&stream, "epoch_started").await.unwrap().is_empty());

    append_notes(&*journal, &stream, &["before"]).await;
    start_epoch(&*journal, &stream, 1).await;
    append_notes(&*journal, &stream, &["within"]).await;
    start_epoch(&*journal, &stream, 2).await;

    let found = journal.records_of_kind(&stream, "epoch_started").await.unwrap();
    assert_eq!(found.iter().map(|record| record.seq).collect::<Vec<_>>(), [2, 4]);
}

/// T1, as far as the journal goes.
pub async fn an_input_put_twice_is_one_input(place: &impl Place) {
    let journal = place.open().await;
    let id = name_session(&*journal, &a_key("http")).await.unwrap();
    let input = |text: &str| {
        let (id, text) = (InputId::generate(), text.to_owned());
        InboxRecord::Input(Input::new(id, text, JoinMode::Join)).encode().with_key("request 7")
    };

    let first = put(&*journal, id, input("hello")).await.unwrap();
    let second = put(&*place.open().await, id, input("hello again")).await.unwrap();

    assert_eq!((first, second), (1, 1));
    assert_eq!(journal.head(&StreamName::inbox(id)).await.unwrap().seq, 1);
}

pub async fn an_export_comes_back_as_it_was(place: &impl Place) {
    let journal = place.open().await;
    let key = a_key("cli");
    let id = name_session(&*journal, &key).await.unwrap();
    let (session, inbox) = (StreamName::session(id), StreamName::inbox(id));
    create(&*journal, id).await;
    append_notes(&*journal, &session, &["secret", "three"]).await;
    start_epoch(&*journal, &session, 1).await;
    append_notes(&*journal, &inbox, &["waiting"]).await;
    journal.erase(&[(session.clone(), 2)], "secret").await.unwrap();
    let before = serde_json::to_string(&read_all(&*journal, &session).await).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let exported = export_session(&*journal, &key, file.as_file_mut()).await.unwrap();

    let still_here = import_session(&*journal, file.path(), &under(&a_key("twin"))).await;
    say(&*journal, NamesRecord::Deleted(SessionDeleted { id })).await;
    let back = import_session(&*journal, file.path(), &under("cli:back")).await.unwrap();

    assert!(
        matches!(still_here, Err(Error::BadFile { .. })),
        "one session is not here twice: {still_here:?}"
    );
    assert_eq!((exported.records, exported.blobs), (5, 1));
    assert_eq!((back.key.as_str(), back.id, back.records, back.blobs), ("cli:back", id, 5, 1));
    let mut brought = read_all(&*journal, &session).await;
    assert_eq!(brought.pop().unwrap().kind, "imported");
    assert_eq!(serde_json::to_string(&brought).unwrap(), before);
    assert_eq!(resolve(&*journal, "cli:back").await.unwrap().epoch_from, Some(4));
    assert!(journal.verify().await.unwrap().is_sound());
}

fn under(key: &str) -> ImportOptions {
    ImportOptions { key: Some(key.to_owned()), ..ImportOptions::at(At(0)) }
}

/// S5: the mark of an import says what came with the file and whose words that is, and it is found by one look-up.
pub async fn an_imported_session_says_so_and_whose_words_it_holds(place: &impl Place) {
    let journal = place.open().await;
    let key = a_key("cli");
    let id = name_session(&*journal, &key).await.unwrap();
    let (session, inbox, extract) = (StreamName::session(id), StreamName::inbox(id), StreamName::extract(id));
    create(&*journal, id).await;
    append_notes(&*journal, &session, &["two"]).await;
    append_notes(&*journal, &inbox, &["waiting", "and this"]).await;
    append_notes(&*journal, &extract, &["an extract"]).await;
    let never = import_mark(&*journal, id).await.unwrap();
    let options = |author: Author| ImportOptions {
        at: At(7),
        key: Some(key.clone()),
        work_dir: Some("/home/ann/here".to_owned()),
        author,
    };
    let mut marks = Vec::new();

    for author in [Author::Importer, Author::Stranger, Author::Importer] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        export_session(&*journal, &key, file.as_file_mut()).await.unwrap();
        say(&*journal, NamesRecord::Deleted(SessionDeleted { id })).await;
        import_session(&*journal, file.path(), &options(author)).await.unwrap();
        marks.push(import_mark(&*journal, id).await.unwrap());
    }

    assert_eq!(never, ImportMark::default());
    let mark = |seq, foreign_through, foreign_extracts_through| ImportMark {
        seq,
        key: key.clone(),
        work_dir: Some("/home/ann/here".to_owned()),
        foreign_through,
        foreign_extracts_through,
    };
    assert_eq!(marks, [mark(3, 0, 0), mark(4, 4, 1), mark(5, 4, 1)], "once somebody else's, always so");
    let newest = newest_import(&*journal, id, Seq::MAX).await.unwrap().unwrap();
    let imported: Imported = newest.decode().unwrap();
    assert_eq!((imported.at, imported.inbox_through, imported.mine), (At(7), 2, true));
    let erased = erase_record(&*journal, id, 4, "no").await;
    assert!(matches!(erased, Err(Error::MarksImport { .. })), "{erased:?}");
}

/// Finding the newest import costs one look-up for each import, whatever a file holds.
pub async fn a_file_can_not_give_the_key_of_an_import_to_another_record(place: &impl Place) {
    let journal = place.open().await;
    let key = a_key("cli");
    let id = name_session(&*journal, &key).await.unwrap();
    create(&*journal, id).await;
    let disguised = super::note("one").with_key("imported/7");
    journal.append(Append::to(&StreamName::session(id)).record(disguised)).await.unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    export_session(&*journal, &key, file.as_file_mut()).await.unwrap();
    say(&*journal, NamesRecord::Deleted(SessionDeleted { id })).await;

    let imported = import_session(&*journal, file.path(), &ImportOptions::at(At(0))).await;

    assert!(matches!(imported, Err(Error::BadFile { .. })), "{imported:?}");
}

/// What a session works in is in its first record. One that was erased is a stub, and the mark says the rest.
pub async fn a_file_that_does_not_begin_with_the_creation_of_its_session_is_refused(place: &impl Place) {
    let journal = place.open().await;
    let (begun, erased) = (a_key("begun"), a_key("erased"));
    let id = name_session(&*journal, &begun).await.unwrap();
    append_notes(&*journal, &StreamName::session(id), &["one"]).await;
    let other = name_session(&*journal, &erased).await.unwrap();
    create(&*journal, other).await;
    erase_record(&*journal, other, 1, "a secret folder").await.unwrap();
    let headless = take_out(&*journal, &begun, id).await;
    let stub = take_out(&*journal, &erased, other).await;

    let refused = import_session(&*journal, headless.path(), &ImportOptions::at(At(0))).await;
    let imported = import_session(&*journal, stub.path(), &ImportOptions::at(At(0))).await;

    let Err(Error::BadFile { reason, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(reason, r#"line 2: the session begins with "note", not with "session_created""#);
    assert!(imported.is_ok(), "{imported:?}");
}

/// A record that can't be decoded would make a session that can't be opened.
pub async fn a_file_with_a_record_of_the_wrong_form_is_refused(place: &impl Place) {
    let journal = place.open().await;
    let families: [fn(SessionId) -> StreamName; 3] =
        [StreamName::session, StreamName::inbox, StreamName::extract];
    for (stream, kind) in families.into_iter().zip(["turn_started", "input", "extracted"]) {
        let key = a_key("wrong");
        let id = name_session(&*journal, &key).await.unwrap();
        create(&*journal, id).await;
        let body = serde_json::value::to_raw_value(&serde_json::json!({ "turn": "first" })).unwrap();
        let wrong = NewRecord { kind: kind.to_owned(), body, key: None };
        journal.append(Append::to(&stream(id)).record(wrong)).await.unwrap();
        let file = take_out(&*journal, &key, id).await;

        let refused = import_session(&*journal, file.path(), &ImportOptions::at(At(0))).await;

        let Err(Error::BadFile { reason, .. }) = refused else { panic!("{kind}: {refused:?}") };
        assert!(reason.starts_with("line ") && reason.contains(&format!("not a valid {kind}")), "{reason}");
    }
}

/// A key from a file is checked as one that a user types, and may not be one that the program gives to sessions of this home.
pub async fn the_key_of_a_file_is_checked(place: &impl Place) {
    let journal = place.open().await;
    let folder = a_key("cli:w");
    let id = name_session(&*journal, &folder).await.unwrap();
    create(&*journal, id).await;
    let file = take_out(&*journal, &folder, id).await;
    let text = std::fs::read_to_string(file.path()).unwrap();
    let with_key = |key: &str| {
        let key = serde_json::to_string(key).unwrap();
        let (header, rest) =
            text.rsplit_once("{\"end\"").map(|(body, _)| body.split_once('\n').unwrap()).unwrap();
        let header = header.replacen(&serde_json::to_string(&folder).unwrap(), &key, 1);
        let body = format!("{header}\n{rest}");
        let end = Hash::of(&body);
        let changed = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(changed.path(), format!("{body}{{\"end\":\"{end}\"}}\n")).unwrap();
        changed
    };
    let long = "L".repeat(200_000);
    for bad in ["", "  ", "--help", "a\nb", "\u{1b}[31mred", &long] {
        let refused = import_session(&*journal, with_key(bad).path(), &ImportOptions::at(At(0))).await;
        let Err(Error::BadFile { reason, .. }) = refused else { panic!("{bad:?}: {refused:?}") };
        assert!(reason.contains("its key can't be used") && reason.len() < 200, "{reason}");
    }

    let kept = import_session(&*journal, file.path(), &ImportOptions::at(At(0))).await.unwrap();
    say(&*journal, NamesRecord::Deleted(SessionDeleted { id })).await;
    let chosen = import_session(&*journal, with_key(&long).path(), &under("run:mine")).await.unwrap();

    assert_eq!((kept.key, chosen.key.as_str()), (folder, "run:mine"));
}

/// A session of which only the inbox was used begins with its import.
pub async fn a_session_without_records_begins_with_its_import(place: &impl Place) {
    let journal = place.open().await;
    let key = a_key("cli");
    let id = name_session(&*journal, &key).await.unwrap();
    append_notes(&*journal, &StreamName::inbox(id), &["waiting"]).await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    export_session(&*journal, &key, file.as_file_mut()).await.unwrap();
    say(&*journal, NamesRecord::Deleted(SessionDeleted { id })).await;

    import_session(&*journal, file.path(), &ImportOptions::at(At(0))).await.unwrap();

    let kinds: Vec<String> =
        read_all(&*journal, &StreamName::session(id)).await.into_iter().map(|record| record.kind).collect();
    assert_eq!(kinds, ["session_created", "imported"]);
}

pub async fn an_export_with_one_changed_byte_is_refused(place: &impl Place) {
    let journal = place.open().await;
    let key = a_key("cli");
    let id = name_session(&*journal, &key).await.unwrap();
    create(&*journal, id).await;
    start_epoch(&*journal, &StreamName::session(id), 1).await;
    append_notes(&*journal, &StreamName::session(id), &["one", "two"]).await;
    let mut export = Vec::new();
    export_session(&*journal, &key, &mut export).await.unwrap();
    let names_before = journal.head(&StreamName::names()).await.unwrap();
    say(&*journal, NamesRecord::Deleted(SessionDeleted { id })).await;
    journal.remove(&StreamName::session(id), None).await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let header_end = export.iter().position(|byte| *byte == b'\n').unwrap();

    for place_of_change in (0..export.len()).step_by(7) {
        let mut changed = export.clone();
        changed[place_of_change] ^= 0x04;
        std::fs::write(file.path(), &changed).unwrap();
        let refused = import_session(&*journal, file.path(), &ImportOptions::at(At(0))).await;
        assert!(matches!(refused, Err(Error::BadFile { .. })), "byte {place_of_change}: {refused:?}");
    }
    for cut in [0, 1, header_end, header_end + 1, export.len() / 2, export.len() - 1] {
        std::fs::write(file.path(), &export[..cut]).unwrap();
        let refused = import_session(&*journal, file.path(), &ImportOptions::at(At(0))).await;
        assert!(matches!(refused, Err(Error::BadFile { .. })), "cut at {cut}: {refused:?}");
    }

    assert_eq!(journal.head(&StreamName::session(id)).await.unwrap(), Head::EMPTY, "nothing was changed");
    assert_eq!(journal.head(&StreamName::names()).await.unwrap().seq, names_before.seq + 1);
}

/// An import comes in parts, and a blob stays with the record that refers to it, however large.
pub async fn an_export_with_large_blobs_comes_back(place: &impl Place) {
    let journal = place.open().await;
    let key = a_key("cli");
    let id = name_session(&*journal, &key).await.unwrap();
    let stream = StreamName::session(id);
    create(&*journal, id).await;
    for number in 0..3_u8 {
        append_notes(&*journal, &stream, &["small"]).await;
        let bytes = vec![number; 2 << 20];
        let image = Image { data: BlobRef::to(&bytes, "image/png") };
        let body = serde_json::value::to_raw_value(&serde_json::json!({ "image": image })).unwrap();
        let record = NewRecord { kind: "from_the_future".into(), body, key: None };
        journal.append(Append::to(&stream).record(record).blob(Blob::new(bytes))).await.unwrap();
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    export_session(&*journal, &key, file.as_file_mut()).await.unwrap();
    say(&*journal, NamesRecord::Deleted(SessionDeleted { id })).await;
    journal.remove(&stream, None).await.unwrap();

    let imported = import_session(&*journal, file.path(), &ImportOptions::at(At(0))).await.unwrap();

    assert_eq!((imported.records, imported.blobs), (7, 3));
    let hash = Blob::new(vec![2; 2 << 20]).hash();
    assert_eq!(journal.blob(hash).await.unwrap().len(), 2 << 20);
}

/// Two that import the same file never harm each other: one brings the session, the other is refused.
pub async fn of_two_imports_of_one_session_at_once_one_succeeds(place: &impl Place) {
    let journals = [place.open().await, place.open().await];
    let key = a_key("cli");
    let id = name_session(&*journals[0], &key).await.unwrap();
    let stream = StreamName::session(id);
    create(&*journals[0], id).await;
    append_notes(&*journals[0], &stream, &["two", "three"]).await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    export_session(&*journals[0], &key, file.as_file_mut()).await.unwrap();
    let path = Arc::new(file.into_temp_path());

    for round in 0..10 {
        say(&*journals[0], NamesRecord::Deleted(SessionDeleted { id })).await;
        let imports = journals.clone().map(|journal| {
            let path = Arc::clone(&path);
            tokio::spawn(async move { import_session(&*journal, &path, &ImportOptions::at(At(0))).await })
        });
        let mut answers = Vec::new();
        for import in imports {
            answers.push(import.await.unwrap());
        }
        let brought = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(brought, 1, "round {round}: {answers:?}");
        assert_eq!(read_all(&*journals[1], &stream).await.len(), 4, "round {round}");
    }
}

/// J11.
pub async fn a_backup_is_consistent_while_others_write(place: &impl Place) {
    let journal = place.open().await;
    let streams = [a_stream(), a_stream(), a_stream()];
    append_notes(&*journal, &streams[0], &["first"]).await;
    let writers: Vec<_> = streams
        .iter()
        .map(|stream| {
            let (journal, stream) = (journal.clone(), stream.clone());
            tokio::spawn(async move {
                for _ in 0..100 {
                    append_notes(&*journal, &stream, &["on and on"]).await;
                }
            })
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();

    let report = journal.backup(&folder.path().join("backup")).await.unwrap();
    let again = journal.backup(&folder.path().join("backup")).await;

    for writer in writers {
        writer.await.unwrap();
    }
    assert!(report.is_sound(), "{report:?}");
    assert!(report.records >= 1);
    assert!(matches!(again, Err(Error::Exists { .. })), "a backup never replaces a file: {again:?}");
}
