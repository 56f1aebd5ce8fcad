use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use longhaul_tools::ScopeConfig;

use super::*;

/// A project with a repository at `repo` and its work folder at `repo/crates/x`, and a home beside it.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(project.work_dir()).unwrap();
        fs::create_dir_all(project.path("repo/.git")).unwrap();
        fs::create_dir_all(project.path("home")).unwrap();
        project
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    fn work_dir(&self) -> PathBuf {
        self.path("repo/crates/x")
    }

    fn write(&self, below: &str, text: &str) -> PathBuf {
        fs::write(self.path(below), text).unwrap();
        self.path(below)
    }

    fn read_in(&self, work_dir: &Path) -> (Vec<(String, String)>, Vec<String>) {
        let home = self.path("home");
        let Instructions { files, skipped } =
            read_instructions(&home, Some(&Scope::new(work_dir, &ScopeConfig::default(), &home)));
        let top = self.path("");
        let shown = |file: InstructionFile| {
            (file.path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned(), file.text)
        };
        (files.into_iter().map(shown).collect(), skipped)
    }

    fn read(&self) -> (Vec<(String, String)>, Vec<String>) {
        self.read_in(&self.work_dir())
    }

    fn set_mode(&self, below: &str, mode: u32) {
        fs::set_permissions(self.path(below), fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// P7
#[test]
fn the_homes_file_comes_first_then_those_from_the_repository_down_to_the_work_folder() {
    let project = Project::new();
    project.write("AGENTS.md", "outside of the repository");
    project.write("repo/AGENTS.md", "repository");
    project.write("repo/CLAUDE.md", "not read, since there is an AGENTS.md");
    project.write("repo/crates/CLAUDE.md", "crates");
    project.write("repo/crates/x/AGENTS.md", "x\n");
    project.write("home/AGENTS.md", "user");

    let (files, skipped) = project.read();

    let expected = [
        ("home/AGENTS.md", "user"),
        ("repo/AGENTS.md", "repository"),
        ("repo/crates/CLAUDE.md", "crates"),
        ("repo/crates/x/AGENTS.md", "x"),
    ];
    assert_eq!((files, skipped), (pairs(&expected), vec![]));
}

/// P7
#[test]
fn without_a_repository_only_the_work_folders_own_file_is_read() {
    let project = Project::new();
    fs::remove_dir(project.path("repo/.git")).unwrap();
    project.write("repo/AGENTS.md", "above");
    project.write("repo/crates/x/CLAUDE.md", "x");

    assert_eq!(project.read(), (pairs(&[("repo/crates/x/CLAUDE.md", "x")]), vec![]));
}

#[test]
fn the_nearest_repository_bounds_the_search_also_if_its_git_is_a_file() {
    let project = Project::new();
    project.write("repo/AGENTS.md", "outer");
    project.write("repo/crates/.git", "gitdir: elsewhere");
    project.write("repo/crates/AGENTS.md", "inner");

    assert_eq!(project.read(), (pairs(&[("repo/crates/AGENTS.md", "inner")]), vec![]));
}

/// P1, P7: above the work folder a link may lead anywhere, and nobody has looked at it.
#[test]
fn a_link_above_the_work_folder_is_not_followed_and_the_user_is_told() {
    let project = Project::new();
    let secret = project.write("repo/secret", "key");
    for target in [secret.as_path(), Path::new("missing"), Path::new("/dev/zero")] {
        let link = project.path("repo/AGENTS.md");
        let _ = fs::remove_file(&link);
        symlink(target, &link).unwrap();
        project.write("repo/CLAUDE.md", "no way round");

        let (files, skipped) = project.read();

        assert_eq!(files, []);
        let [warning] = skipped.as_slice() else { panic!("{skipped:?}") };
        assert!(warning.starts_with(&format!("ignoring {}: ", link.display())), "{warning}");
    }
}

/// P7
#[test]
fn a_file_above_that_another_user_could_have_written_is_not_read() {
    let project = Project::new();
    let file = project.write("repo/crates/AGENTS.md", "evil");
    let is_refused = |reason: &str| {
        let (files, skipped) = project.read();
        assert_eq!(files, [], "{reason}");
        assert_eq!(skipped, [format!("ignoring {}: {reason}", file.display())]);
    };

    project.set_mode("repo/crates/AGENTS.md", 0o666);
    is_refused("every user can write it");
    project.set_mode("repo/crates/AGENTS.md", 0o644);
    project.set_mode("repo/crates", 0o777);
    is_refused("every user can write its folder");
    // As /tmp is: nobody can replace the file, but anybody could have put it there.
    project.set_mode("repo/crates", 0o1777);
    is_refused("every user can write its folder");
    project.set_mode("repo/crates", 0o755);
    assert_eq!(project.read().0.len(), 1);
    // Only root can give a file away.
    if chown(&file, Some(12_345), None).is_ok() {
        is_refused("it belongs to another user (12345)");
        chown(&file, Some(0), None).unwrap();
        chown(project.path("repo/crates"), Some(12_345), None).unwrap();
        is_refused("its folder belongs to another user (12345)");
    }
}

#[test]
fn what_is_no_regular_file_is_not_opened() {
    let project = Project::new();
    fs::create_dir(project.path("repo/AGENTS.md")).unwrap();
    let pipe = project.path("repo/crates/AGENTS.md");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();

    let (files, skipped) = project.read();

    assert_eq!((files.len(), skipped.len()), (0, 2), "{skipped:?}");
}

#[test]
fn a_file_that_is_too_long_is_cut_and_too_many_are_left_out_from_the_outermost_on() {
    let project = Project::new();
    let long = "long ".repeat(20 << 10);
    project.write("repo/AGENTS.md", "outermost");
    project.write("repo/crates/AGENTS.md", &long);
    project.write("repo/crates/x/AGENTS.md", &long);
    project.write("home/AGENTS.md", "user");

    let (files, skipped) = project.read();

    let sizes: Vec<(&str, usize)> = files.iter().map(|(path, text)| (path.as_str(), text.len())).collect();
    let (path, size) = ("repo/crates/x/AGENTS.md", sizes.last().unwrap().1);
    assert!((65_000..=64 << 10).contains(&size), "{size}");
    assert!(sizes.iter().map(|(_, size)| size).sum::<usize>() <= MAX_TOTAL_BYTES, "{sizes:?}");
    assert_eq!(sizes.first(), Some(&("home/AGENTS.md", 4)), "the user's own is never left out");
    assert_eq!(sizes.last().map(|(path, _)| *path), Some(path));
    assert!(skipped.iter().any(|warning| warning.contains("longer than 64 KiB")), "{skipped:?}");
    assert!(skipped.iter().any(|warning| warning.contains("longer than 128 KiB")), "{skipped:?}");
}

/// P1: what the user denies is denied to the runtime's own reading, too.
#[test]
fn a_file_above_that_the_user_denies_is_not_read() {
    let project = Project::new();
    let file = project.write("repo/AGENTS.md", "denied");
    let denied = longhaul_tools::DeniedTarget {
        target: file.to_str().unwrap().to_owned(),
        permission: Permission::Read,
    };
    let config = ScopeConfig { allow: vec![], deny: vec![denied] };
    let home = project.path("home");

    let found = read_instructions(&home, Some(&Scope::new(&project.work_dir(), &config, &home)));

    assert_eq!(found.files, []);
    assert_eq!(found.skipped, [format!("ignoring {}: your config denies it", file.display())]);
}

#[test]
fn a_work_folder_that_is_gone_has_the_homes_file_only() {
    let project = Project::new();
    project.write("repo/AGENTS.md", "repository");
    project.write("home/AGENTS.md", "user");
    fs::remove_dir(project.work_dir()).unwrap();

    let (files, _) = project.read();

    assert_eq!(files.first(), pairs(&[("home/AGENTS.md", "user")]).first());
}
