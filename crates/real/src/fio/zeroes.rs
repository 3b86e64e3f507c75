//! Look at a target that keeps its data: how much of it may never have been written.
//!
//! Holes of files and trimmed blocks read as zeroes on nearly all drives, and few drives tell which
//! blocks they hold (the LBA status of NVMe is optional). So a sample of blocks is read; data that
//! is all zero counts among them.

use std::fmt;

use blockio::{Bytes, Rng};
use results::{Warning, WarningKind};
use rustix::io::pread;

use crate::sites::Sites;
use crate::target::Target;

/// Blocks that are read of each target: an error of at most 3 % at a confidence of 95 %.
const SAMPLES: u64 = 1024;
/// Bytes of a block.
const BLOCK_BYTES: usize = 4096;
/// Seed of the places: the same blocks are looked at before each run.
const SEED: u64 = 0x7a65_726f;

/// Blocks of zeroes of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zeroes {
    /// Found by reading some blocks.
    Sampled {
        /// Blocks that hold nothing but zeroes.
        zero: u64,
        /// Blocks that were read.
        read: u64,
    },
    /// The target cannot be looked at from here.
    Unknown,
}

impl fmt::Display for Zeroes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Sampled { zero, read } = *self else { return f.write_str("not known") };
        let (share, size) = (zero as f64 / read.max(1) as f64 * 100.0, Bytes(BLOCK_BYTES as u64));
        write!(
            f,
            "{share:.1} % of the target holds zeroes ({zero} of {read} blocks of {size} read)"
        )
    }
}

/// Looks at every target of `sites`.
pub(super) fn of_all(sites: &Sites) -> Zeroes {
    let (mut zero, mut read) = (0, 0);
    for site in sites.all() {
        let Target::Local(local) = site.target() else { return Zeroes::Unknown };
        let Some(of_one) = of_one(local.permit.target(), site.capacity_bytes()) else {
            return Zeroes::Unknown;
        };
        zero += of_one.0;
        read += of_one.1;
    }
    Zeroes::Sampled { zero, read }
}

/// The warning about reads that may meet what was never written; absent where none would.
pub(super) fn warning(zeroes: &Zeroes) -> Option<Warning> {
    let text = match zeroes {
        Zeroes::Sampled { zero: 0, .. } => return None,
        Zeroes::Sampled { .. } => format!(
            "{zeroes}: they may never have been written, or were trimmed, and a drive answers \
             reads of such blocks without its media"
        ),
        Zeroes::Unknown => "it is not known how much of what is read was ever written".to_owned(),
    };
    let remedy = "read a target that is full of data, or fill one whose data is not needed".into();
    Some(Warning { kind: WarningKind::UnwrittenReads, step: String::new(), text, remedy })
}

/// Blocks of zeroes, and blocks that were read.
fn of_one(target: &impl std::os::fd::AsFd, capacity_bytes: u64) -> Option<(u64, u64)> {
    let blocks = capacity_bytes / BLOCK_BYTES as u64;
    let mut places = Rng::new(SEED);
    let mut block = [0_u8; BLOCK_BYTES];
    let mut zero = 0;
    for _ in 0..SAMPLES.min(blocks) {
        let at = places.below(blocks) * BLOCK_BYTES as u64;
        let count = pread(target, &mut block, at).ok()?;
        zero += u64::from(block[..count].iter().all(|byte| *byte == 0));
    }
    Some((zero, SAMPLES.min(blocks)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn holes_and_zeroes_are_found_and_data_is_not() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 20).unwrap();
        let zero = |file: &std::fs::File| of_one(file, 64 << 20).unwrap().0;
        assert_eq!(of_one(&file, 64 << 20), Some((1024, 1024)));
        file.write_all_at(&vec![0xa5; 32 << 20], 0).unwrap();
        assert!((450..=574).contains(&zero(&file)), "half of it, at random: {}", zero(&file));
        file.write_all_at(&vec![0xa5; 32 << 20], 32 << 20).unwrap();
        assert_eq!(zero(&file), 0);
        assert_eq!(warning(&Zeroes::Sampled { zero: 0, read: 1024 }), None);
        let told = warning(&Zeroes::Sampled { zero: 256, read: 1024 }).unwrap().text;
        assert!(told.starts_with("25.0 % of the target holds zeroes (256 of 1024"), "{told}");
    }
}
