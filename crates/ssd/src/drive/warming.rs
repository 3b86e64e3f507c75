//! Functional warming: the state of a drive advanced by requests alone, without their timing.
//!
//! Between windows that are simulated in detail, requests change what is mapped where, wear and
//! what relocation has left, which takes no event. Queues, buffers and dies keep the state that the
//! last window left, and the drive's clock stands still: requests that are outstanding stay so.
//!
//! ```text
//!  detail ──► pause ──► warm, warm, … ──► pass ──► detail
//!             events stay   map, wear     heat, stalls
//! ```
//!
//! Source: SMARTS [wunderlich-2003].

use blockio::{Bytes, Nanos, Op, Request};

use super::Drive;
use crate::module::{Extent, Module};

/// Longest time between two stalls of a thread that windows can be expected to meet often.
const THREAD_STALL_EVERY_MAX: Nanos = Nanos::from_millis(10_000);
/// Warming below the limit of its temperature from which a drive is simulated in detail, in kelvin.
const MARGIN_K: f64 = 5.0;

/// Work of requests that only warmed a drive.
#[derive(Clone, Copy, Debug, Default)]
pub struct WarmedRequests {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Sectors that were read.
    pub sectors_read: u64,
    /// Sectors that were written.
    pub sectors_written: u64,
}

impl Drive {
    /// Reason for which addresses alone do not bring the drive into the state that a load would;
    /// absent where they do.
    pub fn unwarmable(&self) -> Option<&'static str> {
        let modules = || self.modules.iter();
        let stalls_rarely =
            self.host.thread_stall_every_max().is_some_and(|every| every > THREAD_STALL_EVERY_MAX);
        if self.classes.is_some() {
            Some("it is made of two drives, and what one holds of the other follows from time")
        } else if !self.disks.is_empty() {
            Some("it is a hard disk, whose arm and cache follow from time")
        } else if self.die_failures.is_any_known() {
            Some("a die fails, and rebuilding follows from time")
        } else if modules().any(|module| module.backend.retry.is_some()) {
            Some("its reads are repeated by the age of the data")
        } else if modules().any(|module| module.ftl.config().slc_cache.is_some()) {
            Some("its SLC cache is folded in idle time")
        } else if self.climate.as_ref().is_some_and(|it| it.is_near_limits(MARGIN_K)) {
            Some("it throttles, or is about to, which follows from heat or power over time")
        } else if !self.in_place.is_empty() && self.climate.is_some() {
            Some("the heat of media that are written in place follows from each request")
        } else if stalls_rarely {
            Some("its host stalls a thread more seldom than windows would meet")
        } else {
            None
        }
    }

    /// Does in no time what `request` does to the state of the drive, with `idle_pages` of
    /// relocation in idle time for each page of 4 KiB that is written. Requests may be outstanding.
    ///
    /// Returns false, and does nothing, where there is no flash for a write, or the request is out
    /// of range.
    #[inline]
    pub fn warm(
        &mut self,
        request: &Request,
        idle_pages: f64,
        warmed: &mut WarmedRequests,
    ) -> bool {
        let sectors = u64::from(request.sectors);
        match request.op {
            Op::Read => {
                warmed.reads += 1;
                warmed.sectors_read += sectors;
                return true;
            }
            Op::Flush => return true,
            Op::Write | Op::Trim => {}
        }
        let extent =
            Extent { first: request.lba.0, sectors: request.sectors, handle: request.handle };
        let end = request.lba.0.checked_add(sectors);
        if self.is_read_only || end.is_none_or(|end| end > self.sectors_served) {
            return false;
        }
        let modules = &mut self.modules;
        if request.op == Op::Trim {
            if !modules.is_empty() {
                self.stripe.split(extent, |module, extent| modules[module].warm_trim(extent));
            }
            return true;
        }
        warmed.writes += 1;
        warmed.sectors_written += sectors;
        if modules.is_empty() {
            return true;
        }
        if self.can_run_out && !self.has_space_for(extent) {
            return false;
        }
        let modules = &mut self.modules;
        self.stripe.split(extent, |module, extent| {
            modules[module].warm_write(extent, idle_pages);
        });
        true
    }

    /// Pages of 4 KiB of a superblock of each module; 0 where media are written in place.
    pub fn superblock_pages(&self) -> u64 {
        let pages = |geometry: &ftl::Geometry| {
            u64::from(geometry.pages_per_superblock()) * geometry.counted_per_page()
        };
        self.modules.iter().map(|module| pages(&module.ftl.config().geometry)).sum()
    }

    /// Longest time between two stalls that hold a thread; absent where none does.
    pub fn thread_stall_every_max(&self) -> Option<Nanos> {
        self.host.thread_stall_every_max()
    }

    /// Pages of 4 KiB that write buffers hold: what is written after as many as that meets none of
    /// the dies in the order of what was written before.
    pub fn buffer_pages(&self) -> u64 {
        self.modules.iter().map(Module::buffer_pages).sum()
    }

    /// Pages of 4 KiB that were relocated in idle time since the drive was made.
    pub fn idle_pages(&self) -> f64 {
        self.modules.iter().map(Module::idle_pages).sum()
    }

    /// Lets `span` pass beside the drive's own clock, in which `warmed` was done: the drive warms
    /// or cools, and stalls that hold one request come as often as they would have, each for
    /// `share` of its length, the share of time that is simulated.
    pub fn pass(&mut self, span: Nanos, share: f64, warmed: &WarmedRequests) {
        let [sent, read] = [warmed.sectors_written, warmed.sectors_read]
            .map(|sectors| Bytes(sectors * blockio::SECTOR_BYTES));
        if let Some(module) = self.modules.first_mut() {
            module.ftl.count_host_bytes(sent, read);
        }
        self.host.pass(span, share);
        let counters = self.counters();
        let Some(climate) = &mut self.climate else { return };
        let before = climate.throttle();
        climate.pass_over(span, &counters);
        let throttle = climate.throttle();
        if climate.is_off() {
            self.sectors_served = 0;
        }
        if throttle != before {
            self.modules.iter_mut().for_each(|module| module.backend.throttle(throttle));
        }
    }
}

