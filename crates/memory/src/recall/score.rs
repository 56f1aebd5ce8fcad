use longhaul_journal::{BM25_B, BM25_K1, WeightedWord, stems};

/// The assumed average length of a text, in words.
const AVERAGE_WORDS: f64 = 15.0;

/// Scores texts that the journal's search doesn't rank: items and lines of pages. The words have the weights of the
/// search of the records, so the scores can be compared.
#[derive(Debug)]
pub(super) struct TextScorer {
    words: Vec<WeightedWord>,
    all: f64,
}

impl TextScorer {
    pub(super) fn new(words: Vec<WeightedWord>) -> Self {
        let all = words.iter().map(|word| word.weight).sum();
        Self { words, all }
    }

    /// The BM25 score of a text, multiplied by the squared share of the question that it covers: a short text without
    /// neighbours that lacks a word is about something else. Words in `around` count with `weight_around`. `None` if the text has
    /// none of the words.
    pub(super) fn score(&self, text: &str, around: &str, weight_around: f64) -> Option<TextMatch> {
        let (text, around) = (stems(text), stems(around));
        let length = count(text.len() + around.len()) / AVERAGE_WORDS;
        // As in the journal's search, because the scores are compared.
        let (k1, b) = (f64::from(BM25_K1), f64::from(BM25_B));
        let norm = k1 * (1.0 - b + b * length);
        let (mut score, mut covered) = (0.0, 0.0);
        for WeightedWord { stem, weight } in &self.words {
            let has = |words: &[String]| if words.contains(stem) { 1.0 } else { 0.0 };
            let times = has(&text) + weight_around * has(&around);
            score += weight * times * (k1 + 1.0) / (times + norm);
            covered += if times > 0.0 { *weight } else { 0.0 };
        }
        let coverage = if covered > 0.0 { covered / self.all } else { return None };
        Some(TextMatch { score: score * coverage.powi(2), coverage })
    }

    /// The share of the question that a text covers.
    pub(super) fn coverage(&self, text: &str) -> f64 {
        self.score(text, "", 0.0).map_or(0.0, |found| found.coverage)
    }
}

/// How well a text matches a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TextMatch {
    pub(super) score: f64,
    /// The share of the question's words that the text has, each by its weight.
    pub(super) coverage: f64,
}

#[allow(clippy::cast_precision_loss, reason = "a score needs no more")]
fn count(count: usize) -> f64 {
    count as f64
}
