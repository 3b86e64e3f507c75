//! A die that fails while a drive is at work.
//!
//! ```text
//!  at work ──► failed ──► rebuilding ──► rebuilt        with parity
//!                 └─────► pages lost                    without
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
/// spec.die_failure = Some(DieFailure { die: 3, after_s: 60 });
/// let setup = Setup { format: "stock".into(), host: "linux".into(), time_lapse: 64, seed: 1 };
/// let drive = Drive::new(&spec, &setup)?;
/// assert_eq!(drive.failed_die(), None, "it fails under load, not before");
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedDie {
    /// The die, counted over all modules from 0.
    pub die: u32,
    /// Time of its failure.
    pub failed_at: Nanos,
    /// Pages of 4 KiB that were lost: none with parity.
    pub pages_lost: u64,
    /// Time at which all that it held had been rebuilt from parity; absent before.
    pub rebuilt_at: Option<Nanos>,
}

/// Die of a module that is out of service, for the reads that go around it.
#[derive(Clone, Debug)]
pub(crate) struct LostDie {
    pub(crate) die: DieId,
    geometry: Geometry,
    places_per_superblock: Divider,
    pages_per_superblock: Divider,
    pages_per_unit: Divider,
}

impl LostDie {
    pub(crate) fn new(die: DieId, geometry: Geometry, extents_per_page: u32) -> Self {
        let pages = geometry.pages_per_superblock();
        Self {
            die,
            geometry,
            places_per_superblock: Divider::new(pages * extents_per_page),
            pages_per_superblock: Divider::new(pages),
            pages_per_unit: Divider::new(geometry.pages_per_unit()),
        }
    }

    /// Dies that hold the other units of the stripe that the page at `ppn` lies in.
    pub(crate) fn others(&self, ppn: Ppn) -> impl Iterator<Item = DieId> + use<> {
        let (_, place) = self.places_per_superblock.divide(ppn.0);
        let (_, page) = self.pages_per_superblock.divide(place);
        let first = self.die.0 / self.geometry.dies_per_bank * self.geometry.dies_per_bank;
        let others = self.geometry.stripe_of(self.pages_per_unit.divide(page).0);
        others.map(move |die| DieId(first + die))
    }
}
