//! A home for a test: tasks, a token, and what is asked of a command most often.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longhaul_keeper::{FORMAT, Found, Launcher, Spec, Status, Task, Tasks};
use longhaul_protocol::{CallId, TaskId};
use tempfile::TempDir;

use crate::part;

/// Everything that is waited for comes long before this, also on a machine that has much else to do.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Home {
    pub(crate) folder: PathBuf,
    pub(crate) tasks: Tasks,
    _temporary: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with(part::keeper())
    }

    pub(crate) fn with(launcher: Launcher) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        Self::within(temporary, "home", launcher)
    }

    pub(crate) fn within(temporary: TempDir, name: &str, launcher: Launcher) -> Self {
        let folder = temporary.path().join(name);
        fs::create_dir_all(folder.join("run")).unwrap();
        fs::write(folder.join("run/token"), "open sesame\n").unwrap();
        let tasks = Tasks::at(&folder.join("tasks"), launcher).unwrap();
        Self { folder, tasks, _temporary: temporary }
    }

    pub(crate) fn spec(&self, command: &str) -> Spec {
        spec_in(&self.folder, command)
    }

    pub(crate) fn start(&self, command: &str) -> Task {
        self.tasks.start(&self.spec(command)).unwrap()
    }

    /// Runs a command to its end; how that was, and what it printed.
    pub(crate) fn run(&self, command: &str) -> (Status, String) {
        let task = self.start(command);
        (ended(&task), self.output(&task))
    }

    /// Everything that is kept of what a task printed.
    pub(crate) fn output(&self, task: &Task) -> String {
        output_of(&self.tasks, task.id())
    }

    pub(crate) fn task_folder(&self, id: TaskId) -> PathBuf {
        self.folder.join("tasks").join(id.to_string())
    }
}

/// A test that fails leaves no command behind.
impl Drop for Home {
    fn drop(&mut self) {
        for entry in fs::read_dir(self.folder.join("tasks")).into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(id) = id {
                let _ = self.tasks.kill(id);
            }
        }
    }
}

pub(crate) fn spec_in(home: &Path, command: &str) -> Spec {
    Spec {
        format: FORMAT,
        task_id: CallId::generate().into(),
        command: command.to_owned(),
        work_dir: home.to_owned(),
        environment: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        output_cap: 1 << 20,
        max_runtime_s: None,
        session: None,
        description: None,
        target: "local".to_owned(),
        token_file: "../../run/token".to_owned(),
        bounds: None,
        relay: false,
    }
}

pub(crate) fn output_of(tasks: &Tasks, id: TaskId) -> String {
    let output = tasks.output(id).unwrap();
    let mut bytes = Vec::new();
    let mut next = 0;
    loop {
        let chunk = output.read(next, 64 << 10).unwrap();
        if let Some(dropped) = chunk.dropped {
            bytes.extend(format!("[dropped {}..{}]", dropped.start, dropped.end).into_bytes());
        }
        if chunk.next == next {
            return String::from_utf8(bytes).unwrap();
        }
        bytes.extend(chunk.bytes);
        next = chunk.next;
    }
}

/// Waits until a command has ended, as a runtime does: for its connection to close.
pub(crate) fn ended(task: &Task) -> Status {
    let mut connection = task.connect().unwrap();
    connection.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    connection.read_to_end(&mut Vec::new()).expect("the command ends in time");
    task.status().unwrap().expect("the status is written before the connection closes")
}

/// What is found when nothing runs any more. A keeper that was just killed may be found running for a moment, and closes its
/// connections then without a status.
pub(crate) fn after_all(tasks: &Tasks, id: TaskId) -> Found {
    until("the end", || match tasks.find(id).unwrap() {
        Found::Running(task) => {
            let _ = task.connect().unwrap().read_to_end(&mut Vec::new());
            None
        }
        found => Some(found),
    })
}

/// Waits for something to become true.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The number in a file that a command writes, once it is there.
pub(crate) fn number_in(file: &Path) -> i32 {
    until("a number in a file", || fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok())
}

/// Whether a process does anything any more.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The process that has this task's folder as its current directory: its keeper.
pub(crate) fn keeper_of(folder: &Path) -> i32 {
    let folder = folder.canonicalize().unwrap();
    until("the keeper", || {
        let numbers = fs::read_dir("/proc").unwrap().flatten();
        let mut numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers.find(|pid| {
            let is_in_folder = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == folder);
            is_in_folder
                && fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|line| line.starts_with(b"longhaul-keeper"))
        })
    })
}
