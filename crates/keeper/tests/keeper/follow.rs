//! Hearing that there is more output.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::SystemTime;

use longhaul_keeper::Following;
use longhaul_protocol::At;

use crate::home::{Home, TEST_TIMEOUT, ended, until};

/// Reads until so much was printed, as far as is said; or to the end.
fn hear(connection: &mut UnixStream, following: &mut Following, until: u64) {
    connection.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut bytes = [0; 7];
    while following.printed() < until {
        match connection.read(&mut bytes).unwrap() {
            0 => return,
            count => following.hear(&bytes[..count]),
        }
    }
}

/// K11
#[test]
fn whoever_follows_hears_of_more_output_and_of_the_end() {
    let home = Home::new();
    let wait = |name: &str| format!("while [ ! -e {name} ]; do sleep 0.01; done");
    let task = home.start(&format!("echo one; {}; echo two; {}; echo three", wait("a"), wait("b")));

    let (mut connection, mut following) = task.follow().unwrap();
    hear(&mut connection, &mut following, 4);
    assert_eq!(following.printed(), 4);
    fs::write(home.folder.join("a"), "").unwrap();
    hear(&mut connection, &mut following, 8);
    assert_eq!(following.printed(), 8);
    fs::write(home.folder.join("b"), "").unwrap();
    hear(&mut connection, &mut following, u64::MAX);

    assert_eq!(task.status().unwrap().map(|status| status.printed), Some(14));
}

/// K11
#[test]
fn whoever_follows_too_late_hears_only_the_end() {
    let home = Home::new();
    let task = home.start("echo hello");
    ended(&task);

    let (mut connection, following) = task.follow().unwrap();

    assert_eq!(connection.read(&mut [0; 10]).unwrap(), 0);
    assert_eq!(following.printed(), 6);
}

/// K2, K12
#[test]
fn a_task_knows_when_it_started_and_when_it_last_printed() {
    let home = Home::new();
    let now = || At(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64);
    let before = now();
    let wait = |name: &str| format!("while [ ! -e {name} ]; do sleep 0.01; done");
    let task = home.start(&format!("{}; head -c 2000000 /dev/zero; {}", wait("go"), wait("end")));
    let started_at = task.started_at().unwrap().unwrap();
    let silent = home.tasks.output(task.id()).unwrap().printed_at().unwrap();
    let going = now();
    fs::write(home.folder.join("go"), "").unwrap();
    until("all output", || (task.printed().unwrap() == 2_000_000).then_some(()));
    let all_is_there = now();
    fs::write(home.folder.join("end"), "").unwrap();

    let status = ended(&task);

    // A file's time is that of the system's last tick.
    assert!((before.0 - 20..=going.0).contains(&started_at.0), "{before:?} {started_at:?} {going:?}");
    assert_eq!(silent, None);
    let printed_at = home.tasks.output(task.id()).unwrap().printed_at().unwrap().unwrap();
    let when = format!("{going:?} {printed_at:?} {all_is_there:?} {status:?}");
    assert!((going.0 - 20..=all_is_there.0).contains(&printed_at.0), "{when}");
    assert!(all_is_there <= status.ended_at, "{when}");
    assert_eq!(home.tasks.spec(task.id()).unwrap().unwrap().output_cap, 1 << 20);
}
