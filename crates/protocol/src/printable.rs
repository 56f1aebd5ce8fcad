//! Escaping of paths and names from outside for a terminal, a log or a message: one line, without misleading characters.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path or name that is safe to print. Misleading characters are escaped as in Rust (`\n`, `\u{1b}`, `\xff`). A
/// name with such characters also gets its backslashes escaped, so that two names never look the same.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(&'a [u8]);

/// Paths that can be printed safely.
pub trait PrintablePath {
    /// The path, with control characters and direction marks escaped.
    fn printable(&self) -> Printable<'_>;
}

impl PrintablePath for Path {
    fn printable(&self) -> Printable<'_> {
        Printable(self.as_os_str().as_bytes())
    }
}

/// Makes a name from outside safe to print.
pub fn printable(name: &[u8]) -> Printable<'_> {
    Printable(name)
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(name) = str::from_utf8(self.0)
            && !name.contains(is_misleading)
        {
            return f.write_str(name);
        }
        for chunk in self.0.utf8_chunks() {
            for letter in chunk.valid().chars() {
                match letter {
                    '\\' => f.write_str("\\\\")?,
                    _ if is_misleading(letter) => write!(f, "{}", letter.escape_default())?,
                    _ => write!(f, "{letter}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Whether a character controls a terminal, ends a line, changes the direction of writing, or is invisible.
pub fn is_misleading(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}')
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character is shown as nothing or as a blank although it is no white space, so that it can hide a difference or push text out
/// of sight. The selectors U+FE0E and U+FE0F are none: they belong to many emoji.
pub fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
    ) || matches!(letter, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{2800}')
        || matches!(letter, '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0080}'..='\u{e0fff}')
}

#[cfg(test)]
#[path = "printable_tests.rs"]
mod tests;
