//! Creating drives, and opening them from their media.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use blockio::Bytes;

use crate::checkpoint::Summary;
use crate::dies::{DieSet, Dies};
use crate::header::{Closing, Header, Unfit};
use crate::journal::Position;
use crate::layout::{DIES_MAX, HEADER_BYTES, Layout, PAGE_BYTES, SUPERBLOCK_PAGES_MAX};
use crate::mutants::{self, Mutant};
use crate::store::{Replica, Store};
use crate::{Compression, Drive, Medium, OpenError, Shape, recovery};

/// Parameters of a new drive.
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
        shape.rows = shape.rows_for(pages);
        let mut journal_rows = JOURNAL_ROWS;
        if shape.unit_pages > usual {
            journal_rows /= 2;
            shape.check_room_for_units(pages, journal_rows)?;
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

    /// Pages of a unit where nobody says how many.
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

impl Shape {
    /// Rows of a superblock for a drive of so many pages: so that there are several hundred
    /// superblocks, few enough to look at, enough to choose among.
    fn rows_for(&self, pages: u64) -> u32 {
        let row_pages = u64::from(self.data_units() * self.unit_pages);
        // Small units are many.
        let most = 64.max(64 * 64 / u64::from(self.unit_pages));
        let most = most.min(SUPERBLOCK_PAGES_MAX / row_pages);
        let rows = (pages / (row_pages * 256)).clamp(2, most);
        u32::try_from(rows).expect("1024 at most")
    }

    /// Checks that a drive of so many pages fills enough superblocks, and that a journal of so many
    /// rows takes no more of a die than data do.
    fn check_room_for_units(&self, pages: u64, journal_rows: u64) -> Result<(), OpenError> {
        let row_pages = u64::from(self.data_units() * self.unit_pages);
        let rows_min = (2 * SUPERBLOCKS_MIN).max(journal_rows * u64::from(self.dies));
        let pages_min = rows_min * row_pages;
        if pages < pages_min {
            let unit = Bytes(u64::from(self.unit_pages) * PAGE_BYTES as u64);
            let [needed, found] = [pages_min, pages].map(|it| (it * PAGE_BYTES as u64) >> 20);
            let dies = self.dies;
            return Err(OpenError::refused(format!(
                "units of {unit} on {dies} dies are for {needed} MiB of data at least, here it is \
                 {found} MiB: choose smaller ones"
            )));
        }
        Ok(())
    }
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
    let store = Store::new(layout, dies, drive);
    let failed = |attempted: &'static str| {
        move |source| OpenError::System { attempted: attempted.to_owned(), source }
    };
    let summary = Summary {
        drive,
        number: 1,
        session: 1,
        order: 1 << 40,
        journal: Position { at: 0, number: 1, link: 0 },
        pages: shape.pages_logical,
    };
    for replica in store.replicas_all() {
        write_empty(&store, replica, &summary).map_err(failed("writing a first checkpoint"))?;
    }
    let mut header = Header {
        drive,
        die: 0,
        shape: *shape,
        version: 0,
        version_everywhere: 0,
        session: 1,
        is_open: false,
        lost: DieSet::default(),
        done_without: DieSet::default(),
        left_out: DieSet::default(),
        unsafe_shutdowns: 0,
        closing: Closing { checkpoint: summary.number, journal: summary.journal },
    };
    header.write(&store.dies).map_err(|(_, error)| failed("writing a header")(error))
}

/// A checkpoint of an empty drive, and no other one.
fn write_empty(store: &Store, replica: Replica, summary: &Summary) -> std::io::Result<()> {
    let Store { layout, dies, .. } = store;
    let Replica { die, region } = replica;
    let shape = &layout.shape;
    let sizes = if shape.extents_per_page > 1 { u64::from(shape.pages_logical) } else { 0 };
    let rows = u64::from(shape.rows_total()) * 8;
    let pages = u64::from(shape.pages_logical) * 4;
    let lost = shape.lost_map_bytes() as u64;
    let tables = [rows, rows, u64::from(shape.superblocks) * 4, pages, sizes, lost];
    let zeroes = vec![0; crate::layout::FRAME_BYTES];
    let mut writer = crate::checkpoint::Writer::new(summary);
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

impl Drive {
    /// Opens a drive from its media, in any order; what a crash left is brought back first.
    ///
    /// A die may be missing where the drive is protected.
    ///
    /// # Errors
    /// When the media are not the dies of one drive, or it is damaged; then nothing was changed.
    pub fn open_media(media: Vec<Box<dyn Medium>>) -> Result<Self, OpenError> {
        let Gathered { store, header, unused } = gather(media)?;
        let mut drive = recovery::open(store, header)?;
        drive.set_unused_media(unused);
        Ok(drive)
    }
}

/// The dies of a drive, found among media that were given in any order.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) store: Store,
    /// The newest header.
    pub(crate) header: Header,
    /// Media that are not used, with why: one sentence each.
    pub(crate) unused: Vec<Unused>,
}

