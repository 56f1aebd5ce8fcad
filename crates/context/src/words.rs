//! The words that say what a text is about, and how much of one text stands in another.

use std::collections::BTreeSet;

/// Words that say nothing by themselves. Those that turn a meaning round (not, no, never) are not among them.
const EMPTY: [&str; 62] = [
    "a", "about", "after", "an", "and", "are", "as", "at", "be", "been", "before", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "may", "me", "my", "of", "on", "or", "our", "she", "should", "so",
    "that", "the", "their", "them", "then", "there", "they", "this", "to", "was", "we", "were", "which",
    "will", "with", "would", "you", "your",
];
/// From here on characters are words of their own, as in Chinese, Japanese and Korean.
const WITHOUT_SPACES: char = '\u{2e80}';

/// The words that say what a text is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentWords(BTreeSet<String>);

impl ContentWords {
    /// The content words of a text, in lower case and roughly in the singular.
    pub fn of(text: &str) -> Self {
        let mut words = BTreeSet::new();
        for run in text.split(|letter: char| !letter.is_alphanumeric()) {
            for word in apart(run) {
                let word = word.to_lowercase();
                if !EMPTY.contains(&word.as_str()) {
                    words.insert(singular(word));
                }
            }
        }
        Self(words)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How much of this stands in another, from 0 to 1. Of nothing, nothing does.
    pub fn share_in(&self, other: &Self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        #[allow(clippy::cast_precision_loss, reason = "no text has 2^53 words")]
        let share = self.0.intersection(&other.0).count() as f64 / self.len() as f64;
        share
    }

    /// Those that are in both.
    pub fn common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        self.0.intersection(&other.0).map(String::as_str)
    }

    /// Whether a word is among them, as [`ContentWords::of`] writes it.
    pub fn contains(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// Takes in the words of another.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }
}

/// A run of letters as words: one, or where the script has no spaces, each character.
fn apart(run: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut begins = 0;
    for (place, letter) in run.char_indices().filter(|(_, letter)| *letter >= WITHOUT_SPACES) {
        words.extend([&run[begins..place], &run[place..place + letter.len_utf8()]]);
        begins = place + letter.len_utf8();
    }
    words.push(&run[begins..]);
    words.retain(|word| !word.is_empty());
    words
}

/// The same word for one thing and for many, roughly.
fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
