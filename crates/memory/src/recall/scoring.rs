use longhaul_journal::{Journal, stems};

use super::query::{Query, Term};
use crate::Result;

/// As usual, and as the journal's index has it: how soon a word that stands there once more says nothing more, and how much it counts
/// that a text is long.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// A sentence of so many words is neither long nor short.
const USUAL_WORDS: f64 = 15.0;

/// A query with how much each of its terms counts.
#[derive(Debug)]
pub(super) struct Weighed {
    terms: Vec<(Term, f64)>,
    all: f64,
}

impl Weighed {
    /// Rare words count more.
    pub(super) async fn new(journal: &dyn Journal, query: Query) -> Result<Self> {
        let words: Vec<String> = query.terms.iter().map(|term| term.word.clone()).collect();
        let weights = journal.frequencies(&words).await?.weights();
        let all = weights.iter().sum();
        Ok(Self { terms: query.terms.into_iter().zip(weights).collect(), all })
    }

    /// How well a text fits, by the measure of the journal's index: by what it has of the words, and by how many of them it has. What
    /// stands around it counts by its weight.
    pub(super) fn score(&self, text: &str, around: &str, weight_around: f64) -> f64 {
        let (text, around) = (stems(text), stems(around));
        let length = count(text.len() + around.len()) / USUAL_WORDS;
        let shortness = SATURATION * (1.0 - LENGTH + LENGTH * length);
        let (mut score, mut has) = (0.0, 0.0);
        for (term, weight) in &self.terms {
            let times = count(times(term, &text)) + weight_around * count(times(term, &around));
            if times > 0.0 {
                score += weight * times * (SATURATION + 1.0) / (times + shortness);
                has += weight;
            }
        }
        if has > 0.0 { score * (has / self.all).powi(2) } else { 0.0 }
    }
}

/// How often a term stands in a text.
fn times(term: &Term, text: &[String]) -> usize {
    text.windows(term.stems.len().max(1)).filter(|row| *row == term.stems).count()
}

#[allow(clippy::cast_precision_loss, reason = "a score needs no more")]
fn count(count: usize) -> f64 {
    count as f64
}
