//! A session in a folder above another session's work folder replaces that work folder by a link.
//!
//! The session `above` works in `work`, the session `inner` in `work/sub`. `outside` is in nobody's scope.

use std::fs;
use std::path::PathBuf;

use longhaul_agent::{Runtime, Session};
use longhaul_protocol::{Outcome, SessionRecord};
use longhaul_testkit::{RecordingModel, TestHome};
use serde_json::{Value, json};

use crate::wire::facts;
use crate::{open, results, script, sound_records};

const SECRET: &str = "the secret of the outside";

struct NestedSessions {
    place: TestHome,
    runtime: Runtime,
    above: Session,
    inner: Session,
}

impl NestedSessions {
    /// Each session plays its own answers.
    async fn new(above: &Value, inner: &Value) -> Self {
        let place = TestHome::new();
        let sub = place.work().join("sub");
        fs::create_dir(&sub).unwrap();
        fs::write(sub.join("secret.txt"), "harmless").unwrap();
        fs::create_dir(Self::outside_of(&place)).unwrap();
        fs::write(Self::outside_of(&place).join("secret.txt"), SECRET).unwrap();
        let runtime = open(&place, RecordingModel::new(script(&json!([])))).await;
        let sessions = [("above", above, place.work()), ("inner", inner, sub)];
        let mut begun = Vec::new();
        for (key, answers, folder) in sessions {
            let file = place.work().parent().unwrap().join(format!("{key}.json"));
            fs::write(&file, answers.to_string()).unwrap();
            let session = runtime.session(key).await.unwrap();
            session.create_in(&folder.canonicalize().unwrap()).await.unwrap();
            session.use_model(&format!("scripted/{}", file.display())).unwrap();
            begun.push(session);
        }
        let (inner, above) = (begun.pop().unwrap(), begun.pop().unwrap());
        Self { place, runtime, above, inner }
    }

    fn outside_of(place: &TestHome) -> PathBuf {
        place.work().parent().unwrap().join("outside")
    }

    /// Nothing in the folder outside was changed.
    fn check_outside(&self) {
        let outside = Self::outside_of(&self.place);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(outside.join("secret.txt")).unwrap(), SECRET);
    }
}

fn exec(command: &str) -> Value {
    json!({"name": "exec", "arguments": {"command": command}})
}

/// What the inner session tries in its work folder.
fn attempts() -> Value {
    json!({"calls": [
        exec("cat secret.txt; echo planted > planted.txt"),
        {"name": "read_file", "arguments": {"path": "secret.txt"}},
        {"name": "write_file", "arguments": {"path": "planted.txt", "content": "planted"}},
        {"name": "search_text", "arguments": {"pattern": "secret"}},
        {"name": "find_files", "arguments": {"pattern": "*"}},
    ]})
}

/// What the session above does. Its command may write `sub`, which lies in its own work folder. The file `go` tells a command that still
/// runs in the old folder.
fn swap() -> Value {
    json!([{"calls": [exec("mv sub old && ln -s ../outside sub && touch old/go")]}, "swapped"])
}

