use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn slots() -> impl Strategy<Value = BTreeSet<usize>> {
    // Rare words, frequent ones, and what lies together.
    prop_oneof![
        proptest::collection::btree_set(0..BLOCK_SLOTS, 0..40),
        proptest::collection::btree_set(0..BLOCK_SLOTS, 0..BLOCK_SLOTS),
        (0..BLOCK_SLOTS, 0..BLOCK_SLOTS).prop_map(|(from, to)| (from..to).collect()),
    ]
}

fn set(places: &BTreeSet<usize>) -> SlotSet {
    let mut slots = SlotSet::default();
    places.iter().for_each(|place| slots.insert_place(*place));
    slots
}

proptest! {
    #[test]
    fn a_list_comes_back_as_it_was_and_is_never_longer_than_its_bitmap(places in slots()) {
        let slots = set(&places);

        let bytes = slots.encode();

        prop_assert!(bytes.len() <= BITMAP_BYTES);
        prop_assert_eq!(SlotSet::decode(&bytes).places().collect::<BTreeSet<_>>(), places);
    }

    #[test]
    fn what_is_removed_is_gone_and_the_rest_stays(all in slots(), removed in slots()) {
        let mut slots = set(&all);

        slots.remove_all(&set(&removed));

        let left: BTreeSet<usize> = all.difference(&removed).copied().collect();
        prop_assert_eq!(slots.is_empty(), left.is_empty());
        prop_assert_eq!(slots, set(&left));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2 * BITMAP_BYTES)) {
        SlotSet::decode(&bytes).encode();
    }
}

#[test]
fn the_slots_of_a_chunk_stand_together() {
    let mut slots = SlotSet::default();
    slots.insert(Slot { chunk: BLOCK_CHUNKS * 3 + 2, place: 65 });

    assert_eq!(slots.chunk_words(2), [0, 2, 0, 0]);
    assert_eq!(slots.places().collect::<Vec<_>>(), [2 * CHUNK_RECORDS + 65]);
}
