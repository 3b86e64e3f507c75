//! Bringing a flash translation layer back from what was kept of it, and from what its media says.
//!
//! The owner loads the map that it saved, corrects it by what happened since, and says how far each
//! superblock was written. The rest follows from the map: what is valid, and so which superblocks
//! are free.
//!
//! Invariant: superblocks of which nothing is mapped come back free, whatever they hold.

use blockio::Bytes;
use thiserror::Error;

use crate::stream::Stream;

use crate::{
    Cause, Config, ConfigError, Debt, Divider, Ftl, Lpn, Ppn, SuperblockId, SuperblockState,
};

/// State of one superblock as a recovery found it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveredSuperblock {
    /// Completed program/erase cycles.
    pub erase_count: u32,
    /// Units from its beginning on that nothing more may be programmed into.
    pub units_written: u32,
    /// Stream that goes on with the next unit; none: the superblock is closed, however full.
    pub goes_on: Option<Cause>,
}

/// Reason why a recovered map is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MapError {
    /// Another page is there, there is no such place, or no page takes so much of it.
    #[error("page {lpn} cannot be at place {ppn}")]
    Page {
        /// The page.
        lpn: u32,
        /// The place.
        ppn: u32,
    },
    /// More is mapped to a superblock than it can hold.
    #[error("superblock {0} holds more than it can")]
    Superblock(u32),
    /// More is stored than leaves relocation something to gain.
    #[error("more is stored than there is room for")]
    Room,
}

/// A map that is being brought back.
#[derive(Debug)]
pub struct Recovery {
    ftl: Ftl<Debt>,
}

impl Recovery {
    /// Begins with nothing mapped. The reverse map is not kept in memory, which saves four bytes a
    /// place: the owner is asked for the logical page when a place is to be relocated
    /// ([`crate::Media::contents`]).
    ///
    /// # Errors
    /// As [`Ftl::format`].
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let mut ftl = Ftl::begin(config)?;
        ftl.mapping.leave_contents();
        Ok(Self { ftl })
    }

    /// Map to be filled in: by LPN, the PPN plus one, 0 being none; as
    /// [`crate::Map::entries`] gave it out.
    pub fn map_entries_mut(&mut self) -> &mut [u32] {
        self.ftl.mapping.entries_mut()
    }

    /// Extent sizes to be filled in: by LPN, in granules, as
    /// [`crate::Map::extent_sizes`] gave them out.
    pub fn extent_sizes_mut(&mut self) -> &mut [u8] {
        self.ftl.extents.sizes_mut()
    }

    /// Physical page of `lpn`, as far as is known.
    pub fn place(&self, lpn: Lpn) -> Option<Ppn> {
        self.ftl.mapping.ppn(lpn)
    }

    /// Has the processor fetch the map entry of a page whose place will be corrected soon.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        self.ftl.mapping.prefetch(lpn);
    }

    /// Corrects where `lpn` is: nowhere, or at a place where it takes `extent`; says whether it was
    /// anywhere.
    #[inline]
    pub fn set_place(&mut self, lpn: Lpn, place: Option<(Ppn, Bytes)>) -> bool {
        let entry = &mut self.ftl.mapping.entries_mut()[lpn.0 as usize];
        let was = std::mem::replace(entry, place.map_or(0, |(ppn, _)| ppn.0 + 1));
        let page_bytes = self.ftl.config.geometry.page_bytes();
        self.ftl.extents.set_size(lpn, place.map_or(page_bytes, |(_, extent)| extent.0));
        was != 0
    }

    /// Derives everything else from the map.
    ///
    /// `superblocks` are all of them by their index; `closed` is the order in which those that were
    /// written had been closed or opened, earliest first.
    ///
    /// # Errors
    /// Fails if no drive can have come to such a map.
    pub fn finish(
        mut self,
        superblocks: &[RecoveredSuperblock],
        closed: &[SuperblockId],
    ) -> Result<Ftl<Debt>, MapError> {
        let count = self.ftl.config.geometry.superblocks() as usize;
        assert_eq!(superblocks.len(), count, "every superblock was looked for");
        self.count_stored()?;
        let ftl = &mut self.ftl;
        let counts = &mut ftl.superblocks;
        for id in closed {
            let found = &superblocks[id.0 as usize];
            let is_empty = found.units_written == 0 || counts.granules_valid(*id) == 0;
            let state = match (is_empty, found.goes_on) {
                (true, _) => SuperblockState::Free,
                (false, Some(_)) if found.units_written < ftl.units_per_superblock => {
                    SuperblockState::Open
                }
                (false, _) => SuperblockState::Closed,
            };
            counts.restore(*id, state);
        }
        for (id, found) in ftl.superblocks.ids().zip(superblocks) {
            ftl.superblocks.set_erase_count(id, found.erase_count);
        }
        for id in closed {
            if ftl.superblocks.state(*id) == SuperblockState::Open {
                ftl.resume(*id, superblocks[id.0 as usize]);
            }
        }
        let banks = ftl.config.geometry.banks;
        ftl.streams.iter_mut().for_each(|stream| stream.banks_joined = banks);
        ftl.count_room();
        ftl.held = Some(Vec::new());
        Ok(self.ftl)
    }

    /// Counts what the map says to be stored, and where.
    fn count_stored(&mut self) -> Result<(), MapError> {
        let ftl = &mut self.ftl;
        let (config, extents, counts) = (&ftl.config, &mut ftl.extents, &mut ftl.superblocks);
        let superblocks = config.geometry.superblocks();
        let places = Divider::new(config.places_per_superblock());
        let completed = ftl.mapping.complete(|lpn, ppn| {
            let superblock = SuperblockId(places.divide(ppn.0).0);
            let granules = extents.count(lpn);
            let is_possible = superblock.0 < superblocks && extents.is_size(granules);
            if is_possible {
                counts.validate(superblock, granules);
            }
            is_possible
        });
        completed.map_err(|(lpn, ppn)| MapError::Page { lpn: lpn.0, ppn: ppn.0 })?;
        let most = config.granules_per_superblock();
        if let Some(id) = counts.ids().find(|id| counts.granules_valid(*id) > most) {
            return Err(MapError::Superblock(id.0));
        }
        let reserved = config.superblocks_reserved();
        let usable = u64::from(superblocks.saturating_sub(reserved)) * config.granules_reliable();
        if extents.stored() > usable { Err(MapError::Room) } else { Ok(()) }
    }
}

