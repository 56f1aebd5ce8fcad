//! The table of postings: for each stem and block, the slots of the records that have it.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::posting_list::{Slot, SlotSet, block_of};

/// The most bytes of a stem in the index. A longer one is hardly a word, and is found by its beginning.
const MAX_STEM_BYTES: usize = 64;
/// Postings in memory before they are written.
const MAX_PENDING: usize = 100_000;
/// The most blocks that are looked up one by one.
const MAX_SINGLE_BLOCKS: usize = 16;

/// Postings that are written together, each row once.
#[derive(Debug, Default)]
pub(super) struct PendingPostings {
    slots: BTreeMap<String, Vec<Slot>>,
    count: usize,
}

impl PendingPostings {
    /// Adds the stems of a record.
    pub(super) fn add(
        &mut self,
        change: &Transaction<'_>,
        stems: &BTreeSet<String>,
        slot: Slot,
    ) -> rusqlite::Result<()> {
        for stem in stems {
            let stem = stored_stem(stem);
            match self.slots.get_mut(stem) {
                Some(slots) => slots.push(slot),
                None => _ = self.slots.insert(stem.to_owned(), vec![slot]),
            }
        }
        self.count += stems.len();
        if self.count >= MAX_PENDING { self.write(change) } else { Ok(()) }
    }

    pub(super) fn write(&mut self, change: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut find = change.prepare_cached("SELECT slots FROM postings WHERE stem = ?1 AND block = ?2")?;
        self.count = 0;
        for (stem, mut added) in std::mem::take(&mut self.slots) {
            added.sort_unstable();
            for of_block in added.chunk_by(|one, other| one.block() == other.block()) {
                let block = of_block[0].block();
                let known = |row: &rusqlite::Row<'_>| Ok(SlotSet::decode(row.get_ref(0)?.as_blob()?));
                let known = find.query_row(params![stem, block], known).optional()?;
                let mut slots = known.unwrap_or_default();
                of_block.iter().for_each(|slot| slots.insert(*slot));
                save(change, &stem, block, &slots)?;
            }
        }
        Ok(())
    }
}

/// Passes the slots that have a stem to `each`, block by block. `blocks` are those of interest, in their order.
pub(super) fn each_block(
    db: &Connection,
    stem: &str,
    blocks: &[i64],
    mut each: impl FnMut(i64, &SlotSet),
) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached(
        "SELECT block, slots FROM postings WHERE stem = ?1 AND block >= ?2 AND block <= ?3 ORDER BY block",
    )?;
    let ranges: Vec<(i64, i64)> = match (blocks.first(), blocks.last()) {
        (Some(first), Some(last)) if blocks.len() > MAX_SINGLE_BLOCKS => vec![(*first, *last)],
        _ => blocks.iter().map(|block| (*block, *block)).collect(),
    };
    for (first, last) in ranges {
        let mut rows = statement.query(params![stored_stem(stem), first, last])?;
        while let Some(row) = rows.next()? {
            // `postings` is a strict table: its column is a blob.
            each(row.get(0)?, &SlotSet::decode(row.get_ref(1)?.as_blob().unwrap_or_default()));
        }
    }
    Ok(())
}

/// Slots of any blocks.
#[derive(Debug, Default)]
pub(super) struct RemovedSlots(BTreeMap<i64, SlotSet>);

impl RemovedSlots {
    pub(super) fn insert(&mut self, slot: Slot) {
        self.0.entry(slot.block()).or_default().insert(slot);
    }

    pub(super) fn insert_chunk(&mut self, chunk: i64) {
        self.0.entry(block_of(chunk)).or_default().insert_chunk(chunk);
    }

    /// Takes the slots out of every list, so the words of their records need not be known. A stem that no record has any more
    /// goes with its last slot.
    pub(super) fn remove(&self, change: &Transaction<'_>) -> rusqlite::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut changed = Vec::new();
        let mut statement = change.prepare_cached("SELECT stem, block, slots FROM postings")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let block: i64 = row.get(1)?;
            let Some(removed) = self.0.get(&block) else { continue };
            let slots = SlotSet::decode(row.get_ref(2)?.as_blob()?);
            let mut left = slots.clone();
            left.remove_all(removed);
            if left != slots {
                changed.push((row.get::<_, String>(0)?, block, left));
            }
        }
        drop(rows);
        for (stem, block, slots) in changed {
            save(change, &stem, block, &slots)?;
        }
        Ok(())
    }
}

/// Writes the list of a stem in a block; an empty one is no row.
fn save(change: &Transaction<'_>, stem: &str, block: i64, slots: &SlotSet) -> rusqlite::Result<()> {
    if slots.is_empty() {
        change
            .prepare_cached("DELETE FROM postings WHERE stem = ?1 AND block = ?2")?
            .execute(params![stem, block])?;
    } else {
        change
            .prepare_cached("INSERT OR REPLACE INTO postings (stem, block, slots) VALUES (?1, ?2, ?3)")?
            .execute(params![stem, block, slots.encode()])?;
    }
    Ok(())
}

fn stored_stem(stem: &str) -> &str {
    &stem[..stem.floor_char_boundary(MAX_STEM_BYTES)]
}
