//! Creating drives, and opening them from their media.

use std::ops::RangeInclusive;

use blockio::Bytes;
use status::Compression;

use crate::engine::dies::Dies;
use crate::engine::dies::header_copies;
use crate::engine::store::{Replica, Store};
use crate::format::checkpoint_header::CheckpointHeader;
use crate::format::die_set::DieSet;
use crate::format::header::{Closing, FORMAT_VERSION, FORMAT_VERSION_ENCRYPTED, Header};
use crate::format::key_area::{Cost, KeyArea};
use crate::format::layout::{DIES_MAX, HEADER_BYTES, Layout, PAGE_BYTES, SUPERBLOCK_PAGES_MAX};
use crate::format::media_keys::{MediaKeys, UnlockingKey};
use crate::format::position::Position;
use crate::{Medium, OpenError, Shape};

/// Parameters of a new drive.
///
/// ```
/// use blockio::Bytes;
/// use live::{Compression, Plan};
///
/// let plan = Plan {
///     size: Bytes::from_gb(64),
///     dies: 8,
///     is_protected: true,
///     over_provisioning: 0.15,
///     compression: Compression::Lz4,
///     physical: None,
///     unit: None,
/// };
/// let shape = plan.shape()?;
/// // Seven dies of data and one of parity, and what relocation needs to work in.
/// assert!(shape.die_bytes().0 > Bytes::from_gb(64).0 * 115 / 100 / 7);
///
/// let refused = Plan { dies: 1, ..plan }.shape().unwrap_err();
/// assert!(refused.to_string().contains("1 dies"), "{refused}");
/// # Ok::<(), live::OpenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Bytes that clients address, a multiple of 4096.
    pub size: Bytes,
    /// Dies, 1 to 64.
    pub dies: u32,
    /// True if each row has a unit of parity, so that the drive survives the loss of one die.
    pub is_protected: bool,
    /// Spare space as a share of `size`, above 0: 0.15 costs about four writes for each random one
    /// on a full drive, more space fewer.
    pub over_provisioning: f64,
    /// Compression of pages.
    pub compression: Compression,
    /// Bytes of data that fit as they are stored, a multiple of 4096 and at most `size`; none: as
    /// many as `size`. On a thin drive, which has fewer, writes fail once they are used up.
    pub physical: Option<Bytes>,
    /// Bytes of pages that each die programs in one go, a power of two from 16 KiB to 4 MiB; none:
    /// 256 KiB, less on small drives. More of it costs a medium that seeks fewer seeks, and the
    /// drive memory, a longer journal, and coarser victims.
    pub unit: Option<Bytes>,
}

/// Extents that a page of flash holds at most where pages are compressed; no page is stored in less
/// than this share of one.
const EXTENTS_PER_PAGE: u32 = 4;

/// Pages of a unit that may be chosen.
const UNIT_PAGES_CHOSEN: RangeInclusive<u64> = 4..=1024;

/// Rows that the journal has room for at least; half as many where units are larger than usual.
const JOURNAL_ROWS: u64 = 48;

/// Superblocks that data take at least where units are larger than usual: with fewer to choose
/// among, victims would be dear.
const SUPERBLOCKS_MIN: u64 = 32;

