//! Other processes: the test's own program, started again to play a part.
//!
//! A part is an ignored test that a parent runs by name. It says what it does in lines on its standard output.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use longhaul_keeper::Launcher;

/// The folder that a part works in, as its parent told it.
const HOME: &str = "LONGHAUL_TEST_HOME";
const ARGUMENTS: [&str; 4] = ["--exact", "--ignored", "--nocapture", "--test-threads=1"];

/// A running part. It is killed when it goes out of scope.
pub(crate) struct Part {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    pub(crate) fn start(name: &str, home: &Path) -> Self {
        Self::start_with(Command::new(std::env::current_exe().unwrap()), name, home)
    }

    /// The same, in a PID namespace in which the part decides which number the next process gets.
    pub(crate) fn start_in_pid_namespace(name: &str, home: &Path) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.arg(std::env::current_exe().unwrap());
        Self::start_with(command, name, home)
    }

    fn start_with(mut command: Command, name: &str, home: &Path) -> Self {
        let mut process = command
            .arg(name)
            .args(ARGUMENTS)
            .env(HOME, home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The next thing that the part says after this word.
    pub(crate) fn hear(&mut self, word: &str) -> String {
        loop {
            let line = self.lines.next().expect("the part says it before it ends").unwrap();
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
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

/// The folder that this part was given.
pub(crate) fn home() -> PathBuf {
    // The harness has begun a line of its own.
    println!();
    std::env::var_os(HOME).expect("a part is started by its parent").into()
}

/// Keepers are this program too.
pub(crate) fn keeper() -> Launcher {
    let arguments = ["part::plays_the_keeper"].into_iter().chain(ARGUMENTS);
    Launcher::new(std::env::current_exe().unwrap(), arguments)
}

#[test]
#[ignore = "a part that other tests play in another process"]
fn plays_the_keeper() {
    longhaul_keeper::keep_here();
}
