//! Tasks and questions in a conversation.

use std::process::Command;

use longhaul_testkit::Terminal;
use rustix::process::Signal;
use serde_json::json;

use crate::desk::{Desk, Running, WAITS, eventually};

/// K15, S6
#[test]
fn tasks_are_listed_shown_and_ended_between_lines() {
    let desk = Desk::new(&json!([]));
    let id = desk.task(&desk.key(), WAITS);
    desk.task("other", WAITS);
    let output = desk.tasks().output(id).unwrap();
    eventually("it has printed its first line", || output.printed().unwrap() == 6);
    let id = id.to_string();
    let short = &id[id.len() - 6..];

    let lines = format!("/tasks\n/tasks output {short}\n/tasks kill {short}\n/tasks bake\n/tasks kill zz\n");
    let (code, out, errors) = desk.talk(&[], &lines);

    assert_eq!(code, 0, "{errors}");
    assert_eq!(out, "begun\n", "{errors}");
    assert!(errors.contains("running") && !errors.contains("a task of other"), "{errors}");
    assert!(errors.contains(&format!("task {short} was killed")), "{errors}");
    assert!(errors.contains("usage: /tasks") && errors.contains("no task"), "{errors}");
}

/// S6: a task is followed as long as the user wants, and the conversation goes on.
#[test]
fn following_a_task_is_left_by_esc_by_control_c_and_by_a_line() {
    let desk = Desk::new(&json!(["Here."]));
    let id = desk.task(&desk.key(), WAITS).to_string();
    let short = &id[id.len() - 6..];
    let mut terminal = Terminal::start(desk.command(&[]));
    terminal.wait_to_see("/help");

    for (before, key) in ["\x1b", "\x03", "/status\r"].into_iter().enumerate() {
        terminal.keys(&format!("/tasks follow {short}\r"));
        let follows = |seen: &str| seen.matches("\nbegun\n").count() > before && !seen.ends_with("/help");
        terminal.wait_until("the output of the task", follows);
        terminal.keys(key);
        terminal.wait_until("a prompt that waits", |seen| seen.ends_with("/help"));
    }
    terminal.wait_to_see("context");
    terminal.keys("hello\r");
    terminal.wait_to_see("Here.");
    terminal.wait_until("a prompt that waits", |seen| seen.ends_with("/help"));
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(desk.records(&desk.key(), "task_ended").is_empty(), "the task goes on");
    desk.let_go();
}

/// P4: what is piped in may be the answer.
#[test]
fn yes_answers_the_question_that_is_open() {
    let desk = Desk::new(&json!(["first", "Done."]));
    let key = desk.key();
    desk.asked(&key, "echo ran > ran.txt");

    let left = desk.talk(&[], "");
    let (code, out, errors) = desk.talk(&[], "yes\n");

    assert_eq!((left.0, left.2.contains("longhaul answer -s cli:")), (7, true), "{}", left.2);
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{errors}");
    assert!(errors.contains("question: May exec run?"), "{errors}");
    assert!(desk.path("work/ran.txt").exists());
}

/// P4, P8: piped words are an input, and only `/answer` makes them an answer.
#[test]
fn other_words_join_the_turn_and_the_question_stays() {
    let desk = Desk::new(&json!(["first", "Done."]));
    let key = desk.key();
    desk.asked(&key, "echo ran > ran.txt");

    let (code, out, errors) = desk.talk(&[], "be quick\n/answer not today\n");

    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{errors}");
    assert_eq!(desk.records(&key, "answered")[0]["answer"], json!("not today"));
    assert_eq!(desk.records(&key, "input_taken")[1]["text"], json!("be quick"));
    assert!(!desk.path("work/ran.txt").exists());
}

