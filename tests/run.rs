//! `longhaul run` and the commands that go on with a turn, as real processes.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Runs until the test says so.
const WAITS: &str = "echo once >> log.txt; while [ ! -e go.txt ]; do sleep 0.02; done; echo the end";

/// A folder with a home, a work folder and a script.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new(script: &Value) -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(desk.path("work")).unwrap();
        desk.play(script);
        desk
    }

    fn play(&self, script: &Value) {
        std::fs::write(self.path("script.json"), script.to_string()).unwrap();
    }

    fn configure(&self, config: &str) {
        std::fs::create_dir_all(self.path("home")).unwrap();
        std::fs::write(self.path("home/config.toml"), config).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env("LONGHAUL_HOME", self.path("home"))
            .env("LONGHAUL_MODEL", format!("scripted/{}", self.path("script.json").display()))
            .stdin(Stdio::null());
        command
    }

    /// The exit code, and what stands on both outputs.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&self.command(arguments).output().unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let (code, out, errors) = self.run(arguments);
        assert_eq!(code, 0, "{errors}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// The records of a session of this kind.
    fn records(&self, key: &str, kind: &str) -> Vec<Value> {
        let shown = self.json(&["sessions", "show", key, "--from", "1", "--limit", "10000", "--json"]);
        let records = shown["records_shown"].as_array().unwrap().iter();
        records.filter(|record| record["kind"] == kind).map(|record| record["body"].clone()).collect()
    }

    fn outcomes(&self, key: &str) -> Vec<Value> {
        self.records(key, "turn_ended").iter().map(|ended| ended["outcome"].clone()).collect()
    }

    fn let_go(&self) {
        std::fs::write(self.path("work/go.txt"), "").unwrap();
    }

    /// Waits until the command of a script runs.
    fn wait_for_command(&self) {
        eventually("the command runs", || self.path("work/log.txt").exists());
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process whose events are read.
struct Running {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Self { process, lines }
    }

    fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before {kind}");
            let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if event["type"] == kind {
                return event;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// The exit code, and what stands on standard error.
    fn end(mut self) -> (i32, String) {
        let mut errors = String::new();
        std::io::copy(&mut self.lines, &mut std::io::sink()).unwrap();
        self.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.process.wait().unwrap().code().unwrap_or(-1), errors)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn only_the_answer_is_on_standard_output() {
    let call = json!({"name": "exec", "arguments": {"command": "echo hello; exit 3"}});
    let desk = Desk::new(&json!([{"text": "I look.", "calls": [call]}, "Done."]));

    let (code, out, errors) = desk.run(&["run", "go"]);

    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{errors}");
    assert!(errors.contains("longhaul: session run:01"), "{errors}");
    assert!(
        errors.contains("· exec  echo hello; exit 3\n") && errors.contains("✗ exec failed, exit code 3"),
        "{errors}"
    );
}

#[test]
fn the_prompt_may_come_from_standard_input_and_nothing_is_sent_if_it_is_empty() {
    let desk = Desk::new(&json!(["Read."]));
    let with_input = |text: &str| {
        let mut command = desk.command(&["run", "-s", "a", "-"]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        told(&process.wait_with_output().unwrap())
    };

    let (refused, _, errors) = with_input(" \n");
    let (code, out, _) = with_input("from a pipe\n");

    assert_eq!(refused, 2, "{errors}");
    assert_eq!((code, out.as_str()), (0, "Read.\n"));
    assert_eq!(desk.records("a", "input_taken")[0]["text"], "from a pipe\n");
}

#[test]
fn json_is_every_event_and_nothing_else() {
    let desk = Desk::new(&json!(["Hello there."]));

    let (code, out, _) = desk.run(&["run", "-s", "a", "--json", "--wait", "hi"]);

    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(code, 0);
    assert_eq!(types.first(), Some(&"input_accepted"));
    assert!(types.contains(&"text_delta") && types.contains(&"message"), "{types:?}");
    let [.., ended, extracted] = &events[..] else { panic!("{types:?}") };
    assert_eq!((&ended["type"], &ended["text"]), (&"turn_ended".into(), &"Hello there.".into()));
    assert_eq!(extracted["type"], "extract_done", "Y2: whoever waits waits for memory, too");
}

#[test]
fn a_session_that_exists_goes_on_and_its_status_says_where_it_is() {
    let desk = Desk::new(&json!(["One.", "Two."]));

    let outs = ["first", "second"].map(|text| desk.run(&["run", "-s", "a", text]).1);
    let status = desk.json(&["status", "-s", "a", "--json"]);
    let (_, words, _) = desk.run(&["status", "-s", "a"]);

    assert_eq!(outs, ["One.\n", "Two.\n"]);
    assert_eq!((&status["turns"], &status["last_outcome"]), (&json!(2), &json!("completed")));
    assert_eq!((&status["turn"], &status["interrupted"]), (&Value::Null, &Value::Null));
    assert!(status["context"]["tokens"].as_u64().unwrap() > 0, "{status}");
    assert!(words.contains("last outcome  completed") && words.contains("none running"), "{words}");
}

/// M19
#[test]
fn a_turn_that_failed_is_run_again_without_new_input() {
    let desk = Desk::new(&json!([{"text": "half an answer", "error": "boom"}]));

    let failed = desk.run(&["run", "-s", "a", "go"]);
    desk.play(&json!(["Whole."]));
    let again = desk.run(&["retry", "-s", "a"]);
    let too_often = desk.run(&["retry", "-s", "a"]);

    assert_eq!((failed.0, failed.1.as_str()), (1, ""), "an answer that failed is no answer");
    assert!(failed.2.contains("boom") && failed.2.contains("longhaul retry -s a"), "{}", failed.2);
    assert_eq!((again.0, again.1.as_str()), (0, "Whole.\n"), "{}", again.2);
    assert_eq!(too_often.0, 1);
    assert!(too_often.2.contains("nothing to retry: the last turn completed"), "{}", too_often.2);
    assert_eq!(desk.records("a", "input_taken").len(), 1);
}

#[test]
fn an_answer_goes_on_where_it_was_interrupted() {
    let desk = Desk::new(&json!([{"text": "It begins", "error": "boom"}]));
    let failed = desk.run(&["run", "-s", "a", "go"]);
    desk.play(&json!(["unused", " and ends."]));

    let went_on = desk.run(&["continue", "-s", "a"]);
    let nothing = desk.run(&["continue", "-s", "a"]);

    assert!(failed.2.contains("longhaul continue -s a"), "{}", failed.2);
    assert_eq!(went_on.0, 0, "{}", went_on.2);
    assert!(went_on.1.contains("and ends."), "{}", went_on.1);
    assert_eq!(nothing.0, 1);
    assert!(nothing.2.contains("nothing to continue"), "{}", nothing.2);
}

#[test]
fn a_limit_has_an_exit_code_of_its_own() {
    let call = json!({"name": "exec", "arguments": {"command": "true"}});
    let desk = Desk::new(&json!([{"calls": [call]}, "Done."]));
    desk.configure("[limits]\nsteps = 1\n");

    let (code, _, errors) = desk.run(&["run", "go"]);

    assert_eq!(code, 6, "{errors}");
    assert!(errors.contains("limit reached"), "{errors}");
}

/// M6: no text is there twice, and each wait is told.
#[test]
fn an_answer_that_breaks_off_is_asked_again_and_shown_once() {
    let desk = Desk::new(&json!([{"text": "cut short", "cut": true}]));
    desk.configure("[retry]\nmax_retries = 2\nbase_ms = 1\n");

    let (code, out, errors) = desk.run(&["run", "go"]);

    assert_eq!((code, out.as_str()), (1, ""), "{errors}");
    assert!(errors.contains("waiting") && errors.contains("retry 1 of 2"), "{errors}");
}

/// M5, M19
#[test]
fn a_long_delay_ends_with_an_exit_code_of_its_own_and_the_way_on() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            let head = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\nconnection: close\r\n";
            let _ = connection.read(&mut [0; 65536]);
            let _ = connection.write_all(format!("{head}content-length: 2\r\n\r\n{{}}").as_bytes());
        }
    });
    let desk = Desk::new(&json!([]));
    desk.configure(&format!("[model]\nbase_url = \"http://{address}/v1\"\n"));
    let mut command = desk.command(&["run", "-s", "a", "--model", "custom/busy", "go"]);

    let (code, out, errors) = told(&command.env("NO_PROXY", "127.0.0.1").output().unwrap());

    assert_eq!((code, out.as_str()), (3, ""), "{errors}");
    assert!(errors.contains("longhaul --model custom/busy retry -s a"), "{errors}");
    assert_eq!(desk.outcomes("a"), [json!("failed")]);
}

