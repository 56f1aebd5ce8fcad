//! What the index knows about each record beside its words, in blocks of [`CHUNK_RECORDS`] records of a stream.
//!
//! A search reads the blocks of all searched streams, so what every search needs is apart from the rest and has a fixed
//! size: `weights` has three bytes for each record (its flags and its length in words). `places` has what only hits and
//! questions with a date need, as numbers of variable length.

use longhaul_protocol::Seq;

use super::varint::{fold_sign, push_number, take_number, unfold_sign};
use crate::scoring::RecordFlags;

/// The records of a block.
pub(super) const CHUNK_RECORDS: usize = 256;
const WEIGHT_BYTES: usize = 3;

/// A record in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedRecord {
    pub(super) seq: Seq,
    pub(super) flags: RecordFlags,
    /// The number of its words.
    pub(super) length: u16,
    /// How many indexed records before it stands the user's input that it follows. 0 if it is such an input, or there
    /// is none.
    pub(super) request_distance: u32,
    /// The day on which it was written, since 1970.
    pub(super) day: i32,
    /// The first and the last day of a date that it names.
    pub(super) named: Option<(i32, i32)>,
}

impl IndexedRecord {
    /// The same without anything that its words said.
    pub(super) fn erased(&self) -> Self {
        Self { flags: RecordFlags::ERASED, length: 0, named: None, ..self.clone() }
    }
}

/// The flags and lengths of a block.
pub(super) fn encode_weights(records: &[IndexedRecord]) -> Vec<u8> {
    let bytes = |record: &IndexedRecord| {
        let [low, high] = record.length.to_le_bytes();
        [record.flags.0, low, high]
    };
    records.iter().flat_map(bytes).collect()
}

pub(super) fn decode_weights(bytes: &[u8]) -> impl Iterator<Item = (RecordFlags, u16)> {
    bytes
        .chunks_exact(WEIGHT_BYTES)
        .map(|entry| (RecordFlags(entry[0]), u16::from_le_bytes([entry[1], entry[2]])))
}

/// The rest of a block.
pub(super) fn encode_places(records: &[IndexedRecord]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut seq, mut day) = (0, 0);
    for record in records {
        push_number(&mut bytes, record.seq.wrapping_sub(seq));
        push_number(&mut bytes, u64::from(record.request_distance));
        push_number(
            &mut bytes,
            fold_sign(i64::from(record.day) - i64::from(day)) << 1 | u64::from(record.named.is_some()),
        );
        if let Some((from, to)) = record.named {
            push_number(&mut bytes, fold_sign(i64::from(from) - i64::from(record.day)));
            push_number(&mut bytes, fold_sign(i64::from(to) - i64::from(from)));
        }
        (seq, day) = (record.seq, record.day);
    }
    bytes
}

/// A whole block. It is shorter if the bytes are damaged.
pub(super) fn decode_chunk(weights: &[u8], places: &[u8]) -> Vec<IndexedRecord> {
    let mut places = places;
    let (mut seq, mut day): (Seq, i32) = (0, 0);
    let mut next = |(flags, length): (RecordFlags, u16)| {
        seq = seq.wrapping_add(take_number(&mut places)?);
        let request_distance = u32::try_from(take_number(&mut places)?).ok()?;
        let packed = take_number(&mut places)?;
        day = i32::try_from(i64::from(day) + unfold_sign(packed >> 1)).ok()?;
        let named = match packed & 1 {
            0 => None,
            _ => {
                let from = i64::from(day) + unfold_sign(take_number(&mut places)?);
                let to = from + unfold_sign(take_number(&mut places)?);
                Some((i32::try_from(from).ok()?, i32::try_from(to).ok()?))
            }
        };
        Some(IndexedRecord { seq, flags, length, request_distance, day, named })
    };
    decode_weights(weights).map_while(&mut next).collect()
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
