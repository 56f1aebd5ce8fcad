//! Names of files as the model is shown them: one line each, with nothing in them that could pass for something else.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path, escaped where it has to be.
pub(crate) fn shown_path(path: &Path) -> String {
    shown_name(path.as_os_str().as_bytes())
}

/// A name as it is, if it is Unicode without control codes. Otherwise what is not is escaped as in Rust (`\n`, `\u{1b}`,
/// `\xff`), and backslashes too, so that two names never look the same.
pub(crate) fn shown_name(name: &[u8]) -> String {
    if let Ok(name) = str::from_utf8(name)
        && !name.contains(is_misleading)
    {
        return name.to_owned();
    }
    let mut shown = String::with_capacity(name.len() + 8);
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => shown.push_str("\\\\"),
                _ if is_misleading(letter) => shown.extend(letter.escape_default()),
                _ => shown.push(letter),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string can't fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// Control codes, ends of lines, and what changes the direction of writing.
fn is_misleading(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}')
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The longest beginning that has at most so many bytes and ends between two characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_name_is_shown_as_it_is() {
        assert_eq!(shown_name("café/日本 \\n.txt".as_bytes()), "café/日本 \\n.txt");
    }

    #[test]
    fn a_name_that_could_mislead_is_escaped() {
        assert_eq!(shown_name(b"a\nb\x1b[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown_name(b"caf\xe9\\n"), "caf\\xe9\\\\n");
        assert_eq!(shown_name("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("aéb", 2), "a");
        assert_eq!(cut("aéb", 9), "aéb");
    }
}
