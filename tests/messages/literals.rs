//! The string literals of Rust source: a lexer that knows strings, characters and comments, and nothing else.

/// A string literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal {
    /// Its first line, from 1.
    pub(crate) line: usize,
    /// The code before it, at most 40 characters.
    pub(crate) before: String,
    /// Its value.
    pub(crate) text: String,
}

/// All string literals of a source file outside of comments, in order.
pub(crate) fn string_literals(code: &str) -> Vec<Literal> {
    let mut lexer = Lexer { code, at: 0, found: Vec::new() };
    while lexer.at < code.len() {
        lexer.step();
    }
    lexer.found
}

struct Lexer<'a> {
    code: &'a str,
    at: usize,
    found: Vec<Literal>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.code[self.at..]
    }

    fn step(&mut self) {
        let rest = self.rest();
        if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if let Some(hashes) = raw_string_hashes(rest) {
            let start = hashes + 2;
            let close = format!("\"{}", "#".repeat(hashes));
            let length = rest[start..].find(&close).unwrap_or(rest.len() - start);
            let text = rest[start..start + length].to_owned();
            self.push(text, start + length + close.len());
        } else if let Some(content) = rest.strip_prefix('"') {
            let (text, length) = unescape(content);
            self.push(text, length + 2);
        } else if rest.starts_with('\'') {
            self.at += character_length(rest);
        } else {
            self.at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }

    fn push(&mut self, text: String, length: usize) {
        let line = self.code[..self.at].matches('\n').count() + 1;
        let before: Vec<char> = self.code[..self.at].chars().rev().take(40).collect();
        self.found.push(Literal { line, before: before.into_iter().rev().collect(), text });
        self.at = (self.at + length).min(self.code.len());
    }
}

/// The number of `#` if a raw string begins here.
fn raw_string_hashes(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// The value of a string up to its closing quote, and the bytes up to there.
fn unescape(rest: &str) -> (String, usize) {
    let mut text = String::new();
    let mut letters = rest.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (text, at),
            '\\' => match letters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                // A backslash at the end of a line skips the white space that begins the next one.
                Some((_, '\n')) => while letters.next_if(|(_, next)| next.is_whitespace()).is_some() {},
                Some((_, other)) => text.push(other),
                None => {}
            },
            letter => text.push(letter),
        }
    }
    (text, rest.len())
}

/// The bytes of a character literal, or of the quote of a lifetime.
fn character_length(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => {
            rest[2..].find('\'').filter(|at| *at < 12).map_or(1, |at| if at == 0 { 4 } else { at + 3 })
        }
        Some((at, letter)) if rest[at + letter.len_utf8()..].starts_with('\'') => at + letter.len_utf8() + 1,
        _ => 1,
    }
}
