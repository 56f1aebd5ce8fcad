//! What the shell evaluates once more: a variable in arithmetic is taken as an expression itself, and `a[$(git push)]` is one.

use std::collections::HashSet;

/// Whether an arithmetic expression depends on a variable that it does not set itself before.
pub(super) fn has_variable(expression: &str) -> bool {
    let mut set: HashSet<&str> = HashSet::new();
    let mut rest = expression;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        match letter {
            '$' if after.starts_with('(') => rest = behind_closing(after, b'(', b')'), // What runs there is looked at elsewhere.
            '`' => rest = after.split_once('`').map_or("", |(_, behind)| behind),
            // How many there are, how something ended, the number of a process: those are numbers.
            '$' if after.starts_with(['#', '?', '$', '!']) => rest = &after[1..],
            '$' if after.starts_with("{#") => rest = after.split_once('}').map_or("", |(_, behind)| behind),
            '$' => return true,
            '0'..='9' => rest = behind_word(rest, &['#', '@']),
            'a'..='z' | 'A'..='Z' | '_' => {
                let behind = behind_word(rest, &[]);
                let name = &rest[..rest.len() - behind.len()];
                let sets =
                    behind.trim_start().strip_prefix('=').is_some_and(|behind| !behind.starts_with('='));
                if sets {
                    set.insert(name);
                } else if !set.contains(name) {
                    return true;
                }
                rest = behind;
            }
            _ => rest = after,
        }
    }
    false
}

/// Whether `${…}` with this inside evaluates what is in a variable: as a prompt, or where it counts or looks for an element.
pub(super) fn parameter_evaluates(inner: &str) -> bool {
    if inner.ends_with("@P") {
        return true;
    }
    let text = inner.strip_prefix(['!', '#']).unwrap_or(inner);
    let behind = behind_word(text, &[]);
    let mut behind = if behind.len() == text.len() { behind.get(1..).unwrap_or_default() } else { behind };
    if behind.starts_with('[') {
        let after = behind_closing(behind, b'[', b']');
        if has_variable(&behind[1..behind.len() - after.len()]) {
            return true;
        }
        behind = after;
    }
    behind.strip_prefix(':').is_some_and(|part| !part.starts_with(['-', '=', '?', '+']) && has_variable(part))
}

fn behind_word<'text>(text: &'text str, more: &[char]) -> &'text str {
    text.trim_start_matches(|letter: char| {
        letter.is_ascii_alphanumeric() || letter == '_' || more.contains(&letter)
    })
}

/// What follows what closes the bracket that it begins with.
fn behind_closing(text: &str, opening: u8, closing: u8) -> &str {
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
