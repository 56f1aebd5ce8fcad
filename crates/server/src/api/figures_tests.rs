use super::*;

fn point(seq: Seq, input: u64) -> ContextPoint {
    ContextPoint {
        seq,
        at: String::new(),
        turn: Some(1),
        input,
        estimated: false,
        window: Some(1_000),
        parts: None,
    }
}

fn compaction(seq: Seq) -> CompactionPoint {
    let by = CompactedBy::Rule;
    CompactionPoint { seq, at: String::new(), turn: None, by, before: 900, after: 90 }
}

/// H8: however long a session is, its chart has few points, and none of them hides how full the context was.
#[test]
fn many_calls_become_few_points_that_keep_extremes_and_compactions() {
    // The context grows to its compaction and begins again, five hundred times.
    let points: Vec<ContextPoint> = (0..50_000)
        .map(|index| point(index * 10, if index == 31_416 { 77_777 } else { 100 + index % 100 }))
        .collect();
    let compactions: Vec<CompactionPoint> = (1..500).map(|round| compaction(round * 1_000 - 5)).collect();

    let thinned = thin_points(points.clone(), &compactions);

    assert!(thinned.len() <= MAX_POINTS && thinned.len() > 200, "{}", thinned.len());
    assert!(thinned.is_sorted_by_key(|point| point.seq));
    assert!(thinned.contains(&points[31_416]), "the highest");
    assert!(thinned.iter().any(|point| point.input == 100), "a lowest");
    assert_eq!((thinned.first(), thinned.last()), (points.first(), points.last()));
    for compaction in compactions.iter().rev().take(MAX_MARKED_COMPACTIONS) {
        let before = points.iter().rfind(|point| point.seq < compaction.seq).unwrap();
        let after = points.iter().find(|point| point.seq > compaction.seq).unwrap();
        assert!(thinned.contains(before) && thinned.contains(after), "{compaction:?}");
    }
}

#[test]
fn few_calls_are_all_points() {
    let points: Vec<ContextPoint> = (0..500).map(|index| point(index, index)).collect();

    assert_eq!(thin_points(points.clone(), &[]), points);
}
