use super::*;

fn world(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (name, text) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    (folder, root)
}

fn below(root: &Path, paths: &BTreeSet<PathBuf>) -> Vec<String> {
    paths.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
}

/// P3
#[test]
fn the_parts_that_run_something_are_guarded_whether_they_are_there_or_not() {
    let (_folder, root) = world(&[(".git/config", "[extensions]\nworktreeConfig = true"), (".git/HEAD", "")]);

    let guards = guard_repositories(&[root.join(".git")], std::slice::from_ref(&root), None);

    let parts = [".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks"];
    assert_eq!(below(&root, &guards.read_only), parts);
    let missing: BTreeSet<PathBuf> =
        guards.placeholders.iter().map(|placeholder| placeholder.at.clone()).collect();
    assert_eq!(below(&root, &missing), [parts[0], parts[2], parts[3]]);
}

/// P3: nothing can be mounted over a link, and the file that keeps `commondir` from being made would break such a repository.
#[test]
fn a_repository_that_is_not_as_git_makes_it_is_read_only_as_a_whole() {
    for config in ["[extensions]\nrefStorage = reftable", "link", "none"] {
        let (_folder, root) = world(&[("elsewhere", ""), (".git/HEAD", ""), (".git/config", config)]);
        match config {
            "link" => {
                fs::remove_file(root.join(".git/config")).unwrap();
                std::os::unix::fs::symlink("../elsewhere", root.join(".git/config")).unwrap();
            }
            "none" => fs::remove_file(root.join(".git/config")).unwrap(),
            _ => {}
        }

        let guards = guard_repositories(&[root.join(".git")], std::slice::from_ref(&root), None);

        assert_eq!((below(&root, &guards.read_only), guards.placeholders), (vec![".git".to_owned()], vec![]));
    }
}

/// P3
#[test]
fn what_a_configuration_names_is_guarded_only_where_commands_could_write_it() {
    let config = "[include]\npath = /elsewhere/config\npath = ../more\n[core]\nhooksPath = .";
    let (_folder, root) =
        world(&[(".git/config", config), ("more", "[core]\nhooksPath = ~/hooks\n"), ("home/hooks/x", "")]);

    let guards =
        guard_repositories(&[root.join(".git")], std::slice::from_ref(&root), Some(&root.join("home")));

    let paths = below(&root, &guards.read_only);
    assert!(paths.contains(&"more".to_owned()) && paths.contains(&"home/hooks".to_owned()), "{paths:?}");
    assert!(!paths.contains(&String::new()), "the work folder itself can be written: {paths:?}");
}

/// P3: git reads a file as often as it is included. Here each file is read once, or the first command would never start.
#[test]
fn files_that_include_each_other_are_read_once() {
    let include = |name: &str, times: usize| format!("[include]\npath = {name}\n").repeat(times);
    let circle = [(".git/config".to_owned(), include("config", 500) + &include("../.git/config", 500))];
    let chain = (0..12).map(|at| (format!("file{at}"), include(&format!("file{}", at + 1), 50)));
    let chain: Vec<(String, String)> =
        chain.chain([(".git/config".to_owned(), include("../file0", 1))]).collect();

    for files in [circle.to_vec(), chain] {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (_folder, root) = world(&files);

        let guards = guard_repositories(&[root.join(".git")], std::slice::from_ref(&root), None);

        let paths = below(&root, &guards.read_only);
        assert!(files.iter().all(|(name, _)| paths.contains(&(*name).to_owned())), "{paths:?}");
        assert!(!paths.contains(&".git".to_owned()), "{paths:?}");
    }
}

/// P3
#[test]
fn a_repository_that_includes_too_many_files_is_read_only_as_a_whole() {
    let config: String = (0..=MAX_INCLUDES).map(|at| format!("[include]\npath = /missing/{at}\n")).collect();
    let (_folder, root) = world(&[(".git/config", config.as_str()), (".git/HEAD", "")]);

    let guards = guard_repositories(&[root.join(".git")], std::slice::from_ref(&root), None);

    assert_eq!((below(&root, &guards.read_only), guards.placeholders), (vec![".git".to_owned()], vec![]));
}

/// P3: each guard is a mount at every command, and the system has only so many.
#[test]
fn paths_beyond_the_limit_are_guarded_by_the_folders_that_hold_them() {
    let near = (0..MAX_GUARDS).map(|at| format!("{at}/.git"));
    let many = (0..1_000).map(|at| format!("far/crowd/{at}/.git"));
    let deep = ["far/one/a/b/.git", "far/other/a/b/.git"].map(str::to_owned);
    let names: Vec<String> = near.chain(many).chain(deep).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "gitdir: x")).collect();
    let (_folder, root) = world(&files);
    let repositories: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();

    let some = guard_repositories(&repositories, std::slice::from_ref(&root), None);
    let few = guard_repositories(&repositories[..MAX_GUARDS], std::slice::from_ref(&root), None);

    assert_eq!(below(&root, &some.crowded), ["far/crowd", "far/one", "far/other"]);
    assert!(some.read_only.is_superset(&some.crowded) && some.read_only.len() == MAX_GUARDS + 3);
    assert_eq!((few.crowded.len(), few.read_only.len()), (0, MAX_GUARDS));
}

/// P3: nothing outside of what commands may write is closed because of it.
#[test]
fn a_crowd_right_in_the_work_folder_closes_the_work_folder() {
    let work = Path::new("/home/work").to_owned();
    let paths = (0..2_000).map(|at| work.join(format!("{at}/.git"))).collect();

    assert_eq!(closed_folders(&paths, std::slice::from_ref(&work)), BTreeSet::from([work]));
}

/// P3: hooks that lie outside of a repository are guarded also if the repository is read-only as a whole.
#[test]
fn what_the_configuration_names_is_guarded_whatever_the_repository_is_like() {
    let config =
        "[extensions]\nrefStorage = reftable\n[core]\nhooksPath = .githooks\n[include]\npath = ../more";
    let (_folder, root) = world(&[(".git/config", config), (".githooks/x", ""), ("more", "")]);

    let guards = guard_repositories(&[root.join(".git")], std::slice::from_ref(&root), None);

    assert_eq!(below(&root, &guards.read_only), [".git", ".githooks", "more"]);
}
