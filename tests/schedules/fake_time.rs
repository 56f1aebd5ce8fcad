//! The real program under `libfaketime`: hours of the clock on the wall pass in seconds.

use std::process::Command;

use longhaul_testkit::faketime_library;
use serde_json::json;

use crate::desk::Desk;
use crate::{Serving, eventually, id_of, inputs_by_slot, show};

/// The program at a time of the past or the future. The library is loaded without the program `faketime`, which would stand between the
/// test and the process that it kills.
fn at(desk: &Desk, time: &str, arguments: &[&str]) -> Command {
    let library = faketime_library().expect("install the package faketime, as `scripts/test` does");
    let mut command = desk.command(arguments);
    command.env("LD_PRELOAD", library).env("FAKETIME", format!("@{time}")).env("TZ", "UTC");
    command
}

/// W2: in the night in which the clock jumps from two to three, the run of half past two is at three, once. `serve` is killed before
/// and after.
#[test]
fn a_run_in_the_hour_that_the_clock_leaves_out_comes_once_at_its_end() {
    let answer = json!({"text": "Nothing is new."});
    let desk = Desk::new(&json!([answer, answer, answer]));
    let add =
        ["schedules", "add", "night", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "What is new?"];
    assert!(at(&desk, "2027-03-27 12:00:00", &add).status().unwrap().success());

    // One that ends before the slot, and one that comes after an outage of minutes.
    let first = Serving::start(at(&desk, "2027-03-28 00:50:00", &["serve", "--no-http"]));
    eventually("it has not begun", || show(&desk, "night")["status"] != "invalid");
    first.kill();
    let second = Serving::start(at(&desk, "2027-03-28 00:59:55", &["serve", "--no-http"]));
    eventually("the run has not ended", || show(&desk, "night")["last"]["outcome"] == "completed");
    second.kill();
    let third = Serving::start(at(&desk, "2027-03-28 01:10:00", &["serve", "--no-http"]));
    std::thread::sleep(std::time::Duration::from_secs(3));
    third.kill();

    let slots: Vec<i64> = inputs_by_slot(&desk, &id_of(&desk, "night")).into_keys().collect();
    assert_eq!(slots, [1_806_195_600_000], "2027-03-28T01:00:00Z");
}
