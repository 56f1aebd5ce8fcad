//! Names of files and texts as the model sees them: escaped to one line, and truncated.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use longhaul_protocol::printable;

/// A path with control characters escaped, so that it stays on one line.
pub(crate) fn display_path(path: &Path) -> String {
    display_name(path.as_os_str().as_bytes())
}

pub(crate) fn display_name(name: &[u8]) -> String {
    printable(name).to_string()
}

/// The longest prefix of at most `max_bytes` that ends between two characters.
pub(crate) fn truncate_str(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// The longest prefix of at most `max_bytes` that ends between two characters, with `…` at its end if the text was longer.
pub fn truncate_with_ellipsis(text: &str, max_bytes: usize) -> String {
    let short = truncate_str(text, max_bytes);
    format!("{short}{}", if short.len() < text.len() { "…" } else { "" })
}

#[cfg(test)]
#[path = "display_tests.rs"]
mod tests;
