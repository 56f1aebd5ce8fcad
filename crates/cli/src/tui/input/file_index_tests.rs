use std::fs;

use super::*;

fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

/// An index after its walk.
fn walked(folder: &Path) -> FileIndex {
    let index = FileIndex::new(folder.to_owned());
    index.refresh();
    while index.is_walking() {
        std::thread::yield_now();
    }
    index
}

fn found(index: &mut FileIndex, pattern: &str) -> Vec<String> {
    index.search(pattern).into_iter().map(|(_, path)| path).collect()
}

#[test]
fn files_of_all_folders_are_found_but_not_what_git_ignores_nor_what_is_hidden() {
    let folder =
        folder(&["src/tui/view.rs", "target/view.rs", ".github/view.yml", "a/.cache/view", "view.log"]);
    fs::write(folder.path().join(".gitignore"), "/target\n*.log\n").unwrap();
    fs::create_dir_all(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join(".git/view"), "").unwrap();
    let mut index = walked(folder.path());

    assert_eq!(found(&mut index, "view"), ["src/tui/view.rs"]);
    assert_eq!(found(&mut index, "tui"), ["src/tui/", "src/tui/view.rs"]);
    assert_eq!(found(&mut index, ".gi"), [".github/", ".gitignore", ".github/view.yml"]);
    assert_eq!(found(&mut index, "a/.c"), ["a/.cache/", "a/.cache/view"]);
}

#[test]
fn a_gitignore_counts_without_a_repository_too() {
    let folder = folder(&["kept.txt", "sub/left.txt"]);
    fs::write(folder.path().join(".gitignore"), "left.txt\n").unwrap();
    let mut index = walked(folder.path());

    assert_eq!(found(&mut index, "txt"), ["kept.txt"]);
}

/// The work for a key is bounded by what the pattern before it has matched, whatever the size of the repository.
#[test]
fn a_longer_pattern_looks_only_at_what_the_shorter_one_has_matched() {
    let mut index = FileIndex::new(PathBuf::from("/nowhere"));
    let mut paths = PathList::default();
    (0..100_000)
        .for_each(|number| paths.push(&format!("crates/part{:03}/src/file_{number:05}.rs", number % 500)));
    lock(&index.state).paths = Arc::new(paths);

    index.search("7");
    assert_eq!(index.examined(), 100_000);
    let matched = index.narrowed.as_ref().unwrap().indices.len();
    let shown = index.search("77");
    assert_eq!(index.examined(), matched);
    assert!(matched < 60_000, "{matched}");
    assert_eq!(shown.len(), MAX_MATCHES);
    let narrower = index.narrowed.as_ref().unwrap().indices.len();
    assert!(narrower < matched, "{narrower}");
    index.search("777");
    assert_eq!(index.examined(), narrower);
    index.search("8");
    assert_eq!(index.examined(), 100_000, "another pattern begins anew");
}

#[test]
fn new_paths_begin_the_search_anew() {
    let folder = folder(&["one.txt"]);
    let mut index = walked(folder.path());
    assert_eq!(found(&mut index, "txt"), ["one.txt"]);
    let before = index.generation();

    fs::write(folder.path().join("two.txt"), "").unwrap();
    lock(&index.state).finished_at = Instant::now().checked_sub(MAX_INDEX_AGE);
    index.refresh();
    while index.is_walking() {
        std::thread::yield_now();
    }

    assert_ne!(index.generation(), before);
    assert_eq!(found(&mut index, "txt"), ["one.txt", "two.txt"]);
}

#[test]
fn a_folder_that_is_gone_has_no_files() {
    let folder = folder(&["one.txt"]);
    let path = folder.path().to_owned();
    drop(folder);

    assert_eq!(found(&mut walked(&path), "txt"), Vec::<String>::new());
}
