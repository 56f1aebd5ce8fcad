//! From a path as it was written to the one path without links that it leads to.

use std::path::{Component, Path, PathBuf};

/// Longer paths are refused by the system, and looking for their existing part would take long.
pub(super) const MAX_PATH_BYTES: usize = 4_096;

/// What a text means from a folder on: absolute as it is, `~/` from the person's own folder on.
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

/// Whether a path is written as only that of a folder is.
pub(super) fn names_only_folder(text: &str) -> bool {
    let last = text.rsplit('/').next().unwrap_or_default();
    matches!(last, "" | "." | "..")
}

/// From the process's folder on, if it is relative.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Resolves the part that exists through the real file system, and adds the rest as it is. None if the rest goes up:
/// `missing/../x` leads nowhere.
///
/// The answer is only text, and may be wrong a moment later. It is for checking; opening goes through no link at all.
pub(super) fn canonicalize_existing(path: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = path.components().collect();
    (1..=parts.len())
        .rev()
        .find_map(|end| {
            // Whatever the reason why this part can't be resolved: a shorter one may be, and `/` always can.
            let existing = parts[..end].iter().collect::<PathBuf>().canonicalize().ok()?;
            Some(existing.join(parts[end..].iter().collect::<PathBuf>()))
        })
        .map(|path| trimmed(&path))
        .filter(|path| !path.components().any(|part| part == Component::ParentDir))
}

/// Joining nothing leaves a slash at the end, which would make a different key of the same file.
fn trimmed(path: &Path) -> PathBuf {
    path.components().collect()
}
