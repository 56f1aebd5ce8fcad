//! What is shown of commands, files and the todo list while the agent works.

use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::tui::OutputPagesWriter;

const TODO: &str = r#"{"items":[{"text":"find the cause","status":"done"},{"text":"correct the parser","status":"in_progress"},{"text":"run the tests","status":"pending"}]}"#;

fn tail(call: CallId, lines: &[&str]) -> ScreenUpdate {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    ScreenUpdate::Output(OutputUpdate::Tail { call, lines })
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

#[test]
fn a_running_command_shows_its_last_lines_and_keeps_a_few_when_it_has_ended() {
    let mut seen = Seen::new((60, 20));
    seen.types("test it\n");
    let id = CallId::generate();
    seen.see(EventKind::TurnStarted { cause: None })
        .see(call(id, "exec", r#"{"command":"cargo test"}"#))
        .later(2);

    seen.update(tail(id, &["test one ... ok", "test two ... ok", "test three ...", "\tfour", "five"]));
    insta::assert_snapshot!("a_running_command", seen.screen());
    let output: String = (1..=120).map(|line| format!("test {line} ... ok\n")).collect();
    seen.see(ended(id, "exec", &format!("status: completed\nexit_code: 0\nduration_ms: 2100\n\n{output}")));
    insta::assert_snapshot!("a_command_that_ended", seen.screen());
}

#[test]
fn lines_of_a_call_that_has_ended_are_not_shown_again() {
    let mut seen = Seen::new((60, 12));
    let id = CallId::generate();
    seen.see(EventKind::TurnStarted { cause: None }).see(call(id, "exec", r#"{"command":"make"}"#));
    seen.see(ended(id, "exec", "status: completed\n\n"));

    seen.update(tail(id, &["too late"]));

    assert!(!seen.screen().contains("too late"));
}

#[test]
fn several_running_commands_all_stay_in_sight() {
    let mut seen = Seen::new((60, 20));
    seen.see(EventKind::TurnStarted { cause: None });
    for number in 0..4 {
        let id = CallId::generate();
        seen.see(call(id, "exec", &format!(r#"{{"command":"run {number}"}}"#)));
        seen.update(tail(id, &["one", "two", "three", "four", "five"]));
    }

    let screen = seen.screen();

    assert!((0..4).all(|number| screen.contains(&format!("run {number}"))), "{screen}");
    assert!(screen.contains("  five"), "{screen}");
}

#[test]
fn the_todo_list_is_shown_where_it_changes_and_above_the_input_while_a_turn_runs() {
    let mut seen = Seen::new((60, 30));
    seen.types("correct it\n");
    let id = CallId::generate();
    seen.see(EventKind::TurnStarted { cause: None }).see(call(id, "todo", TODO)).see(ended(id, "todo", "ok"));

    insta::assert_snapshot!("a_todo_list", seen.screen());
    seen.see(end(Outcome::Completed));
    let after = seen.screen();
    assert_eq!(after.matches("correct the parser").count(), 1, "{after}");
}

#[test]
fn a_write_over_a_file_is_shown_with_the_numbers_of_its_lines() {
    let mut seen = Seen::new((60, 24));
    let id = CallId::generate();
    let diff = "--- a/src/parse.rs\n+++ b/src/parse.rs\n@@ -8,5 +8,6 @@\n \n fn parse(text: &str) -> u64 {\n-    text.parse().unwrap()\n+    let number = text.parse();\n+    number.unwrap_or(0)\n }\n \n@@ -40 +41 @@\n-end\n+the end\n";
    seen.see(EventKind::TurnStarted { cause: None }).see(call(
        id,
        "write_file",
        r#"{"path":"src/parse.rs","content":"…"}"#,
    ));
    seen.see(EventKind::ToolFinished {
        call_id: id,
        name: "write_file".to_owned(),
        is_error: false,
        content: "wrote 900 bytes to src/parse.rs".to_owned(),
        diff: Some(diff.to_owned()),
        lines: None,
        report: Box::default(),
    });

    insta::assert_snapshot!(seen.screen());
}

#[test]
fn control_t_shows_and_folds_thoughts() {
    let mut seen = Seen::new((70, 20));
    seen.see(EventKind::TurnStarted { cause: None })
        .see(EventKind::ReasoningDelta { text: "Hidden words.".to_owned() });
    seen.see(message("One."));
    seen.control('t');
    seen.see(EventKind::ReasoningDelta { text: "Open words.".to_owned() }).see(message("Two."));
    seen.control('t');

    let screen = seen.screen();

    assert!(screen.contains("thought, 2 words") && !screen.contains("Hidden words"), "{screen}");
    assert!(screen.contains("▌ Open words."), "{screen}");
    assert!(screen.contains("thoughts are shown from here on; Ctrl-T folds them"), "{screen}");
}

/// A view with a command of 100,000 lines, of which the model reads three.
fn with_a_long_output(size: (u16, u16)) -> (Seen, CallId) {
    let mut seen = Seen::new(size);
    let id = CallId::generate();
    seen.see(EventKind::TurnStarted { cause: None }).see(call(id, "exec", r#"{"command":"seq 100000"}"#));
    let content = "status: completed\nexit_code: 0\n\n1\n[… 99998 lines (588000 bytes) are missing here; it is long …]\n100000\n";
    seen.see(ended(id, "exec", content)).see(end(Outcome::Completed));
    (seen, id)
}

#[test]
fn an_opened_command_shows_its_whole_output_and_can_be_searched() {
    let (mut seen, id) = with_a_long_output((60, 12));
    let (requests, mut asked) = unbounded_channel();
    seen.update(ScreenUpdate::Output(OutputUpdate::Requests(requests)));
    seen.control('o');
    seen.view.press(key(KeyCode::Enter));
    assert_eq!(asked.try_recv(), Ok(id));
    insta::assert_snapshot!("an_output_that_is_being_read", frame_text(&seen.view.frame(seen.now)));

    let mut writer = OutputPagesWriter::new(Some(&std::env::temp_dir()));
    (1..=100_000).for_each(|number| writer.push(&format!("{number}\n")));
    seen.update(ScreenUpdate::Output(OutputUpdate::Whole { call: id, pages: writer.finish() }));
    let started = Instant::now();
    seen.types("/7777\n");
    let first = frame_text(&seen.view.frame(seen.now));
    seen.types("n");
    let second = frame_text(&seen.view.frame(seen.now));
    seen.types("N");
    let again = frame_text(&seen.view.frame(seen.now));
    seen.view.press(key(KeyCode::End));
    let last = frame_text(&seen.view.frame(seen.now));
    let took = started.elapsed();

    insta::assert_snapshot!("a_search_in_an_output", first);
    assert!(second.contains("  17777\n"), "{second}");
    assert_eq!(again, first);
    assert!(last.contains("  100000\n") && last.contains("end"), "{last}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    seen.types("/nowhere\n");
    assert!(frame_text(&seen.view.frame(seen.now)).contains("\"nowhere\" is not there"));
    // Esc ends the typing, then goes back to the list, then closes it.
    seen.types("/x");
    (0..3).for_each(|_| drop(seen.view.press(key(KeyCode::Esc))));
    assert!(!seen.view.shows_details());
}

#[test]
fn an_output_that_is_nowhere_else_is_shown_as_the_model_reads_it() {
    let (mut seen, id) = with_a_long_output((60, 12));
    let (requests, _asked) = unbounded_channel();
    seen.update(ScreenUpdate::Output(OutputUpdate::Requests(requests)));
    seen.control('o');
    seen.view.press(key(KeyCode::Enter));

    seen.update(ScreenUpdate::Output(OutputUpdate::NoMore { call: id }));

    let frame = frame_text(&seen.view.frame(seen.now));
    assert!(frame.contains("99998 lines") && !frame.contains("reading the whole"), "{frame}");
}

#[test]
fn rows_of_work_fit_into_terminals_of_any_size() {
    for size in [(1, 1), (2, 3), (20, 1), (20, 5), (20, 24), (80, 2)] {
        let mut seen = Seen::new(size);
        let (todo, exec) = (CallId::generate(), CallId::generate());
        seen.see(EventKind::TurnStarted { cause: None })
            .see(call(todo, "todo", TODO))
            .see(ended(todo, "todo", "ok"));
        seen.see(call(exec, "exec", r#"{"command":"echo שלום 日本語"}"#));
        seen.update(tail(
            exec,
            &["שלום עולם, זה ארוך מאוד", "日本語の長い行がここにあります", "\u{202e}x\u{1b}[31m"],
        ));
        let running = seen.view.frame(seen.now);
        seen.see(ended(
            exec,
            "exec",
            "status: failed\nexit_code: 1\n\nשלום\n日本語の長い行がここにあります\n",
        ));
        let finished = seen.view.frame(seen.now);
        seen.control('o');
        seen.view.press(key(KeyCode::Enter));
        seen.types("/日\n");
        let opened = seen.view.frame(seen.now);

        for frame in [running, finished, opened] {
            for row in frame.above.iter().chain(&frame.rows) {
                assert!(row.width() <= usize::from(size.0), "{size:?}: {row:?}");
            }
            assert!(frame.rows.len() <= usize::from(size.1.max(1)), "{size:?}");
        }
    }
}

/// P4: going through the modes leaves one line.
#[test]
fn several_changes_of_the_mode_are_one_line() {
    let mut seen = Seen::new((100, 14));
    let changed = |from, to| EventKind::ModeChanged { from, to };
    seen.see(changed(PermissionMode::Auto, PermissionMode::Plan));
    let first = seen.screen();
    seen.see(changed(PermissionMode::Plan, PermissionMode::Ask));
    let second = seen.screen();
    seen.update(ScreenUpdate::Note("something else".to_owned()));
    let settled = seen.screen();
    seen.see(changed(PermissionMode::Ask, PermissionMode::Auto))
        .see(changed(PermissionMode::Auto, PermissionMode::Ask));
    let around = seen.screen();

    let count = |screen: &str| screen.matches("mode").count();
    assert!(first.contains("plan") && count(&first) >= 1, "{first}");
    assert!(!second.contains("plan") && second.contains("ask"), "{second}");
    assert!(settled.find("ask").unwrap() < settled.find("something else").unwrap(), "{settled}");
    assert_eq!(around, settled, "a whole round is no change");
}

#[test]
fn the_last_row_of_a_question_at_the_start_begins_with_its_keys() {
    let mut seen = Seen::new((80, 10));
    seen.update(ScreenUpdate::StatusFacts(StatusFacts::default()));
    seen.update(ScreenUpdate::Ask("Join it? [J/n] ".to_owned()));

    assert!(seen.screen().ends_with("\nEnter answers, Ctrl-C leaves it open"), "{}", seen.screen());
}

#[test]
fn a_thought_has_the_same_words_in_the_list_as_in_the_conversation() {
    let mut seen = Seen::new((80, 12));
    seen.see(EventKind::TurnStarted { cause: None })
        .see(EventKind::ReasoningDelta { text: "one two three".to_owned() });
    seen.now += Duration::from_millis(500);
    seen.see(message("Well."));

    let conversation = seen.screen();
    seen.control('o');
    let list = seen.screen();

    assert!(conversation.contains("thought for 0.5 s, 3 words"), "{conversation}");
    assert!(list.contains("  thought for 0.5 s, 3 words"), "{list}");
}

/// A list of three calls, of which a text finds two.
#[test]
fn a_slash_filters_the_list_of_calls_before_one_is_opened() {
    let mut seen = Seen::new((70, 12));
    seen.see(EventKind::TurnStarted { cause: None });
    for path in ["src/calc.py", "README", "tests/Calc.py"] {
        seen.see(call(CallId::generate(), "read_file", &format!(r#"{{"path":"{path}"}}"#)));
    }
    let (enter, escape) = (key(KeyCode::Enter), key(KeyCode::Esc));
    seen.control('o');

    seen.types("/calc");
    let typed = frame_text(&seen.view.frame(seen.now));
    seen.view.press(enter);
    let filtered = frame_text(&seen.view.frame(seen.now));
    seen.types("k");
    seen.view.press(enter);
    let opened = frame_text(&seen.view.frame(seen.now));
    seen.view.press(escape);
    seen.view.press(escape);
    let all = frame_text(&seen.view.frame(seen.now));
    seen.types("/nothing");
    seen.view.press(enter);
    seen.view.press(enter);
    let none = frame_text(&seen.view.frame(seen.now));

    assert!(typed.ends_with("/calc") && !typed.contains("README"), "{typed}");
    assert!(filtered.contains("src/calc.py") && filtered.contains("tests/Calc.py"), "{filtered}");
    assert!(filtered.contains("2 of 2 with \"calc\"") && !filtered.contains("README"), "{filtered}");
    assert!(opened.contains("src/calc.py") && !opened.contains("tests/Calc.py"), "{opened}");
    assert!(all.contains("README") && all.contains("1 of 3"), "{all}");
    assert!(none.contains("0 of 0") && !none.contains("calc.py"), "{none}");
}
