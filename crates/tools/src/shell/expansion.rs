//! Expansions that begin with `$`, and backquotes.

use super::analysis::VariableScope;
use super::arithmetic::{arithmetic, parameter_evaluates, parameter_sets};
use super::parser::{ListEnd, ShellParser};
use super::word::{Quoted, WordBuilder};
use super::{UnseenReason, WordKind};

impl ShellParser<'_, '_> {
    /// Anything that begins with `$`.
    pub(super) fn dollar(&mut self, builder: &mut WordBuilder, quoted: Quoted) -> Result<(), UnseenReason> {
        let after = &self.rest()[1..];
        let kind = if quoted == Quoted::Yes { WordKind::Unknown } else { WordKind::Words };
        if after.starts_with("\\\n") {
            self.script.unseen.push(UnseenReason::JoinedLines);
        }
        match (after.chars().next(), quoted) {
            (Some('('), _) => {
                builder.mark(kind);
                if after.starts_with("((") && self.arithmetic("$((")? {
                    return Ok(());
                }
                self.at += 2;
                self.substitution(ListEnd::Parenthesis)
            }
            (Some('{'), _) => {
                let from = self.at;
                self.nested(|parser| parser.parameter(quoted))?;
                // `"${a[@]}"` becomes several words even in quotes.
                let is_list = self.text[from..self.at].contains('@');
                builder.mark(if is_list { WordKind::Words } else { kind });
                Ok(())
            }
            (Some('['), _) => {
                builder.mark(kind);
                let end = after.find(']').ok_or(UnseenReason::Syntax)?;
                // A later bracket may be the closing one, but the expansions are the same.
                self.expansions_in(&after[1..end]);
                self.record_evaluation(&after[1..end]);
                self.at += 1 + end + 1;
                Ok(())
            }
            (Some('\''), Quoted::No) => self.escaped(builder),
            (Some('"'), Quoted::No) => {
                self.at += 1;
                self.double_quoted(builder)
            }
            (Some(letter), _) if letter.is_ascii_alphabetic() || letter == '_' => {
                builder.mark(kind);
                let name = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                self.at += 1 + name.unwrap_or(after.len());
                Ok(())
            }
            // These are numbers, or empty.
            (Some('#' | '?' | '$' | '!'), _) => {
                builder.mark(WordKind::Unknown);
                self.at += 2;
                Ok(())
            }
            (Some('0'..='9' | '*' | '@' | '-'), _) => {
                builder.mark(if after.starts_with('@') { WordKind::Words } else { kind });
                self.at += 2;
                Ok(())
            }
            _ => {
                builder.push('$');
                self.at += 1;
                Ok(())
            }
        }
    }

    /// `${…}`. If a space follows the brace, it contains commands.
    fn parameter(&mut self, quoted: Quoted) -> Result<(), UnseenReason> {
        self.at += 2;
        if matches!(self.peek(), Some(' ' | '\t' | '\n' | '|' | '(')) {
            self.eat("|");
            return self.substitution(ListEnd::Word("}"));
        }
        let from = self.at;
        let single_quotes_count = quoted == Quoted::No || !gives_a_value(self.rest());
        let mut unused = WordBuilder::new();
        loop {
            match self.peek().ok_or(UnseenReason::Syntax)? {
                '}' => {
                    let inner = &self.text[from..self.at];
                    if parameter_evaluates(inner) {
                        self.script.unseen.push(UnseenReason::Evaluated(format!("${{{inner}}}")));
                    }
                    if let Some(name) = parameter_sets(inner) {
                        self.record_variable(name, None, VariableScope::Shell);
                    }
                    self.at += 1;
                    return Ok(());
                }
                '\\' if self.is_line_continued() => self.join_lines(),
                '\\' => {
                    self.at += 1;
                    self.at += self.peek().map_or(0, char::len_utf8);
                }
                '\'' if single_quotes_count => {
                    let inner = self.rest()[1..].find('\'').ok_or(UnseenReason::Syntax)?;
                    self.at += inner + 2;
                }
                '"' => self.double_quoted(&mut unused)?,
                '$' => self.dollar(&mut unused, quoted)?,
                '`' => self.backquoted(&mut unused, quoted)?,
                '<' | '>' if quoted == Quoted::No && self.is_process_substitution() => {
                    self.at += 2;
                    self.substitution(ListEnd::Parenthesis)?;
                }
                letter => self.at += letter.len_utf8(),
            }
        }
    }

    /// Parses an arithmetic expression after this opening. Returns false and consumes nothing if it is none.
    pub(super) fn arithmetic(&mut self, opening: &str) -> Result<bool, UnseenReason> {
        let inner = &self.rest()[opening.len()..];
        let Some(end) = arithmetic_end(inner) else { return Ok(false) };
        self.nested(|parser| {
            parser.expansions_in(&inner[..end]);
            parser.record_evaluation(&inner[..end]);
            Ok(())
        })?;
        self.at += opening.len() + end + 2;
        Ok(true)
    }

