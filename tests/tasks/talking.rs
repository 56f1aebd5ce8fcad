//! Tasks and questions in a conversation.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::desk::{Desk, PATIENCE, WAITS, told};

/// The key of the session of the work folder.
fn key(desk: &Desk) -> String {
    let (_, _, errors) = talk(desk, "");
    errors.split_whitespace().find(|word| word.starts_with("cli:")).unwrap().to_owned()
}

fn talk(desk: &Desk, lines: &str) -> (i32, String, String) {
    let mut command = desk.command(&[]);
    let piped = || Stdio::piped();
    let mut process = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    told(&process.wait_with_output().unwrap())
}

/// K15, S6
#[test]
fn tasks_are_listed_shown_and_ended_between_lines() {
    let desk = Desk::new(&json!([]));
    let id = desk.task(&key(&desk), WAITS).to_string();
    desk.task("other", WAITS);
    let short = &id[id.len() - 6..];

    let lines = format!("/tasks\n/tasks output {short}\n/tasks kill {short}\n/tasks bake\n/tasks kill zz\n");
    let (code, out, errors) = talk(&desk, &lines);

    assert_eq!(code, 0, "{errors}");
    assert_eq!(out, "begun\n", "{errors}");
    assert!(errors.contains("running") && !errors.contains("a task of other"), "{errors}");
    assert!(errors.contains(&format!("task {short} was killed")), "{errors}");
    assert!(errors.contains("that is not how it is used") && errors.contains("there is no task"), "{errors}");
}

/// P4: what is piped in may be the answer.
#[test]
fn yes_answers_the_question_that_is_open() {
    let desk = Desk::new(&json!(["first", "Done."]));
    let key = key(&desk);
    desk.asked(&key, "echo ran > ran.txt");

    let left = talk(&desk, "");
    let (code, out, errors) = talk(&desk, "yes\n");

    assert_eq!((left.0, left.2.contains("longhaul answer -s cli:")), (7, true), "{}", left.2);
    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{errors}");
    assert!(errors.contains("question: May exec run?"), "{errors}");
    assert!(desk.path("work/ran.txt").exists());
}

/// P4: other words are an input, and only `/answer` makes them an answer.
#[test]
fn other_words_join_the_turn_and_the_question_stays() {
    let desk = Desk::new(&json!(["first", "Done."]));
    let key = key(&desk);
    desk.asked(&key, "echo ran > ran.txt");

    let (code, out, errors) = talk(&desk, "be quick\n/answer not today\n");

    assert_eq!((code, out.as_str()), (0, "Done.\n"), "{errors}");
    assert_eq!(desk.records(&key, "answered")[0]["answer"], json!("not today"));
    assert_eq!(desk.records(&key, "input_taken")[1]["text"], json!("be quick"));
    assert!(!desk.path("work/ran.txt").exists());
}

/// A program in a terminal of its own.
struct Terminal {
    process: Child,
    keys: File,
    printed: Receiver<Vec<u8>>,
    unread: String,
}

impl Terminal {
    #[allow(unsafe_code, reason = "only between fork and exec can a process get a terminal of its own")]
    fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let screen = File::options().read(true).write(true).open(name).unwrap();
        let end = || screen.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: both are single system calls, which are allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let process = command.spawn().unwrap();
        let keys = File::from(master);
        let mut prints = keys.try_clone().unwrap();
        let (send, printed) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = prints.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { process, keys, printed, unread: String::new() }
    }

    fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.unread.contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = self.printed.recv_timeout(left);
            let bytes = bytes.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.unread));
            self.unread.push_str(&String::from_utf8_lossy(&bytes));
        }
        let place = self.unread.find(text).unwrap_or_default();
        self.unread.drain(..place + text.len());
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {:?}", self.unread);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// K6: somebody who is at the prompt, and has half a line typed, sees what the end of a task leads to.
#[test]
fn the_end_of_a_task_is_shown_while_somebody_types() {
    for plain in [&[][..], &["--plain"]] {
        let desk = Desk::new(&json!(["It is done.", "Thanks."]));
        let key = key(&desk);
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
    terminal.wait_for("Answer yes, no, or why not: ");
    terminal.keys("y\r");
    terminal.wait_for("Done.");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(desk.path("work/ran.txt").exists());
}

/// P4
#[test]
fn a_question_is_shown_on_resuming_and_answered_at_the_prompt() {
    let desk = Desk::new(&json!(["first", "Done."]));
    let key = key(&desk);
    desk.asked(&key, "echo ran > ran.txt");
    let mut terminal = Terminal::start(desk.command(&[]));

    terminal.wait_for("question: May exec run?");
    terminal.wait_for("Go on with it? [Y/n] ");
    terminal.keys("y\r");
    terminal.wait_for("goes on");
    terminal.keys("no\r");
    terminal.wait_for("answered: no");
    terminal.wait_for("Done.");
    terminal.wait_for("> ");
    terminal.keys("/exit\r");

    assert_eq!(terminal.wait().code(), Some(0));
    assert!(!desk.path("work/ran.txt").exists());
}
