//! Prints on a thread of its own, in order, so that a slow reader does not delay the turn.

use std::io::{Error, ErrorKind, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

pub(crate) struct Printer {
    pieces: Sender<Piece>,
    thread: JoinHandle<Option<Error>>,
}

enum Piece {
    /// For standard output.
    Out(String),
    /// For standard error.
    Aside(String),
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

    /// Waits until everything is written. Returns the error of standard output, unless its reader has gone.
    pub(crate) fn finish(self) -> Option<Error> {
        drop(self.pieces);
        self.thread.join().ok()?.filter(|error| error.kind() != ErrorKind::BrokenPipe)
    }
}

/// After an error nothing more is written to that output; the turn goes on.
fn print(pieces: &Receiver<Piece>) -> Option<Error> {
    let (mut failed, mut asides_are_read) = (None, true);
    for piece in pieces {
        match piece {
            Piece::Out(text) if failed.is_none() => failed = write(std::io::stdout().lock(), &text).err(),
            Piece::Aside(text) if asides_are_read => {
                asides_are_read = write(std::io::stderr().lock(), &text).is_ok();
            }
            Piece::Out(_) | Piece::Aside(_) => {}
        }
    }
    failed
}

fn write(mut to: impl Write, text: &str) -> std::io::Result<()> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush())
}
