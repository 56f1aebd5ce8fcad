//! Where the lines of a chat come from: the screen, a plain terminal, or a pipe.

use std::io::{BufRead, IsTerminal};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::{mpsc, oneshot};

use crate::args::ChatOptions;
use crate::tui::{Notifier, Screen, View};

/// A line, or a key that means something without one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineEvent {
    Line(String),
    /// Ctrl-D, or the end of the pipe.
    End,
    /// Ctrl-C as a key; on a plain terminal it is a signal.
    Interrupt,
    /// Esc, which ends a turn.
    Escape,
    /// Esc twice at the prompt: back to an earlier message.
    GoBack,
    /// Up with nothing typed: take back what was sent during the turn.
    TakeBack,
    /// The terminal is gone.
    Lost,
}

pub(crate) enum LineSource {
    Screen(Screen),
    Plain(TerminalLines),
    Piped(mpsc::Receiver<String>),
}

impl LineSource {
    /// The screen, if standard input and output are a terminal and the user did not ask for `--plain`.
    pub(crate) fn new(
        options: &ChatOptions,
        notifier: Notifier,
        make_view: impl FnOnce((u16, u16)) -> View,
    ) -> Self {
        if !std::io::stdin().is_terminal() {
            return Self::Piped(read_pipe());
        }
        let is_dumb = std::env::var("TERM").is_ok_and(|terminal| terminal == "dumb");
        if options.plain || is_dumb || !std::io::stdout().is_terminal() {
            return Self::Plain(TerminalLines::default());
        }
        // Without raw mode a terminal still gives lines.
        Screen::start(notifier, make_view)
            .map_or_else(|_| Self::Plain(TerminalLines::default()), Self::Screen)
    }

    /// Whether a person types the lines.
    pub(crate) fn is_interactive(&self) -> bool {
        !matches!(self, Self::Piped(_))
    }

    /// The next line. Cancel safe.
    pub(crate) async fn next(&mut self) -> LineEvent {
        match self {
            Self::Screen(screen) => screen.next().await,
            Self::Plain(terminal) => terminal.next_line().await,
            Self::Piped(lines) => lines.recv().await.map_or(LineEvent::End, LineEvent::Line),
        }
    }

    /// Waits for Ctrl-C as a key, and drops everything else that is typed.
    pub(crate) async fn wait_for_interrupt(&mut self) {
        if let Self::Screen(screen) = self {
            loop {
                match screen.next().await {
                    LineEvent::Interrupt => return,
                    LineEvent::Lost => break,
                    LineEvent::Line(_)
                    | LineEvent::End
                    | LineEvent::Escape
                    | LineEvent::GoBack
                    | LineEvent::TakeBack => {}
                }
            }
        }
        std::future::pending::<()>().await;
    }

    /// The next line while a turn runs. Cancel safe. A piped line waits until the turn is over.
    pub(crate) async fn next_during_turn(&mut self) -> LineEvent {
        match self {
            Self::Piped(_) => std::future::pending().await,
            Self::Screen(_) | Self::Plain(_) => self.next().await,
        }
    }
}

/// Reads standard input on a thread, one line ahead. Polling would not work for all kinds of files.
fn read_pipe() -> mpsc::Receiver<String> {
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

/// A terminal in its own line mode.
#[derive(Default)]
pub(crate) struct TerminalLines {
    read: Vec<u8>,
    /// Resolves when there is input. Kept over cancelled calls.
    input: Option<oneshot::Receiver<()>>,
}

impl TerminalLines {
    /// The next line. Reads only when input is there, so that a program that reads next misses nothing. Cancel safe.
    pub(crate) async fn next_line(&mut self) -> LineEvent {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return LineEvent::Line(String::from_utf8_lossy(&line).into_owned());
            }
            if !has_input(Some(&Timespec::default())) {
                let _ = self.input.get_or_insert_with(wait_for_input).await;
                self.input = None;
                continue;
            }
            let mut bytes = [0; 4096];
            match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
                // A hung up terminal reads like Ctrl-D.
                Ok(0) => return if has_hung_up() { LineEvent::Lost } else { LineEvent::End },
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return LineEvent::Lost,
            }
        }
    }
}

/// Waits for input on a thread, without reading it.
fn wait_for_input() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        has_input(None);
        sender.send(())
    });
    receiver
}

/// Whether the terminal has hung up.
fn has_hung_up() -> bool {
    let stdin = rustix::stdio::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let result = poll(&mut polled, Some(&Timespec::default()));
    result.is_err() || polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Whether a read would return at once, after waiting up to `timeout`.
fn has_input(timeout: Option<&Timespec>) -> bool {
    let stdin = rustix::stdio::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut waiting, timeout).is_ok_and(|ready| ready > 0)
}
