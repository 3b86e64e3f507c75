//! Rows that leave out dies: how an owner that has lost some goes on with full redundancy.
//!
//! A row takes the data units of the dies that are left, and parity; its last data units, one for
//! each lost die, are programmed with nothing in them. Numbers of places stay what they are.
//!
//! ```text
//!  whole      | 0 | 1 | 2 | 3 | 4 | 5 | 6 | parity |
//!  shortened  | 0 | 1 | 2 | 3 | 4 | 5 | - | parity |
//! ```
//!
//! Invariants:
//! - A row is shortened from its beginning or not at all.
//! - What a row leaves out counts as used room until its superblock is erased.
//! - While rows are shortened no more is stored than leaves the superblock with least in it worth
//!   relocating to such rows.

use crate::stream::{ExtentMove, Origin, Stream};
use crate::{Cause, Debt, Ftl, Lpn, Media, SuperblockId};

/// Shortening of the rows that are begun from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DegradedRows {
    /// Data units that each of them leaves out, at its end.
    pub(crate) units: u32,
    /// Granules that may be stored meanwhile.
    pub(crate) granules_max: u64,
}

impl DegradedRows {
    /// Rows are whole.
    pub(crate) const NOT: Self = Self { units: 0, granules_max: u64::MAX };
}

impl Ftl<Debt> {
    /// From now on the last `units` data units of each row that is begun hold nothing, and no more
    /// may be stored than fits then. The media of an owner who wants that is one bank.
    ///
    /// # Panics
    /// When no unit would be left, or there are several banks.
    pub fn leave_out(&mut self, units: u32) {
        assert!(units < self.units_per_row, "a row of {} units", self.units_per_row);
        assert!(self.config.geometry.banks == 1, "one bank");
        let granules_max = self.granules_leaving_out(units, self.superblocks_good());
        self.shortened =
            if units == 0 { DegradedRows::NOT } else { DegradedRows { units, granules_max } };
        let (units_per_row, granules) = (self.units_per_row, self.granules_per_unit);
        for open in self.streams.iter_mut().flat_map(|it| &mut it.frontiers).flatten() {
            if open.unit.is_multiple_of(units_per_row) && open.granules_left == granules {
                open.left_out = units;
            }
        }
    }

    /// True if all stored data, and `more` pages of 4 KiB, would fit with `units` data units of
    /// every row left out.
    pub fn fits_leaving_out(&self, units: u32, more: u64) -> bool {
        let more = more * u64::from(self.config.granules_per_page());
        units < self.units_per_row
            && self.extents.stored() + more
                <= self.granules_leaving_out(units, self.superblocks_good())
    }

    /// Programs the rows that are begun to their ends, with nothing in what is left of them.
    pub fn finish_rows(&mut self, media: &mut impl Media) {
        let streams = [
            (Stream::HOST, Cause::Host),
            (Stream::RELOCATION, Cause::Relocation),
            (Stream::WEAR, Cause::Wear),
        ];
        for (stream, cause) in streams {
            while self.is_row_begun(stream) {
                self.program(stream, cause, media);
            }
        }
    }

    fn is_row_begun(&self, stream: Stream) -> bool {
        let open = self.streams[stream].frontiers[0].as_ref();
        open.is_some_and(|open| {
            !open.unit.is_multiple_of(self.units_per_row)
                || open.granules_left < self.granules_per_unit
        })
    }

    /// Moves a page to the relocation stream, out of turn. An owner who wants that sees to
    /// [`Ftl::needs_room`] before, as for a page of the host.
    pub fn relocate(&mut self, lpn: Lpn, media: &mut impl Media) {
        self.move_page(lpn, media);
    }
}

impl<C> Ftl<C> {
    /// Granules that may be stored in `good` superblocks while rows leave out so many units: a
    /// twentieth stays free, so that there is always a superblock that relocation gains from.
    pub(crate) fn granules_leaving_out(&self, units: u32, good: u32) -> u64 {
        let reserved = self.config.superblocks_reserved();
        let usable = u64::from(good.saturating_sub(reserved));
        let kept = u64::from(self.units_per_row - units);
        debug_assert!(kept > 0, "a shortened row holds data");
        let reliable = usable * self.config.granules_reliable();
        reliable * kept / u64::from(self.units_per_row) * 19 / 20
    }

    /// Moves a page to the relocation stream, out of turn.
    pub(crate) fn move_page(&mut self, lpn: Lpn, media: &mut impl Media) {
        let Some(ppn) = self.lookup(lpn) else { return };
        let granules = self.extents.size(lpn);
        self.counters.pages_relocation += 1;
        self.counters.relocation_saved_bytes += self.saved_bytes(granules);
        let (superblock, place) = self.places_per_superblock.divide(ppn.0);
        let superblock = SuperblockId(superblock);
        let from = Origin { superblock, ppn, die: self.die_at(self.die_first(superblock), place) };
        let (owner, cause) = (self.superblocks.owner(superblock), Cause::Relocation);
        let stream = Stream::moving(owner, cause, self.config.handles);
        self.move_extent(ExtentMove { lpn, granules, stream, cause }, from, media);
    }

    /// True if the row of the stream's next unit leaves that unit out.
    #[inline]
    pub(crate) fn leaves_out_next(&self, stream: Stream) -> bool {
        let first = self.streams[stream].frontiers[0].as_ref();
        first.filter(|next| next.left_out > 0).is_some_and(|next| {
            next.unit % self.units_per_row >= self.units_per_row - next.left_out
        })
    }
}
