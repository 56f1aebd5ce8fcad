//! Ids, names, hashes and times accept one form each and refuse the rest with a reason.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use longhaul_protocol::{
    At, BlobRef, CallId, Hash, Order, OrderKind, SessionId, StreamName, TaskId, blob_refs,
};
use proptest::prelude::*;

#[test]
fn a_task_has_the_id_of_its_call_in_lower_case() {
    let call: CallId = "01JDFJM0000000000000000009".parse().unwrap();

    let task = TaskId::from(call);

    assert_eq!(task.to_string(), "task_01jdfjm0000000000000000009");
    assert_eq!(task.to_string().parse::<TaskId>().unwrap().call(), call);
}

#[test]
fn an_id_says_when_it_was_made() {
    let call: CallId = "01JDFJM0000000000000000009".parse().unwrap();

    assert_eq!(call.made_at().to_string(), "2024-11-24T17:13:28.320Z");
}

#[test]
fn an_id_has_one_form() {
    for wrong in [
        "",
        "01jdfjm0000000000000000009",
        "01JDFJM000000000000000000",
        "01JDFJM00000000000000000O9",
        " 01JDFJM0000000000000000009",
    ] {
        assert!(wrong.parse::<SessionId>().is_err(), "{wrong:?}");
    }
    for wrong in [
        "task_01JDFJM0000000000000000009",
        "01jdfjm0000000000000000009",
        "task_",
        "task_01jdfjm000000000000000000o",
    ] {
        assert!(wrong.parse::<TaskId>().is_err(), "{wrong:?}");
    }
    let said = "nonsense".parse::<SessionId>().unwrap_err().to_string();
    assert_eq!(said, r#""nonsense" is not a session id: expected a ULID, 26 upper-case characters"#);
}

#[test]
fn a_stream_knows_its_session() {
    let id: SessionId = "01JDFJM0000000000000000001".parse().unwrap();

    assert_eq!(StreamName::session(id).to_string(), "session/01JDFJM0000000000000000001");
    assert_eq!(StreamName::inbox(id).session_id(), Some(id));
    assert_eq!(StreamName::extract(id).session_id(), Some(id));
    assert_eq!(StreamName::names().session_id(), None);
    assert_eq!(StreamName::memory("project-x-01234567").unwrap().session_id(), None);
}

#[test]
fn a_stream_name_has_no_spaces_and_no_empty_parts() {
    for wrong in ["", "/", "a/", "/a", "a//b", "a b", "a\nb", &"x".repeat(201)] {
        assert!(wrong.parse::<StreamName>().is_err(), "{wrong:?}");
    }
    assert!("from/a/newer/version".parse::<StreamName>().is_ok());
}

/// A newer process may put orders into an inbox that an older one empties.
#[test]
fn an_order_of_a_newer_version_is_still_an_order() {
    let newer = r#"{"id":"01JDFJM0000000000000000007","order":"dance","tempo":120}"#;

    let order: Order = serde_json::from_str(newer).unwrap();

    assert_eq!(order.kind, OrderKind::Unknown);
}

#[test]
fn a_moment_is_shown_with_milliseconds() {
    assert_eq!(At(0).to_string(), "1970-01-01T00:00:00.000Z");
    assert_eq!(At(1_794_734_841_763).to_string(), "2026-11-15T09:27:21.763Z");
    assert_eq!(At(i64::MAX).to_string(), "9223372036854775807 ms since 1970");
}

#[test]
fn blob_references_are_found_wherever_they_stand_and_nothing_else_is() {
    let (one, two) = (BlobRef::to(b"one", "text/plain"), BlobRef::to(b"two", "image/png"));
    let (first, second) = (serde_json::to_string(&one).unwrap(), serde_json::to_string(&two).unwrap());
    let quoted = serde_json::to_string(&first).unwrap();
    let body = format!(r#"{{"a":[{{"b":{second}}},{first}],"again":{second},"words":{quoted},"blob":7}}"#);

    assert_eq!(blob_refs(&body), [], "an object with a field of that name is a reference or nothing");
    let body = body.replace(r#","blob":7"#, "");
    assert_eq!(blob_refs(&body), [two, one.clone()]);
    let other_media = BlobRef { media: "image/png".into(), ..one.clone() };
    let twice = serde_json::to_string(&[one.clone(), other_media]).unwrap();
    assert_eq!(blob_refs(&twice), [one], "the same bytes are one blob, whatever they are called");
}

proptest! {
    #[test]
    fn a_hash_comes_back_from_its_text(bytes in any::<[u8; 32]>()) {
        let hash = Hash::from_bytes(bytes);
        prop_assert_eq!(hash.to_string().parse::<Hash>().unwrap(), hash);
        prop_assert!(hash.to_string().to_uppercase().parse::<Hash>().is_err() || hash.to_string().chars().all(|digit| digit.is_ascii_digit()));
    }

    #[test]
    fn parsing_any_text_never_panics(text in any::<String>()) {
        let _ = text.parse::<Hash>();
        let _ = text.parse::<SessionId>();
        let _ = text.parse::<TaskId>();
        let _ = text.parse::<StreamName>();
        let _ = blob_refs(&text);
    }
}
