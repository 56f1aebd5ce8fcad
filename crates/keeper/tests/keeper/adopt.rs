//! K9: what is found again after something was killed or moved.

use std::fs;
use std::path::Path;
use std::process::Command;

use longhaul_keeper::{Error, Found, Task, Tasks};
use longhaul_protocol::{CallId, TaskId, TaskStatus};
use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, after_all, ended, is_alive, keeper_of, number_in, output_of, spec_in, until};
use crate::part::{self, Part};

/// Counts up until it may stop; each number is printed once, and each start is noted in a file.
const COUNTING: &str =
    "echo started >> starts; n=0; while [ ! -e stop ]; do n=$((n+1)); echo $n; done; echo last $n";

fn running(found: Found) -> Task {
    match found {
        Found::Running(task) => task,
        other => panic!("it runs, and was found as {other:?}"),
    }
}

#[test]
#[ignore = "a part that other tests play in another process"]
fn a_runtime_that_starts_a_command_and_waits() {
    let home = part::home();
    let tasks = Tasks::at(&home.join("tasks"), part::keeper()).unwrap();
    let task = tasks.start(&spec_in(&home, COUNTING)).unwrap();
    println!("started {}", task.id());
    ended(&task);
}

/// K9
#[test]
fn a_command_goes_on_when_the_runtime_is_killed_and_is_found_again_without_a_gap() {
    let home = Home::new();
    let mut runtime = Part::start("adopt::a_runtime_that_starts_a_command_and_waits", &home.folder);
    let id = runtime.hear("started").parse().unwrap();

    runtime.kill();
    let task = running(home.tasks.find(id).unwrap());
    let printed = task.printed().unwrap();
    until("more output", || (task.printed().unwrap() > printed).then_some(()));
    fs::write(home.folder.join("stop"), "").unwrap();
    let status = ended(&task);

    assert_eq!(status.status, TaskStatus::Completed);
    assert_eq!(fs::read_to_string(home.folder.join("starts")).unwrap(), "started\n");
    let output = output_of(&home.tasks, id);
    let (numbers, last) = output.trim_end().rsplit_once("\nlast ").unwrap();
    if !numbers.contains("[dropped") {
        let expected: Vec<String> = (1..=last.parse::<u64>().unwrap()).map(|n| n.to_string()).collect();
        assert_eq!(numbers.lines().collect::<Vec<_>>(), expected);
    }
}

/// K9
#[test]
fn an_end_that_came_while_no_runtime_lived_is_found() {
    let home = Home::new();
    let mut runtime = Part::start("adopt::a_runtime_that_starts_a_command_and_waits", &home.folder);
    let id = runtime.hear("started").parse().unwrap();
    runtime.kill();
    fs::write(home.folder.join("stop"), "").unwrap();
    until("the status", || home.task_folder(id).join("status.json").exists().then_some(()));

    let found = home.tasks.find(id).unwrap();
    let again = home.tasks.find(id).unwrap();

    assert!(matches!(&found, Found::Ended(status) if status.status == TaskStatus::Completed), "{found:?}");
    assert!(matches!(&again, Found::Ended(_)), "{again:?}");
    assert_eq!(fs::read_to_string(home.folder.join("starts")).unwrap(), "started\n");
}

/// K9
#[test]
fn a_command_whose_keeper_is_killed_is_lost_and_nothing_of_it_goes_on() {
    let home = Home::new();
    let task = home.start("setsid sleep 600 & echo $! > child; echo $$ > command; echo begun; wait");
    let [command, child] = ["command", "child"].map(|name| number_in(&home.folder.join(name)));
    let mut connection = task.connect().unwrap();
    let keeper = keeper_of(&home.task_folder(task.id()));
    until("its output", || (home.output(&task) == "begun\n").then_some(()));

    kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
    std::io::Read::read_to_end(&mut connection, &mut Vec::new()).unwrap();
    assert_eq!(task.status().unwrap(), None);
    let found = after_all(&home.tasks, task.id());

    assert!(matches!(found, Found::Lost), "{found:?}");
    until("the command's end", || (!is_alive(command)).then_some(()));
    until("its child's end", || (!is_alive(child)).then_some(()));
    assert_eq!(home.output(&task), "begun\n", "what it printed before is kept");
    assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Lost));
    assert!(task.kill().is_ok(), "there is nothing left to kill");
}

/// K9: a process without the mark in its environment is known by its session, until it is found lost.
#[test]
fn what_cleared_its_environment_does_not_outlive_the_keeper_either() {
    let home = Home::new();
    let task = home.start(
        "env -i sh -c 'echo $$ > bare; exec sleep 600' & \
         set -m; env -i sh -c 'echo $$ > grouped; exec sleep 600' & wait",
    );
    let strays = ["bare", "grouped"].map(|name| number_in(&home.folder.join(name)));
    let keeper = keeper_of(&home.task_folder(task.id()));

    kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
    let found = after_all(&home.tasks, task.id());

    assert!(matches!(found, Found::Lost), "{found:?}");
    for stray in strays {
        until("its end", || (!is_alive(stray)).then_some(()));
    }
    // Noted once they are seen to have ended: then nobody is looked for by old numbers again.
    until("the note", || {
        assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Lost));
        home.task_folder(task.id()).join("lost").exists().then_some(())
    });
}

