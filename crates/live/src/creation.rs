//! Creating drives, and opening them from their media.

use std::collections::BTreeSet;

use blockio::Bytes;

use crate::checkpoint::Summary;
use crate::dies::{DieSet, Dies};
use crate::header::{Closing, Header, Unfit};
use crate::journal::Position;
use crate::layout::{DIES_MAX, HEADER_BYTES, Layout, PAGE_BYTES};
use crate::recovery::{go_on, recover};
use crate::store::Store;
use crate::{Compression, Drive, Medium, OpenError, Shape};

/// What a drive is to be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Bytes that clients address, a multiple of 4096.
    pub size: Bytes,
    /// Dies, 1 to 64.
    pub dies: u32,
    /// Whether one die of each row protects the others.
    pub is_protected: bool,
    /// Spare space as a share of `size`, above 0: 0.15 costs about four writes for each random one
    /// on a full drive, more space fewer.
    pub over_provisioning: f64,
    /// How pages are stored.
    pub compression: Compression,
    /// Bytes of data that fit as they are stored, a multiple of 4096 and at most `size`; none: as
    /// many as `size`. On a thin drive, which has fewer, writes fail once they are used up.
    pub physical: Option<Bytes>,
}

/// Extents that a page of flash holds at most where pages are compressed; no page is stored in less
/// than this share of one.
const EXTENTS_PER_PAGE: u32 = 4;

impl Plan {
    /// The arrangement that fits a drive of this size.
    ///
    /// # Errors
    /// When there is none.
    pub fn shape(&self) -> Result<Shape, OpenError> {
        let capacity = Capacity { size: self.size, physical: self.physical };
        let (pages_logical, pages_stored_max) = capacity.pages()?;
        let dies_min = 1 + u32::from(self.is_protected);
        if !(dies_min..=DIES_MAX).contains(&self.dies) {
            let what = format!("{} dies, must be {dies_min} to {DIES_MAX}", self.dies);
            return Err(OpenError::refused(what));
        }
        let pages = u64::from(pages_stored_max);
        let is_compressed = self.compression != Compression::None;
        let unit_pages = match pages {
            0..0x1000 if !is_compressed => 4,
            0..0x1_0000 => 16,
            _ => 64,
        };
        let mut shape = Shape {
            pages_logical,
            pages_stored_max,
            pages_mappable: pages_logical,
            dies: self.dies,
            is_protected: self.is_protected,
            unit_pages,
            rows: 1,
            superblocks: 1,
            extents_per_page: if is_compressed { EXTENTS_PER_PAGE } else { 1 },
            compression: self.compression,
            journal_bytes: 0,
        };
        let row_pages = u64::from(shape.data_units() * unit_pages);
        // Several hundred superblocks: few enough to look at, enough to choose among.
        let rows = (pages / (row_pages * 256)).clamp(2, 64);
        shape.rows = u32::try_from(rows).expect("64 at most");
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
        shape.journal_bytes = (row_bytes * 48).max(roomy).next_multiple_of(HEADER_BYTES);
        shape.check()?;
        Ok(shape)
    }
}

/// What clients see of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes that clients address, a multiple of 4096.
    pub size: Bytes,
    /// Bytes of data that fit as they are stored; none: as many as `size`.
    pub physical: Option<Bytes>,
}

