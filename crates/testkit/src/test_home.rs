use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_agent::Config;
use longhaul_journal::{Home, SqliteJournal};
use longhaul_keeper::Launcher;
use tempfile::TempDir;

/// A home and a work folder in a temporary folder, removed with the test.
pub struct TestHome {
    folder: TempDir,
}

impl TestHome {
    /// On disk.
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// In memory, where the machine has `/dev/shm`: for tests with thousands of homes.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::within(memory) } else { Self::new() }
    }

    fn within(folder: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("longhaul-test-").tempdir_in(folder).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    /// Longhaul's home.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The work folder.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The content of a file in the work folder; empty if there is none.
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    /// A config for both folders. Keepers are run by this test binary in its ignored test `keeper_process`. Sessions of
    /// tests are short, so anything new in them is worth a call for memory.
    pub fn config(&self) -> Config {
        let program = std::env::current_exe().unwrap();
        let launcher = Launcher::new(program, ["--exact", "--ignored", "--nocapture", "keeper_process"]);
        let mut config =
            Config { launcher: Some(launcher), ..Config::at(self.home()).with_work_dir(&self.work()) };
        // What the user who runs the tests has in their home folder is no part of them.
        config.user_home = None;
        config.settings.memory.extract_min_tokens = 0;
        config
    }

    /// The journal of the home.
    pub async fn journal(&self) -> Arc<SqliteJournal> {
        Arc::new(SqliteJournal::open(&Home::create(&self.home()).unwrap()).await.unwrap())
    }
}

/// The processes of a task, by their numbers outside of its namespace.
#[derive(Debug, Clone, Copy)]
pub struct TaskProcesses {
    pub keeper: i64,
    pub command: i64,
}

impl TaskProcesses {
    /// The processes of a home's first task. Waits until its keeper has written them down, which may be after the command began.
    pub fn of_first(home: &Path) -> Self {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(processes) = Self::read_first(home) {
                return processes;
            }
            assert!(Instant::now() < deadline, "no task of {} has started", home.display());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn read_first(home: &Path) -> Option<Self> {
        let mut folders: Vec<PathBuf> =
            std::fs::read_dir(home.join("tasks")).ok()?.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        let file = folders.iter().find_map(|folder| std::fs::read(folder.join("pid")).ok())?;
        let file: serde_json::Value = serde_json::from_slice(&file).ok()?;
        Some(Self { keeper: file["keeper"]["pid"].as_i64()?, command: file["pid"].as_i64()? })
    }
}

impl Default for TestHome {
    fn default() -> Self {
        Self::new()
    }
}
