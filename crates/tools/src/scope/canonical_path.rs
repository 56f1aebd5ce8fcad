//! From a path as it was written to its canonical path, without links.

use std::path::{Component, Path, PathBuf};

/// The system refuses longer paths, and resolving one would take long.
pub(super) const MAX_PATH_BYTES: usize = 4_096;

/// Expands `~/`, and makes a path relative to a folder.
pub(super) fn expand(folder: &Path, text: &str) -> PathBuf {
    let in_own_folder = match text {
        "~" => Some(""),
        _ => text.strip_prefix("~/"),
    };
    match (in_own_folder, std::env::home_dir()) {
        (Some(rest), Some(own)) => own.join(rest.trim_start_matches('/')),
        _ => folder.join(text),
    }
}

/// Whether a path can only name a folder, because of how it ends.
pub(super) fn names_only_folder(text: &str) -> bool {
    let last = text.rsplit('/').next().unwrap_or_default();
    matches!(last, "" | "." | "..")
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Resolves the existing part of a path through the real file system, and appends the rest. `None` if the rest goes
/// up: `missing/../x` leads nowhere.
///
/// The result is text and may be outdated a moment later. It is for checking; opening follows no link at all.
pub(super) fn canonicalize_existing(path: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = path.components().collect();
    (1..=parts.len())
        .rev()
        .find_map(|end| {
            // If this part can't be resolved, a shorter one may be; `/` always can.
            let existing = parts[..end].iter().collect::<PathBuf>().canonicalize().ok()?;
            Some(existing.join(parts[end..].iter().collect::<PathBuf>()))
        })
        .map(|path| trimmed(&path))
        .filter(|path| !path.components().any(|part| part == Component::ParentDir))
}

/// Without the slash that joining an empty path leaves at the end: it would make a different key of the same file.
fn trimmed(path: &Path) -> PathBuf {
    path.components().collect()
}
