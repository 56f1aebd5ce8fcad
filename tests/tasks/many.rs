//! Many tasks at once: fifty of them over five sessions under one runtime, one of which prints without end.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use longhaul_protocol::{SessionRecord, TaskId, TaskStatus};
use longhaul_testkit::wire::ScriptedAnswer;
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::desk::{Desk, eventually};
use crate::model::Stage;
use crate::processes::{Serving, keepers, keeps_a_task};

const SESSIONS: usize = 5;
const EACH: usize = 10;
/// In the system's KiB.
const MIB: u64 = 1024;

/// How many bytes the one prints.
const MUCH: u64 = 1 << 30;
/// How many bytes of an output are kept, if the config says nothing.
const KEPT: u64 = 64 << 20;

fn key(session: usize) -> String {
    format!("session-{session}")
}

/// Ten commands in one answer, each of which waits at the gate; one of the first session's prints much before that.
fn model(body: &str) -> ScriptedAnswer {
    if body.contains("waits-0") || body.contains("say hello") {
        return ScriptedAnswer::text("Noted.");
    }
    (0..EACH).fold(ScriptedAnswer::nothing(), |said, number| {
        let before = match number {
            0 if body.contains("print much") => format!("head -c {MUCH} /dev/zero | tr '\\0' x"),
            _ => "echo begun".to_owned(),
        };
        let command = format!("{before}; flock -s gate.lock echo through");
        let description = format!("waits-{number}");
        let arguments = json!({"command": command, "description": description, "run_in_background": true});
        said.call("exec", arguments)
    })
}

/// A number of KiB that the system has of a process.
fn memory(process: &Path, what: &str) -> u64 {
    let status = std::fs::read_to_string(process.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

/// How many bytes each task takes on disk.
fn on_disk(desk: &Desk) -> Vec<u64> {
    let length = |file: std::fs::DirEntry| file.metadata().map_or(0, |file| file.len());
    let of = |id: TaskId| desk.path("home/tasks").join(id.to_string());
    let all = desk.tasks().all().unwrap().into_iter();
    all.map(|id| std::fs::read_dir(of(id)).unwrap().flatten().map(length).sum()).collect()
}

/// How much each task has printed.
fn printed(desk: &Desk) -> Vec<u64> {
    let tasks = desk.tasks();
    let all = tasks.all().unwrap().into_iter();
    all.map(|id| tasks.output(id).unwrap().printed().unwrap_or(0)).collect()
}

/// What is on record of a session: tasks that have started, that have ended well, and that were told.
fn known(desk: &Desk, key: &str) -> [Vec<TaskId>; 3] {
    let (mut started, mut ended, mut told) = (vec![], vec![], vec![]);
    for record in desk.sound_records(key) {
        match record {
            SessionRecord::TaskStarted(task) => started.push(task.task_id),
            SessionRecord::TaskEnded(end) => {
                assert_eq!((end.status, end.exit_code), (TaskStatus::Completed, Some(0)), "{key}");
                assert!(end.tail.ends_with("through\n"), "{key}: {}", end.tail);
                ended.push(end.task_id);
            }
            SessionRecord::Notification(notification) => told.push(notification.task_id),
            _ => {}
        }
    }
    [started, ended, told]
}

/// K5, K6, K10: neither the number of tasks nor what they print costs the runtime memory, and every end is told once.
///
/// A keeper hands output from pipe to file without ever having it, so 3 MiB of its own are plenty for a process of which most is
/// shared with the runtime. The runtime reads at most the mebibyte of an output that goes into the record: with five sessions and
/// their journal 120 MiB are plenty, and a fraction of what was printed. Both are also held to what they take without that: a runtime
/// after its first turn, and a keeper whose command has printed a line.
#[test]
fn fifty_tasks_and_endless_output_cost_no_memory_and_every_end_is_told_once() {
    let stage = Stage::deciding("", |seen| model(&String::from_utf8_lossy(&seen.body)));
    let desk = &stage.desk;
    let gate = File::create(desk.path("work/gate.lock")).unwrap();
    flock(&gate, FlockOperation::LockExclusive).unwrap();
    let serving = Serving::start(desk);
    desk.run(&["send", "-s", "before", "say hello"]);
    eventually("there was a turn", || !desk.records("before", "turn_ended").is_empty());
    let before = memory(&serving.process(), "VmHWM");

    for session in 0..SESSIONS {
        let prompt = if session == 0 { "print much" } else { "begin" };
        let (code, _, errors) = desk.run(&["send", "-s", &key(session), prompt]);
        assert_eq!(code, 0, "{errors}");
    }
    eventually("all tasks run, and have printed all that they print before the gate", || {
        let printed = printed(desk);
        let enough = printed.iter().filter(|count| **count >= 6).count() == SESSIONS * EACH;
        enough && printed.iter().any(|count| *count >= MUCH)
    });
    let while_they_ran = memory(&serving.process(), "VmHWM");
    let on_disk = on_disk(desk);
    let keepers = keepers(desk);
    let of_keepers: Vec<u64> = keepers.iter().map(|keeper| memory(keeper, "RssAnon")).collect();
    flock(&gate, FlockOperation::Unlock).unwrap();
    let mut all = Vec::new();
    eventually("every end was told", || {
        all = (0..SESSIONS).map(|session| known(desk, &key(session))).collect();
        all.iter().all(|[started, _, told]| started.len() == EACH && told.len() == EACH)
    });
    let at_most = memory(&serving.process(), "VmHWM");
    serving.suspend();

    println!("runtime: {before}, {while_they_ran}, {at_most} KiB; keepers: {of_keepers:?} KiB");
    assert!(at_most < 120 * MIB && at_most < 4 * before, "{before} KiB before, then {at_most} KiB");
    assert_eq!(of_keepers.len(), SESSIONS * EACH);
    let (least, most) = (of_keepers.iter().min().unwrap(), of_keepers.iter().max().unwrap());
    assert!(*most < 4 * MIB && *most < 2 * least, "{of_keepers:?}");
    assert!(on_disk.iter().all(|bytes| *bytes < KEPT + KEPT / 16), "{on_disk:?}");
    for [started, ended, told] in all {
        let set = |ids: &[TaskId]| ids.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!((set(&started).len(), ended.len(), told.len()), (EACH, EACH, EACH));
        assert_eq!((set(&ended), set(&told)), (set(&started), set(&started)));
    }
    let (code, out, errors) = desk.run(&["verify"]);
    assert_eq!(code, 0, "{out}{errors}");
    eventually("no keeper is left", || !keeps_a_task(desk));
}