#[cfg(test)]
mod tests {
    use blockio::{Lba, Rng};
    use ftl::{Lpn, NoMedia};
    use proptest::prelude::*;

    use super::*;
    use crate::spec::{DriveSpec, VictimSpec};
    use crate::{Setup, catalogue};

    /// A small drive of two modules, or with indirection units of 16 KiB.
    fn small(banks: u32, dear: bool, victim: usize) -> Drive {
        let mut spec: DriveSpec = catalogue::find("iodrive-duo").expect("in the catalogue");
        spec.formats[0].user_gb = 0.03 * f64::from(banks);
        spec.geometry.banks = banks;
        (spec.geometry.dies_per_bank, spec.geometry.stripe_dies) = (5, 5);
        spec.geometry.erase_blocks_per_plane = 80;
        spec.geometry.spare_erase_blocks_per_plane = 4;
        spec.geometry.pages_per_erase_block = 16;
        (spec.relocation.watermark_low, spec.relocation.watermark_high) = (6, 8);
        spec.relocation.price_max = if dear { 0.1 } else { 1000.0 };
        let victims = [VictimSpec::Greedy, VictimSpec::DChoices, VictimSpec::Fifo];
        spec.relocation.victim = victims[victim];
        let (format, host) = (spec.formats().remove(0), spec.hosts().remove(0));
        let setup = Setup { format, host, time_lapse: 1, seed: 1 };
        Drive::new(&spec, &setup).expect("feasible")
    }

    fn requests(drive: &Drive, seed: u64, count: u32) -> Vec<Request> {
        let (pages, mut rng) = (drive.user_sectors() / 8, Rng::new(seed));
        let mut request = |tag| {
            let lba = Lba(rng.below(pages - 4) * 8 + rng.below(2) * 4);
            let sectors = [4, 8, 8, 8, 32][usize::try_from(rng.below(5)).expect("below five")];
            Request { tag, thread: 0, op: Op::Write, handle: 0, lba, sectors }
        };
        (0..count).map(&mut request).collect()
    }

