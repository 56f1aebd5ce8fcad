//! A crash during a call that changes several files, as a table: the call is interrupted after each of its steps, and
//! then resumed.
//!
//! | crash | on disk | resume | never |
//! | --- | --- | --- | --- |
//! | before the first change | all as before | run it again | – |
//! | after some changes | some as after, the others as before | the others are changed, with the same result | a change made twice |
//! | after the last change | all as after | it happened | a second change |
//! | within a change | a temporary file beside it | the same, and the temporary file is gone | half a file under the name |
//! | any, and someone else wrote one of the files since | their file | can't be told: how each file is | their change lost |

use std::collections::BTreeMap;
use std::fs;

use longhaul_protocol::{Effect, FileChange, ToolStarted};
use longhaul_tools::{ResumedCall, StopSignal, ToolInvocation, ToolOutcome};
use serde_json::{Value, json};

use crate::changes::temporary_name;
use crate::workplace::{Workplace, call, run};

type Files = BTreeMap<&'static str, Option<&'static str>>;

/// A call that was recorded as started, with all its files as before.
struct Crash {
    place: Workplace,
    tool: &'static str,
    call: ToolInvocation,
    writes: Vec<FileChange>,
    undisturbed: ToolOutcome,
    after: Files,
}

/// What a call should make of some files.
fn cases() -> Vec<(&'static str, Value, Files, Files)> {
    let lines = [
        "*** Begin Patch",
        "*** Update File: a.txt",
        "@@",
        "-one",
        "+two",
        "*** Add File: new.txt",
        "+new",
        "*** Update File: from.txt",
        "*** Move to: to.txt",
        "@@",
        "-here",
        "+there",
        "*** Delete File: gone.txt",
        "*** End Patch",
    ];
    let before = [("a.txt", "one\n"), ("from.txt", "here\n"), ("gone.txt", "gone")];
    let after = [("a.txt", "two\n"), ("new.txt", "new\n"), ("to.txt", "there\n")];
    let names = ["a.txt", "from.txt", "gone.txt", "new.txt", "to.txt"];
    let files = |there: &[(&'static str, &'static str)]| -> Files {
        names
            .into_iter()
            .map(|name| (name, there.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)))
            .collect()
    };
    vec![
        ("patch", json!({"patch": lines.join("\n")}), files(&before), files(&after)),
        ("delete_file", json!({"path": "gone.txt"}), files(&before), files(&before[..2])),
        (
            "move_file",
            json!({"from": "from.txt", "to": "to.txt"}),
            files(&before),
            files(&[before[0], before[2], ("to.txt", "here\n")]),
        ),
    ]
}

fn lay(place: &Workplace, name: &str, text: Option<&str>) {
    match text {
        Some(text) => drop(place.put(name, text)),
        None => drop(fs::remove_file(place.path(name))),
    }
}

