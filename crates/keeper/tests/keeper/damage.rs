//! K9: whatever is in a task's folder, the command is not started a second time, and one that runs is not ended because of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use longhaul_keeper::{Found, Task};
use longhaul_protocol::{CallId, TaskId, TaskStatus};

use crate::home::{Home, TEST_TIMEOUT, ended, is_alive, number_in, until};

/// What can be wrong with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Empty,
    Garbage,
    Gone,
    Folder,
    Link,
    Pipe,
}

const ALL: [Damage; 6] =
    [Damage::Empty, Damage::Garbage, Damage::Gone, Damage::Folder, Damage::Link, Damage::Pipe];

impl Damage {
    fn befall(self, file: &Path) {
        match self {
            Self::Empty => fs::write(file, "").unwrap(),
            Self::Garbage => fs::write(file, [0xa7; 5000]).unwrap(),
            Self::Gone | Self::Folder | Self::Link | Self::Pipe => {
                let _ = fs::remove_file(file);
            }
        }
        match self {
            Self::Folder => fs::create_dir(file).unwrap(),
            Self::Link => symlink("/dev/null", file).unwrap(),
            Self::Pipe => assert!(Command::new("mkfifo").arg(file).status().unwrap().success()),
            Self::Empty | Self::Garbage | Self::Gone => {}
        }
    }
}

/// A pipe is waited for without end by whoever opens it carelessly, so this looks from another thread.
fn find_in_time(home: &Home, id: TaskId) -> Found {
    std::thread::scope(|scope| {
        let finding = scope.spawn(|| home.tasks.find(id));
        until("an answer", || finding.is_finished().then_some(()));
        finding.join().unwrap().unwrap()
    })
}

/// The number of the keeper, as it wrote it into its lock.
fn keeper_written_down(folder: &Path) -> i32 {
    let lock = fs::read_to_string(folder.join("lock")).unwrap();
    let number = lock.split(['{', ',', '}']).find_map(|field| field.strip_prefix("\"pid\":"));
    number.unwrap().parse().unwrap()
}

fn running(found: Found) -> Option<Task> {
    match found {
        Found::Running(task) => Some(task),
        _ => None,
    }
}

/// K9
#[test]
fn a_command_that_runs_is_found_running_whatever_is_wrong_with_its_files() {
    for file in ["spec.json", "lock", "spawning", "pid", "status.json", "socket"] {
        for damage in ALL {
            // A socket can't be written to, and a status can't be put in place of a folder.
            let is_odd = match file {
                "socket" => matches!(damage, Damage::Empty | Damage::Garbage),
                "status.json" => damage == Damage::Folder,
                _ => false,
            };
            if is_odd {
                continue;
            }
            let home = Home::new();
            let task = home.start("echo ran >> runs; echo $$ > command; sleep 600");
            let command = number_in(&home.folder.join("command"));
            damage.befall(&home.task_folder(task.id()).join(file));

            let found = find_in_time(&home, task.id());

            let task = running(found).unwrap_or_else(|| panic!("{file} {damage:?}: it runs"));
            assert!(is_alive(command), "{file} {damage:?}");
            task.kill().unwrap_or_else(|error| panic!("{file} {damage:?}: {error}"));
            until("the command's end", || (!is_alive(command)).then_some(()));
            let found = find_in_time(&home, task.id());
            assert!(
                matches!(found, Found::Ended(status) if status.status == TaskStatus::Killed),
                "{file} {damage:?}"
            );
            assert_eq!(fs::read_to_string(home.folder.join("runs")).unwrap(), "ran\n", "{file} {damage:?}");
        }
    }
}

/// K9
#[test]
fn a_command_that_ended_is_never_said_not_to_have_started() {
    for damage in ALL {
        let home = Home::new();
        let task = home.start("true");
        ended(&task);
        let folder = home.task_folder(task.id());
        // The keeper itself ends a moment later, and as long as it lives the task does: for a moment longer than it has the lock.
        let keeper = keeper_written_down(&folder);
        until("the keeper's end", || (!is_alive(keeper)).then_some(()));
        for file in ["spec.json", "lock", "spawning"] {
            damage.befall(&folder.join(file));
        }
        assert!(matches!(find_in_time(&home, task.id()), Found::Ended(_)), "{damage:?}");

        let status = folder.join("status.json");
        damage.befall(&status);
        assert!(matches!(find_in_time(&home, task.id()), Found::Lost), "{damage:?}");

        damage.befall(&folder.join("pid"));
        let found = find_in_time(&home, task.id());
        let is_known = matches!(found, Found::Lost | Found::Unknown);
        // Where everything is gone that could say so, nobody can.
        assert!(is_known || damage == Damage::Gone, "{damage:?}: {found:?}");
    }
}

/// K9: a status alone that can't be read says that there was a start.
#[test]
fn a_damaged_status_alone_is_not_a_task_that_may_be_started() {
    let home = Home::new();
    let contents: [&[u8]; 3] = [b"", b"{\"format\":1,\"sta", b"\xff\xfe\x00"];

    for content in contents {
        let id = TaskId::from(CallId::generate());
        fs::create_dir(home.task_folder(id)).unwrap();
        fs::write(home.task_folder(id).join("status.json"), content).unwrap();

        assert!(matches!(find_in_time(&home, id), Found::Unknown));
        assert!(home.task_folder(id).exists());
    }
}

/// What a newer version wrote is no damage.
#[test]
fn a_format_that_is_too_new_is_named() {
    let home = Home::new();
    let id = TaskId::from(CallId::generate());
    fs::create_dir(home.task_folder(id)).unwrap();
    fs::write(home.task_folder(id).join("status.json"), "{\"format\":99,\"entirely\":\"new\"}").unwrap();

    let message = home.tasks.find(id).unwrap_err().to_string();

    assert!(
        message.contains(&format!(
            "{id}/status.json was written by a newer longhaul (format 99, this version knows 1)"
        )),
        "{message}"
    );
}

/// The advice must not lead to a second start.
#[test]
fn a_damaged_output_is_named_and_nobody_is_told_to_start_again() {
    let home = Home::new();
    let task = home.start("true");
    ended(&task);
    fs::write(home.task_folder(task.id()).join("output.tail"), [7; 5000]).unwrap();

    let message = home.tasks.output(task.id()).unwrap().read(0, 10).unwrap_err().to_string();

    assert!(message.contains("output.tail is damaged") && message.contains("check what it changed"));
    assert!(!message.contains("remove"), "{message}");
}

/// A token that is no file is not waited for, by the runtime and by the keeper.
#[test]
fn a_token_that_is_a_pipe_holds_up_nobody() {
    let home = Home::new();
    let task = home.start("while [ ! -e go ]; do sleep 0.01; done");
    let token = home.folder.join("run/token");
    let stream = std::os::unix::net::UnixStream::connect(home.task_folder(task.id()).join("socket")).unwrap();
    Damage::Pipe.befall(&token);

    let refused = task.connect();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    std::io::Write::write_all(&mut &stream, b"{\"token\":\"open sesame\"}\n").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut &stream, &mut answer).unwrap();

    assert!(refused.is_err());
    assert_eq!(answer, "{\"refused\":\"token\"}\n");
    fs::write(home.folder.join("go"), "").unwrap();
    until("the status", || task.status().unwrap());
}