impl Plan {
    /// The arrangement that fits a drive of this size.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn shape(&self) -> Result<Shape, OpenError> {
        let capacity = Capacity { size: self.size, physical: self.physical };
        let (pages_logical, pages_stored_max) = capacity.pages()?;
        let dies_min = 1 + u32::from(self.is_protected);
        if !(dies_min..=DIES_MAX).contains(&self.dies) {
            let why = if self.is_protected { " for a volume with parity" } else { "" };
            let what = format!("{} dies, must be {dies_min} to {DIES_MAX}{why}", self.dies);
            return Err(OpenError::refused(what));
        }
        let pages = u64::from(pages_stored_max);
        let is_compressed = self.compression != Compression::None;
        let mut shape = Shape {
            pages_logical,
            pages_stored_max,
            pages_mappable: pages_logical,
            dies: self.dies,
            is_protected: self.is_protected,
            unit_pages: self.unit_pages_usual(pages),
            rows: 1,
            superblocks: 1,
            extents_per_page: if is_compressed { EXTENTS_PER_PAGE } else { 1 },
            compression: self.compression,
            journal_bytes: 0,
        };
        let usual = shape.unit_pages;
        if let Some(unit) = self.unit {
            shape.unit_pages = unit_pages(unit)?;
        }
        shape.rows = rows_for(&shape, pages);
        let mut journal_rows = JOURNAL_ROWS;
        if shape.unit_pages > usual {
            journal_rows /= 2;
            check_room_for_units(&shape, pages, journal_rows)?;
        }
        let with_spare = pages as f64 * (1.0 + self.over_provisioning);
        let with_spare = (with_spare / shape.config().reliable_share()).ceil();
        let superblocks = (with_spare / f64::from(shape.superblock_pages())).ceil();
        let reserved = shape.config().superblocks_reserved() + 1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32")]
        let superblocks = superblocks.min(f64::from(u32::MAX / 2)) as u32;
        shape.superblocks = superblocks + reserved;
        shape.check_counts()?;
        let data_pages = u32::try_from(shape.geometry().pages()).unwrap_or(u32::MAX);
        shape.pages_mappable = pages_logical.max(data_pages);
        let row_bytes = Layout::new(&shape).unit_bytes as u64 * u64::from(self.dies);
        let roomy = (pages * PAGE_BYTES as u64 / 32).min(256 << 20);
        let journal_bytes = (row_bytes * journal_rows).max(roomy);
        shape.journal_bytes = journal_bytes.next_multiple_of(HEADER_BYTES);
        shape.check()?;
        Ok(shape)
    }

    /// Pages of a unit where the options do not say how many.
    fn unit_pages_usual(&self, pages: u64) -> u32 {
        match pages {
            0..0x1000 if self.compression == Compression::None => 4,
            0..0x1_0000 => 16,
            _ => 64,
        }
    }
}

/// Pages of a unit of so many bytes.
fn unit_pages(unit: Bytes) -> Result<u32, OpenError> {
    let pages = unit.0 / PAGE_BYTES as u64;
    if !unit.0.is_power_of_two() || !UNIT_PAGES_CHOSEN.contains(&pages) {
        let what = format!("a unit of {} bytes, must be a power of two, 16 KiB to 4 MiB", unit.0);
        return Err(OpenError::refused(what));
    }
    Ok(u32::try_from(pages).expect("1024 at most"))
}

/// Capacity of a drive, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes that clients address, a multiple of 4096.
    pub size: Bytes,
    /// Bytes of data that fit as they are stored; none: as many as `size`.
    pub physical: Option<Bytes>,
}

impl Capacity {
    /// Returns the pages that clients address, and those that data may take.
    pub(crate) fn pages(&self) -> Result<(u32, u32), OpenError> {
        let pages = self.size.0 / PAGE_BYTES as u64;
        if pages == 0 || !self.size.0.is_multiple_of(PAGE_BYTES as u64) {
            let size = self.size.0;
            let what = format!("a size of {size} bytes is not a multiple of 4096 above zero");
            return Err(OpenError::refused(what));
        }
        let too_large =
            || OpenError::refused(format!("a size of {} is above the limit of 16 TiB", self.size));
        let pages_logical = u32::try_from(pages).map_err(|_| too_large())?;
        Ok((pages_logical, self.pages_stored_max(pages_logical)?))
    }

    /// Pages of flash that data may take.
    fn pages_stored_max(&self, pages_logical: u32) -> Result<u32, OpenError> {
        let Some(physical) = self.physical else { return Ok(pages_logical) };
        let pages = u32::try_from(physical.0 / PAGE_BYTES as u64).ok();
        let is_whole = physical.0.is_multiple_of(PAGE_BYTES as u64);
        pages.filter(|pages| is_whole && (1..=pages_logical).contains(pages)).ok_or_else(|| {
            let (physical, size) = (physical.0, self.size.0);
            OpenError::refused(format!(
                "{physical} bytes of physical space, must be a multiple of 4096 above zero and at \
                 most the size of {size}"
            ))
        })
    }
}

/// Makes media into the dies of a new drive; what they held is lost. `drive` tells this drive from
/// every other one.
///
/// # Errors
/// Fails if a medium is too small, or fails.
pub fn format(media: Vec<Box<dyn Medium>>, shape: &Shape, drive: u64) -> Result<(), OpenError> {
    format_as(FORMAT_VERSION, media, shape, drive)
}

/// As [`format()`], of an encrypted drive, which opens with that key alone.
///
/// # Errors
/// As [`format()`].
pub fn format_encrypted(
    media: Vec<Box<dyn Medium>>,
    shape: &Shape,
    drive: u64,
    unlocking: &UnlockingKey,
) -> Result<(), OpenError> {
    let secret = unlocking.new_secret().map_err(OpenError::refused)?;
    let keys = MediaKeys::generate(secret, Cost::USUAL, drive).wrapped();
    format_with((FORMAT_VERSION_ENCRYPTED, keys), media, shape, drive)
}

