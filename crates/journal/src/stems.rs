//! The words of a text without their endings, so that `deployed` and `deployments` are the same. What a record is about is indexed by
//! these, and whoever compares a text with it uses the same function.

use crate::search::is_unspaced;

/// What is left of a word has so many letters at least.
const LEAST: usize = 3;
/// The same, where an ending makes another word of it.
const LEAST_OF_ANOTHER: usize = 4;

/// Endings that make another word of one, the longest first. What may be left of it: `migrat` of `migration`.
const ENDINGS: [&str; 6] = ["ment", "ness", "ence", "ance", "ion", "ly"];

/// The words of a text in their order: in lower case, without accents and endings. Each character of a script without spaces stands for
/// itself.
pub fn stems(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for character in text.chars().flat_map(char::to_lowercase) {
        if is_mark(character) {
            continue;
        }
        if is_unspaced(character) {
            words.push(character.to_string());
            is_open = false;
        } else if character.is_alphanumeric() {
            match words.last_mut() {
                Some(last) if is_open => last.push(without_accent(character)),
                _ => words.push(without_accent(character).to_string()),
            }
            is_open = true;
        } else {
            is_open = false;
        }
    }
    words.into_iter().map(stem).collect()
}

/// Accents that are characters of their own.
fn is_mark(character: char) -> bool {
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
        // Endings of other scripts are not known; most have two letters.
        let letters = word.chars().count();
        let kept = if letters > 5 { letters - 2 } else { letters };
        return word.chars().take(kept).collect();
    }
    let one = singular(&word);
    let bare = bare(one);
    let ends_like_a_verb = bare.len() < one.len() || one.ends_with('e');
    let bare = bare.strip_suffix('e').filter(|rest| rest.len() >= LEAST).unwrap_or(bare);
    // `migrat`, which is left of three forms, and `configurat` of one.
    let bare = match bare.strip_suffix("at") {
        Some(rest) if ends_like_a_verb && rest.len() >= LEAST_OF_ANOTHER => rest,
        _ => bare,
    };
    match bare.strip_suffix('y') {
        Some(rest) if rest.len() >= LEAST => format!("{rest}i"),
        _ => bare.to_owned(),
    }
}

/// Without the ending of a plural, or of `he sails`.
fn singular(word: &str) -> &str {
    let Some(rest) = word.strip_suffix('s').filter(|rest| rest.len() >= LEAST) else { return word };
    if rest.ends_with(['s', 'u', 'i']) {
        return word;
    }
    for hissing in ["che", "she", "xe", "sse", "zze"] {
        if rest.ends_with(hissing) {
            return &rest[..rest.len() - 1];
        }
    }
    // `policies`, as `policy` becomes `polici`.
    rest.strip_suffix("ie").filter(|short| short.len() >= LEAST).map_or(rest, |short| &rest[..=short.len()])
}

/// Without the ending of a form of a verb, or of a word that is made of another.
fn bare(word: &str) -> &str {
    let has_vowel = |rest: &str| rest.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    for ending in ["ing", "ed"] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= LEAST
            && has_vowel(rest)
            && !word.ends_with("eed")
        {
            return undoubled(rest);
        }
    }
    for ending in ENDINGS {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= LEAST_OF_ANOTHER
        {
            return rest;
        }
    }
    word
}

/// `planning` and `plans` are the same.
fn undoubled(rest: &str) -> &str {
    match rest.as_bytes() {
        [.., before, last] if before == last && !b"lsz".contains(last) && rest.len() > LEAST => {
            &rest[..rest.len() - 1]
        }
        _ => rest,
    }
}

#[cfg(test)]
#[path = "stems_tests.rs"]
mod tests;
