//! Writes to standard output and standard error from a thread of its own, in order, so that a slow reader delays nothing else.

use std::io::{Error, ErrorKind, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Prints without waiting for the reader.
pub(crate) struct Printer {
    queue: Sender<QueuedText>,
    thread: JoinHandle<Option<Error>>,
}

enum QueuedText {
    Stdout(String),
    Stderr(String),
}

impl Printer {
    pub(crate) fn new() -> Self {
        let (queue, queued) = channel();
        Self { queue, thread: std::thread::spawn(move || write_queued(&queued)) }
    }

    /// Prints to standard output, exactly this.
    pub(crate) fn out(&self, text: impl Into<String>) {
        let _ = self.queue.send(QueuedText::Stdout(text.into()));
    }

    /// Prints to standard error, exactly this.
    pub(crate) fn aside(&self, text: impl Into<String>) {
        let _ = self.queue.send(QueuedText::Stderr(text.into()));
    }

    /// Waits until everything is written. Returns why standard output could not be written, unless its reader is gone.
    pub(crate) fn finish(self) -> Option<Error> {
        drop(self.queue);
        self.thread.join().ok()?.filter(|error| error.kind() != ErrorKind::BrokenPipe)
    }
}

/// Writes until the queue is closed. A reader that is gone does not end a turn: nothing more is written for it.
fn write_queued(queued: &Receiver<QueuedText>) -> Option<Error> {
    let (mut stdout_error, mut has_stderr_reader) = (None, true);
    for text in queued {
        match text {
            QueuedText::Stdout(text) if stdout_error.is_none() => {
                stdout_error = write(std::io::stdout().lock(), &text).err();
            }
            QueuedText::Stderr(text) if has_stderr_reader => {
                has_stderr_reader = write(std::io::stderr().lock(), &text).is_ok();
            }
            QueuedText::Stdout(_) | QueuedText::Stderr(_) => {}
        }
    }
    stdout_error
}

fn write(mut to: impl Write, text: &str) -> std::io::Result<()> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush())
}
