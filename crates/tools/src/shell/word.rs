//! One word: quotes, escapes, patterns.

use super::parser::{ListEnd, ShellParser};
use super::{ShellWord, UnseenReason, WordKind};

/// A word that is being parsed.
#[derive(Debug)]
pub(super) struct WordBuilder {
    text: String,
    kind: WordKind,
}

impl WordBuilder {
    pub(super) fn new() -> Self {
        Self { text: String::new(), kind: WordKind::Literal }
    }

    pub(super) fn push(&mut self, letter: char) {
        self.text.push(letter);
    }

    /// Makes the word at least as uncertain as this.
    pub(super) fn mark(&mut self, kind: WordKind) {
        self.kind = self.kind.max(kind);
    }
}

/// Braces and brackets that are still open in a word.
#[derive(Default)]
struct OpenBrackets {
    bracket: bool,
    /// The position of the open brace, and whether a comma follows it.
    brace: Option<(usize, bool)>,
}

impl<'text> ShellParser<'text, '_> {
    /// The word that begins here. Empty if there is none.
    pub(super) fn word(&mut self) -> Result<ShellWord, UnseenReason> {
        let from = self.at;
        let mut builder = WordBuilder::new();
        let mut opened = OpenBrackets::default();
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '<' | '>' if self.is_process_substitution() => {
                    builder.mark(WordKind::Unknown);
                    self.at += 2;
                    self.substitution(ListEnd::Parenthesis)?;
                }
                '<' | '>' => break,
                '(' => {
                    let before = &self.text[from..self.at];
                    let name = before.strip_suffix("+=").or(before.strip_suffix('=')).unwrap_or("");
                    if is_name(name) {
                        builder.mark(WordKind::Unknown);
                        self.script.names.arrays.insert(name.to_owned());
                        self.nested(Self::array)?;
                    } else if before.ends_with(['?', '*', '+', '@', '!']) {
                        builder.mark(WordKind::Unknown);
                        self.nested(Self::extended_pattern)?;
                    } else {
                        break;
                    }
                }
                '\\' if self.is_line_continued() => {
                    if self.is_continued_with_blank() {
                        break;
                    }
                    self.join_lines();
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        // Bash keeps or drops this backslash, depending on the lines before.
                        None => {
                            self.script.unseen.push(UnseenReason::JoinedLines);
                            builder.push('\\');
                        }
                        Some(letter) => self.take(letter, &mut builder),
                    }
                }
                '\'' => {
                    let inner = self.rest()[1..].find('\'').ok_or(UnseenReason::Syntax)?;
                    builder.text.push_str(&self.rest()[1..=inner]);
                    self.at += inner + 2;
                }
                '"' => self.double_quoted(&mut builder)?,
                '$' => self.dollar(&mut builder, Quoted::No)?,
                '`' => self.backquoted(&mut builder, Quoted::No)?,
                _ => {
                    self.watch(letter, from, &mut opened, &mut builder);
                    self.take(letter, &mut builder);
                }
            }
        }
        if builder.kind >= WordKind::Unknown {
            return Ok(ShellWord { text: self.text[from..self.at].to_owned(), kind: builder.kind });
        }
        Ok(ShellWord { text: builder.text, kind: builder.kind })
    }

    fn take(&mut self, letter: char, builder: &mut WordBuilder) {
        builder.push(letter);
        self.at += letter.len_utf8();
    }

    /// Marks the word as a pattern or a list if this character completes one.
    fn watch(&self, letter: char, from: usize, opened: &mut OpenBrackets, builder: &mut WordBuilder) {
        match letter {
            '*' | '?' => builder.mark(WordKind::Pattern),
            '[' => opened.bracket = true,
            ']' if opened.bracket => builder.mark(WordKind::Pattern),
            '{' if opened.brace.is_none() => opened.brace = Some((self.at, false)),
            ',' => opened.brace = opened.brace.map(|(at, _)| (at, true)),
            '}' => {
                if let Some((at, has_comma)) = opened.brace
                    && (has_comma || self.text[at.max(from)..self.at].contains(".."))
                {
                    builder.mark(WordKind::Words);
                }
            }
            _ => {}
        }
    }

    /// A text in double quotes.
    pub(super) fn double_quoted(&mut self, builder: &mut WordBuilder) -> Result<(), UnseenReason> {
        self.at += 1;
        loop {
            match self.peek().ok_or(UnseenReason::Syntax)? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(letter @ ('$' | '`' | '"' | '\\')) => self.take(letter, builder),
                        _ => builder.push('\\'),
                    }
                }
                '$' => self.dollar(builder, Quoted::Yes)?,
                '`' => self.backquoted(builder, Quoted::Yes)?,
                letter => self.take(letter, builder),
            }
        }
    }

    /// `A=b`, `A+=b`, `A[1]=b` or `A=(b c)` before the name of a command. Returns the name, and the value if it is one word.
    pub(super) fn assignment(&mut self) -> Result<Option<(&'text str, Option<ShellWord>)>, UnseenReason> {
        let rest = self.rest();
        let name = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(0);
        if !is_name(&rest[..name]) {
            return Ok(None);
        }
        if rest[name..].starts_with('[') {
            self.at += name;
            let from = self.at + 1;
            self.nested(Self::subscript)?;
            self.record_evaluation(&self.text[from..self.at - 1]);
            if !self.eat("+=") && !self.eat("=") {
                // No program has such a name.
                return Err(UnseenReason::Syntax);
            }
        } else {
            let Some(after) = rest[name..].strip_prefix("+=").or(rest[name..].strip_prefix('=')) else {
                return Ok(None);
            };
            self.at = self.text.len() - after.len();
        }
        let is_appended = self.text[..self.at].ends_with("+=");
        let name = &rest[..name];
        if self.peek() == Some('(') {
            self.script.names.arrays.insert(name.to_owned());
            self.nested(Self::array)?;
            // What follows without a space belongs to the same word: `a=(x)then ls` runs `ls`.
            self.word()?;
            return Ok(Some((name, None)));
        }
        let value = self.word()?;
        Ok(Some((name, Some(if is_appended { value.appended() } else { value }))))
    }

    /// `[…]` after the name of an array. Spaces in it do not end the word.
    fn subscript(&mut self) -> Result<(), UnseenReason> {
        let mut depth = 0usize;
        let mut unused = WordBuilder::new();
        loop {
            let letter = self.peek().ok_or(UnseenReason::Syntax)?;
            match letter {
                '"' => self.double_quoted(&mut unused)?,
                '$' => self.dollar(&mut unused, Quoted::No)?,
                '`' => self.backquoted(&mut unused, Quoted::No)?,
                '\'' => self.at += self.rest()[1..].find('\'').ok_or(UnseenReason::Syntax)? + 2,
                '\\' if self.is_line_continued() => self.join_lines(),
                '\\' => {
                    self.at += 1;
                    self.at += self.peek().map_or(0, char::len_utf8);
                }
                _ => {
                    self.at += letter.len_utf8();
                    match letter {
                        '[' => depth += 1,
                        ']' if depth == 1 => return Ok(()),
                        ']' => depth -= 1,
                        _ => {}
                    }
                }
            }
        }
    }

    /// `(a b c)`, the value of an array.
    fn array(&mut self) -> Result<(), UnseenReason> {
        self.at += 1;
        loop {
            self.skip_lines();
            if self.eat(")") {
                return Ok(());
            }
            let from = self.at;
            if self.peek() == Some('[') {
                self.nested(Self::subscript)?;
                if self.rest().starts_with('=') || self.rest().starts_with("+=") {
                    self.record_evaluation(&self.text[from + 1..self.at - 1]);
                }
            }
            self.word()?;
            if self.at == from {
                return Err(UnseenReason::Syntax);
            }
        }
    }

    /// The rest of `@(a|b)` after the `@`.
    fn extended_pattern(&mut self) -> Result<(), UnseenReason> {
        self.at += 1;
        loop {
            match self.peek().ok_or(UnseenReason::Syntax)? {
                ')' => {
                    self.at += 1;
                    return Ok(());
                }
                '(' => self.nested(Self::extended_pattern)?,
                '\\' if self.is_line_continued() => self.join_lines(),
                '<' | '>' if self.is_process_substitution() => self.word().map(|_| ())?,
                '|' | ' ' | '\t' | '\n' | '&' | ';' | '<' | '>' => self.at += 1,
                _ => self.word().map(|_| ())?,
            }
        }
    }
}

/// Whether the text is in double quotes or in a here document, where other quotes are ordinary characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    No,
    Yes,
}

/// Whether the text is a valid name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}
