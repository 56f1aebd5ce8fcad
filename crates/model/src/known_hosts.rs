//! Hosts that have answered before. If one can't be reached, the network is down and the caller waits. A host that
//! never answered may not exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::cache_file::{append_line, read_lines};

/// Kept in a file with one host on each line, which may be deleted at any time.
#[derive(Debug, Default)]
pub struct KnownHosts {
    file: Option<PathBuf>,
    known: Mutex<BTreeSet<String>>,
}

impl KnownHosts {
    pub fn at(file: &Path) -> Self {
        let known = read_lines(file).lines().map(str::to_owned).collect();
        Self { file: Some(file.to_owned()), known: Mutex::new(known) }
    }

    pub fn knows(&self, host: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(host)
    }

    pub fn answered(&self, host: &str) {
        let is_new = self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned());
        if let (true, Some(file)) = (is_new, &self.file) {
            // A failed write is repeated the next time.
            let _ = append_line(file, host);
        }
    }
}
