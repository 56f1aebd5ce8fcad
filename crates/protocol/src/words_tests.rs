use super::*;

#[test]
fn runs_end_where_the_script_changes() {
    let runs: Vec<_> = word_runs("rust言語, cafe\u{301}s! 42").collect();

    assert_eq!(
        runs,
        [
            WordRun::Spaced("rust"),
            WordRun::Unspaced("言語"),
            WordRun::Spaced("cafe\u{301}s"),
            WordRun::Spaced("42"),
        ]
    );
}

#[test]
fn a_text_without_letters_has_no_runs() {
    assert_eq!(word_runs(" -- … 。").count(), 0);
}
