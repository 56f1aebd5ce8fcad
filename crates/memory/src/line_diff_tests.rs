use proptest::prelude::*;

use super::*;

#[test]
fn lines_that_went_and_came_stand_among_two_that_stayed() {
    let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
    let after = "a\nb\nc\nd\nE\nf\ng\nh\n";

    assert_eq!(line_diff(before, after), " …\n c\n d\n-e\n+E\n f\n g\n …\n");
}

#[test]
fn what_is_the_same_has_no_difference_and_what_is_new_or_gone_is_all_of_it() {
    assert_eq!(line_diff("a\nb\n", "a\nb\n"), "");
    assert_eq!(line_diff("", "a\nb\n"), "+a\n+b\n");
    assert_eq!(line_diff("a\n", ""), "-a\n");
}

#[test]
fn pages_of_nothing_but_line_breaks_need_no_memory_to_speak_of() {
    let shown = line_diff(&"\n".repeat(16_000), &"x\n".repeat(16_000));

    assert_eq!(shown.lines().count(), 32_000);
}

proptest! {
    #[test]
    fn the_steps_lead_from_one_to_the_other(before in "[abc\n]{0,40}", after in "[abc\n]{0,40}") {
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());

        let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_slices(&old, &new);

        let lines = |left_out: ChangeTag| -> Vec<String> {
            diff.iter_all_changes().filter(|change| change.tag() != left_out).map(|change| change.value().to_owned()).collect()
        };
        let (from, to) = (lines(ChangeTag::Insert), lines(ChangeTag::Delete));
        prop_assert_eq!(from, old);
        prop_assert_eq!(to, new);
    }
}
