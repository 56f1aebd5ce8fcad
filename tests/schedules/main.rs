//! Schedules through the real program: made on the command line, run by `longhaul serve`, which may be killed at any time.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../desk.rs"]
mod desk;
mod fake_time;
mod page;

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longhaul_journal::{Journal, records};
use longhaul_protocol::{InboxRecord, ScheduleRecord, Sender, SessionRecord, SlotAction, StreamName};
use longhaul_testkit::SeededRandom;
use serde_json::{Value, json};

use crate::desk::{Desk, told};

const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// A serving process. It is killed with the test.
pub(crate) struct Serving(Child);

impl Serving {
    pub(crate) fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn serve(desk: &Desk) -> Serving {
    Serving::start(desk.command(&["serve", "--no-http"]))
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn show(desk: &Desk, name: &str) -> Value {
    desk.json(&["schedules", "show", name, "--json"])
}

fn answers(count: usize) -> Value {
    json!(vec![json!({"text": "Nothing is new.", "usage": {"input": 10, "output": 5}}); count])
}

fn add(desk: &Desk, arguments: &[&str]) -> (i32, String, String) {
    desk.run(&[&["schedules", "add"], arguments].concat())
}

/// The input of each slot of a schedule that fired: how often it is in an inbox.
pub(crate) fn inputs_by_slot(desk: &Desk, id: &str) -> BTreeMap<i64, usize> {
    desk.with_journal(|journal| async move {
        let stream = StreamName::schedule(id).unwrap();
        let mut found = BTreeMap::new();
        for record in records(&*journal, &stream, 1).collect().await.unwrap() {
            let ScheduleRecord::Decided(decided) = ScheduleRecord::decode(&record).unwrap() else { continue };
            let (SlotAction::Fire, Some(session)) = (decided.action, decided.session) else { continue };
            assert!(found.insert(decided.slot.0, 0).is_none(), "slot {} is decided twice", decided.slot);
            let inbox = records(&*journal, &StreamName::inbox(session), 1).collect().await.unwrap();
            let of_slot = |record: &longhaul_protocol::Record| match InboxRecord::decode(record) {
                Ok(InboxRecord::Input(input)) => {
                    matches!(input.sender, Sender::Schedule { slot, .. } if slot == decided.slot)
                }
                _ => false,
            };
            found.insert(decided.slot.0, inbox.iter().filter(|record| of_slot(record)).count());
        }
        found
    })
}

/// The id of a schedule in the list.
pub(crate) fn id_of(desk: &Desk, name: &str) -> String {
    show(desk, name)["id"].as_str().unwrap().to_owned()
}

/// W1, W3: a run is a turn in a session of its own, with its cause in the statement and its outcome in the list.
#[test]
fn a_schedule_runs_while_the_program_serves() {
    let desk = Desk::new(&answers(3));
    let (code, added, hint) = add(&desk, &["look", "--every", "1s", "What is new?"]);
    assert_eq!(code, 0, "{hint}");
    assert!(added.starts_with("added look; next 20"), "{added}");
    assert!(hint.contains("no process runs schedules in this home; start `longhaul serve`"), "{hint}");

    let serving = serve(&desk);
    eventually("no run has ended", || show(&desk, "look")["last"]["outcome"] == "completed");
    let report = show(&desk, "look");
    serving.kill();

    let session = report["last"]["session"].as_str().unwrap();
    assert!(session.starts_with("schedule:look/20"), "{report}");
    let statement = desk.json(&["statement", "--json"]);
    assert_eq!(statement["items"][0]["name"], "schedule", "{statement}");
    let (_, listed, _) = desk.run(&["schedules"]);
    assert!(listed.contains("every 1s") && listed.contains("What is new?"), "{listed}");
}

/// W1: whenever `serve` is killed, each slot that fires is in the inbox once.
#[test]
fn kills_of_serve_neither_lose_nor_repeat_a_slot() {
    let desk = Desk::new(&answers(200));
    add(
        &desk,
        &["look", "-s", "a", "--every", "1s", "--missed", "all", "--grace", "1d", "What is new?"]
            .map(|word| word),
    );
    let mut random = SeededRandom::new();

    for _ in 0..12 {
        let serving = serve(&desk);
        std::thread::sleep(Duration::from_millis(300 + random.below(1_500)));
        serving.kill();
    }
    let serving = serve(&desk);
    let id = id_of(&desk, "look");
    eventually("too few runs", || inputs_by_slot(&desk, &id).len() >= 6);
    desk.run(&["schedules", "pause", "look"]);
    eventually("a run is open", || show(&desk, "look")["status"] == "paused");
    serving.kill();

    let inputs = inputs_by_slot(&desk, &id);
    assert!(inputs.values().all(|count| *count == 1), "{inputs:?}");
    let slots: Vec<i64> = inputs.keys().copied().collect();
    assert!(
        slots.windows(2).all(|pair| pair[1] - pair[0] == 1_000),
        "with `all`, none is left out: {slots:?}"
    );
}

/// W3: pause, resume, run now and delete, each in one line.
#[test]
fn people_pause_run_and_delete_schedules() {
    let desk = Desk::new(&answers(5));
    add(&desk, &["look", "--cron", "0 7 * * 1-5", "--zone", "Europe/Berlin", "What is new?"]);
    let serving = serve(&desk);

    let (_, _, paused) = desk.run(&["schedules", "pause", "look"]);
    let status = show(&desk, "look")["status"].clone();
    desk.run(&["schedules", "run", "look"]);
    eventually("the requested run has not ended", || show(&desk, "look")["last"]["outcome"] == "completed");
    let (_, _, resumed) = desk.run(&["schedules", "resume", "look"]);
    let (_, _, deleted) = desk.run(&["schedules", "delete", "look"]);
    serving.kill();

    assert_eq!(
        (paused.as_str(), status),
        ("longhaul: paused look; `longhaul schedules resume look` starts it again\n", json!("paused"))
    );
    assert!(resumed.starts_with("longhaul: resumed look; next 20"), "{resumed}");
    assert_eq!(deleted, "longhaul: deleted look\n");
    assert_eq!(desk.json(&["schedules", "--json"]), json!([]));
}

/// W3
#[test]
fn people_see_times_in_their_own_zone_and_programs_in_utc() {
    let desk = Desk::new(&answers(1));
    add(&desk, &["party", "--at", "2098-06-01T12:00:00Z", "Where is everybody?"]);

    let shown =
        |arguments: &[&str]| told(&desk.command(arguments).env("TZ", "Asia/Tokyo").output().unwrap()).1;
    let (list, details) = (shown(&["schedules"]), shown(&["schedules", "show", "party"]));

    assert!(list.contains("next 2098-06-01 21:00 "), "{list}");
    assert!(details.contains("2098-06-01 21:00\n"), "{details}");
    assert_eq!(show(&desk, "party")["next"], "2098-06-01T12:00:00.000Z");
}

/// W3: a heartbeat with nothing to do is a quiet turn, and the run says what it answered.
#[test]
fn a_heartbeat_may_find_nothing_to_do() {
    let desk = Desk::new(&json!([{"text": "Nothing to do."}]));
    let (code, _, stderr) =
        add(&desk, &["builds", "--every", "1h", "--heartbeat", "-s", "work", "Are the builds green?"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(show(&desk, "builds")["heartbeat"], json!(true));
    assert!(desk.run(&["schedules", "show", "builds"]).1.contains("heartbeat"));
    assert_eq!(desk.run(&["schedules", "run", "builds"]).0, 0);
    let _serving = serve(&desk);

    eventually("the run ends", || show(&desk, "builds")["last"]["outcome"] == "completed");

    let shown = desk.run(&["sessions", "show", "work"]).1;
    assert!(shown.contains("Nothing to do."), "{shown}");
    let ends = desk.with_journal(|journal| async move {
        let session = journal.session("work").await.unwrap().unwrap();
        let records = records(&*journal, &StreamName::session(session.id), 1).collect().await.unwrap();
        let ends = records.iter().filter_map(|record| match SessionRecord::decode(record) {
            Ok(SessionRecord::TurnEnded(ended)) => Some(ended.is_quiet()),
            _ => None,
        });
        ends.collect::<Vec<_>>()
    });
    assert_eq!(ends, [true]);
}

/// B1: a run that would cost more than `cost_per_run` ends with that limit.
#[test]
fn a_run_ends_at_its_own_cost_limit() {
    let desk = Desk::with_model_of_config("[model]\nname = 'test/m'\n");
    // No call is made: its upper bound is more than the run may cost.
    let providers = "[test]\nprotocol = 'openai-chat'\nbase_url = 'http://127.0.0.1:9/v1'\n\n[[model]]\npattern = 'test/*'\nwindow = 100000\n\
                     max_output = 4000\nprices = { input = 10.0, output = 10.0 }\n";
    std::fs::write(desk.path("home/providers.toml"), providers).unwrap();
    add(&desk, &["look", "--every", "1s", "--cost-per-run", "0.0001", "--max-failures", "1", "What is new?"]);
    let serving = serve(&desk);

    eventually("it is not paused", || show(&desk, "look")["status"] == "paused");
    let report = show(&desk, "look");
    serving.kill();

    assert_eq!(report["last"]["outcome"], "limit", "{report}");
    let reason = report["reason"].as_str().unwrap();
    assert!(reason.contains("would pass cost_per_run of the schedule"), "{reason}");
}

/// Bad input is one clear line and exit code 2.
#[test]
fn a_schedule_that_can_not_run_is_refused_with_one_line() {
    let desk = Desk::new(&answers(1));
    add(&desk, &["taken", "--every", "1h", "x"]);
    let long = "x".repeat(1 << 17);
    let cases: [(&[&str], &str); 8] = [
        (&["a", "--cron", "0 0 30 2 *", "x"], "schedule a: cron \"0 0 30 2 *\" never fires"),
        (&["a", "--cron", "0 7 * *", "x"], "has 4 fields; it needs five: minute hour day month weekday"),
        (&["a", "--cron", "0 7 * * *", "--zone", "Mars/Base", "x"], "there is no time zone \"Mars/Base\""),
        (
            &["a", "--at", "2020-01-01T00:00", "x"],
            "at \"2020-01-01T00:00\" is in the past; it would never fire",
        ),
        (&["a", "--every", "5", "x"], "every \"5\" is not a duration"),
        (&["a/b", "--every", "1h", "x"], "the name \"a/b\" is not valid"),
        (&["taken", "--every", "1h", "x"], "there is a schedule \"taken\" already"),
        (&["a", "x"], "it has no time; set one of cron, every and at"),
    ];
    for (arguments, expected) in cases {
        let (code, _, errors) = add(&desk, arguments);
        assert_eq!(code, 2, "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
    let mut command = desk.command(&["schedules", "add", "a", "--every", "1h", "-"]);
    let mut process = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let writing = std::thread::spawn(move || {
        use std::io::Write;
        (0..8).for_each(|_| drop(input.write_all(long.as_bytes())));
    });
    let output = process.wait_with_output().unwrap();
    writing.join().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("the prompt has 1048576 bytes, more than 128 KiB"), "{errors}");
    let (code, _, errors) = desk.run(&["schedules", "pause", "takn"]);
    assert_eq!(
        (code, errors.contains("no schedule \"takn\"; did you mean \"taken\"?")),
        (2, true),
        "{errors}"
    );
}

/// W3: `doctor` finds a scheduler that is late.
#[test]
fn doctor_finds_that_no_process_runs_the_schedules() {
    let desk = Desk::new(&answers(1));
    desk.configure("[[schedule]]\nname = \"morning\"\nevery = \"1h\"\nprompt = \"What is new?\"\n");

    let (_, found, _) = desk.run(&["doctor", "--json"]);

    let found: Value = serde_json::from_str(&found).unwrap();
    let of_schedules: Vec<&Value> =
        found.as_array().unwrap().iter().filter(|finding| finding["check"] == "schedules").collect();
    assert_eq!(of_schedules.len(), 1, "{found}");
    assert_eq!(of_schedules[0]["to_do"], "start `longhaul serve`");
}
