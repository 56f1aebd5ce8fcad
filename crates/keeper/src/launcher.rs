//! How a keeper is started: the same program again, with a hidden first argument.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The hidden first argument.
pub(crate) const ARGUMENT: &str = "keeper-process";
/// A keeper with this in its environment keeps nothing and says what it could enforce.
pub(crate) const PROBE: &str = "LONGHAUL_KEEPER_PROBE";

/// The program that plays the keeper, and the arguments that make it do so.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Launcher {
    /// This very program, which must call [`crate::main_if_asked`] first thing.
    ///
    /// It is reached through the running process where that is possible: an upgrade may have replaced the file meanwhile, and
    /// a keeper should be of the version that starts it.
    pub fn this_program() -> io::Result<Self> {
        let running = Path::new("/proc/self/exe");
        let program = if running.exists() { running.to_owned() } else { std::env::current_exe()? };
        Ok(Self::new(program, [ARGUMENT]))
    }

    /// Any program that plays the keeper in the folder in which it is started.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }

    /// Starts a keeper in this folder. It gets no environment: its command could read it there, keys and all.
    pub(crate) fn launch(&self, folder: &Path, report: OwnedFd) -> io::Result<Child> {
        // Nothing here may need code between fork and exec: without that the system copies nothing of a large runtime.
        Command::new(&self.program)
            .arg0("longhaul-keeper")
            .args(&self.arguments)
            .env_clear()
            .current_dir(folder)
            .stdin(Stdio::from(report))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }

    /// Starts a keeper that only says what it could enforce.
    pub(crate) fn probe(&self, report: OwnedFd) -> io::Result<Child> {
        Command::new(&self.program)
            .arg0("longhaul-keeper")
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
