use proptest::prelude::*;

use super::*;

fn numbered(lines: std::ops::RangeInclusive<usize>) -> String {
    lines.map(|line| format!("line {line}\n")).collect()
}

#[test]
fn a_change_has_three_lines_around_it_and_the_numbers_of_its_lines() {
    let before = numbered(1..=20);
    let after = before.replace("line 10\n", "\tline ten\nand more\n");

    insta::assert_snapshot!(unified_diff("src/a.txt", Some(&before), &after, 3, 200), @r"
    --- a/src/a.txt
    +++ b/src/a.txt
    @@ -7,7 +7,8 @@
     line 7
     line 8
     line 9
    -line 10
    +	line ten
    +and more
     line 11
     line 12
     line 13
    ");
}

#[test]
fn changes_that_are_far_apart_are_hunks_of_their_own() {
    let before = numbered(1..=30);
    let after = before.replace("line 2\n", "").replace("line 30\n", "line 30");

    insta::assert_snapshot!(unified_diff("a", Some(&before), &after, 1, 200), @r"
    --- a/a
    +++ b/a
    @@ -1,3 +1,2 @@
     line 1
    -line 2
     line 3
    @@ -29,2 +28,2 @@
     line 29
    -line 30
    +line 30
    \ No newline at end of file
    ");
}

#[test]
fn a_new_file_is_added_as_a_whole() {
    assert_eq!(
        unified_diff("a", None, "one\ntwo\n", 3, 200),
        "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    );
    assert_eq!(unified_diff("a", Some("one\n"), "", 3, 9), "--- a/a\n+++ b/a\n@@ -1 +0,0 @@\n-one\n");
    assert_eq!(unified_diff("a", Some("same"), "same", 3, 200), "");
    assert_eq!(unified_diff("a", None, "", 3, 200), "");
}

#[test]
fn a_long_diff_is_cut_and_says_what_is_missing() {
    let diff = unified_diff("a", Some(&numbered(1..=100)), &numbered(51..=300), 3, 10);

    let lines: Vec<&str> = diff.lines().collect();
    assert_eq!(lines.len(), 2 + 1 + 10 + 1);
    assert_eq!(lines[2], "@@ -1,53 +1,3 @@");
    assert_eq!(lines[13], "… 246 more lines, +200 −40");
}

#[test]
fn very_long_lines_and_very_large_changes_stay_small() {
    let wide = unified_diff("a", None, &"x".repeat(1 << 20), 3, 200);
    let old: String = (0..100_000).map(|line| format!("old {line}\n")).collect();
    let new: String = (0..100_000).map(|line| format!("new {line} {}\n", "y".repeat(400))).collect();
    let large = unified_diff("a\n+evil", Some(&old), &new, 3, usize::MAX);

    assert!(wide.len() < 1_000 && wide.contains("… [1048076 more bytes]\n\\ No newline"), "{wide}");
    assert!(large.len() < MAX_DIFF_BYTES + 2_000, "{}", large.len());
    assert!(large.starts_with("--- a/a�+evil\n"));
    assert!(large.lines().last().is_some_and(|line| line.contains("more lines, +100000 −9")), "{large}");
}

proptest! {
    /// The new text is the context and the added lines, where the context is large enough.
    #[test]
    fn a_whole_diff_contains_both_texts(old in "[ab\n]{0,40}", new in "[ab\n]{0,40}") {
        let diff = unified_diff("a", Some(&old), &new, 1_000, usize::MAX);
        let side = |mark: char| -> Vec<String> {
            let lines = diff.lines().skip(3).filter(|line| line.starts_with([' ', mark]));
            lines.map(|line| line[1..].to_owned()).collect()
        };

        if old != new {
            prop_assert_eq!(side('-'), old.split_terminator('\n').map(str::to_owned).collect::<Vec<_>>());
            prop_assert_eq!(side('+'), new.split_terminator('\n').map(str::to_owned).collect::<Vec<_>>());
        }
    }
}

/// P4: a question says how much of a change it does not show.
#[test]
fn a_diff_says_what_it_leaves_out_and_a_file_can_not() {
    let long = unified_diff("a", None, &numbered(1..=30), 3, 10);
    let wide = unified_diff("a", None, &format!("{}\n", "x".repeat(600)), 3, 10);
    let posing = unified_diff("a", None, "… 7 more lines, +7 −0\nx… [3 more bytes]\n", 3, 10);

    assert_eq!(omissions_of_diff(&long).as_deref(), Some("20 more lines, +20 −0"));
    assert_eq!(omissions_of_diff(&wide).as_deref(), Some("the end of a long line"));
    assert_eq!(omissions_of_diff(&posing), None);
}
