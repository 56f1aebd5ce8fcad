//! Which records of a block have a stem.
//!
//! Each indexed record has a slot: the number of its chunk and its place in there. [`BLOCK_CHUNKS`] chunks are a block,
//! of whichever sessions, and one row of the index says which slots of a block have a stem: as the gaps between them, or as one bit
//! for each slot if that is shorter. So the row of the most frequent word has 512 bytes for up to 4,096 records, and a search reads
//! a word's rows instead of a row for each record.

use super::chunk::CHUNK_RECORDS;
use super::varint::{push_number, take_number};
use crate::scoring::set_bits;

/// The chunks of a block.
pub(super) const BLOCK_CHUNKS: i64 = 16;
const BLOCK_SLOTS: usize = 16 * CHUNK_RECORDS;
const BITMAP_WORDS: usize = BLOCK_SLOTS / 64;
const BITMAP_BYTES: usize = BLOCK_SLOTS / 8;
/// The bitmap words of a chunk.
pub(super) const CHUNK_WORDS: usize = CHUNK_RECORDS / 64;

/// The place of a record in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    /// The number of its chunk.
    pub(super) chunk: i64,
    /// Its place in there, from 0.
    pub(super) place: usize,
}

impl Slot {
    pub(super) fn block(self) -> i64 {
        block_of(self.chunk)
    }
}

pub(super) fn block_of(chunk: i64) -> i64 {
    chunk.div_euclid(BLOCK_CHUNKS)
}

/// The place of a chunk in its block, from 0.
pub(super) fn chunk_in_block(chunk: i64) -> usize {
    // At most 15.
    usize::try_from(chunk.rem_euclid(BLOCK_CHUNKS)).unwrap_or_default()
}

/// Slots of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlotSet([u64; BITMAP_WORDS]);

impl Default for SlotSet {
    fn default() -> Self {
        Self([0; BITMAP_WORDS])
    }
}

impl SlotSet {
    pub(super) fn insert(&mut self, slot: Slot) {
        self.insert_place(chunk_in_block(slot.chunk) * CHUNK_RECORDS + slot.place % CHUNK_RECORDS);
    }

    pub(super) fn insert_chunk(&mut self, chunk: i64) {
        let first = chunk_in_block(chunk) * CHUNK_WORDS;
        self.0[first..first + CHUNK_WORDS].fill(u64::MAX);
    }

    fn insert_place(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn remove_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= !other);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The slots of a chunk, one bit for each, by its place in the block.
    pub(super) fn chunk_words(&self, place: usize) -> &[u64] {
        let first = place * CHUNK_WORDS;
        self.0.get(first..first + CHUNK_WORDS).unwrap_or_default()
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        set_bits(&self.0)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut gaps = Vec::new();
        let mut next = 0;
        for place in self.places() {
            push_number(&mut gaps, (place - next) as u64);
            next = place + 1;
            if gaps.len() >= BITMAP_BYTES {
                return self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
            }
        }
        gaps
    }

    /// Damaged bytes give other slots.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let mut slots = Self::default();
        if bytes.len() == BITMAP_BYTES {
            for (word, bytes) in slots.0.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            }
            return slots;
        }
        let (mut bytes, mut next) = (bytes, 0_u64);
        while let Some(gap) = take_number(&mut bytes) {
            let place = next.saturating_add(gap);
            match usize::try_from(place) {
                Ok(place) if place < BLOCK_SLOTS => slots.insert_place(place),
                _ => break,
            }
            next = place + 1;
        }
        slots
    }
}

#[cfg(test)]
#[path = "posting_list_tests.rs"]
mod tests;