/// K6: somebody who is at the prompt, and has half a line typed, sees what the end of a task leads to.
#[test]
fn the_end_of_a_task_is_shown_while_somebody_types() {
    for plain in [&[][..], &["--plain"]] {
        let desk = Desk::new(&json!(["It is done.", "Thanks."]));
        let key = desk.key();
        desk.task(&key, WAITS);
        let mut terminal = Terminal::start(desk.command(plain));
        terminal.wait_for("> ");

        terminal.keys("tha");
        terminal.wait_for("tha");
        desk.let_go();
        terminal.wait_for("completed");
        terminal.wait_for("It is done.");
        terminal.wait_for("> ");
        terminal.keys("nks\r");
        terminal.wait_for("Thanks.");
        terminal.wait_for("> ");
        terminal.keys("/exit\r");

        assert_eq!(terminal.wait().code(), Some(0));
        let said = desk.records(&key, "input_taken");
        assert_eq!(said.last().unwrap()["text"], json!("thanks"), "{plain:?}");
    }
}

/// P4: where somebody is at the terminal, `run` and `resume` ask there.
#[test]
fn a_question_is_asked_in_the_terminal() {
    let desk = Desk::new(&json!(["first", "Done."]));
    desk.asked("a", "echo ran > ran.txt");
    let mut terminal = Terminal::start(desk.command(&["resume", "a"]));

    terminal.wait_for("question: May exec run?");
    terminal.wait_for("Answer yes, no, or a reason: ");
    terminal.keys("y\r");
    terminal.wait_for("Done.");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(desk.path("work/ran.txt").exists());
}

/// The same command, which learns of a file that may not grow by an error and not by its end.
fn spared(command: &Command) -> Command {
    let mut spared = Command::new("sh");
    spared.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(command.get_program());
    spared.args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    spared.envs(variables);
    spared
}

/// P4: whoever answered is asked again, at the terminal and in a conversation. The session is run elsewhere, so that the answer is
/// all that can't be saved.
#[test]
fn an_answer_that_could_not_be_saved_is_asked_for_again() {
    for (arguments, asks, orders) in [(&["resume", "a"][..], "or a reason: ", 1), (&[], "> ", 0)] {
        let desk = Desk::new(&json!(["first", "Done."]));
        let key = if arguments.is_empty() { desk.key() } else { "a".to_owned() };
        desk.asked(&key, "echo ran > ran.txt");
        let mut serving = Running::start(desk.command(&["serve", "--no-http", "--json"]));
        eventually("somebody runs it", || !desk.json(&["status", "-s", &key, "--json"])["run_by"].is_null());
        let mut terminal = Terminal::start(spared(&desk.command(arguments)));
        terminal.wait_for(asks);
        eventually("what is wanted was said", || desk.records(&key, "order_taken").len() == orders);

        terminal.let_files_grow_to(Some(0));
        terminal.keys("y\r");
        terminal.wait_for("disk I/O error");
        terminal.wait_for(asks);
        terminal.let_files_grow_to(None);
        terminal.keys("y\r");
        serving.wait_for("turn_ended");

        assert!(desk.path("work/ran.txt").exists());
        assert_eq!(desk.records(&key, "answered")[0]["answer"], json!("yes"));
        assert_eq!(desk.records(&key, "input_taken").len(), 1, "yes was no input");
        serving.signal(Signal::TERM);
        serving.end();
    }
}

/// P4, T12: where a question is open nothing else is asked, so `no` can only be its answer.
#[test]
fn a_question_is_shown_on_resuming_and_answered_at_the_prompt() {
    let desk = Desk::new(&json!(["first", "Done."]));
    let key = desk.key();
    desk.asked(&key, "echo ran > ran.txt");
    let mut terminal = Terminal::start(desk.command(&["--plain"]));

    terminal.wait_for("question: May exec run?");
    terminal.wait_for("answer yes or no");
    terminal.keys("no\r");
    terminal.wait_for("answer: no");
    terminal.wait_for("Done.");
    terminal.wait_for("> ");
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(!desk.path("work/ran.txt").exists());
    assert_eq!(desk.records(&key, "turn_ended")[0]["outcome"], json!("completed"), "no is about the command");
}
