//! Other processes: the test's own program, started again to play a part.
//!
//! A part is an ignored test that a parent runs by name. It says what it does in lines on its standard output.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The folder that a part works in, as its parent told it.
const HOME: &str = "LONGHAUL_TEST_HOME";

/// A running part. It is killed when it goes out of scope.
pub(crate) struct Part {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    pub(crate) fn start(name: &str, home: &Path) -> Self {
        Self::start_with(name, home, &[])
    }

    pub(crate) fn start_with(name: &str, home: &Path, variables: &[(&str, &str)]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(HOME, home)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The next thing that the part says after this word; `None` when it has ended.
    pub(crate) fn hear(&mut self, word: &str) -> Option<String> {
        loop {
            let line = self.lines.next()?.ok()?;
            if let Some(rest) = line.strip_prefix(word) {
                return Some(rest.trim().to_owned());
            }
        }
    }

    /// Everything that the part has still to say after this word, until it ends.
    pub(crate) fn hear_all(&mut self, word: &str) -> Vec<String> {
        std::iter::from_fn(|| self.hear(word)).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Ends the part as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The home that this part was given.
pub(crate) fn home() -> longhaul_journal::Home {
    let folder = std::env::var_os(HOME).expect("a part is started by its parent");
    // The harness has begun a line of its own.
    println!();
    longhaul_journal::Home::create(Path::new(&folder)).unwrap()
}
