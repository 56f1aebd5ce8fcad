//! Death and return: `serve` is killed at random moments while tasks start, run, print, fail, flip and are ended, and is started
//! again. Whatever died when, each command ran once, has one end and is told once, and nothing of its output is missing or there
//! twice.

use std::collections::BTreeMap;
use std::time::Duration;

use longhaul_protocol::{CommandReport, SessionRecord, TaskEnded, TaskId, TaskStatus};
use longhaul_testkit::SeededRandom;
use longhaul_testkit::wire::{ReceivedRequest, ScriptedAnswer};
use serde_json::{Value, json};

use crate::desk::{Desk, eventually};
use crate::model::Stage;
use crate::processes::{Serving, carries_mark, keeps_a_task};

const SESSIONS: u64 = 3;
/// So many times a runtime of one home is killed; then there is another one. A session lists its last 64 tasks.
const OF_ONE_HOME: u64 = 25;
/// So many lines come from a command that counts.
const LINES: u64 = 40;

/// How often the suite kills; `scripts/soak` sets another number.
fn rounds() -> u64 {
    std::env::var("LONGHAUL_ROUNDS").ok().and_then(|number| number.parse().ok()).unwrap_or(25)
}

fn key(round: u64) -> String {
    format!("session-{}", round % SESSIONS)
}

/// What a command of these tests does, after it has noted that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Counts,
    Quick,
    Fails,
    /// Outlasts its time.
    Flips,
    /// Has something in a session of its own, and stays until somebody ends it.
    Stays,
}

const WORKS: [Work; 5] = [Work::Counts, Work::Quick, Work::Fails, Work::Flips, Work::Stays];

impl Work {
    fn name(self, round: u64) -> String {
        let word = match self {
            Self::Counts => "counts",
            Self::Quick => "quick",
            Self::Fails => "fails",
            Self::Flips => "flips",
            Self::Stays => "stays",
        };
        format!("{word}-{round:04}")
    }

    fn call(self, round: u64) -> Value {
        let name = self.name(round);
        let work = match self {
            Self::Counts => format!("for i in $(seq {LINES}); do echo line $i; sleep 0.03; done"),
            Self::Quick => "echo quick".to_owned(),
            Self::Fails => "echo no; exit 3".to_owned(),
            Self::Flips => format!("for i in $(seq {LINES}); do echo line $i; sleep 0.06; done"),
            Self::Stays => "setsid sleep 1000 & echo stays; sleep 1000".to_owned(),
        };
        let mut call = json!({"command": format!("echo {name} >> ran.txt; {work}"), "description": name});
        match self {
            Self::Flips => call["timeout"] = json!(1),
            Self::Counts | Self::Quick | Self::Fails | Self::Stays => {
                call["run_in_background"] = json!(true);
            }
        }
        call
    }

    fn output(self) -> String {
        match self {
            Self::Counts | Self::Flips => (1..=LINES).map(|number| format!("line {number}\n")).collect(),
            Self::Quick => "quick\n".to_owned(),
            Self::Fails => "no\n".to_owned(),
            Self::Stays => "stays\n".to_owned(),
        }
    }

    fn end(self) -> TaskStatus {
        match self {
            Self::Counts | Self::Quick | Self::Flips => TaskStatus::Completed,
            Self::Fails => TaskStatus::Failed,
            Self::Stays => TaskStatus::Killed,
        }
    }
}

/// Asks for what was wanted and is not in the request yet, one command in an answer: whatever a crash took from the record is
/// asked for again, and nothing else is.
fn model(seen: &ReceivedRequest) -> ScriptedAnswer {
    let body = String::from_utf8_lossy(&seen.body);
    let wanted = (0..OF_ONE_HOME).filter(|round| body.contains(&format!("round {round:04}")));
    let mut calls = wanted.flat_map(|round| WORKS.map(|work| (work.name(round), work.call(round))));
    let next = calls.find(|(name, _)| !body.contains(name));
    next.map_or_else(
        || ScriptedAnswer::text("Noted."),
        |(_, call)| ScriptedAnswer::nothing().call("exec", call),
    )
}

/// The tasks that stay, have begun to and still run, of all sessions.
fn staying(desk: &Desk) -> Vec<String> {
    let listed = desk.json(&["tasks", "--json"]);
    let has_begun = |task: &Value| task["printed"].as_u64().is_some_and(|printed| printed > 0);
    let stays = listed.as_array().unwrap().iter().filter(|task| {
        let is_one = task["description"].as_str().unwrap().starts_with("stays-");
        is_one && task["status"] == "running" && has_begun(task)
    });
    stays.map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
}

/// K8, K15: ends what stays, and nothing of it is left.
fn end_what_stays(desk: &Desk) {
    for id in staying(desk) {
        let (code, out, errors) = desk.run(&["tasks", "kill", &id]);
        assert_eq!((code, out.contains("was killed")), (0, true), "{out}{errors}");
        assert!(!carries_mark(&id), "nothing of {id} is left");
    }
}

