//! Splitting text into words, for every crate that compares or searches texts.

/// A run of characters of one kind of script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordRun<'a> {
    /// One word of a script that puts spaces between words: letters, digits and combining accents.
    Spaced(&'a str),
    /// Characters of a script without spaces ([`is_unspaced`]). Where its words end is unknown.
    Unspaced(&'a str),
}

/// The runs of a text in their order. Spaces, symbols and punctuation separate runs, apart from the few signs inside the ranges of
/// [`is_unspaced`].
pub fn word_runs(text: &str) -> impl Iterator<Item = WordRun<'_>> {
    #[derive(PartialEq, Clone, Copy)]
    enum Script {
        Spaced,
        Unspaced,
        None,
    }
    let script = |letter: char| match letter {
        unspaced if is_unspaced(unspaced) => Script::Unspaced,
        '\u{0300}'..='\u{036f}' => Script::Spaced,
        letter if letter.is_alphanumeric() => Script::Spaced,
        _ => Script::None,
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|letter| script(letter) == Script::None);
        let kind = script(rest.chars().next()?);
        let end = rest.find(|letter| script(letter) != kind).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some(if kind == Script::Unspaced { WordRun::Unspaced(run) } else { WordRun::Spaced(run) })
    })
}

/// Whether a character belongs to a script without spaces between words, or to one like Korean, whose endings are
/// attached to the words.
pub fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Myanmar
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{3040}'..='\u{312f}'     // Hiragana, Katakana, Bopomofo
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'     // Han
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}'
        | '\u{ac00}'..='\u{d7a3}'     // Hangul
        | '\u{ff66}'..='\u{ff9f}')
}

/// Whether a letter is a Korean syllable. Korean puts spaces between its words.
pub fn is_hangul(letter: char) -> bool {
    matches!(letter, '\u{ac00}'..='\u{d7a3}')
}

/// Whether a character alone says as much as a word, as in Chinese, Japanese and Korean. In Thai and its kin it doesn't: there a
/// character is a letter of an alphabet, and any two texts share most of them.
pub fn is_wordlike(letter: char) -> bool {
    letter >= '\u{2e80}'
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