/// T10
#[test]
fn an_interrupt_cancels_the_turn() {
    let desk = Desk::new(&json!([{"text": "word ".repeat(1_000), "piece_ms": 50}]));
    let mut running = Running::start(desk.command(&["run", "-s", "a", "--json", "go"]));
    running.wait_for("text_delta");

    running.signal(Signal::INT);
    let ended = running.wait_for("turn_ended");
    let (code, errors) = running.end();

    assert_eq!((code, &ended["outcome"]), (130, &json!("cancelled")), "{errors}");
    assert_eq!(desk.outcomes("a"), [json!("cancelled")]);
}

/// S1, T12
#[test]
fn a_signal_suspends_and_resume_goes_on() {
    let call = json!({"name": "exec", "arguments": {"command": WAITS}});
    let desk = Desk::new(&json!([{"calls": [call]}, "Done."]));
    let mut running = Running::start(desk.command(&["run", "-s", "a", "--json", "go"]));
    running.wait_for("tool_started");
    desk.wait_for_command();

    running.signal(Signal::TERM);
    let (code, errors) = running.end();
    desk.let_go();
    let resumed = desk.run(&["resume"]);
    let nothing = desk.run(&["resume"]);

    assert_eq!(code, 143, "{errors}");
    assert!(errors.contains("longhaul resume a"), "{errors}");
    assert_eq!((resumed.0, resumed.1.as_str()), (0, "Done.\n"), "{}", resumed.2);
    assert!(resumed.2.contains("resuming turn 1"), "{}", resumed.2);
    assert_eq!((nothing.0, nothing.2.contains("nothing to resume")), (0, true), "{}", nothing.2);
    assert_eq!(std::fs::read_to_string(desk.path("work/log.txt")).unwrap(), "once\n");
}

