use crate::{Append, Error, Head, Page, record_at, records};
use longhaul_protocol::{Hash, NewRecord, Record, Seq, SessionRecord};
use serde_json::value::RawValue;

use super::{Place, a_stream, append_notes, note, read_all, texts};

/// J1.
pub async fn an_append_is_there_when_the_journal_is_opened_again(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let appended = journal.append(Append::to(&stream).record(note("one")).record(note("two"))).await.unwrap();
    journal.close().await;

    let reopened = place.open().await;
    let read = read_all(&*reopened, &stream).await;

    assert_eq!(json(&read), json(&appended));
}

/// The first record follows from zero, each other from the one before it.
pub async fn records_are_chained(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;

    append_notes(&*journal, &stream, &["one", "two", "three"]).await;

    let records = read_all(&*journal, &stream).await;
    let seqs: Vec<_> = records.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!(records[0].prev, Hash::ZERO);
    assert_eq!(records[1].prev, records[0].hash);
    assert_eq!(records[2].prev, records[1].hash);
    assert_eq!(journal.head(&stream).await.unwrap(), Head { seq: 3, hash: records[2].hash });
}

/// J2.
pub async fn of_two_writers_one_wins_and_the_other_learns_the_head(place: &impl Place) {
    let stream = a_stream();
    let (first, second) = (place.open().await, place.open().await);

    let write = |text| Append::to(&stream).expecting(0).record(note(text));
    let (one, two) = tokio::join!(first.append(write("first")), second.append(write("second")));

    let head = first.head(&stream).await.unwrap();
    let conflict = Error::Conflict { stream: stream.clone(), head };
    match (one, two) {
        (Ok(_), Err(error)) => {
            assert_eq!((error, texts(&*second, &stream).await), (conflict, vec!["first".to_owned()]));
        }
        (Err(error), Ok(_)) => {
            assert_eq!((error, texts(&*first, &stream).await), (conflict, vec!["second".to_owned()]));
        }
        other => panic!("exactly one must win: {other:?}"),
    }
}

/// J1.
pub async fn an_append_is_whole_or_not_at_all(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    journal.append(Append::to(&stream).record(note("taken").with_key("key"))).await.unwrap();

    let append = Append::to(&stream).record(note("new")).record(note("again").with_key("key"));
    let refused = journal.append(append).await.unwrap_err();

    assert_eq!(refused, Error::Duplicate { stream: stream.clone(), seq: 1 });
    assert_eq!(texts(&*journal, &stream).await, ["taken"]);
}

/// T1, as far as the journal goes.
pub async fn the_same_key_twice_is_one_record(place: &impl Place) {
    let (stream, other) = (a_stream(), a_stream());
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["before"]).await;
    journal.append(Append::to(&stream).record(note("first").with_key("k"))).await.unwrap();

    let again = place.open().await.append(Append::to(&stream).record(note("second").with_key("k"))).await;
    let elsewhere = journal.append(Append::to(&other).record(note("other").with_key("k"))).await;

    assert_eq!(again.unwrap_err(), Error::Duplicate { stream: stream.clone(), seq: 2 });
    assert!(elsewhere.is_ok(), "a key is unique in its own stream only: {elsewhere:?}");
    assert_eq!(journal.find(&stream, "k").await.unwrap(), Some(2));
    assert_eq!(journal.find(&stream, "another").await.unwrap(), None);
}

/// Many appends at the same time, from two journals: none is lost, none takes another's place.
pub async fn appends_of_many_tasks_all_arrive(place: &impl Place) {
    let stream = a_stream();
    let journals = [place.open().await, place.open().await];
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let (journal, stream) = (journals[number % 2].clone(), stream.clone());
            tokio::spawn(async move {
                journal.append(Append::to(&stream).record(note(&number.to_string()))).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }

    let mut numbers: Vec<usize> =
        texts(&*journals[0], &stream).await.iter().map(|text| text.parse().unwrap()).collect();

    numbers.sort_unstable();
    assert_eq!(numbers, (0..40).collect::<Vec<_>>());
    assert!(journals[0].verify().await.unwrap().is_sound());
}

/// One append that conflicts costs the others nothing.
pub async fn a_conflict_costs_only_its_own_append(place: &impl Place) {
    let journal = place.open().await;
    let streams: Vec<_> = (0..20).map(|_| a_stream()).collect();

    let appends = streams.iter().enumerate().map(|(number, stream)| {
        let (journal, wrong_head) = (journal.clone(), (number % 2) as u64 * 7);
        let append = Append::to(stream).expecting(wrong_head).record(note("text"));
        tokio::spawn(async move { journal.append(append).await })
    });
    let mut answers = Vec::new();
    for task in appends.collect::<Vec<_>>() {
        answers.push(task.await.unwrap());
    }

    for (number, (answer, stream)) in answers.iter().zip(&streams).enumerate() {
        let expected = if number % 2 == 0 { 1 } else { 0 };
        assert_eq!(answer.is_ok(), expected == 1, "append {number}: {answer:?}");
        assert_eq!(journal.head(stream).await.unwrap().seq, expected);
    }
}

pub async fn a_read_is_bounded_by_its_page(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let long = "x".repeat(10_000);
    append_notes(&*journal, &stream, &["a", "b", &long, &long, "c"]).await;

    let by_count = journal.read(&stream, 2, Page { records: 2, bytes: usize::MAX }).await.unwrap();
    let by_bytes = journal.read(&stream, 1, Page { records: 100, bytes: 5_000 }).await.unwrap();
    let at_least_one = journal.read(&stream, 3, Page { records: 100, bytes: 0 }).await.unwrap();
    let past_the_end = journal.read(&stream, 6, Page::default()).await.unwrap();

    let seqs = |records: &[Record]| records.iter().map(|record| record.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&by_count), [2, 3]);
    assert_eq!(seqs(&by_bytes), [1, 2, 3]);
    assert_eq!(seqs(&at_least_one), [3]);
    assert!(past_the_end.is_empty());
}