impl Ftl<Debt> {
    /// Has free superblocks wait until the owner releases them, as those do that are erased from
    /// now on: for an owner whose media hold something there that still counts.
    ///
    /// # Panics
    /// When one is not free, or waits already.
    pub fn hold_back(&mut self, superblocks: &[SuperblockId]) {
        for id in superblocks {
            let bank = self.bank_of(*id) as usize;
            let at = self.free_by_bank[bank].iter().position(|free| free == id);
            self.free_by_bank[bank].remove(at.expect("it is free"));
            self.room -= u64::from(self.config.granules_per_superblock());
        }
        self.held.get_or_insert_default().extend(superblocks);
        self.watch_room();
    }

    /// Goes on with a superblock that was open; a second one of the same stream is closed.
    fn resume(&mut self, superblock: SuperblockId, found: RecoveredSuperblock) {
        let bank = self.bank_of(superblock) as usize;
        let stream = match found.goes_on {
            Some(Cause::Relocation) => Stream::RELOCATION,
            Some(Cause::Wear) => Stream::WEAR,
            _ => Stream::HOST,
        };
        if self.streams[stream].frontiers[bank].is_some() {
            self.superblocks.close(superblock);
        } else {
            let frontier = self.frontier(superblock, found.units_written);
            self.streams[stream].frontiers[bank] = Some(frontier);
        }
    }

    /// Counts the room of free and open superblocks.
    fn count_room(&mut self) {
        let free = u64::from(self.superblocks.free());
        let mut room = free * u64::from(self.config.granules_per_superblock());
        let open = self.streams.iter().flat_map(|stream| &stream.frontiers).flatten();
        for frontier in open {
            let units = self.units_per_superblock - frontier.unit;
            room += u64::from(units) * u64::from(self.granules_per_unit);
        }
        self.room = room;
        self.assert_room();
        self.list_free();
        self.watch_room();
    }
}
