//! Configuration that a flash translation layer is formatted with, and the check of feasibility.

use blockio::Bytes;
use thiserror::Error;

use crate::extent::GRANULES_PER_PAGE;
use crate::{DieId, Geometry, ReclaimUnitHandles, VictimPolicy};

/// Everything that a format decides.
///
/// A format that cannot work is refused with the reason:
///
/// ```
/// use ftl::{Config, ConfigError, Geometry};
/// # let geometry = Geometry {
/// #     banks: 1, dies_per_bank: 4, planes_per_die: 1, erase_blocks_per_plane: 16,
/// #     pages_per_erase_block: 8, page_kib: 4, indirection_kib: 4, stripe_dies: 4,
/// # };
/// # let config = Config {
/// #     geometry, pages_logical: 192, pages_stored_max: 192, extents_per_page: 1,
/// #     victim: ftl::VictimPolicy::Greedy,
/// #     watermarks: ftl::Watermarks {
/// #         low: 3, high: 4, burst: 0.1, price_max: 0.0, batch_pages: 1,
/// #     },
/// #     wear_spread_max: 0, handles: ftl::ReclaimUnitHandles::ONE,
/// #     slc_cache: None, seed: 1,
/// # };
/// assert_eq!(config.check(), Ok(()));
/// let full = Config { pages_logical: 380, pages_stored_max: 380, ..config };
/// let refused = full.check().unwrap_err();
/// assert!(matches!(refused, ConfigError::NoSpare { .. }), "{refused}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Arrangement of the media.
    pub geometry: Geometry,
    /// Logical pages that the host sees.
    pub pages_logical: u32,
    /// Pages of flash that the host's data may take: `pages_logical`, or fewer where a drive offers
    /// more than it could store whole.
    pub pages_stored_max: u32,
    /// Most extents that a page of flash holds; 1: pages are stored whole.
    pub extents_per_page: u32,
    /// Victim selection of garbage collection.
    pub victim: VictimPolicy,
    /// Thresholds of garbage collection.
    pub watermarks: Watermarks,
    /// Static wear levelling begins when the erase counts of two superblocks differ by more than
    /// this. Zero: never.
    pub wear_spread_max: u32,
    /// Reclaim unit handles by which the host places what it writes.
    pub handles: ReclaimUnitHandles,
    /// SLC cache; absent where there is none.
    pub slc_cache: Option<SlcCache>,
    /// Seed of the random choices (d-choices).
    pub seed: u64,
}

/// Thresholds of garbage collection by the room left, in superblocks: free ones, and what the open
/// ones have left.
///
/// ```text
///  room   > high            relocation rests
///  high ≥ room > low        relocation keeps pace with host writes, unless it is too dear
///  room  ≤ low              host writes wait until there is room for `burst` more
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watermarks {
    /// At or below this, host writes wait; more than can be open, since all of it could be there.
    pub low: u32,
    /// At or below this, relocation keeps pace with host writes; above `low`.
    pub high: u32,
    /// Room gained while host writes wait, above 0: 0.3 is about one victim that was 70 % valid.
    pub burst: f64,
    /// Most pages relocated for each page gained while keeping pace; a victim that costs more is
    /// put off until host writes wait for it. 0: relocation never keeps pace.
    pub price_max: f64,
    /// Pages relocated in a go while keeping pace, once that many are owed; 1: as they fall due.
    pub batch_pages: u32,
}

/// Reason why a format is not feasible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Too many pages for 32-bit page numbers.
    #[error(
        "{pages} places for pages of {page_kib} KiB exceed the {limit} that 32-bit page numbers \
         reach; a coarser indirection unit needs fewer"
    )]
    TooLarge {
        /// Pages asked for.
        pages: u64,
        /// Size of each, in KiB.
        page_kib: u32,
        /// Most that are possible.
        limit: u64,
    },
    /// Some count is zero or beyond its limit.
    #[error("{name} is {value}, must be {limit}")]
    OutOfRange {
        /// Name of the setting.
        name: &'static str,
        /// Its value, as text.
        value: String,
        /// Range that it must be in, as text.
        limit: String,
    },
    /// The user capacity leaves too little to work with.
    #[error(
        "user capacity of {pages_logical} pages exceeds the {limit} pages that {superblocks} \
         superblocks leave after {reserved} kept for relocation"
    )]
    NoSpare {
        /// Pages asked for.
        pages_logical: u64,
        /// Most that are possible.
        limit: u64,
        /// Superblocks of the drive.
        superblocks: u32,
        /// Superblocks of room that garbage collection keeps.
        reserved: u32,
    },
}

