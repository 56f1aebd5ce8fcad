use longhaul_protocol::SessionId;

use super::*;

fn hit(seq: Seq, score: f64) -> SearchHit {
    let stream = StreamName::session(SessionId::from_bits(1));
    SearchHit { stream, seq, excerpt: String::new(), score, request: None }
}

fn fused(by_words: &[(Seq, f64)], others: &[Seq]) -> Vec<(Seq, f64)> {
    let by_words = by_words.iter().map(|(seq, score)| hit(*seq, *score)).collect();
    let others = others.iter().map(|seq| hit(*seq, 0.5)).collect();
    fuse_by_rank(by_words, others).into_iter().map(|hit| (hit.seq, hit.score)).collect()
}

#[test]
fn what_both_found_comes_first_with_the_score_of_its_place() {
    assert_eq!(fused(&[(1, 9.0), (2, 8.0), (3, 7.0)], &[3, 2]), [(3, 9.0), (2, 8.0), (1, 7.0)]);
}

#[test]
fn what_only_one_found_is_kept() {
    assert_eq!(fused(&[(1, 9.0)], &[7]), [(1, 9.0), (7, 6.75)]);
    assert_eq!(fused(&[], &[7, 8]), [(7, 1.0), (8, 0.75)]);
    assert_eq!(fused(&[(1, 9.0)], &[]), [(1, 9.0)]);
}
