//! No panic and no blow-up on any bytes that come from outside.

use std::io::Write;

use longhaul_journal::{Error, Home, ImportOptions, Journal, SqliteJournal, import_session};
use longhaul_protocol::{
    At, ExtractRecord, InboxRecord, MemoryRecord, NamesRecord, Record, SessionRecord, blob_refs,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::damage::fast_folder;

/// Text that looks like JSON often enough to get past the first character.
fn nearly_json() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(",".to_owned()),
        Just(":".to_owned()),
        Just("\"blob\"".to_owned()),
        Just("\"kind\"".to_owned()),
        Just("\"seq\"".to_owned()),
        Just("\"body\"".to_owned()),
        Just("null".to_owned()),
        Just("1e999".to_owned()),
        Just("-0".to_owned()),
        "\"[a-z/\\\\\"]{0,8}\"",
        "[0-9]{1,30}",
        any::<char>().prop_map(String::from),
    ];
    vec(word, 0..60).prop_map(|words| words.concat())
}

/// A line that is a record but for its kind and body.
fn record_line() -> impl Strategy<Value = String> {
    let zeros = "0".repeat(64);
    let kinds =
        prop_oneof!["[a-z_]{1,20}", proptest::sample::select(SessionRecord::KINDS).prop_map(str::to_owned)];
    (kinds, nearly_json(), any::<u64>(), any::<i64>()).prop_map(move |(kind, body, seq, at)| {
        format!(
            r#"{{"stream":"session/01JCZ5M0000000000000000000","seq":{seq},"at":{at},"kind":"{kind}","body":{body},"prev":"{zeros}","hash":"{zeros}"}}"#
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoding_a_record_never_panics(line in prop_oneof![nearly_json(), record_line()]) {
        let _ = blob_refs(&line);
        if let Ok(record) = serde_json::from_str::<Record>(&line) {
            let _ = SessionRecord::decode(&record);
            let _ = InboxRecord::decode(&record);
            let _ = NamesRecord::decode(&record);
            let _ = ExtractRecord::decode(&record);
            let _ = MemoryRecord::decode(&record);
            let again = serde_json::to_string(&record).unwrap();
            prop_assert!(serde_json::from_str::<Record>(&again).is_ok());
        }
    }
}

const HEADER: &str = r#"{"longhaul_export":1,"key":"k","id":"01JCZ5M0000000000000000000","streams":{"session/01JCZ5M0000000000000000000":{"seq":1,"hash":"0000000000000000000000000000000000000000000000000000000000000000"}}}"#;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn importing_any_bytes_never_panics_and_changes_nothing(
        bytes in vec(any::<u8>(), 0..400),
        lines in vec(prop_oneof![nearly_json(), record_line()], 0..5),
        with_header in any::<bool>(),
    ) {
        let folder = fast_folder();
        let file = folder.path().join("import.jsonl");
        let mut out = std::fs::File::create(&file).unwrap();
        if with_header {
            writeln!(out, "{HEADER}").unwrap();
        }
        for line in &lines {
            writeln!(out, "{line}").unwrap();
        }
        out.write_all(&bytes).unwrap();

        let refused = import(&folder, &file);

        prop_assert!(matches!(refused, Err(Error::BadFile { .. })), "{refused:?}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn import(folder: &tempfile::TempDir, file: &std::path::Path) -> Result<(), Error> {
    let journal = SqliteJournal::open(&Home::create(&folder.path().join("home"))?).await?;
    let answer = import_session(&journal, file, &ImportOptions::at(At(0))).await.map(|_| ());
    assert_eq!(journal.streams().await?, [], "nothing was changed");
    answer
}

/// Deeply nested JSON ends with an error, not with the stack.
#[test]
fn deep_nesting_is_refused() {
    let deep = "[".repeat(200_000);
    let line = format!("{{\"blob\":{deep}");

    assert!(serde_json::from_str::<Record>(&line).is_err());
    assert!(blob_refs(&line).is_empty());
}