/// P1: the turn is refused before the model is called, with both paths, and works again once the folder is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_work_folder_that_became_a_link_between_turns_refuses_the_turn() {
    let nested = NestedSessions::new(&swap(), &json!(["one", attempts(), "read and written"])).await;
    let sub = nested.place.work().join("sub");

    let before = nested.inner.send("hello").await.unwrap();
    let swapped = nested.above.send("swap").await.unwrap();
    let link = sub.symlink_metadata().unwrap().is_symlink();
    let refused = nested.inner.send("work").await.unwrap();
    nested.check_outside();
    fs::remove_file(&sub).unwrap();
    fs::rename(nested.place.work().join("old"), &sub).unwrap();
    let after = nested.inner.send("work").await.unwrap();

    assert_eq!((before.outcome, swapped.outcome, link), (Outcome::Completed, Outcome::Completed, true));
    assert_eq!((refused.outcome, refused.code.as_deref()), (Outcome::Failed, Some("work_folder_moved")));
    let error = refused.error.unwrap();
    let outside = NestedSessions::outside_of(&nested.place);
    for part in [sub.to_str().unwrap(), outside.to_str().unwrap(), "--work-dir"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!((after.outcome, after.text.as_str()), (Outcome::Completed, "read and written"));
    assert_eq!(fs::read_to_string(sub.join("planted.txt")).unwrap(), "planted");
    nested.runtime.shutdown().await.unwrap();
    let records = sound_records(&nested.place, &nested.inner).await;
    let calls = facts(&records).into_iter().filter(|fact| matches!(fact, SessionRecord::AttemptStarted(_)));
    assert_eq!(calls.count(), 3, "the refused turn calls no model");
    nested.check_outside();
}

/// P1: the next process knows the folder by its recorded path alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_work_folder_that_became_a_link_before_the_start_refuses_the_turn() {
    let nested = NestedSessions::new(&swap(), &json!([])).await;
    nested.above.send("swap").await.unwrap();
    nested.runtime.shutdown().await.unwrap();
    let runtime = open(&nested.place, RecordingModel::new(script(&json!([])))).await;
    let file = nested.place.work().join("attempts.json");
    fs::write(&file, json!([attempts(), "done"]).to_string()).unwrap();
    let inner = runtime.session("inner").await.unwrap();
    inner.use_model(&format!("scripted/{}", file.display())).unwrap();

    let refused = inner.send("work").await.unwrap();

    assert_eq!((refused.outcome, refused.code.as_deref()), (Outcome::Failed, Some("work_folder_moved")));
    nested.check_outside();
    runtime.shutdown().await.unwrap();
}

/// P1: from then on every tool says so, and nothing outside is read or written.
#[tokio::test(flavor = "multi_thread")]
async fn a_work_folder_that_becomes_a_link_in_a_turn_is_not_followed() {
    let waits = json!({"calls": [exec("until [ -e go ]; do sleep 0.02; done")]});
    let nested = NestedSessions::new(&swap(), &json!([waits, attempts(), "done"])).await;

    let (ended, swapped) = tokio::join!(nested.inner.send("work"), nested.above.send("swap"));

    assert_eq!(ended.unwrap().outcome, Outcome::Completed);
    assert_eq!(swapped.unwrap().outcome, Outcome::Completed);
    nested.check_outside();
    nested.runtime.shutdown().await.unwrap();
    let results = results(&sound_records(&nested.place, &nested.inner).await);
    assert_eq!(results.len(), 6);
    for (name, is_error, content) in &results[1..] {
        assert!(*is_error && content.contains("was replaced by a link"), "{name}: {content}");
        assert!(!content.contains("outside"), "{name}: {content}");
    }
}

/// P1: a session that is new, in the folder of the runtime.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_place_of_the_runtimes_folder_moves_no_new_session() {
    let place = TestHome::new();
    let outside = NestedSessions::outside_of(&place);
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), SECRET).unwrap();
    fs::write(outside.join("AGENTS.md"), SECRET).unwrap();
    let model = RecordingModel::new(script(&json!([attempts(), "done"])));
    let runtime = open(&place, model.clone()).await;
    fs::remove_dir(place.work()).unwrap();
    std::os::unix::fs::symlink(&outside, place.work()).unwrap();

    let session = runtime.session("new").await.unwrap();
    let refused = session.send("work").await.unwrap();

    assert_eq!((refused.outcome, refused.code.as_deref()), (Outcome::Failed, Some("work_folder_moved")));
    assert_eq!(model.requests().len(), 0);
    let work_dir = session.state().await.unwrap().created.unwrap().work_dir;
    assert_eq!(work_dir.as_deref(), place.work().to_str());
    runtime.shutdown().await.unwrap();
}
