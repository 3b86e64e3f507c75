//! Extents: how much of the flash each logical page takes.
//!
//! A drive that compresses stores a page in less than a page; one that does not stores it whole.
//! Space is counted in **granules**: sixty-fourths of a page where the drive compresses, whole
//! pages where it does not, so that the same arithmetic serves both.

use crate::table::{Table, Use};
use crate::{Config, Lpn};

/// Granules of a page on a drive that compresses: 64 bytes each.
pub(crate) const GRANULES_PER_PAGE: u32 = 64;

/// The sizes of all stored pages, and what they come to.
#[derive(Clone, Debug)]
pub(crate) struct Extents {
    /// Granules by LPN; 0 is a whole page, so that untouched memory means whole pages. Empty where
    /// pages are always whole.
    granules_of: Table<u8>,
    granules_per_page: u32,
    granule_bytes: u64,
    /// Granules that an extent takes at least, so that a unit never runs out of places before it
    /// runs out of granules: if it did, small extents could fill a drive with room to spare.
    granules_min: u32,
    /// Granules that each page takes which the host writes from now on.
    incoming: u32,
    /// Pages that are stored.
    pages: u64,
    stored: u64,
    stored_max: u64,
}

impl Extents {
    /// Extents of an empty drive.
    pub(crate) fn new(config: &Config) -> Self {
        let granules_per_page = config.granules_per_page();
        let granules_min = granules_per_page.div_ceil(config.extents_per_page);
        let least = granules_min * config.extents_per_page;
        assert!(least >= granules_per_page, "the least extents take a page before its places do");
        let pages = if config.extents_per_page > 1 { config.pages_logical } else { 0 };
        Self {
            granules_of: Table::new(pages as usize, Use::Whole),
            granules_per_page,
            granule_bytes: config.geometry.page_bytes() / u64::from(granules_per_page),
            granules_min,
            incoming: granules_per_page,
            pages: 0,
            stored: 0,
            stored_max: u64::from(config.pages_stored_max) * u64::from(granules_per_page),
        }
    }

    /// Changes the number of logical pages, and the number of pages that may be stored.
    pub(crate) fn resize(&mut self, config: &Config) {
        let pages = if config.extents_per_page > 1 { config.pages_logical } else { 0 };
        self.granules_of.resize(pages as usize);
        self.stored_max = u64::from(config.pages_stored_max) * u64::from(self.granules_per_page);
    }

    /// Forgets what is stored.
    pub(crate) fn clear(&mut self) {
        self.granules_of.clear();
        self.pages = 0;
        self.stored = 0;
    }

    /// Pages that the host writes from now on take `bytes` each, at most a page and at least the
    /// share of a page that [`Config::extents_per_page`] leaves to each.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.incoming = self.granules(bytes);
    }

    /// Granules that an extent of so many bytes takes.
    #[inline]
    pub(crate) fn granules(&self, bytes: u64) -> u32 {
        let granules = u32::try_from(bytes.div_ceil(self.granule_bytes())).unwrap_or(u32::MAX);
        granules.clamp(self.granules_min, self.granules_per_page)
    }

    /// True if an extent can take `granules`: from the smallest extent to a whole page.
    pub(crate) fn is_size(&self, granules: u32) -> bool {
        (self.granules_min..=self.granules_per_page).contains(&granules)
    }

    /// True if so many pages can take what is stored.
    fn is_possible(&self) -> bool {
        let (least, most) = (u64::from(self.granules_min), u64::from(self.granules_per_page));
        (self.pages * least..=self.pages * most).contains(&self.stored)
    }

    /// Granules that a page takes which the host writes now.
    #[inline]
    pub(crate) const fn incoming(&self) -> u32 {
        self.incoming
    }

    /// Bytes of a granule.
    pub(crate) const fn granule_bytes(&self) -> u64 {
        self.granule_bytes
    }

    /// Granules that `lpn` takes, if it is stored.
    #[inline]
    pub(crate) fn size(&self, lpn: Lpn) -> u32 {
        if self.granules_per_page == 1 {
            return 1;
        }
        match self.granules_of.get(lpn.0) {
            None | Some(0) => self.granules_per_page,
            Some(granules) => granules.into(),
        }
    }

    /// Has the processor fetch the size of `lpn`, which will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        if self.granules_per_page > 1 {
            self.granules_of.prefetch(lpn.0);
        }
    }

    /// Notes that `lpn`, which took `was` granules if it was stored, now takes `granules`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "at most the granules of a page")]
    pub(crate) fn store(&mut self, lpn: Lpn, was: Option<u32>, granules: u32) {
        debug_assert!(self.is_size(granules), "what is stored has the size of an extent");
        self.pages += u64::from(was.is_none());
        self.stored += u64::from(granules);
        self.stored -= u64::from(was.unwrap_or(0));
        debug_assert!(self.is_possible(), "what is stored is that of its pages");
        if was.unwrap_or(self.granules_per_page) != granules
            && let Some(entry) = self.granules_of.entries_mut().get_mut(lpn.0 as usize)
        {
            *entry = if granules == self.granules_per_page { 0 } else { granules as u8 };
        }
    }

    /// Notes that `lpn`, which took `was` granules, is stored no more.
    pub(crate) fn drop(&mut self, lpn: Lpn, was: u32) {
        self.pages -= 1;
        self.stored -= u64::from(was);
        debug_assert!(self.is_possible(), "what stays stored is that of its pages");
        if let Some(entry) = self.granules_of.entries_mut().get_mut(lpn.0 as usize) {
            *entry = 0;
        }
    }

    /// Granules of each logical page as they are kept: 0 is a whole page.
    pub(crate) fn sizes(&self) -> &[u8] {
        self.granules_of.entries()
    }

    /// Granules of each logical page, to be filled in before anything is stored.
    pub(crate) fn sizes_mut(&mut self) -> &mut [u8] {
        self.granules_of.entries_mut()
    }

    /// Fills in the size of one page, which takes `bytes`.
    #[inline]
    pub(crate) fn set_size(&mut self, lpn: Lpn, bytes: u64) {
        if self.granules_per_page == 1 {
            return;
        }
        let granules = self.granules(bytes) % self.granules_per_page;
        if let Some(entry) = self.granules_of.entries_mut().get_mut(lpn.0 as usize) {
            *entry = u8::try_from(granules).expect("a page has 64 granules");
        }
    }

    /// Pages stored.
    pub(crate) const fn pages(&self) -> u64 {
        self.pages
    }

    /// Counts a page whose size was filled in; returns its granules.
    pub(crate) fn count(&mut self, lpn: Lpn) -> u32 {
        let granules = self.size(lpn);
        self.pages += 1;
        self.stored += u64::from(granules);
        granules
    }

    /// Granules stored.
    pub(crate) const fn stored(&self) -> u64 {
        self.stored
    }

    /// Most granules that may be stored.
    pub(crate) const fn stored_max(&self) -> u64 {
        self.stored_max
    }
}
