//! Layout of structures on the dies, computed in the same way for every drive.
//!
//! ```text
//!  a die     | header | header | journal | checkpoint | checkpoint | erase block 0 | … | header
//!            journal and checkpoints twice where the drive has one die or two
//!  a row     one unit on each die, the last position holding parity; each row begins one die on
//!  a unit    | unit header | table of its extents | extent | extent | …
//! ```

use std::ops::RangeInclusive;

use blockio::Bytes;
use ftl::{ConfigError, Geometry, Lpn, Ppn, SuperblockId, VictimPolicy, Watermarks};
use status::Compression;

use crate::format::die_set::DieSet;

/// Bytes of a logical page.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Bytes of the header before each extent.
pub(crate) const EXTENT_HEADER_BYTES: usize = 32;
/// Bytes that a page takes which is stored whole.
pub(crate) const SLOT_BYTES: usize = PAGE_BYTES + EXTENT_HEADER_BYTES;
/// Bytes of the unit header that a unit begins with.
pub(crate) const UNIT_HEADER_BYTES: usize = 64;
/// Bytes before the entries of a table.
pub(crate) const TABLE_HEAD_BYTES: usize = 16;
/// Bytes of an entry of a table.
pub(crate) const ENTRY_BYTES: usize = 24;
/// Bytes of a copy of a die's header.
pub(crate) const HEADER_BYTES: u64 = 4096;
/// Bytes of a frame of a checkpoint that hold what is saved.
pub(crate) const FRAME_BYTES: usize = 1 << 20;
/// Bytes before them.
pub(crate) const FRAME_HEAD_BYTES: usize = 32;
/// Most dies of a drive.
pub(crate) const DIES_MAX: u32 = 64;
/// Copies of each batch of the journal and of each checkpoint.
pub(crate) const REPLICAS: usize = 2;
/// Most pages of a unit: it is kept in memory while it is filled.
const UNIT_PAGES_MAX: u64 = 1024;
/// Most rows of a superblock.
const ROWS_MAX: u64 = 65_535;
/// Most data pages of a superblock.
pub(crate) const SUPERBLOCK_PAGES_MAX: u64 = 1 << 19;
/// Most extents of a page: as many as it has granules.
const EXTENTS_MAX: u64 = 64;
/// Longest journal, in bytes.
const JOURNAL_BYTES_MAX: u64 = 1 << 40;

/// Parameters that a format fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pages of 4 KiB that clients address.
    pub pages_logical: u32,
    /// Pages of flash that data may take at most: fewer than `pages_logical` on a thin drive.
    pub pages_stored_max: u32,
    /// Most pages that clients may address after a change of `pages_logical`: checkpoints have room
    /// for the map of so many.
    pub pages_mappable: u32,
    /// Dies, 1 to 64.
    pub dies: u32,
    /// True if one unit of each row is parity; needs at least 2 dies.
    pub is_protected: bool,
    /// Whole pages that a unit holds.
    pub unit_pages: u32,
    /// Rows of a superblock.
    pub rows: u32,
    /// Superblocks.
    pub superblocks: u32,
    /// Most extents that a page of flash holds; 1: pages are stored whole.
    pub extents_per_page: u32,
    /// Compression of pages; anything but [`Compression::None`] needs several extents a page.
    pub compression: Compression,
    /// Bytes of the journal, a multiple of 4096.
    pub journal_bytes: u64,
}

impl Shape {
    /// Bytes that each die has at least.
    pub fn die_bytes(&self) -> Bytes {
        Bytes(Layout::new(self).die_bytes())
    }

    /// Bytes of a die that has a copy of its header at its end, as each file has.
    pub fn die_bytes_with_end(&self) -> Bytes {
        Bytes(Layout::new(self).die_bytes_with_end())
    }

