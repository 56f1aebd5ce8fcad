//! Where the lines of a conversation come from: the screen, a terminal as it is by itself, or a pipe.

use std::io::{BufRead, IsTerminal};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::{mpsc, oneshot};

use crate::args::ChatOptions;
use crate::tui::{Screen, View};

/// What came from whoever types.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineEvent {
    Line(String),
    /// Ctrl-D, or the end of what was piped in.
    End,
    /// Ctrl-C, where that is a key and no signal.
    Interrupt,
    /// Esc: whatever goes on may end.
    Escape,
    /// The terminal is gone.
    Lost,
}

/// Where lines come from.
pub(crate) enum LineSource {
    Screen(Screen),
    Plain(TerminalLines),
    Piped(mpsc::Receiver<String>),
}

impl LineSource {
    /// Lines from standard input; typed on the screen, where that is a terminal and nobody says otherwise.
    pub(crate) fn new(options: &ChatOptions, make_view: impl FnOnce((u16, u16)) -> View) -> Self {
        if !std::io::stdin().is_terminal() {
            return Self::Piped(piped());
        }
        let is_dumb = std::env::var("TERM").is_ok_and(|terminal| terminal == "dumb");
        if options.plain || is_dumb || !std::io::stdout().is_terminal() {
            return Self::Plain(TerminalLines::default());
        }
        // A terminal that can't be had key by key still has lines.
        Screen::start(make_view).map_or_else(|_| Self::Plain(TerminalLines::default()), Self::Screen)
    }

    /// Whether a person types them.
    pub(crate) fn are_typed(&self) -> bool {
        !matches!(self, Self::Piped(_))
    }

    /// The next line. One that is given up on is not lost.
    pub(crate) async fn next(&mut self) -> LineEvent {
        match self {
            Self::Screen(screen) => screen.next().await,
            Self::Plain(cooked) => cooked.line().await,
            Self::Piped(lines) => lines.recv().await.map_or(LineEvent::End, LineEvent::Line),
        }
    }

    /// Waits for Ctrl-C, where that is a key. Whatever else is typed is for nobody any more.
    pub(crate) async fn interrupted(&mut self) {
        if let Self::Screen(screen) = self {
            loop {
                match screen.next().await {
                    LineEvent::Interrupt => return,
                    LineEvent::Lost => break,
                    LineEvent::Line(_) | LineEvent::End | LineEvent::Escape => {}
                }
            }
        }
        std::future::pending::<()>().await;
    }

    /// A line that is typed while a turn runs. One that is given up on is not lost. What is piped in waits for its turn.
    pub(crate) async fn during_turn(&mut self) -> LineEvent {
        match self {
            Self::Piped(_) => std::future::pending().await,
            Self::Screen(_) | Self::Plain(_) => self.next().await,
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
pub(crate) struct TerminalLines {
    read: Vec<u8>,
    /// Comes when there was something to read; kept while it is waited for again and again.
    input: Option<oneshot::Receiver<()>>,
}

impl TerminalLines {
    /// The next line. It is read only when it is there, so nobody who reads next misses anything.
    pub(crate) async fn line(&mut self) -> LineEvent {
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
                // A terminal that is gone ends as one does at which somebody pressed Ctrl-D.
                Ok(0) => return if is_gone() { LineEvent::Lost } else { LineEvent::End },
                Ok(count) => self.read.extend_from_slice(&bytes[..count]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return LineEvent::Lost,
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

/// Whether the terminal has hung up.
fn is_gone() -> bool {
    let stdin = rustix::stdio::stdin();
    let mut looked_at = [PollFd::new(&stdin, PollFlags::IN)];
    let looked = poll(&mut looked_at, Some(&Timespec::default()));
    looked.is_err() || looked_at[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Whether a read would return at once; waits for that at most so long.
fn has_input(longest: Option<&Timespec>) -> bool {
    let stdin = rustix::stdio::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut waiting, longest).is_ok_and(|ready| ready > 0)
}
