//! The forms of everything that is stored or sent are pinned: each line of a fixture is read as its type and written
//! again, and must come out byte for byte. A change here is a change of format, and formats only grow.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::collections::BTreeSet;

use longhaul_protocol::{
    Event, ExtractRecord, InboxRecord, Item, MemoryRecord, NamesRecord, NewRecord, OpenaiRecord, Record,
    ScheduleRecord, SchedulesRecord, SessionRecord, SpendRecord, TokenRecord, TreeRecord,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

fn lines(text: &str) -> impl Iterator<Item = &str> {
    assert!(text.ends_with('\n'), "a fixture ends with a line");
    text.lines()
}

/// Every line is one value of the type and comes out as it went in.
fn round_trip<T: DeserializeOwned + serde::Serialize>(text: &str) {
    for line in lines(text) {
        let value: T = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(serde_json::to_string(&value).unwrap(), line);
    }
}

#[derive(Deserialize)]
struct KindAndBody {
    kind: String,
    body: Box<RawValue>,
}

/// Every line is a record of the family, comes out as it went in, and no known kind is left out.
fn family(text: &str, kinds: &[&str], again: impl Fn(&Record) -> NewRecord) {
    let mut seen = BTreeSet::new();
    for line in lines(text) {
        let KindAndBody { kind, body } = serde_json::from_str(line).unwrap();
        let zeros = "0".repeat(64);
        let whole = format!(
            r#"{{"stream":"names","seq":1,"at":0,"kind":"{kind}","body":{},"prev":"{zeros}","hash":"{zeros}"}}"#,
            body.get()
        );
        let record: Record = serde_json::from_str(&whole).unwrap();

        let encoded = again(&record);

        assert_eq!((encoded.kind.as_str(), encoded.body.get()), (kind.as_str(), body.get()));
        seen.insert(kind);
    }
    let known: BTreeSet<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    assert_eq!(seen, known, "every kind has a fixture, and every fixture a kind");
}

#[test]
fn session_records_keep_their_form() {
    let again = |record: &Record| SessionRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/session.jsonl"), SessionRecord::KINDS, again);
}

#[test]
fn inbox_records_keep_their_form() {
    let again = |record: &Record| InboxRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/inbox.jsonl"), InboxRecord::KINDS, again);
}

#[test]
fn names_records_keep_their_form() {
    let again = |record: &Record| NamesRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/names.jsonl"), NamesRecord::KINDS, again);
}

#[test]
fn records_of_the_openai_api_keep_their_form() {
    let again = |record: &Record| OpenaiRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/openai.jsonl"), OpenaiRecord::KINDS, again);
}

#[test]
fn token_records_keep_their_form() {
    let again = |record: &Record| TokenRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/tokens.jsonl"), TokenRecord::KINDS, again);
}

#[test]
fn extract_records_keep_their_form() {
    let again = |record: &Record| ExtractRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/extract.jsonl"), ExtractRecord::KINDS, again);
}

#[test]
fn memory_records_keep_their_form() {
    let again = |record: &Record| MemoryRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/memory.jsonl"), MemoryRecord::KINDS, again);
}

#[test]
fn schedule_records_keep_their_form() {
    let again = |record: &Record| SchedulesRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/schedules.jsonl"), SchedulesRecord::KINDS, again);
    let again = |record: &Record| ScheduleRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/schedule.jsonl"), ScheduleRecord::KINDS, again);
}

#[test]
fn spend_records_keep_their_form() {
    let again = |record: &Record| SpendRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/spend.jsonl"), SpendRecord::KINDS, again);
}

#[test]
fn tree_records_keep_their_form() {
    let again = |record: &Record| TreeRecord::decode(record).unwrap().encode();
    family(include_str!("../fixtures/tree.jsonl"), TreeRecord::KINDS, again);
}

#[test]
fn events_keep_their_form() {
    round_trip::<Event>(include_str!("../fixtures/events.jsonl"));
}

#[test]
fn items_keep_their_form() {
    round_trip::<Item>(include_str!("../fixtures/items.jsonl"));
}

#[test]
fn records_keep_their_form_and_the_bytes_of_their_bodies() {
    round_trip::<Record>(include_str!("../fixtures/records.jsonl"));
}

/// The kinds that the formats page settles.
#[test]
fn the_kinds_of_a_session_are_the_settled_ones() {
    let settled = "session_created epoch_started input_taken order_taken turn_started step_started attempt_started block \
                   checkpoint attempt_ended usage tool_started tool_task tool_finished task_started task_ended notification note \
                   question answered imported mode_changed compact_start system_message compact_done compact_failed stubbed model_changed \
                   warning turn_ended";

    assert_eq!(SessionRecord::KINDS, settled.split_whitespace().collect::<Vec<_>>());
}
