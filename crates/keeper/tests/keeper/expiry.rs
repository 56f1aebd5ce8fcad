//! K16: what goes when a task is over for long, and what stays known of it.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use longhaul_keeper::{Error, Found, Tasks};
use longhaul_protocol::{CallId, TaskId};
use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, after_all, ended, keeper_of, until};
use crate::part;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SPEC: &str = r#"{"format":1}"#;

/// Makes a folder and all in it look as if nothing had changed for so long.
fn age(folder: &Path, by: Duration) {
    let then = SystemTime::now() - by;
    for entry in fs::read_dir(folder).unwrap().flatten() {
        File::open(entry.path()).unwrap().set_modified(then).unwrap();
    }
    File::open(folder).unwrap().set_modified(then).unwrap();
}

fn names(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(home.folder.join("tasks")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A task with these files.
fn made(home: &Home, files: &[&str]) -> TaskId {
    let id = TaskId::from(CallId::generate());
    fs::create_dir(home.task_folder(id)).unwrap();
    for name in files {
        fs::write(home.task_folder(id).join(name), SPEC).unwrap();
    }
    id
}

/// K16
#[test]
fn a_task_that_ended_long_ago_goes_and_is_known_to_have_run() {
    let home = Home::new();
    let task = home.start("echo hello");
    ended(&task);
    // The keeper itself ends a moment later, and what it has open is removed the next time.
    until("the keeper's end", || (!home.tasks.is_kept(task.id()).unwrap()).then_some(()));

    assert_eq!(home.tasks.expire(DAY, |_| false).unwrap(), []);
    assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Ended(_)));
    assert_eq!(home.tasks.expire(Duration::ZERO, |_| false).unwrap(), [task.id()]);

    assert_eq!(names(&home), ["expired", "id"]);
    assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Expired));
    assert!(matches!(home.tasks.output(task.id()), Err(Error::NoSuchTask { .. })));
    assert_eq!(home.tasks.status(task.id()).unwrap(), None);
    assert_eq!(home.tasks.all().unwrap(), []);
    let mut spec = home.spec("touch again");
    spec.task_id = task.id();
    assert!(matches!(home.tasks.start(&spec), Err(Error::Exists { .. })), "it can't be started again");
    home.tasks.kill(task.id()).unwrap();
}

/// K16
#[test]
fn a_task_that_runs_stays_however_old_it_is() {
    let home = Home::new();
    let task = home.start("sleep 600");
    for name in ["lock", "spec.json", "spawning", "pid", "output.head"] {
        let file = File::open(home.task_folder(task.id()).join(name)).unwrap();
        file.set_modified(SystemTime::now() - 9 * DAY).unwrap();
    }
    File::open(home.task_folder(task.id())).unwrap().set_modified(SystemTime::now() - 9 * DAY).unwrap();

    assert_eq!(home.tasks.expire(Duration::ZERO, |_| false).unwrap(), []);

    assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Running(_)));
    assert_eq!(home.tasks.all().unwrap(), [task.id()]);
}

/// K16: also one of which nobody knows how it ended.
#[test]
fn a_task_that_was_lost_long_ago_goes() {
    let home = Home::new();
    let task = home.start("sleep 600");
    let keeper = Pid::from_raw(keeper_of(&home.task_folder(task.id()))).unwrap();
    kill_process(keeper, Signal::KILL).unwrap();
    assert!(matches!(after_all(&home.tasks, task.id()), Found::Lost));
    fs::remove_file(home.task_folder(task.id()).join("socket")).unwrap();

    assert_eq!(home.tasks.expire(DAY, |_| false).unwrap(), []);
    age(&home.task_folder(task.id()), 2 * DAY);
    assert_eq!(home.tasks.expire(DAY, |_| false).unwrap(), [task.id()]);

    assert!(matches!(home.tasks.find(task.id()).unwrap(), Found::Expired));
}