/// Superblocks that may be in SLC mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlcCache {
    /// Bits per cell of the media: 2 for MLC, 3 for TLC, 4 for QLC. A program unit is programmed at
    /// once, so its pages are a multiple of this.
    pub bits_per_cell: u32,
    /// Superblocks that may be in SLC mode however full the drive is. User capacity excludes them.
    pub superblocks_static: u32,
    /// Further superblocks that may be in SLC mode while the drive is empty, if there is room.
    pub superblocks_dynamic: u32,
    /// Stored share of the user capacity, above 0 and at most 1, from which on there are no further
    /// superblocks. Below it their number falls in proportion.
    pub full_at: f64,
}

impl Config {
    /// Places for extents in a superblock.
    pub(crate) const fn places_per_superblock(&self) -> u32 {
        self.geometry.pages_per_superblock() * self.extents_per_page
    }

    /// Capacity that the host sees.
    pub const fn user_capacity(&self) -> Bytes {
        Bytes(self.pages_logical as u64 * self.geometry.page_bytes())
    }

    /// Memory of the map in both directions and of the validity of pages: 4 bytes for each logical
    /// page, 4 bytes and a bit for each physical one; with several reclaim unit handles another
    /// byte for each logical page.
    pub const fn map_bytes(&self) -> Bytes {
        let physical = self.geometry.pages();
        let of_logical = if self.handles.count > 1 { 5 } else { 4 };
        Bytes(self.pages_logical as u64 * of_logical + physical * 4 + physical.div_ceil(8))
    }

    /// Granules of a page; see [`crate::extent`].
    pub(crate) const fn granules_per_page(&self) -> u32 {
        if self.extents_per_page > 1 { GRANULES_PER_PAGE } else { 1 }
    }

    /// Granules of a superblock.
    pub(crate) const fn granules_per_superblock(&self) -> u32 {
        self.geometry.pages_per_superblock() * self.granules_per_page()
    }

    /// Granules of a superblock that can be relied upon: an extent never lies in two units, so a
    /// unit may be closed with all but one granule of a page unused.
    pub(crate) const fn granules_reliable(&self) -> u64 {
        let (geometry, granules) = (&self.geometry, self.granules_per_page() as u64);
        let pages_per_unit = geometry.pages_per_unit() as u64;
        let units = geometry.pages_per_superblock() as u64 / pages_per_unit;
        units * (pages_per_unit * granules - (granules - 1))
    }

    /// Share of a superblock that data can always fill, 0.0 to 1.0.
    pub fn reliable_share(&self) -> f64 {
        self.granules_reliable() as f64 / f64::from(self.granules_per_superblock())
    }

