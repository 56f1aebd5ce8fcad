//! One word: quotes, escapes, patterns.

use super::grammar::{Close, Parser};
use super::{Kind, Unseen, Word};

/// A word while it is read.
#[derive(Debug)]
pub(super) struct Draft {
    text: String,
    kind: Kind,
}

impl Draft {
    pub(super) fn new() -> Self {
        Self { text: String::new(), kind: Kind::Literal }
    }

    pub(super) fn push(&mut self, letter: char) {
        self.text.push(letter);
    }

    /// It is at least as uncertain as this.
    pub(super) fn becomes(&mut self, kind: Kind) {
        self.kind = self.kind.max(kind);
    }
}

/// What has to be seen of braces and brackets until they are closed.
#[derive(Default)]
struct Opened {
    bracket: bool,
    /// Where it was opened, and whether there was a comma since.
    brace: Option<(usize, bool)>,
}

impl<'text> Parser<'text, '_> {
    /// The word that begins here, which is empty if none does.
    pub(super) fn word(&mut self) -> Result<Word, Unseen> {
        let from = self.at;
        let mut draft = Draft::new();
        let mut opened = Opened::default();
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '<' | '>' if self.is_process_substitution() => {
                    draft.becomes(Kind::Unknown);
                    self.at += 2;
                    self.substitution(Close::Parenthesis)?;
                }
                '<' | '>' => break,
                '(' => {
                    let before = &self.text[from..self.at];
                    let name = before.strip_suffix("+=").or(before.strip_suffix('=')).unwrap_or("");
                    if is_name(name) {
                        draft.becomes(Kind::Unknown);
                        self.script.names.arrays.insert(name.to_owned());
                        self.nested(Self::array)?;
                    } else if before.ends_with(['?', '*', '+', '@', '!']) {
                        draft.becomes(Kind::Unknown);
                        self.nested(Self::extended_pattern)?;
                    } else {
                        break;
                    }
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        None => draft.push('\\'),
                        Some('\n') => self.at += 1,
                        Some(letter) => self.take(letter, &mut draft),
                    }
                }
                '\'' => {
                    let inner = self.rest()[1..].find('\'').ok_or(Unseen::Syntax)?;
                    draft.text.push_str(&self.rest()[1..=inner]);
                    self.at += inner + 2;
                }
                '"' => self.double_quoted(&mut draft)?,
                '$' => self.dollar(&mut draft, Quoted::No)?,
                '`' => self.backquoted(&mut draft, Quoted::No)?,
                _ => {
                    self.watch(letter, from, &mut opened, &mut draft);
                    self.take(letter, &mut draft);
                }
            }
        }
        if draft.kind >= Kind::Unknown {
            return Ok(Word { text: self.text[from..self.at].to_owned(), kind: draft.kind });
        }
        Ok(Word { text: draft.text, kind: draft.kind })
    }

    fn take(&mut self, letter: char, draft: &mut Draft) {
        draft.push(letter);
        self.at += letter.len_utf8();
    }

    /// Whether the word becomes a pattern with this letter.
    fn watch(&self, letter: char, from: usize, opened: &mut Opened, draft: &mut Draft) {
        match letter {
            '*' | '?' => draft.becomes(Kind::Pattern),
            '[' => opened.bracket = true,
            ']' if opened.bracket => draft.becomes(Kind::Pattern),
            '{' if opened.brace.is_none() => opened.brace = Some((self.at, false)),
            ',' => opened.brace = opened.brace.map(|(at, _)| (at, true)),
            '}' => {
                if let Some((at, has_comma)) = opened.brace
                    && (has_comma || self.text[at.max(from)..self.at].contains(".."))
                {
                    draft.becomes(Kind::Words);
                }
            }
            _ => {}
        }
    }

    /// From one double quote to the other.
    pub(super) fn double_quoted(&mut self, draft: &mut Draft) -> Result<(), Unseen> {
        self.at += 1;
        loop {
            match self.peek().ok_or(Unseen::Syntax)? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(letter @ ('$' | '`' | '"' | '\\')) => self.take(letter, draft),
                        _ => draft.push('\\'),
                    }
                }
                '$' => self.dollar(draft, Quoted::Yes)?,
                '`' => self.backquoted(draft, Quoted::Yes)?,
                letter => self.take(letter, draft),
            }
        }
    }

    /// `A=b`, `A+=b`, `A[1]=b`, `A=(b c)`, before the name of a command. Says which name it sets, if there was one, and its value if
    /// that is one word.
    pub(super) fn assignment(&mut self) -> Result<Option<(&'text str, Option<Word>)>, Unseen> {
        let rest = self.rest();
        let name = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(0);
        if !is_name(&rest[..name]) {
            return Ok(None);
        }
        if rest[name..].starts_with('[') {
            self.at += name;
            let from = self.at + 1;
            self.nested(Self::subscript)?;
            self.evaluated(&self.text[from..self.at - 1]);
            if !self.eat("+=") && !self.eat("=") {
                // A command with such a name, which does not exist.
                return Err(Unseen::Syntax);
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
            return Ok(Some((name, None)));
        }
        let value = self.word()?;
        Ok(Some((name, Some(if is_appended { value.appended() } else { value }))))
    }

    /// `[…]` behind the name of an array, in which blanks don't end the word.
    fn subscript(&mut self) -> Result<(), Unseen> {
        let mut depth = 0usize;
        let mut unused = Draft::new();
        loop {
            let letter = self.peek().ok_or(Unseen::Syntax)?;
            match letter {
                '"' => self.double_quoted(&mut unused)?,
                '$' => self.dollar(&mut unused, Quoted::No)?,
                '`' => self.backquoted(&mut unused, Quoted::No)?,
                '\'' => self.at += self.rest()[1..].find('\'').ok_or(Unseen::Syntax)? + 2,
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
    fn array(&mut self) -> Result<(), Unseen> {
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
                    self.evaluated(&self.text[from + 1..self.at - 1]);
                }
            }
            self.word()?;
            if self.at == from {
                return Err(Unseen::Syntax);
            }
        }
    }

    /// What follows the `@` of `@(a|b)`.
    fn extended_pattern(&mut self) -> Result<(), Unseen> {
        self.at += 1;
        loop {
            match self.peek().ok_or(Unseen::Syntax)? {
                ')' => {
                    self.at += 1;
                    return Ok(());
                }
                '(' => self.nested(Self::extended_pattern)?,
                '<' | '>' if self.is_process_substitution() => self.word().map(|_| ())?,
                '|' | ' ' | '\t' | '\n' | '&' | ';' | '<' | '>' => self.at += 1,
                _ => self.word().map(|_| ())?,
            }
        }
    }
}

/// Whether something stands in double quotes, or in a here document, where others don't count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    No,
    Yes,
}

/// The name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}
