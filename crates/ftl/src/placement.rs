//! Placement by the host: reclaim unit handles of NVMe's Flexible Data Placement [nvme-tp4146].
//!
//! Each handle has open superblocks of its own, so that what the host writes through one handle
//! lies apart from what it writes through another. What garbage collection makes of that is the
//! handles' isolation. A reclaim unit is a superblock here, and all of them are one reclaim group:
//! a handle writes its superblocks of all banks in turn.
//!
//! Invariants:
//! - Pages of different persistently isolated handles never lie in one superblock.
//! - Pages that were counted by handle add up to those of [`crate::Counters`].

use crate::table::{Table, Use};
use crate::{Cause, Lpn};

/// Reclaim unit handles of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReclaimUnitHandles {
    /// Number of handles, from 1 to [`ReclaimUnitHandles::COUNT_MAX`]; 1: the host has no say in
    /// where its pages lie.
    pub count: u8,
    /// Isolation of their data.
    pub isolation: Isolation,
}

/// Isolation of the data of one handle from that of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Until garbage collection moves it: what is saved of all handles goes to the same
    /// superblocks.
    Initial,
    /// For good: what is saved of a handle goes to superblocks of its own.
    Persistent,
}

/// Pages programmed for the data of one handle, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandleCounters {
    /// Pages that the host wrote through it.
    pub pages_host: u64,
    /// Pages of its data that garbage collection saved.
    pub pages_relocation: u64,
    /// Pages of its data that wear levelling moved.
    pub pages_wear: u64,
}

impl std::ops::Add for HandleCounters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            pages_host: self.pages_host + other.pages_host,
            pages_relocation: self.pages_relocation + other.pages_relocation,
            pages_wear: self.pages_wear + other.pages_wear,
        }
    }
}

impl HandleCounters {
    /// Counters of logical pages of `pages` x 4 KiB each, in pages of 4 KiB.
    pub(crate) const fn in_pages_of(self, pages: u64) -> Self {
        Self {
            pages_host: self.pages_host * pages,
            pages_relocation: self.pages_relocation * pages,
            pages_wear: self.pages_wear * pages,
        }
    }
}

impl ReclaimUnitHandles {
    /// One handle: placement is the drive's own affair.
    pub const ONE: Self = Self { count: 1, isolation: Isolation::Initial };
    /// Most handles that a drive may have, as NVMe's list of a namespace: 128.
    pub const COUNT_MAX: u8 = 128;

    /// The handle whose data alone lies in the superblocks that `handle` writes; 0: those of all
    /// handles that share what garbage collection saves.
    pub(crate) const fn owner(self, handle: u8) -> u8 {
        match self.isolation {
            Isolation::Initial => 0,
            Isolation::Persistent => handle,
        }
    }

    /// Streams of host writes and of moved pages, each with a superblock open in each bank.
    pub(crate) const fn streams(self, with_wear: bool) -> u32 {
        let moving = if with_wear { 2 } else { 1 };
        let moved = match self.isolation {
            Isolation::Initial => 1,
            Isolation::Persistent => self.count as u32,
        };
        self.count as u32 + moved * moving
    }
}

/// Pages programmed for each handle. Empty where there is one handle only, which costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct ByHandle {
    /// Handle through which each page was written last, by LPN.
    handle_of: Table<u8>,
    counters: Vec<HandleCounters>,
}

impl ByHandle {
    pub(crate) fn new(handles: ReclaimUnitHandles, pages_logical: u32) -> Self {
        let mut by_handle = Self { handle_of: Table::new(0, Use::Whole), counters: Vec::new() };
        if handles.count > 1 {
            by_handle.counters = vec![HandleCounters::default(); usize::from(handles.count)];
            by_handle.resize(pages_logical);
        }
        by_handle
    }

    /// Changes the number of logical pages.
    pub(crate) fn resize(&mut self, pages_logical: u32) {
        if !self.counters.is_empty() {
            self.handle_of.resize(pages_logical as usize);
        }
    }

    /// Counters by handle; empty where there is one only.
    pub(crate) fn counters(&self) -> &[HandleCounters] {
        &self.counters
    }

    /// The handle that a page is placed by: what the host named, or 0 where the drive lacks it.
    #[inline]
    pub(crate) const fn named(&self, handle: u8) -> u8 {
        if (handle as usize) < self.counters.len() { handle } else { 0 }
    }

    /// Counts a page that the host writes.
    #[inline]
    pub(crate) fn write(&mut self, lpn: Lpn, handle: u8) {
        if let Some(counters) = self.counters.get_mut(usize::from(handle)) {
            self.handle_of.entries_mut()[lpn.0 as usize] = handle;
            counters.pages_host += 1;
        }
    }

    /// Counts a page that is moved.
    #[inline]
    pub(crate) fn moved(&mut self, lpn: Lpn, cause: Cause) {
        if self.counters.is_empty() {
            return;
        }
        let handle = self.handle_of.entries()[lpn.0 as usize];
        let counters = &mut self.counters[usize::from(handle)];
        match cause {
            Cause::Wear => counters.pages_wear += 1,
            _ => counters.pages_relocation += 1,
        }
    }

    /// The handle through which a page was written last; 0 where there is one only.
    pub(crate) fn of(&self, lpn: Lpn) -> u8 {
        self.handle_of.entries().get(lpn.0 as usize).copied().unwrap_or_default()
    }
}
