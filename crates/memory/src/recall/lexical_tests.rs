use longhaul_protocol::{At, Speaker};

use super::*;

fn page(name: &str, score: f64, at: i64, citations: usize) -> RecallCandidate {
    let place = RecallPlace::Page(name.to_owned());
    let hit = RecallHit {
        place,
        speaker: Speaker::User,
        at: At(at),
        excerpt: name.to_owned(),
        sources: vec![],
        request: None,
    };
    let found = TextMatch { score, coverage: 0.5 };
    RecallCandidate { citations, ..RecallCandidate::new(hit, found) }
}

fn names(candidates: Vec<RecallCandidate>) -> Vec<String> {
    candidates.into_iter().map(|candidate| candidate.hit.excerpt).collect()
}

/// Y11
#[test]
fn among_equals_the_newer_stands_first_and_within_a_day_what_is_more_used() {
    let candidates = vec![
        page("much worse", 5.0, 9 * DAY_MS, 9),
        page("old", 10.0, DAY_MS, 9),
        page("new", 9.8, 2 * DAY_MS, 0),
        page("new and used", 9.5, 2 * DAY_MS, 2),
        page("newer by an hour", 9.9, 2 * DAY_MS + 3_600_000, 0),
    ];

    assert_eq!(
        names(rank_candidates(candidates)),
        ["new and used", "newer by an hour", "new", "old", "much worse"]
    );
}

/// Y11: newer is no better where it is about something else.
#[test]
fn among_equals_what_has_more_of_the_words_stands_first() {
    let mut about_it = page("about it", 9.5, 0, 0);
    about_it.found.coverage = 0.8;

    let candidates = vec![page("newer", 10.0, 9 * DAY_MS, 0), about_it];

    assert_eq!(names(rank_candidates(candidates)), ["about it", "newer"]);
}

#[test]
fn what_is_better_stands_first_however_old_it_is() {
    let candidates = vec![page("new", 8.0, 9 * DAY_MS, 9), page("old", 10.0, 0, 0)];

    assert_eq!(names(rank_candidates(candidates)), ["old", "new"]);
}

#[test]
fn the_same_words_twice_are_one_entry() {
    let candidates = dedup_candidates(vec![page("Same", 1.0, 1, 0), page("same", 1.0, 2, 0)], vec![]);

    assert_eq!(names(candidates), ["same"]);
}
