//! Reads: where is it, is it what it should be, and if not, what does its stripe say.
//!
//! The lock is held for the first question only. A row that is erased and written anew meanwhile
//! has another life, which checksums tell; then the question is asked again.
//!
//! What came in together is looked for together, and asked of the dies at once.

use device::{Device as _, DeviceError, ReadPart};
use ftl::Lpn;
use status::{Damage, DamageOutcome, FoundBy};

use super::{Drive, Part, parts};
use crate::engine::core::{PageLocation, unreadable};
use crate::engine::dies::now_unix_s;
use crate::engine::store::{PackedExtents, PlaceRun};
use crate::format::compress;
use crate::format::layout::{PAGE_BYTES, Place, lba};
use crate::format::row::StoredPlace;
use crate::format::unit::{Codec, Extent};

/// Most pages that are looked for while others wait, and asked for at once.
const LOT_PAGES: usize = 64;

type PageBytes = [u8; PAGE_BYTES];

/// A page, and which of several reads it is for.
struct PageRead<'a> {
    lpn: Lpn,
    page: &'a mut PageBytes,
    read: usize,
}

/// A page of which a read wants only a part.
struct Partial<'a> {
    part: Part,
    page: PageBytes,
    wanted: &'a mut [u8],
    read: usize,
}

/// Results of several reads, in their order.
type Answers = Vec<Result<(), DeviceError>>;

