use std::fs::{File, create_dir, create_dir_all};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rustix::fs::mkdirat;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use tempfile::TempDir;

use super::*;

fn filled() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("folder");
    create_dir(&folder).unwrap();
    (place, folder)
}

/// Folders in each other, as no path could name them.
fn nest(folder: &Path, levels: usize) {
    let mut at = open(CWD, folder).unwrap();
    for _ in 0..levels {
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = open(&at, "d").unwrap();
    }
}

/// K16
#[test]
fn folders_are_removed_however_deep_they_are_nested() {
    let (_place, folder) = filled();
    nest(&folder, 10_000);

    let small_stack = std::thread::Builder::new().stack_size(256 << 10);
    let path = folder.clone();
    // What a slow machine has left after a minute goes the next time.
    let removing = move || (0..4).any(|_| remove_folder(&path).is_ok());
    let removed = small_stack.spawn(removing).unwrap().join().unwrap();

    assert!(removed && !folder.exists());
}

/// K16
#[test]
fn many_entries_are_removed_whatever_they_are() {
    let (_place, folder) = filled();
    for outer in 0..50 {
        for inner in 0..20 {
            let within = folder.join(format!("{outer}/{inner}"));
            create_dir_all(within.join("empty/folders")).unwrap();
            File::create(within.join("file")).unwrap();
        }
    }
    for n in 0..5_000 {
        File::create(folder.join(format!("file-{n}"))).unwrap();
    }

    remove_folder(&folder).unwrap();

    assert!(!folder.exists());
}

/// K16
#[test]
fn links_are_removed_and_what_they_lead_to_stays() {
    let (place, folder) = filled();
    let outside = place.path().join("outside");
    create_dir(&outside).unwrap();
    File::create(outside.join("kept")).unwrap();
    create_dir_all(folder.join("a/b")).unwrap();
    symlink(&outside, folder.join("link")).unwrap();
    symlink(&outside, folder.join("a/b/link")).unwrap();
    symlink(outside.join("kept"), folder.join("a/file")).unwrap();
    symlink("..", folder.join("a/up")).unwrap();
    let link_itself = place.path().join("link");
    symlink(&outside, &link_itself).unwrap();

    remove_folder(&folder).unwrap();
    remove_folder(&link_itself).unwrap();

    assert!(!folder.exists() && link_itself.symlink_metadata().is_err());
    assert!(outside.join("kept").exists());
}

/// Does something as somebody whom permissions hold, as they don't hold whoever may do everything.
fn held_by_permissions<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let without_privileges = || {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        // It is this thread alone that gives them up.
        set_capabilities(None, sets).unwrap();
        act()
    };
    std::thread::scope(|scope| scope.spawn(without_privileges).join().unwrap())
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// K16: a cache of modules is 0555 all through.
#[test]
fn folders_that_are_closed_to_their_owner_are_removed() {
    for mode in [0o000, 0o111, 0o333, 0o444, 0o555, 0o666] {
        let (place, folder) = filled();
        create_dir_all(folder.join("a/b/c/empty")).unwrap();
        let outside = place.path().join("outside");
        create_dir(&outside).unwrap();
        set_mode(&outside, 0o500);
        for within in ["", "a", "a/b", "a/b/c"] {
            File::create(folder.join(within).join("file")).unwrap();
            symlink(&outside, folder.join(within).join("link")).unwrap();
        }
        for within in ["a/b/c/empty", "a/b/c", "a/b", "a", ""] {
            set_mode(&folder.join(within), mode);
        }

        let removed = held_by_permissions(|| remove_folder(&folder));

        assert_eq!(removed, Ok(()), "{mode:o}");
        assert!(!folder.exists(), "{mode:o}");
        assert_eq!(outside.metadata().unwrap().permissions().mode() & 0o777, 0o500);
    }
}

/// K16: another user's folder does not block the removal for ever.
#[test]
fn what_can_not_be_removed_stays_and_the_rest_goes() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a folder to somebody else");
        return;
    }
    let (_place, folder) = filled();
    create_dir_all(folder.join("a/closed/inner")).unwrap();
    create_dir_all(folder.join("b/c")).unwrap();
    set_mode(&folder.join("a/closed"), 0o500);
    std::os::unix::fs::chown(folder.join("a/closed"), Some(65_534), None).unwrap();
    let since = Instant::now();

    let removed = held_by_permissions(|| remove_folder(&folder));

    assert!(removed.is_err());
    assert!(folder.join("a/closed/inner").exists() && !folder.join("b").exists());
    assert!(since.elapsed() < REMOVAL_TIME_LIMIT / 2, "{:?}", since.elapsed());
}

/// K16
#[test]
fn a_folder_that_others_go_on_filling_is_removed_or_left() {
    let (_place, folder) = filled();
    let path = folder.clone();
    let filling = std::thread::spawn(move || {
        for n in 0..2_000 {
            let _ = create_dir_all(path.join(format!("{n}/x/y")));
        }
    });

    while !filling.is_finished() {
        let _ = remove_folder(&folder);
    }
    filling.join().unwrap();
    let _ = remove_folder(&folder);

    assert!(!folder.exists());
}

#[test]
fn the_latest_change_counts_for_a_folder() {
    let (_place, folder) = filled();
    create_dir(folder.join("tmp")).unwrap();
    let old = SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    let times = fs::FileTimes::new().set_modified(old);
    File::open(&folder).unwrap().set_times(times).unwrap();
    let with_a_young_one = changed_at(&folder).unwrap();

    File::open(folder.join("tmp")).unwrap().set_times(times).unwrap();

    assert!(with_a_young_one > old);
    assert_eq!(changed_at(&folder), Some(old));
    assert_eq!(changed_at(&folder.join("nothing")), None);
}