async fn crashed((tool, arguments, before, after): (&'static str, Value, Files, Files)) -> Crash {
    let place = Workplace::new();
    before.iter().for_each(|(name, text)| lay(&place, name, *text));
    let call = call(&arguments);
    let prepared = place.tool(tool).prepare(&call).await.map_err(|refused| refused.content).unwrap();
    let writes = prepared.writes.clone();
    let undisturbed = run(prepared).await;
    let crash = Crash { place, tool, call, writes, undisturbed, after };
    crash.check_after();
    before.iter().for_each(|(name, text)| lay(&crash.place, name, *text));
    crash
}

impl Crash {
    /// The name of the file of a change in the work folder.
    fn name(&self, change: &FileChange) -> String {
        change.path.strip_prefix(&format!("{}/", self.place.work().display())).unwrap().to_owned()
    }

    /// Makes the first changes, as the call had before it was interrupted.
    fn make(&self, changes: usize) {
        for change in &self.writes[..changes] {
            let name = self.name(change);
            lay(&self.place, &name, self.after[name.as_str()]);
        }
    }

    fn check_after(&self) {
        let there: Vec<String> = self.place.names(&self.place.work());
        let expected: Vec<&str> =
            self.after.iter().filter(|(_, text)| text.is_some()).map(|(name, _)| *name).collect();
        assert_eq!(there, expected, "{}", self.tool);
        for (name, text) in self.after.iter().filter_map(|(name, text)| Some((name, (*text)?))) {
            assert_eq!(self.place.text(name), text, "{} {name}", self.tool);
        }
    }

    async fn resume(&self) -> ResumedCall {
        let started = ToolStarted {
            call: self.call.id,
            name: self.tool.to_owned(),
            arguments: self.call.arguments.clone(),
            effect: Effect::CheckedWrite,
            write: None,
            writes: self.writes.clone(),
            kept_in: None,
            remote_task: None,
            child: None,
            changes_nothing: false,
        };
        self.place.tool(self.tool).resume(&self.call, &started).await
    }

    /// Resumes the call to its end.
    async fn finish(&self) -> ToolOutcome {
        match self.resume().await {
            ResumedCall::Finished(finished) => finished,
            ResumedCall::RunAgain => self.place.make(self.tool, &self.call).await,
            ResumedCall::Running { run: go_on, .. } => {
                let (_stopper, stop) = StopSignal::pair();
                go_on(stop).await
            }
            ResumedCall::Unknown(why) => panic!("{}: {why}", self.tool),
        }
    }
}

/// After a crash, the text that a diff needs may be gone.
fn without_diff(outcome: ToolOutcome) -> ToolOutcome {
    ToolOutcome { diff: None, ..outcome }
}

/// P2: interrupted after any number of its changes, a call ends as if it had not been.
#[tokio::test]
async fn a_call_that_was_interrupted_after_any_change_is_finished() {
    for case in cases() {
        let changes = crashed(case.clone()).await.writes.len();
        for made in 0..=changes {
            let crash = crashed(case.clone()).await;
            crash.make(made);

            let finished = crash.finish().await;

            assert_eq!(
                without_diff(finished),
                without_diff(crash.undisturbed.clone()),
                "{} after {made}",
                crash.tool
            );
            crash.check_after();
        }
    }
}

/// P2: interrupted within any of its changes, nothing of the temporary file stays.
#[tokio::test]
async fn what_an_interrupted_change_left_is_removed() {
    for case in cases() {
        let (before, changes) = (case.2.clone(), crashed(case.clone()).await.writes.len());
        for at in 0..changes {
            // Half of the new content while it was written; the old file after an exchange or while it was removed.
            for is_made in [false, true] {
                let crash = crashed(case.clone()).await;
                crash.make(at + usize::from(is_made));
                let change = &crash.writes[at];
                let name = crash.name(change);
                let left =
                    if is_made { before[name.as_str()] } else { crash.after[name.as_str()].map(|_| "ne") };
                let Some(left) = left else { continue };
                crash.place.put(&temporary_name(&crash.call, &crash.place.path(&name)), left);

                let finished = crash.finish().await;

                assert_eq!(
                    without_diff(finished),
                    without_diff(crash.undisturbed.clone()),
                    "{} {name} {is_made}",
                    crash.tool
                );
                crash.check_after();
            }
        }
    }
}

/// P2: what someone else wrote is never lost, and the model is told how each file is.
#[tokio::test]
async fn someone_elses_file_is_left_and_told() {
    for case in cases() {
        let changes = crashed(case.clone()).await.writes.len();
        for theirs in 0..changes {
            let crash = crashed(case.clone()).await;
            crash.make(theirs);
            let name = crash.name(&crash.writes[theirs]);
            crash.place.put(&name, "theirs");

            let ResumedCall::Unknown(what) = crash.resume().await else { panic!("{} {name}", crash.tool) };

            assert!(what.contains(&format!("{name} is neither as before nor as after")), "{what}");
            assert_eq!(crash.place.text(&name), "theirs");
        }
    }
}

/// P2: a change that came out when a file was exchanged or removed is kept under a name of its own.
#[tokio::test]
async fn someone_elses_change_that_came_out_is_kept() {
    for (tool, at) in [("patch", 0), ("delete_file", 0)] {
        let case = cases().into_iter().find(|case| case.0 == tool).unwrap();
        let crash = crashed(case).await;
        crash.make(at + 1);
        let name = crash.name(&crash.writes[at]);
        crash.place.put(&temporary_name(&crash.call, &crash.place.path(&name)), "theirs");

        let ResumedCall::Unknown(what) = crash.resume().await else { panic!("{tool}") };

        let kept =
            crash.place.names(&crash.place.work()).into_iter().find(|kept| kept.contains(".kept-")).unwrap();
        assert!(what.contains(&kept), "{what}");
        assert_eq!(crash.place.text(&kept), "theirs");
    }
}