    /// Checks that dies can be arranged so: no count is zero, or beyond what numbers of places,
    /// rows and bytes reach.
    ///
    /// # Errors
    /// Names the first count that cannot be.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.check_counts()?;
        let (mappable, compression) = (self.pages_mappable.into(), self.compression);
        in_range("pages_logical", self.pages_logical, 1..=mappable)?;
        let extents_min = if compression == Compression::None { 1 } else { 2 };
        in_range("extents_per_page", self.extents_per_page, extents_min..=EXTENTS_MAX)?;
        // Room for three batches with all that two open rows hold, twice as much as they may take.
        let without = Self { journal_bytes: 0, ..*self };
        let row_bytes = Layout::new(&without).unit_bytes as u64 * u64::from(self.dies);
        let journal_min = 19 * row_bytes + 7 * HEADER_BYTES;
        in_range("journal_bytes", self.journal_bytes, journal_min..=JOURNAL_BYTES_MAX)?;
        let rest = self.journal_bytes % HEADER_BYTES;
        in_range("journal_bytes beyond whole pages", rest, 0..=0)?;
        self.config().check()
    }

    /// Checks what positions on the dies follow from.
    pub(crate) fn check_counts(&self) -> Result<(), ConfigError> {
        let dies_min = 1 + u64::from(self.is_protected);
        in_range("dies", self.dies, dies_min..=DIES_MAX.into())?;
        in_range("unit_pages", self.unit_pages, 1..=UNIT_PAGES_MAX)?;
        in_range("rows", self.rows, 1..=ROWS_MAX)?;
        in_range("extents_per_page", self.extents_per_page, 1..=EXTENTS_MAX)?;
        let pages =
            u64::from(self.rows) * u64::from(self.data_units()) * u64::from(self.unit_pages);
        in_range("pages of a superblock", pages, 1..=SUPERBLOCK_PAGES_MAX)?;
        let places = pages * u64::from(self.extents_per_page);
        in_range("superblocks", self.superblocks, 1..=u64::from(u32::MAX - 1) / places)
    }

    /// Data units of a row.
    pub(crate) const fn data_units(&self) -> u32 {
        self.dies - self.is_protected as u32
    }

    /// Metadata regions of each die, which hold a journal and two checkpoint slots: two where a
    /// single die may have to hold both copies, else one.
    pub(crate) const fn regions(&self) -> u32 {
        if self.dies as usize <= REPLICAS { 2 } else { 1 }
    }

    /// Bytes of the map of lost pages, one bit a page, in whole words.
    pub(crate) const fn lost_map_bytes(&self) -> usize {
        (self.pages_mappable as usize).div_ceil(64) * 8
    }

    /// Data pages of a superblock.
    pub(crate) const fn superblock_pages(&self) -> u32 {
        self.rows * self.data_units() * self.unit_pages
    }

    /// All dies.
    pub(crate) const fn all_dies(&self) -> DieSet {
        DieSet(u64::MAX >> (DIES_MAX - self.dies))
    }

    /// True if a row may leave out these dies: none, or, where rows are protected, so few that a
    /// data unit remains.
    pub(crate) const fn may_leave_out(&self, out: DieSet) -> bool {
        self.all_dies().has_all(out)
            && (out.0 == 0 || self.is_protected && out.count() < self.data_units())
    }

    /// Rows of the drive.
    pub(crate) const fn rows_total(&self) -> u32 {
        self.superblocks * self.rows
    }

    /// Returns the configuration of the translation layer.
    pub(crate) const fn config(&self) -> ftl::Config {
        ftl::Config {
            geometry: self.geometry(),
            pages_logical: self.pages_logical,
            pages_stored_max: self.pages_stored_max,
            extents_per_page: self.extents_per_page,
            victim: VictimPolicy::Greedy,
            // Relocation keeps pace at any price: pauses are worse than work.
            watermarks: Watermarks {
                // The open ones, one for relocation, and one for writes that belong together.
                low: 4,
                high: 7,
                burst: 0.1,
                price_max: f64::MAX,
                // A quarter of the usual unit: each batch takes the locks of victim and core once.
                batch_pages: 16,
            },
            // What lies below levels its own wear.
            wear_spread_max: 0,
            handles: ftl::ReclaimUnitHandles::ONE,
            slc_cache: None,
            seed: 1,
        }
    }

    pub(crate) const fn geometry(&self) -> Geometry {
        Geometry {
            banks: 1,
            dies_per_bank: self.dies,
            planes_per_die: 1,
            erase_blocks_per_plane: self.superblocks,
            pages_per_erase_block: self.rows,
            page_kib: self.unit_pages * 4,
            indirection_kib: 4,
            stripe_dies: if self.is_protected { self.dies } else { 0 },
        }
    }
}