/// M19
#[test]
fn what_is_said_to_a_session_whose_turn_is_open_joins_it() {
    let call = json!({"name": "exec", "arguments": {"command": WAITS}});
    let desk = Desk::new(&json!([{"calls": [call]}, "Both done."]));
    let mut first = Running::start(desk.command(&["run", "-s", "a", "--json", "go"]));
    first.wait_for("tool_started");
    desk.wait_for_command();
    first.signal(Signal::KILL);
    first.end();

    desk.let_go();
    let (code, out, errors) = desk.run(&["run", "-s", "a", "and this"]);

    assert_eq!((code, out.as_str()), (0, "Both done.\n"), "{errors}");
    let (turns, inputs) = (desk.records("a", "turn_started"), desk.records("a", "input_taken"));
    assert_eq!((turns.len(), inputs.len()), (1, 2));
}

/// T3: a session that another process runs.
#[test]
fn what_another_process_runs_is_joined_followed_and_cancelled_there() {
    let call = json!({"name": "exec", "arguments": {"command": WAITS}});
    let desk = Desk::new(&json!([
        {"calls": [call]}, "Both done.", {"text": "word ".repeat(1_000), "piece_ms": 50}
    ]));
    let mut serving = Running::start(desk.command(&["serve", "--no-http", "--json"]));
    desk.run(&["send", "-s", "a", "go"]);
    serving.wait_for("tool_started");
    desk.wait_for_command();

    let mut joined = Running::start(desk.command(&["run", "-s", "a", "--json", "and this"]));
    joined.wait_for("input_taken");
    desk.let_go();
    let ended = joined.wait_for("turn_ended");
    let (code, errors) = joined.end();
    let mut cancelled = Running::start(desk.command(&["run", "-s", "a", "--json", "at length"]));
    cancelled.wait_for("step_started");
    cancelled.signal(Signal::INT);
    let (interrupted, _) = cancelled.end();
    let nothing = desk.run(&["retry", "-s", "a"]);

    assert_eq!((code, &ended["text"]), (0, &json!("Both done.")), "{errors}");
    assert_eq!(interrupted, 130);
    assert_eq!(desk.outcomes("a"), [json!("completed"), json!("cancelled")]);
    assert_eq!(nothing.0, 1, "{}", nothing.2);
    serving.signal(Signal::TERM);
}