/// K9: a number that was written down stands for another process after a while, or when the system has started anew.
#[test]
fn processes_that_only_have_the_number_of_a_dead_keeper_are_left() {
    let home = Home::new();
    let mut leader = Command::new("setsid").args(["sleep", "600"]).spawn().unwrap();
    let orphan =
        Command::new("setsid").args(["sh", "-c", "sleep 600 > /dev/null 2>&1 & echo $!"]).output().unwrap();
    let orphan: i32 = String::from_utf8(orphan.stdout).unwrap().trim().parse().unwrap();
    let session = rustix::process::getsid(Pid::from_raw(orphan)).unwrap().as_raw_nonzero().get();
    assert!(session != orphan && !is_alive(session), "nobody has the number of its session any more");
    let table = [(leader.id().cast_signed(), this_system()), (session, "another boot".to_owned())];

    for (number, system) in table {
        let id = TaskId::from(CallId::generate());
        fs::create_dir(home.task_folder(id)).unwrap();
        fs::write(home.task_folder(id).join("spawning"), "").unwrap();
        let keeper =
            format!(r#"{{"format":1,"keeper":{{"pid":{number},"start_time":1}},"system":"{system}"}}"#);
        fs::write(home.task_folder(id).join("lock"), keeper).unwrap();
        assert!(matches!(home.tasks.find(id).unwrap(), Found::Unknown));
    }

    assert_eq!(leader.try_wait().unwrap(), None, "it was not ended");
    assert!(is_alive(orphan));
    leader.kill().unwrap();
    leader.wait().unwrap();
    kill_process(Pid::from_raw(orphan).unwrap(), Signal::KILL).unwrap();
}

fn this_system() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    format!("{} {}", boot.trim(), fs::read_link("/proc/self/ns/pid").unwrap().display())
}

/// K9
#[test]
fn a_home_that_is_moved_while_a_command_runs_keeps_working() {
    let home = Home::new();
    let task = home.start("echo begun; sleep 600");
    until("output", || (task.printed().unwrap() == 6).then_some(()));
    let moved = home.folder.with_file_name("moved");

    fs::rename(&home.folder, &moved).unwrap();
    let tasks = Tasks::at(&moved.join("tasks"), part::keeper()).unwrap();
    let adopted = running(tasks.find(task.id()).unwrap());
    task.connect().expect("the old handle leads there, too");
    adopted.kill().unwrap();

    assert_eq!(adopted.status().unwrap().unwrap().status, TaskStatus::Killed);
    assert_eq!(ended(&task).status, TaskStatus::Killed);
    assert_eq!(output_of(&tasks, task.id()), "begun\n");
    assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Ended(_)));
}

/// K9: the path of a socket may have 107 bytes; that of a home may have more.
#[test]
fn a_home_deep_in_the_tree_works() {
    let name = ["a-folder-with-a-name-of-some-length"; 6].join("/");
    let home = Home::within(tempfile::tempdir().unwrap(), &name, part::keeper());
    assert!(home.folder.as_os_str().len() > 200);

    let task = home.start("echo deep; sleep 600");
    let adopted = running(home.tasks.find(task.id()).unwrap());
    until("output", || (adopted.printed().unwrap() == 5).then_some(()));
    adopted.kill().unwrap();

    assert_eq!(home.output(&task), "deep\n");
}

#[test]
fn a_task_is_not_started_a_second_time() {
    let home = Home::new();
    let spec = home.spec("echo started >> starts");
    let task = home.tasks.start(&spec).unwrap();
    ended(&task);

    let again = home.tasks.start(&spec);

    assert!(matches!(again, Err(Error::Exists { id }) if id == spec.task_id));
    assert_eq!(fs::read_to_string(home.folder.join("starts")).unwrap(), "started\n");
}

/// A keeper that has ended leaves no entry in the system's table for as long as the runtime lives.
#[test]
fn keepers_that_ended_are_not_left_in_the_process_table() {
    let home = Home::new();
    let is_over = |entry: &Path| {
        let stat = fs::read_to_string(entry.join("stat")).unwrap_or_default();
        stat.contains("(longhaul-keeper) Z ") && stat.contains(&format!(" Z {} ", std::process::id()))
    };

    for _ in 0..5 {
        home.run("true");
    }

    until("an empty table", || {
        let _ = home.tasks.find(home.spec("").task_id);
        let mut entries = fs::read_dir("/proc").unwrap().flatten();
        entries.all(|entry| !is_over(&entry.path())).then_some(())
    });
}