impl Capacity {
    /// The same in pages: those that clients address, and those that data may take.
    pub(crate) fn pages(&self) -> Result<(u32, u32), OpenError> {
        let pages = self.size.0 / PAGE_BYTES as u64;
        if pages == 0 || !self.size.0.is_multiple_of(PAGE_BYTES as u64) {
            let size = self.size.0;
            let what = format!("a size of {size} bytes is not a multiple of 4096 above zero");
            return Err(OpenError::refused(what));
        }
        let too_large = || OpenError::refused(format!("{} is beyond 16 TB", self.size));
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

impl Shape {
    /// Bytes that each die has at least.
    pub fn die_bytes(&self) -> Bytes {
        Bytes(Layout::new(self).die_bytes())
    }
}

/// Makes media into the dies of a new drive; what they held is lost. `drive` tells this drive from
/// every other one.
///
/// # Errors
/// When a medium is too small, or fails.
pub fn format(media: Vec<Box<dyn Medium>>, shape: &Shape, drive: u64) -> Result<(), OpenError> {
    shape.check()?;
    let layout = Layout::new(shape);
    let needed = layout.die_bytes();
    if media.len() != shape.dies as usize {
        let what = format!("{} media for {} dies", media.len(), shape.dies);
        return Err(OpenError::refused(what));
    }
    if let Some((die, medium)) = media.iter().enumerate().find(|(_, it)| it.size() < needed) {
        let (found, needed) = (Bytes(medium.size()), Bytes(needed));
        return Err(OpenError::refused(format!("die {die} has {found}, {needed} are needed")));
    }
    let dies = Dies::new(media.into_iter().map(Some).collect(), shape.is_protected);
    let failed = |attempted: &'static str| {
        move |source| OpenError::System { attempted: attempted.to_owned(), source }
    };
    let summary = Summary {
        drive,
        number: 1,
        session: 1,
        order: 1 << 40,
        mark: 1 << 40,
        journal: Position { at: 0, number: 1 },
        pages: shape.pages_logical,
    };
    for die in 0..dies.count() {
        write_empty(&dies, die, &layout, &summary).map_err(failed("writing a first checkpoint"))?;
    }
    let mut header = Header {
        drive,
        die: 0,
        shape: *shape,
        version: 0,
        session: 1,
        is_open: false,
        lost: DieSet::default(),
        done_without: DieSet::default(),
        left_out: DieSet::default(),
        unsafe_shutdowns: 0,
        closing: Closing::default(),
    };
    // Both copies, so that none of an earlier drive is left.
    for _ in 0..2 {
        header.write(&dies).map_err(|(_, error)| failed("writing a header")(error))?;
    }
    Ok(())
}

/// A checkpoint of an empty drive, and no other one.
fn write_empty(dies: &Dies, die: usize, layout: &Layout, summary: &Summary) -> std::io::Result<()> {
    let shape = &layout.shape;
    let sizes = if shape.extents_per_page > 1 { u64::from(shape.pages_logical) } else { 0 };
    let rows = u64::from(shape.rows_total()) * 8;
    let tables =
        [rows, rows, u64::from(shape.superblocks) * 4, u64::from(shape.pages_logical) * 4, sizes];
    let zeroes = vec![0; crate::layout::FRAME_BYTES];
    let mut writer = crate::checkpoint::Writer::new(summary.number);
    let slot = layout.checkpoint_from(summary.number % 2);
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
    let other = layout.checkpoint_from((summary.number + 1) % 2);
    dies.write(die, other, &vec![0; usize::try_from(HEADER_BYTES).expect("a page")])
}

impl Drive {
    /// Opens a drive from its media, in any order; what a crash left is brought back first.
    ///
    /// A die may be missing where the drive is protected.
    ///
    /// # Errors
    /// When the media are not the dies of one drive, or it is damaged; then nothing was changed.
    pub fn open_media(media: Vec<Box<dyn Medium>>) -> Result<Self, OpenError> {
        let (store, mut header) = gather(media)?;
        let was_closed = !header.is_open;
        header.session += 1;
        header.unsafe_shutdowns += u64::from(header.is_open);
        header.is_open = true;
        header
            .write(&store.dies)
            .map_err(|(_, source)| OpenError::medium("writing a header", source))?;
        if was_closed { go_on(store, header) } else { recover(store, header) }
    }
}

/// The drive that media are the dies of, given in any order, and its newest header.
pub(crate) fn gather(media: Vec<Box<dyn Medium>>) -> Result<(Store, Header), OpenError> {
    let (found, unfit) = headers_of(media)?;
    let newest = found.iter().map(|(header, _)| *header).max_by_key(|it| it.version);
    let Some(header) = newest else {
        let none = || OpenError::refused("none of the media is a die of a drive".to_owned());
        return Err(unfit.unwrap_or_else(none));
    };
    let shape = header.shape;
    check_relations(&found, &shape)?;
    let needed = shape.die_bytes();
    let mut slots: Vec<Option<Box<dyn Medium>>> = Vec::new();
    slots.resize_with(shape.dies as usize, || None);
    let mut short = None;
    for (own, medium) in found {
        let die = own.die as usize;
        if medium.size() < needed.0 {
            // As good as missing: nothing says what else of it is gone.
            short = Some((die, Bytes(medium.size())));
        } else if !header.lost.has(die) && slots[die].replace(medium).is_some() {
            return Err(OpenError::refused(format!("die {die} was given twice")));
        }
    }
    let dies = Dies::new(slots, shape.is_protected);
    dies.do_without(header.done_without);
    let (missing, spare) = (dies.missed().count(), u32::from(shape.is_protected));
    if missing > spare {
        return Err(match short {
            Some((die, found)) => {
                OpenError::refused(format!("die {die} has {found}, {needed} are needed"))
            }
            None => OpenError::DiesMissing { missing, dies: shape.dies, spare },
        });
    }
    Ok((Store { layout: Layout::new(&shape), dies, drive: header.drive }, header))
}

/// A medium with the header of a die.
type Found = (Header, Box<dyn Medium>);

/// The media that are dies, each with its newest header; and why another one is none, if it says
/// that it were.
fn headers_of(media: Vec<Box<dyn Medium>>) -> Result<(Vec<Found>, Option<OpenError>), OpenError> {
    let (mut found, mut unfit) = (Vec::new(), None);
    for (die, medium) in media.into_iter().enumerate() {
        match newest_header(&*medium) {
            Ok(Some(header)) => found.push((header, medium)),
            Ok(None) => {}
            Err(Unfit::Version(found)) => return Err(OpenError::Version { die, found }),
            Err(error) => {
                let what = format!("the header of die {die} says what cannot be: {error}");
                unfit.get_or_insert(OpenError::Damaged { what });
            }
        }
    }
    Ok((found, unfit))
}

/// Checks that media are dies of one drive.
fn check_relations(found: &[Found], shape: &Shape) -> Result<(), OpenError> {
    let drives: BTreeSet<u64> = found.iter().map(|(header, _)| header.drive).collect();
    if drives.len() > 1 {
        let what = format!("the media are dies of {} drives", drives.len());
        return Err(OpenError::refused(what));
    }
    // Of what was decided for good every die says the same, however old its header is.
    let is_other = |(header, _): &&Found| {
        let Shape { pages_logical, pages_stored_max, .. } = *shape;
        Shape { pages_logical, pages_stored_max, ..header.shape } != *shape
    };
    match found.iter().find(is_other) {
        Some((header, _)) => {
            let what = format!("die {} says that dies are arranged in another way", header.die);
            Err(OpenError::Damaged { what })
        }
        None => Ok(()),
    }
}

/// The newest header of a medium that is whole and can be.
fn newest_header(medium: &dyn Medium) -> Result<Option<Header>, Unfit> {
    let copies = [0, 1].map(|copy| header_copy(|bytes| medium.read_at(copy * HEADER_BYTES, bytes)));
    // One of another format stays in the way: that one may be the newer one.
    if let Some(version) = copies.iter().find(|it| matches!(it, Err(Unfit::Version(_)))) {
        return version.clone();
    }
    let newest = copies.iter().flatten().flatten().max_by_key(|header| header.version);
    match newest {
        Some(header) => Ok(Some(*header)),
        None => copies.into_iter().find(Result::is_err).unwrap_or(Ok(None)),
    }
}

/// What `read` finds to be a header; none if it is none, or cannot be read.
pub(crate) fn header_copy(
    read: impl FnOnce(&mut [u8]) -> std::io::Result<()>,
) -> Result<Option<Header>, Unfit> {
    let mut bytes = vec![0; usize::try_from(HEADER_BYTES).expect("a page")];
    if read(&mut bytes).is_err() { Ok(None) } else { Header::parse(&bytes) }
}
