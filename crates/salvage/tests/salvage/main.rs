//! J4: what a damaged journal still holds is brought out as it was committed, into another file.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[allow(dead_code, reason = "the tests of the journal use more of it")]
#[path = "../../../journal/tests/journal/random/mod.rs"]
mod random;
mod whole_journal;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use longhaul_journal::{
    Append, Blob, Damage, Error, Home, ImportOptions, Journal, SqliteJournal, SqliteOptions, export_session,
    import_session, name_session, put, restore,
};
use longhaul_protocol::{
    At, BlobRef, Body, Hash, InboxRecord, NamesRecord, NewRecord, Record, Seq, SessionDeleted, SessionId,
    StreamName,
};

use longhaul_salvage::{SalvageReport, salvage};

use crate::random::TestRandom;
use crate::whole_journal::{Content, a_journal, an_input, fast_folder, id_of, write_session};

const PAGE: usize = 4096;
const INTERIOR: u8 = 0x05;
const LEAF: u8 = 0x0d;

fn overwrite(random: &mut TestRandom, bytes: &mut [u8], count: usize) {
    for _ in 0..count {
        let place = random.below(bytes.len());
        bytes[place] = u8::try_from(random.below(256)).unwrap();
    }
}

fn change_file(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Every file of a home with its bytes, but for the lock, which has none.
fn files_of(home: &Home) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(home.folder()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn is_reported(lost: &[Damage], stream: &StreamName, seq: Seq) -> bool {
    lost.iter().any(|damage| {
        let from = damage.seq.unwrap_or(Seq::MAX);
        damage.stream.as_ref() == Some(stream) && from <= seq && seq <= damage.through.unwrap_or(from)
    })
}

/// Each record is as it was or is reported as lost, and has something in its place unless nothing comes after it;
/// each blob is as it was or can't be had. Returns the places of the lost.
fn assert_true_to(original: &Content, found: &Content, salvaged: &SalvageReport) -> Vec<(StreamName, Seq)> {
    assert_eq!(salvaged.report.damage, []);
    for place in found.records.keys() {
        assert!(original.records.contains_key(place), "{place:?} was never committed");
    }
    for (hash, blob) in &found.blobs {
        match blob {
            Ok(bytes) => assert_eq!(Ok(bytes), original.blobs[hash].as_ref()),
            Err(error) => assert_eq!(*error, Error::NoSuchBlob { hash: *hash }),
        }
    }
    let mut lost = Vec::new();
    for (place, record) in &original.records {
        let found = found.records.get(place);
        if found != Some(record) {
            assert!(found.is_none_or(|found| found.contains(r#""kind":"lost""#)), "{found:?}");
            assert!(is_reported(&salvaged.lost, &place.0, place.1), "{place:?}: {:?}", salvaged.lost);
            lost.push(place.clone());
        }
    }
    lost
}

/// J4.
#[tokio::test]
async fn a_sound_journal_is_brought_out_byte_for_byte() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    let file = folder.path().join("salvaged.db");

    let salvaged = salvage(&home, &file).unwrap();

    assert_eq!(salvaged.lost, []);
    assert_eq!(salvaged.report.damage, []);
    assert_eq!(salvaged.report.records, original.records.len() as u64);
    assert_eq!(Content::of_file(&file).await, original);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

/// J4.
#[tokio::test]
async fn nothing_but_the_new_file_is_left_behind_and_the_original_stays_as_it_is() {
    let folder = fast_folder();
    let (home, _) = a_journal(&folder.path().join("home")).await;
    change_file(&home.journal_file(), |bytes| overwrite(&mut TestRandom::new(1), bytes, 50));
    let before = files_of(&home);

    salvage(&home, &folder.path().join("salvaged.db")).unwrap();

    assert_eq!(files_of(&home), before);
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["home", "salvaged.db"]);
}

/// J4.
#[tokio::test]
async fn a_file_that_is_there_already_is_left_alone() {
    let folder = fast_folder();
    let (home, _) = a_journal(&folder.path().join("home")).await;
    let file = folder.path().join("precious");
    fs::write(&file, "precious").unwrap();

    let refused = salvage(&home, &file).unwrap_err();

    assert_eq!(refused, Error::Exists { path: file.clone() });
    assert_eq!(fs::read(&file).unwrap(), b"precious");
}

/// J4.
#[tokio::test]
async fn damage_to_the_first_page_loses_nothing() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    let sound = fs::read(home.journal_file()).unwrap();
    for seed in 0..20 {
        let mut bytes = sound.clone();
        overwrite(&mut TestRandom::new(seed), &mut bytes[..PAGE], 100);
        fs::write(home.journal_file(), bytes).unwrap();
        let file = folder.path().join(format!("{seed}.db"));

        let salvaged = salvage(&home, &file).unwrap();

        assert_eq!(salvaged.lost, [], "seed {seed}");
        assert_eq!(Content::of_file(&file).await, original, "seed {seed}");
    }
}

/// J4.
#[tokio::test]
async fn damage_to_the_pages_that_lead_to_others_loses_nothing() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    let mut damaged = 0;
    change_file(&home.journal_file(), |bytes| {
        for page in bytes.chunks_mut(PAGE).skip(1).filter(|page| page[0] == INTERIOR) {
            overwrite(&mut TestRandom::new(damaged), page, 100);
            damaged += 1;
        }
    });
    let file = folder.path().join("salvaged.db");

    let salvaged = salvage(&home, &file).unwrap();

    assert!(damaged > 0);
    assert_eq!(salvaged.lost, []);
    assert_eq!(Content::of_file(&file).await, original);
}

/// J4.
#[tokio::test]
async fn a_file_without_its_first_page_is_still_carved() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    change_file(&home.journal_file(), |bytes| bytes[..PAGE].fill(0));
    let file = folder.path().join("salvaged.db");

    let salvaged = salvage(&home, &file).unwrap();

    assert_eq!(salvaged.lost, []);
    assert_eq!(Content::of_file(&file).await, original);
}

/// A leaf of the table of records that holds a record with this text, and where it begins.
fn leaf_with(bytes: &[u8], text: &str) -> usize {
    let holds = |page: &[u8]| page[0] == LEAF && page.windows(text.len()).any(|part| part == text.as_bytes());
    bytes.chunks(PAGE).position(holds).unwrap() * PAGE
}

/// J4.
#[tokio::test]
async fn a_destroyed_leaf_loses_what_stood_on_it_and_something_stands_in_its_place() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    let mut leaf = Vec::new();
    change_file(&home.journal_file(), |bytes| {
        let start = leaf_with(bytes, "line 15 of 2");
        leaf = bytes[start..start + PAGE].to_vec();
        bytes[start..start + PAGE].fill(0xff);
    });
    let file = folder.path().join("salvaged.db");

    let salvaged = salvage(&home, &file).unwrap();

    let found = Content::of_file(&file).await;
    let lost = assert_true_to(&original, &found, &salvaged);
    assert!(!lost.is_empty());
    for place in lost {
        let record: Record = serde_json::from_str(&original.records[&place]).unwrap();
        let hash = record.hash.as_bytes();
        assert!(leaf.windows(32).any(|part| part == hash), "{place:?} was elsewhere");
        let stand_in: Record = serde_json::from_str(&found.records[&place]).unwrap();
        let Body::Gone(gone) = &stand_in.body else { panic!("{stand_in:?}") };
        assert_eq!((gone.body_hash, stand_in.kind.as_str()), (None, "lost"));
        assert_eq!(gone.reason, "lost to damage; a salvage put this in its place");
    }
}

