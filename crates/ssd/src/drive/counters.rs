//! Counts of a drive, over all of its modules.

use blockio::{Bytes, Nanos};
use ftl::{Counters, HandleCounters, Occupancy};

use tier::Class;

use super::{Drive, PagesRead};
use crate::disk::Disk;
use crate::in_place::InPlace;
use crate::module::Module;

impl Drive {
    /// Share of its physical space that a drive has used that offers more than it holds, 0 to 1;
    /// absent for all others.
    pub fn space_used_share(&self) -> Option<f64> {
        let sum = |bytes: fn(Occupancy) -> Bytes| {
            self.modules.iter().map(|module| bytes(module.ftl.occupancy()).0 as f64).sum::<f64>()
        };
        self.can_run_out.then(|| sum(|it| it.stored) / sum(|it| it.stored_max))
    }

    /// Returns the counters of all modules since the drive was made.
    pub fn counters(&self) -> Counters {
        if let Some(classes) = &self.classes {
            return self.tier_counters(classes);
        }
        let nand = self.modules.iter().map(|module| module.ftl.counters());
        let in_place = self.in_place.iter().map(InPlace::counters);
        let disks = self.disks.iter().map(Disk::counters);
        nand.chain(in_place).chain(disks).fold(Counters::default(), |sum, counters| sum + counters)
    }

    /// Pages programmed for each reclaim unit handle in all modules since the drive was made; empty
    /// where there is one only.
    pub fn counters_by_handle(&self) -> Vec<HandleCounters> {
        let mut modules = self.modules.iter().map(|module| module.ftl.counters_by_handle());
        let first = modules.next().unwrap_or_default();
        modules.fold(first, |sum, module| {
            sum.iter().zip(module).map(|(sum, module)| *sum + module).collect()
        })
    }

    /// Pages that host reads asked for; absent where media is written in place, which has no map.
    pub fn pages_read(&self) -> Option<PagesRead> {
        if let Some(classes) = &self.classes {
            return Some(Self::tier_pages_read(classes));
        }
        let sum = |of: fn(&Module) -> u64| self.modules.iter().map(of).sum();
        (!self.modules.is_empty()).then(|| PagesRead {
            all: sum(|module| module.pages_read),
            unmapped: sum(|module| module.pages_read_unmapped),
        })
    }

    /// Processor time of the host that requests took since the drive was made: that of its driver,
    /// and that of flash management where it runs on the host.
    pub fn host_busy(&self) -> Nanos {
        if let Some(classes) = &self.classes {
            return self.host.busy() + classes.drives().iter().map(Self::host_busy).sum::<Nanos>();
        }
        if !self.is_host_managed {
            return self.host.busy();
        }
        let of_nand = self.modules.iter().map(|module| module.backend.controller_work());
        let in_place = self.in_place.iter().map(InPlace::controller_work);
        let disks = self.disks.iter().map(Disk::controller_work);
        self.host.busy() + of_nand.chain(in_place).chain(disks).sum::<Nanos>()
    }

    /// Memory of the host that the map takes at full scale, in all modules; absent where flash is
    /// not managed by the host.
    pub const fn host_map(&self) -> Option<Bytes> {
        self.host_map
    }

    /// Share of superblocks that are free, 0 to 1, of the slow class of a tier; none where media is
    /// written in place.
    pub fn superblocks_free_share(&self) -> Option<f64> {
        if let Some(classes) = &self.classes {
            return classes.drives()[Class::Slow as usize].superblocks_free_share();
        }
        let sum = |count: fn(&Module) -> u32| {
            self.modules.iter().map(|module| f64::from(count(module))).sum::<f64>()
        };
        let share = sum(|module| module.ftl.occupancy().superblocks_free)
            / sum(|module| module.ftl.config().geometry.superblocks());
        (!self.modules.is_empty()).then_some(share)
    }
}
