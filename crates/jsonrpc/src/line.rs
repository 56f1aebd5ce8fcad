//! Lines of bounded length. A line that is too long is skipped without being kept.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Bytes that one message may have, as for a request over HTTP. Images are the longest.
pub const MAX_LINE_BYTES: usize = 32 << 20;

/// A line of the other side.
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

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
