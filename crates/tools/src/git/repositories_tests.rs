use longhaul_protocol::CallId;

use super::*;
use crate::ScopeConfig;

struct World {
    root: PathBuf,
    scope: Arc<Scope>,
    session: SessionId,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("work")).unwrap();
        let scope = Scope::new(&root.join("work"), &ScopeConfig::default(), &root.join("home"));
        Self { root, scope: Arc::new(scope), session: SessionId::generate(), _folder: folder }
    }

    /// A runtime that has just been started.
    fn repositories(&self) -> RepositoryTracker {
        RepositoryTracker::new(self.root.join("home/tmp"))
    }

    fn make(&self, repository: &str, config: &str) {
        let folder = self.root.join("work").join(repository);
        for name in ["objects", "refs", "hooks"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("HEAD"), "").unwrap();
        fs::write(folder.join("config"), config).unwrap();
    }

    fn guarded(&self, repositories: &RepositoryTracker) -> Vec<PathBuf> {
        lock(&repositories.survey).is_fresh = false;
        repositories.guarded(&self.scope, Some(self.session))
    }
}

/// Every task has ended.
fn ended(_: TaskId) -> bool {
    false
}

/// P3
#[test]
fn what_was_there_is_guarded_and_what_is_new_is_told_once() {
    let world = World::new();
    world.make("old/.git", "");
    let repositories = world.repositories();

    let initial = world.guarded(&repositories);
    world.make("new/.git", "[core]\nfsmonitor = ./evil");
    world.make("looks-bare", "");
    let later = world.guarded(&repositories);
    let news = repositories.news(&world.scope, world.session, ended).unwrap();
    repositories.acknowledge(world.session, news.clone());
    world.guarded(&repositories);
    let again = repositories.news(&world.scope, world.session, ended);

    assert_eq!(
        (initial, later),
        (vec![world.root.join("work/old/.git")], vec![world.root.join("work/old/.git")])
    );
    let told = "new in git since the last look: looks-bare is new and looks like a bare repository: nothing in it runs \
                programs; new/.git is a new repository: git runs programs by its config core.fsmonitor; look at it before \
                you use git there";
    assert_eq!((news.text.as_str(), again), (told, None));
}

/// P3: the process that ran the command dies before the end of the turn is on record.
#[test]
fn what_is_new_is_told_after_a_crash_too() {
    let world = World::new();
    world.guarded(&world.repositories());
    world.make("new/.git", "");

    let before = world.repositories().news(&world.scope, world.session, ended);
    let restarted = world.repositories();
    let news = restarted.news(&world.scope, world.session, ended).unwrap();
    restarted.acknowledge(world.session, news.clone());

    assert_eq!(before, Some(news));
    assert_eq!(world.repositories().news(&world.scope, world.session, ended), None);
}

/// P3: a name may have any bytes.
#[test]
fn repositories_whose_names_are_no_utf_8_are_remembered_over_a_restart() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let name = |name: &[u8]| world.root.join("work").join(std::ffi::OsStr::from_bytes(name)).join(".git");
    fs::create_dir_all(name(b"old\xff")).unwrap();
    let first = world.repositories();
    world.guarded(&first);
    fs::create_dir_all(name(b"new\xff")).unwrap();
    world.guarded(&first);
    let news = first.news(&world.scope, world.session, ended).unwrap();
    first.acknowledge(world.session, news);

    let restarted = world.repositories();

    assert_eq!(world.guarded(&restarted), [name(b"old\xff")]);
    assert_eq!(restarted.news(&world.scope, world.session, ended), None);
}

/// P3: a background task, or a process that a command left running, makes a repository without any call.
#[test]
fn what_a_task_makes_after_its_call_has_returned_is_told_at_the_end_of_a_turn() {
    let world = World::new();
    let repositories = Arc::new(world.repositories());
    world.guarded(&repositories);
    repositories.note_running(world.session, TaskId::from(CallId::generate()));
    let news = |repositories: &RepositoryTracker, goes_on: bool| {
        let news = repositories.news(&world.scope, world.session, |_| goes_on)?;
        repositories.acknowledge(world.session, news.clone());
        Some(news.text)
    };

    let before = news(&repositories, true);
    world.make("first/.git", "");
    let while_it_runs = news(&repositories, true);
    let restarted = world.repositories();
    let at_start = news(&restarted, true);
    world.make("second/.git", "");
    let at_its_end = news(&restarted, false);
    world.make("by-the-user/.git", "");

    assert_eq!((before, at_start), (None, None));
    assert!(while_it_runs.as_ref().is_some_and(|text| text.contains("first/.git")), "{while_it_runs:?}");
    assert!(at_its_end.as_ref().is_some_and(|text| text.contains("second/.git")), "{at_its_end:?}");
    assert_eq!(news(&restarted, false), None);
}

/// P3
#[test]
fn links_and_waiting_commands_in_a_guarded_repository_are_told() {
    let world = World::new();
    world.make(".git", "");
    let repositories = world.repositories();
    world.guarded(&repositories);

    std::os::unix::fs::symlink("/etc/profile", world.root.join("work/.git/COMMIT_EDITMSG")).unwrap();
    fs::create_dir(world.root.join("work/.git/rebase-merge")).unwrap();
    fs::write(world.root.join("work/.git/rebase-merge/git-rebase-todo"), "pick 1\nexec evil\n").unwrap();
    world.guarded(&repositories);
    let news = repositories.news(&world.scope, world.session, ended).unwrap().text;

    assert!(news.contains(".git/COMMIT_EDITMSG is a link to /etc/profile"), "{news}");
    assert!(news.contains("git-rebase-todo is a rebase that would run programs"), "{news}");
}

/// P3, P1: what a command puts in place of a configuration is neither followed nor passed over.
#[test]
fn a_configuration_that_can_not_be_checked_is_told_as_such() {
    let world = World::new();
    let repositories = world.repositories();
    world.guarded(&repositories);
    fs::write(world.root.join("secret"), "[alias]\nsecret = !x\n").unwrap();
    for name in ["link", "fifo", "large"] {
        world.make(&format!("{name}/.git"), "");
    }
    let config = |name: &str| world.root.join("work").join(name).join(".git/config");
    fs::remove_file(config("link")).unwrap();
    std::os::unix::fs::symlink(world.root.join("secret"), config("link")).unwrap();
    fs::remove_file(config("fifo")).unwrap();
    make_fifo(&config("fifo"));
    fs::write(config("large"), "#".repeat(1 << 20) + "\n[core]\nfsmonitor = ./evil\n").unwrap();

    world.guarded(&repositories);
    let news = repositories.news(&world.scope, world.session, ended).unwrap().text;

    let unchecked = "is a new repository: git runs programs by its unreadable config;";
    for name in ["link", "fifo", "large"] {
        assert!(news.contains(&format!("{name}/.git {unchecked}")), "{name}: {news}");
    }
    assert!(!news.contains("alias"), "{news}");
}

/// P3: a pipe in place of the steps of a rebase would make the runtime wait for ever.
#[test]
fn a_pipe_in_a_repository_is_not_waited_for() {
    let world = World::new();
    world.make(".git", "");
    let repositories = world.repositories();
    world.guarded(&repositories);

    fs::create_dir(world.root.join("work/.git/rebase-merge")).unwrap();
    make_fifo(&world.root.join("work/.git/rebase-merge/git-rebase-todo"));
    world.guarded(&repositories);
    let news = repositories.news(&world.scope, world.session, ended).unwrap().text;

    assert!(news.contains("git-rebase-todo is a rebase that would run programs"), "{news}");
}

fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}
