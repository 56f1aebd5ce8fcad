//! edit_file.

use longhaul_protocol::Hash;
use serde_json::{Value, json};

use crate::workplace::{Workplace, call, call_having_seen, content, error, run};

async fn edit(place: &Workplace, edits: Value) -> longhaul_tools::ToolOutcome {
    place.call("edit_file", json!({ "path": "a.txt", "edits": edits })).await
}

#[tokio::test]
async fn several_edits_are_made_at_once() {
    let place = Workplace::new();
    place.put("a.txt", "one\r\ntwo\r\ntwo");

    let edits = json!([{ "old": "one", "new": "1" }, { "old": "two", "new": "2", "all": true }]);
    let finished = edit(&place, edits).await;

    assert_eq!(finished.seen.as_ref().unwrap().hash, Hash::of("1\r\n2\r\n2"));
    assert_eq!(content(finished), "made 2 edits in a.txt");
    assert_eq!(place.text("a.txt"), "1\r\n2\r\n2");
}

#[tokio::test]
async fn if_one_edit_does_not_fit_none_is_made() {
    let place = Workplace::new();
    place.put("a.txt", "one two");

    let said =
        error(edit(&place, json!([{ "old": "one", "new": "1" }, { "old": "three", "new": "3" }])).await);

    assert!(said.starts_with("a.txt: edit 2 of 2: `old` was not found"), "{said}");
    assert_eq!(place.text("a.txt"), "one two");
}

#[tokio::test]
async fn edits_that_mean_nothing_are_refused() {
    let place = Workplace::new();
    place.put("a.txt", "a\na");

    assert!(error(edit(&place, json!([])).await).contains("`edits` must not be empty"));
    assert!(error(edit(&place, json!([{ "old": "", "new": "x" }])).await).contains("`old` is empty"));
    assert!(error(edit(&place, json!([{ "old": "a", "new": "b" }])).await).contains("found 2 times"));
    assert!(error(edit(&place, json!([{ "old": "a", "new": "a" }])).await).contains("are the same"));
    assert_eq!(place.text("a.txt"), "a\na");
}

#[tokio::test]
async fn what_is_no_text_or_not_there_can_not_be_edited() {
    let place = Workplace::new();
    place.put("a.txt", b"Gr\xfc\xdfe");

    assert!(error(edit(&place, json!([{ "old": "Gr", "new": "x" }])).await).contains("is not UTF-8"));
    let missing = json!({ "path": "b.txt", "edits": [{ "old": "a", "new": "b" }] });
    assert_eq!(error(place.call("edit_file", missing).await), "b.txt does not exist");
    place.put("large.txt", "x".repeat((8 << 20) + 1));
    let large = json!({ "path": "large.txt", "edits": [{ "old": "a", "new": "b" }] });
    assert!(error(place.call("edit_file", large).await).contains("edits files up to 8388608"));
}

/// P2
#[tokio::test]
async fn a_file_that_changed_since_it_was_read_or_prepared_is_not_edited() {
    let place = Workplace::new();
    let path = place.put("a.txt", "one");
    let arguments = json!({ "path": "a.txt", "edits": [{ "old": "one", "new": "1" }] });

    let stale = call_having_seen(&arguments, &path, Hash::of("zero"));
    assert!(error(place.make("edit_file", &stale).await).contains("changed since it was read"));

    let fresh = call(&arguments);
    let prepared =
        place.tool("edit_file").prepare(&fresh).await.map_err(|finished| finished.content).unwrap();
    place.put("a.txt", "one and more");
    assert!(error(run(prepared).await).contains("changed while it was being written"));
    assert_eq!(place.text("a.txt"), "one and more");
}
