use longhaul_protocol::{CallId, Seq};

use super::*;

/// P4
#[test]
fn a_command_of_one_line_stands_behind_a_bar() {
    assert_eq!(show_command("git push\n"), ":\n│ git push");
}

/// P4: or a yes to what is seen would be a yes to something else.
#[test]
fn no_part_of_a_command_is_pushed_out_of_sight_or_passes_for_the_question() {
    let empty = "\n".repeat(60);
    let blanks = " ".repeat(2_000);

    let pushed = show_command(&format!("ls -l{empty}touch evil{empty}"));
    let posing = show_command(&format!("touch evil{empty}question: May exec run: ls -l"));
    let wide = show_command(&format!("ls;{blanks}touch evil"));

    assert_eq!(pushed, " (61 lines):\n│ ls -l\n│ (59 empty lines)\n│ touch evil");
    assert_eq!(posing, " (61 lines):\n│ touch evil\n│ (59 empty lines)\n│ question: May exec run: ls -l");
    assert_eq!(wide, ":\n│ ls; (2000 blanks) touch evil");
}

/// P4
#[test]
fn what_is_too_long_to_be_shown_is_said() {
    let shown = show_command(&"a".repeat(MAX_SHOWN_CHARS + 7));

    assert!(shown.starts_with(":\n│ aaa"), "{shown}");
    assert!(shown.ends_with("\n│ [… 7 more characters are not shown]"), "{shown}");
}

/// P4
#[test]
fn a_reason_stays_on_its_line() {
    assert_eq!(on_one_line("no rule matches `echo\n\nls`"), "no rule matches `echo⏎⏎ls`");
}

/// P4: the person sees the order in which the shell reads a command.
#[test]
fn characters_that_reverse_or_hide_a_command_are_escaped() {
    let reversed = show_command("echo ok \u{202e}\u{2066}; touch evil; : \u{2069}# a note\u{202c}");
    let hidden = show_command("rm\u{200b} a\u{ad}b\u{3164}c\x1b[2K");

    assert_eq!(reversed, ":\n│ echo ok \\u{202e}\\u{2066}; touch evil; : \\u{2069}# a note\\u{202c}");
    assert_eq!(hidden, ":\n│ rm\\u{200b} a\\u{ad}b\\u{3164}c\\u{1b}[2K");
}

/// P4
#[test]
fn blanks_that_are_no_white_space_push_nothing_out_of_sight() {
    for blank in ["\u{2800}", "\u{3164}", "\u{200b}", "\u{2060}", "\u{180e}", "\u{115f}", " \u{2800}"] {
        let letters = blank.repeat(400);
        let count = letters.chars().count();
        let rows = format!("ls\n{blank}\n{blank}\n{blank}\ntouch evil");

        assert_eq!(
            show_command(&format!("ls{letters}; touch evil")),
            format!(":\n│ ls ({count} blanks) ; touch evil")
        );
        assert_eq!(show_command(&rows), " (5 lines):\n│ ls\n│ (3 empty lines)\n│ touch evil");
    }
}

fn write_call() -> CallState {
    let arguments = r#"{"path": "a\u202e.sh", "content": "x"}"#.to_owned();
    CallState {
        id: CallId::generate(),
        name: "write_file".to_owned(),
        arguments,
        approval: None,
        started: None,
        refused: None,
        elicited: None,
        result: None,
        finished_seq: Seq::default(),
    }
}

/// P4: a diff hides nothing at its right edge, and the question says what stands below its end.
#[test]
fn a_question_about_an_edit_shows_what_its_diff_hides() {
    let wide = " ".repeat(400);
    let diff = format!(
        "--- a/a\n+++ b/a\n@@ -0,0 +1,90 @@\n+echo hello{wide}; evil\n+if \u{202e}{{\n… 88 more lines, +88 −0\n"
    );

    let asked = approval_question(&write_call(), &["the \u{2066}mode asks".to_owned()], Some(&diff), None);

    let shown = asked.diff.unwrap_or_default();
    assert_eq!(
        asked.text,
        "May write_file change a\\u{202e}.sh?\n(NOT SHOWN: 88 more lines, +88 −0)\n(the \\u{2066}mode asks)"
    );
    assert!(shown.contains("\n+echo hello (400 blanks) ; evil\n+if \\u{202e}{\n… 88 more lines"), "{shown}");
    assert_eq!(asked.reasons, ["the \\u{2066}mode asks"]);
}
