//! Sizes and host addresses.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// The smallest unit that a host addresses, in bytes.
pub const SECTOR_BYTES: u64 = 512;

/// A size in bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A size in KiB (1024 bytes), as pages, blocks and buffers are given.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib * 1024)
    }

    /// A size in decimal GB (10⁹ bytes), as on a drive's label.
    pub const fn from_gb(gb: u64) -> Self {
        Self(gb * 1_000_000_000)
    }

    /// This size in KiB.
    pub fn as_kib_f64(self) -> f64 {
        self.0 as f64 / 1024.0
    }

    /// This size in decimal GB.
    pub fn as_gb_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whole sectors in this size, rounded down.
    pub const fn sectors(self) -> u64 {
        self.0 / SECTOR_BYTES
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Bytes {
    /// Binary units where they come out whole (`4 KiB`), else decimal (`640 GB`, `1.05 GB`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB")];
        if self.0 != 0 && self.0.is_multiple_of(1 << 20) && self.0 < 1 << 30 {
            return write!(f, "{} MiB", self.0 >> 20);
        }
        if self.0 != 0 && self.0.is_multiple_of(1024) && self.0 < 1 << 20 {
            return write!(f, "{} KiB", self.0 >> 10);
        }
        for (size, unit) in decimal {
            if self.0 >= size {
                let value = self.0 as f64 / size as f64;
                let decimals = if value.fract() < 0.005 { 0 } else { 2 };
                return write!(f, "{value:.decimals$} {unit}");
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// A host address: the index of a 512-byte sector.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Lba(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_binary_for_pages_and_decimal_for_labels() {
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(Bytes::from_kib(4).to_string(), "4 KiB");
        assert_eq!(Bytes::from_kib(2048).to_string(), "2 MiB");
        assert_eq!(Bytes::from_gb(640).to_string(), "640 GB");
        assert_eq!(Bytes(1_280_000_000_000).to_string(), "1.28 TB");
    }
}
