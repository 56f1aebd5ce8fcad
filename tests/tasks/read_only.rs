//! Whoever only looks changes nothing, and holds nobody up.

use std::process::{Command, Stdio};

use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::desk::{Desk, WAITS, eventually, told};

/// The same command, for which the home is on a disk that can't be written to; none, where nobody may make such a disk.
fn on_a_read_only_home(desk: &Desk, arguments: &[&str]) -> Option<Command> {
    let home = desk.path("home");
    let plain = desk.command(arguments);
    let read_only = |program: &str| {
        let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", mount, "sh"]).arg(&home).arg(program);
        command
    };
    let can_mount = read_only("true").output().is_ok_and(|tried| tried.status.success());
    let mut command = can_mount.then(|| read_only(env!("CARGO_BIN_EXE_longhaul")))?;
    command.args(arguments).current_dir(desk.path("work")).stdin(Stdio::null());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(command)
}

#[test]
fn looking_makes_nothing_in_the_home() {
    let desk = Desk::new(&json!([]));
    desk.record("a", vec![], vec![]);

    for arguments in [&["status", "-s", "a"][..], &["tasks"], &["tasks", "-s", "a"], &["doctor"]] {
        let (code, out, errors) = desk.run(arguments);

        assert_eq!(code, 0, "{arguments:?} {out}{errors}");
        assert!(!desk.path("home/tasks").exists(), "{arguments:?}");
    }
}

/// K15, S8
#[test]
fn a_home_that_can_not_be_written_to_can_be_looked_at() {
    let desk = Desk::new(&json!([]));
    desk.task("a", "echo one; exit 3");
    let tasks = desk.tasks();
    eventually("it is over", || {
        tasks.all().unwrap().iter().all(|id| matches!(tasks.status(*id), Ok(Some(_))))
    });
    let run = |arguments: &[&str]| Some(told(&on_a_read_only_home(&desk, arguments)?.output().unwrap()));
    let Some(listed) = run(&["tasks"]) else {
        return println!("nobody may mount anything here, so nothing was tried");
    };

    let status = run(&["status", "-s", "a"]).unwrap();
    let doctor = run(&["doctor"]).unwrap();

    assert_eq!((listed.0, listed.1.contains("failed")), (0, true), "{}{}", listed.1, listed.2);
    assert_eq!(status.0, 0, "{}", status.2);
    assert_eq!((doctor.0, doctor.1.contains("is read-only")), (1, true), "{}{}", doctor.1, doctor.2);
}

/// K15: whoever does not read keeps nobody from leaving.
#[test]
fn following_into_a_pipe_that_nobody_reads_ends_with_a_signal() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let desk = Desk::new(&json!([]));
        let id = desk.task("a", &format!("head -c 300000 /dev/zero | tr '\\0' x; {WAITS}")).to_string();
        let mut command = desk.command(&["tasks", "follow", &id]);
        let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
        let unread = following.stdout.take().unwrap();
        eventually("the pipe is full", || ioctl_fionread(&unread).unwrap() >= 1 << 16);

        kill_process(Pid::from_child(&following), signal).unwrap();
        let mut ended = None;
        eventually("it has left", || {
            ended = following.try_wait().unwrap();
            ended.is_some()
        });

        assert_eq!(ended.unwrap().code(), Some(code));
    }
}