/// As [`format()`], in an earlier format that is still read.
pub(crate) fn format_as(
    version: u32,
    media: Vec<Box<dyn Medium>>,
    shape: &Shape,
    drive: u64,
) -> Result<(), OpenError> {
    format_with((version, KeyArea::default()), media, shape, drive)
}

fn format_with(
    (version, keys): (u32, KeyArea),
    media: Vec<Box<dyn Medium>>,
    shape: &Shape,
    drive: u64,
) -> Result<(), OpenError> {
    shape.check()?;
    let layout = Layout::new(shape);
    let needed = layout.die_bytes();
    if media.len() != shape.dies as usize {
        let what = format!("{} media for {} dies", media.len(), shape.dies);
        return Err(OpenError::refused(what));
    }
    if let Some((die, medium)) = media.iter().enumerate().find(|(_, it)| it.size() < needed) {
        let (found, needed) = (Bytes(medium.size()), Bytes(needed));
        return Err(OpenError::refused(format!(
            "die {die} has {found} bytes, {needed} are needed"
        )));
    }
    let failed = |attempted: &'static str| {
        move |source| OpenError::System { attempted: attempted.to_owned(), source }
    };
    for medium in &media {
        let erased = header_copies::erase_end(&**medium, Some(&layout));
        erased.map_err(failed("erasing a former header"))?;
    }
    let dies = Dies::new(media.into_iter().map(Some).collect(), shape.is_protected);
    let store = Store::new(layout, dies, drive);
    let summary = CheckpointHeader {
        drive,
        number: 1,
        session: 1,
        seq: 1 << 40,
        journal: Position { at: 0, number: 1, link: 0 },
        pages: shape.pages_logical,
    };
    for replica in store.replicas_all() {
        write_empty(&store, replica, &summary).map_err(failed("writing a first checkpoint"))?;
    }
    let mut header = Header {
        format: version,
        drive,
        die: 0,
        shape: *shape,
        version: 0,
        version_everywhere: 0,
        session: 1,
        is_open: false,
        lost: DieSet::default(),
        lost_since: [0; DIES_MAX as usize],
        removed: DieSet::default(),
        left_out: DieSet::default(),
        unsafe_shutdowns: 0,
        closing: Closing { checkpoint: summary.number, journal: summary.journal },
        keys,
    };
    header_copies::write(&mut header, &store.dies)
        .map_err(|(_, error)| failed("writing a header")(error))
}

/// A checkpoint of an empty drive, and no other one.
fn write_empty(store: &Store, replica: Replica, summary: &CheckpointHeader) -> std::io::Result<()> {
    let Store { layout, dies, .. } = store;
    let Replica { die, region } = replica;
    let shape = &layout.shape;
    let sizes = if shape.extents_per_page > 1 { u64::from(shape.pages_logical) } else { 0 };
    let rows = u64::from(shape.rows_total()) * 8;
    let pages = u64::from(shape.pages_logical) * 4;
    let lost = shape.lost_map_bytes() as u64;
    let tables = [rows, rows, u64::from(shape.superblocks) * 4, pages, sizes, lost];
    let zeroes = vec![0; crate::format::layout::FRAME_BYTES];
    let mut writer = crate::engine::log::checkpoint::Writer::new(summary);
    let slot = layout.checkpoint_from(region, summary.number % 2);
    for table in tables {
        let mut left = table;
        while left > 0 {
            let bytes = left.min(zeroes.len() as u64);
            let part = usize::try_from(bytes).expect("a frame");
            let (at, frame) = writer.frame(&zeroes[..part]);
            dies.write(die, slot + at, frame)?;
            left -= bytes;
        }
    }
    dies.write(die, slot, &summary.encode())?;
    let other = layout.checkpoint_from(region, (summary.number + 1) % 2);
    dies.write(die, other, &vec![0; usize::try_from(HEADER_BYTES).expect("a page")])
}

/// Rows of a superblock for a drive of so many pages: so that there are several hundred
/// superblocks, few enough to look at, enough to choose among.
fn rows_for(shape: &Shape, pages: u64) -> u32 {
    let row_pages = u64::from(shape.data_units() * shape.unit_pages);
    // Small units are many.
    let most = 64.max(64 * 64 / u64::from(shape.unit_pages));
    let most = most.min(SUPERBLOCK_PAGES_MAX / row_pages);
    let rows = (pages / (row_pages * 256)).clamp(2, most);
    u32::try_from(rows).expect("1024 at most")
}

