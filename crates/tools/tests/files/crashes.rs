//! A crash during a write, as a table: what was durable, what must happen on resume, what must never happen.
//!
//! | crash | on disk | resume says | never |
//! | --- | --- | --- | --- |
//! | before anything | the old file | run it again | – |
//! | while the new content is written | the old file, half a temporary file | run it again; the half is removed | half a file under the name |
//! | just after the exchange | the new file, the old one under the temporary name | it happened; the old one is removed | a second write |
//! | after the last step | the new file | it happened | a second write |
//! | just after an exchange with someone else's change | the new file, theirs under the temporary name | can't be told; theirs is kept | their change lost |
//! | any, and someone else wrote the file since | their file | can't be told | their change lost |

use std::fs;

use longhaul_protocol::{FileWrite, Hash};
use longhaul_tools::{ResumedCall, ToolInvocation, ToolOutcome};
use serde_json::{Value, json};

use crate::workplace::{Workplace, call, content, run};

struct Crash {
    place: Workplace,
    tool: &'static str,
    call: ToolInvocation,
    write: FileWrite,
    /// What the call answers if nothing comes between.
    undisturbed: ToolOutcome,
}

/// A call that was prepared and recorded as started, with the file as it was before.
async fn crashed(tool: &'static str, arguments: Value, before: Option<&str>) -> Crash {
    let place = Workplace::new();
    let put_before = || match before {
        Some(before) => drop(place.put("a.txt", before)),
        None => drop(fs::remove_file(place.path("a.txt"))),
    };
    let call = call(&arguments);
    put_before();
    let prepared = place.tool(tool).prepare(&call).await.map_err(|finished| finished.content).unwrap();
    let write = prepared.write.clone().unwrap();
    let undisturbed = run(prepared).await;
    put_before();
    Crash { place, tool, call, write, undisturbed }
}

async fn crashed_write() -> Crash {
    crashed("write_file", json!({ "path": "a.txt", "content": "new" }), Some("old")).await
}

impl Crash {
    fn temporary(&self) -> String {
        format!(".longhaul-{}", self.call.id.to_string().to_lowercase())
    }

    async fn resume(&self) -> ResumedCall {
        self.place.resume(self.tool, &self.call, self.write.clone()).await
    }

    async fn says_that_it_happened(&self) {
        let ResumedCall::Finished(finished) = self.resume().await else { panic!("it did happen") };
        // The old content is gone, and with it the diff. The model reads the same.
        assert_eq!(finished, ToolOutcome { diff: None, ..self.undisturbed.clone() });
    }

    async fn says_to_run_it_again(&self) {
        assert!(matches!(self.resume().await, ResumedCall::RunAgain));
        let again = self.place.make(self.tool, &self.call).await;
        assert_eq!(again, self.undisturbed);
    }

    async fn says_that_it_can_not_be_told(&self) -> String {
        let ResumedCall::Unknown(what) = self.resume().await else { panic!("nobody can know") };
        what
    }
}

/// P2
#[tokio::test]
async fn a_write_that_did_not_begin_is_run_again() {
    let crash = crashed_write().await;

    crash.says_to_run_it_again().await;

    assert_eq!(crash.place.text("a.txt"), "new");
}

/// P2
#[tokio::test]
async fn half_a_temporary_file_is_removed_and_the_write_run_again() {
    let crash = crashed_write().await;
    crash.place.put(&crash.temporary(), "ne");

    assert!(matches!(crash.resume().await, ResumedCall::RunAgain));

    assert_eq!(crash.place.names(&crash.place.work()), ["a.txt"]);
    crash.says_to_run_it_again().await;
}

/// P2
#[tokio::test]
async fn a_write_that_ended_just_after_the_exchange_happened_and_the_old_file_is_removed() {
    let crash = crashed_write().await;
    crash.place.put("a.txt", "new");
    crash.place.put(&crash.temporary(), "old");

    crash.says_that_it_happened().await;

    assert_eq!(crash.place.names(&crash.place.work()), ["a.txt"]);
    assert_eq!(crash.place.text("a.txt"), "new");
}

