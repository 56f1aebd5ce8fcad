use proptest::prelude::*;

use super::*;

fn record() -> impl Strategy<Value = IndexedRecord> {
    // Days of the calendar, of either sign.
    let day = -4_000_000..4_000_000;
    let named = proptest::option::of((day.clone(), day.clone()));
    (0..1_u64 << 36, 0..32_u8, any::<u16>(), any::<u32>(), day, named).prop_map(
        |(seq, flags, length, request_distance, day, named)| IndexedRecord {
            seq,
            flags: RecordFlags(flags),
            length,
            request_distance,
            day,
            named,
        },
    )
}

proptest! {
    #[test]
    fn a_block_comes_back_as_it_was(records in proptest::collection::vec(record(), 0..CHUNK_RECORDS)) {
        let (weights, places) = (encode_weights(&records), encode_places(&records));

        prop_assert_eq!(decode_chunk(&weights, &places), records);
    }

    #[test]
    fn no_bytes_make_it_panic(weights in any::<Vec<u8>>(), places in any::<Vec<u8>>()) {
        decode_chunk(&weights, &places);
    }
}