/// J4.
#[tokio::test]
async fn a_salvaged_journal_can_be_restored_and_goes_on() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    change_file(&home.journal_file(), |bytes| {
        let start = leaf_with(bytes, "line 15 of 2");
        bytes[start..start + PAGE].fill(0);
    });
    let file = folder.path().join("salvaged.db");
    let salvaged = salvage(&home, &file).unwrap();

    restore(&home, &file).unwrap();

    let journal = SqliteJournal::open(&home).await.unwrap();
    assert_true_to(&original, &Content::of(&journal).await, &salvaged);
    let session = StreamName::session(id_of(&journal, "test:2").await);
    let lease = journal.acquire_lease(&session).await.unwrap();
    let record = InboxRecord::Input(an_input("more".to_owned())).encode();
    let appended = journal.append(Append::under(&lease).expecting(60).record(record)).await.unwrap();
    assert_eq!(appended[0].seq, 61);
    assert_eq!(journal.verify().await.unwrap().damage, []);
    journal.close().await;
}

/// J4: what stands in for a record is kept as it is, and what was lost earlier is not reported again.
#[tokio::test]
async fn a_second_salvage_changes_nothing() {
    let folder = fast_folder();
    let (home, _) = a_journal(&folder.path().join("home")).await;
    change_file(&home.journal_file(), |bytes| {
        let start = leaf_with(bytes, "line 15 of 2");
        bytes[start..start + PAGE].fill(0);
        let start = leaf_with(bytes, "blob 7 of 1");
        bytes[start..start + PAGE].fill(0);
    });
    let (first, second) = (folder.path().join("first.db"), folder.path().join("second.db"));
    let salvaged = salvage(&home, &first).unwrap();
    assert!(salvaged.lost.iter().any(|damage| damage.reason == "lost to damage"));
    restore(&home, &first).unwrap();

    let again = salvage(&home, &second).unwrap();

    assert_eq!(again.lost, []);
    assert_eq!(again.report, salvaged.report);
    assert_eq!(Content::of_file(&second).await, Content::of_file(&first).await);
}

