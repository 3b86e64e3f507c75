//! Streams: the open superblocks that pages of one kind are placed in.
//!
//! ```text
//!  0 host, handle 0   1 relocation   2 wear levelling
//!  3 host, handle 1   4 host, handle 2   …                       one for each further handle
//!  … relocation and wear levelling of each further handle        persistently isolated ones alone
//!  3 host, past the SLC cache                                    drives with a cache, one handle
//! ```

use std::ops::{Index, IndexMut};

use crate::{Cause, Config, DieId, Divider, Geometry, Lpn, Ppn, ReclaimUnitHandles, SuperblockId};

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

    /// Host writes that the SLC cache has no room for; such drives have one handle.
    pub(crate) const DIRECT: Self = Self(3);

    /// Host writes through `handle`.
    #[inline]
    pub(crate) const fn host(handle: u8) -> Self {
        if handle == 0 { Self::HOST } else { Self(handle as u16 + 2) }
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

/// All streams of a format. Those that every drive has are at hand without an indirection, since
/// each page that is placed looks one up.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    first: [StreamState; 3],
    /// Streams of further handles.
    further: Vec<StreamState>,
}

impl Streams {
    /// Nothing is open.
    pub(crate) fn new(config: &Config) -> Self {
        let (geometry, handles) = (&config.geometry, config.handles);
        let new = |owner| StreamState { owner, ..StreamState::new(geometry) };
        let owners = || (1..handles.count).map(|handle| handles.owner(handle));
        let moving = owners().filter(|owner| *owner > 0).flat_map(|owner| [owner, owner]);
        let direct = config.slc_cache.map(|_| 0);
        let further = owners().chain(moving).chain(direct);
        Self { first: [new(0), new(0), new(0)], further: further.map(new).collect() }
    }

    /// Every one.
    pub(crate) fn all(&self) -> impl Iterator<Item = Stream> + use<> {
        (0..u16::MAX).take(self.first.len() + self.further.len()).map(Stream)
    }

    /// Their states.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &StreamState> {
        self.first.iter().chain(&self.further)
    }

    /// Their states, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut StreamState> {
        self.first.iter_mut().chain(&mut self.further)
    }
}

impl Index<Stream> for Streams {
    type Output = StreamState;
    #[inline]
    fn index(&self, stream: Stream) -> &StreamState {
        let index = usize::from(stream.0);
        match self.first.get(index) {
            Some(state) => state,
            None => &self.further[index - self.first.len()],
        }
    }
}

impl IndexMut<Stream> for Streams {
    #[inline]
    fn index_mut(&mut self, stream: Stream) -> &mut StreamState {
        let (index, count) = (usize::from(stream.0), self.first.len());
        match self.first.get_mut(index) {
            Some(state) => state,
            None => &mut self.further[index - count],
        }
    }
}

/// An extent that is moved, and the stream that it is moved to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtentMove {
    pub(crate) lpn: Lpn,
    pub(crate) granules: u32,
    pub(crate) stream: Stream,
    pub(crate) cause: Cause,
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
    /// Granules of each of its units, in the mode that it is written in.
    pub(crate) granules_per_unit: u32,
    /// Granules of the unit that are not taken.
    pub(crate) granules_left: u32,
    /// Places of the unit's present layer that are not taken.
    pub(crate) layer_left: u32,
    /// Units that the present row leaves out, at its end.
    pub(crate) left_out: u32,
}

impl Frontier {
    /// Goes on to unit number `unit`, of `pages` pages.
    #[inline]
    pub(crate) fn begin(&mut self, unit: u32, pages: u32) {
        self.unit = unit;
        self.next = Ppn(self.first.0 + unit * pages);
        self.granules_left = self.granules_per_unit;
        self.layer_left = pages;
    }

    /// Takes the next place for an extent of `granules`, which the unit has left: the superblock,
    /// the place, and whether the unit takes no more.
    #[inline]
    pub(crate) fn take(
        &mut self,
        granules: u32,
        pages_per_superblock: Divider,
        pages_per_unit: Divider,
    ) -> (SuperblockId, Ppn, bool) {
        let ppn = self.next;
        self.next.0 += 1;
        self.granules_left -= granules;
        self.layer_left -= 1;
        if self.layer_left == 0 {
            let (pages, unit) = (pages_per_superblock.divisor(), pages_per_unit.divisor());
            self.next.0 = self.next.0.wrapping_add(pages - unit);
            self.layer_left = unit;
        }
        (self.superblock, ppn, self.granules_left == 0)
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
