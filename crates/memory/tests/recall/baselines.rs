//! What is compared with: looking for the words of a question as they are.

use std::collections::{BTreeMap, HashMap};

use longhaul_protocol::{Seq, SessionId};

use crate::conversation::World;

/// How many of the words a text must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Having {
    All,
    Any,
}

/// The words of a question that say something. Without this help a substring search for all words would find nothing.
fn telling(question: &str) -> Vec<String> {
    let asking = ["which", "what", "does", "when", "where", "about", "large", "prefer"];
    let words = question.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.len() > 3 && !asking.contains(&word.as_str())).collect()
}

/// Texts that have these words somewhere, the newest first.
pub(crate) fn substrings(world: &World, question: &str, having: Having) -> Vec<(SessionId, Seq)> {
    let words = telling(question);
    let fits = |text: &str| {
        let lower = text.to_lowercase();
        match having {
            Having::All => words.iter().all(|word| lower.contains(word)),
            Having::Any => words.iter().any(|word| lower.contains(word)),
        }
    };
    // All sessions are of the same day; where one goes on after another, that one is newer.
    let newest = world.texts.iter().rev().filter(|(.., text)| fits(text));
    newest.map(|(session, seq, _)| (*session, *seq)).take(10).collect()
}

/// BM25 with its usual parameters over single records, with the words as they are.
pub(crate) struct PlainBm25<'a> {
    texts: &'a [(SessionId, Seq, String)],
    lengths: Vec<usize>,
    /// The texts with each word, and how often they have it.
    postings: HashMap<String, HashMap<usize, usize>>,
}

impl<'a> PlainBm25<'a> {
    pub(crate) fn new(texts: &'a [(SessionId, Seq, String)]) -> Self {
        let mut postings: HashMap<String, HashMap<usize, usize>> = HashMap::new();
        let mut lengths = Vec::new();
        for (index, (.., text)) in texts.iter().enumerate() {
            let words = plain_words(text);
            lengths.push(words.len());
            words
                .into_iter()
                .for_each(|word| *postings.entry(word).or_default().entry(index).or_default() += 1);
        }
        Self { texts, lengths, postings }
    }

    /// The best ten.
    pub(crate) fn find(&self, question: &str) -> Vec<(SessionId, Seq)> {
        let all = self.texts.len() as f64;
        let mean = self.lengths.iter().sum::<usize>() as f64 / all;
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        for word in plain_words(question) {
            let Some(postings) = self.postings.get(&word) else { continue };
            let having = postings.len() as f64;
            let weight = ((all - having + 0.5) / (having + 0.5)).ln().max(1e-6);
            for (index, times) in postings {
                let times = *times as f64;
                let norm = 1.2 * (0.25 + 0.75 * self.lengths[*index] as f64 / mean);
                *scores.entry(*index).or_default() += weight * 2.2 * times / (times + norm);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|(one, a), (other, b)| b.total_cmp(a).then(other.cmp(one)));
        let place = |(index, _): (usize, f64)| (self.texts[index].0, self.texts[index].1);
        ranked.into_iter().take(10).map(place).collect()
    }
}

fn plain_words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}