#[test]
fn where_several_turns_are_open_they_are_listed() {
    let desk = Desk::new(&json!(["Hello."]));
    for key in ["a", "b"] {
        desk.run(&["send", "-s", key, "hi"]);
    }

    let (code, out, errors) = desk.run(&["resume"]);
    let (_, answer, _) = desk.run(&["resume", "b"]);

    assert_eq!((code, out.lines().count()), (2, 2), "{errors}");
    assert_eq!(answer, "Hello.\n", "what was accepted and not begun is unfinished too");
}

#[test]
fn a_session_that_is_not_there_is_bad_usage() {
    let desk = Desk::new(&json!(["Hello."]));

    for arguments in [["retry", "-s"], ["continue", "-s"], ["status", "-s"]] {
        let (code, _, errors) = desk.run(&[arguments[0], arguments[1], "nobody"]);
        assert_eq!((code, errors.contains("nobody")), (2, true), "{errors}");
    }
    assert_eq!(desk.run(&["resume", "nobody"]).0, 2);
    assert_eq!(desk.run(&["--new", "run", "hi"]).0, 2);
}

#[test]
fn the_models_are_listed_with_the_one_that_would_answer() {
    let desk = Desk::new(&json!([]));

    let (code, out, _) = desk.run(&["models"]);
    let all = desk.json(&["models", "--json"]);
    let mut with_key = desk.command(&["models", "--json"]);
    with_key.env_remove("LONGHAUL_MODEL").env("ANTHROPIC_API_KEY", "a key");
    let found: Value = serde_json::from_str(&told(&with_key.output().unwrap()).1).unwrap();
    let (_, one, _) = desk.run(&["models", "anthropic"]);
    let (unknown, _, errors) = desk.run(&["models", "antropic"]);

    assert_eq!((code, out.contains("ANTHROPIC_API_KEY")), (0, true), "{out}");
    assert!(all["used"]["reason"].as_str().unwrap().contains("LONGHAUL_MODEL"), "{all}");
    assert!(found["used"]["name"].as_str().unwrap().starts_with("anthropic/"), "{found}");
    assert!(one.contains("tokens of context") && !one.contains("a key"), "{one}");
    assert_eq!((unknown, errors.contains("anthropic")), (2, true), "{errors}");
}

/// J8: what is sent from the command line passes through the same sieve as everything else.
#[test]
fn a_key_that_is_sent_reaches_no_file_of_the_home() {
    let key = "sk-test-0123456789abcdef";
    let desk = Desk::new(&json!(["Fine."]));
    let with_key = |arguments: &[&str]| {
        let output = desk.command(arguments).env("OPENAI_API_KEY", key).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };

    with_key(&["send", "-s", "a", &format!("my key is {key}")]);
    with_key(&["run", "-s", "b", &format!("my key is {key}")]);

    let found = Command::new("grep").args(["-r", "-l", key]).arg(desk.path("home")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    assert!(desk.records("b", "input_taken")[0]["text"].as_str().unwrap().contains("[redacted]"));
}

/// J8: what the model sees of a secret never takes the place of the secret.
#[test]
fn a_mark_is_not_written_over_the_secret_that_it_stands_for() {
    let key = "sk-test-0123456789abcdef";
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let desk = Desk::new(&json!([
        call("read_file", json!({"path": ".env"})),
        call("write_file", json!({"path": ".env", "content": "OPENAI_API_KEY=[redacted]\nMORE=1\n"})),
        "Done."
    ]));
    std::fs::write(desk.path("work/.env"), format!("OPENAI_API_KEY={key}\n")).unwrap();

    let output = desk.command(&["run", "-s", "a", "add MORE"]).env("OPENAI_API_KEY", key).output().unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(desk.path("work/.env")).unwrap(), format!("OPENAI_API_KEY={key}\n"));
    let results = desk.records("a", "tool_finished");
    assert!(results[0]["content"].as_str().unwrap().contains("OPENAI_API_KEY=[redacted]"), "{results:?}");
    assert!(results[1]["content"].as_str().unwrap().contains("stands for a secret"), "{results:?}");
}

