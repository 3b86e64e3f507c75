//! Reads: where is it, is it what it should be, and if not, what does its stripe say.
//!
//! The lock is held for the first question only. A row that is erased and written anew meanwhile
//! has another life, which checksums tell; then the question is asked again.

use ftl::Lpn;

use super::{Drive, Part, parts};
use crate::core::{Located, unreadable};
use crate::layout::{PAGE_BYTES, Place};
use crate::store::{Packed, RUN_PAGES, Stored};
use crate::unit::{Codec, Extent};
use crate::{DeviceError, compress};

type PageBytes = [u8; PAGE_BYTES];

impl Drive {
    pub(super) fn read_range(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let mut rest = buffer;
        let mut at = offset;
        while !rest.is_empty() {
            let Part { lpn, from, length } =
                parts(at, rest.len() as u64).next().expect("something is left");
            let whole = if length == PAGE_BYTES { rest.len() / PAGE_BYTES } else { 0 };
            let taken = if whole == 0 { length } else { whole.min(RUN_PAGES) * PAGE_BYTES };
            let (here, after) = rest.split_at_mut(taken);
            if whole == 0 {
                let mut page = [0; PAGE_BYTES];
                self.read_pages(lpn, &mut page)?;
                here.copy_from_slice(&page[from..from + length]);
            } else {
                self.read_pages(lpn, here)?;
            }
            rest = after;
            at += taken as u64;
        }
        Ok(())
    }

    /// Reads whole pages, at most [`RUN_PAGES`].
    fn read_pages(&self, first: Lpn, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let pages = buffer.as_chunks_mut::<PAGE_BYTES>().0;
        let mut located = [Located::Nowhere; RUN_PAGES];
        {
            let core = self.core()?;
            for ((lpn, page), located) in
                (first.0..).map(Lpn).zip(pages.iter_mut()).zip(&mut located)
            {
                *located = core.locate(&self.store.layout, lpn);
                match *located {
                    Located::Nowhere => page.fill(0),
                    Located::Open(ppn) => {
                        let (extent, payload) = core.open_extent(&self.store.layout, ppn);
                        open_page(lpn, extent, payload, page)?;
                    }
                    Located::Stored(_) => {}
                }
            }
        }
        let mut at = 0;
        while at < pages.len() {
            let Located::Stored(stored) = located[at] else {
                at += 1;
                continue;
            };
            let length = self.run_length(stored, &located[at..pages.len()]);
            let lpn = Lpn(first.0 + u32::try_from(at).expect("at most a run"));
            self.read_run(lpn, stored, &mut pages[at..at + length])?;
            at += length;
        }
        Ok(())
    }

    /// How many pages lie one after the other in one unit.
    fn run_length(&self, first: Stored, located: &[Located]) -> usize {
        let layout = &self.store.layout;
        let place = layout.place(first.ppn);
        let follows = |(slot, located): (u32, &Located)| {
            let ppn = layout.ppn(Place { slot, ..place });
            *located == Located::Stored(Stored { ppn, ..first })
        };
        let slots = place.slot..layout.unit_slots;
        slots.zip(located).take_while(|it| follows(*it)).count()
    }

    fn read_run(
        &self,
        first: Lpn,
        stored: Stored,
        pages: &mut [PageBytes],
    ) -> Result<(), DeviceError> {
        let place = self.store.layout.place(stored.ppn);
        if self.store.layout.extent_from(place.slot).is_none() {
            return self.read_packed(first, stored, pages);
        }
        let (_, extents) = self.store.read_run(stored, pages.as_flattened_mut());
        for ((lpn, page), extent) in (first.0..).map(Lpn).zip(pages).zip(extents) {
            let is_right = |extent: Extent| extent.lpn == lpn && extent.codec == Codec::Raw;
            if !extent.is_some_and(is_right) {
                self.read_again(lpn, page)?;
            }
        }
        Ok(())
    }

    fn read_packed(
        &self,
        first: Lpn,
        stored: Stored,
        pages: &mut [PageBytes],
    ) -> Result<(), DeviceError> {
        let count = u32::try_from(pages.len()).expect("at most a run");
        let packed = self.store.read_extents(stored, count, None);
        let mut found = packed.iter().flat_map(Packed::iter);
        for (lpn, page) in (first.0..).map(Lpn).zip(pages) {
            let extent = found.next().flatten().filter(|(extent, _)| extent.lpn == lpn);
            match extent {
                Some((extent, payload)) => open_page(lpn, extent, payload, page)?,
                None => self.read_again(lpn, page)?,
            }
        }
        Ok(())
    }

    /// Reads one page by itself, from its stripe if its place does not give it back.
    fn read_again(&self, lpn: Lpn, page: &mut PageBytes) -> Result<(), DeviceError> {
        let mut failed = None;
        loop {
            let located = {
                let core = self.core()?;
                let located = core.locate(&self.store.layout, lpn);
                if let Located::Open(ppn) = located {
                    let (extent, payload) = core.open_extent(&self.store.layout, ppn);
                    return open_page(lpn, extent, payload, page);
                }
                located
            };
            let Located::Stored(stored) = located else {
                page.fill(0);
                return Ok(());
            };
            if failed == Some(stored) {
                return Err(unreadable(lpn));
            }
            let store = &self.store;
            let is_it = |(extent, _): &(Extent, Vec<u8>)| extent.lpn == lpn;
            let found = store.read_extent(stored).filter(is_it);
            let found = found.or_else(|| store.reconstruct_extent(stored).filter(is_it));
            if let Some((extent, payload)) = found {
                return open_page(lpn, extent, &payload, page);
            }
            failed = Some(stored);
        }
    }
}

fn open_page(
    lpn: Lpn,
    extent: Extent,
    payload: &[u8],
    page: &mut PageBytes,
) -> Result<(), DeviceError> {
    compress::expand(extent.codec, payload, page).ok_or_else(|| unreadable(lpn))
}
