//! A journal with a bit of everything, and all that one holds as something to compare.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use longhaul_journal::{
    Append, Blob, Error, Home, Journal, SqliteJournal, all_sessions, name_session, put, records,
};
use longhaul_protocol::{
    Hash, InboxRecord, Input, InputId, JoinMode, NamesRecord, Seq, SessionId, SessionRenamed, SessionTrashed,
    StreamName, blob_refs,
};
use serde_json::json;
use serde_json::value::to_raw_value;

/// A folder in memory where there is one: these tests copy a journal many times.
pub(crate) fn fast_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Everything that a journal holds: each record in its JSON form by its place, each blob by its address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) streams: Vec<StreamName>,
    pub(crate) records: BTreeMap<(StreamName, Seq), String>,
    pub(crate) blobs: BTreeMap<Hash, Result<Vec<u8>, Error>>,
    pub(crate) sessions: Vec<(String, SessionId, bool)>,
}

impl Content {
    pub(crate) async fn of(journal: &SqliteJournal) -> Self {
        let mut content = Self { streams: journal.streams().await.unwrap(), ..Self::default() };
        for stream in &content.streams {
            for record in records(journal, stream, 1).collect().await.unwrap() {
                for blob in record.text().map(blob_refs).unwrap_or_default() {
                    content.blobs.insert(blob.hash, journal.blob(blob.hash).await);
                }
                let place = (stream.clone(), record.seq);
                content.records.insert(place, serde_json::to_string(&record).unwrap());
            }
        }
        let sessions = all_sessions(journal).collect().await.unwrap();
        content.sessions = sessions.into_iter().map(|entry| (entry.key, entry.id, entry.trashed)).collect();
        content
    }

    /// What a file holds, opened as the journal of a home of its own.
    pub(crate) async fn of_file(file: &Path) -> Self {
        let folder = fast_folder();
        let home = Home::create(folder.path()).unwrap();
        fs::copy(file, home.journal_file()).unwrap();
        let journal = SqliteJournal::open(&home).await.unwrap();
        let content = Self::of(&journal).await;
        journal.close().await;
        content
    }
}

pub(crate) fn an_input(text: String) -> Input {
    Input::new(InputId::generate(), text, JoinMode::Join)
}

/// A journal with streams of every family, bodies short and long, blobs, keys, an erased body, and sessions that were
/// put away, renamed and removed; closed, so that its file is at rest.
pub(crate) async fn a_journal(folder: &Path) -> (Home, Content) {
    let home = Home::create(folder).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    for number in 0..5 {
        let session = name_session(&journal, &format!("test:{number}")).await.unwrap();
        write_session(&journal, session, number).await;
    }
    let memory = StreamName::memory("default").unwrap();
    for line in 0..10 {
        let page = to_raw_value(&json!({ "line": line })).unwrap();
        let record = InboxRecord::Unknown { kind: "page".to_owned(), body: page }.encode();
        journal.append(Append::to(&memory).record(record)).await.unwrap();
    }
    let erased = StreamName::session(id_of(&journal, "test:1").await);
    journal.erase(&[(erased.clone(), 5)], "on request").await.unwrap();
    let (from, to) = ("test:3".to_owned(), "test:renamed".to_owned());
    for change in [
        NamesRecord::Trashed(SessionTrashed { id: id_of(&journal, "test:0").await }),
        NamesRecord::Renamed(SessionRenamed { id: id_of(&journal, &from).await, from, to }),
    ] {
        journal.append(Append::to(&StreamName::names()).record(change.encode())).await.unwrap();
    }
    let removed = StreamName::session(id_of(&journal, "test:4").await);
    journal.remove(&removed, None).await.unwrap();
    let content = Content::of(&journal).await;
    journal.close().await;
    (home, content)
}

pub(crate) async fn id_of(journal: &SqliteJournal, key: &str) -> SessionId {
    journal.session(key).await.unwrap().unwrap().id
}

pub(crate) async fn write_session(journal: &SqliteJournal, session: SessionId, number: usize) {
    for line in 0..8 {
        let input = an_input(format!("input {line} for {number}"));
        let record = InboxRecord::Input(input).encode().with_key(&format!("key {line}"));
        put(journal, session, record).await.unwrap();
    }
    let stream = StreamName::session(session);
    for line in 0..60 {
        // One is long enough to run over to other pages.
        let text = format!(
            "line {line} of {number}: {}",
            "word ".repeat(if line == 30 { 4_000 } else { line % 23 })
        );
        let mut append = Append::to(&stream);
        let mut body = json!({ "text": text });
        if line % 20 == 7 {
            let blob = Blob::new(format!("blob {line} of {number} ").repeat(100 * line));
            body["whole"] = json!({ "blob": blob.hash(), "bytes": 1, "media": "text/plain" });
            append = append.blob(blob);
        }
        let mut kind = "note";
        if line == 0 {
            kind = "session_created";
            (body["id"], body["key"], body["version"]) = (json!(session), json!("there"), json!("0.1.0"));
        }
        let record = InboxRecord::Unknown { kind: kind.to_owned(), body: to_raw_value(&body).unwrap() };
        journal.append(append.record(record.encode())).await.unwrap();
    }
}
