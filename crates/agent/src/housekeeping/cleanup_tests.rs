use std::cell::Cell;
use std::fs::FileTimes;
use std::path::PathBuf;

use longhaul_keeper::Launcher;
use tempfile::TempDir;

use super::*;

/// The temporary files of a session, and when they were changed last.
fn temporary(age: Duration) -> (TempDir, SessionId, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let session = SessionId::generate();
    let folder = place.path().join(session.to_string());
    fs::create_dir_all(folder.join("tmp/build")).unwrap();
    let times = FileTimes::new().set_modified(SystemTime::now() - age);
    for changed in [folder.join("tmp"), folder.clone()] {
        File::open(changed).unwrap().set_times(times).unwrap();
    }
    (place, session, folder)
}

fn owned_by(session: SessionId) -> TaskOwners {
    TaskOwners { sessions: BTreeMap::from([(session, Vec::new())]), has_unknown: false }
}

/// K16
#[test]
fn temporary_files_go_if_they_are_old_and_nobody_can_need_them() {
    let table = [
        (2 * KEPT_FOR, "nobody", false),
        (KEPT_FOR / 2, "nobody", true),
        (2 * KEPT_FOR, "its session", true),
        (2 * KEPT_FOR, "nobody can tell", true),
    ];

    for (age, owner, stays) in table {
        let (place, session, folder) = temporary(age);

        remove_temporary_files(place.path(), || match owner {
            "nobody" => owned_by(SessionId::generate()),
            "its session" => owned_by(session),
            _ => TaskOwners { has_unknown: true, ..TaskOwners::default() },
        });

        assert_eq!(folder.join("tmp/build").exists(), stays, "{age:?}, {owner}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), usize::from(stays), "{age:?}, {owner}");
    }
}

/// K16
#[test]
fn a_command_that_begins_meanwhile_keeps_its_temporary_files() {
    let (place, session, folder) = temporary(2 * KEPT_FOR);
    let looked = Cell::new(0);

    remove_temporary_files(place.path(), || {
        looked.set(looked.get() + 1);
        if looked.get() == 1 { TaskOwners::default() } else { owned_by(session) }
    });

    assert_eq!(looked.get(), 2);
    assert!(folder.join("tmp/build").exists());
}

/// K16
#[test]
fn what_a_pass_that_was_broken_off_has_left_goes_and_what_is_not_ours_stays() {
    let (place, session, folder) = temporary(2 * KEPT_FOR);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let minutes_ago = now - 2 * ABANDONED_AFTER.as_millis();
    fs::rename(&folder, place.path().join(format!("{session}-{minutes_ago}.going"))).unwrap();
    fs::create_dir(place.path().join(format!("{session}.going"))).unwrap();
    let just_now = format!("{session}-{now}.going");
    let others = ["other", "other.going", just_now.as_str()];
    for other in others {
        fs::create_dir(place.path().join(other)).unwrap();
    }

    remove_temporary_files(place.path(), TaskOwners::default);

    let mut left: Vec<_> =
        fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [just_now.as_str(), "other", "other.going"]);
}

/// K16
#[test]
fn what_is_left_of_a_session_does_not_keep_its_later_files() {
    let (place, session, folder) = temporary(2 * KEPT_FOR);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let left = place.path().join(format!("{session}-{now}.going"));
    fs::create_dir_all(left.join("inner")).unwrap();
    std::thread::sleep(Duration::from_millis(2));

    remove_temporary_files(place.path(), TaskOwners::default);

    assert!(!folder.exists() && left.exists());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

/// K16
#[test]
fn one_at_a_time_tidies_and_only_once_an_hour() {
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("cache/tidied");
    let an_hour_passes = || {
        let times = FileTimes::new().set_modified(SystemTime::now() - CLEANUP_INTERVAL);
        File::options().write(true).open(&mark).unwrap().set_times(times).unwrap();
    };

    let first = try_claim(&mark, CLEANUP_INTERVAL);
    an_hour_passes();
    let meanwhile = try_claim(&mark, CLEANUP_INTERVAL);
    drop(first.unwrap());
    let second = try_claim(&mark, CLEANUP_INTERVAL);
    drop(second.unwrap());
    let too_soon = try_claim(&mark, CLEANUP_INTERVAL);

    assert!(meanwhile.is_none() && too_soon.is_none());
}

fn tasks(place: &TempDir) -> Tasks {
    let launcher = Launcher::new(PathBuf::from("/bin/false"), Vec::<String>::new());
    Tasks::at(place.path(), launcher).unwrap()
}

fn task_folder(place: &TempDir) -> PathBuf {
    let id = TaskId::from(longhaul_protocol::CallId::generate());
    let folder = place.path().join(id.to_string());
    fs::create_dir(&folder).unwrap();
    folder
}

/// K16
#[test]
fn a_task_of_which_nothing_can_be_read_may_be_anybodys() {
    let place = tempfile::tempdir().unwrap();
    let tasks = tasks(&place);
    fs::write(place.path().join(TaskId::from(longhaul_protocol::CallId::generate()).to_string()), "")
        .unwrap();
    let none = task_owners(&tasks, place.path());
    let folder = task_folder(&place);
    let without_spec = task_owners(&tasks, place.path());
    fs::write(folder.join("spec.json"), "{").unwrap();

    let with_a_broken_one = task_owners(&tasks, place.path());

    assert!(!none.may_own(SessionId::generate()));
    assert!(without_spec.may_own(SessionId::generate()));
    assert!(with_a_broken_one.may_own(SessionId::generate()));
}

/// K16: or a single one would keep the files of all sessions for ever.
#[test]
fn a_task_of_which_nothing_can_be_read_is_nobodys_after_a_day_unless_it_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let tasks = tasks(&place);
    let folder = task_folder(&place);
    let files = ["lock", "spec.json"].map(|name| folder.join(name));
    let times = FileTimes::new().set_modified(SystemTime::now() - 2 * KEPT_FOR);
    for file in &files {
        fs::write(file, "{").unwrap();
        File::options().write(true).open(file).unwrap().set_times(times).unwrap();
    }
    File::open(&folder).unwrap().set_times(times).unwrap();
    let lock = File::open(&files[0]).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let kept = task_owners(&tasks, place.path());
    flock(&lock, FlockOperation::Unlock).unwrap();

    let left = task_owners(&tasks, place.path());

    assert!(kept.may_own(SessionId::generate()));
    assert!(!left.may_own(SessionId::generate()));
}
