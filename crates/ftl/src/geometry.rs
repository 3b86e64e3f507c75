//! Geometry of the NAND, and the layout of pages in a superblock.
//!
//! A **bank** is a set of dies that form superblocks together; a superblock is one erase block from
//! every plane of every die of its bank. Within a superblock, pages are filled row by row; a
//! **row** is one program unit (one NAND page on every plane) from each die, and holds one or more
//! parity stripes:
//!
//! ```text
//!              die 0   die 1   die 2  …  die 23  die 24
//!  row 0        u0      u1      u2        u23      P        a unit = planes x NAND page
//!  row 1        P       u24     u25  …             u47      each row starts one die further
//! ```
//!
//! Only data pages have a physical page number (PPN); parity units are programmed when the data
//! units of their stripe are, and have none.

use blockio::Bytes;

/// Index of a die on the drive, dense from zero, bank by bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DieId(pub u32);

/// Geometry of the NAND. All counts are at least 1.
///
/// ```
/// let geometry = ftl::Geometry {
///     banks: 4,
///     dies_per_bank: 25,
///     planes_per_die: 2,
///     erase_blocks_per_plane: 2048,
///     pages_per_erase_block: 256,
///     page_kib: 4,
///     indirection_kib: 4,
///     stripe_dies: 25, // 24 of data and one of parity
/// };
/// assert_eq!(geometry.dies(), 100);
/// assert_eq!(geometry.superblocks(), 8192);
/// assert_eq!(geometry.pages_per_superblock(), 256 * 24 * 2);
/// // The other members of the stripe, from which a lost unit is recomputed.
/// assert_eq!(geometry.stripe_of(0).count(), 24);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Sets of dies that form superblocks together.
    pub banks: u32,
    /// Dies of a bank.
    pub dies_per_bank: u32,
    /// Planes of a die, programmed and erased together.
    pub planes_per_die: u32,
    /// Good erase blocks of a plane that form superblocks (spares and bad ones taken off).
    pub erase_blocks_per_plane: u32,
    /// NAND pages of an erase block.
    pub pages_per_erase_block: u32,
    /// NAND page, in KiB: a multiple of 4.
    pub page_kib: u32,
    /// Indirection unit, in KiB: what one entry of the map places. A power of two from 4 to
    /// [`Geometry::INDIRECTION_KIB_MAX`].
    pub indirection_kib: u32,
    /// Dies of a parity stripe, one of which holds parity; a divisor of `dies_per_bank`. Zero: no
    /// parity.
    pub stripe_dies: u32,
}

impl Geometry {
    /// Superblocks of the drive.
    pub const fn superblocks(&self) -> u32 {
        self.banks * self.erase_blocks_per_plane
    }

    /// Dies of the drive.
    pub const fn dies(&self) -> u32 {
        self.banks * self.dies_per_bank
    }

    /// Largest indirection unit, in KiB.
    pub const INDIRECTION_KIB_MAX: u32 = 64;

    /// Bytes of a logical page: the indirection unit.
    pub const fn page_bytes(&self) -> u64 {
        self.indirection_kib as u64 * 1024
    }

    /// Pages of 4 KiB, the unit of the counters, in a logical page.
    pub const fn counted_per_page(&self) -> u64 {
        self.page_bytes() / crate::PAGE_BYTES
    }

    /// Logical pages of a program unit.
    pub const fn pages_per_unit(&self) -> u32 {
        self.planes_per_die * self.page_kib / self.indirection_kib
    }

    /// Parity units of a row.
    pub const fn parity_units_per_row(&self) -> u32 {
        match self.dies_per_bank.checked_div(self.stripe_dies) {
            Some(stripes) => stripes,
            None => 0,
        }
    }

    /// Data units of a row.
    pub const fn data_units_per_row(&self) -> u32 {
        self.dies_per_bank - self.parity_units_per_row()
    }

    /// Logical pages of data in a superblock.
    pub const fn pages_per_superblock(&self) -> u32 {
        self.pages_per_erase_block * self.data_units_per_row() * self.pages_per_unit()
    }

    /// Data units of a superblock for each bank, at least 1.
    pub(crate) const fn units_per_bank(&self) -> u32 {
        let units = self.pages_per_erase_block * self.data_units_per_row() / self.banks;
        if units == 0 { 1 } else { units }
    }

    /// Dies within the bank of the other units of the stripe that data unit `unit` of a superblock
    /// belongs to, parity included; none without parity.
    pub fn stripe_of(&self, unit: u32) -> impl Iterator<Item = u32> + use<> {
        let Self { dies_per_bank: dies, stripe_dies, .. } = *self;
        let (row, within) = (unit / self.data_units_per_row(), unit % self.data_units_per_row());
        let data = self.data_per_stripe();
        let (first, own) =
            (within / data * stripe_dies, within / data * stripe_dies + within % data);
        let positions = (first..first + stripe_dies).filter(move |position| *position != own);
        positions.map(move |position| (position + row) % dies)
    }

    /// First and last data unit of the stripe of data unit `unit`; itself without parity.
    pub(crate) const fn stripe_units(&self, unit: u32) -> (u32, u32) {
        let within = unit % self.data_units_per_row();
        let first = unit - within % self.data_per_stripe();
        (first, first + self.data_per_stripe() - 1)
    }