/// A place for an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Row of the drive: superblock x rows + row within it.
    pub(crate) row: u32,
    /// Position of its unit within the row.
    pub(crate) unit: u32,
    /// Its number within the unit, in the order of arrival.
    pub(crate) slot: u32,
}

/// Sizes and positions that follow from a shape.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    /// Extents that a unit holds at most.
    pub(crate) unit_slots: u32,
    /// Offset of the first extent within a unit, in bytes.
    pub(crate) extents_from: usize,
    pub(crate) unit_bytes: usize,
    pub(crate) slot_bytes: u64,
    superblock_pages: u32,
    erase_blocks_from: u64,
}

impl Layout {
    pub(crate) fn new(shape: &Shape) -> Self {
        let unit_slots = shape.unit_pages * shape.extents_per_page;
        let extents_from = UNIT_HEADER_BYTES + TABLE_HEAD_BYTES + unit_slots as usize * ENTRY_BYTES;
        let unit_bytes = extents_from + shape.unit_pages as usize * SLOT_BYTES;
        assert!(unit_slots > 0 && shape.dies > 0, "a unit holds extents, and a row has units");
        let align = if unit_bytes >= 1 << 16 { 4096 } else { 512 };
        let saved = u64::from(shape.rows_total()) * 16
            + u64::from(shape.superblocks) * 4
            + u64::from(shape.pages_mappable) * if shape.extents_per_page > 1 { 5 } else { 4 }
            + shape.lost_map_bytes() as u64;
        // Each of the six tables begins a frame of its own.
        let frames = saved / FRAME_BYTES as u64 + 6;
        let slot = HEADER_BYTES + saved + frames * FRAME_HEAD_BYTES as u64;
        let slot_bytes = slot.next_multiple_of(4096);
        Self {
            shape: *shape,
            unit_slots,
            extents_from,
            unit_bytes: unit_bytes.next_multiple_of(align),
            slot_bytes,
            superblock_pages: shape.superblock_pages(),
            erase_blocks_from: 2 * HEADER_BYTES
                + u64::from(shape.regions()) * (shape.journal_bytes + 2 * slot_bytes),
        }
    }

    /// Bytes that a die must have.
    pub(crate) fn die_bytes(&self) -> u64 {
        self.unit_from(self.shape.rows_total())
    }

    /// Offset on the die of the copy of its header behind the last erase block, in bytes.
    pub(crate) fn end_header_from(&self) -> u64 {
        self.die_bytes().next_multiple_of(HEADER_BYTES)
    }

    /// Bytes of a die that has a copy of its header at its end.
    pub(crate) fn die_bytes_with_end(&self) -> u64 {
        self.end_header_from() + HEADER_BYTES
    }

    /// Offset on the die of the journal of a metadata region, in bytes.
    pub(crate) const fn journal_from(&self, region: u32) -> u64 {
        assert!(region < self.shape.regions(), "a die has so many metadata regions");
        2 * HEADER_BYTES + region as u64 * (self.shape.journal_bytes + 2 * self.slot_bytes)
    }

    /// Offset on the die of a checkpoint slot, 0 or 1, of a metadata region, in bytes.
    pub(crate) const fn checkpoint_from(&self, region: u32, slot: u64) -> u64 {
        assert!(slot < 2, "a metadata region has two checkpoint slots");
        self.journal_from(region) + self.shape.journal_bytes + slot * self.slot_bytes
    }

