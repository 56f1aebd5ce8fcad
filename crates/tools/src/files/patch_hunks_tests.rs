use proptest::prelude::*;

use super::*;
use crate::files::patch_format::{PatchAction, parse_patch};

/// The text after a patch of one file with these lines.
fn patched(text: &str, patch: &str) -> Result<String, String> {
    let patch = format!("*** Begin Patch\n*** Update File: a\n{patch}\n*** End Patch");
    let files = parse_patch(&patch).unwrap();
    let PatchAction::Update { hunks, .. } = &files[0].action else { panic!("{files:?}") };
    apply_hunks(text, hunks)
}

#[test]
fn hunks_are_applied_where_their_lines_are() {
    let table = [
        ("a\nb\nc\n", "@@\n a\n-b\n+B\n c", "a\nB\nc\n"),
        ("a\nb\nc\n", "@@\n-a\n@@\n-c\n+C\n+D", "b\nC\nD\n"),
        ("a\nb", "@@\n-b\n+c", "a\nc"),
        ("a\n", "@@\n-a", ""),
        ("", "@@\n+a", "a\n"),
        ("a\nb\n", "@@ a\n+x", "a\nx\nb\n"),
        ("a\nb\n", "@@\n+x\n*** End of File", "a\nb\nx\n"),
        ("x\na\nx\n", "@@\n-x\n+y\n*** End of File", "x\na\ny\n"),
        // White space at the ends of lines may differ, and stays as the file has it.
        ("a  \nb\n", "@@\n a\n-b\n+c", "a  \nc\n"),
        // So may the ends of lines; what is added gets those of the file.
        ("a\r\nb\r\n", "@@\n a\n-b\n+c", "a\r\nc\r\n"),
        // An exact place goes before one that only looks like it.
        ("a \nb\na\nb\n", "@@\n a\n-b\n+c", "a \nb\na\nc\n"),
        // The heading decides between equal places.
        ("fn one\n x\nfn two\n x\n", "@@ fn two\n- x\n+ y", "fn one\n x\nfn two\n y\n"),
    ];

    for (text, patch, expected) in table {
        assert_eq!(patched(text, patch).as_deref(), Ok(expected), "{text:?} {patch:?}");
    }
}

/// T6: between several places nothing is guessed, and the error says which hunk it is and why.
#[test]
fn a_hunk_that_does_not_fit_in_one_place_is_named_with_the_reason() {
    let table = [
        (
            "x\nx\n",
            "@@\n-x\n+y",
            "hunk 1 of 1: its lines are in the file 2 times, in the lines 1, 2; give more",
        ),
        ("h\nx\nh\nx\n", "@@ h\n-x\n+y", "and its `@@` line is in the lines 1, 3"),
        ("x\nx\nh\n", "@@ h\n-x\n+y", "none of them below its `@@` line"),
        ("a\nb\n", "@@\n-b\n@@\n-a", "hunk 2 of 2: its lines are in line 1, before those of an earlier hunk"),
        ("a\n", "@@\n-b", "its lines are not in the file; read it again"),
        ("a\nc\n", "@@\n a\n-b", "up to line 1 they fit, but then comes `c`, not `b`"),
        ("  a\n", "@@\n-a", "only in their indentation"),
        ("a\nb\n", "@@\n-a\n*** End of File", "but not at its end"),
        ("a\n", "@@\n+b", "nothing says where"),
        ("h\nh\n", "@@ h\n+b", "its `@@` line is in the lines 1, 2"),
    ];

    for (text, patch, expected) in table {
        let problem = patched(text, patch).unwrap_err();
        assert!(problem.contains(expected), "{expected}: {problem}");
    }
}

proptest! {
    /// Whatever the file is, a hunk that names a unique line changes that line and nothing else.
    #[test]
    fn only_the_named_line_changes(lines in prop::collection::vec("[a-z ]{0,5}", 1..30), at in any::<prop::sample::Index>()) {
        let at = at.index(lines.len());
        let mut before = lines.clone();
        before[at] = "UNIQUE".to_owned();
        let mut after = lines;
        after[at] = "CHANGED".to_owned();
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();

        prop_assert_eq!(patched(&text(&before), "@@\n-UNIQUE\n+CHANGED"), Ok(text(&after)));
    }

    #[test]
    fn any_patch_of_any_text_gives_a_text_or_a_reason(text in any::<String>(), patch in "([ +-@][a\n]{0,3}\n){1,8}") {
        let patch = format!("*** Begin Patch\n*** Update File: a\n{patch}\n*** End Patch");
        if let Ok(files) = parse_patch(&patch)
            && let PatchAction::Update { hunks, .. } = &files[0].action
        {
            let _ = apply_hunks(&text, hunks);
        }
    }
}
