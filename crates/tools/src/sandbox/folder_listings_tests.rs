use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A folder that is settled, so that its listing is remembered.
fn settled(names: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    names.iter().for_each(|name| fs::create_dir_all(path.join(name)).unwrap());
    while !FolderStamp::of(&path.metadata().unwrap()).is_settled() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    (folder, path)
}

#[test]
fn what_appears_or_goes_or_becomes_a_link_is_noticed() {
    let (_folder, path) = settled(&["There/below", "other"]);
    let listings = FolderListings::default();
    let lookup = || {
        let now = listings.now();
        ["There/below", "there", "other", "later", "later/below"].map(|name| now.lookup(&path.join(name)))
    };
    let before = lookup();

    fs::create_dir_all(path.join("later/below")).unwrap();
    fs::rename(path.join("There"), path.join("moved")).unwrap();
    fs::remove_dir(path.join("other")).unwrap();
    symlink("moved", path.join("There")).unwrap();
    let after = lookup();

    assert_eq!(
        before,
        [
            ListedState::WithoutLinks,
            ListedState::Unknown,
            ListedState::WithoutLinks,
            ListedState::Missing,
            ListedState::Missing
        ]
    );
    assert_eq!(
        after,
        [
            ListedState::Unknown,
            ListedState::Unknown,
            ListedState::Missing,
            ListedState::WithoutLinks,
            ListedState::WithoutLinks
        ]
    );
}

#[test]
fn listings_and_lookups_agree_about_the_way() {
    let (_folder, path) = settled(&["folder/below", "real"]);
    symlink("real", path.join("link")).unwrap();
    symlink("nowhere", path.join("dangling")).unwrap();
    fs::write(path.join("file"), "").unwrap();
    let listings = FolderListings::default();

    for name in ["folder/below", "link", "dangling", "file", "file/below", "missing", "folder/../real", "."] {
        let wanted = path.join(name);
        assert_eq!(listings.now().trace(&wanted, &[]), PathTrace::follow_existing(&wanted, &[]), "{name}");
    }
}

#[test]
fn of_a_folder_with_too_many_names_nothing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    (0..=MAX_ENTRIES).for_each(|number| fs::write(folder.path().join(number.to_string()), "").unwrap());

    assert_eq!(FolderListings::default().now().lookup(&folder.path().join("missing")), ListedState::Unknown);
}