/// J4: the names of streams may be what is lost.
#[tokio::test]
async fn records_of_streams_without_a_name_are_recognised_by_their_hashes() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    change_file(&home.journal_file(), |bytes| {
        let start = leaf_with(bytes, "memory/default");
        bytes[start..start + PAGE].fill(0);
    });
    let (with_heads, without) = (folder.path().join("with.db"), folder.path().join("without.db"));

    let salvaged = salvage(&home, &with_heads).unwrap();
    fs::remove_file(home.folder().join("heads.json")).unwrap();
    let less = salvage(&home, &without).unwrap();

    assert_eq!(salvaged.lost, []);
    assert_eq!(Content::of_file(&with_heads).await.records, original.records);
    // Sessions are known from their keys; the name of a memory is known from nowhere else.
    let found = Content::of_file(&without).await.records;
    let memory = StreamName::memory("default").unwrap();
    let known = original.records.into_iter().filter(|((stream, _), _)| *stream != memory);
    assert_eq!(found, known.collect());
    let reasons: Vec<&str> = less.lost.iter().map(|damage| damage.reason.as_str()).collect();
    assert_eq!(reasons, ["10 entries of a stream whose name is lost"]);
}

/// J4: a lost tail is said, not invented.
#[tokio::test]
async fn a_lost_tail_is_reported() {
    let folder = fast_folder();
    let home = Home::create(&folder.path().join("home")).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = name_session(&journal, "test:tail").await.unwrap();
    for line in 0..40 {
        let input = an_input(format!("line {line} {}", "x".repeat(500)));
        put(&journal, session, InboxRecord::Input(input).encode()).await.unwrap();
    }
    journal.close().await;
    let sound = fs::read(home.journal_file()).unwrap();
    let (whole, single) = (folder.path().join("whole.db"), folder.path().join("single.db"));
    let stream = StreamName::inbox(session);
    let tail = |from, through| Damage {
        stream: Some(stream.clone()),
        seq: Some(from),
        through,
        reason: "the end is lost".to_owned(),
    };

    change_file(&home.journal_file(), |bytes| {
        let start = leaf_with(bytes, "line 39 ");
        bytes[start..start + PAGE].fill(0);
    });
    let noted = salvage(&home, &whole).unwrap();
    // Without what was noted, a damaged row is still a sign.
    fs::remove_file(home.folder().join("heads.json")).unwrap();
    fs::write(home.journal_file(), sound).unwrap();
    change_file(&home.journal_file(), |bytes| {
        let place = bytes.windows(8).rposition(|part| part == b"line 39 ").unwrap();
        bytes[place] = b'L';
    });
    let seen = salvage(&home, &single).unwrap();

    let found =
        Content::of_file(&whole).await.records.into_keys().filter(|place| place.0 == stream).count() as Seq;
    assert!(found > 0 && found < 39, "{found}");
    assert_eq!(noted.lost, [tail(found + 1, Some(40))]);
    assert_eq!(seen.lost, [tail(40, None)]);
}

