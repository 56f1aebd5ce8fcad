//! Paths and names from outside, as they may be shown in a terminal, a log or a message: one line, and nothing in them that could pass
//! for something else.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path or name that is safe to print. What could mislead is escaped as in Rust (`\n`, `\u{1b}`, `\xff`), and then backslashes too, so
/// that two names never look the same.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(&'a [u8]);

/// Paths as they are shown.
pub trait PrintablePath {
    /// The path without control characters and without what changes the direction of writing.
    fn printable(&self) -> Printable<'_>;
}

impl PrintablePath for Path {
    fn printable(&self) -> Printable<'_> {
        Printable(self.as_os_str().as_bytes())
    }
}

/// A name from outside that is safe to print.
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

/// Whether a character can drive a terminal, end a line, change the direction of writing, or is never seen.
pub fn is_misleading(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}')
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
#[path = "printable_tests.rs"]
mod tests;