    /// Bytes of the dies that a row takes.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.unit_bytes as u64 * u64::from(self.shape.dies)
    }

    /// Bytes of the journal after which its batches go to the next dies, so that none wears first.
    pub(crate) const fn journal_turn_bytes(&self) -> u64 {
        let turn = self.shape.journal_bytes / 64;
        if turn == 0 { 1 } else { turn }
    }

    /// Offset on every die of its unit of a row, in bytes.
    pub(crate) const fn unit_from(&self, row: u32) -> u64 {
        assert!(row <= self.shape.rows_total(), "a row is one of the drive, or the end");
        self.erase_blocks_from + row as u64 * self.unit_bytes as u64
    }

    /// The die that holds a position of a row which leaves out some; the position after the last
    /// data unit is parity. Positions that are left out are on none.
    pub(crate) fn die(&self, row: u32, position: u32, out: DieSet) -> usize {
        let (dies, first) = (self.shape.dies, row % self.shape.rows);
        debug_assert!(position < dies, "a row has a position for each die");
        if out == DieSet::default() {
            return ((position + first) % dies) as usize;
        }
        let place = if self.is_parity(position) { self.data_units(out) } else { position };
        let in_turn = (0..dies).map(|next| ((next + first) % dies) as usize);
        let mut kept = in_turn.filter(|die| !out.has(*die));
        kept.nth(place as usize).expect("a position that the row has")
    }

    /// The position of a row that lies on a die; none where the row leaves it out.
    pub(crate) fn position(&self, row: u32, die: usize, out: DieSet) -> Option<u32> {
        if out == DieSet::default() {
            let (dies, first) = (self.shape.dies, row % self.shape.rows);
            let die = u32::try_from(die).ok().filter(|die| *die < dies)?;
            return Some((die + dies - first % dies) % dies);
        }
        self.positions(out).find(|position| self.die(row, *position, out) == die)
    }

    /// Data units of a row that leaves out some dies.
    pub(crate) const fn data_units(&self, out: DieSet) -> u32 {
        assert!(out.count() < self.shape.data_units(), "a row keeps a data unit");
        self.shape.data_units() - out.count()
    }

    /// Data units that are left of a row without some dies, at least one, and those of a whole row.
    pub(crate) fn data_units_left(&self, out: DieSet) -> (u32, u32) {
        let all = self.shape.data_units();
        (all.saturating_sub(out.count()).max(1), all)
    }

    /// The positions of a row that leaves out some dies: those of its data, then parity.
    pub(crate) fn positions(&self, out: DieSet) -> impl Iterator<Item = u32> + Clone + use<> {
        let parity = self.shape.is_protected.then(|| self.shape.dies - 1);
        (0..self.data_units(out)).chain(parity)
    }

    /// The rows of a superblock.
    pub(crate) const fn rows_of(&self, superblock: u32) -> std::ops::Range<u32> {
        superblock * self.shape.rows..(superblock + 1) * self.shape.rows
    }

    /// The superblock of a row.
    pub(crate) const fn superblock_of(&self, row: u32) -> SuperblockId {
        SuperblockId(row / self.shape.rows)
    }

    pub(crate) const fn is_parity(&self, position: u32) -> bool {
        self.shape.is_protected && position == self.shape.dies - 1
    }

    /// Places of the drive.
    pub(crate) const fn places(&self) -> u32 {
        self.shape.superblocks * self.superblock_pages * self.shape.extents_per_page
    }

    /// Row and position of a place.
    #[inline]
    pub(crate) const fn place(&self, ppn: Ppn) -> Place {
        let shape = &self.shape;
        let (layer_all, page) = (ppn.0 / self.superblock_pages, ppn.0 % self.superblock_pages);
        let (superblock, layer) =
            (layer_all / shape.extents_per_page, layer_all % shape.extents_per_page);
        let (unit_all, in_unit) = (page / shape.unit_pages, page % shape.unit_pages);
        let (row, unit) = (unit_all / shape.data_units(), unit_all % shape.data_units());
        Place { row: superblock * shape.rows + row, unit, slot: layer * shape.unit_pages + in_unit }
    }

    /// The page number of a place.
    pub(crate) const fn ppn(&self, place: Place) -> Ppn {
        let shape = &self.shape;
        let (superblock, row) = (place.row / shape.rows, place.row % shape.rows);
        let (layer, in_unit) = (place.slot / shape.unit_pages, place.slot % shape.unit_pages);
        let page = (row * shape.data_units() + place.unit) * shape.unit_pages + in_unit;
        let layers = superblock * shape.extents_per_page + layer;
        Ppn(layers * self.superblock_pages + page)
    }

    /// The page number of a place within the unit whose first place is `unit`.
    #[inline]
    pub(crate) const fn ppn_within(&self, unit: Ppn, slot: u32) -> Ppn {
        let unit_pages = self.shape.unit_pages;
        if slot < unit_pages {
            return Ppn(unit.0 + slot);
        }
        Ppn(unit.0 + slot / unit_pages * self.superblock_pages + slot % unit_pages)
    }

    /// Offset of an extent within its unit, if its number alone determines it: where pages are
    /// stored whole.
    #[inline]
    pub(crate) const fn extent_from(&self, slot: u32) -> Option<usize> {
        if self.shape.extents_per_page == 1 {
            Some(self.extents_from + slot as usize * SLOT_BYTES)
        } else {
            None
        }
    }

    /// Offset of an entry of the table within its unit, in bytes.
    pub(crate) const fn entry_from(slot: u32) -> usize {
        UNIT_HEADER_BYTES + TABLE_HEAD_BYTES + slot as usize * ENTRY_BYTES
    }

    /// Returns the bytes that the translation layer charges for an extent of so many bytes, its
    /// header included.
    pub(crate) const fn charged(extent_bytes: usize) -> u64 {
        (extent_bytes * PAGE_BYTES).div_ceil(SLOT_BYTES) as u64
    }
}

