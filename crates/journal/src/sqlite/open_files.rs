//! Which journals this process has open.
//!
//! POSIX drops every lock that a process has on a file as soon as the process closes any handle to that file. So while
//! SQLite has a journal open, nothing else in the process may open and close its file, not even to read its header.
//! Only the first opener does that, before SQLite opens the file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::Result;
use crate::home::HomeLock;

/// How many openers each journal has.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, usize>>> = LazyLock::new(Mutex::default);

/// Represents one opener of the journal in this process.
#[derive(Debug)]
pub(crate) struct OpenFile(PathBuf);

impl OpenFile {
    /// Adds an opener. The first one runs `check` on the file. Others wait for its result.
    pub(crate) fn register(path: &Path, check: impl FnOnce() -> Result<()>) -> Result<Self> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.contains_key(path) {
            check()?;
        }
        *open.entry(path.to_owned()).or_default() += 1;
        Ok(Self(path.to_owned()))
    }

    pub(crate) fn is_open(path: &Path) -> bool {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        path.canonicalize().is_ok_and(|path| open.contains_key(&path))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.0);
            }
        }
    }
}

/// The locks that a process holds while any of its connections to a journal is open. Every connection has a share, so
/// the locks are released with the last one.
#[derive(Debug)]
pub(crate) struct ProcessLocks {
    pub(crate) _home_lock: Option<HomeLock>,
    pub(crate) _open_file: OpenFile,
}
