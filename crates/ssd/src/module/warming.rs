//! Functional warming of a module: what requests do to the map, in no time.
//!
//! The translation layer takes the same calls as under a load in detail, with media that carry out
//! nothing: a request waits for room and is placed, pages are relocated in proportion, and as often
//! as was seen in detail a step of relocation is taken that a controller takes in idle time. So its
//! state is one that a load in detail could have brought about.

use ftl::NoMedia;

use super::{Extent, Module, covers, lpn, units};
use crate::spec::MappingUnit;

impl Module {
    /// Writes an extent to the map alone; `idle_pages` are relocated in idle time for each page
    /// that is written.
    #[inline]
    pub(crate) fn warm_write(&mut self, extent: Extent, idle_pages: f64) {
        while self.ftl.needs_room() {
            self.ftl.relocate_unit(&mut NoMedia);
        }
        let (first, last) = units(extent);
        if self.coarse.is_some() {
            self.warm_coarse(extent);
        } else {
            for unit in first..=last {
                let is_page = covers(extent, unit)
                    || self.mapping_unit == MappingUnit::Page
                    || self.fills_page(extent, unit);
                if is_page {
                    self.ftl.write_at_once(extent.handle, lpn(unit), &mut NoMedia);
                }
            }
        }
        if idle_pages > 0.0 {
            self.relocate_idly(idle_pages * (last - first + 1) as f64);
        }
    }

    /// Takes the steps of relocation in idle time that so many pages more are due for.
    fn relocate_idly(&mut self, pages: f64) {
        let step = f64::from(self.ftl.config().geometry.pages_per_unit()) * self.pages_counted();
        self.idle_due += pages;
        while self.idle_due >= step {
            self.idle_due -= step;
            if self.ftl.wants_room() {
                self.ftl.relocate_unit(&mut NoMedia);
            }
        }
    }

    /// Pages of 4 KiB that were relocated in idle time since the module was made.
    pub(crate) fn idle_pages(&self) -> f64 {
        let step = f64::from(self.ftl.config().geometry.pages_per_unit()) * self.pages_counted();
        self.idle_steps as f64 * step
    }

    /// Pages of 4 KiB that the write buffer holds.
    pub(crate) fn buffer_pages(&self) -> u64 {
        let unit = self.ftl.config().geometry.pages_per_unit();
        self.backend.buffer_pages(unit) << self.pages_shift
    }

    /// Pages of 4 KiB of a logical page.
    fn pages_counted(&self) -> f64 {
        f64::from(1_u32 << self.pages_shift)
    }

    /// Trims what an extent covers whole.
    pub(crate) fn warm_trim(&mut self, extent: Extent) {
        if self.coarse.is_some() {
            return self.trim_coarse(extent);
        }
        let (first, last) = units(extent);
        for unit in (first..=last).filter(|unit| covers(extent, *unit)) {
            self.ftl.trim(lpn(unit));
        }
    }
}
