//! Dies that fail while a drive is at work, one after another.
//!
//! ```text
//!  at work ──► failed ──► rebuilding ──► restoring redundancy ──► redundant    with parity
//!                 ├─────► pages lost        without it, or with a second one missing
//!                 └─────► read-only         where the spare space cannot stand in for it
//! ```

use blockio::Nanos;
use ftl::{DieId, Divider, Geometry, Ppn};
use serde::{Deserialize, Serialize};

/// Failure of a die that was asked for.
///
/// ```
/// use ssd::{DieFailure, Drive, Setup, catalogue};
///
/// let mut spec = catalogue::find("iodrive-duo").expect("it is in the catalogue");
/// spec.die_failures = vec![DieFailure { die: 3, after_s: 60 }];
/// let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 64, seed: 1 };
/// let drive = Drive::new(&spec, &setup)?;
/// assert!(drive.failed_dies().is_empty(), "it fails under load, not before");
/// # Ok::<(), ssd::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DieFailure {
    /// The die, counted over all modules from 0.
    pub die: u32,
    /// Protocol time from the first load after a purge, in seconds.
    pub after_s: u64,
}

/// Outcome of the failure of a die.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailedDie {
    /// The die, counted over all modules from 0.
    pub die: u32,
    /// Time of its failure.
    pub failed_at: Nanos,
    /// Pages of 4 KiB that were lost: none with parity while no other unit of a stripe is missing.
    pub pages_lost: u64,
    /// Time at which all that parity gives back of it had been rebuilt; absent before.
    pub rebuilt_at: Option<Nanos>,
    /// Time at which no stripe lacked a unit any more, so that the next die may fail; absent
    /// before, and without parity.
    pub redundant_at: Option<Nanos>,
    /// True if the spare space could not stand in for it: the drive takes no writes any more.
    pub is_read_only: bool,
    /// Flash for data beyond the user capacity that is left, as a share of it.
    pub spare_share: f64,
}

/// Dies of a module that are out of service, for the reads that go around them.
#[derive(Clone, Debug)]
pub(crate) struct LostDies {
    dies: Vec<DieId>,
    geometry: Geometry,
    places_per_superblock: Divider,
    pages_per_superblock: Divider,
    pages_per_unit: Divider,
}

impl LostDies {
    pub(crate) fn new(geometry: Geometry, extents_per_page: u32) -> Self {
        let pages = geometry.pages_per_superblock();
        Self {
            dies: Vec::new(),
            geometry,
            places_per_superblock: Divider::new(pages * extents_per_page),
            pages_per_superblock: Divider::new(pages),
            pages_per_unit: Divider::new(geometry.pages_per_unit()),
        }
    }

    pub(crate) fn add(&mut self, die: DieId) {
        assert!(!self.has(die), "a die is lost once");
        self.dies.push(die);
    }

    #[inline]
    pub(crate) fn has(&self, die: DieId) -> bool {
        self.dies.contains(&die)
    }

    /// Dies that hold the other units of the stripe that the page at `ppn` of `die` lies in. Those
    /// that are lost, too, were left out when it was written, or it could not be read.
    pub(crate) fn others(&self, die: DieId, ppn: Ppn) -> Vec<DieId> {
        let (_, place) = self.places_per_superblock.divide(ppn.0);
        let (_, page) = self.pages_per_superblock.divide(place);
        let first = die.0 / self.geometry.dies_per_bank * self.geometry.dies_per_bank;
        let others = self.geometry.stripe_of(self.pages_per_unit.divide(page).0);
        let others = others.map(|die| DieId(first + die)).filter(|die| !self.has(*die));
        others.collect()
    }
}
