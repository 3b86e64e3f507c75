//! Streams: the open superblocks that pages of one kind are placed in.

use crate::{DieId, Ppn, SuperblockId};

/// Writes kept together in open superblocks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Host,
    Relocation,
    Wear,
}

/// Place of an extent that is to be relocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) superblock: SuperblockId,
    pub(crate) ppn: Ppn,
    /// The die that holds it.
    pub(crate) die: DieId,
}

/// One open superblock and how far it is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frontier {
    pub(crate) superblock: SuperblockId,
    /// First die of its bank.
    pub(crate) die_first: u32,
    /// Its first place.
    pub(crate) first: Ppn,
    /// The place to be taken next.
    pub(crate) next: Ppn,
    /// The unit which that place belongs to.
    pub(crate) unit: u32,
    /// Granules of the unit that are not taken.
    pub(crate) granules_left: u32,
    /// Places of the unit's present layer that are not taken.
    pub(crate) layer_left: u32,
    /// Units that the present row leaves out, at its end.
    pub(crate) left_out: u32,
}

impl Frontier {
    /// Goes on to unit number `unit`, of so many pages and granules.
    #[inline]
    pub(crate) fn begin(&mut self, unit: u32, pages: u32, granules: u32) {
        self.unit = unit;
        self.next = Ppn(self.first.0 + unit * pages);
        self.granules_left = granules;
        self.layer_left = pages;
    }
}

/// The open superblocks of a stream, one a bank, and the bank whose turn it is.
///
/// Banks join one after the other, `units_per_bank` units apart, so that their superblocks are not
/// all full at the same moment: free superblocks are then used up one by one.
#[derive(Clone, Debug)]
pub(crate) struct StreamState {
    pub(crate) frontiers: Vec<Option<Frontier>>,
    pub(crate) bank: u32,
    pub(crate) banks_joined: u32,
    pub(crate) units_until_next_joins: u32,
}

impl StreamState {
    pub(crate) fn new(banks: u32, units_per_bank: u32) -> Self {
        Self {
            frontiers: vec![None; banks as usize],
            bank: 0,
            banks_joined: 1,
            units_until_next_joins: units_per_bank,
        }
    }

    /// Goes on to the next bank after one unit.
    #[inline]
    pub(crate) fn turn(&mut self, banks: u32, units_per_bank: u32) {
        if self.banks_joined < banks {
            self.units_until_next_joins -= 1;
            if self.units_until_next_joins == 0 {
                self.banks_joined += 1;
                self.units_until_next_joins = units_per_bank;
            }
        }
        self.bank += 1;
        if self.bank >= self.banks_joined {
            self.bank = 0;
        }
        assert!(self.bank < banks, "a turn is that of a bank");
    }
}
