//! Starts a keeper: the same program again, with a hidden first argument.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The hidden first argument.
pub(crate) const ARGUMENT: &str = "keeper-process";
/// The name under which a keeper is started, whatever its program is.
pub(crate) const NAME: &str = "longhaul-keeper";
/// With this in its environment, a keeper only probes what it can enforce.
pub(crate) const PROBE: &str = "LONGHAUL_KEEPER_PROBE";

/// The program that becomes the keeper, with its arguments.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Launcher {
    /// This program, which must call [`crate::main_if_asked`] first.
    ///
    /// It is started through `/proc/self/exe` if possible. An upgrade may have replaced the program's file, and a
    /// keeper should have the same version as the runtime that starts it.
    pub fn this_program() -> io::Result<Self> {
        let running = Path::new("/proc/self/exe");
        let program = if running.exists() { running.to_owned() } else { std::env::current_exe()? };
        Ok(Self::new(program, [ARGUMENT]))
    }

    /// Any program that becomes the keeper of its current folder.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// Starts a keeper in this folder. It gets no environment, because its command could read secrets there.
    pub(crate) fn launch(&self, folder: &Path, report: OwnedFd) -> io::Result<Child> {
        // No code may run between fork and exec. Then the standard library uses `posix_spawn`, which does not copy
        // the page tables of a large runtime.
        Command::new(&self.program)
            .arg0(NAME)
            .args(&self.arguments)
            .env_clear()
            .current_dir(folder)
            .stdin(Stdio::from(report))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }

    /// Starts a keeper that only probes what it can enforce.
    pub(crate) fn probe(&self, report: OwnedFd) -> io::Result<Child> {
        Command::new(&self.program)
            .arg0(NAME)
            .args(&self.arguments)
            .env_clear()
            .env(PROBE, "1")
            .current_dir("/")
            .stdin(Stdio::from(report))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }
}
