use proptest::prelude::*;

use super::*;

fn edit(old: &str, new: &str) -> Edit {
    Edit { old: old.to_owned(), new: new.to_owned(), all: None }
}

fn edit_all(old: &str, new: &str) -> Edit {
    Edit { all: Some(true), ..edit(old, new) }
}

fn problem(text: &str, edits: &[Edit]) -> String {
    apply(text, edits).unwrap_err()
}

#[test]
fn edits_are_made_in_their_order() {
    let edits = [edit("one", "two"), edit("two", "three")];

    assert_eq!(apply("one fish\r\n", &edits).unwrap(), "three fish\r\n");
}

#[test]
fn a_text_that_occurs_more_than_once_is_refused_unless_all_are_meant() {
    assert_eq!(apply("a b a", &[edit_all("a", "c")]).unwrap(), "c b c");
    assert_eq!(
        problem("a\nb\na", &[edit("a", "c")]),
        "edit 1 of 1: `old` was found 2 times, first in the lines 1, 3; give more of the text around the one that is \
         meant, or set `all`. Nothing was changed"
    );
    assert!(problem("aaa", &[edit("aa", "b")]).contains("found 2 times"));
}

/// To count every overlapping place, each half as long as the whole, would take minutes.
#[test]
fn a_text_that_overlaps_itself_a_million_times_is_replaced_or_refused_at_once() {
    let (text, half) = ("a".repeat(1_000_000), "a".repeat(500_000));

    assert_eq!(apply(&text, &[edit_all(&half, "b")]).unwrap(), "bb");
    assert!(problem(&text, &[edit(&half, "b")]).contains("`old` was found more than 100 times"));
}

#[test]
fn an_edit_that_does_not_fit_is_named() {
    let edits = [edit("one", "two"), edit("missing", "x")];

    assert_eq!(
        problem("one", &edits),
        "edit 2 of 2: `old` was not found; read the file again to see how it is now. Nothing was changed"
    );
    assert!(problem("one", &[edit("", "x")]).contains("`old` is empty"));
    assert!(problem("one", &[edit("one", "one")]).contains("are the same"));
}

#[test]
fn what_was_probably_meant_is_hinted_at() {
    let text = "fn main() {\n    let x = 1;\n}\n";

    assert!(
        problem(text, &[edit("\tlet x = 1;", "y")]).contains("line 2 differs from it only in white space")
    );
    assert!(problem(text, &[edit("fn main() {\n    let y = 1;", "")]).contains("first line is in line 1"));
    assert!(problem("a\r\nb\r\n", &[edit("a\nb", "c")]).contains("end with \\r\\n"));
}

#[test]
fn a_file_can_not_grow_past_what_may_be_written() {
    let text = "x".repeat(10_000);

    assert!(problem(&text, &[edit_all("x", &"y".repeat(10_000))]).contains("more than"));
}

proptest! {
    #[test]
    fn replacing_all_leaves_what_is_around(pieces in prop::collection::vec("[b-d\n]{0,5}", 2..6), new in "[e-g]{0,4}") {
        let text = pieces.join("a");

        prop_assert_eq!(apply(&text, &[edit_all("a", &new)]).unwrap(), pieces.join(&new));
    }

    #[test]
    fn one_edit_changes_one_place(before in "[b-dé\r\n]{0,20}", after in "[b-dé\r\n]{0,20}", new in "[a-z\n]{0,5}") {
        prop_assume!(new != "a");

        prop_assert_eq!(apply(&format!("{before}a{after}"), &[edit("a", &new)]).unwrap(), format!("{before}{new}{after}"));
    }

    #[test]
    fn no_text_and_no_edit_makes_it_panic(text in "[ab \n\ré]{0,30}", old in "[ab \n\ré]{0,4}", new in "[ab]{0,3}", all: bool) {
        let edits = [Edit { old, new, all: Some(all) }, edit("never there", "x")];

        prop_assert!(apply(&text, &edits).is_err());
    }
}
