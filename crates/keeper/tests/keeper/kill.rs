//! K8: when a command has ended, and how it is ended.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use longhaul_protocol::TaskStatus;
use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, TEST_TIMEOUT, ended, is_alive, keeper_of, number_in, until};

/// K8
#[test]
fn a_grandchild_that_holds_the_pipe_does_not_keep_the_command_alive() {
    let home = Home::new();

    let task = home.start("sleep 600 & echo $! > left; echo started");
    let status = ended(&task);

    assert_eq!(status.status, TaskStatus::Completed);
    assert_eq!(home.output(&task), "started\n");
    // What is left behind on purpose goes on.
    let left = number_in(&home.folder.join("left"));
    assert!(is_alive(left));
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
}

/// K8
#[test]
fn what_a_grandchild_prints_within_the_draining_is_kept() {
    let home = Home::new();

    // It prints as soon as the command is over. On a machine that has much else to do that can be too late, but not always.
    until("what is printed late", || {
        let (_, output) = home.run("(while kill -0 $$; do :; done 2>/dev/null; echo late) & echo first");
        (output == "first\nlate\n").then_some(())
    });
}

/// K8
#[test]
fn a_command_without_anything_left_behind_ends_without_draining() {
    let home = Home::new();
    // With draining it would be 200 ms each time. A machine that has much else to do may take as long, but not always.
    until("an end without draining", || {
        let task = home.start("true");
        let ended_at = ended(&task).ended_at;
        let file = fs::metadata(home.task_folder(task.id()).join("status.json")).unwrap();
        let written_at = file.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        (written_at.as_millis() as i64 - ended_at.0 < 150).then_some(())
    });
}

/// K8
#[test]
fn a_command_that_closed_its_output_goes_on_until_it_ends() {
    let home = Home::new();

    let (status, output) = home.run("echo before; exec >&- 2>&-; sleep 0.1; exit 4");

    assert_eq!((status.exit_code, output.as_str()), (Some(4), "before\n"));
    assert!(status.duration_ms >= 100);
}

/// K8
#[test]
fn killing_ends_the_whole_group_at_once_where_it_obeys() {
    // Whoever does not obey has two seconds. A machine that has much else to do may take as long, but not always.
    until("an end at once", || {
        let home = Home::new();
        let task = home.start("sleep 600 & echo $! > child; echo begun; sleep 600; echo never");
        let child = number_in(&home.folder.join("child"));
        until("output", || (task.printed().unwrap() == 6).then_some(()));
        let since = Instant::now();

        task.kill().unwrap();

        let took = since.elapsed();
        assert!(!is_alive(child));
        let status = task.status().unwrap().expect("it is confirmed only when the status is written");
        assert_eq!(
            (status.status, status.signal, status.exit_code),
            (TaskStatus::Killed, Some(15), Some(143))
        );
        assert_eq!(home.output(&task), "begun\n");
        (took < Duration::from_millis(1900)).then_some(())
    });
}

/// K8
#[test]
fn killing_ends_what_has_left_the_group() {
    let home = Home::new();
    let task = home.start(
        "setsid sh -c 'echo $$ > escaped; exec sleep 600' & \
         sh -c 'setsid sh -c \"echo \\$\\$ > orphan; exec sleep 600\" &' ; wait",
    );
    let escaped = number_in(&home.folder.join("escaped"));
    let orphan = number_in(&home.folder.join("orphan"));

    task.kill().unwrap();

    assert!(!is_alive(escaped));
    assert!(!is_alive(orphan));
}

/// K8
#[test]
fn killing_forces_what_does_not_obey_after_two_seconds() {
    let home = Home::new();
    let task = home.start(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > deaf; while :; do sleep 1; done' & \
                           echo begun; while :; do sleep 1; done",
    );
    let deaf = number_in(&home.folder.join("deaf"));
    until("output", || (task.printed().unwrap() == 6).then_some(()));
    let since = Instant::now();

    task.kill().unwrap();

    assert!(since.elapsed() >= Duration::from_millis(1900), "{:?}", since.elapsed());
    assert!(since.elapsed() < TEST_TIMEOUT, "{:?}", since.elapsed());
    assert!(!is_alive(deaf));
    let status = task.status().unwrap().unwrap();
    assert_eq!((status.status, status.signal), (TaskStatus::Killed, Some(9)));
}

/// K8
#[test]
fn a_command_that_is_asked_to_end_may_say_a_last_word() {
    let home = Home::new();
    let task = home.start("trap 'echo goodbye; exit 7' TERM; echo begun; while :; do :; done");
    until("output", || (task.printed().unwrap() == 6).then_some(()));

    task.kill().unwrap();

    assert_eq!(home.output(&task), "begun\ngoodbye\n");
    let status = task.status().unwrap().unwrap();
    assert_eq!((status.status, status.exit_code), (TaskStatus::Killed, Some(7)));
}

/// K8
#[test]
fn killing_a_command_that_has_ended_changes_nothing() {
    let home = Home::new();
    let task = home.start("exit 5");
    let status = ended(&task);

    task.kill().unwrap();

    assert_eq!(task.status().unwrap(), Some(status));
}

/// K8
#[test]
fn a_keeper_that_is_told_to_end_takes_its_command_along_and_says_so() {
    let home = Home::new();
    let task = home.start("echo $$ > command; echo begun; sleep 600");
    let command = number_in(&home.folder.join("command"));
    let keeper = keeper_of(&home.task_folder(task.id()));

    for ignored in [Signal::HUP, Signal::INT] {
        kill_process(Pid::from_raw(keeper).unwrap(), ignored).unwrap();
    }
    until("output", || (task.printed().unwrap() == 6).then_some(()));
    assert!(is_alive(command), "signals that are meant for a terminal's programs are not meant for a keeper");
    kill_process(Pid::from_raw(keeper).unwrap(), Signal::TERM).unwrap();
    let status = ended(&task);

    assert_eq!(status.status, TaskStatus::Killed);
    assert_eq!(status.message.as_deref(), Some("its supervisor was stopped (SIGTERM)"));
    assert!(!is_alive(command));
}

/// A command that makes and loses many children leaves none of them in the system's table.
#[test]
fn orphans_that_end_are_not_left_in_the_process_table() {
    let home = Home::new();
    let task = home.start(
        "for n in $(seq 20); do (true &) ; done; echo done > all; while [ -e all ]; do sleep 0.01; done",
    );
    until("the orphans", || home.folder.join("all").exists().then_some(()));
    let keeper = keeper_of(&home.task_folder(task.id()));

    let children_that_ended = || {
        let stats = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        stats
            .filter(|stat| {
                stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(&format!(" Z {keeper} ")))
            })
            .count()
    };
    until("an empty table", || (children_that_ended() == 0).then_some(()));

    fs::remove_file(home.folder.join("all")).unwrap();
    assert_eq!(ended(&task).status, TaskStatus::Completed);
}
