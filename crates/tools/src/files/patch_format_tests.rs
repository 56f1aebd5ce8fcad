use super::*;

fn parsed(lines: &[&str]) -> Result<Vec<FilePatch>, String> {
    parse_patch(&lines.join("\n"))
}

fn problem(lines: &[&str]) -> String {
    parsed(lines).unwrap_err()
}

#[test]
fn a_patch_adds_updates_moves_and_deletes() {
    let files = parsed(&[
        BEGIN,
        "*** Add File: new.txt",
        "+one",
        "+",
        "*** Update File: a.rs",
        "*** Move to: b.rs",
        "@@ fn main() {",
        " keep",
        "",
        "-old",
        "+new",
        "@@",
        "+last",
        "*** End of File",
        "*** Delete File: old.txt",
        END,
    ])
    .unwrap();

    let context = |text: &str| HunkLine::Context(text.to_owned());
    let first = Hunk {
        heading: Some("fn main() {".to_owned()),
        lines: vec![
            context("keep"),
            context(""),
            HunkLine::Removed("old".to_owned()),
            HunkLine::Added("new".to_owned()),
        ],
        is_at_end: false,
    };
    let second = Hunk { heading: None, lines: vec![HunkLine::Added("last".to_owned())], is_at_end: true };
    let file = |path: &str, action| FilePatch { path: path.to_owned(), action };
    assert_eq!(
        files,
        [
            file("new.txt", PatchAction::Add { content: "one\n\n".to_owned() }),
            file(
                "a.rs",
                PatchAction::Update { move_to: Some("b.rs".to_owned()), hunks: vec![first, second] }
            ),
            file("old.txt", PatchAction::Delete),
        ]
    );
    let summaries: Vec<String> = files.iter().map(FilePatch::summary).collect();
    assert_eq!(summaries, ["added new.txt", "updated a.rs and moved it to b.rs", "deleted old.txt"]);
}

#[test]
fn the_first_hunk_may_begin_at_once_and_line_numbers_are_no_heading() {
    let files = parsed(&[BEGIN, "*** Update File: a", "-x", "+y", "@@ -1,3 +1,4 @@", "-z", END]).unwrap();

    let PatchAction::Update { hunks, .. } = &files[0].action else { panic!("{files:?}") };
    assert_eq!(hunks.iter().map(|hunk| &hunk.heading).collect::<Vec<_>>(), [&None, &None]);
}

/// T6: what is wrong is said, with what would fit.
#[test]
fn what_does_not_fit_is_named() {
    let update = "*** Update File: a";
    let table = [
        (problem(&[]), "the patch is empty"),
        (problem(&["--- a"]), "the first line must be `*** Begin Patch`, not `--- a`"),
        (problem(&[BEGIN, update, "+a"]), "the last line must be `*** End Patch`, not `+a`"),
        (problem(&[BEGIN]), "the last line must be"),
        (problem(&[BEGIN, END]), "names no file"),
        (problem(&[BEGIN, "hello", END]), "line 2 of the patch must be `*** Add File: PATH`"),
        (
            problem(&[BEGIN, "*** Add File: a", "one", END]),
            "line 3 of the patch must be a line of a new file",
        ),
        (problem(&[BEGIN, "*** Add File:  ", END]), "with a path at its end"),
        (problem(&[BEGIN, update, END]), "has no hunk"),
        (
            problem(&[BEGIN, update, "@@", "-a", "b", END]),
            "line 5 of the patch must be a line that begins with a space",
        ),
        (problem(&[BEGIN, update, "@@", " a", END]), "changes nothing"),
    ];

    for (problem, expected) in table {
        assert!(problem.contains(expected), "{expected}: {problem}");
    }
}
