//! Zipf-distributed ranks and the scrambling of an address space.
//!
//! Ranks are drawn by rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to
//! generate variates from monotone discrete distributions", ACM Transactions on Modeling and
//! Computer Simulation 6 (1996), pages 169 to 184; names as there. It needs no table, whatever the
//! number of ranks, and rejects fewer than one draw in ten for skews in use.
//!
//! Logarithms and powers come from `libm`, so that they have the same bits on every machine.

use blockio::Rng;
use libm::{exp, expm1, log, log1p};

/// Ranks `0..ranks`, rank k with a probability proportional to 1 / (k + 1)^theta.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    ranks: u64,
    theta: f64,
    /// H(1.5) - h(1), the upper end of the inverted range.
    upper: f64,
    /// H(ranks + 0.5), the lower end.
    lower: f64,
    /// Distance below which a rounded draw is accepted without looking closer.
    shortcut: f64,
}

impl Zipf {
    pub(crate) fn new(ranks: u64, theta: f64) -> Self {
        assert!(ranks > 0 && theta > 0.0);
        let mut zipf = Self { ranks, theta, upper: 0.0, lower: 0.0, shortcut: 0.0 };
        zipf.upper = zipf.integral(1.5) - 1.0;
        zipf.lower = zipf.integral(ranks as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.lower + rng.unit_f64() * (self.upper - self.lower);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.ranks as f64);
            if rank - x <= self.shortcut || u >= self.integral(rank + 0.5) - self.density(rank) {
                return whole(rank) - 1;
            }
        }
    }

    /// h(x) = x^-theta.
    fn density(&self, x: f64) -> f64 {
        exp(-self.theta * log(x))
    }

    /// H(x) = (x^(1 - theta) - 1) / (1 - theta), and log x where theta is 1.
    fn integral(&self, x: f64) -> f64 {
        let log_x = log(x);
        expm1_over((1.0 - self.theta) * log_x) * log_x
    }

    /// The inverse of H.
    fn inverse(&self, y: f64) -> f64 {
        // Rounding must not leave the domain of the logarithm.
        let t = (y * (1.0 - self.theta)).max(-1.0);
        exp(log1p_over(t) * y)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and positive")]
fn whole(value: f64) -> u64 {
    value as u64
}

/// (e^x - 1) / x, also near zero.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { expm1(x) / x } else { 1.0 + x / 2.0 }
}

/// log(1 + x) / x, also near zero.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { log1p(x) / x } else { 1.0 - x / 2.0 }
}

/// A seeded permutation of `0..count`: spreads hot ranks over the address space.
///
/// Multiplications by odd numbers and shifted exclusive-ors permute the next power of two; results
/// beyond `count` go round again, at most twice as many on average.
#[derive(Clone, Debug)]
pub(crate) struct Scramble {
    count: u64,
    mask: u64,
    shift: u32,
    factors: [u64; 3],
}

impl Scramble {
    pub(crate) fn new(count: u64, rng: &mut Rng) -> Self {
        assert!(count > 0);
        let bits = (u64::BITS - (count - 1).leading_zeros()).max(1);
        Self {
            count,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
            factors: std::array::from_fn(|_| rng.next_u64() | 1),
        }
    }

    pub(crate) fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.count);
        let mut value = index;
        loop {
            for factor in self.factors {
                value = value.wrapping_add(factor >> 32).wrapping_mul(factor) & self.mask;
                value ^= value >> self.shift;
            }
            if value < self.count {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use blockio::Rng;

    #[test]
    fn ranks_follow_the_law() {
        for theta in [0.5, 1.0, 1.1, 2.5] {
            let (zipf, mut rng) = (Zipf::new(1000, theta), Rng::new(5));
            let draws = 400_000;
            let mut seen = vec![0_u32; 1000];
            for _ in 0..draws {
                seen[usize::try_from(zipf.draw(&mut rng)).unwrap()] += 1;
            }
            let norm: f64 = (1..=1000).map(|k| f64::from(k).powf(-theta)).sum();
            for k in [1_u32, 2, 3, 10, 50] {
                let expected = f64::from(k).powf(-theta) / norm * f64::from(draws);
                let found = f64::from(seen[usize::try_from(k).unwrap() - 1]);
                let deviation = (found - expected).abs();
                assert!(deviation < 5.0 * expected.sqrt(), "{theta} {k}: {found} {expected}");
            }
        }
    }

    #[test]
    fn one_rank_is_always_drawn() {
        assert_eq!(Zipf::new(1, 1.1).draw(&mut Rng::new(1)), 0);
    }

    proptest! {
        #[test]
        fn a_scramble_hits_every_place_once(count in 1_u64..2_000, seed: u64) {
            let scramble = Scramble::new(count, &mut Rng::new(seed));
            let mut places: Vec<u64> = (0..count).map(|index| scramble.at(index)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn a_rank_is_in_range_whatever_the_skew(
            ranks in 1_u64..1 << 40, theta in 0.01_f64..9.99, seed: u64,
        ) {
            let (zipf, mut rng) = (Zipf::new(ranks, theta), Rng::new(seed));
            for _ in 0..100 {
                prop_assert!(zipf.draw(&mut rng) < ranks);
            }
        }
    }
}
