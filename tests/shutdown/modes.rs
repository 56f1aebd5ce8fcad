//! The ways in which the program runs for long.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;

use longhaul_testkit::Terminal;
use rustix::process::{Pid, Signal, kill_process};

use crate::desk::Desk;
use crate::eventually;

/// How it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `longhaul run`: one turn.
    OneShot,
    /// A conversation on a screen.
    Screen,
    /// A conversation in a terminal, line by line.
    Plain,
    /// A conversation whose lines come from a pipe.
    Piped,
    /// `longhaul serve`.
    Serve,
}

/// What a signal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Everything stays open, and the process ends with this.
    Suspends(i32),
    /// The turn is cancelled, and the process ends with this.
    Cancels(i32),
    /// The turn is cancelled, and the next line is waited for; the same signal once more ends the process with this.
    CancelsAndStays(i32),
}

impl Mode {
    pub(crate) fn effect(self, signal: Signal, is_busy: bool) -> Effect {
        let code = 128 + signal.as_raw();
        match self {
            Self::OneShot | Self::Piped if signal == Signal::INT => Effect::Cancels(code),
            // Ctrl-C at the prompt is a way to leave like any other.
            Self::Plain | Self::Screen if signal == Signal::INT && is_busy => Effect::CancelsAndStays(0),
            Self::Plain | Self::Screen if signal == Signal::INT => Effect::Cancels(0),
            _ => Effect::Suspends(code),
        }
    }

    /// Starts it with something to do.
    pub(crate) fn start(self, desk: &Desk) -> Running {
        self.start_with(desk, |_| {})
    }

    /// The same, with another environment.
    pub(crate) fn start_with(self, desk: &Desk, change: impl Fn(&mut Command)) -> Running {
        let command = |arguments: &[&str]| {
            let mut command = desk.command(arguments);
            change(&mut command);
            command
        };
        match self {
            Self::OneShot => Running::piped(command(&["run", "-s", "a", "go"])),
            Self::Serve => {
                let sent = desk.run(&["send", "-s", "a", "go"]);
                assert_eq!(sent.0, 0, "{}", sent.2);
                Running::piped(command(&["serve", "--no-http"]))
            }
            Self::Piped => {
                let mut running = Running::piped(command(&[]));
                running.type_("go\n");
                running
            }
            Self::Plain => {
                let mut running = Running::in_terminal(command(&["--plain"]));
                running.wait_for_prompt();
                running.type_("go\n");
                running
            }
            Self::Screen => {
                let mut running = Running::in_terminal(command(&[]));
                running.wait_for_prompt();
                running.type_("go\r");
                running
            }
        }
    }
}

/// A program that runs.
pub(crate) enum Running {
    InTerminal {
        terminal: Box<Terminal>,
        /// What the terminal was like before.
        modes: String,
    },
    Piped {
        process: Child,
        input: Option<ChildStdin>,
        printed: Option<JoinHandle<String>>,
    },
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// What could be read on both outputs.
    pub(crate) said: String,
    /// Whether the terminal, if there was one, is what it was.
    pub(crate) terminal_is_restored: bool,
}

impl Running {
    fn in_terminal(command: Command) -> Self {
        // So wide that no line is broken.
        let terminal = Box::new(Terminal::of_size(command, (200, 40)));
        let modes = terminal.modes();
        Self::InTerminal { terminal, modes }
    }

    fn piped(mut command: Command) -> Self {
        let piped = || Stdio::piped();
        let mut process = command.stdin(piped()).stdout(Stdio::null()).stderr(piped()).spawn().unwrap();
        let (input, mut errors) = (process.stdin.take(), process.stderr.take().unwrap());
        let printed = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = errors.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        });
        Self::Piped { process, input, printed: Some(printed) }
    }

    pub(crate) fn terminal(&mut self) -> &mut Terminal {
        match self {
            Self::InTerminal { terminal, .. } => terminal,
            Self::Piped { .. } => panic!("it has no terminal"),
        }
    }

    /// Waits until it waits for a line, and nothing goes on.
    pub(crate) fn wait_for_prompt(&mut self) {
        self.wait_for_prompt_after("");
    }

    /// The same, once this can be read.
    pub(crate) fn wait_for_prompt_after(&mut self, words: &str) {
        let on_a_screen = |seen: &str| seen.ends_with("/help") && seen.contains("\n>\n");
        let waits = |seen: &str| seen.contains(words) && (on_a_screen(seen) || seen.ends_with("\n>"));
        self.terminal().wait_until("a prompt that waits", waits);
    }

    pub(crate) fn type_(&mut self, keys: &str) {
        match self {
            Self::InTerminal { terminal, .. } => terminal.keys(keys),
            Self::Piped { input, .. } => input.as_mut().unwrap().write_all(keys.as_bytes()).unwrap(),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        match self {
            Self::InTerminal { terminal, .. } => terminal.signal(signal),
            Self::Piped { process, .. } => drop(kill_process(Pid::from_child(process), signal)),
        }
    }

    /// Waits until it has ended.
    pub(crate) fn end(mut self) -> Ended {
        match &mut self {
            Self::InTerminal { terminal, modes } => {
                let code = terminal.wait().code();
                let terminal_is_restored = terminal.modes() == *modes;
                Ended { code, said: terminal.seen_at_the_end(), terminal_is_restored }
            }
            Self::Piped { process, printed, .. } => {
                let mut code = None;
                eventually("it ends", || {
                    code = process.try_wait().unwrap().map(|status| status.code());
                    code.is_some()
                });
                let said = printed.take().unwrap().join().unwrap();
                Ended { code: code.unwrap(), said, terminal_is_restored: true }
            }
        }
    }
}

/// A test that fails leaves nobody behind.
impl Drop for Running {
    fn drop(&mut self) {
        if let Self::Piped { process, .. } = self {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
