//! Lines that a backslash joins.
//!
//! Bash removes a backslash and the newline after it before it splits the text into tokens, so `$\⏎(git push)` is `$(git push)`. The
//! parser does not assemble such a token. It skips a continued line between two tokens, and reports one that may be inside a token.

use super::UnseenReason;
use super::parser::ShellParser;

impl ShellParser<'_, '_> {
    pub(super) fn is_line_continued(&self) -> bool {
        self.rest().starts_with("\\\n")
    }

    /// Whether the next line is empty or begins with a space. No token continues there.
    pub(super) fn is_continued_with_blank(&self) -> bool {
        matches!(self.rest()[2..].chars().next(), None | Some(' ' | '\t' | '\n'))
    }

    /// Skips the end of a line inside a token.
    pub(super) fn join_lines(&mut self) {
        self.script.unseen.push(UnseenReason::JoinedLines);
        self.at += 2;
    }

    /// Skips spaces and continued lines.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            if self.eat(" ") || self.eat("\t") {
                continue;
            }
            if !self.is_line_continued() {
                return;
            }
            if self.is_continued_between_tokens() {
                self.at += 2;
            } else {
                self.join_lines();
            }
        }
    }

    /// Whether the token before this line end is complete. An operator is if a word follows: `&&\⏎ls`, but not `(\⏎(`.
    fn is_continued_between_tokens(&self) -> bool {
        let before = self.text[..self.at].chars().next_back();
        let is_word = |letter: char| letter.is_alphanumeric() || "_./\"'$".contains(letter);
        match before {
            None | Some(' ' | '\t' | '\n') => true,
            _ if self.is_continued_with_blank() => true,
            Some('&' | '|' | ';' | '(' | '<' | '>') => self.rest()[2..].starts_with(is_word),
            Some(_) => false,
        }
    }
}
