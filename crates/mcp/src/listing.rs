//! What a server lists page by page: bounded in entries and in bytes, so that a server which lists without end costs no more memory than
//! one large message.

use std::io;

use serde::Serialize;

use crate::output_filter::MAX_MESSAGE_BYTES;

/// Entries of a list, and how much room there is for more.
#[derive(Debug)]
pub(crate) struct Listing<T> {
    pub(crate) entries: Vec<T>,
    max_entries: usize,
    bytes_left: usize,
    /// Whether an entry was left out because the list has too many bytes.
    pub(crate) is_cut: bool,
}

impl<T: Serialize> Listing<T> {
    pub(crate) fn new(max_entries: usize) -> Self {
        Self { entries: Vec::new(), max_entries, bytes_left: MAX_MESSAGE_BYTES, is_cut: false }
    }

    /// Adds what has room. A page is a message, so it is never larger than the whole list may be.
    pub(crate) fn add_page(&mut self, page: Vec<T>) {
        for entry in page {
            if self.is_full() {
                return;
            }
            match self.bytes_left.checked_sub(json_bytes(&entry)) {
                Some(left) => self.bytes_left = left,
                None => {
                    self.is_cut = true;
                    return;
                }
            }
            self.entries.push(entry);
        }
    }

    /// Whether no page can add anything.
    pub(crate) fn is_full(&self) -> bool {
        self.is_cut || self.entries.len() >= self.max_entries
    }
}

/// The size of a value as JSON, without making it.
fn json_bytes(value: &impl Serialize) -> usize {
    struct ByteCount(usize);
    impl io::Write for ByteCount {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCount(0);
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