impl Drive {
    pub(super) fn read_ranges(&self, reads: &mut [ReadPart<'_>]) -> Answers {
        let check = |read: &ReadPart<'_>| self.check_range(read.offset, read.buffer.len() as u64);
        let mut answers: Answers = reads.iter().map(check).collect();
        let (mut pages, mut partials) = (Vec::new(), Vec::new());
        let valid = (0..).zip(reads).zip(&answers).filter(|(_, answer)| answer.is_ok());
        for ((read, ReadPart { offset, buffer }), _) in valid {
            let mut rest = &mut **buffer;
            for part in parts(*offset, rest.len() as u64) {
                let (wanted, after) = rest.split_at_mut(part.length);
                rest = after;
                if part.length < PAGE_BYTES {
                    partials.push(Partial { part, page: [0; PAGE_BYTES], wanted, read });
                } else {
                    let page = wanted.as_mut_array().expect("all of a page");
                    pages.push(PageRead { lpn: part.lpn, page, read });
                }
            }
        }
        for Partial { part, page, read, .. } in &mut partials {
            pages.push(PageRead { lpn: part.lpn, page, read: *read });
        }
        for lot in pages.chunks_mut(LOT_PAGES) {
            self.read_lot(lot, &mut answers);
        }
        for Partial { part, page, wanted, .. } in &mut partials {
            wanted.copy_from_slice(&page[part.from..part.from + part.length]);
        }
        answers
    }

    fn read_lot(&self, lot: &mut [PageRead<'_>], answers: &mut Answers) {
        let located = self.locate_lot(lot, answers);
        let mut runs: Vec<PlaceRun> = Vec::new();
        let mut stored = Vec::with_capacity(lot.len());
        for (wanted, located) in lot.iter_mut().zip(located) {
            let PageLocation::Stored(at) = located else { continue };
            stored.push(wanted);
            match runs.last_mut().filter(|run| self.goes_on(run, at)) {
                Some(run) => run.count += 1,
                None => runs.push(PlaceRun { first: at, count: 1 }),
            }
        }
        if runs.is_empty() {
            return;
        }
        if self.store.layout.shape.extents_per_page == 1 {
            self.read_whole(&runs, &mut stored, answers);
        } else {
            self.read_packed(&runs, &mut stored, answers);
        }
    }

    /// Finds pages, and gives what is in memory at once.
    fn locate_lot(&self, lot: &mut [PageRead<'_>], answers: &mut Answers) -> Vec<PageLocation> {
        let core = self.core();
        let locate = |wanted: &mut PageRead<'_>| {
            let PageRead { lpn, page, read } = wanted;
            let Ok(core) = &core else {
                answers[*read] = Err(self.panicked());
                return PageLocation::Nowhere;
            };
            let located = core.locate(*lpn);
            match located {
                PageLocation::Nowhere => page.fill(0),
                PageLocation::Open(StoredPlace { ppn, .. }) => {
                    let (extent, payload) = core.open_extent(ppn);
                    note(&mut answers[*read], self.open_page(*lpn, extent, payload, page));
                }
                PageLocation::Stored(_) => {}
            }
            located
        };
        lot.iter_mut().map(locate).collect()
    }

    /// True if a place continues a run: the next slot of the same unit, in the same life of its
    /// row.
    fn goes_on(&self, run: &PlaceRun, at: StoredPlace) -> bool {
        let place = self.store.layout.place(run.first.ppn);
        let slot = place.slot + u32::try_from(run.count).expect("at most a lot");
        let is_in_unit = slot < self.store.layout.unit_slots;
        is_in_unit
            && self.store.layout.place(at.ppn) == Place { slot, ..place }
            && at.life == run.first.life
    }

    fn read_whole(
        &self,
        runs: &[PlaceRun],
        stored: &mut [&mut PageRead<'_>],
        answers: &mut Answers,
    ) {
        let mut pages: Vec<_> = stored.iter_mut().map(|wanted| &mut *wanted.page).collect();
        let extents = self.store.read_runs(runs, &mut pages);
        let keys = self.store.keys();
        for (PageRead { lpn, page, read }, extent) in stored.iter_mut().zip(extents) {
            let extent = extent.filter(|extent| extent.lpn == *lpn);
            let unpacked =
                extent.and_then(|extent| compress::unpack_in_place(keys.as_deref(), &extent, page));
            if unpacked.is_none() {
                note(&mut answers[*read], self.read_again(*lpn, page));
            }
        }
    }

    fn read_packed(
        &self,
        runs: &[PlaceRun],
        stored: &mut [&mut PageRead<'_>],
        answers: &mut Answers,
    ) {
        let mut stored = stored.iter_mut();
        for (packed, run) in self.store.read_packs(runs).iter().zip(runs) {
            let mut found = packed.iter().flat_map(PackedExtents::iter);
            for PageRead { lpn, page, read } in stored.by_ref().take(run.count) {
                let is_it = |extent: &Extent| extent.lpn == *lpn && extent.codec != Codec::Lost;
                let extent = found.next().flatten().filter(|(extent, _)| is_it(extent));
                let opened =
                    extent.map(|(extent, payload)| self.open_page(*lpn, extent, payload, page));
                // A purge may have dropped its key since it was located.
                if !matches!(opened, Some(Ok(()))) {
                    note(&mut answers[*read], self.read_again(*lpn, page));
                }
            }
        }
    }

    fn open_page(
        &self,
        lpn: Lpn,
        extent: Extent,
        payload: &[u8],
        page: &mut PageBytes,
    ) -> Result<(), DeviceError> {
        let keys = self.store.keys();
        let unpacked = compress::unpack(keys.as_deref(), &extent, payload, page);
        unpacked.ok_or_else(|| unreadable(lpn))
    }

    /// Reads one page by itself, from its stripe if its place does not give it back.
    fn read_again(&self, lpn: Lpn, page: &mut PageBytes) -> Result<(), DeviceError> {
        self.read_page(lpn, page).map(|_| ())
    }

    /// Reads one page, from its stripe if its place does not give it back; returns where it was
    /// found, none if it is stored nowhere and so is zeroes.
    pub(crate) fn read_page(
        &self,
        lpn: Lpn,
        page: &mut PageBytes,
    ) -> Result<Option<StoredPlace>, DeviceError> {
        let mut failed = None;
        loop {
            // What relocation moved as lost is lost, whatever is known of it.
            let mut is_lost = false;
            let located = {
                let core = self.core()?;
                let located = core.locate(lpn);
                if let PageLocation::Open(stored) = located {
                    let (extent, payload) = core.open_extent(stored.ppn);
                    is_lost = extent.codec == Codec::Lost;
                    if !is_lost {
                        return self.open_page(lpn, extent, payload, page).map(|()| Some(stored));
                    }
                }
                located
            };
            let Some(stored) = located.stored() else {
                page.fill(0);
                return Ok(None);
            };
            if !is_lost {
                let found = self.store.wanted_extent(stored, |extent| extent.lpn == lpn);
                is_lost = found.as_ref().is_some_and(|(_, extent, _)| extent.codec == Codec::Lost);
                if let Some((fault, extent, payload)) = found
                    && !is_lost
                {
                    // Its unit may hold another life of the row by now.
                    if let Some(fault) = fault
                        && self.core()?.locate(lpn) == located
                    {
                        self.store.note_reconstructed(stored, fault);
                    }
                    let opened = self.open_page(lpn, extent, &payload, page);
                    // A purge may have dropped its key meanwhile.
                    if opened.is_err() && self.core()?.locate(lpn) != located {
                        continue;
                    }
                    return opened.map(|()| Some(stored));
                }
            }
            // It is lost if it cannot be read between two looks at which all dies respond.
            if !is_lost {
                self.store.dies.check_responsive()?;
            }
            if is_lost || failed == Some(stored) {
                let mut core = self.core_mut()?;
                if core.locate(lpn) == located && !core.lost.has(lpn) {
                    core.note_lost([lpn]);
                    let (found_by, outcome) = (FoundBy::Read, DamageOutcome::Lost);
                    let (at_unix_s, lba) = (now_unix_s(), Some(lba(lpn)));
                    let (die, row, copy_of) = (None, None, None);
                    let lost = Damage { at_unix_s, die, row, lba, copy_of, found_by, outcome };
                    self.store.suspects.tell(&[lost]);
                }
                return Err(unreadable(lpn));
            }
            failed = Some(stored);
        }
    }
}

/// Keeps the first failure.
fn note(answer: &mut Result<(), DeviceError>, done: Result<(), DeviceError>) {
    if answer.is_ok() {
        *answer = done;
    }
}
