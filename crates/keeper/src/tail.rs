//! The ring buffer for the end of the output.
//!
//! `output.head` holds the first half of the cap, and its length tells how much was printed so far. The rest goes to
//! `output.tail`, a ring buffer after a header of one page: the byte at offset `o` is at `(o - begins) % size`.
//!
//! The header has two counters. `written` is how far the ring is filled. `reserved` is at least the end of what the
//! writer may be overwriting. The writer raises `reserved` before it writes and `written` afterwards. So at any
//! moment, even after `kill -9`, exactly the bytes from `reserved - size` to `written` are valid. A reader reads the
//! header again after the bytes. Bytes that `reserved` has passed meanwhile may be torn, and count as dropped.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The offset of the ring in its file.
const HEADER: u64 = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"lh-tail1");
/// Attempts to read a header while it is being written.
const MAX_ATTEMPTS: usize = 1000;
/// The writer reserves at most this much at once. It does not write a header for each small output.
const MAX_RESERVE_STEP: u64 = 1 << 20;
/// With a smaller cap there is only a head.
const MIN_CAP: u64 = 4096;

/// The header of `output.tail`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The offset of the ring's first byte: the size of the head.
    pub(crate) begins: u64,
    /// The size of the ring.
    pub(crate) size: u64,
    /// Everything before this offset was written.
    pub(crate) written: u64,
    /// Everything before this offset may be overwritten next.
    pub(crate) reserved: u64,
}

impl Tail {
    /// An empty tail, for a cap of this many bytes.
    pub(crate) fn for_cap(cap: u64) -> Self {
        let cap = cap.clamp(MIN_CAP, u64::MAX >> 2);
        let begins = cap / 2;
        Self { begins, size: cap - begins, written: begins, reserved: begins }
    }

    /// Reserves the next step, if the last one is used up.
    pub(crate) fn reserve(&mut self) {
        if self.written == self.reserved {
            self.reserved += (self.size / 8).clamp(1, MAX_RESERVE_STEP);
        }
    }

    /// The place of the next byte in the file, and how many bytes fit there now.
    pub(crate) fn room(&self) -> (u64, u64) {
        let at = (self.written - self.begins) % self.size;
        (HEADER + at, (self.size - at).min(self.reserved - self.written))
    }

    /// The offsets of valid bytes.
    pub(crate) fn kept(&self) -> Range<u64> {
        let from = self.reserved.saturating_sub(self.size).clamp(self.begins, self.written);
        from..self.written
    }

    /// The places of these offsets in the file: one range, or two around the ring's end.
    pub(crate) fn places(&self, offsets: &Range<u64>) -> [(u64, u64); 2] {
        let length = offsets.end.saturating_sub(offsets.start);
        let at = offsets.start.saturating_sub(self.begins) % self.size;
        let first = length.min(self.size - at);
        [(HEADER + at, first), (HEADER, length - first)]
    }

    fn words(&self) -> [u64; 6] {
        // A torn header, with one half older than the other, fails this check.
        let check = [self.begins, self.size, self.written, self.reserved]
            .iter()
            .fold(MAGIC, |check, word| check.rotate_left(7) ^ word);
        [MAGIC, self.begins, self.size, self.written, self.reserved, check]
    }

    pub(crate) fn encode(&self) -> [u8; 48] {
        let mut bytes = [0; 48];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.words()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; 48]) -> Option<Self> {
        let word = |number: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[number * 8..number * 8 + 8]);
            u64::from_le_bytes(word)
        };
        let tail = Self { begins: word(1), size: word(2), written: word(3), reserved: word(4) };
        let in_order = tail.begins <= tail.written && tail.written <= tail.reserved && tail.size > 0;
        (in_order && tail.encode() == *bytes).then_some(tail)
    }

    pub(crate) fn store(&self, file: &File) -> std::io::Result<()> {
        file.write_all_at(&self.encode(), 0)
    }

    /// Reads the header of a file that the keeper may be writing. `None` if there is none yet.
    pub(crate) fn load(file: &File) -> std::io::Result<Option<Self>> {
        let mut bytes = [0; 48];
        for _ in 0..MAX_ATTEMPTS {
            match file.read_exact_at(&mut bytes, 0) {
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
                Ok(()) => {}
            }
            if let Some(tail) = Self::decode(&bytes) {
                return Ok(Some(tail));
            }
            std::thread::yield_now();
        }
        Err(std::io::Error::other("its header is damaged"))
    }
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
