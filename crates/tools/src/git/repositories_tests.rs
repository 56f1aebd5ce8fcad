use super::*;
use crate::ScopeConfig;

struct World {
    root: PathBuf,
    scope: Scope,
    session: SessionId,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("work")).unwrap();
        let scope = Scope::new(&root.join("work"), &ScopeConfig::default(), &root.join("home"));
        Self { root, scope, session: SessionId::generate(), _folder: folder }
    }

    /// A runtime that has just been started.
    fn repositories(&self) -> Repositories {
        Repositories::new(self.root.join("home/tmp"))
    }

    fn make(&self, repository: &str, config: &str) {
        let folder = self.root.join("work").join(repository);
        for name in ["objects", "refs", "hooks"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("HEAD"), "").unwrap();
        fs::write(folder.join("config"), config).unwrap();
    }

    fn guarded(&self, repositories: &Repositories) -> Vec<PathBuf> {
        lock(&repositories.survey).is_fresh = false;
        repositories.guarded(&self.scope, Some(self.session))
    }
}

/// P3
#[test]
fn what_was_there_is_guarded_and_what_is_new_is_told_once() {
    let world = World::new();
    world.make("old/.git", "");
    let repositories = world.repositories();

    let at_first = world.guarded(&repositories);
    world.make("new/.git", "[core]\nfsmonitor = ./evil");
    world.make("looks-bare", "");
    let later = world.guarded(&repositories);
    let news = repositories.news(&world.scope, world.session).unwrap();
    repositories.acknowledge(world.session, news.clone());
    world.guarded(&repositories);
    let again = repositories.news(&world.scope, world.session);

    assert_eq!(
        (at_first, later),
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

    let before = world.repositories().news(&world.scope, world.session);
    let restarted = world.repositories();
    let news = restarted.news(&world.scope, world.session).unwrap();
    restarted.acknowledge(world.session, news.clone());

    assert_eq!(before, Some(news));
    assert_eq!(world.repositories().news(&world.scope, world.session), None);
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
    let news = repositories.news(&world.scope, world.session).unwrap().text;

    assert!(news.contains(".git/COMMIT_EDITMSG is a link to /etc/profile"), "{news}");
    assert!(news.contains("git-rebase-todo is a rebase that would run programs"), "{news}");
}
