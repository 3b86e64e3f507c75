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
use crate::module::Extent;

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

    /// Pages of 4 KiB that were relocated in idle time since the drive was made.
    pub fn idle_pages(&self) -> f64 {
        self.modules.iter().map(|module| module.idle_pages()).sum()
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
