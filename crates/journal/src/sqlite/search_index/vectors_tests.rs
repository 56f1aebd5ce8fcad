use longhaul_protocol::{
    Input, InputId, InputTaken, JoinMode, Note, Seq, SessionId, SessionRecord, StreamName,
};

use crate::vectors::quantize;
use crate::{Append, Home, Journal, RecordVector, SearchQuery, SqliteJournal, UnembeddedRecord, VectorSlot};

/// A vector that no other record has.
fn vector_of(number: usize) -> Vec<f32> {
    (0..16).map(|dimension| if dimension == number % 16 { 1.0 } else { 0.0 }).collect()
}

async fn asked(journal: &SqliteJournal, stream: &StreamName, texts: &[&str]) {
    let input = |text: &&str| {
        let input = Input::new(InputId::generate(), *text, JoinMode::Join);
        SessionRecord::InputTaken(InputTaken::of(input, 1)).encode()
    };
    journal.append(texts.iter().map(input).fold(Append::to(stream), Append::record)).await.unwrap();
}

/// Gives each record that has no vector one of its own. Returns their texts.
async fn embed(journal: &SqliteJournal, stream: &StreamName, model: &str) -> Vec<String> {
    let records = journal.unembedded(stream, model, 100).await.unwrap();
    let texts = records.iter().map(|record| record.text.clone()).collect();
    let vector = |(number, record): (usize, &UnembeddedRecord)| RecordVector {
        slot: record.slot,
        vector: vector_of(number),
    };
    journal.put_vectors(model, records.iter().enumerate().map(vector).collect()).await.unwrap();
    texts
}

async fn nearest(journal: &SqliteJournal, model: &str, number: usize) -> Vec<Seq> {
    let search = SearchQuery::new("anything", 1);
    let hits = journal.search_vectors(&search, model, vector_of(number)).await.unwrap();
    hits.iter().map(|hit| hit.seq).collect()
}

/// Y13: vectors are made once, of what was said, and found; another model makes them anew.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_stored_found_and_dropped_with_their_model() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&Home::create(folder.path()).unwrap()).await.unwrap();
    let stream = StreamName::session(SessionId::generate());
    asked(&journal, &stream, &["one", "two", "three"]).await;
    let note = SessionRecord::Note(Note::new("a note is no utterance")).encode();
    journal.append(Append::to(&stream).record(note)).await.unwrap();

    assert_eq!(embed(&journal, &stream, "small").await, ["one", "two", "three"]);
    assert_eq!(embed(&journal, &stream, "small").await, [""; 0]);
    assert_eq!(nearest(&journal, "small", 1).await, [2]);
    assert_eq!(nearest(&journal, "other", 1).await, [0; 0]);

    asked(&journal, &stream, &["four"]).await;
    assert_eq!(journal.unembedded(&stream, "small", 100).await.unwrap().len(), 1);
    assert_eq!(embed(&journal, &stream, "other").await, ["one", "two", "three", "four"]);
    assert_eq!(nearest(&journal, "small", 1).await, [0; 0]);

    // A server that gives longer vectors under the same name.
    let longer = RecordVector { slot: VectorSlot { chunk: 1, place: 0 }, vector: vec![1.0; 20] };
    journal.put_vectors("other", vec![longer]).await.unwrap();
    assert_eq!(journal.unembedded(&stream, "other", 100).await.unwrap().len(), 4);
}

/// J10: the vector of an erased record leaves no trace, also if it comes after the erasure.
#[tokio::test(flavor = "multi_thread")]
async fn the_vector_of_an_erased_record_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::create(folder.path()).unwrap();
    let journal = SqliteJournal::open(&home).await.unwrap();
    let stream = StreamName::session(SessionId::generate());
    asked(&journal, &stream, &["one", "two"]).await;
    let records = journal.unembedded(&stream, "small", 100).await.unwrap();
    let telling: Vec<f32> = b"zzyzxq-vector".iter().map(|byte| f32::from(*byte)).collect();
    let stored = quantize(&telling).unwrap();
    let has_it = || {
        let file = std::fs::read(home.folder().join("cache/search.db")).unwrap();
        let log = std::fs::read(home.folder().join("cache/search.db-wal")).unwrap_or_default();
        [file, log].iter().any(|bytes| bytes.windows(stored.len()).any(|window| window == stored))
    };
    let vector = RecordVector { slot: records[1].slot, vector: telling.clone() };
    journal.put_vectors("small", vec![vector.clone()]).await.unwrap();
    assert!(has_it());

    journal.erase(&[(stream.clone(), 2)], "leaked").await.unwrap();
    assert!(!has_it());
    journal.put_vectors("small", vec![vector]).await.unwrap();

    assert!(!has_it());
    assert_eq!(journal.unembedded(&stream, "small", 100).await.unwrap().len(), 0);
    asked(&journal, &stream, &["three"]).await;
    embed(&journal, &stream, "small").await;
    journal.remove(&stream, None).await.unwrap();
    assert_eq!(nearest(&journal, "small", 0).await, [0; 0]);
}
