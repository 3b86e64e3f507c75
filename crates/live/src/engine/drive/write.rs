//! Writes and trims.

use device::{DeviceError, Durability};
use ftl::Lpn;

use super::{Drive, Part, parts};
use crate::engine::core::{TRIMS_MAX, Wait};
use crate::engine::log::journal::Scope;
use crate::format::compress::Scratch;
use crate::format::journal::Trim;
use crate::format::layout::PAGE_BYTES;
use crate::format::unit::Page;

/// Most pages that are written or trimmed before others get their turn.
const PAGES_AT_ONCE: usize = 64;
const TRIMMED_AT_ONCE: u32 = 1 << 16;

impl Drive {
    /// Sees to what a command asked for besides its effect.
    pub(super) fn settle(&self, durability: Durability) -> Result<(), DeviceError> {
        match durability {
            // What found no room in the write buffer must be in the journal instead.
            Durability::Volatile if self.store.buffer().is_some_and(|it| it.lacks()) => {
                self.commit(Scope::Host)
            }
            Durability::Volatile => Ok(()),
            Durability::Durable => self.commit(Scope::Host),
        }
    }

    pub(super) fn write_range(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let mut rest = bytes;
        let mut at = offset;
        while let Some(part) = parts(at, rest.len() as u64).next() {
            let whole = if part.length == PAGE_BYTES { rest.len() / PAGE_BYTES } else { 0 };
            let taken =
                if whole == 0 { part.length } else { whole.min(PAGES_AT_ONCE) * PAGE_BYTES };
            let (here, after) = rest.split_at(taken);
            if whole == 0 {
                self.change(part, |page| page.copy_from_slice(here))?;
            } else {
                self.write_pages(part.lpn, here)?;
            }
            rest = after;
            at += taken as u64;
        }
        Ok(())
    }

