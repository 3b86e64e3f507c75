//! Logical pages of consecutive places, as the owner of the media told them.

use crate::{Lpn, Ppn};

/// Logical pages of consecutive physical pages, as the owner of the media told them.
#[derive(Clone, Debug, Default)]
pub(crate) struct P2lCache {
    /// Number of the first of them.
    pub(crate) first: u32,
    pub(crate) pages: Vec<Option<Lpn>>,
}

impl P2lCache {
    /// Begins a cache of `count` pages from number `first` on, none of them known.
    pub(crate) fn begin(&mut self, first: u32, count: u32) {
        self.first = first;
        self.pages.clear();
        self.pages.resize(count as usize, None);
    }

    /// True if `ppn` is one of the cached pages.
    pub(crate) fn covers(&self, ppn: Ppn) -> bool {
        ppn.0.checked_sub(self.first).is_some_and(|index| (index as usize) < self.pages.len())
    }

    /// Logical page that was told for `ppn`, which must be cached; `None` if nothing was.
    pub(crate) fn at(&self, ppn: Ppn) -> Option<Lpn> {
        self.pages[(ppn.0 - self.first) as usize]
    }

    /// Forgets what was said.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }
}