pub async fn a_cursor_reads_page_after_page_to_the_end_or_a_bound(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["one", "two", "three", "four", "five"]).await;
    let seqs = |records: Vec<Record>| records.iter().map(|record| record.seq).collect::<Vec<_>>();
    let pages_of_two = Page { records: 2, ..Page::default() };

    let all = records(&*journal, &stream, 0).in_pages_of(pages_of_two).collect().await.unwrap();
    let bounded =
        records(&*journal, &stream, 2).in_pages_of(pages_of_two).through(4).collect().await.unwrap();
    let past_the_end = records(&*journal, &stream, 6).collect().await.unwrap();
    let at_the_end = record_at(&*journal, &stream, 5).await.unwrap().unwrap();
    let missing = record_at(&*journal, &stream, 6).await.unwrap();

    assert_eq!((seqs(all), seqs(bounded), seqs(past_the_end)), (vec![1, 2, 3, 4, 5], vec![2, 3, 4], vec![]));
    assert_eq!((at_the_end.seq, missing.is_none()), (5, true));
}

pub async fn a_cursor_at_the_end_finds_what_is_appended_later(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["one"]).await;
    let mut cursor = records(&*journal, &stream, 1);
    assert_eq!(cursor.next().await.unwrap().map(|record| record.seq), Some(1));
    assert!(cursor.next().await.unwrap().is_none());

    append_notes(&*journal, &stream, &["two"]).await;

    assert_eq!(cursor.next().await.unwrap().map(|record| record.seq), Some(2));
}

pub async fn a_stream_that_is_not_there_is_empty(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;

    assert_eq!(journal.head(&stream).await.unwrap(), Head::EMPTY);
    assert!(journal.read(&stream, 1, Page::default()).await.unwrap().is_empty());
    assert_eq!(journal.newest_epoch(&stream, Seq::MAX).await.unwrap(), None);
    assert_eq!(journal.find(&stream, "key").await.unwrap(), None);
    assert!(!journal.streams().await.unwrap().contains(&stream));
}

/// A kind that a newer version writes is kept with its bytes, odd spacing and all.
pub async fn an_unknown_kind_is_kept_byte_for_byte(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let odd = r#"{ "b":1.50,  "a":[ ] }"#;
    let body = RawValue::from_string(odd.to_owned()).unwrap();
    journal
        .append(Append::to(&stream).record(NewRecord { kind: "from_the_future".into(), body, key: None }))
        .await
        .unwrap();

    let read = read_all(&*place.open().await, &stream).await;

    match SessionRecord::decode(&read[0]).unwrap() {
        SessionRecord::Unknown { kind, body } => {
            assert_eq!((kind.as_str(), body.get()), ("from_the_future", odd));
        }
        other => panic!("a known kind: {other:?}"),
    }
}

/// What spans lines could not be exported, so it is not taken.
pub async fn a_body_of_several_lines_is_refused(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    let body = RawValue::from_string("{\n}".to_owned()).unwrap();

    let refused =
        journal.append(Append::to(&stream).record(NewRecord { kind: "note".into(), body, key: None })).await;

    assert!(matches!(refused, Err(Error::BadRecord { .. })), "{refused:?}");
    assert_eq!(journal.head(&stream).await.unwrap(), Head::EMPTY);
}

pub async fn a_removed_stream_is_gone_and_can_begin_again(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;
    append_notes(&*journal, &stream, &["old", "older"]).await;

    journal.remove(&stream, None).await.unwrap();
    append_notes(&*journal, &stream, &["new"]).await;

    assert_eq!(texts(&*place.open().await, &stream).await, ["new"]);
    assert!(journal.verify().await.unwrap().is_sound());
}

pub async fn adopted_records_must_go_on_where_the_stream_ends(place: &impl Place) {
    let (stream, twin) = (a_stream(), place.open().await);
    append_notes(&*twin, &stream, &["one", "two", "three"]).await;
    let records = read_all(&*twin, &stream).await;
    twin.remove(&stream, None).await.unwrap();
    let lease = twin.acquire_lease(&stream).await.unwrap();

    twin.adopt(&lease, records[..1].to_vec(), vec![]).await.unwrap();
    let with_a_gap = twin.adopt(&lease, records[2..].to_vec(), vec![]).await;
    let mut edited = records[1].clone();
    edited.kind = "warning".to_owned();
    let forged = twin.adopt(&lease, vec![edited], vec![]).await;
    twin.adopt(&lease, records[1..].to_vec(), vec![]).await.unwrap();

    let head = Head { seq: 1, hash: records[0].hash };
    assert_eq!(with_a_gap.unwrap_err(), Error::Conflict { stream: stream.clone(), head });
    assert_eq!(forged.unwrap_err(), Error::Conflict { stream: stream.clone(), head });
    assert_eq!(json(&read_all(&*twin, &stream).await), json(&records));
}

pub async fn a_closed_journal_refuses(place: &impl Place) {
    let stream = a_stream();
    let journal = place.open().await;

    journal.close().await;

    assert_eq!(journal.append(Append::to(&stream).record(note("late"))).await.unwrap_err(), Error::Closed);
    assert_eq!(journal.head(&stream).await.unwrap_err(), Error::Closed);
}

fn json(records: &[Record]) -> String {
    serde_json::to_string(records).unwrap()
}