/// K16: what died in the middle is finished by the next one, and never looks as if it had not run.
#[test]
fn what_is_found_after_a_crash_at_each_point() {
    let status = r#"{"format":1,"status":"completed","exit_code":0,"started_at":1,"ended_at":2,"duration_ms":1,"printed":0}"#;
    let home = Home::new();
    let with_status = || {
        let id = made(&home, &["spec.json", "lock", "spawning", "pid"]);
        fs::write(home.task_folder(id).join("status.json"), status).unwrap();
        id
    };
    fs::create_dir(home.folder.join("tasks/expired")).unwrap();
    let (noted, moved, half_removed) = (with_status(), with_status(), with_status());
    for id in [noted, moved, half_removed] {
        fs::write(home.folder.join(format!("tasks/expired/{id}")), "").unwrap();
    }
    for id in [moved, half_removed] {
        let aside = home.folder.join(format!("tasks/{id}.expired-1"));
        fs::rename(home.task_folder(id), aside).unwrap();
    }
    fs::remove_file(home.folder.join(format!("tasks/{half_removed}.expired-1/spec.json"))).unwrap();

    assert!(matches!(home.tasks.find(noted).unwrap(), Found::Ended(_)));
    assert!(matches!(home.tasks.find(moved).unwrap(), Found::Expired));
    assert!(matches!(home.tasks.find(half_removed).unwrap(), Found::Expired));
    home.tasks.expire(DAY, |_| false).unwrap();

    assert_eq!(names(&home), ["expired", "id"]);
    for id in [noted, moved, half_removed] {
        assert!(matches!(home.tasks.find(id).unwrap(), Found::Expired));
    }
}

/// K16: starts that came to nothing, and drafts.
#[test]
fn what_else_was_left_goes_when_it_is_old() {
    let home = Home::new();
    let void = made(&home, &["spec.json"]);
    assert!(matches!(home.tasks.find(void).unwrap(), Found::NotStarted));
    let aside = home.folder.join(format!("tasks/{void}.void-1"));
    let starting = made(&home, &["spec.json"]);
    let draft = home.folder.join("tasks/id.01ARZ3NDEKTSV4RRFFQ69G5FAV");
    fs::write(&draft, "").unwrap();
    fs::write(home.folder.join("tasks/somebody's"), "").unwrap();

    home.tasks.expire(DAY, |_| false).unwrap();
    assert!(aside.exists() && draft.exists());
    assert!(home.task_folder(starting).exists());
    assert_eq!(home.tasks.expire(Duration::ZERO, |_| false).unwrap(), []);
    assert!(home.task_folder(starting).exists(), "it may be about to start");
    assert!(!aside.exists() && !draft.exists());
    age(&home.task_folder(starting), 2 * DAY);
    home.tasks.expire(DAY, |_| false).unwrap();
    assert!(matches!(home.tasks.find(starting).unwrap(), Found::NotStarted), "it never ran");
    age(&home.folder.join(format!("tasks/{starting}.void-1")), 2 * DAY);
    home.tasks.expire(DAY, |_| false).unwrap();

    assert_eq!(names(&home), ["id", "somebody's"]);
}

/// K16
#[test]
fn that_a_task_has_run_is_forgotten_after_thirty_days() {
    let home = Home::new();
    let (young, old) = (home.start("true"), home.start("true"));
    ended(&young);
    ended(&old);
    home.tasks.expire(Duration::ZERO, |_| false).unwrap();
    let note = |id: TaskId| File::open(home.folder.join(format!("tasks/expired/{id}"))).unwrap();
    note(young.id()).set_modified(SystemTime::now() - 29 * DAY).unwrap();
    note(old.id()).set_modified(SystemTime::now() - 31 * DAY).unwrap();

    home.tasks.expire(DAY, |_| false).unwrap();

    assert!(matches!(home.tasks.find(young.id()).unwrap(), Found::Expired));
    assert!(matches!(home.tasks.find(old.id()).unwrap(), Found::NotStarted));
}

/// K16: several processes of one home expire at once, while others ask.
#[test]
fn several_at_once_expire_each_task_once_and_nobody_takes_one_for_never_started() {
    let home = Home::new();
    let ids: Vec<TaskId> = (0..8)
        .map(|_| home.start("echo x"))
        .map(|task| {
            ended(&task);
            task.id()
        })
        .collect();
    let others: Vec<Tasks> =
        (0..3).map(|_| Tasks::at(&home.folder.join("tasks"), part::keeper()).unwrap()).collect();

    let removed: Vec<TaskId> = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            until("all to expire", || {
                let found: Vec<Found> = ids.iter().map(|id| home.tasks.find(*id).unwrap()).collect();
                let wrong = found.iter().find(|found| !matches!(found, Found::Ended(_) | Found::Expired));
                assert!(wrong.is_none(), "{wrong:?}");
                found.iter().all(|found| matches!(found, Found::Expired)).then_some(())
            });
        });
        let expiring: Vec<_> = others
            .iter()
            .map(|tasks| scope.spawn(|| tasks.expire(Duration::ZERO, |_| false).unwrap()))
            .collect();
        asking.join().unwrap();
        expiring.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });

    let mut removed = removed;
    removed.sort_unstable();
    assert_eq!(removed, ids);
}
