//! Hosts that have answered before. If such a host can't be reached, the network is down and the caller waits for it.
//! A host that never answered may not exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::cache_file::{append_line, read_lines};

/// The hosts and their cache file, which has one host on each line and may be deleted at any time.
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
            // If the write fails, the next process repeats it.
            let _ = append_line(file, host);
        }
    }
}
