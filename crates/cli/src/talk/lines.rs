//! Where the lines of a conversation come from: an editor at the prompt, a terminal that is not edited, or a pipe.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use longhaul_agent::Redactor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustyline::ExternalPrinter;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use tokio::sync::{mpsc, oneshot};

use crate::arguments::TalkOptions;
use crate::output::prompt;
use crate::printer::Above;

/// How many lines the history keeps.
const REMEMBERED: usize = 1_000;
const PROMPT: &str = "> ";

/// What came from whoever types.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Line(String),
    /// Ctrl-D, or the end of what was piped in.
    End,
    /// Ctrl-C at a prompt that is edited.
    Interrupt,
    /// The terminal is gone.
    Lost,
}

/// Where lines come from.
pub(crate) enum Lines {
    Edited(Editor, Cooked),
    Plain(Cooked),
    Piped(mpsc::Receiver<String>),
}

impl Lines {
    /// Lines from standard input; edited, where that is a terminal and nobody says otherwise.
    pub(crate) fn new(home: &Path, options: &TalkOptions, redactor: &Redactor) -> Self {
        if !std::io::stdin().is_terminal() {
            return Self::Piped(piped());
        }
        let is_dumb = std::env::var("TERM").is_ok_and(|terminal| terminal == "dumb");
        let cooked = Cooked::default();
        match options.plain || is_dumb || !std::io::stdout().is_terminal() {
            true => Self::Plain(cooked),
            false => Self::Edited(Editor::new(home.join("history"), redactor.clone()), cooked),
        }
    }

    /// Whether a person types them.
    pub(crate) fn are_typed(&self) -> bool {
        !matches!(self, Self::Piped(_))
    }

    /// What shows lines above the prompt, where that is edited. There is only one.
    pub(crate) fn above(&mut self) -> Option<Above> {
        match self {
            Self::Edited(editor, _) => editor.above.take(),
            Self::Plain(_) | Self::Piped(_) => None,
        }
    }

    /// The next line. What is printed before must be written by now. One that is given up on is not lost.
    pub(crate) async fn next(&mut self) -> Typed {
        match self {
            Self::Edited(editor, _) => editor.line(PROMPT).await,
            Self::Plain(cooked) => cooked.line().await,
            Self::Piped(lines) => lines.recv().await.map_or(Typed::End, Typed::Line),
        }
    }

    /// Shows that a line can be typed, where no editor does.
    pub(crate) fn show_prompt(&self) {
        if let Self::Plain(_) = self {
            prompt(PROMPT);
        }
    }

    /// Asks a question; its answer is nothing that anybody wants to find again in the history.
    pub(crate) async fn ask(&mut self, question: &str) -> Typed {
        prompt(question);
        match self {
            Self::Edited(_, cooked) | Self::Plain(cooked) => cooked.line().await,
            Self::Piped(lines) => lines.recv().await.map_or(Typed::End, Typed::Line),
        }
    }

    /// A line that is typed while a turn runs. One that is given up on is not lost. What is piped in waits for its turn.
    pub(crate) async fn during_turn(&mut self) -> Typed {
        match self {
            Self::Edited(_, cooked) | Self::Plain(cooked) => cooked.line().await,
            Self::Piped(_) => std::future::pending().await,
        }
    }

    /// A line while a question is open: what is piped in may be its answer.
    pub(crate) async fn while_asked(&mut self) -> Typed {
        match self {
            Self::Edited(_, cooked) | Self::Plain(cooked) => cooked.line().await,
            Self::Piped(lines) => lines.recv().await.map_or(Typed::End, Typed::Line),
        }
    }
}

/// Reads in a thread, one line ahead: a pipe can't be waited for in any other way that fits all kinds of files.
fn piped() -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        while matches!(input.read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
            if send.blocking_send(text).is_err() {
                return;
            }
        }
    });
    lines
}

/// A terminal as it is by itself: it edits a line and passes it on whole.
#[derive(Default)]
pub(crate) struct Cooked {
    read: Vec<u8>,
    /// Comes when there was something to read; kept while it is waited for again and again.
    input: Option<oneshot::Receiver<()>>,
}

impl Cooked {
    /// The next line. It is read only when it is there, so nobody who reads next misses anything.
    pub(crate) async fn line(&mut self) -> Typed {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Typed::Line(String::from_utf8_lossy(&line).into_owned());
            }
            if !has_input(Some(&Timespec::default())) {
                let _ = self.input.get_or_insert_with(wait_for_input).await;
                self.input = None;
                continue;
            }
            let mut bytes = [0; 4096];
            match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
                Ok(0) => return Typed::End,
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return Typed::Lost,
            }
        }
    }
}

/// Waits in a thread, which only looks: what is there stays there.
fn wait_for_input() -> oneshot::Receiver<()> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        has_input(None);
        tell.send(())
    });
    told
}

/// Whether a read would return at once; waits for that at most so long.
fn has_input(longest: Option<&Timespec>) -> bool {
    let stdin = rustix::stdio::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut waiting, longest).is_ok_and(|ready| ready > 0)
}

/// The editor of the prompt, in a thread of its own: it waits for keys, and everything else must not wait for it.
pub(crate) struct Editor {
    ask: Sender<(String, oneshot::Sender<Typed>)>,
    /// The line that was asked for and has not come yet.
    asked: Option<oneshot::Receiver<Typed>>,
    above: Option<Above>,
}

impl Editor {
    fn new(history: PathBuf, redactor: Redactor) -> Self {
        let (ask, asked) = channel();
        let (give, given) = channel();
        std::thread::spawn(move || edit(&asked, &give, &history, &redactor));
        Self { ask, asked: None, above: given.recv().ok().flatten() }
    }

    /// The line that is typed next. Whoever gives up on it gets it the next time.
    async fn line(&mut self, prompt: &str) -> Typed {
        let asked = match &mut self.asked {
            Some(asked) => asked,
            none => {
                let (answer, typed) = oneshot::channel();
                if self.ask.send((prompt.to_owned(), answer)).is_err() {
                    return Typed::Lost;
                }
                none.insert(typed)
            }
        };
        let typed = asked.await.unwrap_or(Typed::Lost);
        self.asked = None;
        typed
    }
}

fn edit(
    asked: &Receiver<(String, oneshot::Sender<Typed>)>,
    give: &Sender<Option<Above>>,
    history: &Path,
    redactor: &Redactor,
) {
    let Ok(mut editor) = rustyline::Editor::<(), FileHistory>::new() else { return };
    let above = editor
        .create_external_printer()
        .ok()
        .map(|mut printer| -> Above { Box::new(move |text| drop(printer.print(text))) });
    let _ = give.send(above);
    let _ = editor.set_max_history_size(REMEMBERED);
    keep_private(history);
    // A history that can't be read or written is no reason not to talk.
    let _ = editor.load_history(history);
    for (prompt, answer) in asked {
        let typed = match editor.readline(&prompt) {
            Ok(line) => {
                if !line.trim().is_empty() {
                    let _ = editor.add_history_entry(redactor.redact(&line));
                    let _ = editor.append_history(history);
                }
                Typed::Line(line)
            }
            Err(ReadlineError::Interrupted) => Typed::Interrupt,
            Err(ReadlineError::Eof) => Typed::End,
            Err(_) => Typed::Lost,
        };
        let _ = answer.send(typed);
    }
}

/// Makes the file, so that it is its owner's alone from the beginning.
fn keep_private(history: &Path) {
    use std::os::unix::fs::OpenOptionsExt;
    let _ = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(history);
}
