//! Questions: asked where somebody is, answered from anywhere.

use rustix::process::Signal;
use serde_json::json;

use crate::desk::{Desk, Running, eventually};

/// P4: what is open and can't be answered here ends with an exit code of its own, and the turn stays open.
#[test]
fn a_question_that_nobody_can_answer_suspends_the_turn() {
    let desk = Desk::new(&json!(["first", "Done."]));
    let question = desk.asked("a", "echo ran > ran.txt");

    let (code, out, errors) = desk.run(&["resume", "a"]);
    let status = desk.json(&["status", "-s", "a", "--json"]);

    assert_eq!((code, out.as_str()), (7, ""), "{errors}");
    assert!(errors.contains("question: May exec run?"), "{errors}");
    assert!(errors.contains(&format!("longhaul answer -s a {question} yes")), "{errors}");
    assert!(errors.contains("longhaul resume a"), "{errors}");
    assert_eq!(status["questions"][0]["id"], json!(question));
    assert!(desk.records("a", "turn_ended").is_empty() && !desk.path("work/ran.txt").exists());
}

/// P4
#[test]
fn an_answer_is_saved_with_nobody_there_and_the_turn_goes_on_with_it() {
    for (answer, ran) in [("yes", true), ("no", false), ("not on a Friday", false)] {
        let desk = Desk::new(&json!(["first", "Done."]));
        let question = desk.asked("a", "echo ran > ran.txt").to_string();

        let answered = desk.run(&["answer", "-s", "a", &question, answer]);
        let (code, out, errors) = desk.run(&["resume", "a"]);

        assert_eq!(answered.0, 0, "{}", answered.2);
        // The session's turn ran with the model `m`, which is not the configured one.
        assert!(answered.2.contains("longhaul --model m resume a"), "{}", answered.2);
        assert_eq!((code, out.as_str()), (0, "Done.\n"), "{errors}");
        assert_eq!(desk.path("work/ran.txt").exists(), ran, "{answer}");
        assert_eq!(desk.records("a", "answered")[0]["answer"], json!(answer));
    }
}

#[test]
fn an_answer_needs_no_id_where_one_question_is_open_and_an_open_question_in_any_case() {
    let desk = Desk::new(&json!(["first", "Done."]));
    let question = desk.asked("a", "true").to_string();

    let unknown = desk.run(&["answer", "-s", "a", "01JZZZZZZZZZZZZZZZZZZZZZZZ", "yes"]);
    let no_answer = desk.run(&["answer", "-s", "a", &question]);
    let alone = desk.run(&["answer", "-s", "a", "yes"]);
    let (code, _, errors) = desk.run(&["resume", "a"]);
    let settled = desk.run(&["answer", "-s", "a", &question, "yes"]);
    let none = desk.run(&["answer", "-s", "a", "yes"]);

    assert_eq!((unknown.0, unknown.2.contains(&question)), (2, true), "{}", unknown.2);
    assert_eq!((no_answer.0, no_answer.2.contains("the answer is missing")), (2, true), "{}", no_answer.2);
    assert_eq!((alone.0, code), (0, 0), "{}{errors}", alone.2);
    assert_eq!((settled.0, settled.2.contains("already answered (yes)")), (2, true), "{}", settled.2);
    assert_eq!((none.0, none.2.contains("a has no open question")), (2, true), "{}", none.2);
}

/// What is said to a session whose question is open is accepted before this process leaves.
#[test]
fn what_is_said_while_a_question_is_open_is_not_lost() {
    let desk = Desk::new(&json!(["first", "Done."]));
    desk.asked("a", "true");

    let (code, _, errors) = desk.run(&["run", "-s", "a", "and hurry"]);
    desk.run(&["answer", "-s", "a", "yes"]);
    let resumed = desk.run(&["resume", "a"]);

    assert_eq!(code, 7, "{errors}");
    assert_eq!((resumed.0, resumed.1.as_str()), (0, "Done.\n"), "{}", resumed.2);
    let said: Vec<_> = desk.records("a", "input_taken").iter().map(|taken| taken["text"].clone()).collect();
    assert_eq!(said, [json!("go"), json!("and hurry")]);
}

/// P4, T3: from another process, while the session is served.
#[test]
fn an_answer_reaches_whoever_serves_the_session() {
    let desk = Desk::new(&json!(["first", "Done."]));
    desk.asked("a", "echo ran > ran.txt");
    let mut serving = Running::start(desk.command(&["serve", "--no-http", "--json"]));
    eventually("somebody runs it", || !desk.json(&["status", "-s", "a", "--json"])["run_by"].is_null());

    let (code, _, errors) = desk.run(&["resume", "a"]);
    let answered = desk.run(&["answer", "-s", "a", "yes"]);
    let ended = serving.wait_for("turn_ended");
    serving.signal(Signal::TERM);

    assert_eq!((code, errors.contains("longhaul answer -s a")), (7, true), "{errors}");
    assert_eq!((answered.0, answered.2.as_str()), (0, ""), "somebody runs it");
    assert_eq!(ended["outcome"], json!("completed"));
    assert!(desk.path("work/ran.txt").exists());
    serving.end();
}
