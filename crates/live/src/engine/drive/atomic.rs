//! Writes of several ranges that a crash leaves all or not at all.
//!
//! They are placed while full units wait in memory, and one batch of the journal takes all of them:
//! it is whole or it is none. Units are programmed once it is durable.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use device::{Device as _, DeviceError};
use ftl::Lpn;

use super::commit::BATCHES_RESERVED;
use super::{Drive, parts};
use crate::engine::core::Core;
use crate::engine::log::journal::Scope;
use crate::format::compress::Scratch;
use crate::format::die_set::DieSet;
use crate::format::layout::PAGE_BYTES;
use crate::format::row::StoredPlace;
use crate::format::unit::Page;

/// Room that the journal must have for an atomic write, as a multiple of its bytes.
const JOURNAL_SHARE: u64 = 8;
/// Checkpoints that an atomic write takes at most to make room in the journal.
const SHORTENINGS_MAX: u32 = 4;

/// Pages as they will be, by number.
type Pages = BTreeMap<u32, Box<[u8; PAGE_BYTES]>>;
/// A page that was read, and where it was found.
type FoundPage = (Lpn, Option<StoredPlace>);

impl Drive {
    /// Most bytes of one atomic write, whole pages being counted; less where rows leave out dies
    /// that have failed, and where units that were chosen large leave the journal little room: then
    /// the error of a larger one says how much fits.
    pub fn atomic_bytes_max(&self) -> u64 {
        // After a panic nothing can be written anyway.
        let out = self.core.read().unwrap_or_else(PoisonError::into_inner).out;
        self.atomic_bytes_leaving_out(out)
    }

    /// Returns the largest atomic write in bytes if rows leave out these dies: the data of a
    /// superblock, but at most 1/16 of the journal.
    fn atomic_bytes_leaving_out(&self, out: DieSet) -> u64 {
        let layout = &self.store.layout;
        let units = layout.shape.rows * layout.data_units(out);
        let superblock = u64::from(units * layout.shape.unit_pages) * PAGE_BYTES as u64;
        superblock.min(layout.shape.journal_bytes / 16)
    }

    /// Writes several ranges, in order where they overlap: all of them, durably, or none.
    ///
    /// # Errors
    /// As [`device::Device::write`], and [`DeviceError::Unreadable`] where part of a page is
    /// replaced that cannot be read. Ranges beyond [`Drive::atomic_bytes_max`] are out of range.
    pub fn atomic_write(&self, ranges: &[(u64, &[u8])]) -> Result<(), DeviceError> {
        let mut total = 0;
        for (offset, bytes) in ranges {
            self.check_range(*offset, bytes.len() as u64)?;
            total += (parts(*offset, bytes.len() as u64).count() * PAGE_BYTES) as u64;
        }
        self.headroom.take(&self.store, total)?;
        let mut shortenings = 0;
        loop {
            self.check_sound()?;
            let (pages, read) = self.merged(ranges)?;
            let mut journal = self.journal()?;
            // No other thread places anything from here on: what there is room for now fits.
            let mut core = self.still()?;
            let size = self.atomic_bytes_leaving_out(core.out);
            if total > size {
                let offset = ranges.first().map_or(0, |(offset, _)| *offset);
                return Err(DeviceError::OutOfRange { offset, length: total, size });
            }
            if core.ftl.needs_room() {
                drop(core);
                drop(journal);
                self.relocate()?;
                continue;
            }
            // Pages that relocation saves meanwhile come on top of these.
            let reserve = BATCHES_RESERVED * self.bytes_at_most(&core);
            if journal.used() + reserve + JOURNAL_SHARE * total > journal.size {
                if shortenings == SHORTENINGS_MAX {
                    let offset = ranges.first().map_or(0, |(offset, _)| *offset);
                    let size = journal.size.saturating_sub(reserve) / JOURNAL_SHARE;
                    return Err(DeviceError::OutOfRange { offset, length: total, size });
                }
                shortenings += 1;
                drop(core);
                drop(journal);
                self.checkpoint()?;
                continue;
            }
            // Another client may have written a page meanwhile of which a part is kept.
            if read.iter().any(|(lpn, found)| core.locate(*lpn).stored() != *found) {
                continue;
            }
            if let Err(lpn) = self.place_held(&mut core, &pages, &read) {
                drop(core);
                drop(journal);
                self.give_space(lpn)?;
                continue;
            }
            let collected = self.collect(&mut journal, core, Scope::Together, |_| ())?;
            let collected = collected.expect("there was room for more than this");
            self.write_collected(&mut journal, Scope::Together, &collected)?;
            let sent: u64 = ranges.iter().map(|(_, bytes)| bytes.len() as u64).sum();
            self.sent_bytes.fetch_add(sent, Ordering::Relaxed);
            return self.act(Core::release_programs);
        }
    }

    /// Places all pages, of which those in `merged` keep a part, or none where there is no space
    /// for them; then says which is the first.
    fn place_held(&self, core: &mut Core, pages: &Pages, merged: &[FoundPage]) -> Result<(), Lpn> {
        // The keys do not change while the core is held.
        let packing = self.store.packing();
        let mut scratch = packing.scratch(pages.len());
        let mut scratch = Scratch(&mut scratch);
        let pages = pages.iter();
        let packed = pages.map(|(lpn, page)| packing.pack(Lpn(*lpn), &page[..], &mut scratch));
        let packed: Vec<Page<'_>> = packed.collect();
        if let (Some(_), Some(page)) = (core.wait(&packed), packed.first()) {
            return Err(page.lpn);
        }
        core.holds_programs = true;
        core.pause_buffer(true);
        for page in &packed {
            core.place(page);
            if merged.iter().all(|(lpn, _)| *lpn != page.lpn) {
                core.renew(page.lpn, 1);
            }
        }
        core.pause_buffer(false);
        Ok(())
    }

    /// Returns the pages as they will be, and where those were found of which a part is kept.
    fn merged(&self, ranges: &[(u64, &[u8])]) -> Result<(Pages, Vec<FoundPage>), DeviceError> {
        let (mut pages, mut read) = (Pages::new(), Vec::new());
        for (offset, bytes) in ranges {
            let mut rest = *bytes;
            for part in parts(*offset, bytes.len() as u64) {
                let (here, after) = rest.split_at(part.length);
                rest = after;
                let page = match pages.entry(part.lpn.0) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(free) => {
                        let mut page = Box::new([0; PAGE_BYTES]);
                        if part.length < PAGE_BYTES {
                            read.push((part.lpn, self.read_page(part.lpn, &mut page)?));
                        }
                        free.insert(page)
                    }
                };
                page[part.from..part.from + part.length].copy_from_slice(here);
            }
        }
        Ok((pages, read))
    }
}
