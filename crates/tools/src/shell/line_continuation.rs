//! Lines that a backslash joins.
//!
//! Bash removes a backslash and the newline behind it before it reads tokens, so that `$\⏎(git push)` is `$(git push)`. The parser doesn't
//! put such a token together. It passes over a continued line between two tokens, and reports one that may stand inside of a token.

use super::UnseenReason;
use super::parser::ShellParser;

impl ShellParser<'_, '_> {
    pub(super) fn is_line_continued(&self) -> bool {
        self.rest().starts_with("\\\n")
    }

    /// Whether the next line is empty or begins with a blank. No token goes on there.
    pub(super) fn is_continued_with_blank(&self) -> bool {
        matches!(self.rest()[2..].chars().next(), None | Some(' ' | '\t' | '\n'))
    }

    /// Passes over the end of a line inside of a token.
    pub(super) fn join_lines(&mut self) {
        self.script.unseen.push(UnseenReason::JoinedLines);
        self.at += 2;
    }

    /// Passes over blanks and continued lines.
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

    /// Whether a token ends before the end of this line. An operator does if a word follows: `&&\⏎ls`, but not `(\⏎(`.
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