/// Checks one number of an arrangement.
fn in_range(
    name: &'static str,
    value: impl Into<u64>,
    limits: RangeInclusive<u64>,
) -> Result<(), ConfigError> {
    let value = value.into();
    if limits.contains(&value) {
        return Ok(());
    }
    let limit = format!("{} to {}", limits.start(), limits.end());
    Err(ConfigError::OutOfRange { name, value: value.to_string(), limit })
}

/// The first sector of a page.
pub(crate) fn lba(page: Lpn) -> u64 {
    u64::from(page.0) * (PAGE_BYTES as u64 / blockio::SECTOR_BYTES)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) const SHAPE: Shape = Shape {
        pages_logical: 1000,
        pages_stored_max: 1000,
        pages_mappable: 1000,
        dies: 4,
        is_protected: true,
        unit_pages: 8,
        rows: 5,
        superblocks: 20,
        extents_per_page: 4,
        compression: Compression::Lz4,
        journal_bytes: 1 << 20,
    };

    fn any_number() -> impl Strategy<Value = u32> {
        prop_oneof![0..70_u32, any::<u32>(), (0..32_u32).prop_map(|bit| 1 << bit), Just(u32::MAX)]
    }

    proptest! {
        #[test]
        fn every_arrangement_has_a_layout_or_is_refused(
            [dies, unit_pages, rows, superblocks, extents_per_page] in
                [(); 5].map(|()| any_number()),
            [pages_logical, pages_stored_max, pages_mappable] in [(); 3].map(|()| any_number()),
            journal_bytes in prop_oneof![Just(u64::MAX), any::<u64>(), 0..1_u64 << 41],
            (is_protected, is_compressed) in any::<(bool, bool)>(),
        ) {
            let compression = if is_compressed { Compression::Lz4 } else { Compression::None };
            let shape = Shape {
                pages_logical,
                pages_stored_max,
                pages_mappable,
                dies,
                is_protected,
                unit_pages,
                rows,
                superblocks,
                extents_per_page,
                compression,
                journal_bytes,
            };
            if shape.check().is_ok() {
                let layout = Layout::new(&shape);
                prop_assert!(layout.die_bytes() > shape.journal_bytes && layout.places() > 0);
            }
        }
    }

    #[test]
    fn places_and_page_numbers_are_one_to_one() {
        let layout = Layout::new(&SHAPE);
        let places = SHAPE.superblocks * SHAPE.superblock_pages() * SHAPE.extents_per_page;
        for ppn in (0..places).map(Ppn) {
            let place = layout.place(ppn);
            assert_eq!(layout.ppn(place), ppn, "{place:?}");
            let unit = layout.ppn(Place { slot: 0, ..place });
            assert_eq!(layout.ppn_within(unit, place.slot), ppn, "{place:?}");
            assert!(place.row < SHAPE.rows_total() && place.slot < layout.unit_slots);
        }
    }

    #[test]
    fn units_of_a_row_lie_on_dies_of_their_own() {
        let layout = Layout::new(&SHAPE);
        for row in 0..SHAPE.rows_total() {
            for out in [0, 1, 2, 8, 5, 12].map(DieSet) {
                let positions: Vec<u32> = layout.positions(out).collect();
                let dies: std::collections::BTreeSet<usize> =
                    positions.iter().map(|it| layout.die(row, *it, out)).collect();
                assert_eq!(dies.len(), (SHAPE.dies - out.count()) as usize);
                assert!(dies.iter().all(|die| !out.has(*die)));
                for position in positions {
                    let die = layout.die(row, position, out);
                    assert_eq!(layout.position(row, die, out), Some(position));
                }
            }
        }
    }
}
