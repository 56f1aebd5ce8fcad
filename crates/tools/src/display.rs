//! Names of files as the model is shown them: one line each, with nothing in them that could pass for something else.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use longhaul_protocol::printable;

/// A path, escaped where it has to be.
pub(crate) fn display_path(path: &Path) -> String {
    display_name(path.as_os_str().as_bytes())
}

/// A name, escaped where it has to be.
pub(crate) fn display_name(name: &[u8]) -> String {
    printable(name).to_string()
}

/// The longest beginning that has at most so many bytes and ends between two characters.
pub(crate) fn truncate_str(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(truncate_str("aéb", 2), "a");
        assert_eq!(truncate_str("aéb", 9), "aéb");
    }
}
