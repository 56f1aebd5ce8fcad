//! A command whose input and output are carried to its owner, and that lives only for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use longhaul_keeper::{Error, Found, Spec, Task, Tasks};
use longhaul_protocol::TaskStatus;

use crate::home::{Home, ended, is_alive, number_in, spec_in, until};
use crate::part::{self, Part};

/// A moment more than the 10 s within which an orphaned command ends.
const ORPHAN_LIMIT: Duration = Duration::from_secs(11);

fn start(home: &Home, command: &str) -> Task {
    home.tasks.start(&Spec { relay: true, ..home.spec(command) }).unwrap()
}

fn line_of(stream: &UnixStream, heard: &[u8]) -> String {
    let mut line = String::new();
    BufReader::new(heard.chain(stream)).read_line(&mut line).unwrap();
    line
}

/// E1
#[test]
fn the_owner_talks_to_the_command_and_its_errors_are_kept_as_output() {
    let home = Home::new();
    let task = start(&home, "echo ready >&2; while read line; do echo \"got $line\"; done");
    let (stream, heard) = task.relay().unwrap().unwrap();

    (&stream).write_all(b"hello\n").unwrap();

    assert_eq!(line_of(&stream, &heard), "got hello\n");
    drop(stream);
    ended(&task);
    assert_eq!(home.output(&task), "ready\n");
}

/// E1: a command that answers slowly makes its owner wait, and nothing is lost or reordered.
#[test]
fn megabytes_go_both_ways_without_a_loss() {
    let home = Home::new();
    let task = start(&home, "exec cat");
    let (stream, heard) = task.relay().unwrap().unwrap();
    let sent: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let (writer, bytes) = (stream.try_clone().unwrap(), sent.clone());

    let writing = std::thread::spawn(move || {
        (&writer).write_all(&bytes).unwrap();
    });
    let mut received = heard;
    let missing = (sent.len() - received.len()) as u64;
    (&stream).take(missing).read_to_end(&mut received).unwrap();

    writing.join().unwrap();
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
}

/// E1
#[test]
fn a_command_whose_owner_has_gone_is_ended() {
    let home = Home::new();
    let task = start(&home, "trap '' TERM; while true; do read line; sleep 0.05; done");
    let (stream, _) = task.relay().unwrap().unwrap();

    let since = Instant::now();
    drop(stream);
    ended(&task);

    assert!(since.elapsed() < ORPHAN_LIMIT, "{:?}", since.elapsed());
    let status = task.status().unwrap().unwrap();
    assert_eq!(status.status, TaskStatus::Killed);
    assert_eq!(status.message.as_deref(), Some("the program that used it has ended"));
}

/// E1: a program that ends when it is asked to may have left others behind, such as a browser.
#[test]
fn what_a_relayed_command_leaves_running_ends_with_it() {
    let home = Home::new();
    let task = start(&home, "setsid sh -c 'trap \"\" TERM; echo $$ >left; exec sleep 600' & read line");
    let (stream, _) = task.relay().unwrap().unwrap();
    let left = number_in(&home.folder.join("left"));

    let since = Instant::now();
    drop(stream);
    ended(&task);

    until("its end", || (!is_alive(left)).then_some(()));
    assert!(since.elapsed() < ORPHAN_LIMIT, "{:?}", since.elapsed());
}

/// E1
#[test]
fn a_command_that_no_owner_ever_asked_for_is_ended() {
    let home = Home::new();

    let task = start(&home, "exec sleep 600");
    let since = Instant::now();
    ended(&task);

    assert!(since.elapsed() < ORPHAN_LIMIT, "{:?}", since.elapsed());
}

/// E1
#[test]
fn a_command_has_one_owner() {
    let home = Home::new();
    let task = start(&home, "exec cat");
    let (stream, _) = task.relay().unwrap().unwrap();

    let second = task.relay();

    assert!(matches!(second, Err(Error::Refused { .. })), "{second:?}");
    (&stream).write_all(b"still here\n").unwrap();
    assert_eq!(line_of(&stream, &[]), "still here\n");
}

#[test]
fn the_connection_ends_with_the_command() {
    let home = Home::new();
    let task = start(&home, "read line; echo bye; exit 3");
    let (stream, mut heard) = task.relay().unwrap().unwrap();

    (&stream).write_all(b"go\n").unwrap();
    (&stream).read_to_end(&mut heard).unwrap();

    assert_eq!(String::from_utf8(heard).unwrap(), "bye\n");
    ended(&task);
    assert!(task.relay().unwrap().is_none());
}

/// E1: `kill -9` of the owner closes its connection.
#[test]
fn a_killed_owner_leaves_no_command_behind() {
    let home = Home::new();
    let mut owner = Part::start("relay::plays_an_owner", &home.folder);
    let id = owner.hear("task ").parse().unwrap();
    assert!(matches!(home.tasks.find(id).unwrap(), Found::Running(_)));

    let since = Instant::now();
    owner.kill();

    while matches!(home.tasks.find(id).unwrap(), Found::Running(_)) {
        assert!(since.elapsed() < ORPHAN_LIMIT, "it still runs after {:?}", since.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "a part that other tests play in another process"]
fn plays_an_owner() {
    let home = part::home();
    let tasks = Tasks::at(&home.join("tasks"), part::keeper()).unwrap();
    let spec = Spec { relay: true, ..spec_in(&home, "while true; do read line; sleep 0.05; done") };
    let task = tasks.start(&spec).unwrap();
    let _owned = task.relay().unwrap().unwrap();
    println!("task {}", task.id());
    std::thread::sleep(Duration::from_secs(600));
}