    /// Records a reason if an arithmetic expression evaluates a variable or the output of a command.
    pub(super) fn record_evaluation(&mut self, expression: &str) {
        let found = arithmetic(expression);
        if found.evaluates {
            self.script.unseen.push(UnseenReason::Evaluated(expression.trim().to_owned()));
        }
        self.script.names.numbers.extend(found.relies_on.into_iter().map(str::to_owned));
    }

    /// Commands in backquotes.
    pub(super) fn backquoted(
        &mut self,
        builder: &mut WordBuilder,
        quoted: Quoted,
    ) -> Result<(), UnseenReason> {
        builder.mark(if quoted == Quoted::Yes { WordKind::Unknown } else { WordKind::Words });
        self.at += 1;
        let mut script = String::new();
        loop {
            let letter = self.peek().ok_or(UnseenReason::Syntax)?;
            self.at += letter.len_utf8();
            match (letter, self.peek()) {
                ('`', _) => break,
                // Bash joins these lines before it looks for quotes in the script.
                ('\\', Some('\n')) => {
                    self.script.unseen.push(UnseenReason::JoinedLines);
                    self.at += 1;
                }
                ('\\', Some(next @ ('`' | '\\' | '$'))) => {
                    script.push(next);
                    self.at += 1;
                }
                ('\\', Some('"')) if quoted == Quoted::Yes => {
                    script.push('"');
                    self.at += 1;
                }
                _ => script.push(letter),
            }
        }
        self.inner_script(&script);
        Ok(())
    }

    /// `$'…'`.
    fn escaped(&mut self, builder: &mut WordBuilder) -> Result<(), UnseenReason> {
        self.at += 2;
        loop {
            let letter = self.peek().ok_or(UnseenReason::Syntax)?;
            self.at += letter.len_utf8();
            match letter {
                '\'' => return Ok(()),
                '\\' => match self.escape() {
                    // Bash ends the text there, or produces bytes that are not UTF-8.
                    None | Some('\0') => builder.mark(WordKind::Unknown),
                    Some(letter) => builder.push(letter),
                },
                letter => builder.push(letter),
            }
        }
    }

    /// The character after a backslash in `$'…'`.
    fn escape(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        let mut number = |most: usize, radix: u32| {
            let rest = &self.text[self.at..];
            let length = rest.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
            self.at += length;
            u32::from_str_radix(&rest[..length], radix).ok()
        };
        match letter {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\x07'),
            'b' => Some('\x08'),
            'e' | 'E' => Some('\x1b'),
            'f' => Some('\x0c'),
            'v' => Some('\x0b'),
            '\\' | '\'' | '"' | '?' => Some(letter),
            'x' => number(2, 16).filter(|byte| *byte < 128).and_then(char::from_u32),
            'u' => number(4, 16).and_then(char::from_u32),
            'U' => number(8, 16).and_then(char::from_u32),
            '0'..='7' => {
                self.at -= 1;
                let rest = &self.text[self.at..];
                let length = rest.bytes().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
                self.at += length;
                let byte = u32::from_str_radix(&rest[..length], 8).ok()?;
                (byte < 128).then(|| char::from_u32(byte)).flatten()
            }
            _ => None,
        }
    }

    /// Parses the expansions in a text where quotes have no meaning: a here document, a subscript, arithmetic.
    pub(super) fn expansions_in(&mut self, text: &str) {
        let depth = self.depth;
        let mut inner = ShellParser { depth, ..ShellParser::new(text, self.script) };
        if let Err(unseen) = inner.expansions() {
            self.script.unseen.push(unseen);
        }
    }

    fn expansions(&mut self) -> Result<(), UnseenReason> {
        let mut unused = WordBuilder::new();
        while let Some(letter) = self.peek() {
            match letter {
                '\\' => {
                    self.at += 1;
                    self.at += self.peek().map_or(0, char::len_utf8);
                }
                '$' => self.dollar(&mut unused, Quoted::Yes)?,
                '`' => self.backquoted(&mut unused, Quoted::Yes)?,
                letter => self.at += letter.len_utf8(),
            }
        }
        Ok(())
    }
}

/// Whether a text after `${` is like `x:-other`. In such an expansion, single quotes inside double quotes are ordinary characters.
fn gives_a_value(text: &str) -> bool {
    let text = text.strip_prefix('!').unwrap_or(text);
    let name = text.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    let after = if name.len() == text.len() { text.get(1..).unwrap_or_default() } else { name };
    let after = match after.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((_, after)) => after,
        None => after,
    };
    after.strip_prefix(':').unwrap_or(after).starts_with(['-', '=', '?', '+'])
}

/// The position of the `))` that closes an arithmetic expression. `None` if the text is a subshell in a subshell.
fn arithmetic_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\'' => at += 1 + text.get(at + 1..)?.find('\'')?,
            b'"' => {
                at += 1;
                while *bytes.get(at)? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'(' => depth += 1,
            b')' if depth > 0 => depth -= 1,
            b')' => return (bytes.get(at + 1) == Some(&b')')).then_some(at),
            _ => {}
        }
        at += 1;
    }
    None
}
