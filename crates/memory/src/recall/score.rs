use longhaul_journal::{Journal, stems};

use super::query::{QueryTerm, RecallQuery};
use crate::Result;

/// The usual parameters of BM25, as in the journal's index: how fast repetitions of a word lose weight, and how much
/// the length of the text matters.
const BM25_K1: f64 = 1.2;
const BM25_B: f64 = 0.75;
/// The assumed average length of a text, in words.
const AVERAGE_WORDS: f64 = 15.0;

/// A query with the weight of each term.
#[derive(Debug)]
pub(super) struct WeightedQuery {
    terms: Vec<(QueryTerm, f64)>,
    all: f64,
}

impl WeightedQuery {
    pub(super) async fn new(journal: &dyn Journal, query: RecallQuery) -> Result<Self> {
        let words: Vec<String> = query.terms.iter().map(|term| term.word.clone()).collect();
        let weights = journal.frequencies(&words).await?.weights();
        let all = weights.iter().sum();
        Ok(Self { terms: query.terms.into_iter().zip(weights).collect(), all })
    }

    /// The BM25 score of a text, multiplied by the squared share of the query that it covers. Words in `around` count
    /// with `weight_around`.
    pub(super) fn score(&self, text: &str, around: &str, weight_around: f64) -> f64 {
        let (text, around) = (stems(text), stems(around));
        let length = count(text.len() + around.len()) / AVERAGE_WORDS;
        let shortness = BM25_K1 * (1.0 - BM25_B + BM25_B * length);
        let (mut score, mut has) = (0.0, 0.0);
        for (term, weight) in &self.terms {
            let times = count(times(term, &text)) + weight_around * count(times(term, &around));
            if times > 0.0 {
                score += weight * times * (BM25_K1 + 1.0) / (times + shortness);
                has += weight;
            }
        }
        if has > 0.0 { score * (has / self.all).powi(2) } else { 0.0 }
    }
}

fn times(term: &QueryTerm, text: &[String]) -> usize {
    text.windows(term.stems.len().max(1)).filter(|row| *row == term.stems).count()
}

#[allow(clippy::cast_precision_loss, reason = "a score needs no more")]
fn count(count: usize) -> f64 {
    count as f64
}
