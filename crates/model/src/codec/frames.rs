//! Splits bytes into frames.
//!
//! The transport may cut the bytes anywhere, even within a character. Each byte is examined once, so the cost of a
//! frame depends only on its length. An incomplete frame is never returned.

use super::{Fault, Frame};

/// A larger frame is a fault, because it would use too much memory.
const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: char = '\u{feff}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON value on each line.
    Lines,
}

pub(crate) struct Frames {
    framing: Framing,
    bytes: Vec<u8>,
    /// The offset up to which `bytes` was split into lines.
    taken: usize,
    /// There is no line end before this offset of `bytes`.
    searched: usize,
    /// The last line ended with a carriage return. If a line feed follows, it belongs to the same line end.
    after_return: bool,
    /// No byte was read yet, so a byte order mark may come.
    at_start: bool,
    event: String,
    data: String,
    has_data: bool,
    /// The frame in `event` and `data` was returned already.
    is_returned: bool,
}

impl Frames {
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            bytes: Vec::new(),
            taken: 0,
            searched: 0,
            after_return: false,
            at_start: true,
            event: String::new(),
            data: String::new(),
            has_data: false,
            is_returned: false,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete frame. The caller must stop after a fault.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, Fault> {
        if self.is_returned {
            self.clear_frame();
        }
        while let Some((start, end)) = self.next_line() {
            if self.take_line(start, end)? {
                self.is_returned = true;
                return Ok(Some(Frame { event: &self.event, data: &self.data }));
            }
        }
        // The rest is the beginning of one line and came with the last push, so moving it costs no more than that
        // push did.
        self.bytes.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.check_size(self.bytes.len())?;
        Ok(None)
    }

    /// The range of the next complete line, without its end.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if self.after_return && self.bytes.len() > self.taken {
            self.after_return = false;
            if self.bytes[self.taken] == b'\n' {
                self.taken += 1;
                self.searched = self.taken;
            }
        }
        let framing = self.framing;
        let ends = |byte: &u8| *byte == b'\n' || (*byte == b'\r' && framing == Framing::Events);
        let Some(distance) = self.bytes[self.searched..].iter().position(ends) else {
            self.searched = self.bytes.len();
            return None;
        };
        let (start, end) = (self.taken, self.searched + distance);
        self.after_return = self.bytes[end] == b'\r';
        self.taken = end + 1;
        self.searched = self.taken;
        Some((start, end))
    }

    /// Adds a line, and returns whether it completes a frame.
    fn take_line(&mut self, start: usize, end: usize) -> Result<bool, Fault> {
        self.check_size(end - start)?;
        let mut line = std::str::from_utf8(&self.bytes[start..end])
            .map_err(|_| Fault::unreadable(&String::from_utf8_lossy(&self.bytes[start..end])))?;
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        match self.framing {
            Framing::Lines => {
                self.data.push_str(line.trim());
                Ok(!self.data.is_empty())
            }
            Framing::Events if line.is_empty() => {
                let whole = self.has_data;
                if !whole {
                    self.clear_frame();
                }
                Ok(whole)
            }
            Framing::Events => {
                let (field, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match field {
                    "data" => {
                        if std::mem::replace(&mut self.has_data, true) {
                            self.data.push('\n');
                        }
                        self.data.push_str(value);
                    }
                    "event" => value.clone_into(&mut self.event),
                    // Comment lines have an empty name. `id` and `retry` are not needed.
                    _ => {}
                }
                Ok(false)
            }
        }
    }

    fn check_size(&self, more: usize) -> Result<(), Fault> {
        if self.data.len() + more > MAX_FRAME_BYTES {
            let begins =
                if self.data.is_empty() { &self.bytes[..more.min(1000)] } else { self.data.as_bytes() };
            let begins = &begins[..begins.len().min(1000)];
            return Err(Fault::unreadable(&String::from_utf8_lossy(begins)));
        }
        Ok(())
    }

    fn clear_frame(&mut self) {
        self.event.clear();
        self.data.clear();
        self.has_data = false;
        self.is_returned = false;
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
