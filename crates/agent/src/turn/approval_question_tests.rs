use super::*;

/// P4
#[test]
fn a_command_of_one_line_stands_behind_the_question() {
    assert_eq!(show_command("git push\n"), ": git push");
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
    assert_eq!(wide, ": ls; (2000 blanks) touch evil");
}

/// P4
#[test]
fn what_is_too_long_to_be_shown_is_said() {
    let shown = show_command(&"a".repeat(MAX_SHOWN_CHARS + 7));

    assert!(shown.starts_with(" (1 line):\n│ aaa"), "{shown}");
    assert!(shown.ends_with("\n│ [… 7 more characters are not shown]"), "{shown}");
}

/// P4
#[test]
fn a_reason_stays_on_its_line() {
    assert_eq!(on_one_line("no rule matches `echo\n\nls`"), "no rule matches `echo⏎⏎ls`");
}
