//! Look at a target that keeps its data: how much of it may never have been written.
//!
//! Holes of files and trimmed blocks read as zeroes on nearly all drives. A file system, a drive or
//! an NBD server may tell which blocks hold data; few drives do (the LBA status of NVMe is
//! optional, and lists allocated blocks only in later revisions). So a sample of
//! blocks is read besides: those that are all zero count, and one with data that is told to be
//! unwritten shows that the target tells something else.

use std::fmt;

use blockio::{Bytes, Rng};
use results::{Warning, WarningKind};
use rustix::io::pread;

use self::allocation::Allocation;
use crate::environment::Site;
use crate::sites::Sites;
use crate::target::Target;
use crate::tools::Tools;

mod allocation;

/// Blocks that are read of each target: an error of at most 3 % at a confidence of 95 %.
const SAMPLES: u64 = 1024;
/// Bytes of a block.
const BLOCK_BYTES: usize = 4096;
/// Seed of the places: the same blocks are looked at before each run.
const SEED: u64 = 0x7a65_726f;

/// Space of the targets that may never have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnwrittenSpace {
    zeroes: Option<Zeroes>,
    told: Option<DataSpace>,
}

/// Blocks of zeroes, found by reading some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Zeroes {
    /// Blocks that hold nothing but zeroes.
    zero: u64,
    /// Blocks that were read.
    read: u64,
}

/// Space that holds data, as the target tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DataSpace {
    source: &'static str,
    data_bytes: u64,
    capacity_bytes: u64,
}

impl UnwrittenSpace {
    /// Looks at every target of `sites`.
    pub(super) fn of_all(sites: &Sites) -> Self {
        let tools = Tools::default();
        let all = sites.all().iter().map(|site| Self::of_one(site, &tools));
        all.reduce(Self::and).expect("sites are one at least")
    }

    fn of_one(site: &Site, tools: &Tools) -> Self {
        let (target, capacity_bytes) = (site.target(), site.capacity_bytes());
        let allocation = Allocation::of(target, capacity_bytes, tools);
        let samples = match target {
            Target::Local(local) => samples(local.permit.target(), capacity_bytes),
            Target::Export { .. } | Target::Fleet { .. } => None,
        };
        Self::new(samples.as_deref(), allocation.as_ref(), capacity_bytes)
    }

    fn new(
        samples: Option<&[Sample]>,
        allocation: Option<&Allocation>,
        capacity_bytes: u64,
    ) -> Self {
        let told = allocation.filter(|it| {
            samples.unwrap_or_default().iter().all(|block| block.is_zero || it.holds(block.at))
        });
        let zeroes = samples.map(|all| Zeroes {
            zero: all.iter().filter(|block| block.is_zero).count() as u64,
            read: all.len() as u64,
        });
        let told = told.map(|it| DataSpace {
            source: it.source,
            data_bytes: it.data_bytes(),
            capacity_bytes,
        });
        Self { zeroes, told }
    }

    /// Both together: known where it is known of each.
    fn and(self, other: Self) -> Self {
        let zeroes = self
            .zeroes
            .zip(other.zeroes)
            .map(|(a, b)| Zeroes { zero: a.zero + b.zero, read: a.read + b.read });
        let told = self.told.zip(other.told).map(|(a, b)| DataSpace {
            source: a.source,
            data_bytes: a.data_bytes + b.data_bytes,
            capacity_bytes: a.capacity_bytes + b.capacity_bytes,
        });
        Self { zeroes, told }
    }

    /// True if all was written, as far as anything tells.
    fn is_none(&self) -> bool {
        let no_zeroes = self.zeroes.is_none_or(|it| it.zero == 0);
        let all_data = self.told.is_none_or(|it| it.data_bytes == it.capacity_bytes);
        no_zeroes && all_data && (self.zeroes.is_some() || self.told.is_some())
    }

