use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEventKind, KeyModifiers};

use super::*;
use crate::tui::chat::slash::skills::SkillCommands;
use crate::tui::chat::slash::{COMMANDS, SlashCommand};

#[path = "input_property_tests.rs"]
mod properties;

static ROWS_OF_COMMANDS: [SlashCommand; COMMANDS.len()] = COMMANDS;

fn typing() -> InputField {
    let sources = CompletionSources {
        commands: &ROWS_OF_COMMANDS,
        skills: SkillCommands::default(),
        servers: ServerMenu::default(),
        work_dir: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    };
    InputField::new(History::none(), sources)
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn control(character: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL)
}

fn alt(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::ALT)
}

impl InputField {
    fn type_all(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            assert_eq!(self.press(key(KeyCode::Char(character))), KeyOutcome::Edited);
        }
        self
    }

    fn keys(&mut self, keys: &[KeyEvent]) -> &mut Self {
        for key in keys {
            assert_eq!(self.press(*key), KeyOutcome::Edited, "{key:?}");
        }
        self
    }

    fn enter_text(&mut self, text: &str) {
        let entered = self.type_all(text).press(key(KeyCode::Enter));
        assert_eq!(entered, KeyOutcome::Entered(text.to_owned()));
    }

    /// The text with a bar where the cursor is.
    fn with_cursor(&self) -> String {
        let (before, after) = self.text().split_at(self.text.cursor());
        format!("{before}|{after}")
    }

    fn rows(&self, width: u16, rows: u16) -> Vec<String> {
        self.render("> ", width, rows).lines.iter().map(ToString::to_string).collect()
    }

    fn list(&self) -> Vec<String> {
        self.render("> ", 60, 5).completions.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn enter_gives_the_text_without_white_space_at_its_end() {
    let mut typing = typing();

    let entered = typing.type_all("  hello  ").press(key(KeyCode::Enter));

    assert_eq!(entered, KeyOutcome::Entered("  hello".to_owned()));
    assert!(typing.is_empty());
    assert_eq!(typing.type_all("  ").press(key(KeyCode::Enter)), KeyOutcome::Edited);
}

#[test]
fn a_backslash_or_a_modifier_makes_a_new_line_of_enter() {
    let mut typing = typing();
    let shift = KeyEvent::new(KeyCode::Enter, KeyModifiers::SHIFT);

    typing.type_all("a\\").keys(&[key(KeyCode::Enter)]);
    typing.type_all("b").keys(&[alt(KeyCode::Enter)]);
    typing.type_all("c").keys(&[shift]).type_all("d").keys(&[control('j')]).type_all("e");

    assert_eq!(typing.press(key(KeyCode::Enter)), KeyOutcome::Entered("a\nb\nc\nd\ne".to_owned()));
}

#[test]
fn the_cursor_goes_by_what_people_take_for_a_character() {
    let mut typing = typing();
    typing.paste("e\u{301}👨‍👩‍👧🇩🇪x");

    typing.keys(&[key(KeyCode::Left), key(KeyCode::Backspace)]);
    assert_eq!(typing.with_cursor(), "e\u{301}👨‍👩‍👧|x");
    typing.keys(&[key(KeyCode::Left), key(KeyCode::Left), key(KeyCode::Delete)]);

    assert_eq!(typing.with_cursor(), "|👨‍👩‍👧x");
}

#[test]
fn words_are_moved_over_and_killed() {
    let mut typing = typing();
    typing.type_all("one two-three  four");

    typing.keys(&[alt(KeyCode::Char('b')), alt(KeyCode::Left)]);
    assert_eq!(typing.with_cursor(), "one two-|three  four");
    typing.keys(&[control('w')]);
    assert_eq!(typing.with_cursor(), "one |three  four");
    typing.keys(&[alt(KeyCode::Char('f')), alt(KeyCode::Char('d'))]);
    assert_eq!(typing.with_cursor(), "one three|");
    typing.keys(&[key(KeyCode::End), alt(KeyCode::Backspace), control('y'), control('y')]);

    assert_eq!(typing.with_cursor(), "one threethree|");
}

#[test]
fn kills_one_after_the_other_come_back_together() {
    let mut typing = typing();
    typing.type_all("one two three");

    typing.keys(&[control('w'), control('w'), control('a'), control('y')]);
    assert_eq!(typing.with_cursor(), "two three|one ");
    typing.keys(&[control('k'), control('u'), control('y')]);

    assert_eq!(typing.with_cursor(), "two threeone |");
}

#[test]
fn up_and_down_go_through_rows_as_they_are_seen() {
    let mut typing = typing();
    typing.type_all("first").keys(&[control('j')]).type_all("a long line that wraps");
    assert_eq!(typing.rows(14, 5), ["> first", "  a long line", "  that wraps"]);

    typing.keys(&[key(KeyCode::Up)]);
    assert_eq!(typing.with_cursor(), "first\na long lin|e that wraps");
    typing.keys(&[key(KeyCode::Up)]);
    assert_eq!(typing.with_cursor(), "first|\na long line that wraps");
    typing.keys(&[key(KeyCode::Down), key(KeyCode::Down)]);

    assert_eq!(typing.with_cursor(), "first\na long line that wraps|");
}

#[test]
fn a_space_after_a_full_row_takes_the_cursor_to_the_next() {
    let mut typing = typing();

    typing.type_all("a long line ");

    assert_eq!(typing.rows(14, 5), ["> a long line", "  "]);
    assert_eq!(typing.render("> ", 14, 5).cursor, (2, 1));
    typing.keys(&[key(KeyCode::Up), key(KeyCode::End), key(KeyCode::Left)]);
    assert_eq!(typing.render("> ", 14, 5).cursor, (13, 0));
}

#[test]
fn up_at_the_first_row_goes_into_the_history_and_what_was_typed_comes_back() {
    let mut typing = typing();
    typing.enter_text("one");
    typing.enter_text("two");

    typing.type_all("dra").keys(&[key(KeyCode::Up), control('p')]);
    assert_eq!(typing.text(), "one");
    typing.type_all("!").keys(&[key(KeyCode::Up), control('n')]);
    assert_eq!(typing.text(), "two");
    typing.keys(&[key(KeyCode::Down), key(KeyCode::Down)]);
    assert_eq!(typing.with_cursor(), "dra|");
    typing.keys(&[key(KeyCode::Up), key(KeyCode::Up)]);

    assert_eq!(typing.text(), "one!", "an entry that was changed stays changed until something is entered");
}

#[test]
fn what_ctrl_c_clears_away_comes_back_with_up() {
    let mut typing = typing();

    typing.type_all("half a thought").keys(&[control('c')]);
    assert!(typing.is_empty());
    assert_eq!(typing.press(control('c')), KeyOutcome::Interrupt);
    typing.keys(&[key(KeyCode::Up)]);

    assert_eq!(typing.text(), "half a thought");
}

#[test]
fn keys_with_nothing_typed_are_told_to_the_caller() {
    let mut typing = typing();

    assert_eq!(typing.press(key(KeyCode::Esc)), KeyOutcome::Escape);
    assert_eq!(typing.press(control('d')), KeyOutcome::End);
    assert_eq!(typing.press(control('o')), KeyOutcome::Other(control('o')));
    assert_eq!(typing.press(key(KeyCode::PageUp)), KeyOutcome::Other(key(KeyCode::PageUp)));
    typing.type_all("x");
    assert_eq!(typing.press(key(KeyCode::Esc)), KeyOutcome::Edited);
    assert_eq!(typing.press(control('d')), KeyOutcome::Edited);
    assert_eq!(typing.text(), "x");
}

#[test]
fn a_key_that_is_let_go_does_nothing() {
    let mut typing = typing();
    let mut released = key(KeyCode::Char('x'));
    released.kind = KeyEventKind::Release;

    assert_eq!(typing.press(released), KeyOutcome::Edited);

    assert!(typing.is_empty());
}

#[test]
fn a_long_paste_is_one_piece_and_is_entered_whole() {
    let mut typing = typing();
    let pasted = "a line\r\n".repeat(120);

    typing.type_all("see ");
    typing.paste(&pasted);
    typing.type_all("!");
    assert_eq!(typing.rows(60, 5), ["> see [pasted 120 lines]!"]);
    assert_eq!(typing.render("> ", 60, 5).cursor, (25, 0));
    typing.keys(&[key(KeyCode::Left), key(KeyCode::Backspace), control('h')]);
    assert_eq!(typing.text(), "see!");
    typing.paste(&"x".repeat(5_000));
    assert_eq!(typing.rows(60, 5), ["> see[pasted 5 kB]!"]);

    let whole = format!("see{}!", "x".repeat(5_000));
    assert_eq!(typing.press(key(KeyCode::Enter)), KeyOutcome::Entered(whole));
}

#[test]
fn a_killed_piece_comes_back_though_others_were_pasted_meanwhile() {
    let mut typing = typing();
    let (one, other) = ("1\n".repeat(30), "2\n".repeat(30));

    typing.paste(&one);
    typing.keys(&[control('u')]);
    typing.paste(&other);
    typing.keys(&[control('y')]).type_all(".");

    assert_eq!(typing.press(key(KeyCode::Enter)), KeyOutcome::Entered(format!("{other}{one}.")));
}

#[test]
fn a_character_that_looks_like_a_mark_is_kept_as_it_is() {
    let mut typing = typing();
    typing.paste(&"1\n".repeat(30));

    typing.type_all("\u{10_0000}\u{10_0000}\u{E000}");
    typing.paste("a\u{10_0001}b");
    typing.type_all(".");

    let whole = format!("{}\u{10_0000}\u{10_0000}\u{E000}a\u{10_0001}b.", "1\n".repeat(30));
    assert_eq!(typing.press(key(KeyCode::Enter)), KeyOutcome::Entered(whole));
}

#[test]
fn a_paste_is_cleaned_of_control_characters() {
    let mut typing = typing();

    typing.paste("a\tb\r\nc\rd\u{1b}[31m\u{0}\u{7f}");

    assert_eq!(typing.text(), "a\tb\nc\nd[31m");
}

#[test]
fn an_input_has_a_limit_and_a_word_about_it() {
    let mut typing = typing();
    let half = "x".repeat(5 * 1024 * 1024);

    typing.paste(&half);
    typing.paste(&half);
    assert!(typing.list()[0].starts_with("This would be more than 8 MiB"));
    // A file of that size can't be sent along with @.
    assert!(INPUT_FULL.ends_with("ask the agent to read that.") && !INPUT_FULL.contains('@'));
    typing.type_all(".");

    assert!(typing.list().is_empty());
    assert_eq!(typing.press(key(KeyCode::Enter)), KeyOutcome::Entered(format!("{half}.")));
}

/// S6
#[test]
fn commands_are_offered_and_accepted_with_tab() {
    let mut typing = typing();

    typing.type_all("/co");
    assert_eq!(typing.list()[0], "> /context          Show what fills the context.");
    typing.keys(&[key(KeyCode::Down), key(KeyCode::Tab)]);

    assert_eq!(typing.with_cursor(), "/compact |");
    assert!(typing.list().is_empty());
}

#[test]
fn a_folder_that_is_accepted_shows_what_is_in_it() {
    let mut typing = typing();

    typing.type_all("see @sr").keys(&[key(KeyCode::Right)]);
    assert_eq!(typing.with_cursor(), "see @src/|");
    typing.type_all("main").keys(&[key(KeyCode::Tab)]).type_all("now");

    assert_eq!(typing.press(key(KeyCode::Enter)), KeyOutcome::Entered("see @src/main.rs now".to_owned()));
}

#[test]
fn enter_takes_the_highlighted_entry_of_an_open_list() {
    let mut typing = typing();
    let enter = key(KeyCode::Enter);
    let entered = |text: &str| KeyOutcome::Entered(text.to_owned());

    assert_eq!(typing.type_all("/sta").press(enter), entered("/status"), "it takes no arguments");
    assert_eq!(typing.type_all("/co").keys(&[key(KeyCode::Down), enter]).with_cursor(), "/compact |");
    assert_eq!(typing.press(enter), entered("/compact"));
    assert_eq!(typing.type_all("/tasks").press(enter), entered("/tasks"), "it is typed in full");
    assert_eq!(typing.type_all("/nothing").press(enter), entered("/nothing"));
    assert_eq!(typing.type_all("see @src/main").keys(&[enter]).with_cursor(), "see @src/main.rs |");
    assert_eq!(typing.press(enter), entered("see @src/main.rs"));
    assert_eq!(typing.type_all("@src/main.rs").press(enter), entered("@src/main.rs"), "it is typed in full");
}

/// Types these texts one after the other, and then searches.
fn searching(earlier: &[&str], typed: &str) -> InputField {
    let mut typing = typing();
    earlier.iter().for_each(|text| typing.enter_text(text));
    typing.type_all(typed).keys(&[key(KeyCode::Left), control('r')]);
    typing
}

#[test]
fn ctrl_r_searches_the_history_and_goes_further_back() {
    let mut typing = searching(&["cargo test", "ls", "cargo check", "cargo check", "done"], "draft");

    assert_eq!(typing.type_all("CARGO").text(), "cargo check");
    assert_eq!(typing.list(), ["history search: CARGO_  ·  Enter takes it · Ctrl-R older · …"]);
    assert_eq!(typing.keys(&[control('r')]).text(), "cargo test", "not the same text again");
    assert_eq!(typing.keys(&[control('r')]).text(), "cargo test");
    assert_eq!(typing.list()[0].split_once('_').unwrap().0, "no match for CARGO");
    typing.keys(&[key(KeyCode::Enter)]);

    assert_eq!(typing.with_cursor(), "cargo test|");
    assert!(typing.list().is_empty());
    assert_eq!(typing.press(key(KeyCode::Enter)), KeyOutcome::Entered("cargo test".to_owned()));
}

#[test]
fn a_search_that_is_left_leaves_the_text_as_it_was() {
    for leave in [key(KeyCode::Esc), control('c')] {
        let mut typing = searching(&["cargo test", "ls"], "half a thought");

        assert_eq!(typing.type_all("car").text(), "cargo test");
        typing.keys(&[key(KeyCode::Backspace), leave]);

        assert_eq!(typing.with_cursor(), "half a though|t");
    }
}

#[test]
fn another_key_takes_what_the_search_found_and_does_what_it_always_does() {
    let mut typing = searching(&["cargo test", "ls"], "");

    typing.type_all("test").keys(&[control('a')]).type_all("x");
    assert_eq!(typing.with_cursor(), "x|cargo test");
    typing.keys(&[key(KeyCode::Down), key(KeyCode::Down)]);

    assert_eq!(typing.text(), "", "down leads back to the new input");
}

#[test]
fn a_command_of_the_users_is_typed_and_never_hidden_in_a_paste() {
    let mut typing = typing();

    typing.enter_text("!ls");
    typing.paste(&format!("!{}", "rm -rf x\n".repeat(30)));
    let KeyOutcome::Entered(text) = typing.press(key(KeyCode::Enter)) else { panic!("nothing was entered") };

    assert!(text.starts_with("\n!rm"), "{text}");
}

#[test]
fn esc_closes_the_list_and_up_is_free_again() {
    let mut typing = typing();
    typing.enter_text("before");

    typing.type_all("/e").keys(&[key(KeyCode::Esc), key(KeyCode::Up)]);

    assert_eq!(typing.text(), "before");
}

#[test]
fn the_part_around_the_cursor_is_shown_where_not_all_has_room() {
    let mut typing = typing();
    typing.set("0\n1\n2\n3\n4\n5\n6\n7\n8\n9");

    assert_eq!(typing.rows(20, 3), ["  7", "  8", "  9"]);
    typing.keys(&[key(KeyCode::Up); 5]);
    assert_eq!(typing.rows(20, 3), ["  3", "  4", "  5"]);
    assert_eq!(typing.render("> ", 20, 3).cursor, (3, 1));
    typing.keys(&[key(KeyCode::Up); 4]);
    assert_eq!(typing.rows(20, 3), ["> 0", "  1", "  2"]);
    assert_eq!(typing.rows(1, 1), ["0"]);
}

#[test]
fn keys_stay_quick_in_a_very_long_text() {
    let mut typing = typing();
    for _ in 0..2_000 {
        typing.paste(&"words and more\n".repeat(19));
    }
    let start = std::time::Instant::now();

    for _ in 0..100 {
        typing.type_all("x").keys(&[key(KeyCode::Up)]);
        typing.render("> ", 80, 10);
    }

    // A frame has 16 ms; a machine that is busy may need much more than usual.
    assert!(start.elapsed().as_millis() < 100 * 16, "{:?}", start.elapsed());
}