/// What is on record of the commands, by their names.
#[derive(Default)]
struct Kept {
    rounds: u64,
    tasks: BTreeMap<String, TaskId>,
    ends: BTreeMap<TaskId, TaskEnded>,
    notified: Vec<TaskId>,
    /// Results of calls: also of a command that was over before anybody could make a task of it.
    results: Vec<(bool, Value)>,
}

impl Kept {
    fn of(desk: &Desk, rounds: u64) -> Self {
        let mut kept = Self { rounds, ..Self::default() };
        for session in 0..SESSIONS.min(rounds) {
            for record in desk.sound_records(&key(session)) {
                match record {
                    SessionRecord::TaskStarted(task) => {
                        let before = kept.tasks.insert(task.description, task.task_id);
                        assert_eq!(before, None, "a command is one task");
                    }
                    SessionRecord::TaskEnded(end) => {
                        let before = kept.ends.insert(end.task_id, end);
                        assert_eq!(before, None, "a task has one end");
                    }
                    SessionRecord::Notification(told) => kept.notified.push(told.task_id),
                    SessionRecord::ToolFinished(finished) => {
                        let content = CommandReport::parse_to_json(&finished.content).unwrap_or(Value::Null);
                        kept.results.push((finished.is_error, content));
                    }
                    _ => {}
                }
            }
        }
        kept
    }

    /// Grows as long as there is progress.
    fn size(&self) -> usize {
        self.tasks.len() + self.ends.len() + self.notified.len() + self.results.len()
    }

    /// Whether everything that was wanted has come to its end and was told.
    fn is_complete(&self) -> bool {
        let all = self.rounds * u64::try_from(WORKS.len()).unwrap();
        let quiet = self.ends.values().filter(|end| end.status == TaskStatus::Killed).count();
        u64::try_from(self.results.len()).unwrap() == all
            && self.ends.len() == self.tasks.len()
            && self.notified.len() + quiet == self.ends.len()
    }

    fn check(&self, desk: &Desk) {
        assert!(self.results.iter().all(|(is_error, _)| !is_error), "{:?}", self.results);
        for round in 0..self.rounds {
            for work in WORKS {
                self.check_work(desk, work, &work.name(round));
            }
        }
    }

    fn check_work(&self, desk: &Desk, work: Work, name: &str) {
        let Some(id) = self.tasks.get(name) else {
            // It was over when somebody could look again: its call has all of it.
            assert_eq!(work, Work::Flips, "{name} is no task");
            let is_whole = |result: &Value| result["output"].as_str() == Some(&work.output());
            assert!(self.results.iter().any(|(_, result)| is_whole(result)), "{name}");
            return;
        };
        let end = &self.ends[id];
        assert_eq!(end.status, work.end(), "{name}");
        let told = self.notified.iter().filter(|told| *told == id).count();
        assert_eq!(told, usize::from(work != Work::Stays), "{name}: what is ended on purpose is not told");
        let (code, out, errors) = desk.run(&["tasks", "output", &id.to_string()]);
        assert_eq!((code, out), (0, work.output()), "{name}: no gap, nothing twice: {errors}");
        assert!(!carries_mark(&id.to_string()), "nothing of {name} is left");
    }
}

/// One home, from its first round to when everything has come to its end.
fn play(chance: &mut SeededRandom, rounds: u64) {
    let stage = Stage::deciding("[exec]\nmax_tasks = 1000\n", model);
    let desk = &stage.desk;
    for round in 0..rounds {
        let (code, _, errors) = desk.run(&["send", "-s", &key(round), &format!("round {round:04}")]);
        assert_eq!(code, 0, "{errors}");
        let serving = Serving::start(desk);
        std::thread::sleep(Duration::from_millis(chance.below(900)));
        let ends_under_it = chance.below(2) == 0;
        if ends_under_it {
            end_what_stays(desk);
        }
        serving.kill();
        if !ends_under_it {
            end_what_stays(desk);
        }
    }
    let serving = Serving::start(desk);
    let mut kept = Kept { rounds, ..Kept::default() };
    while !kept.is_complete() {
        let before = kept.size();
        eventually("there is progress until everything has come to its end and was told", || {
            end_what_stays(desk);
            kept = Kept::of(desk, rounds);
            kept.size() > before || kept.is_complete()
        });
    }
    serving.suspend();

    kept.check(desk);
    let ran = std::fs::read_to_string(desk.path("work/ran.txt")).unwrap();
    let mut ran: Vec<&str> = ran.lines().collect();
    ran.sort_unstable();
    let mut wanted: Vec<String> = (0..rounds).flat_map(|round| WORKS.map(|work| work.name(round))).collect();
    wanted.sort_unstable();
    assert_eq!(ran, wanted, "each command ran once");
    let (code, out, errors) = desk.run(&["verify"]);
    assert_eq!(code, 0, "{out}{errors}");
    eventually("no keeper is left", || !keeps_a_task(desk));
}

/// K5, K8, K9, T12
#[test]
fn killed_at_random_moments_tasks_have_one_start_one_end_and_all_their_output() {
    let mut chance = SeededRandom::new();
    let mut left = rounds();
    while left > 0 {
        let now = left.min(OF_ONE_HOME);
        play(&mut chance, now);
        left -= now;
    }
}
