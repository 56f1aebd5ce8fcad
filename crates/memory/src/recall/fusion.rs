//! Two rankings become one.

use std::collections::HashMap;

use longhaul_journal::SearchHit;
use longhaul_protocol::{Seq, StreamName};

/// How much the first places count more than the later ones: the larger, the less.
const RANK_OFFSET: f64 = 60.0;
/// The score of each further place, if the ranking by words is shorter than both together: too little for a tie.
const NEXT_SCORE: f64 = 0.75;

/// Merges the hits of a second finder into those by words, by their places in both. The scores stay those of the words, place by
/// place, because they are compared with those of items and pages.
pub(super) fn fuse_by_rank(by_words: Vec<SearchHit>, others: Vec<SearchHit>) -> Vec<SearchHit> {
    let mut scores: Vec<f64> = by_words.iter().map(|hit| hit.score).collect();
    let mut fused: HashMap<(StreamName, Seq), (f64, SearchHit)> = HashMap::new();
    for ranking in [by_words, others] {
        for (place, hit) in ranking.into_iter().enumerate() {
            #[allow(clippy::cast_precision_loss, reason = "a place is a small number")]
            let share = 1.0 / (RANK_OFFSET + place as f64);
            let key = (hit.stream.clone(), hit.seq);
            fused.entry(key).or_insert((0.0, hit)).0 += share;
        }
    }
    let mut fused: Vec<(f64, SearchHit)> = fused.into_values().collect();
    fused.sort_by(|(a, one), (b, other)| {
        b.total_cmp(a).then_with(|| (&one.stream, one.seq).cmp(&(&other.stream, other.seq)))
    });
    while scores.len() < fused.len() {
        scores.push(scores.last().map_or(1.0, |last| last * NEXT_SCORE));
    }
    fused.into_iter().zip(scores).map(|((_, hit), score)| SearchHit { score, ..hit }).collect()
}

#[cfg(test)]
#[path = "fusion_tests.rs"]
mod tests;
