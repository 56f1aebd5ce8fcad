//! Random numbers with a seed that a failing test prints.

/// A small generator (SplitMix64): the same seed gives the same numbers.
pub(crate) struct TestRandom(u64);

impl TestRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed that `LONGHAUL_SEED` names, or one from the clock.
    pub(crate) fn any_seed() -> u64 {
        match std::env::var("LONGHAUL_SEED") {
            Ok(seed) => seed.parse().expect("LONGHAUL_SEED is a number"),
            Err(_) => Self::clock(),
        }
    }

    /// A seed from the clock alone.
    pub(crate) fn clock() -> u64 {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap();
        u64::from(now.subsec_nanos()) ^ now.as_secs().rotate_left(20)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let number = usize::try_from((mixed ^ (mixed >> 31)) & u64::from(u32::MAX)).unwrap();
        number % end
    }
}