/// Checks that a drive of so many pages fills enough superblocks, and that a journal of so many
/// rows takes no more of a die than data do.
fn check_room_for_units(shape: &Shape, pages: u64, journal_rows: u64) -> Result<(), OpenError> {
    let row_pages = u64::from(shape.data_units() * shape.unit_pages);
    let rows_min = (2 * SUPERBLOCKS_MIN).max(journal_rows * u64::from(shape.dies));
    let pages_min = rows_min * row_pages;
    if pages < pages_min {
        let unit = Bytes(u64::from(shape.unit_pages) * PAGE_BYTES as u64);
        let [needed, found] = [pages_min, pages].map(|it| (it * PAGE_BYTES as u64) >> 20);
        let dies = shape.dies;
        return Err(OpenError::refused(format!(
            "units of {unit} on {dies} dies need at least {needed} MiB of space for data, and \
             there are {found} MiB: choose smaller units"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(size: Bytes, dies: u32, unit: Option<Bytes>) -> Plan {
        Plan {
            size,
            dies,
            is_protected: dies > 1,
            over_provisioning: 0.15,
            compression: Compression::None,
            physical: None,
            unit,
        }
    }

    fn refusal(plan: Plan) -> String {
        plan.shape().expect_err("it cannot be").to_string()
    }

    #[test]
    fn numbers_of_dies_that_cannot_be_are_refused_with_those_that_can() {
        let size = Bytes(1 << 30);
        let told = "65 dies, must be 2 to 64 for a volume with parity";
        assert_eq!(refusal(plan(size, 65, None)), told);
        let without = Plan { is_protected: false, ..plan(size, 65, None) };
        assert_eq!(refusal(without), "65 dies, must be 1 to 64");
    }

    #[test]
    fn units_of_the_usual_size_change_nothing() {
        for (size_kib, unit_kib) in [(8 << 10, 16), (64 << 10, 64), (1 << 20, 256)] {
            let size = Bytes::from_kib(size_kib);
            let [usual, chosen] = [None, Some(Bytes::from_kib(unit_kib))]
                .map(|unit| plan(size, 8, unit).shape().unwrap());
            assert_eq!(chosen, usual);
        }
    }

    #[test]
    fn units_that_cannot_be_are_refused_with_what_can() {
        let size = Bytes(1 << 30);
        for bytes in [0, 1, 4096, 8 << 10, 48 << 10, (1 << 20) + 1, 8 << 20, 1 << 63] {
            let text = refusal(plan(size, 1, Some(Bytes(bytes))));
            assert!(text.contains("a power of two, 16 KiB to 4 MiB"), "{text}");
        }
        let text = refusal(plan(size, 8, Some(Bytes(1 << 20))));
        let expected = "units of 1 MiB on 8 dies need at least 1344 MiB of space for data, and \
                        there are 1024 MiB: choose smaller units";
        assert_eq!(text, expected);
        assert!(plan(Bytes(1344 << 20), 8, Some(Bytes(1 << 20))).shape().is_ok());
    }

    #[test]
    fn whatever_the_units_journal_and_superblocks_stay_a_part_of_the_drive() {
        let mut accepted = 0;
        for size_bits in 22..42 {
            for dies in [1, 2, 8, 64] {
                for compression in [Compression::None, Compression::Lz4] {
                    for unit in (14..=22).map(|bits| Bytes(1 << bits)) {
                        let size = Bytes(1 << size_bits);
                        let usual = Plan { compression, ..plan(size, dies, None) };
                        let Ok(usual) = usual.shape() else { continue };
                        let chosen = Plan { compression, ..plan(size, dies, Some(unit)) };
                        let Ok(shape) = chosen.shape() else { continue };
                        accepted += 1;
                        // Of each die no more than twice what data take, or than it usually is.
                        let data = size.0 / u64::from(shape.data_units());
                        let most = (2 * data).max(usual.journal_bytes);
                        assert!(shape.journal_bytes <= most, "{shape:?}");
                        let pages = u64::from(shape.superblock_pages());
                        let few = u64::from(shape.pages_stored_max) / pages;
                        assert!(few >= SUPERBLOCKS_MIN || shape.unit_pages <= usual.unit_pages);
                    }
                }
            }
        }
        assert!(accepted > 500, "{accepted}");
    }
}
