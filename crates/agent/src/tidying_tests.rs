use std::cell::Cell;
use std::fs::{File, FileTimes};
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

fn owned_by(session: SessionId) -> Owners {
    Owners { sessions: BTreeMap::from([(session, Vec::new())]), is_unclear: false }
}

/// K16
#[test]
fn temporary_files_go_if_they_are_old_and_nobody_can_need_them() {
    let table = [
        (2 * KEPT, "nobody", false),
        (KEPT / 2, "nobody", true),
        (2 * KEPT, "its session", true),
        (2 * KEPT, "nobody can tell", true),
    ];

    for (age, owner, stays) in table {
        let (place, session, folder) = temporary(age);

        remove_temporary(place.path(), || match owner {
            "nobody" => owned_by(SessionId::generate()),
            "its session" => owned_by(session),
            _ => Owners { is_unclear: true, ..Owners::default() },
        });

        assert_eq!(folder.join("tmp/build").exists(), stays, "{age:?}, {owner}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), usize::from(stays), "{age:?}, {owner}");
    }
}

/// K16
#[test]
fn a_command_that_begins_meanwhile_keeps_its_temporary_files() {
    let (place, session, folder) = temporary(2 * KEPT);
    let looked = Cell::new(0);

    remove_temporary(place.path(), || {
        looked.set(looked.get() + 1);
        if looked.get() == 1 { Owners::default() } else { owned_by(session) }
    });

    assert_eq!(looked.get(), 2);
    assert!(folder.join("tmp/build").exists());
}

/// K16
#[test]
fn what_a_pass_that_was_broken_off_has_left_goes_and_what_is_not_ours_stays() {
    let (place, session, folder) = temporary(2 * KEPT);
    fs::rename(&folder, place.path().join(format!("{session}{ASIDE}"))).unwrap();
    fs::create_dir(place.path().join("other.going")).unwrap();
    fs::create_dir(place.path().join("other")).unwrap();

    remove_temporary(place.path(), Owners::default);

    let mut left: Vec<_> =
        fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["other", "other.going"]);
}

/// K16
#[test]
fn a_task_of_which_nothing_can_be_read_may_be_anybodys() {
    let place = tempfile::tempdir().unwrap();
    let launcher = Launcher::new(PathBuf::from("/bin/false"), Vec::<String>::new());
    let tasks = Tasks::at(place.path(), launcher).unwrap();
    let none = owners(&tasks);
    let folder = place.path().join(TaskId::from(longhaul_protocol::CallId::generate()).to_string());
    fs::create_dir(&folder).unwrap();
    let without_spec = owners(&tasks);
    fs::write(folder.join("spec.json"), "{").unwrap();

    let with_a_broken_one = owners(&tasks);

    assert!(!none.may_have(SessionId::generate()));
    assert!(without_spec.may_have(SessionId::generate()));
    assert!(with_a_broken_one.may_have(SessionId::generate()));
}
