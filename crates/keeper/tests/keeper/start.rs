//! K9: exactly once. For each point at which everything may die: what is on disk then, and what is found.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use longhaul_keeper::{Error, Found, Launcher, Tasks};
use longhaul_protocol::{CallId, TaskId, TaskStatus};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, after_all, ended, keeper_of, spec_in, until};
use crate::part::{self, Part};

const SPEC: &str = r#"{"format":1}"#;
const PID: &str = r#"{"format":1,"pid":999999,"start_time":1}"#;
const STATUS: &str = r#"{"format":1,"status":"completed","exit_code":0,"started_at":1,"ended_at":2,"duration_ms":1,"printed":0}"#;

/// What is found, without what comes with it.
fn word(found: &Found) -> &'static str {
    match found {
        Found::NotStarted => "not started",
        Found::Running(_) => "running",
        Found::Ended(_) => "ended",
        Found::Unknown => "unknown",
        Found::Lost => "lost",
        Found::Expired => "expired",
    }
}

/// A point of the start, the files that are there then, and what is found.
type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);

/// K9: the crash table of the crate's first page, row by row.
#[test]
fn what_is_found_after_a_crash_at_each_point_of_a_start() {
    let home = Home::new();
    let table: [Row; 7] = [
        ("the folder is made", &[], "not started"),
        ("the spec is half written", &[("spec.json", "{\"for")], "not started"),
        ("the spec is written", &[("spec.json", SPEC)], "not started"),
        ("the lock was taken", &[("spec.json", SPEC), ("lock", "")], "not started"),
        ("spawning is synced", &[("spec.json", SPEC), ("lock", ""), ("spawning", "")], "unknown"),
        ("pid is written", &[("spec.json", SPEC), ("lock", ""), ("spawning", ""), ("pid", PID)], "lost"),
        (
            "the status is written",
            &[("spec.json", SPEC), ("lock", ""), ("spawning", ""), ("pid", PID), ("status.json", STATUS)],
            "ended",
        ),
    ];

    for (point, files, expected) in table {
        let id = TaskId::from(CallId::generate());
        let folder = home.task_folder(id);
        fs::create_dir(&folder).unwrap();
        for (name, content) in files {
            fs::write(folder.join(name), content).unwrap();
        }

        let found = home.tasks.find(id).unwrap();
        let again = home.tasks.find(id).unwrap();

        assert_eq!((word(&found), word(&again)), (expected, expected), "{point}");
        // A keeper that comes late finds that it is too late, wherever the folder is by now.
        assert_eq!(folder.exists(), expected != "not started", "{point}");
        let moved = folder.with_file_name(format!("{id}.void-1"));
        assert_eq!(moved.join("void").exists(), expected == "not started", "{point}");
    }
}

#[test]
fn a_task_that_nobody_knows_was_not_started() {
    let home = Home::new();

    let found = home.tasks.find(CallId::generate().into()).unwrap();

    assert!(matches!(found, Found::NotStarted));
}

/// K9: between `void` and the renaming of the folder, too, everything may die.
#[test]
fn a_folder_that_was_voided_and_not_moved_is_moved() {
    let home = Home::new();
    let spec = home.spec("echo ran >> runs");
    let folder = home.task_folder(spec.task_id);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("void"), "").unwrap();

    assert!(matches!(home.tasks.start(&spec), Err(Error::Exists { .. })));
    assert!(matches!(home.tasks.find(spec.task_id).unwrap(), Found::NotStarted));
    let task = home.tasks.start(&spec).unwrap();

    assert_eq!(ended(&task).status, TaskStatus::Completed);
    assert_eq!(fs::read_to_string(home.folder.join("runs")).unwrap(), "ran\n");
}

/// A program that becomes a keeper only when the file `gate` is in the home, two folders up.
fn late_keeper() -> Launcher {
    let script = "touch ../../waiting; while [ ! -e ../../gate ]; do sleep 0.005; done; exec \"$@\"";
    let program = std::env::current_exe().unwrap();
    let keeper = [program.to_str().unwrap(), "part::plays_the_keeper", "--exact", "--ignored", "--nocapture"];
    let arguments = ["-c", "PATH=/usr/bin:/bin; ", "sh"].map(str::to_owned).into_iter();
    let mut arguments: Vec<String> = arguments.chain(keeper.map(str::to_owned)).collect();
    arguments[1].push_str(script);
    arguments.push("--test-threads=1".to_owned());
    Launcher::new("/bin/sh", arguments)
}

#[test]
#[ignore = "a part that other tests play in another process"]
fn a_runtime_whose_keeper_is_late() {
    let home = part::home();
    let tasks = Tasks::at(&home.join("tasks"), late_keeper()).unwrap();
    let spec = spec_in(&home, "echo ran >> runs");
    println!("starting {}", spec.task_id);
    let _ = tasks.start(&spec);
}