/// J4: a blob that is lost is said, and the record that refers to it stays.
#[tokio::test]
async fn a_lost_blob_is_reported_with_the_record_that_refers_to_it() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    let lost = Hash::of("blob 47 of 3 ".repeat(4_700));
    change_file(&home.journal_file(), |bytes| {
        let place = bytes.windows(13).position(|part| part == b"blob 47 of 3 ").unwrap();
        bytes[place] = b'B';
    });
    let file = folder.path().join("salvaged.db");

    let salvaged = salvage(&home, &file).unwrap();

    let found = Content::of_file(&file).await;
    assert_eq!(found.records, original.records);
    assert_eq!(found.blobs[&lost], Err(Error::NoSuchBlob { hash: lost }));
    let [damage] = salvaged.lost.as_slice() else { panic!("{:?}", salvaged.lost) };
    assert_eq!((damage.seq, damage.reason.clone()), (Some(48), format!("blob {lost} is lost")));
    assert_eq!((salvaged.report.erased, salvaged.report.lost), (1, 1));
}

/// J1: a blob that was lost comes back with the next append that brings it; an append that only refers to it is
/// refused, and an export of what is left can be imported.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_blob_that_comes_again_is_there_again() {
    let folder = fast_folder();
    let (home, _) = a_journal(&folder.path().join("home")).await;
    let bytes = "blob 47 of 3 ".repeat(4_700).into_bytes();
    let lost = Hash::of(&bytes);
    change_file(&home.journal_file(), |bytes| {
        let place = bytes.windows(13).position(|part| part == b"blob 47 of 3 ").unwrap();
        bytes[place] ^= 1;
    });
    let saved = folder.path().join("saved.db");
    let damage = salvage(&home, &saved).unwrap().lost.remove(0);
    restore(&home, &saved).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let stream = damage.stream.unwrap();
    let entry = journal
        .sessions(None, 100)
        .await
        .unwrap()
        .into_iter()
        .find(|entry| Some(entry.id) == stream.session_id());
    let mut export = tempfile::NamedTempFile::new().unwrap();
    export_session(&journal, &entry.unwrap().key, export.as_file_mut()).await.unwrap();
    let refers = || {
        let body = serde_json::json!({ "output": BlobRef::to(&bytes, "text/plain") });
        NewRecord {
            kind: "from_the_future".into(),
            body: serde_json::value::to_raw_value(&body).unwrap(),
            key: None,
        }
    };

    let alone = journal.append(Append::to(&stream).record(refers())).await;
    journal.append(Append::to(&stream).record(refers()).blob(Blob::new(bytes.clone()))).await.unwrap();

    assert_eq!(alone.unwrap_err(), Error::MissingBlob { stream: stream.clone(), hash: lost });
    assert_eq!(journal.blob(lost).await.unwrap(), bytes);
    let elsewhere =
        SqliteJournal::open(&Home::create(&folder.path().join("elsewhere")).unwrap()).await.unwrap();
    import_session(&elsewhere, export.path(), &ImportOptions::at(At(0))).await.unwrap();
    assert_eq!(elsewhere.blob(lost).await.unwrap_err(), Error::NoSuchBlob { hash: lost });
    assert!(elsewhere.verify().await.unwrap().is_sound());
}

/// A journal that never moves its log to the file by itself.
async fn open_keeping_the_log(home: &Home) -> SqliteJournal {
    let options = SqliteOptions { checkpoint_pages: u32::MAX, ..SqliteOptions::default() };
    SqliteJournal::open_with(home, options).await.unwrap()
}

