//! Sockets in a home folder that commands can otherwise reach.
//!
//! Landlock does not guard connecting to a socket that is a file. Where the scope contains the home folder, those that are there when a command
//! starts are hidden one by one: the folders that are known to hold some (`protected`), and those that a short look finds.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Folders below the home folder that are looked into: `~/a/b/c`.
const DEEPEST: usize = 3;
/// Entries that are looked at, so that a large home folder costs a command no more than a few milliseconds.
const MOST_ENTRIES: usize = 4_000;
const MOST_SOCKETS: usize = 64;

/// The sockets that a short look finds, folder by folder, those nearest to the home folder first.
pub(super) fn sockets_in(home: &Path) -> Vec<PathBuf> {
    let (mut sockets, mut seen) = (Vec::new(), 0);
    let mut folders = vec![home.to_owned()];
    for depth in 0..=DEEPEST {
        let mut deeper = Vec::new();
        for entry in folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
            seen += 1;
            if seen > MOST_ENTRIES || sockets.len() == MOST_SOCKETS {
                return sockets;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_socket() => sockets.push(entry.path()),
                Ok(kind) if kind.is_dir() && depth < DEEPEST => deeper.push(entry.path()),
                _ => {}
            }
        }
        folders = deeper;
    }
    sockets
}
