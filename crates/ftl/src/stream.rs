//! Streams: the open superblocks that pages of one kind are placed in.
//!
//! ```text
//!  0 host, handle 0   1 relocation   2 wear levelling
//!  3 host, handle 1   4 host, handle 2   …                       one for each further handle
//!  … relocation and wear levelling of each further handle        persistently isolated ones alone
//! ```

use crate::{Cause, DieId, Geometry, Ppn, ReclaimUnitHandles, SuperblockId};

/// Writes kept together in open superblocks of their own: the index of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(u16);

impl Stream {
    /// Host writes through handle 0.
    pub(crate) const HOST: Self = Self(0);
    /// Pages that garbage collection saves: of handle 0, and of all that share its superblocks.
    pub(crate) const RELOCATION: Self = Self(1);
    /// Pages that wear levelling moves, of the same handles.
    pub(crate) const WEAR: Self = Self(2);

    /// Host writes through `handle`.
    #[inline]
    pub(crate) const fn host(handle: u8) -> Self {
        if handle == 0 { Self::HOST } else { Self(handle as u16 + 2) }
    }

    /// Every stream of `count`.
    pub(crate) fn all(count: usize) -> impl Iterator<Item = Self> {
        (0..u16::MAX).take(count).map(Self)
    }

    /// Index among all streams.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Pages that are moved for `cause` out of superblocks of `owner`; see
    /// [`ReclaimUnitHandles::owner`].
    #[inline]
    pub(crate) const fn moving(owner: u8, cause: Cause, handles: ReclaimUnitHandles) -> Self {
        let shared = match cause {
            Cause::Wear => Self::WEAR,
            _ => Self::RELOCATION,
        };
        if owner == 0 {
            return shared;
        }
        Self(handles.count as u16 + 2 * owner as u16 - 1 + shared.0)
    }
}

/// States of all streams of a format at its beginning.
pub(crate) fn streams(geometry: &Geometry, handles: ReclaimUnitHandles) -> Vec<StreamState> {
    let new = |owner| StreamState { owner, ..StreamState::new(geometry) };
    let further = || 1..handles.count;
    let moving = further().map(|handle| handles.owner(handle)).filter(|owner| *owner > 0);
    [0, 0, 0]
        .into_iter()
        .chain(further().map(|handle| handles.owner(handle)))
        .chain(moving.flat_map(|owner| [owner, owner]))
        .map(new)
        .collect()
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
    /// Handle whose pages alone lie in its superblocks; 0: those of all that share them.
    pub(crate) owner: u8,
}

impl StreamState {
    /// Nothing is open.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            frontiers: vec![None; geometry.banks as usize],
            bank: 0,
            banks_joined: 1,
            units_until_next_joins: geometry.units_per_bank(),
            owner: 0,
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
