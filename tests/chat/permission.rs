//! Permission modes and questions in a terminal.

use longhaul_testkit::Terminal;
use serde_json::{Value, json};

use crate::Desk;
use crate::terminal::wait_for_prompt;

fn exec(command: &str) -> Value {
    json!({"calls": [{"name": "exec", "arguments": {"command": command}}]})
}

fn write(path: &str, content: &str) -> Value {
    json!({"calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]})
}

/// P4: one key each, and a text is a no with that reason.
#[test]
fn a_question_takes_one_key_or_a_reason() {
    let desk = Desk::new(&json!([
        write("a.txt", "hello\n"),
        exec("touch b.txt"),
        exec("touch c.txt"),
        exec("touch b.txt"),
        "Done."
    ]));
    let mut terminal = Terminal::start(desk.command(&["--permission", "ask"]));
    wait_for_prompt(&mut terminal);

    terminal.keys("go\r");
    let asked = terminal.wait_to_see("or type why not");
    terminal.keys("y");
    terminal.wait_to_see("touch b.txt");
    terminal.keys("a");
    terminal.wait_to_see("touch c.txt");
    terminal.keys(" not c, please\r");
    terminal.wait_to_see("Done.");
    terminal.keys("\x04");
    terminal.wait();

    assert!(asked.contains("+hello"), "{asked}");
    assert_eq!(asked.matches("May write_file change").count(), 1, "{asked}");
    assert_eq!(desk.recorded("answered", "answer"), [json!("yes"), json!("always"), json!("not c, please")]);
    assert!(desk.path("work/a.txt").exists() && desk.path("work/b.txt").exists());
    assert!(!desk.path("work/c.txt").exists());
    let told = desk.recorded("tool_finished", "content");
    assert!(told[2].as_str().unwrap().contains("not c, please"), "{told:?}");
    assert_eq!(desk.recorded("mode_changed", "to"), [json!("ask")]);
    assert_eq!(desk.recorded("input_taken", "text"), [json!("go")]);
}

/// P4: a word that is being typed when the question appears is no answer, and a letter alone is one.
#[test]
fn a_word_typed_into_a_question_grants_nothing() {
    let desk = Desk::new(&json!([exec("touch a.txt"), exec("touch b.txt"), exec("touch b.txt"), "Done."]));
    let mut terminal = Terminal::start(desk.command(&["--permission", "ask"]));
    wait_for_prompt(&mut terminal);

    terminal.keys("go\r");
    terminal.wait_to_see("or type why not");
    terminal.keys("please");
    terminal.wait_to_see("> please");
    terminal.keys(" don't\r");
    terminal.wait_to_see("touch b.txt");
    terminal.keys("p");
    terminal.wait_to_see("always allowed in this project from now on");
    terminal.wait_to_see("Done.");
    terminal.keys("\x04");
    terminal.wait();

    assert_eq!(desk.recorded("answered", "answer"), [json!("please don't"), json!("project")]);
    assert!(!desk.path("work/a.txt").exists() && desk.path("work/b.txt").exists());
    let rules = std::fs::read_to_string(desk.path("home/approvals.toml")).unwrap();
    assert!(rules.contains("touch b.txt") && !rules.contains("touch a.txt"), "{rules}");
}

/// P3, P4: a command that the sandbox refuses is asked about, and one key runs it once outside.
#[test]
fn one_key_runs_a_refused_command_outside() {
    let command = "echo run >> log.txt; ls / > /dev/null && echo outside >> log.txt";
    let desk = Desk::new(&json!([exec(command), "Done."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);

    terminal.keys("go\r");
    let asked = terminal.wait_to_see("or type why not");
    terminal.keys("y");
    terminal.wait_to_see("Done.");
    terminal.keys("\x04");
    terminal.wait();

    assert!(asked.contains("outside the sandbox?") && asked.contains("ls / > /dev/null"), "{asked}");
    assert!(!asked.contains("always this session"), "{asked}");
    assert_eq!(std::fs::read_to_string(desk.path("work/log.txt")).unwrap(), "run\nrun\noutside\n");
    let told = desk.recorded("tool_finished", "message");
    assert!(told[0].as_str().unwrap().contains("it ran twice"), "{told:?}");
}

/// P4: Shift-Tab goes on to the next mode, and a plan is accepted by one key.
#[test]
fn shift_tab_leads_to_plan_mode_and_one_key_accepts_the_plan() {
    let desk =
        Desk::new(&json!([exec("touch a.txt"), "I would touch a.txt.", exec("touch a.txt"), "Touched."]));
    let mut terminal = Terminal::start(desk.command(&[]));
    wait_for_prompt(&mut terminal);

    terminal.keys("\x1b[Z");
    terminal.wait_to_see("mode: plan instead of auto");
    terminal.keys("go\r");
    terminal.wait_to_see("or type what to change");
    assert!(!desk.path("work/a.txt").exists());
    terminal.keys("/status\r");
    terminal.wait_to_see("mode          plan");
    terminal.keys("y");
    terminal.wait_to_see("Touched.");
    wait_for_prompt(&mut terminal);
    terminal.keys("\x04");
    terminal.wait();

    assert!(desk.path("work/a.txt").exists());
    assert_eq!(desk.recorded("mode_changed", "to"), [json!("plan"), json!("auto")]);
    assert_eq!(desk.recorded("turn_ended", "outcome"), [json!("completed"), json!("completed")]);
}

/// P4: in one shot nobody can answer; the question waits, and the answer lets the turn go on.
#[test]
fn a_run_in_ask_mode_leaves_its_question_open_and_an_answer_goes_on() {
    let desk = Desk::new(&json!([exec("touch a.txt"), exec("touch b.txt"), "Done."]));

    let (code, _, errors) = desk.run(&["run", "-s", "a", "--permission", "ask", "--json", "go"]);
    let answered = desk.run(&["answer", "-s", "a", "project"]);
    let (again, out, _) = desk.run(&["resume", "a", "--json"]);

    assert_eq!(code, 7, "{errors}");
    assert_eq!((answered.0, again), (0, 7), "{}{out}", answered.2);
    assert!(desk.path("work/a.txt").exists() && !desk.path("work/b.txt").exists());
    let rules = std::fs::read_to_string(desk.path("home/approvals.toml")).unwrap();
    assert!(rules.contains("line = \"touch a.txt\""), "{rules}");
    let event = out.lines().find(|line| line.contains("\"type\":\"question\"")).unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!((&event["kind"], &event["choices"][1]), (&json!("approval"), &json!("always")), "{event}");
}

/// P4: the plan is the answer.
#[test]
fn a_run_in_plan_mode_ends_with_the_plan() {
    let desk = Desk::new(&json!([exec("touch a.txt"), "I would touch a.txt."]));

    let (code, out, errors) = desk.run(&["run", "-s", "a", "--permission", "plan", "go"]);
    let told = errors.lines().last().unwrap_or_default().to_owned();
    let wrong = desk.run(&["run", "--permission", "yolo", "go"]);

    assert_eq!((code, out.as_str()), (0, "I would touch a.txt.\n"), "{errors}");
    assert!(
        told.contains("to accept the plan: longhaul answer -s a ") && told.contains("; then longhaul"),
        "{told}"
    );
    assert!(!desk.path("work/a.txt").exists());
    assert_eq!((wrong.0, wrong.2.contains("auto-edit")), (2, true), "{}", wrong.2);
}

/// P4: the first screen of a session says what the agent does without asking.
#[test]
fn a_new_session_says_its_mode_and_how_to_change_it() {
    for (mode, said) in
        [("auto", "mode auto: commands run without asking,"), ("ask", "mode ask: you are asked")]
    {
        let desk = Desk::new(&json!(["Hello."]));
        let mut terminal = Terminal::of_size(desk.command(&["--permission", mode]), (140, 24));

        let first = terminal.wait_to_see("; Shift-Tab changes that");
        terminal.keys("hi\r");
        terminal.wait_to_see("Hello.");
        terminal.keys("\x04");
        terminal.wait();
        let again = wait_for_prompt(&mut Terminal::of_size(desk.command(&[]), (140, 24)));

        assert!(first.contains(said), "{first}");
        assert!(!again.contains("changes that"), "{again}");
    }
}

/// T12: the list of open work knows an answer that no process has taken yet, and the hint names the turn's model.
#[test]
fn an_answered_question_is_not_waited_for_and_the_turn_keeps_its_model() {
    let call = json!({"name": "exec", "arguments": {"command": "true"}});
    let desk = Desk::with_model_of_config("");
    std::fs::write(desk.path("script.json"), json!([{"calls": [call]}, "Done."]).to_string()).unwrap();
    let model = format!("scripted/{}", desk.path("script.json").display());
    for key in ["one", "two"] {
        let (code, _, errors) = desk.run(&["run", "-s", key, "--permission", "ask", "--model", &model, "go"]);
        assert_eq!(code, 7, "{errors}");
    }

    let (_, _, hint) = desk.run(&["answer", "-s", "one", "yes"]);
    let (_, listed, _) = desk.run(&["resume"]);

    assert!(hint.contains(&format!("longhaul --model {model} resume one")), "{hint}");
    assert!(listed.contains("one  # turn 1: its question is answered"), "{listed}");
    assert!(listed.contains("two  # turn 1: waiting for your answer to a question"), "{listed}");
}