/// S1: a reader that has stopped reading does not make the program deaf.
#[test]
fn a_signal_ends_a_run_whose_output_nobody_reads() {
    let desk = Desk::new(&json!(["word ".repeat(200_000)]));
    let mut child = desk.command(&["run", "-s", "a", "talk"]).stdout(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !desk.run(&["status", "-s", "a", "--json"]).1.contains("completed") {
        assert!(Instant::now() < deadline, "the turn does not end");
    }

    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    };

    assert_eq!(status.code(), Some(143));
}

/// S2: `-c` goes on with what was last used in the folder, whether it was a run or a conversation.
#[test]
fn a_run_goes_on_with_the_session_that_was_last_used_in_the_folder() {
    let desk = Desk::new(&json!(["One.", "Two.", "Three."]));
    let key_of =
        |errors: &str| errors.split("session ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let elsewhere = desk.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();

    let (none, _, refused) = desk.run(&["run", "-c", "hi"]);
    let (_, _, first) = desk.run(&["run", "first"]);
    let mut other = desk.command(&["run", "in another folder"]);
    assert!(other.current_dir(&elsewhere).output().unwrap().status.success());
    let (code, out, again) = desk.run(&["-p", "-c", "again"]);
    let (_, _, status) = desk.run(&["status"]);
    let talked = desk.command(&["--new", "said in a conversation"]).output().unwrap();
    let (_, _, third) = desk.run(&["run", "--continue", "third"]);

    assert_eq!((none, refused.contains("no session was used in this folder yet")), (2, true), "{refused}");
    assert_eq!((code, out.as_str()), (0, "Two.\n"), "{again}");
    assert_eq!(key_of(&again), key_of(&first));
    assert_eq!(key_of(&status), key_of(&first), "a command says which session it took");
    assert!(talked.status.success(), "{talked:?}");
    assert!(key_of(&third).starts_with("cli:work-"), "{third}");
}

/// Every command that takes a session takes `-s` before and after its name.
#[test]
fn a_session_is_named_before_or_after_the_command() {
    let desk = Desk::new(&json!(["One."]));
    assert_eq!(desk.run(&["run", "-s", "a", "hi"]).0, 0);

    for command in ["status", "context", "save", "tasks", "memory"] {
        let (code, before, errors) = desk.run(&["-s", "a", command, "--json"]);
        let (_, after, _) = desk.run(&[command, "-s", "a", "--json"]);
        assert_eq!(code, 0, "{command}: {errors}");
        assert_eq!(before, after, "{command}");
    }
    assert_eq!(desk.run(&["-s", "a", "sessions", "pin"]).0, 0);
    assert_eq!(desk.run(&["sessions", "rename", "-s", "a", "b"]).0, 0);
    assert!(desk.run(&["sessions", "show", "-s", "b"]).1.contains("One."));
    assert_eq!(desk.run(&["-s", "b", "resume"]).0, 0);
    let (code, _, errors) = desk.run(&["-s", "b", "doctor"]);
    assert_eq!((code, errors.contains("takes no -s")), (2, true), "{errors}");
    let (code, _, errors) = desk.run(&["sessions", "delete"]);
    assert_eq!((code, errors.contains("which session?")), (2, true), "what is deleted is named: {errors}");
}
