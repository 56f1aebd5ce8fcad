//! Keepers that die while no runtime lives, and a machine that was started anew meanwhile.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use longhaul_testkit::wire::ScriptedAnswer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::desk::{Desk, eventually};
use crate::model::{Stage, background, exec, notifications};
use crate::processes::{Serving, carries_mark};

/// A session with a task that stays, and nobody who runs it. The task's id.
fn abandoned(command: &str) -> (Stage, String) {
    let call = background(command, "the server");
    let stage = Stage::deciding("", move |seen| {
        let asked = String::from_utf8_lossy(&seen.body);
        if asked.contains("the server") { ScriptedAnswer::text("Noted.") } else { call.clone() }
    });
    let desk = &stage.desk;
    desk.run(&["send", "-s", "a", "start it"]);
    let serving = Serving::start(desk);
    eventually("the turn is over", || !desk.records("a", "turn_ended").is_empty());
    let id = desk.records("a", "task_started")[0]["task_id"].as_str().unwrap().to_owned();
    let printed = || desk.run(&["tasks", "output", &id]).1;
    eventually("the command runs", || printed() == "so far\n");
    serving.kill();
    (stage, id)
}

fn file(desk: &Desk, id: &str, name: &str) -> PathBuf {
    desk.path("home/tasks").join(id).join(name)
}

fn read(path: &PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Ends the keeper of a task so that it can't do anything about it.
fn kill_keeper(desk: &Desk, id: &str) {
    let number = read(&file(desk, id, "lock"))["keeper"]["pid"].as_i64().unwrap();
    let keeper = Pid::from_raw(i32::try_from(number).unwrap()).unwrap();
    kill_process(keeper, Signal::KILL).unwrap();
    eventually("the keeper is dead", || {
        let state = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    });
}

/// A runtime comes back, and then another one: the task is lost once, and the model is told once.
fn check_lost_once(stage: &Stage, id: &str) {
    let desk = &stage.desk;
    let serving = Serving::start(desk);
    eventually("the model was told", || desk.records("a", "turn_ended").len() > 1);
    serving.suspend();
    let (code, out, errors) = desk.run(&["run", "-s", "a", "what of it?"]);

    assert_eq!((code, out.as_str()), (0, "Noted.\n"), "{errors}");
    let told = notifications(stage.requests().last().unwrap());
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("<status>lost</status>") && told[0].contains("so far"), "{}", told[0]);
    let ends = desk.records("a", "task_ended");
    assert_eq!((ends.len(), &ends[0]["status"]), (1, &json!("lost")));
    assert_eq!(desk.records("a", "notification").len(), 1);
    desk.sound_records("a");
    let listed = desk.json(&["tasks", "--json"]);
    assert_eq!((&listed[0]["task_id"], &listed[0]["status"]), (&json!(id), &json!("lost")));
}

/// K9, K8: what the command has left behind is ended, too.
#[test]
fn a_task_whose_keeper_died_with_no_runtime_alive_is_lost_once() {
    let (stage, id) = abandoned("echo so far; setsid sleep 1000 & sleep 1000");

    kill_keeper(&stage.desk, &id);

    check_lost_once(&stage, &id);
    assert!(!carries_mark(&id));
}

/// K9: nobody waits any more for what a command was run for in the foreground. It is a task like any other that somebody may want to end.
#[test]
fn a_foreground_command_that_outlives_its_runtime_is_listed_and_can_be_killed() {
    let stage = Stage::saying(vec![exec(json!({"command": "tail -f /dev/null", "description": "a build"}))]);
    let desk = &stage.desk;
    desk.run(&["send", "-s", "a", "build it"]);
    let serving = Serving::start(desk);
    eventually("the command runs", || !desk.records("a", "tool_started").is_empty());
    let call = desk.records("a", "tool_started")[0]["call"].as_str().unwrap().to_lowercase();
    let id = format!("task_{call}");
    eventually("it has a keeper", || file(desk, &id, "pid").exists());
    let before = desk.json(&["tasks", "--json"]);
    serving.kill();

    let after = desk.json(&["tasks", "--json"]);
    let (code, killed, errors) = desk.run(&["tasks", "kill", &id]);

    assert_eq!(before, json!([]), "the runtime waits for it");
    let listed = &after[0];
    assert_eq!((&listed["task_id"], &listed["status"]), (&json!(id), &json!("running")), "{after}");
    assert_eq!((&listed["session"], &listed["description"]), (&json!("a"), &json!("a build")), "{after}");
    assert!(code == 0 && killed.contains("was killed"), "{killed}{errors}");
    assert!(!carries_mark(&id));
}

/// Somebody who has nothing to do with any of this, in a session and a group of its own.
struct Innocent(Child);

impl Innocent {
    fn new() -> Self {
        let mut command = Command::new("setsid");
        let process = command.args(["sleep", "1000"]).stdin(Stdio::null()).spawn().unwrap();
        let innocent = Self(process);
        eventually("it has a session of its own", || innocent.stat(3) == u64::from(innocent.0.id()));
        innocent
    }

    /// A number that the system has of it, counted from what follows its name.
    fn stat(&self, place: usize) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let (_, after_name) = stat.rsplit_once(") ").unwrap();
        after_name.split(' ').nth(place).unwrap().parse().unwrap()
    }

    fn as_recorded(&self) -> (u32, u64) {
        (self.0.id(), self.stat(19))
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// K9: after a restart of the machine the numbers of a task's processes are those of others, who are left alone.
#[test]
fn a_task_from_before_a_restart_of_the_machine_is_lost_and_nobody_else_is_ended() {
    let (stage, id) = abandoned("echo so far; sleep 1000");
    let desk = &stage.desk;
    kill_keeper(desk, &id);
    eventually("a machine that restarts ends everything", || !carries_mark(&id));
    let mut innocent = Innocent::new();
    let (pid, start_time) = innocent.as_recorded();
    let (lock, command) = (file(desk, &id, "lock"), file(desk, &id, "pid"));
    let process = json!({"pid": pid, "start_time": start_time});
    let before = "11111111-2222-3333-4444-555555555555 pid:[4026531836]";
    let mut keeper = read(&lock);
    (keeper["keeper"], keeper["system"]) = (process.clone(), json!(before));
    // Whoever wants to know whether a keeper lives asks for the lock of this very file.
    std::fs::write(&lock, keeper.to_string()).unwrap();
    let mut started = read(&command);
    (started["pid"], started["start_time"]) = (json!(pid), json!(start_time));
    (started["keeper"], started["system"]) = (process, json!(before));
    std::fs::write(&command, started.to_string()).unwrap();

    check_lost_once(&stage, &id);

    assert!(innocent.lives());
}
