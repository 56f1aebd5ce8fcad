use crate::{Append, Blob, Error, SearchQuery, put};
use longhaul_protocol::{BlobRef, Body, CallId, NewRecord, SessionId, SessionRecord, ToolFinished};

use super::{Place, a_stream, append_notes, note, read_all};

/// A tool result whose whole output is a blob.
fn with_blob(bytes: &[u8]) -> NewRecord {
    let (call, whole) = (CallId::generate(), Some(BlobRef::to(bytes, "text/plain")));
    let (name, content) = ("exec".to_owned(), "head … tail".to_owned());
    SessionRecord::ToolFinished(ToolFinished { whole, ..ToolFinished::new(call, &name, content) }).encode()
}

pub async fn a_blob_comes_with_the_append_that_refers_to_it(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let blob = Blob::new(*b"a long output");
    journal.append(Append::to(&stream).record(with_blob(b"a long output")).blob(blob.clone())).await.unwrap();

    let shared = journal.append(Append::to(&stream).record(with_blob(b"a long output"))).await;
    let bytes = place.open().await.blob(blob.hash()).await.unwrap();

    assert!(shared.is_ok(), "a blob that is there need not come again: {shared:?}");
    assert_eq!(bytes, b"a long output");
}

pub async fn a_record_that_refers_to_no_blob_is_refused(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;

    let refused = journal.append(Append::to(&stream).record(with_blob(b"never stored"))).await.unwrap_err();

    let hash = Blob::new(*b"never stored").hash();
    assert_eq!(refused, Error::MissingBlob { stream: stream.clone(), hash });
    assert_eq!(journal.head(&stream).await.unwrap().seq, 0);
    assert_eq!(journal.blob(hash).await.unwrap_err(), Error::NoSuchBlob { hash });
}

pub async fn a_blob_goes_with_its_last_reference(place: &impl Place) {
    let (one, two) = (a_stream(), a_stream());
    let journal = place.open().await;
    let (shared, own, unused) = (Blob::new(*b"shared"), Blob::new(*b"own"), Blob::new(*b"nobody's"));
    let first = Append::to(&one).record(with_blob(b"shared")).record(with_blob(b"own"));
    journal.append(first.blob(shared.clone()).blob(own.clone()).blob(unused.clone())).await.unwrap();
    journal.append(Append::to(&two).record(with_blob(b"shared"))).await.unwrap();
    assert!(journal.blob(unused.hash()).await.is_err(), "nothing refers to it");

    journal.remove(&one, None).await.unwrap();
    let after_the_first = (journal.blob(shared.hash()).await.is_ok(), journal.blob(own.hash()).await.is_ok());
    journal.remove(&two, None).await.unwrap();
    let after_the_second = journal.blob(shared.hash()).await.is_ok();

    assert_eq!(after_the_first, (true, false));
    assert!(!after_the_second);
    assert!(journal.verify().await.unwrap().is_sound());
}

/// J10.
pub async fn an_erased_body_leaves_a_stub_and_a_chain_that_verifies(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["before", "the password is xyzzy", "after"]).await;
    let before = read_all(&*journal, &stream).await;

    journal.erase(&[(stream.clone(), 2)], "a leaked password").await.unwrap();

    let after = read_all(&*place.open().await, &stream).await;
    let Body::Gone(gone) = &after[1].body else { panic!("the body is still there") };
    assert_eq!(gone.reason, "a leaked password");
    assert!(gone.at >= before[1].at);
    let hashes =
        |records: &[longhaul_protocol::Record]| records.iter().map(|record| record.hash).collect::<Vec<_>>();
    assert_eq!(hashes(&after), hashes(&before), "the chain is the same");
    let report = journal.verify().await.unwrap();
    assert!(report.is_sound() && report.erased >= 1, "{report:?}");
}

/// J10.
pub async fn an_erased_body_takes_its_search_entries_and_unshared_blobs_along(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let (own, shared) = (Blob::new(*b"xyzzy in its own blob"), Blob::new(*b"plugh in a shared one"));
    let first = Append::to(&stream)
        .record(with_blob(b"xyzzy in its own blob"))
        .record(with_blob(b"plugh in a shared one"));
    journal
        .append(first.record(with_blob(b"plugh in a shared one")).blob(own.clone()).blob(shared.clone()))
        .await
        .unwrap();
    let find = |words: &str| SearchQuery::new(words, 10).within(vec![stream.clone()]);
    assert_eq!(journal.search(&find("xyzzy")).await.unwrap().hits.len(), 1);

    journal.erase(&[(stream.clone(), 1)], "why").await.unwrap();
    journal.erase(&[(stream.clone(), 2)], "why").await.unwrap();

    assert!(journal.search(&find("xyzzy")).await.unwrap().hits.is_empty());
    assert_eq!(journal.search(&find("plugh")).await.unwrap().hits.len(), 1, "the third record still has it");
    assert!(journal.blob(own.hash()).await.is_err());
    assert!(journal.blob(shared.hash()).await.is_ok());
    assert!(journal.verify().await.unwrap().is_sound());
}

pub async fn erasing_what_is_not_there_says_so(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["one"]).await;

    let past = journal.erase(&[(stream.clone(), 2)], "why").await.unwrap_err();
    let zero = journal.erase(&[(stream.clone(), 0)], "why").await.unwrap_err();
    journal.erase(&[(stream.clone(), 1)], "first reason").await.unwrap();
    journal.erase(&[(stream.clone(), 1)], "second reason").await.unwrap();

    assert_eq!(past, Error::NoSuchRecord { stream: stream.clone(), seq: 2, head: 1 });
    assert_eq!(zero, Error::NoSuchRecord { stream: stream.clone(), seq: 0, head: 1 });
    let records = read_all(&*journal, &stream).await;
    assert!(
        matches!(&records[0].body, Body::Gone(gone) if gone.reason == "first reason"),
        "the first stub stands"
    );
}

pub async fn what_is_too_large_is_refused(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;

    let refused = journal.append(Append::to(&stream).record(note(&"x".repeat(17 << 20)))).await.unwrap_err();

    assert!(matches!(refused, Error::TooLarge { .. }), "{refused:?}");
    assert_eq!(journal.head(&stream).await.unwrap().seq, 0);
}

/// An input that is accepted can be taken: the record of that is a little larger than the input.
pub async fn an_input_that_could_not_be_taken_is_not_accepted(place: &impl Place) {
    let session = SessionId::generate();
    let journal = place.open().await;

    let refused = put(&*journal, session, note(&"x".repeat(9 << 20))).await.unwrap_err();
    let accepted = put(&*journal, session, note(&"x".repeat(7 << 20))).await;

    assert!(matches!(refused, Error::TooLarge { .. }), "{refused:?}");
    assert_eq!(accepted, Ok(1));
}
