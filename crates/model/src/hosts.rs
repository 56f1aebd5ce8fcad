//! The hosts that have answered this home before. Without a network they are waited for; a host that never answered may not
//! exist at all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::cache_file::{append_line, read_lines};

/// The hosts that have answered before, kept in a file with one of them a line. The file may be deleted at any time.
#[derive(Debug, Default)]
pub struct KnownHosts {
    file: Option<PathBuf>,
    known: Mutex<BTreeSet<String>>,
}

impl KnownHosts {
    /// Those that this file names.
    pub fn at(file: &Path) -> Self {
        let known = read_lines(file).lines().map(str::to_owned).collect();
        Self { file: Some(file.to_owned()), known: Mutex::new(known) }
    }

    /// Whether a host has answered before.
    pub fn knows(&self, host: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(host)
    }

    /// A host has answered.
    pub fn answered(&self, host: &str) {
        let is_new = self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned());
        if let (true, Some(file)) = (is_new, &self.file) {
            // What can't be noted is learnt again the next time.
            let _ = append_line(file, host);
        }
    }
}
