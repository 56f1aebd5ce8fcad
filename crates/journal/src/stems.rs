//! Stemming: removes the endings of words, so that `deployed` and `deployments` are equal. The search index and its
//! callers use the same function.

use longhaul_protocol::{WordRun, word_runs};

/// The shortest stem.
const MIN_STEM: usize = 3;
/// The shortest stem after a derivational suffix was removed.
const MIN_DERIVED_STEM: usize = 4;

/// Derivational suffixes. Removing them leaves stems such as `migrat` of `migration`.
const SUFFIXES: [&str; 6] = ["ment", "ness", "ence", "ance", "ion", "ly"];

/// The stems of a text's words in their order: in lower case, without accents and endings. In a script without spaces,
/// each character counts as a word.
pub fn stems(text: &str) -> Vec<String> {
    let lower: String = text.chars().flat_map(char::to_lowercase).collect();
    let mut words: Vec<String> = Vec::new();
    for run in word_runs(&lower) {
        match run {
            WordRun::Spaced(word) => {
                let letters = word.chars().filter(|letter| !is_combining_mark(*letter));
                words.push(letters.map(without_accent).collect());
            }
            WordRun::Unspaced(characters) => words.extend(characters.chars().map(String::from)),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).map(stem).collect()
}

/// Whether a character is a combining accent.
fn is_combining_mark(character: char) -> bool {
    matches!(character, '\u{0300}'..='\u{036f}')
}

fn without_accent(letter: char) -> char {
    match letter {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
        'ď' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => 'e',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' => 'i',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò'..='ö' | 'ō' | 'ŏ' | 'ő' => 'o',
        'ŕ' | 'ř' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' => 's',
        'ţ' | 'ť' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        other => other,
    }
}

fn stem(word: String) -> String {
    if word.chars().any(char::is_numeric) {
        return word;
    }
    if !word.is_ascii() {
        // The endings of other languages are unknown. Most have two letters.
        let letters = word.chars().count();
        let kept = if letters > 5 { letters - 2 } else { letters };
        return word.chars().take(kept).collect();
    }
    let one = singular(&word);
    let bare = without_suffix(one);
    let ends_like_a_verb = bare.len() < one.len() || one.ends_with('e');
    let bare = bare.strip_suffix('e').filter(|rest| rest.len() >= MIN_STEM).unwrap_or(bare);
    // `migrat` comes from `migrate`, `migrated` and `migration`, `configurat` only from `configuration`.
    let bare = match bare.strip_suffix("at") {
        Some(rest) if ends_like_a_verb && rest.len() >= MIN_DERIVED_STEM => rest,
        _ => bare,
    };
    match bare.strip_suffix('y') {
        Some(rest) if rest.len() >= MIN_STEM => format!("{rest}i"),
        _ => bare.to_owned(),
    }
}

/// Removes the ending of a plural, or of a verb as in `he sails`.
fn singular(word: &str) -> &str {
    let Some(rest) = word.strip_suffix('s').filter(|rest| rest.len() >= MIN_STEM) else { return word };
    if rest.ends_with(['s', 'u', 'i']) {
        return word;
    }
    for hissing in ["che", "she", "xe", "sse", "zze"] {
        if rest.ends_with(hissing) {
            return &rest[..rest.len() - 1];
        }
    }
    // `policies` becomes `polici`, as `policy` does.
    rest.strip_suffix("ie")
        .filter(|short| short.len() >= MIN_STEM)
        .map_or(rest, |short| &rest[..=short.len()])
}

/// Removes the ending of a verb form, or a derivational suffix.
fn without_suffix(word: &str) -> &str {
    let has_vowel = |rest: &str| rest.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    for ending in ["ing", "ed"] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= MIN_STEM
            && has_vowel(rest)
            && !word.ends_with("eed")
        {
            return undouble(rest);
        }
    }
    for ending in SUFFIXES {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= MIN_DERIVED_STEM
        {
            return rest;
        }
    }
    word
}

/// Removes the doubled consonant of `planning`.
fn undouble(rest: &str) -> &str {
    match rest.as_bytes() {
        [.., before, last] if before == last && !b"lsz".contains(last) && rest.len() > MIN_STEM => {
            &rest[..rest.len() - 1]
        }
        _ => rest,
    }
}

#[cfg(test)]
#[path = "stems_tests.rs"]
mod tests;
