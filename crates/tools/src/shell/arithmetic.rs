//! Arithmetic. The shell evaluates the value of a variable in it as another expression, such as `a[$(git push)]`.

use std::collections::HashSet;

/// What an arithmetic expression depends on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arithmetic<'text> {
    /// The expression evaluates the value of a variable or the output of a command.
    pub(super) evaluates: bool,
    /// Variables that the expression sets before it reads them.
    pub(super) relies_on: Vec<&'text str>,
}

/// Parses an expression, whose parts are separated by `;` or `,`. A part `name = …` sets that name for the later parts.
pub(super) fn arithmetic(expression: &str) -> Arithmetic<'_> {
    let mut found = Arithmetic::default();
    let mut set: HashSet<&str> = HashSet::new();
    for part in parts(expression) {
        let part = part.trim();
        let behind = behind_word(part, &[]);
        let name = &part[..part.len() - behind.len()];
        let value = behind.trim_start().strip_prefix('=').filter(|value| !value.starts_with('='));
        let is_set = value.is_some() && name.starts_with(|letter: char| !letter.is_ascii_digit());
        let rest = value.filter(|_| is_set).unwrap_or(part);
        read_part(rest, &set, &mut found);
        if is_set {
            set.insert(name);
        }
    }
    found
}

pub(super) fn evaluates(expression: &str) -> bool {
    arithmetic(expression).evaluates
}

/// The parts of an expression. The shell evaluates all of them, one after the other.
fn parts(expression: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    expression.split(move |letter| {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(letter, ';' | ',')
    })
}

fn read_part<'text>(part: &'text str, set: &HashSet<&str>, found: &mut Arithmetic<'text>) {
    let mut rest = part;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        rest = match letter {
            // `$#`, `$?`, `$$` and `$!` are numbers.
            '$' if after.starts_with(['#', '?', '$', '!']) => &after[1..],
            '$' if after.starts_with("{#") => after.split_once('}').map_or("", |(_, behind)| behind),
            // Quotes don't keep the shell from expanding this later.
            '$' | '`' | '\'' | '\\' => {
                found.evaluates = true;
                return;
            }
            '0'..='9' => behind_word(rest, &['#', '@']),
            'a'..='z' | 'A'..='Z' | '_' => {
                let behind = behind_word(rest, &[]);
                let name = &rest[..rest.len() - behind.len()];
                if !set.contains(name) {
                    found.evaluates = true;
                    return;
                }
                found.relies_on.push(name);
                behind
            }
            _ => after,
        };
    }
}

/// Whether `${inner}` evaluates the value of a variable as a prompt, a name, an offset or a subscript.
pub(super) fn parameter_evaluates(inner: &str) -> bool {
    if inner.ends_with("@P") {
        return true;
    }
    let is_indirect = inner.len() > 1 && inner.starts_with('!');
    let text = inner.strip_prefix(['!', '#']).unwrap_or(inner);
    let behind = behind_word(text, &[]);
    let mut behind = match behind.len() == text.len() {
        true => text.get(text.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default(),
        false => behind,
    };
    // `${!name*}` and `${!name[@]}` are lists of names and of keys.
    if is_indirect && !matches!(behind, "*" | "@" | "[*]" | "[@]") {
        return true;
    }
    if behind.starts_with('[') {
        let after = behind_closing(behind, b'[', b']');
        let subscript = behind[1..behind.len() - after.len()].trim_end_matches(']');
        if evaluates(subscript) {
            return true;
        }
        behind = after;
    }
    behind.strip_prefix(':').is_some_and(|part| !part.starts_with(['-', '=', '?', '+']) && evaluates(part))
}

/// The name that `${name:=…}` or `${name=…}` sets.
pub(super) fn parameter_sets(inner: &str) -> Option<&str> {
    let behind = behind_word(inner, &[]);
    let name = &inner[..inner.len() - behind.len()];
    (behind.starts_with(":=") || behind.starts_with('=')).then_some(name)
}

fn behind_word<'text>(text: &'text str, more: &[char]) -> &'text str {
    text.trim_start_matches(|letter: char| {
        letter.is_ascii_alphanumeric() || letter == '_' || more.contains(&letter)
    })
}

/// The text after the bracket that closes the first one.
pub(super) fn behind_closing(text: &str, opening: u8, closing: u8) -> &str {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        if byte == opening {
            depth += 1;
        } else if byte == closing && depth == 1 {
            return &text[at + 1..];
        } else if byte == closing {
            depth = depth.saturating_sub(1);
        }
    }
    ""
}
