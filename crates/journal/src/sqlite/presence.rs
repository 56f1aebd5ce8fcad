//! Which journals this process has open.
//!
//! The system drops every lock that a process has on a file as soon as the process closes any handle to it, whoever
//! opened that. So once SQLite has a journal open, nobody else in the process may open and close its file, not even to
//! look at its header: only the first to come does that, before SQLite is there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::Result;
use crate::home::HomeLock;

static OPEN: LazyLock<Mutex<HashMap<PathBuf, usize>>> = LazyLock::new(Mutex::default);

/// While this lives, the process has the journal open.
#[derive(Debug)]
pub(crate) struct Presence(PathBuf);

impl Presence {
    /// Enters a journal. Only the first to come looks at the file; those who come while it does wait for its verdict.
    pub(crate) fn enter(path: &Path, look: impl FnOnce() -> Result<()>) -> Result<Self> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.contains_key(path) {
            look()?;
        }
        *open.entry(path.to_owned()).or_default() += 1;
        Ok(Self(path.to_owned()))
    }

    /// Whether this process has the journal open.
    pub(crate) fn is_open(path: &Path) -> bool {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        path.canonicalize().is_ok_and(|path| open.contains_key(&path))
    }
}

impl Drop for Presence {
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

/// What a process holds while any of its connections to a journal is open: each connection has a share, so it ends with
/// the last of them, however that comes about.
#[derive(Debug)]
pub(crate) struct Ties {
    pub(crate) _together: Option<HomeLock>,
    pub(crate) _presence: Presence,
}
