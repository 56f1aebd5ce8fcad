//! What is printed while a turn runs. A thread of its own writes it, in its order, so that a reader who is slow holds up nobody.

use std::io::{Error, ErrorKind, IsTerminal, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// Prints, without ever waiting for whoever reads.
pub(crate) struct Printer {
    pieces: Sender<Piece>,
    thread: JoinHandle<Option<Error>>,
}

/// Shows lines above a prompt at which somebody types.
pub(crate) type Above = Box<dyn FnMut(String) + Send>;

enum Piece {
    /// For standard output.
    Out(String),
    /// For standard error.
    Aside(String),
    /// Tells when everything before it is written.
    Mark(oneshot::Sender<()>),
    /// How lines are shown above the prompt.
    Above(Above),
    /// Somebody types from here on.
    Prompt,
    /// Nobody does any more.
    NoPrompt,
}

impl Printer {
    pub(crate) fn new() -> Self {
        let (pieces, coming) = channel();
        Self { pieces, thread: std::thread::spawn(move || print(&coming)) }
    }

    /// Prints to standard output, exactly this.
    pub(crate) fn out(&self, text: impl Into<String>) {
        let _ = self.pieces.send(Piece::Out(text.into()));
    }

    /// Prints to standard error, exactly this.
    pub(crate) fn aside(&self, text: impl Into<String>) {
        let _ = self.pieces.send(Piece::Aside(text.into()));
    }

    /// Lines go through this while somebody types.
    pub(crate) fn show_above(&self, above: Above) {
        let _ = self.pieces.send(Piece::Above(above));
    }

    /// From here on somebody types on the line that was begun last.
    pub(crate) fn prompt(&self) {
        let _ = self.pieces.send(Piece::Prompt);
    }

    /// From here on nobody types.
    pub(crate) fn no_prompt(&self) {
        let _ = self.pieces.send(Piece::NoPrompt);
    }

    /// Waits until everything so far is written.
    pub(crate) async fn written(&self) {
        let (mark, reached) = oneshot::channel();
        if self.pieces.send(Piece::Mark(mark)).is_ok() {
            let _ = reached.await;
        }
    }

    /// Waits until everything is written; says why standard output could not be, unless its reader has just gone.
    pub(crate) fn finish(self) -> Option<Error> {
        drop(self.pieces);
        self.thread.join().ok()?.filter(|error| error.kind() != ErrorKind::BrokenPipe)
    }
}

/// A reader that has gone is no reason to stop a turn: nothing more is written for it.
fn print(pieces: &Receiver<Piece>) -> Option<Error> {
    let (mut failed, mut asides_are_read) = (None, true);
    let (mut above, mut is_typed) = (None::<Above>, false);
    let asides_are_seen = std::io::stderr().is_terminal();
    for piece in pieces {
        match (piece, above.as_mut().filter(|_| is_typed)) {
            (Piece::Out(text), Some(above)) => above(text),
            (Piece::Aside(text), Some(above)) if asides_are_seen => above(text),
            (Piece::Out(text), None) if failed.is_none() => {
                failed = write(std::io::stdout().lock(), &text).err();
            }
            (Piece::Aside(text), _) if asides_are_read => {
                asides_are_read = write(std::io::stderr().lock(), &text).is_ok();
            }
            (Piece::Out(_) | Piece::Aside(_), _) => {}
            (Piece::Mark(mark), _) => drop(mark.send(())),
            (Piece::Above(way), _) => above = Some(way),
            (Piece::Prompt, _) => is_typed = true,
            (Piece::NoPrompt, _) => is_typed = false,
        }
    }
    failed
}

fn write(mut to: impl Write, text: &str) -> std::io::Result<()> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush())
}