    /// Superblocks that can be without data worth keeping and yet no victims: the room that garbage
    /// collection works towards, and the open ones. The rest of the spare space makes it cheap.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    pub fn superblocks_reserved(&self) -> u32 {
        let resume = self.watermarks.low + self.watermarks.burst.ceil() as u32;
        let open = self.watermarks.high.max(resume + self.superblocks_open_max());
        open + self.slc_cache.map_or(0, |cache| cache.superblocks_static)
    }

    /// Superblocks open at most: one in each bank for each handle of the host, for garbage
    /// collection, and for wear levelling where there is any; the latter two for each handle that
    /// is persistently isolated. One more where host writes may pass an SLC cache.
    const fn superblocks_open_max(&self) -> u32 {
        let direct = if self.slc_cache.is_some() { 1 } else { 0 };
        (self.handles.streams(self.wear_spread_max > 0) + direct) * self.geometry.banks
    }

    /// Checks that this format can work.
    ///
    /// # Errors
    /// Names the first count that cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        let geometry = &self.geometry;
        let at_least_one = [
            ("banks", geometry.banks),
            ("dies_per_bank", geometry.dies_per_bank),
            ("planes_per_die", geometry.planes_per_die),
            ("erase_blocks_per_plane", geometry.erase_blocks_per_plane),
            ("pages_per_erase_block", geometry.pages_per_erase_block),
            ("pages_logical", self.pages_logical),
            ("pages_stored_max", self.pages_stored_max),
            ("extents_per_page", self.extents_per_page),
        ];
        for (name, value) in at_least_one {
            check(name, value, value >= 1, "at least 1")?;
        }
        let rows = u64::from(geometry.pages_per_erase_block);
        check("pages_per_erase_block", rows, rows <= 65_535, "at most 65535")?;
        let dies = u64::from(geometry.dies_per_bank);
        check("dies_per_bank", dies, dies <= 65_535, "at most 65535")?;
        let page_kib = u64::from(geometry.page_kib);
        check("page_kib", page_kib, page_kib > 0 && page_kib % 4 == 0, "a multiple of 4")?;
        self.check_indirection()?;
        let extents = u64::from(self.extents_per_page);
        let limit = u64::from(GRANULES_PER_PAGE);
        check("extents_per_page", extents, extents <= limit, &format!("at most {limit}"))?;
        let (stored, logical) = (self.pages_stored_max, self.pages_logical);
        let limit = format!("at most pages_logical ({logical})");
        check("pages_stored_max", stored, stored <= logical, &limit)?;
        let (handles, limit) = (self.handles.count, ReclaimUnitHandles::COUNT_MAX);
        let fits = (1..=limit).contains(&handles);
        check("handles.count", handles, fits, &format!("from 1 to {limit}"))?;
        self.check_slc_cache()?;
        self.check_stripe()?;
        self.check_watermarks()?;
        self.check_capacity()
    }

    fn check_indirection(&self) -> Result<(), ConfigError> {
        let Geometry { planes_per_die, page_kib, indirection_kib, .. } = self.geometry;
        let value = u64::from(indirection_kib);
        let limit = format!("a power of two from 4 to {}", Geometry::INDIRECTION_KIB_MAX);
        let fits = indirection_kib.is_power_of_two()
            && (4..=Geometry::INDIRECTION_KIB_MAX).contains(&indirection_kib);
        check("indirection_kib", value, fits, &limit)?;
        let together = u64::from(planes_per_die) * u64::from(page_kib);
        let limit = format!("a divisor of the {together} KiB that a die reads at a time");
        check("indirection_kib", value, together.is_multiple_of(value), &limit)?;
        let fits = indirection_kib == 4 || self.extents_per_page == 1;
        check("indirection_kib", value, fits, "4 where pages are compressed")
    }

    fn check_slc_cache(&self) -> Result<(), ConfigError> {
        let Some(cache) = self.slc_cache else { return Ok(()) };
        let bits = u64::from(cache.bits_per_cell);
        let fits = (2..=8).contains(&bits);
        check("slc_cache.bits_per_cell", bits, fits, "from 2 to 8")?;
        let pages = u64::from(self.geometry.pages_per_unit());
        let limit = format!("a divisor of the {pages} pages of a program unit");
        check("slc_cache.bits_per_cell", bits, pages.is_multiple_of(bits), &limit)?;
        let full_at = cache.full_at;
        check(
            "slc_cache.full_at",
            full_at,
            full_at > 0.0 && full_at <= 1.0,
            "above 0 and at most 1",
        )?;
        let fits = self.extents_per_page == 1 && self.handles.count == 1;
        let limit = "absent where pages are compressed, or placed by several handles";
        check("slc_cache.bits_per_cell", bits, fits, limit)
    }

    fn check_stripe(&self) -> Result<(), ConfigError> {
        let (stripe, dies) = (self.geometry.stripe_dies, self.geometry.dies_per_bank);
        let fits = stripe == 0 || (stripe >= 2 && dies % stripe == 0);
        let limit = format!("0, or a divisor of dies_per_bank ({dies}) and at least 2");
        check("stripe_dies", stripe, fits, &limit)
    }

    fn check_watermarks(&self) -> Result<(), ConfigError> {
        let (low, high, open) =
            (self.watermarks.low, self.watermarks.high, self.superblocks_open_max());
        let limit = format!("above the {open} superblocks that can be open");
        check("watermarks.low", low, low > open, &limit)?;
        check("watermarks.high", high, high > low, &format!("above low ({low})"))?;
        let (burst, price_max) = (self.watermarks.burst, self.watermarks.price_max);
        check("watermarks.burst", burst, burst > 0.0 && burst.is_finite(), "above 0")?;
        check("watermarks.price_max", price_max, price_max >= 0.0, "0 or above")
    }

    fn check_capacity(&self) -> Result<(), ConfigError> {
        let limit = u64::from(u32::MAX);
        let pages = self.geometry.pages() * u64::from(self.extents_per_page);
        if pages >= limit {
            let page_kib = self.geometry.indirection_kib;
            return Err(ConfigError::TooLarge { pages, page_kib, limit });
        }
        self.check_spare(self.geometry.superblocks(), self.superblocks_reserved(), 0)
    }

    /// Checks that a drive of this format has `die`.
    pub(crate) fn check_die(&self, die: DieId) -> Result<(), ConfigError> {
        let dies = self.geometry.dies();
        check("die", die.0, die.0 < dies, &format!("below {dies}, the dies of a module"))
    }

    /// Checks that a drive of this format can do without `dies`, each named once.
    ///
    /// # Errors
    /// Fails if there is no such die, or too little would be left for the user capacity.
    pub fn check_without(&self, dies: &[DieId]) -> Result<(), ConfigError> {
        let geometry = &self.geometry;
        dies.iter().try_for_each(|die| self.check_die(*die))?;
        let left = self.data_units_without(dies);
        check("dies that hold data", left, left >= 1, "at least 1 in each row, parity aside")?;
        let granules_lost =
            self.pages_per_die() * u64::from(self.granules_per_page()) * dies.len() as u64;
        // One more than usual is kept: moving off a die opens a superblock of its own.
        let reserved = self.superblocks_reserved() + 1;
        self.check_spare(geometry.superblocks(), reserved, granules_lost)
    }

    /// Logical pages that a die holds.
    pub(crate) const fn pages_per_die(&self) -> u64 {
        let Geometry { erase_blocks_per_plane, pages_per_erase_block, .. } = self.geometry;
        erase_blocks_per_plane as u64
            * pages_per_erase_block as u64
            * self.geometry.pages_per_unit() as u64
    }

    /// Data units that the row with fewest has without `dies`: rows turn the stripes of a bank
    /// through all of its dies, and each stripe keeps one of its dies for parity.
    fn data_units_without(&self, dies: &[DieId]) -> u32 {
        let Geometry { dies_per_bank, stripe_dies, .. } = self.geometry;
        let (stripe, parity) = if stripe_dies == 0 { (dies_per_bank, 0) } else { (stripe_dies, 1) };
        let of_row = |bank: u32, row: u32| {
            let stripes = 0..dies_per_bank / stripe;
            let left = stripes.map(|number| {
                let is_in = |die: &&DieId| {
                    let position = (die.0 % dies_per_bank + dies_per_bank - row) % dies_per_bank;
                    die.0 / dies_per_bank == bank && position / stripe == number
                };
                let lost = u32::try_from(dies.iter().filter(is_in).count()).expect("dies");
                stripe.saturating_sub(parity + lost)
            });
            left.sum::<u32>()
        };
        let banks = dies.iter().map(|die| die.0 / dies_per_bank);
        let rows = banks.flat_map(|bank| (0..dies_per_bank).map(move |row| (bank, row)));
        let fewest = rows.map(|(bank, row)| of_row(bank, row)).min();
        fewest.unwrap_or_else(|| self.geometry.data_units_per_row())
    }

    /// Checks that `superblocks`, less those `reserved` for relocation and less `granules_lost`
    /// that a failed die held of them, hold all data and leave something to gain.
    pub(crate) fn check_spare(
        &self,
        superblocks: u32,
        reserved: u32,
        granules_lost: u64,
    ) -> Result<(), ConfigError> {
        let usable = u64::from(superblocks.saturating_sub(reserved)) * self.granules_reliable();
        let granules = usable.saturating_sub(granules_lost);
        let limit = granules / u64::from(self.granules_per_page());
        let pages_logical = u64::from(self.pages_stored_max);
        if pages_logical >= limit {
            return Err(ConfigError::NoSpare { pages_logical, limit, superblocks, reserved });
        }
        Ok(())
    }
}

fn check(
    name: &'static str,
    value: impl Copy + ToString,
    holds: bool,
    limit: &str,
) -> Result<(), ConfigError> {
    if holds {
        Ok(())
    } else {
        Err(ConfigError::OutOfRange { name, value: value.to_string(), limit: limit.to_owned() })
    }
}
