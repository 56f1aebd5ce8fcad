use std::fs::{File, create_dir, create_dir_all};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rustix::fs::mkdirat;
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
    nest(&folder, 60_000);

    let small_stack = std::thread::Builder::new().stack_size(256 << 10);
    let path = folder.clone();
    small_stack.spawn(move || remove_folder(&path)).unwrap().join().unwrap().unwrap();

    assert!(!folder.exists());
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

/// K16: whoever may do everything can remove it, and nobody else waits for ever.
#[test]
fn what_can_not_be_removed_stays_and_the_rest_goes() {
    let (_place, folder) = filled();
    create_dir_all(folder.join("a/closed/inner")).unwrap();
    create_dir_all(folder.join("b/c")).unwrap();
    fs::set_permissions(folder.join("a/closed"), PermissionsExt::from_mode(0o500)).unwrap();
    let may_do_everything = rustix::process::geteuid().is_root();
    let since = Instant::now();

    let removed = remove_folder(&folder);

    assert_eq!(removed.is_ok(), may_do_everything);
    assert!(!folder.join("b").exists());
    assert!(since.elapsed() < PATIENCE / 2, "{:?}", since.elapsed());
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let _ = fs::set_permissions(entry.path().join("closed"), PermissionsExt::from_mode(0o700));
    }
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