    /// Data units of a stripe; 1 without parity.
    const fn data_per_stripe(&self) -> u32 {
        if self.stripe_dies > 1 { self.stripe_dies - 1 } else { 1 }
    }

    /// Data pages of the drive.
    pub const fn pages(&self) -> u64 {
        self.superblocks() as u64 * self.pages_per_superblock() as u64
    }

    /// Everything that these erase blocks store, parity included.
    pub const fn raw_capacity(&self) -> Bytes {
        Bytes(
            self.superblocks() as u64
                * self.pages_per_erase_block as u64
                * self.dies_per_bank as u64
                * self.pages_per_unit() as u64
                * self.page_bytes(),
        )
    }
}

/// Die and row of one data unit of a superblock, and the die of the parity that it completes, if
/// any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitPlace {
    /// Die within the bank.
    pub(crate) die: u16,
    /// Row, which is the NAND page within the erase block.
    pub(crate) row: u16,
    /// Die within the bank that takes the parity of the stripe that this unit completes.
    pub(crate) parity_die: Option<u16>,
}

/// The place of every data unit of a superblock; the same for all superblocks.
#[derive(Clone, Debug)]
pub struct Layout {
    units: Vec<UnitPlace>,
}

impl Layout {
    /// The layout of `geometry`.
    pub fn new(geometry: &Geometry) -> Self {
        let dies = geometry.dies_per_bank;
        let stripe_dies = if geometry.stripe_dies == 0 { dies } else { geometry.stripe_dies };
        let with_parity = geometry.stripe_dies != 0;
        let mut units = Vec::new();
        for row in 0..geometry.pages_per_erase_block {
            let die_at = |position: u32| narrow((position + row) % dies);
            for position in 0..dies {
                let in_stripe = position % stripe_dies;
                if with_parity && in_stripe == stripe_dies - 1 {
                    continue;
                }
                let completes = with_parity && in_stripe == stripe_dies - 2;
                units.push(UnitPlace {
                    die: die_at(position),
                    row: narrow(row),
                    parity_die: completes.then(|| die_at(position + 1)),
                });
            }
        }
        let whole = geometry.pages_per_erase_block * geometry.data_units_per_row();
        assert_eq!(units.len(), whole as usize, "every data unit of a superblock has a place");
        let is_apart = |unit: &UnitPlace| unit.parity_die != Some(unit.die);
        assert!(units.iter().all(is_apart), "parity lies on a die of its own");
        Self { units }
    }

    /// The place of data unit `unit` of any superblock.
    #[inline]
    pub(crate) fn unit(&self, unit: u32) -> UnitPlace {
        self.units[unit as usize]
    }
}

fn narrow(number: u32) -> u16 {
    u16::try_from(number).expect("Config::check limits dies and rows to 65,535")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry {
        banks: 2,
        dies_per_bank: 8,
        planes_per_die: 2,
        erase_blocks_per_plane: 10,
        pages_per_erase_block: 16,
        page_kib: 8,
        indirection_kib: 4,
        stripe_dies: 4,
    };

    #[test]
    fn counts_follow_from_the_arrangement() {
        assert_eq!(SMALL.pages_per_unit(), 4);
        assert_eq!(SMALL.data_units_per_row(), 6);
        assert_eq!(SMALL.pages_per_superblock(), 16 * 6 * 4);
        assert_eq!(SMALL.raw_capacity(), Bytes::from_kib(2 * 10 * 16 * 8 * 16));
    }

    #[test]
    fn coarser_indirection_leaves_the_media_as_they_are() {
        let coarse = Geometry { indirection_kib: 16, ..SMALL };
        assert_eq!((coarse.pages_per_unit(), coarse.page_bytes()), (1, 16_384));
        assert_eq!(coarse.pages() * 4, SMALL.pages());
        assert_eq!(coarse.raw_capacity(), SMALL.raw_capacity());
    }

    #[test]
    fn every_unit_of_a_row_lies_on_a_die_of_its_own() {
        let layout = Layout::new(&SMALL);
        for row in 0..16 {
            let places = layout.units.iter().filter(|place| place.row == row);
            let mut dies: Vec<u16> =
                places.flat_map(|place| [Some(place.die), place.parity_die]).flatten().collect();
            dies.sort_unstable();
            assert_eq!(dies, (0..8).collect::<Vec<_>>(), "row {row}");
        }
    }

    #[test]
    fn a_stripe_is_the_other_units_of_its_row_and_their_parity() {
        let layout = Layout::new(&SMALL);
        for (unit, place) in (0..).zip(&layout.units) {
            let others: Vec<u32> = SMALL.stripe_of(unit).collect();
            assert_eq!(others.len(), 3, "unit {unit}");
            assert!(!others.contains(&u32::from(place.die)), "unit {unit}");
            let parity = layout.units.iter().filter(|other| other.row == place.row);
            let parity = parity.filter_map(|other| other.parity_die.map(u32::from));
            assert_eq!(parity.filter(|die| others.contains(die)).count(), 1, "unit {unit}");
        }
    }

    #[test]
    fn parity_visits_every_die_equally() {
        let layout = Layout::new(&SMALL);
        let mut seen = [0; 8];
        for place in &layout.units {
            if let Some(die) = place.parity_die {
                seen[usize::from(die)] += 1;
            }
        }
        assert_eq!(seen, [4; 8]);
    }
}
