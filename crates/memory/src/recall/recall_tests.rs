use super::*;

fn found(name: &str) -> RecallHit {
    let place = RecallPlace::Page(name.to_owned());
    RecallHit { place, speaker: Speaker::User, at: At(0), excerpt: name.to_owned(), sources: vec![] }
}

fn names(found: &[RecallHit]) -> Vec<&str> {
    found.iter().map(|found| found.excerpt.as_str()).collect()
}

#[test]
fn one_list_stays_as_it_is() {
    let list = fuse_ranks(vec![vec![found("b"), found("a")]]);

    assert_eq!(names(&list), ["b", "a"]);
}

/// Room for another way of finding things.
#[test]
fn what_two_finders_name_stands_before_what_one_does() {
    let list = fuse_ranks(vec![vec![found("a"), found("b")], vec![found("c"), found("b")]]);

    assert_eq!(names(&list), ["b", "a", "c"]);
}
