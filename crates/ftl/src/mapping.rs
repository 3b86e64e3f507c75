//! The map from logical to physical pages and back.
//!
//! Both directions are plain vectors of 32-bit numbers: eight bytes a page and no more. A physical
//! page is valid exactly when both directions agree, so there is no bitmap to keep in step.

use crate::{Lpn, Ppn};

const NONE: u32 = u32::MAX;

/// L2P and P2L.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    ppn_of: Vec<u32>,
    lpn_of: Vec<u32>,
}

impl Mapping {
    /// Nothing mapped.
    pub(crate) fn new(pages_logical: u32, pages_physical: u32) -> Self {
        Self {
            ppn_of: vec![NONE; pages_logical as usize],
            lpn_of: vec![NONE; pages_physical as usize],
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.ppn_of.fill(NONE);
        self.lpn_of.fill(NONE);
    }

    /// Logical pages that the host sees.
    #[expect(clippy::cast_possible_truncation, reason = "made from a u32")]
    pub(crate) fn pages_logical(&self) -> u32 {
        self.ppn_of.len() as u32
    }

    /// Where `lpn` is.
    #[inline]
    pub(crate) fn ppn(&self, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.ppn_of[lpn.0 as usize];
        (ppn != NONE).then_some(Ppn(ppn))
    }

    /// What is at `ppn`, if it is valid.
    #[inline]
    pub(crate) fn lpn_if_valid(&self, ppn: Ppn) -> Option<Lpn> {
        let lpn = self.lpn_of[ppn.0 as usize];
        (lpn != NONE && self.ppn_of[lpn as usize] == ppn.0).then_some(Lpn(lpn))
    }

    /// How many of the pages from `first` on are valid, of `count`.
    ///
    /// Without a branch on what is found: a wrong guess would end the overlap of cache misses that
    /// this is called for.
    #[inline]
    pub(crate) fn count_valid(&self, first: Ppn, count: u32) -> u32 {
        let pages = &self.lpn_of[first.0 as usize..(first.0 + count) as usize];
        let valid = |(ppn, lpn): (u32, &u32)| {
            let index = if *lpn == NONE { 0 } else { *lpn as usize };
            u32::from(self.ppn_of[index] == ppn)
        };
        (first.0..).zip(pages).map(valid).sum()
    }

    /// Maps `lpn` to `ppn`; returns where it was.
    #[inline]
    pub(crate) fn map(&mut self, lpn: Lpn, ppn: Ppn) -> Option<Ppn> {
        let was = std::mem::replace(&mut self.ppn_of[lpn.0 as usize], ppn.0);
        self.lpn_of[ppn.0 as usize] = lpn.0;
        (was != NONE).then_some(Ppn(was))
    }

    /// Unmaps `lpn`; returns where it was.
    pub(crate) fn unmap(&mut self, lpn: Lpn) -> Option<Ppn> {
        let was = std::mem::replace(&mut self.ppn_of[lpn.0 as usize], NONE);
        (was != NONE).then_some(Ppn(was))
    }
}
