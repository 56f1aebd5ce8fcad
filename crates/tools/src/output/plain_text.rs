//! K13: what a command printed, as plain text: without colours and control codes, and always Unicode.
//!
//! It is what a terminal would show in the end, as far as that is one line after another: a carriage return begins the
//! line anew, so of a progress bar only its last state is left.

/// Plain text from any bytes. Of the control codes only ends of lines and tabs are left, and none that turns text around; what
/// isn't UTF-8 is replaced.
pub fn plain(bytes: &[u8]) -> String {
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
                // A few letters in between, and one that ends it.
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

/// A colour, a movement: numbers, and a letter that ends it. What doesn't belong to one is text again.
fn skip_sequence(letters: &mut Letters<'_>) {
    while letters.next_if(|letter| matches!(letter, ' '..='?')).is_some() {}
    letters.next_if(|letter| matches!(letter, '@'..='~'));
}

/// A title, a link: anything up to its end. One without an end ends with its line, or it would swallow everything.
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

/// A code that changes in which direction the text around it is shown: with it, a line looks like another one.
fn reorders(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// What is shown so far.
#[derive(Default)]
struct Screen {
    shown: String,
    /// Where the line began that is being printed.
    line: usize,
    /// The next letter begins the line anew. Until one comes, what is there stays.
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
