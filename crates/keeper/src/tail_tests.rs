use proptest::prelude::*;

use super::*;

/// A ring in memory, written as the keeper writes its file.
struct Ring {
    tail: Tail,
    bytes: Vec<u8>,
}

/// What a command prints at this offset, in these tests.
fn printed_at(offset: u64) -> u8 {
    u8::try_from(offset % 251).unwrap()
}

impl Ring {
    fn of_cap(cap: u64) -> Self {
        let tail = Tail::for_cap(cap);
        Self { tail, bytes: vec![0; usize::try_from(HEADER + tail.size).unwrap()] }
    }

    /// Writes up to so many bytes, and gives the last `torn` of them no chance to be counted.
    fn print(&mut self, most: u64, torn: u64) {
        self.tail.reserve();
        let (place, room) = self.tail.room();
        let count = most.min(room);
        for number in 0..count {
            self.bytes[usize::try_from(place + number).unwrap()] = printed_at(self.tail.written + number);
        }
        self.tail.written += count.saturating_sub(torn);
    }

    fn read(&self, offsets: &Range<u64>) -> Vec<u8> {
        let places = self.tail.places(offsets).map(|(place, length)| {
            let place = usize::try_from(place).unwrap();
            &self.bytes[place..place + usize::try_from(length).unwrap()]
        });
        places.concat()
    }
}

proptest! {
    /// K10: at any moment, also in the middle of a write that is never finished, what counts as kept is what was printed.
    #[test]
    fn what_is_kept_is_what_was_printed(
        cap in 4096_u64..20_000,
        prints in prop::collection::vec((1_u64..3000, prop_oneof![4 => Just(0_u64), 1 => 1_u64..3000]), 0..60),
    ) {
        let mut ring = Ring::of_cap(cap);
        for (most, torn) in prints {
            ring.print(most, torn);

            let kept = ring.tail.kept();

            let expected: Vec<u8> = kept.clone().map(printed_at).collect();
            prop_assert_eq!(ring.read(&kept), expected);
            prop_assert_eq!(kept.end, ring.tail.written);
        }
    }

    /// K10: when nothing more comes, the whole ring is given to what was printed last.
    #[test]
    fn at_the_end_the_last_half_of_the_cap_is_kept(cap in 4096_u64..20_000, prints in 1_usize..100) {
        let mut ring = Ring::of_cap(cap);
        for _ in 0..prints {
            ring.print(1000, 0);
        }
        ring.tail.reserved = ring.tail.written;

        let kept = ring.tail.kept();

        prop_assert_eq!(kept.end - kept.start, ring.tail.size.min(ring.tail.written - ring.tail.begins));
        prop_assert_eq!(ring.read(&kept), kept.map(printed_at).collect::<Vec<u8>>());
    }

    /// A header that is read while it is written is read again, never believed.
    #[test]
    fn a_header_of_two_halves_is_refused(cut in 1_usize..47, more in 1_u64..1 << 40) {
        let mut tail = Tail::for_cap(1 << 20);
        tail.reserve();
        let old = tail.encode();
        tail.written += more;
        tail.reserved = tail.written + 7;
        let new = tail.encode();

        let torn: Vec<u8> = new[..cut].iter().chain(&old[cut..]).copied().collect();
        let read = Tail::decode(&torn.try_into().unwrap());

        prop_assert!(read.is_none_or(|read| read.encode() == old || read.encode() == new));
    }
}

#[test]
fn a_header_is_read_as_it_was_written() {
    let mut tail = Tail::for_cap(64 << 20);
    tail.reserve();

    assert_eq!(Tail::decode(&tail.encode()), Some(tail));
    assert_eq!(Tail::decode(&[0; 48]), None);
}
