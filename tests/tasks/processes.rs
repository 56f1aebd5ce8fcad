//! Processes of the program and of its tasks, as the system has them.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::desk::Desk;

/// A runtime of which only its death is of interest.
pub(crate) struct Serving(Child);

impl Serving {
    pub(crate) fn start(desk: &Desk) -> Self {
        let mut command = desk.command(&["serve", "--no-http"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Ends it as somebody would who wants it to go on later.
    pub(crate) fn suspend(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }

    /// Where the system says how it is.
    pub(crate) fn process(&self) -> PathBuf {
        format!("/proc/{}", self.0.id()).into()
    }
}

/// A test that fails leaves nobody behind.
impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a process carries the mark of this task in its environment.
pub(crate) fn carries_mark(task: &str) -> bool {
    let mark = format!("LONGHAUL_TASK={task}").into_bytes();
    all().any(|process| {
        fs::read(process.join("environ"))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == mark))
    })
}

/// The keepers of a desk: nobody else works in the folders of tasks.
pub(crate) fn keepers(desk: &Desk) -> Vec<PathBuf> {
    let tasks = desk.path("home/tasks").canonicalize().unwrap();
    let works_there =
        |process: &PathBuf| fs::read_link(process.join("cwd")).is_ok_and(|folder| folder.starts_with(&tasks));
    all().filter(works_there).collect()
}

/// Whether a keeper of this desk still runs: they end with their commands.
pub(crate) fn keeps_a_task(desk: &Desk) -> bool {
    !keepers(desk).is_empty()
}

fn all() -> impl Iterator<Item = PathBuf> {
    let is_number = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
    };
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(is_number)
}
