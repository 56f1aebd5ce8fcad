//! What is shown while the agent works, in a real terminal.

use longhaul_testkit::Terminal;
use serde_json::json;

use crate::Desk;
use crate::terminal::wait_for_prompt;

#[test]
fn a_running_command_shows_what_it_prints_and_keeps_its_end() {
    let command = "for i in 1 2 3 4 5 6 7; do echo \"line $i\"; done; while [ ! -e go.txt ]; do sleep 0.02; done; echo over";
    let desk = Desk::new(&json!([{"calls": [{"name": "exec", "arguments": {"command": command}}]}, "Well."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);

    terminal.keys("go\r");
    let live = terminal.wait_to_see("\n  line 7\n");
    std::fs::write(desk.path("work/go.txt"), "").unwrap();
    let done = terminal.wait_to_see("Well.");
    wait_for_prompt(&mut terminal);
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(live.contains("\n  line 3\n") && !live.contains("\n  line 2\n"), "{live}");
    assert!(done.contains("8 lines") && done.contains("… 4 more lines, Ctrl-O\n  line 5\n"), "{done}");
}

/// C8: the model reads head and tail, and people all of it.
#[test]
fn a_long_output_is_counted_and_opened_whole_with_search() {
    let desk = Desk::new(
        &json!([{"calls": [{"name": "exec", "arguments": {"command": "seq -f 'number %g' 200000"}}]}, "Well."]),
    );
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    let done = terminal.wait_to_see("Well.");
    wait_for_prompt(&mut terminal);

    terminal.keys("\x0f");
    terminal.wait_to_see("Enter opens");
    terminal.keys("\r");
    terminal.wait_to_see("/ searches");
    terminal.wait_until("the whole output", |seen| seen.contains("of 200,0"));
    terminal.keys("/NUMBER 123456\r");
    terminal.wait_to_see("is not there");
    terminal.keys("/number 123456\r");
    let found = terminal.wait_to_see("  number 123456\n");
    terminal.keys("n");
    terminal.keys("\x1b");
    terminal.wait_to_see("Enter opens");
    terminal.keys("\x1b");
    wait_for_prompt(&mut terminal);
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(done.contains("200,000 lines"), "{done}");
    assert!(found.contains("  number 123455\n"), "{found}");
    assert_eq!(desk.recorded("tool_finished", "lines"), [json!(200_000)]);
}

#[test]
fn a_file_that_is_written_over_is_shown_as_a_diff_and_the_todo_list_as_a_list() {
    let items = json!([{"text": "look", "status": "done"}, {"text": "write", "status": "in_progress"}]);
    let desk = Desk::new(&json!([
        {"calls": [{"name": "todo", "arguments": {"items": items}}]},
        {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "1\n2\n  three\n4\n5\n"}}]},
        "Well.",
    ]));
    std::fs::write(desk.path("work/a.txt"), "1\n2\n  3\n4\n5\n").unwrap();
    let mut command = desk.command(&[]);
    command.env("LC_ALL", "C.UTF-8");
    let mut terminal = Terminal::start(command);
    wait_for_prompt(&mut terminal);

    terminal.keys("go\r");
    let done = terminal.wait_to_see("Well.");
    wait_for_prompt(&mut terminal);
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(done.contains("☑ look\n") && done.contains("▸ write\n"), "{done}");
    assert!(done.contains("a.txt  +1 −1\n  1   1\n  2   2\n  3 -   3\n  3 +   three\n  4   4\n"), "{done}");
}

/// The tokens that `/status` says, as the last row shows them.
fn context_of_status(terminal: &mut Terminal) -> String {
    let earlier = terminal.seen().matches("\ncontext ").count();
    terminal.keys("/status\r");
    let is_there = |seen: &str| seen.matches("\ncontext ").count() > earlier;
    let seen = terminal.wait_until("the status", is_there);
    let tokens = seen.rsplit("\ncontext ").next().unwrap().split_whitespace().next().unwrap();
    let tokens: u64 = tokens.replace(',', "").parse().unwrap();
    format!(" · {}% of 20k · saved · /help", tokens * 100 / 20_000)
}

/// C1: one figure for the size of the context, in every terminal that has the session open.
#[test]
fn the_last_row_has_the_context_of_status_also_after_a_compaction_and_in_a_joined_terminal() {
    let desk = Desk::new(&json!([
        {"calls": [{"name": "read_file", "arguments": {"path": "long.txt"}}]},
        {"text": "Read.", "usage": {"input": 3_000, "output": 10}},
        "Short.",
        {"summary": true, "text": "# Goal\nRead a file."},
    ]));
    desk.configure("[model]\ncontext_window = 20000\n");
    std::fs::write(desk.path("work/long.txt"), "a long line of a file\n".repeat(500)).unwrap();
    let mut terminal = Terminal::of_size(desk.command(&[]), (140, 50));
    wait_for_prompt(&mut terminal);
    terminal.keys("go\r");
    terminal.wait_to_see("Read.");
    let mut joined = Terminal::of_size(desk.command(&["-s", &desk.key()]), (140, 50));
    wait_for_prompt(&mut joined);

    for (line, answer) in [("again", "Short."), ("/compact", "compacted")] {
        terminal.keys(&format!("{line}\r"));
        terminal.wait_to_see(answer);
        wait_for_prompt(&mut terminal);
        let row = context_of_status(&mut terminal);
        terminal.wait_until(&row, |seen| seen.ends_with(&row));
        joined.wait_until(&row, |seen| seen.ends_with(&row));
    }
    terminal.keys("/fork\r");
    terminal.wait_to_see("-fork (");
    let row = context_of_status(&mut terminal);
    terminal.wait_until(&row, |seen| seen.ends_with(&row));
}
