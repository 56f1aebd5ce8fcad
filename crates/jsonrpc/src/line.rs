//! Lines with one message each: read up to a length, and written. A line that is too long is skipped without being kept.

use std::fmt::Display;
use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;

/// The most bytes of one message, as for a request over HTTP. Messages with images are the longest.
pub const MAX_LINE_BYTES: usize = 32 << 20;

/// A line that the other side sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its end.
    Text(Vec<u8>),
    /// It was skipped.
    TooLong,
}

/// Reads lines, up to a length.
pub struct LineReader<R> {
    reader: R,
    max_bytes: usize,
    line: Vec<u8>,
    /// The rest of the line is skipped.
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub fn new(reader: R, max_bytes: usize) -> Self {
        Self { reader, max_bytes, line: Vec::new(), is_too_long: false }
    }

    /// The next line that is not empty; `None` at the end of the input. Cancel-safe.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.reader.fill_buf().await?;
            let is_end = available.is_empty();
            let newline = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..newline.unwrap_or(available.len())];
            if self.line.len() + part.len() > self.max_bytes {
                self.is_too_long = true;
                self.line = Vec::new();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(newline.is_some());
            self.reader.consume(used);
            if newline.is_none() && !is_end {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.is_too_long) {
                return Ok(Some(Line::TooLong));
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Line::Text(line)));
            }
            if is_end {
                return Ok(None);
            }
        }
    }
}

/// Writes messages, one a line, until there are no more or the other side takes none. Flushes when no message waits.
pub async fn write_lines(mut messages: mpsc::Receiver<impl Display>, output: impl AsyncWrite + Unpin) {
    let mut output = BufWriter::new(output);
    while let Some(message) = messages.recv().await {
        let written = async {
            output.write_all(format!("{message}\n").as_bytes()).await?;
            if messages.is_empty() { output.flush().await } else { Ok(()) }
        };
        if written.await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
