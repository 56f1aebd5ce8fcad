//! The processes of a home that finish turns, for tests in which others die.

use std::path::{Path, PathBuf};

/// The command lines of the processes of this home that finish a turn.
pub(crate) fn resuming_processes(home: &Path) -> Vec<String> {
    let home = format!("LONGHAUL_HOME={}", home.display());
    let folders = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let read = |path: PathBuf| std::fs::read(path).unwrap_or_default();
    let is_of_home = |folder: &PathBuf| {
        read(folder.join("environ")).split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let words = |folder: PathBuf| String::from_utf8_lossy(&read(folder.join("cmdline"))).replace('\0', " ");
    folders.filter(is_of_home).map(words).filter(|words| words.contains(" resume ")).collect()
}
