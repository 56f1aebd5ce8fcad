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
        let command_behind_options = behind_word(part, &[]);
        let name = &part[..part.len() - command_behind_options.len()];
        let value =
            command_behind_options.trim_start().strip_prefix('=').filter(|value| !value.starts_with('='));
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
            '$' if after.starts_with("{#") => {
                after.split_once('}').map_or("", |(_, command_behind_options)| command_behind_options)
            }
            // Quotes do not prevent the shell from expanding this later.
            '$' | '`' | '\'' | '\\' => {
                found.evaluates = true;
                return;
            }
            '0'..='9' => behind_word(rest, &['#', '@']),
            'a'..='z' | 'A'..='Z' | '_' => {
                let command_behind_options = behind_word(rest, &[]);
                let name = &rest[..rest.len() - command_behind_options.len()];
                if !set.contains(name) {
                    found.evaluates = true;
                    return;
                }
                found.relies_on.push(name);
                command_behind_options
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
    let command_behind_options = behind_word(text, &[]);
    let mut command_behind_options = match command_behind_options.len() == text.len() {
        true => text.get(text.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default(),
        false => command_behind_options,
    };
    // `${!name*}` and `${!name[@]}` are lists of names and of keys.
    if is_indirect && !matches!(command_behind_options, "*" | "@" | "[*]" | "[@]") {
        return true;
    }
    if command_behind_options.starts_with('[') {
        let after = behind_closing(command_behind_options, b'[', b']');
        let subscript =
            command_behind_options[1..command_behind_options.len() - after.len()].trim_end_matches(']');
        if evaluates(subscript) {
            return true;
        }
        command_behind_options = after;
    }
    command_behind_options
        .strip_prefix(':')
        .is_some_and(|part| !part.starts_with(['-', '=', '?', '+']) && evaluates(part))
}

/// The name that `${name:=…}` or `${name=…}` sets.
pub(super) fn parameter_sets(inner: &str) -> Option<&str> {
    let command_behind_options = behind_word(inner, &[]);
    let name = &inner[..inner.len() - command_behind_options.len()];
    (command_behind_options.starts_with(":=") || command_behind_options.starts_with('=')).then_some(name)
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
