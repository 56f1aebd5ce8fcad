//! From bytes to frames.
//!
//! Bytes come cut anywhere, in the middle of a character too. Each is looked at once, so that a frame costs its length
//! however it was cut; and what has not come to its end is never given out.

use super::{Fault, Frame};

/// No server sends a frame of this size; one that seems to would fill the memory.
const LARGEST_FRAME: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// How frames are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON value a line.
    Lines,
}

/// Frames as their bytes come.
pub(crate) struct Frames {
    framing: Framing,
    bytes: Vec<u8>,
    /// Up to here `bytes` went into lines.
    taken: usize,
    /// Up to here `bytes` holds no line end.
    searched: usize,
    /// The last line ended with a carriage return, so that a line feed right after it ends nothing.
    after_return: bool,
    /// Nothing was taken yet, so that a byte order mark may come.
    at_start: bool,
    event: String,
    data: String,
    /// There was a `data` field, perhaps an empty one.
    has_data: bool,
    /// What is in `event` and `data` was given out.
    given: bool,
}

impl Frames {
    /// Nothing came yet.
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
            given: false,
        }
    }

    /// More bytes came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one. After a fault nothing more may be asked.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, Fault> {
        if self.given {
            self.forget();
        }
        while let Some((start, end)) = self.line() {
            if self.take(start, end)? {
                self.given = true;
                return Ok(Some(Frame { event: &self.event, data: &self.data }));
            }
        }
        // What is left is the beginning of one line, which came with the last push: so moving it costs no more than that did.
        self.bytes.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.check_size(self.bytes.len())?;
        Ok(None)
    }

    /// Where the next whole line is, without its end.
    fn line(&mut self) -> Option<(usize, usize)> {
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

    /// Takes a line in, and says whether it completes a frame.
    fn take(&mut self, start: usize, end: usize) -> Result<bool, Fault> {
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
                    self.forget();
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
                    // A comment has an empty name; ids and times of reconnecting mean nothing here.
                    _ => {}
                }
                Ok(false)
            }
        }
    }

    fn check_size(&self, more: usize) -> Result<(), Fault> {
        if self.data.len() + more > LARGEST_FRAME {
            let begins =
                if self.data.is_empty() { &self.bytes[..more.min(1000)] } else { self.data.as_bytes() };
            let begins = &begins[..begins.len().min(1000)];
            return Err(Fault::unreadable(&String::from_utf8_lossy(begins)));
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.event.clear();
        self.data.clear();
        self.has_data = false;
        self.given = false;
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
