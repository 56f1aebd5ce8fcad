//! What the shell evaluates once more: a variable in arithmetic is taken as an expression itself, and `a[$(git push)]` is one.

/// Whether an arithmetic expression depends on a variable that it does not set itself before.
pub(super) fn has_variable(expression: &str) -> bool {
    let mut set: Vec<&str> = Vec::new();
    let mut rest = expression;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        match letter {
            '$' if after.starts_with('(') => rest = behind_parentheses(after),
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
                    set.push(name);
                } else if !set.contains(&name) {
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
    if let Some(subscript) = behind.strip_prefix('[') {
        let end = subscript.rfind(']').unwrap_or(subscript.len());
        if has_variable(&subscript[..end]) {
            return true;
        }
        behind = subscript.get(end + 1..).unwrap_or_default();
    }
    behind.strip_prefix(':').is_some_and(|part| !part.starts_with(['-', '=', '?', '+']) && has_variable(part))
}

fn behind_word<'text>(text: &'text str, more: &[char]) -> &'text str {
    text.trim_start_matches(|letter: char| {
        letter.is_ascii_alphanumeric() || letter == '_' || more.contains(&letter)
    })
}

/// What follows what these parentheses close. What runs in them is looked at elsewhere.
fn behind_parentheses(text: &str) -> &str {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return &text[at + 1..],
            b')' => depth -= 1,
            _ => {}
        }
    }
    ""
}