    /// Everything about where pages lie, and what was done to put them there.
    fn state(drive: &Drive) -> Vec<(String, Vec<Option<ftl::Ppn>>)> {
        let of = |module: &Module| {
            let pages = module.ftl.config().pages_logical;
            let places = (0..pages).map(|lpn| module.ftl.lookup(Lpn(lpn))).collect();
            let counters =
                ftl::Counters { host_sent_bytes: 0, host_read_bytes: 0, ..module.ftl.counters() };
            (format!("{counters:?} {:?}", module.ftl.occupancy()), places)
        };
        drive.modules.iter().map(of).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Requests that all come at once are carried out in order, with nothing between them: then
        /// a load in detail and functional warming put every page in the same place, but for the
        /// steps that an idle controller takes once all is written.
        #[test]
        fn warming_puts_every_page_where_a_load_in_detail_puts_it(
            (banks, dear, victim) in (1_u32..3, any::<bool>(), 0_usize..3),
            (seed, count) in (any::<u64>(), 1_000_u32..40_000),
        ) {
            let mut detailed = small(banks, dear, victim);
            let mut warmed = detailed.clone();
            let asked = requests(&detailed, seed, count);
            for request in &asked {
                detailed.submit(Nanos::ZERO, *request);
            }
            while detailed.next_completion(Nanos::MAX).is_some() {}
            let mut counted = WarmedRequests::default();
            for request in &asked {
                prop_assert!(warmed.warm(request, 0.0, &mut counted));
            }
            for (module, detailed) in warmed.modules.iter_mut().zip(&detailed.modules) {
                let relocated = |ftl: &ftl::Ftl| {
                    let counters = ftl.counters();
                    (counters.pages_relocation, counters.superblocks_erased)
                };
                while relocated(&module.ftl) < relocated(&detailed.ftl) {
                    module.ftl.relocate_unit(&mut NoMedia);
                }
            }
            prop_assert_eq!(counted.writes, u64::from(count));
            let (found, expected) = (state(&warmed), state(&detailed));
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert_eq!(&found.0, &expected.0);
            }
            prop_assert!(found == expected, "a page lies elsewhere");
            warmed.check_invariants();
        }

        /// A drive goes on consistently after a stretch of warming, with any number of requests
        /// outstanding.
        #[test]
        fn a_load_goes_on_after_warming_between_its_requests(
            (banks, dear, victim) in (1_u32..3, any::<bool>(), 0_usize..3),
            (seed, stretch, idle) in (any::<u64>(), 1_usize..3_000, 0.0_f64..4.0),
        ) {
            let mut drive = small(banks, dear, victim);
            let asked = requests(&drive, seed, 30_000);
            let (mut at, mut completed, mut submitted) = (Nanos::ZERO, 0, 0);
            let mut counted = WarmedRequests::default();
            for part in asked.chunks(stretch) {
                let detail = &part[..part.len().min(200)];
                for request in detail {
                    drive.submit(at, *request);
                    submitted += 1;
                    while submitted - completed > 32 {
                        let done = drive.next_completion(Nanos::MAX).expect("one is outstanding");
                        at = at.max(done.completed_at);
                        completed += 1;
                    }
                }
                for request in &part[detail.len()..] {
                    prop_assert!(drive.warm(request, idle, &mut counted));
                }
                drive.pass(Nanos::from_millis(500), 0.1, &counted);
                counted = WarmedRequests::default();
                drive.check_invariants();
            }
            while drive.next_completion(Nanos::MAX).is_some() {
                completed += 1;
            }
            prop_assert_eq!(completed, submitted);
            drive.check_invariants();
            let written: std::collections::BTreeSet<u64> = asked
                .iter()
                .filter(|it| it.sectors == 8 && it.lba.0 % 8 == 0)
                .map(|it| it.lba.0)
                .collect();
            for lba in written {
                let (module, lpn) = drive.place(lba).expect("it is NAND");
                prop_assert!(module.ftl.lookup(lpn).is_some(), "what was written is mapped");
            }
        }
    }
}