/// A medium that is not used as a die.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unused {
    /// The die of the drive that it says it is; none where it is none of them.
    pub(crate) die: Option<u32>,
    pub(crate) text: String,
}

/// The drive that media are the dies of, given in any order, and its newest header.
///
/// Media of another drive, copies that hold an earlier state, and media that are too short are left
/// aside, so that a protected drive opens without them.
///
/// # Errors
/// When that leaves too few dies, naming each medium that was left aside, or when media of more
/// than one drive could be opened.
pub(crate) fn gather(media: Vec<Box<dyn Medium>>) -> Result<Gathered, OpenError> {
    gather_if(media, Missing::Limited)
}

/// As [`gather`], however many dies are missing, and with those that hold an earlier state where
/// there is no other one: for reading what is left.
///
/// # Errors
/// When none of the media is a die, or they are dies of several drives.
pub(crate) fn gather_all(media: Vec<Box<dyn Medium>>) -> Result<Gathered, OpenError> {
    gather_if(media, Missing::Any)
}

/// Limit on missing dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// As many as the drive can do without.
    Limited,
    /// Any number, as long as one is there.
    Any,
}

fn gather_if(media: Vec<Box<dyn Medium>>, missing: Missing) -> Result<Gathered, OpenError> {
    let (found, unfit) = headers_of(media);
    let mut drives: BTreeMap<u64, Vec<Found>> = BTreeMap::new();
    for (header, medium) in found {
        drives.entry(header.drive).or_default().push((header, medium));
    }
    if drives.is_empty() {
        let none = || OpenError::refused("none of the media is a die of a drive".to_owned());
        return Err(unfit.unwrap_or_else(none));
    }
    let several = drives.len() > 1;
    let all = if several { list_drives(&drives) } else { String::new() };
    let names: BTreeMap<u64, Vec<String>> =
        drives.iter().map(|(drive, found)| (*drive, found.iter().map(name_of).collect())).collect();
    let (mut usable, mut failed) = (Vec::new(), None);
    for found in drives.into_values() {
        match assemble(found, missing) {
            Ok(gathered) => usable.push(gathered),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    let Some(mut gathered) = usable.pop() else {
        let failed = unfit.or(failed).expect("some drive was looked at");
        return Err(if several { OpenError::refused(format!("{failed}; {all}")) } else { failed });
    };
    if !usable.is_empty() {
        let what = format!("{all}: give the dies of one drive alone");
        return Err(OpenError::refused(what));
    }
    let others = names.into_iter().filter(|(drive, _)| *drive != gathered.header.drive);
    let foreign = |name: String| {
        let text = format!("{name} is a die of another drive and is not used");
        Unused { die: None, text }
    };
    gathered.unused.extend(others.flat_map(|(_, names)| names).map(foreign));
    Ok(gathered)
}

/// Returns the name of a medium for messages.
fn name_of((_, medium): &Found) -> String {
    let name = medium.name();
    if name.is_empty() { "a medium".to_owned() } else { name }
}

/// Lists the media by the drive that they are dies of, for an error message.
fn list_drives(drives: &BTreeMap<u64, Vec<Found>>) -> String {
    let of_drive = |(drive, found): (&u64, &Vec<Found>)| {
        let names: Vec<String> = found.iter().map(name_of).collect();
        format!("{} of drive {drive:016x}", names.join(", "))
    };
    let all: Vec<String> = drives.iter().map(of_drive).collect();
    format!("the media are dies of {} drives ({})", drives.len(), all.join("; "))
}

/// The drive that these media, all of which name it, are dies of.
fn assemble(mut found: Vec<Found>, allowed: Missing) -> Result<Gathered, OpenError> {
    // Of two that say they are the same die, the one that knows more.
    found.sort_by_key(|(header, _)| std::cmp::Reverse(header.version));
    let header = found.first().expect("one at least").0;
    let shape = header.shape;
    check_relations(&found, &shape)?;
    let mut slots: Vec<Option<Box<dyn Medium>>> = Vec::new();
    slots.resize_with(shape.dies as usize, || None);
    let mut unused = Vec::new();
    for found in found {
        let die = found.0.die as usize;
        let is_any = allowed == Missing::Any;
        if header.lost.has(die) && !is_any {
            continue;
        }
        let why = why_unused(&header, &found, slots[die].as_deref());
        if is_any && slots[die].is_none() && found.1.size() >= shape.die_bytes().0 {
            unused.extend(why.map(|text| Unused { die: Some(found.0.die), text }));
            slots[die] = Some(found.1);
        } else if let Some(text) = why {
            unused.push(Unused { die: Some(found.0.die), text });
        } else {
            slots[die] = Some(found.1);
        }
    }
    let dies = Dies::new(slots, shape.is_protected);
    dies.do_without(header.done_without);
    let (missing, spare) = (dies.missed().count(), u32::from(shape.is_protected));
    if missing > spare && allowed == Missing::Limited {
        let why: Vec<String> = unused.iter().map(|it| format!("; {}", it.text)).collect();
        let (dies, why) = (shape.dies, why.concat());
        return Err(OpenError::DiesMissing { missing, dies, spare, why });
    }
    let store = Store::new(Layout::new(&shape), dies, header.drive);
    Ok(Gathered { store, header, unused })
}

/// Returns the reason why a medium is not used as the die that its header names, whose place is
/// that of `taken`; none if it is to be used.
fn why_unused(newest: &Header, found: &Found, taken: Option<&dyn Medium>) -> Option<String> {
    let (own, medium) = found;
    let (name, die, needed) = (name_of(found), own.die, newest.shape.die_bytes());
    if medium.size() < needed.0 {
        // As good as missing: nothing says what else of it is gone.
        let size = Bytes(medium.size());
        return Some(format!("{name}, die {die}, has {size}, {needed} are needed"));
    }
    if newest.is_stale(own) && !mutants::is(Mutant::StaleDiesTaken) {
        return Some(format!(
            "{name}, die {die}, holds an earlier state of the drive (version {} of its header, all \
             dies had {})",
            own.version, newest.version_everywhere
        ));
    }
    taken.map(|taken| format!("{name} is another copy of die {die}, which {} is", taken.name()))
}

/// A medium with the header of a die.
type Found = (Header, Box<dyn Medium>);

/// The media that are dies, each with its newest header; and why another one is none, if it says
/// that it were.
fn headers_of(media: Vec<Box<dyn Medium>>) -> (Vec<Found>, Option<OpenError>) {
    let (mut found, mut unfit) = (Vec::new(), None);
    for (die, medium) in media.into_iter().enumerate() {
        match newest_header(&*medium) {
            Ok(Some(header)) => found.push((header, medium)),
            Ok(None) => {}
            Err(Unfit::Version(found)) => unfit = Some(OpenError::Version { die, found }),
            Err(error) => {
                let what = format!("the header of die {die} says what cannot be: {error}");
                unfit.get_or_insert(OpenError::Damaged { what });
            }
        }
    }
    (found, unfit)
}

/// Checks that media are dies of one arrangement.
fn check_relations(found: &[Found], shape: &Shape) -> Result<(), OpenError> {
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

/// Reads and decodes one copy of a header; none if the bytes are no header or cannot be read.
pub(crate) fn header_copy(
    read: impl FnOnce(&mut [u8]) -> std::io::Result<()>,
) -> Result<Option<Header>, Unfit> {
    let mut bytes = vec![0; usize::try_from(HEADER_BYTES).expect("a page")];
    if read(&mut bytes).is_err() { Ok(None) } else { Header::parse(&bytes) }
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
        let expected = "units of 1 MiB on 8 dies are for 1344 MiB of data at least, here it is \
                        1024 MiB: choose smaller ones";
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
