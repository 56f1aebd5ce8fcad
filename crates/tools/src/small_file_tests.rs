use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::{Scope, ScopeConfig};

const SECRET: &str = "the secret";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("work")).unwrap();
    fs::write(folder.path().join("secret"), SECRET).unwrap();
    folder
}

fn scope(folder: &Path) -> Scope {
    Scope::new(&folder.join("work"), &ScopeConfig::default(), &folder.join("home"))
}

fn text(read: Result<Option<SmallFile>, FileError>) -> String {
    String::from_utf8(read.unwrap().unwrap().bytes).unwrap()
}

/// P1
#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let folder = folder();
    let fifo = folder.path().join("work/fifo");
    rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    symlink("/dev/zero", folder.path().join("work/device")).unwrap();

    for name in ["fifo", "device"] {
        let path = folder.path().join("work").join(name);
        let followed = read_small_file(&path, LastLink::Follow, 10);
        assert!(matches!(followed, Err(FileError::Special { .. })), "{followed:?}");
        assert!(read_small_file(&path, LastLink::Refuse, 10).is_err());
        assert!(scope(folder.path()).read_in_work_dir(name, 10).is_err());
    }
    assert!(matches!(
        read_small_file(&folder.path().join("work"), LastLink::Follow, 10),
        Err(FileError::IsFolder { .. })
    ));
    assert_eq!(read_small_file(&folder.path().join("missing"), LastLink::Refuse, 10).unwrap(), None);
}

/// P1
#[test]
fn a_link_is_refused_where_nobody_has_named_it() {
    let folder = folder();
    let link = folder.path().join("work/link");
    symlink("../secret", &link).unwrap();

    assert_eq!(text(read_small_file(&link, LastLink::Follow, 100)), SECRET);
    assert!(matches!(read_small_file(&link, LastLink::Refuse, 100), Err(FileError::IsLink { .. })));
}

/// P1
#[test]
fn a_file_of_the_work_folder_may_be_a_link_to_another_file_in_it_and_to_nothing_else() {
    let folder = folder();
    fs::write(folder.path().join("work/CLAUDE.md"), "Use tabs.").unwrap();
    for (link, target) in [
        ("inside", "CLAUDE.md"),
        ("outside", "../secret"),
        ("environment", "/proc/self/environ"),
        ("nowhere", "gone"),
    ] {
        symlink(target, folder.path().join("work").join(link)).unwrap();
    }
    let scope = scope(folder.path());

    assert_eq!(text(scope.read_in_work_dir("inside", 100)), "Use tabs.");
    for link in ["outside", "environment", "nowhere"] {
        assert!(scope.read_in_work_dir(link, 100).is_err(), "{link}");
    }
    assert_eq!(scope.read_in_work_dir("missing", 100).unwrap(), None);
}

/// P1: a background process swaps file and link as fast as it can.
#[test]
fn no_swap_makes_anything_but_the_checked_file_be_read() {
    let folder = folder();
    let work = folder.path().join("work");
    let is_over = AtomicBool::new(false);
    let scope = scope(folder.path());

    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::write(work.join("file.new"), "plain").unwrap();
                fs::rename(work.join("file.new"), work.join("file")).unwrap();
                symlink("../secret", work.join("link.new")).unwrap();
                fs::rename(work.join("link.new"), work.join("file")).unwrap();
            }
        });
        let (mut read, started) = (Vec::new(), Instant::now());
        while read.len() < 200 && started.elapsed() < Duration::from_secs(20) {
            read.extend(scope.read_in_work_dir("file", 100).ok().flatten());
            read.extend(read_small_file(&work.join("file"), LastLink::Refuse, 100).ok().flatten());
        }
        // The other thread has to end before anything here can fail.
        is_over.store(true, Ordering::Relaxed);
        assert!(!read.is_empty(), "the file was never read");
        assert!(read.iter().all(|file| file.bytes == b"plain"), "{read:?}");
    });
}

/// P7
#[test]
fn a_file_that_another_user_could_have_written_says_so() {
    let folder = folder();
    let (work, file) = (folder.path().join("work"), folder.path().join("work/file"));
    fs::write(&file, "x").unwrap();
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let foreign = || read_small_file(&file, LastLink::Refuse, 10).unwrap().unwrap().foreign;

    assert_eq!(foreign(), None);
    set(&file, 0o666);
    assert_eq!(foreign().as_deref(), Some("every user can write it"));
    set(&file, 0o644);
    set(&work, 0o777);
    assert_eq!(foreign().as_deref(), Some("every user can write its folder"));
    set(&work, 0o1777);
    assert_eq!(foreign(), None, "as in /tmp, others can't replace it");
    let above = read_file_above(&file, 10).unwrap().unwrap().foreign;
    assert_eq!(above.as_deref(), Some("every user can write its folder"), "but they could have made it");
}

/// P7
#[test]
fn only_the_user_and_root_and_the_users_own_group_may_have_written_a_file() {
    let said = |user, group, mode| other_writer(1000, WriteAccess { user, group, mode }, "it");

    assert_eq!(said(1000, 4_242, 0o644), None, "a group that can't write does not matter");
    assert_eq!(said(0, 0, 0o664), None);
    assert_eq!(said(1001, 1000, 0o600).as_deref(), Some("it belongs to another user (1001)"));
    assert_eq!(said(1000, 4_294_900_000, 0o664).as_deref(), Some("the group 4294900000 can write it"));
}

/// P7: a group is the user's own if it has no other member, whatever its number is.
#[test]
fn a_group_is_the_users_own_if_nobody_else_is_in_it() {
    let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1005::/home/ann:/bin/sh\nbob:x:1001:100::/:/bin/sh\ncid:x:1002:100::/:/bin/sh\n";
    let groups = "root:x:0:\nusers:x:100:\nann:x:1005:\nbob:x:1001:ann\ncid:x:1002:cid\nadm:x:4:ann\n";
    let is_own = |user, group| has_no_other_member(user, group, users, groups);

    assert!(is_own(1000, 1005), "its number is not the user's");
    assert!(is_own(1002, 1002), "named as a member of their own group");
    assert!(is_own(5_000, 5_000), "a user that is on no list, as in a container");
    assert!(!is_own(1001, 100), "the first group of another user, too");
    assert!(!is_own(1001, 1001), "another user is a member");
    assert!(!is_own(1000, 4) && !is_own(1000, 7), "a group of several, and an unknown one");
}

#[test]
fn more_than_was_asked_for_is_not_read() {
    let folder = folder();

    let read = read_small_file(&folder.path().join("secret"), LastLink::Refuse, 3).unwrap().unwrap();

    assert_eq!((read.bytes.as_slice(), read.is_cut), (b"the".as_slice(), true));
}
