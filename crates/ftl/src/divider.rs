//! Division by a number that is fixed at run time, without a division.

/// Divides 32-bit numbers by a fixed one, exactly.
///
/// `n / d = (n * ceil(2^64 / d)) >> 64` for all `n, d < 2^32` (Granlund and Montgomery, 1994).
#[derive(Clone, Copy, Debug)]
pub struct Divider {
    divisor: u32,
    reciprocal: u64,
}

impl Divider {
    /// A divider by `divisor`, which must be at least 1.
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Self { divisor, reciprocal: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    /// Returns the divisor, at least 1.
    #[inline]
    pub const fn divisor(self) -> u32 {
        self.divisor
    }

    /// Quotient and remainder.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a quotient of two u32 is a u32")]
    pub fn divide(self, number: u32) -> (u32, u32) {
        if self.divisor == 1 {
            return (number, 0);
        }
        let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u32;
        // At most `number`: nothing can wrap, so nothing needs to be checked.
        let remainder = number.wrapping_sub(quotient.wrapping_mul(self.divisor));
        debug_assert!(remainder < self.divisor, "a remainder is below its divisor");
        (quotient, remainder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_processor(number: u32, divisor in 1_u32..) {
            prop_assert_eq!(
                Divider::new(divisor).divide(number),
                (number / divisor, number % divisor)
            );
        }
    }

    #[test]
    fn powers_of_two_and_extremes_agree() {
        for divisor in [1, 2, 3, 4096, 12_288, 1 << 31, u32::MAX] {
            for number in [0, 1, divisor - 1, divisor, u32::MAX - 1, u32::MAX] {
                let expected = (number / divisor, number % divisor);
                assert_eq!(Divider::new(divisor).divide(number), expected, "{number}/{divisor}");
            }
        }
    }
}
