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
/// where the ends of words are unknown, each character counts as a word, and so does each pair.
pub fn stems(text: &str) -> Vec<String> {
    let lower: String = text.chars().flat_map(char::to_lowercase).collect();
    let mut stems: Vec<String> = Vec::new();
    for run in word_runs(&lower) {
        match run {
            WordRun::Spaced(word) => stems.extend(word_stem(word)),
            WordRun::Unspaced(row) => {
                stems.extend(row.chars().map(String::from));
                stems.extend(character_pairs(row));
            }
        }
    }
    stems
}

/// The stems with which the words of a question, in lower case, are looked up. A row of a script without spaces is
/// looked up by its pairs. Pairs of hiragana only inflect words, so they are left out.
pub(crate) fn question_stems(run: &WordRun<'_>) -> Vec<String> {
    let inflects = |letter: char| matches!(letter, '\u{3040}'..='\u{309f}');
    match run {
        WordRun::Spaced(word) => word_stem(word).into_iter().collect(),
        WordRun::Unspaced(row) if row.chars().nth(1).is_none() => vec![(*row).to_owned()],
        WordRun::Unspaced(row) => character_pairs(row).filter(|pair| !pair.chars().all(inflects)).collect(),
    }
}

fn character_pairs(row: &str) -> impl Iterator<Item = String> {
    row.chars().zip(row.chars().skip(1)).map(|(one, other)| String::from_iter([one, other]))
}

/// `None` for a word of nothing but accents.
fn word_stem(word: &str) -> Option<String> {
    let letters = word.chars().filter(|letter| !is_combining_mark(*letter));
    let word: String = letters.map(without_accent).collect();
    (!word.is_empty()).then(|| stem(word))
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