/// J4, J1: what was acknowledged is in the log until it is moved to the file.
#[tokio::test]
async fn what_is_only_in_the_log_is_brought_out_too() {
    let folder = fast_folder();
    let home = Home::create(&folder.path().join("home")).unwrap();
    let journal = open_keeping_the_log(&home).await;
    let session = name_session(&journal, "test:log").await.unwrap();
    write_session(&journal, session, 1).await;
    let original = Content::of(&journal).await;
    let crashed = as_if_crashed(&home, &folder.path().join("crashed"));
    let before = files_of(&crashed);
    let file = folder.path().join("salvaged.db");

    let salvaged = salvage(&crashed, &file).unwrap();
    let while_open_here = salvage(&home, &folder.path().join("another.db"));

    assert_eq!(salvaged.lost, []);
    assert_eq!(Content::of_file(&file).await, original);
    assert_eq!(
        files_of(&crashed)
            .into_iter()
            .filter(|(path, _)| before.contains_key(path))
            .collect::<BTreeMap<_, _>>(),
        before
    );
    assert!(
        matches!(while_open_here, Err(Error::InUse { .. })),
        "it would cost this process its locks: {while_open_here:?}"
    );
    journal.close().await;
}

/// The home as it would be had the power gone: the file and its log as they are now.
fn as_if_crashed(home: &Home, folder: &Path) -> Home {
    let crashed = Home::create(folder).unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        fs::copy(home.folder().join(name), crashed.folder().join(name)).unwrap();
    }
    crashed
}

/// J4: a first page that can't be read keeps SQLite from reading anything, but not from moving the log.
#[tokio::test]
async fn what_is_only_in_the_log_is_brought_out_though_the_first_page_is_damaged() {
    let folder = fast_folder();
    let (home, _) = a_journal(&folder.path().join("home")).await;
    let journal = open_keeping_the_log(&home).await;
    let session = id_of(&journal, "test:0").await;
    put(&journal, session, InboxRecord::Input(an_input("the last one".to_owned())).encode()).await.unwrap();
    let original = Content::of(&journal).await;
    for (case, damage) in [0..100, 100..PAGE, 0..PAGE].into_iter().enumerate() {
        let crashed = as_if_crashed(&home, &folder.path().join(format!("crashed {case}")));
        change_file(&crashed.journal_file(), |bytes| bytes[damage].fill(0xff));
        let file = folder.path().join(format!("{case}.db"));

        let salvaged = salvage(&crashed, &file).unwrap();

        assert_eq!(salvaged.lost, [], "case {case}");
        assert_eq!(Content::of_file(&file).await, original, "case {case}");
    }
    journal.close().await;
}

/// J4, J10: what was erased does not come back from a page that was left over, wherever in the file that is.
#[tokio::test]
async fn an_erased_body_does_not_come_back() {
    let folder = fast_folder();
    let (home, _) = a_journal(&folder.path().join("home")).await;
    let sound = fs::read(home.journal_file()).unwrap();
    let start = leaf_with(&sound, "line 15 of 2");
    let remnant = &sound[start..start + PAGE];
    let journal = SqliteJournal::open(&home).await.unwrap();
    let session = StreamName::session(id_of(&journal, "test:2").await);
    journal.erase(&[(session.clone(), 16)], "on request").await.unwrap();
    let original = Content::of(&journal).await;
    journal.close().await;
    let erased = fs::read(home.journal_file()).unwrap();
    let (before, after) = (folder.path().join("before.db"), folder.path().join("after.db"));

    change_file(&home.journal_file(), |bytes| bytes.extend_from_slice(remnant));
    salvage(&home, &after).unwrap();
    let interior = erased.chunks(PAGE).position(|page| page[0] == INTERIOR).unwrap() * PAGE;
    assert!(interior < leaf_with(&erased, "line 14 of 2"));
    fs::write(home.journal_file(), erased).unwrap();
    change_file(&home.journal_file(), |bytes| bytes[interior..interior + PAGE].copy_from_slice(remnant));
    salvage(&home, &before).unwrap();

    assert_eq!(Content::of_file(&after).await, original);
    assert_eq!(Content::of_file(&before).await, original);
}