    /// Writes whole pages, at most [`PAGES_AT_ONCE`], from `first` on.
    fn write_pages(&self, first: Lpn, bytes: &[u8]) -> Result<(), DeviceError> {
        let mut rest = bytes.as_chunks::<PAGE_BYTES>().0;
        let mut first = first;
        while !rest.is_empty() {
            let packing = self.store.packing();
            let mut scratch = packing.scratch(rest.len());
            let mut scratch = Scratch(&mut scratch);
            let pages = (first.0..).map(Lpn).zip(rest);
            let packed = pages.map(|(lpn, page)| packing.pack(lpn, page, &mut scratch));
            let placed = self.place_all(&packed.collect::<Vec<Page<'_>>>())?;
            // A purge may have changed the key meanwhile.
            rest = &rest[placed..];
            first.0 += u32::try_from(placed).expect("pages of a drive");
        }
        Ok(())
    }

    /// Gives pages their places, and relocation its turn whenever it has to come first. Returns how
    /// many of them have one: not all where they are encrypted with a key that is none any more.
    fn place_all(&self, pages: &[Page<'_>]) -> Result<usize, DeviceError> {
        let mut rest = pages;
        let (mut is_due, mut is_listing_due, mut is_late) = (false, false, false);
        while let Some(first) = rest.first() {
            let (placed, wait, is_relocation_due) = self.act(|core| {
                if first.key != core.key {
                    is_late = true;
                    return (0, None, false);
                }
                let (placed, wait) = core.place_pages(rest);
                is_due = self.is_checkpoint_due(core.seq);
                is_listing_due = self.is_listing_due(core);
                (placed, wait, core.is_relocation_due())
            })?;
            if wait == Some(Wait::NoCapacity) {
                self.give_space(rest.get(placed).unwrap_or(first).lpn)?;
            } else if is_relocation_due {
                self.relocate()?;
            }
            rest = &rest[placed..];
            if is_late {
                break;
            }
        }
        if is_listing_due {
            self.list_rows_if_due()?;
        }
        if is_due {
            self.keep_checkpoints()?;
        }
        Ok(pages.len() - rest.len())
    }

    /// Changes part of a page.
    fn change(&self, part: Part, change: impl Fn(&mut [u8])) -> Result<(), DeviceError> {
        loop {
            let packing = self.store.packing();
            let mut scratch = packing.scratch(1);
            let mut page = [0; PAGE_BYTES];
            let located = self.read_page(part.lpn, &mut page)?;
            change(&mut page[part.from..part.from + part.length]);
            let packed = packing.pack(part.lpn, &page, &mut Scratch(&mut scratch));
            let (is_placed, wait, is_relocation_due) = self.act(|core| {
                // Another client may have written it meanwhile.
                let is_current =
                    core.locate(part.lpn).stored() == located && packed.key == core.key;
                let wait = core.wait(&[packed]);
                let is_placed = is_current && wait.is_none();
                if is_placed {
                    core.place(&packed);
                }
                (is_placed, wait, core.is_relocation_due())
            })?;
            if wait == Some(Wait::NoCapacity) {
                self.give_space(part.lpn)?;
            } else if is_relocation_due {
                self.relocate()?;
            }
            if is_placed {
                return Ok(());
            }
        }
    }

    /// Makes durable that space was given up, so that it may be used, or else gives up redundancy
    /// that takes space.
    ///
    /// # Errors
    /// [`DeviceError::NoSpace`] where there is neither.
    pub(super) fn give_space(&self, lpn: Lpn) -> Result<(), DeviceError> {
        if self.core()?.freed > 0 {
            return self.commit(Scope::Host);
        }
        if self.spend_redundancy()? {
            return Ok(());
        }
        let length = PAGE_BYTES as u64;
        Err(DeviceError::NoSpace { offset: u64::from(lpn.0) * length, length })
    }

    pub(super) fn trim_range(&self, offset: u64, length: u64) -> Result<(), DeviceError> {
        if length == 0 {
            return Ok(());
        }
        let page_bytes = PAGE_BYTES as u64;
        let (first, end) = (offset.div_ceil(page_bytes), (offset + length) / page_bytes);
        let pages = u64::from(self.pages());
        if (first, end) == (0, pages) && self.trim_all(pages)? {
            return Ok(());
        }
        let ends = parts(offset, length.min(page_bytes)).take(1);
        let last = parts(offset + length - 1, 1);
        let mut zeroed: Option<Lpn> = None;
        for Part { lpn, .. } in ends.chain(last) {
            let Some(part) = parts_of(offset, length, lpn) else { continue };
            if part.length < PAGE_BYTES && zeroed.replace(lpn) != Some(lpn) {
                self.zero(part)?;
            }
        }
        let number = |page: u64| u32::try_from(page).expect("within the device");
        let mut at = number(first);
        while u64::from(at) < end {
            let pages = TRIMMED_AT_ONCE.min(number(end) - at);
            self.trim_pages(Lpn(at), pages)?;
            at += pages;
        }
        Ok(())
    }

    /// Makes part of a page zero, if anything is stored there.
    fn zero(&self, part: Part) -> Result<(), DeviceError> {
        if self.core()?.place_of(part.lpn).is_none() {
            return Ok(());
        }
        self.headroom.take(&self.store, PAGE_BYTES as u64)?;
        self.change(part, |page| page.fill(0))
    }

    fn trim_pages(&self, first: Lpn, pages: u32) -> Result<(), DeviceError> {
        let mut core = self.core_mut()?;
        let seq = core.next_seq();
        // The drive may have become smaller meanwhile.
        let end = core.ftl.config().pages_logical.min(first.0 + pages);
        core.giving_up(|core| (first.0..end).for_each(|lpn| core.ftl.trim(Lpn(lpn))));
        core.supersede(first, pages);
        core.add_trim(Trim { first, pages, seq });
        let is_much = core.trims.len() >= TRIMS_MAX;
        drop(core);
        if is_much { self.commit(Scope::Host) } else { Ok(()) }
    }

    /// Trims the whole drive, if it still has so many pages; says whether it has.
    pub(super) fn trim_all(&self, asked: u64) -> Result<bool, DeviceError> {
        let mut core = self.core_mut()?;
        let pages = core.ftl.config().pages_logical;
        if u64::from(pages) != asked {
            return Ok(false);
        }
        let seq = core.next_seq();
        core.giving_up(|core| core.ftl.trim_all());
        core.supersede(Lpn(0), pages);
        let all = Trim { first: Lpn(0), pages, seq };
        core.give_up_all(all);
        if let Some(buffer) = &mut core.buffer {
            buffer.add_trim(all);
        }
        Ok(true)
    }
}

/// The part of a page that a range covers, if it does.
fn parts_of(offset: u64, length: u64, lpn: Lpn) -> Option<Part> {
    let page_bytes = PAGE_BYTES as u64;
    let (from, until) = (u64::from(lpn.0) * page_bytes, (u64::from(lpn.0) + 1) * page_bytes);
    let (first, end) = (offset.max(from), (offset + length).min(until));
    (first < end).then(|| parts(first, end - first).next())?
}
