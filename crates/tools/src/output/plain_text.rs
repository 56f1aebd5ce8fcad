//! K13: terminal output as plain Unicode text, without ANSI escape sequences and control codes.
//!
//! The text is what a terminal would show in the end. A carriage return begins the line anew, so only the last state
//! of a progress bar is left.

/// Turns any bytes into plain text. Of the control codes only newlines and tabs stay, and no code that reverses the
/// direction of text. Bytes that aren't UTF-8 are replaced.
pub fn plain_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut screen = Screen::default();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => match letters.peek().copied() {
                Some('[') => {
                    letters.next();
                    skip_sequence(&mut letters);
                }
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    letters.next();
                    skip_string(&mut letters);
                }
                // Intermediate bytes and one final byte.
                Some(' '..='/') => {
                    while letters.next_if(|letter| matches!(letter, ' '..='/')).is_some() {}
                    letters.next_if(|letter| matches!(letter, '0'..='~'));
                }
                Some('0'..='~') => {
                    letters.next();
                }
                _ => {}
            },
            '\u{9b}' => skip_sequence(&mut letters),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut letters),
            _ => screen.print(letter),
        }
    }
    screen.shown
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips a control sequence (CSI): parameters and one final letter.
fn skip_sequence(letters: &mut Letters<'_>) {
    while letters.next_if(|letter| matches!(letter, ' '..='?')).is_some() {}
    letters.next_if(|letter| matches!(letter, '@'..='~'));
}

/// Skips an operating system command or another string, up to its end. One without an end stops at the end of the
/// line, or it would swallow everything.
fn skip_string(letters: &mut Letters<'_>) {
    while let Some(letter) = letters.next_if(|letter| *letter != '\n') {
        match letter {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                letters.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Whether a code changes the direction of the text around it, which can make one line look like another.
fn reorders(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[derive(Default)]
struct Screen {
    shown: String,
    /// Byte offset at which the current line begins.
    line: usize,
    /// A carriage return came: the next character starts the line anew. Until then the old text stays.
    returned: bool,
}

impl Screen {
    fn print(&mut self, letter: char) {
        match letter {
            '\n' => {
                self.shown.push('\n');
                self.line = self.shown.len();
                self.returned = false;
            }
            '\r' => self.returned = true,
            '\u{8}' if self.shown.len() > self.line && !self.returned => {
                self.shown.pop();
            }
            _ if letter.is_control() && letter != '\t' => {}
            _ if reorders(letter) => {}
            _ => {
                if self.returned {
                    self.shown.truncate(self.line);
                    self.returned = false;
                }
                self.shown.push(letter);
            }
        }
    }
}

#[cfg(test)]
#[path = "plain_text_tests.rs"]
mod tests;
