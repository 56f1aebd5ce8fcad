use std::time::{SystemTime, UNIX_EPOCH};

/// Random numbers. The seed is printed, and `LONGHAUL_SEED` sets it, so that a failure can be reproduced.
#[derive(Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// With the seed in `LONGHAUL_SEED`, or one from the clock.
    pub fn new() -> Self {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let given = std::env::var("LONGHAUL_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| u64::try_from(clock & u128::from(u64::MAX)).unwrap());
        println!("LONGHAUL_SEED={seed}");
        Self(seed)
    }

    /// With a given seed, which the caller prints.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below this one.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

impl Default for SeededRandom {
    fn default() -> Self {
        Self::new()
    }
}