/// P2
#[tokio::test]
async fn a_write_that_ended_happened_with_the_same_result() {
    let crash = crashed_write().await;
    crash.place.put("a.txt", "new");
    crash.says_that_it_happened().await;

    let new_file = crashed("write_file", json!({ "path": "a.txt", "content": "new" }), None).await;
    new_file.place.put("a.txt", "new");
    new_file.says_that_it_happened().await;

    let edits = json!([{ "old": "o", "new": "0", "all": true }, { "old": "0ld", "new": "cold" }]);
    let edit = crashed("edit_file", json!({ "path": "a.txt", "edits": edits }), Some("old")).await;
    edit.place.put("a.txt", "cold");
    edit.says_that_it_happened().await;
    assert_eq!(content(edit.undisturbed.clone()), "made 2 edits in a.txt");
}

/// P2
#[tokio::test]
async fn an_edit_that_did_not_begin_is_run_again() {
    let edits = json!([{ "old": "old", "new": "new" }]);
    let crash = crashed("edit_file", json!({ "path": "a.txt", "edits": edits }), Some("old")).await;

    crash.says_to_run_it_again().await;

    assert_eq!(crash.place.text("a.txt"), "new");
}

/// P2
#[tokio::test]
async fn a_new_file_that_was_not_written_is_run_again() {
    let crash = crashed("write_file", json!({ "path": "a.txt", "content": "new" }), None).await;

    crash.says_to_run_it_again().await;
}

/// P2
#[tokio::test]
async fn someone_elses_change_that_came_out_is_kept() {
    let crash = crashed_write().await;
    crash.place.put("a.txt", "new");
    crash.place.put(&crash.temporary(), "theirs");

    let what = crash.says_that_it_can_not_be_told().await;

    let kept = format!("a.txt.kept-{}", crash.call.id.to_string().to_lowercase());
    assert!(what.contains(&kept), "{what}");
    assert_eq!(crash.place.text(&kept), "theirs");
    assert_eq!(crash.place.text("a.txt"), "new");
}

/// P2: what can't be compared may be someone's.
#[tokio::test]
async fn what_came_out_and_is_too_large_to_compare_is_kept() {
    let crash = crashed_write().await;
    crash.place.put("a.txt", "new");
    let large = crash.place.put(&crash.temporary(), "theirs");
    fs::OpenOptions::new().write(true).open(large).unwrap().set_len((64 << 20) + 1).unwrap();

    let what = crash.says_that_it_can_not_be_told().await;

    let kept = format!("a.txt.kept-{}", crash.call.id.to_string().to_lowercase());
    assert!(what.contains(&kept), "{what}");
    assert_eq!(fs::metadata(crash.place.path(&kept)).unwrap().len(), (64 << 20) + 1);
}

/// P2
#[tokio::test]
async fn a_file_that_is_neither_as_before_nor_as_after_is_left_and_told() {
    let crash = crashed_write().await;
    crash.place.put("a.txt", "theirs");

    let what = crash.says_that_it_can_not_be_told().await;

    assert!(what.contains("a.txt is neither as it was before nor as it should be after"), "{what}");
    assert_eq!(crash.place.text("a.txt"), "theirs");
    assert_eq!(crash.write.after, Hash::of("new"));
}

/// P1, P2: what may no longer be read is not compared.
#[tokio::test]
async fn a_write_outside_of_the_scope_can_not_be_checked() {
    let crash = crashed_write().await;
    let path = crash.place.outside().join("secret.txt").to_str().unwrap().to_owned();
    let write = FileWrite { path, ..crash.write.clone() };

    let ResumedCall::Unknown(what) = crash.place.resume("write_file", &crash.call, write).await else {
        panic!("nobody can know")
    };

    assert!(what.contains("outside of what is allowed"), "{what}");
}
