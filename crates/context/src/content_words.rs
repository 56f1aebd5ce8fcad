//! The content words of a text, and the share of them that another text contains.

use std::collections::BTreeSet;

use longhaul_protocol::{WordRun, is_wordlike, word_runs};

/// Stop words. Negations (not, no, never) are not among them, because they reverse the meaning.
const STOP_WORDS: [&str; 62] = [
    "a", "about", "after", "an", "and", "are", "as", "at", "be", "been", "before", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "may", "me", "my", "of", "on", "or", "our", "she", "should", "so",
    "that", "the", "their", "them", "then", "there", "they", "this", "to", "was", "we", "were", "which",
    "will", "with", "would", "you", "your",
];

/// The set of words of a text, without stop words, in lower case and roughly in the singular. In Chinese, Japanese and Korean each
/// character is a word; in other scripts without spaces, everything between two spaces is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentWords(BTreeSet<String>);

impl ContentWords {
    pub fn of(text: &str) -> Self {
        let words = word_runs(text).flat_map(|run| match run {
            WordRun::Spaced(word) => vec![word.to_lowercase()],
            WordRun::Unspaced(run) => unspaced_words(run),
        });
        Self(words.filter(|word| !STOP_WORDS.contains(&word.as_str())).map(singular).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The share of these words that the other text also contains, from 0 to 1. 0 if there are no words.
    pub fn share_in(&self, other: &Self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        #[allow(clippy::cast_precision_loss, reason = "no text has 2^53 words")]
        let share = self.common(other).count() as f64 / self.len() as f64;
        share
    }

    /// The words that are in both texts.
    pub fn common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        self.0.intersection(&other.0).map(String::as_str)
    }

    /// Whether the set contains a word, in the form that [`ContentWords::of`] produces.
    pub fn contains(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }
}

fn unspaced_words(run: &str) -> Vec<String> {
    let letters: Vec<char> = run.chars().collect();
    let words = letters.chunk_by(|one, next| !is_wordlike(*one) && !is_wordlike(*next));
    words.map(|word| word.iter().collect()).collect()
}

fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
#[path = "content_words_tests.rs"]
mod tests;
