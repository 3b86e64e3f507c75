//! The one random generator.
//!
//! Xoshiro256++ (Blackman and Vigna, 2019), fixed by name so that no update of a dependency moves
//! a result. A generator is *split by purpose*: `rng.split("arrival")` gives an independent stream,
//! so that one more draw in one place shifts nothing in another.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    seed: u64,
    state: Xoshiro256PlusPlus,
}

impl Rng {
    /// The root stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, state: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// The stream of `purpose`: depends on this stream's seed, not on what was drawn from it.
    #[must_use]
    pub fn split(&self, purpose: &str) -> Self {
        // FNV-1a over the purpose, folded into the seed.
        let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::new(self.seed.rotate_left(23) ^ hash)
    }

    /// The stream numbered `index` among those of one purpose.
    #[must_use]
    pub fn split_index(&self, index: u64) -> Self {
        Self::new(self.seed.rotate_left(23) ^ (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A uniform 64-bit number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state.next_u64()
    }

    /// A uniform number in `0..limit`; the bias is below `limit` / 2⁶⁴.
    ///
    /// Multiply-shift (Lemire, 2019). `limit` must not be zero.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        debug_assert!(limit > 0);
        ((u128::from(self.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// A uniform number in `[0, 1)`, a multiple of 2⁻⁵³.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// An exponentially distributed number with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // The logarithm of the standard library differs between platforms in its last bit.
        -mean * libm::log(1.0 - self.unit_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_does_not_depend_on_draws() {
        let mut drawn = Rng::new(7);
        drawn.next_u64();
        assert_eq!(drawn.split("arrival").next_u64(), Rng::new(7).split("arrival").next_u64());
        assert_ne!(drawn.split("arrival").next_u64(), drawn.split("address").next_u64());
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut rng = Rng::new(1);
        assert_eq!([rng.next_u64(), rng.below(1000)], [14_971_601_782_005_023_387, 747]);
    }

    #[test]
    fn below_is_uniform() {
        let mut rng = Rng::new(3);
        let mut seen = [0_u32; 10];
        for _ in 0..100_000 {
            seen[usize::try_from(rng.below(10)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (9_600..10_400).contains(count)), "{seen:?}");
    }
}