/// J4: what was deleted does not come back from a page that was left over.
#[tokio::test]
async fn a_deleted_session_does_not_come_back() {
    let folder = fast_folder();
    let (home, _) = a_journal(&folder.path().join("home")).await;
    let sound = fs::read(home.journal_file()).unwrap();
    let start = leaf_with(&sound, "line 15 of 2");
    let journal = SqliteJournal::open(&home).await.unwrap();
    let id = id_of(&journal, "test:2").await;
    let deleted = NamesRecord::Deleted(SessionDeleted { id }).encode();
    journal.append(Append::to(&StreamName::names()).record(deleted)).await.unwrap();
    for stream in [StreamName::session(id), StreamName::inbox(id)] {
        journal.remove(&stream, None).await.unwrap();
    }
    let original = Content::of(&journal).await;
    journal.close().await;
    change_file(&home.journal_file(), |bytes| bytes.extend_from_slice(&sound[start..start + PAGE]));
    let file = folder.path().join("salvaged.db");

    salvage(&home, &file).unwrap();

    assert_eq!(Content::of_file(&file).await, original);
}

/// J4: records that are sound but do not follow from each other are not passed off as one history.
#[tokio::test]
async fn two_histories_of_one_stream_are_not_mixed() {
    let folder = fast_folder();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    let inbox = StreamName::inbox(SessionId::generate());
    let mut homes = Vec::new();
    for folder in [one, other] {
        let home = Home::create(&folder).unwrap();
        let journal = SqliteJournal::open(&home).await.unwrap();
        for line in 0..5 {
            let record =
                InboxRecord::Input(an_input(format!("line {line} in {}", folder.display()))).encode();
            journal.append(Append::to(&inbox).record(record)).await.unwrap();
        }
        journal.close().await;
        homes.push(home);
    }
    let original = Content::of_file(&homes[0].journal_file()).await;
    let db = rusqlite::Connection::open(homes[0].journal_file()).unwrap();
    db.execute("ATTACH ?1 AS other", [homes[1].journal_file().to_str().unwrap()]).unwrap();
    let third = "SELECT * FROM other.records ORDER BY id LIMIT 1 OFFSET 2";
    assert_eq!(db.execute(&format!("REPLACE INTO records {third}"), []).unwrap(), 1);
    db.close().unwrap();
    let file = folder.path().join("salvaged.db");

    let salvaged = salvage(&homes[0], &file).unwrap();

    let lost = assert_true_to(&original, &Content::of_file(&file).await, &salvaged);
    assert_eq!(lost, [(inbox.clone(), 3), (inbox, 4)]);
}

/// J4.
#[tokio::test]
async fn a_home_without_a_journal_and_a_file_that_is_none_are_refused() {
    let folder = fast_folder();
    let home = Home::create(&folder.path().join("home")).unwrap();
    let file = folder.path().join("salvaged.db");
    let path = home.journal_file();

    let missing = salvage(&home, &file).unwrap_err();
    fs::write(&path, vec![b'x'; 100_000]).unwrap();
    let foreign = salvage(&home, &file).unwrap_err();

    let reason = "no such file".to_owned();
    assert_eq!(missing, Error::BadFile { path: path.clone(), reason });
    let reason = "nothing in it can be recognised as a journal".to_owned();
    assert_eq!(foreign, Error::BadFile { path, reason });
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["home"]);
}

/// J4: whatever the damage, a record comes out as it was or not at all, and what does not is reported.
#[tokio::test]
async fn random_damage_never_changes_a_record_and_all_that_is_lost_is_reported() {
    let folder = fast_folder();
    let (home, original) = a_journal(&folder.path().join("home")).await;
    let sound = fs::read(home.journal_file()).unwrap();
    for seed in 0..60 {
        println!("seed {seed}");
        let mut random = TestRandom::new(seed);
        let mut bytes = sound.clone();
        let count = 1 + random.below(200);
        overwrite(&mut random, &mut bytes, count);
        fs::write(home.journal_file(), bytes).unwrap();
        let file = folder.path().join(format!("{seed}.db"));

        let salvaged = salvage(&home, &file).unwrap();

        let lost = assert_true_to(&original, &Content::of_file(&file).await, &salvaged);
        assert!(lost.len() <= count, "{count} bytes cost {} records", lost.len());
        fs::remove_file(file).unwrap();
    }
}