    /// The warning about reads that may meet what was never written; absent where none would.
    pub(super) fn warning(&self) -> Option<Warning> {
        let text = match self {
            _ if self.is_none() => return None,
            Self { zeroes: None, told: None } => {
                "it is not known how much of what is read was ever written: the target does not \
                 tell which blocks hold data"
                    .to_owned()
            }
            _ => format!(
                "{self}: what was never written, or was trimmed, a drive answers without its media"
            ),
        };
        let remedy = "read a target that is full of data, or fill one whose data is not needed";
        let kind = WarningKind::UnwrittenReads;
        Some(Warning { kind, step: String::new(), text, remedy: remedy.into() })
    }
}

impl fmt::Display for UnwrittenSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.told {
            Some(told) => write!(f, "{told}")?,
            None => f.write_str("which blocks were never written is not known")?,
        }
        self.zeroes.map_or(Ok(()), |zeroes| write!(f, "; {zeroes}"))
    }
}

impl fmt::Display for DataSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, data_bytes, capacity_bytes } = *self;
        let empty_bytes = capacity_bytes - data_bytes.min(capacity_bytes);
        let share = empty_bytes as f64 / capacity_bytes.max(1) as f64 * 100.0;
        let (empty, all) = (Bytes(empty_bytes), Bytes(capacity_bytes));
        write!(f, "{share:.1} % of the target holds no data ({empty} of {all}), says {source}")
    }
}

impl fmt::Display for Zeroes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { zero, read } = *self;
        let (share, size) = (zero as f64 / read.max(1) as f64 * 100.0, Bytes(BLOCK_BYTES as u64));
        write!(f, "{share:.1} % of it reads as zeroes ({zero} of {read} blocks of {size})")
    }
}

/// A block that was read.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Its first byte.
    at: u64,
    is_zero: bool,
}

/// Reads some blocks; absent where one cannot be read.
fn samples(target: &impl std::os::fd::AsFd, capacity_bytes: u64) -> Option<Vec<Sample>> {
    let blocks = capacity_bytes / BLOCK_BYTES as u64;
    let mut places = Rng::new(SEED);
    let mut block = [0_u8; BLOCK_BYTES];
    let mut samples = Vec::new();
    for _ in 0..SAMPLES.min(blocks) {
        let at = places.below(blocks) * BLOCK_BYTES as u64;
        let count = pread(target, &mut block, at).ok()?;
        samples.push(Sample { at, is_zero: block[..count].iter().all(|byte| *byte == 0) });
    }
    Some(samples)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn holes_and_zeroes_are_found_and_data_is_not() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 20).unwrap();
        let look = || UnwrittenSpace::new(samples(&file, 64 << 20).as_deref(), None, 64 << 20);
        assert_eq!(look().zeroes, Some(Zeroes { zero: 1024, read: 1024 }));
        file.write_all_at(&vec![0xa5; 32 << 20], 0).unwrap();
        let zero = look().zeroes.unwrap().zero;
        assert!((450..=574).contains(&zero), "half of it, at random: {zero}");
        let told = look().warning().unwrap().text;
        assert!(told.starts_with("which blocks were never written is not known; "), "{told}");
        file.write_all_at(&vec![0xa5; 32 << 20], 32 << 20).unwrap();
        assert_eq!(look().zeroes, Some(Zeroes { zero: 0, read: 1024 }));
        assert_eq!(look().warning(), None);
    }

    #[test]
    fn a_target_that_calls_data_unwritten_is_not_believed() {
        let blocks = [(0, true), (4096, false)].map(|(at, is_zero)| Sample { at, is_zero });
        let told = |data: &[(u64, u64)]| {
            let allocation = Allocation::new("the drive", data.to_vec());
            UnwrittenSpace::new(Some(&blocks), Some(&allocation), 8192)
        };
        let text = told(&[(4096, 8192)]).warning().unwrap().text;
        let expected = "50.0 % of the target holds no data (4 KiB of 8 KiB), says the drive; \
                        50.0 % of it reads as zeroes (1 of 2 blocks of 4 KiB): ";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(told(&[]).told, None);
        let unknown = UnwrittenSpace::new(None, None, 8192);
        assert!(unknown.warning().unwrap().text.starts_with("it is not known"));
        assert_eq!(told(&[(4096, 8192)]).and(unknown), unknown, "one of two is not known");
    }
}