/// K9: the runtime dies when it has started the keeper; the next one runs the command; then the first keeper comes.
#[test]
fn a_keeper_that_comes_late_finds_that_it_is_too_late() {
    let home = Home::new();
    let mut runtime = Part::start("start::a_runtime_whose_keeper_is_late", &home.folder);
    let id: TaskId = runtime.hear("starting").parse().unwrap();
    until("the keeper to be on its way", || home.folder.join("waiting").exists().then_some(()));
    runtime.kill();

    assert!(matches!(home.tasks.find(id).unwrap(), Found::NotStarted));
    let mut spec = home.spec("echo ran >> runs");
    spec.task_id = id;
    ended(&home.tasks.start(&spec).unwrap());
    fs::write(home.folder.join("gate"), "").unwrap();
    let old = home.task_folder(id).with_file_name(format!("{id}.void-1"));
    until("the late keeper's end", || nobody_is_in(&old).then_some(()));

    assert_eq!(fs::read_to_string(home.folder.join("runs")).unwrap(), "ran\n");
    assert!(!old.join("spawning").exists());
}

fn nobody_is_in(folder: &Path) -> bool {
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    processes.all(|process| fs::read_link(process.path().join("cwd")).map_or(true, |cwd| cwd != folder))
}

/// K9: a lock that is held and a keeper that has not bound its socket yet is waited for.
#[test]
fn while_somebody_has_the_lock_nothing_is_voided() {
    let home = Home::new();
    let id = TaskId::from(CallId::generate());
    let folder = home.task_folder(id);
    fs::create_dir(&folder).unwrap();
    let lock = fs::File::create(folder.join("lock")).unwrap();
    flock(lock.as_fd(), FlockOperation::LockExclusive).unwrap();

    std::thread::scope(|scope| {
        let found = scope.spawn(|| home.tasks.find(id).unwrap());
        std::thread::sleep(Duration::from_millis(100));
        assert!(!folder.join("void").exists());
        fs::write(folder.join("spawning"), "").unwrap();
        drop(lock);

        assert!(matches!(found.join().unwrap(), Found::Unknown));
    });
}

/// K9: keepers are killed at random moments of their start. Whatever is found then, the command ran at most once, and it did
/// not run at all where it is said to be not started.
#[test]
fn a_keeper_that_is_killed_at_any_moment_never_runs_the_command_twice() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = seed;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let home = Home::new();
    let mut counts = std::collections::BTreeMap::<&str, u32>::new();

    for round in 0..40 {
        let spec = home.spec(&format!("echo ran >> runs-{round}"));
        let folder = home.task_folder(spec.task_id);
        let runs = || fs::read_to_string(home.folder.join(format!("runs-{round}"))).unwrap_or_default();
        let wait = Duration::from_micros(next() % 6_000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = home.tasks.start(&spec);
            });
            until("the folder", || folder.exists().then_some(()));
            let since = Instant::now();
            while since.elapsed() < wait {
                std::hint::spin_loop();
            }
            kill_everybody_in(&folder);
        });

        let found = after_all(&home.tasks, spec.task_id);
        *counts.entry(word(&found)).or_default() += 1;

        match found {
            Found::NotStarted => {
                assert_eq!(runs(), "", "it was said not to have started");
                ended(&home.tasks.start(&spec).unwrap());
                assert_eq!(runs(), "ran\n");
            }
            Found::Ended(status) => {
                assert_eq!((status.status, runs().as_str()), (TaskStatus::Completed, "ran\n"));
            }
            Found::Running(_) | Found::Expired => unreachable!("it was waited for"),
            Found::Unknown | Found::Lost => assert!(["", "ran\n"].contains(&runs().as_str())),
        }
    }
    println!("{counts:?}");
}

fn kill_everybody_in(folder: &Path) {
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let is_in = fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == folder);
        if is_in && let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }
}

/// K9: somebody who only wants to know can void a start whose keeper is still on its way. Then that start has failed, and the
/// next one is the only one.
#[test]
fn many_that_find_while_one_starts_see_the_command_run_once() {
    let home = Home::new();

    for round in 0..10 {
        let spec = home.spec(&format!("echo ran >> runs-{round}"));
        std::thread::scope(|scope| {
            for finder in 1..4 {
                let (home, id) = (&home, spec.task_id);
                scope.spawn(move || {
                    for _ in 0..5 {
                        std::thread::sleep(Duration::from_millis(finder * 7));
                        home.tasks.find(id).unwrap();
                    }
                });
            }
            while let Found::NotStarted = after_all(&home.tasks, spec.task_id) {
                let _ = home.tasks.start(&spec);
            }
        });

        assert!(matches!(after_all(&home.tasks, spec.task_id), Found::Ended(_)));
        let runs = fs::read_to_string(home.folder.join(format!("runs-{round}"))).unwrap();
        assert_eq!(runs, "ran\n");
    }
}

/// A keeper belongs to nobody's terminal: it leads a session of its own.
#[test]
fn a_keeper_is_in_a_session_of_its_own() {
    let home = Home::new();
    let task = home.start("sleep 600");
    let keeper = keeper_of(&home.task_folder(task.id()));

    let session = Command::new("ps").args(["-o", "sid=", "-p", &keeper.to_string()]).output().unwrap();
    task.kill().unwrap();

    assert_eq!(String::from_utf8(session.stdout).unwrap().trim(), keeper.to_string());
}
