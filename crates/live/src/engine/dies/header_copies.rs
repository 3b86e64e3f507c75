//! The copies of a header on each die: two at its beginning, written in turn, so that one is whole
//! at any moment, and one at its end, for when neither of those is.
//!
//! ```text
//!   the older copy at the beginning ─► durable on every die ─► the other one, and that at the end
//!   other keys: as the first line, and the first copy is read back before the others are written
//!   no die any more: the copy at the end ─► durable ─► those at the beginning
//! ```
//!
//! **Invariants**:
//! - The copy at the end counts only where neither of the others is whole, and nothing else lies
//!   there: what was a die once may be another thing.
//! - Nothing relies on a change before the copies at the end have it, and none of them has it
//!   before a copy at the beginning has it durably. So whichever copies are lost, one that is left
//!   says what a cut of the power alone may have left.

use std::io;

use device::DeviceError;
use device::is_host_full;
use zerocopy::IntoBytes as _;

use crate::engine::dies::signature::foreign;
use crate::engine::dies::{Dies, die_number, medium_error};
use crate::format::die_set::DieSet;
use crate::format::header::{Header, Unfit};
use crate::format::key_area::KeyArea;
use crate::format::layout::{HEADER_BYTES, Layout, PAGE_BYTES};
use crate::mutants::{self, Mutant};
use crate::{Medium, Shape};

/// Makes a medium no die of any drive, durably. The copy at its end goes first: alone it would
/// count.
pub(crate) fn erase(medium: &dyn Medium) -> io::Result<()> {
    if !mutants::is(Mutant::EndHeaderKept) {
        erase_end(medium, None)?;
    }
    medium.write_at(0, &[0; 2 * PAGE_BYTES])?;
    medium.sync()
}

/// Erases the copies at the end of a medium, durably: that of the die that it was, and of the
/// one that it is to be.
pub(crate) fn erase_end(medium: &dyn Medium, to_be: Option<&Layout>) -> io::Result<()> {
    let fronts = front_copies(medium).into_iter().filter_map(|it| it.ok().flatten());
    let shapes: Vec<Shape> = fronts.map(|it| it.shape).chain(to_be.map(|it| it.shape)).collect();
    let mut is_erased = false;
    for at in end_places(medium, &shapes) {
        let mut page = [0; PAGE_BYTES];
        if medium.read_at(at, &mut page).is_err() || Header::is_begun(&page) {
            medium.write_at(at, &[0; PAGE_BYTES])?;
            is_erased = true;
        }
    }
    if is_erased { medium.sync() } else { Ok(()) }
}

/// As [`write()`], going on without dies that fail, as far as that is possible.
pub(crate) fn write_to_all(header: &mut Header, dies: &Dies) -> Result<(), DeviceError> {
    loop {
        match write(header, dies) {
            Err((die, error)) if dies.lose_for(die, &error) => {}
            Err((die, error)) => {
                return Err(medium_error(format!("writing the header of die {die}"))(error));
            }
            Ok(()) => return Ok(()),
        }
    }
}

/// As [`write_to_all`], of a header with other keys: the first copy of each die is read back from
/// the medium before the other ones, which have the former keys, are written over.
///
/// # Errors
/// As [`write_to_all`], and [`DeviceError::Transient`] while a die does not respond to reads.
pub(crate) fn write_keys_to_all(header: &mut Header, dies: &Dies) -> Result<(), DeviceError> {
    loop {
        let Err((die, error)) = write_as(header, dies, ReadBack::First) else { return Ok(()) };
        dies.check_responsive()?;
        if !dies.lose_for(die, &error) {
            return Err(medium_error(format!("writing the header of die {die}"))(error));
        }
    }
}

/// Checks that all copies of the header of a die hold these keys and no others.
///
/// # Errors
/// The copy of which that cannot be said.
pub(crate) fn check_keys(
    dies: &Dies,
    die: usize,
    layout: &Layout,
    keys: &KeyArea,
) -> io::Result<()> {
    let has_end = dies.has_bytes(die, layout.die_bytes_with_end());
    let end = has_end.then(|| (layout.end_header_from(), "at the end"));
    let places = [(0, "at the beginning"), (HEADER_BYTES, "after the one at the beginning")];
    for (at, place) in places.into_iter().chain(end) {
        let mut page = [0; PAGE_BYTES];
        let copy = format!("the copy {place} of its header, at byte {at},");
        dies.peek_stored(die, at, &mut page)
            .map_err(|error| io::Error::other(format!("{copy} cannot be read back: {error}")))?;
        let is_it = match Header::key_bytes(&page) {
            Some(held) => held.as_bytes() == keys.encode().as_bytes(),
            // A host without space leaves the end as it is, without any key.
            None => at >= 2 * HEADER_BYTES,
        };
        if !is_it {
            let kept = format!("{copy} does not hold the present keys alone after it was written");
            return Err(io::Error::other(kept));
        }
    }
    Ok(())
}

/// Writes this header to all copies of every die that has not failed, as its newest, and makes
/// it durable.
///
/// Dies that were lost come first: one that has just been replaced may have no header yet, and
/// must not be missing when the others say that it is there. Their first copy says that they
/// shared what was everywhere when they were lost, and nothing since: should the others never
/// get theirs, that header proves nothing about data.
///
/// # Errors
/// The first die that cannot be written.
pub(crate) fn write(header: &mut Header, dies: &Dies) -> Result<(), (usize, io::Error)> {
    write_as(header, dies, ReadBack::None)
}

/// Copies that are read back from the medium once they are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadBack {
    None,
    /// The first copy that is written of each die.
    First,
}

/// Manner of writing one copy of each die.
#[derive(Clone, Copy, Debug)]
struct CopyWrite {
    /// True if the copy at the end is written, too.
    with_end: bool,
    /// True if it is read back.
    is_read_back: bool,
}

fn write_as(
    header: &mut Header,
    dies: &Dies,
    read_back: ReadBack,
) -> Result<(), (usize, io::Error)> {
    assert_eq!(dies.count(), header.shape.dies as usize, "a header knows its dies");
    let (were_lost, lost_since) = (header.lost, header.lost_since);
    header.note_lost(dies.incomplete());
    header.removed = dies.removed();
    header.left_out = DieSet(header.left_out.0 | header.lost.0);
    let (first, others): (Vec<usize>, Vec<usize>) =
        dies.healthy().partition(|die| were_lost.has(*die));
    let order: Vec<usize> = first.into_iter().chain(others).collect();
    let copies = if mutants::is(Mutant::OneHeaderCopy) { 1 } else { 2 };
    for copy in 1..=copies {
        header.version += 1;
        assert!(header.version_everywhere < header.version, "versions rise");
        let is_joining = |die| copy == 1 && were_lost.has(die);
        let is_last = copy == copies || mutants::is(Mutant::EndHeaderEarly);
        let shared = |die| is_joining(die).then(|| lost_since[die]);
        let with_end = is_last && header.has_end_copy() && !mutants::is(Mutant::FormerKeyKept);
        let is_read_back = copy == 1 && read_back == ReadBack::First;
        write_copy(header, dies, &order, shared, CopyWrite { with_end, is_read_back })?;
        // The second copy can say that every die has the first one.
        header.version_everywhere = header.version;
    }
    // Before anything is written that relies on it.
    if let Some(witness) = dies.witness() {
        witness.note_header(header, &dies.written_at());
    }
    Ok(())
}

/// Writes one copy at the beginning of each of these dies, the one that is torn or older. `shared`
/// is the last version that was everywhere with a die, where it is not that of the others.
fn write_copy(
    header: &mut Header,
    dies: &Dies,
    order: &[usize],
    shared: impl Fn(usize) -> Option<u64>,
    CopyWrite { with_end, is_read_back }: CopyWrite,
) -> Result<(), (usize, io::Error)> {
    let everywhere = header.version_everywhere;
    for die in order.iter().copied() {
        header.die = die_number(die);
        let version_everywhere = shared(die).unwrap_or(everywhere).min(everywhere);
        let own = Header { version_everywhere, ..*header };
        assert!(header.die < header.shape.dies, "a header is written to a die of the drive");
        assert!(own.check().is_ok(), "a header that is written can be read back");
        let (copy, bytes) = (stale_copy(header, dies, die), own.encode());
        // The other copy may have been read, and yet not be durable.
        dies.sync(die)
            .and_then(|()| dies.write(die, copy * HEADER_BYTES, &bytes))
            .and_then(|()| if with_end { write_end(header, dies, die, &bytes) } else { Ok(()) })
            .and_then(|()| {
                if mutants::is(Mutant::UpgradeAtOnce) && is_upgrade(header, dies, die) {
                    dies.write(die, (1 - copy) * HEADER_BYTES, &bytes)?;
                }
                dies.sync(die)
            })
            .and_then(|()| {
                if is_read_back {
                    check_written(dies, die, copy * HEADER_BYTES, &bytes)
                } else {
                    Ok(())
                }
            })
            .map_err(|error| (die, error))?;
    }
    Ok(())
}

/// Checks that a die has what was written to it.
fn check_written(dies: &Dies, die: usize, at: u64, bytes: &[u8]) -> io::Result<()> {
    let mut page = [0; PAGE_BYTES];
    dies.peek_stored(die, at, &mut page)?;
    let lost = || io::Error::other(format!("what was written at byte {at} is not read back"));
    if page == bytes { Ok(()) } else { Err(lost()) }
}

/// Writes the copy at the end of a die, which becomes longer for it, if it has room for one.
fn write_end(header: &Header, dies: &Dies, die: usize, bytes: &[u8]) -> io::Result<()> {
    let layout = Layout::new(&header.shape);
    let from = layout.end_header_from();
    if !dies.lengthen(die, layout.die_bytes_with_end()) {
        return Ok(());
    }
    match dies.write(die, from, bytes) {
        // An earlier one must not stay, but none need be there.
        Err(error) if is_host_full(&error) && version_at(header, dies, die, from).is_none() => {
            Ok(())
        }
        written => written,
    }
}

/// The copy at the beginning of a die that is written over: one that is torn, or of another
/// drive, or else the older one. So a die keeps the newest that it has, however often the power
/// goes.
fn stale_copy(header: &Header, dies: &Dies, die: usize) -> u64 {
    let [first, second] = [0, HEADER_BYTES].map(|at| version_at(header, dies, die, at));
    u64::from(first > second)
}

/// The version of the copy at an offset of a die; none if it is torn, or of another drive.
fn version_at(header: &Header, dies: &Dies, die: usize, at: u64) -> Option<u64> {
    let found = header_copy(|bytes| dies.peek(die, at, bytes)).ok().flatten();
    let is_own = |it: &Header| (it.drive, it.die) == (header.drive, header.die);
    found.filter(is_own).map(|it| it.version)
}

/// True if a die has a copy of an earlier format.
fn is_upgrade(header: &Header, dies: &Dies, die: usize) -> bool {
    let found = |at| header_copy(|bytes| dies.peek(die, at, bytes)).ok().flatten();
    [0, HEADER_BYTES].into_iter().filter_map(found).any(|it| it.format < header.format)
}

/// Reads and decodes one copy of a header; none if the bytes are no header or cannot be read.
pub(crate) fn header_copy(
    read: impl FnOnce(&mut [u8]) -> io::Result<()>,
) -> Result<Option<Header>, Unfit> {
    let mut bytes = vec![0; usize::try_from(HEADER_BYTES).expect("a page")];
    if read(&mut bytes).is_err() { Ok(None) } else { Header::parse(&bytes) }
}

/// The newest header of a medium that is whole and can be, where it is a die and nothing else.
pub(crate) fn newest_header(medium: &dyn Medium) -> Result<Option<Header>, Unfit> {
    let front = if mutants::is(Mutant::EndHeaderFirst) { Ok(None) } else { front_header(medium) };
    if matches!(front, Ok(Some(_)) | Err(Unfit::Version(_))) {
        return front;
    }
    match end_header(medium, &[]) {
        Ok(None) => front_header(medium),
        Ok(Some(_)) if is_taken(medium) => Ok(None),
        end => end,
    }
}

/// True if a medium without a header at its beginning is something else than a die by now.
fn is_taken(medium: &dyn Medium) -> bool {
    !mutants::is(Mutant::EndHeaderFirst) && foreign(medium).is_some()
}

fn front_copies(medium: &dyn Medium) -> [Result<Option<Header>, Unfit>; 2] {
    [0, HEADER_BYTES].map(|at| header_copy(|bytes| medium.read_at(at, bytes)))
}

/// The newest header at the beginning of a medium that is whole and can be.
fn front_header(medium: &dyn Medium) -> Result<Option<Header>, Unfit> {
    let copies = front_copies(medium);
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

/// The header at the end of a medium, whatever lies at its beginning: behind the erase blocks of
/// one of these arrangements, or on its last page. It lies where its own arrangement says.
pub(crate) fn end_header(medium: &dyn Medium, shapes: &[Shape]) -> Result<Option<Header>, Unfit> {
    for at in end_places(medium, shapes) {
        match header_copy(|bytes| medium.read_at(at, bytes)) {
            Ok(Some(header)) if Layout::new(&header.shape).end_header_from() == at => {
                return Ok(Some(header));
            }
            Err(version @ Unfit::Version(_)) => return Err(version),
            _ => {}
        }
    }
    Ok(None)
}

/// Offsets on a medium at which a header may end it.
fn end_places(medium: &dyn Medium, shapes: &[Shape]) -> impl Iterator<Item = u64> {
    let size = medium.size();
    let last = (size / HEADER_BYTES).checked_sub(1).map(|page| page * HEADER_BYTES);
    let known = shapes.iter().map(|shape| Layout::new(shape).end_header_from());
    // At the beginning there are others.
    let is_possible = move |at: &u64| *at >= 2 * HEADER_BYTES && at + HEADER_BYTES <= size;
    let places: Vec<u64> = known.chain(last).filter(is_possible).collect();
    places.into_iter()
}

#[cfg(test)]
mod tests {
    use blockio::Rng;

    use crate::engine::drive::SMALL_SHAPE;
    use crate::format::layout::PAGE_BYTES;
    use crate::simulation::Disks;
    use crate::volume::check::check_media;
    use crate::{Drive, Shape, format};
    use device::{Device as _, Durability};

    const SHAPE: Shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };

    /// The dies of a closed drive, devices of so many bytes more than erase blocks take.
    fn devices(slack: u64) -> Disks {
        let bytes = usize::try_from(SHAPE.die_bytes().0 + slack).unwrap();
        let disks = Disks::new(3, bytes, Rng::new(0));
        disks.fix_length();
        format(disks.media(), &SHAPE, 1).unwrap();
        let drive = Drive::open_media(disks.media()).unwrap();
        drive.write(0, &[7; PAGE_BYTES], Durability::Durable).unwrap();
        drive.close().unwrap();
        disks
    }

    #[test]
    fn on_longer_devices_the_other_dies_say_where_the_headers_at_the_end_are() {
        let disks = devices(1 << 16);
        for lost in [&[0][..], &[1, 2], &[0, 1, 2]] {
            let disks = disks.fork();
            for die in lost {
                disks.damage(*die, 0..8192, |_| 0);
            }
            let opened = Drive::open_media(disks.media());
            if lost.len() == 3 {
                let refused = opened.unwrap_err().to_string();
                assert!(refused.contains("none of the media is a die"), "{refused}");
                continue;
            }
            let (drive, mut page) = (opened.unwrap(), [0; PAGE_BYTES]);
            drive.read(0, &mut page).unwrap();
            assert_eq!((page, drive.lost_dies()), ([7; PAGE_BYTES], vec![]));
        }
    }

    #[test]
    fn devices_without_room_at_their_ends_have_no_headers_there_and_a_check_says_so() {
        let check = |disks: &Disks| check_media(disks.media(), |_, _| ()).unwrap();
        let report = check(&devices(0));
        assert_eq!((report.dies_without_end_header, report.findings), (vec![0, 1, 2], vec![]));
        let disks = devices(8192);
        assert!(check(&disks).dies_without_end_header.is_empty());
        let end = usize::try_from(SHAPE.die_bytes_with_end().0).unwrap();
        disks.damage(1, end - 1..end, |byte| byte ^ 1);
        let [finding] = &check(&disks).findings[..] else { panic!("it is damaged") };
        assert_eq!(finding.text, "the copy at the end of the header of die 1 is corrupt");
        let drive = Drive::open_media(disks.media()).unwrap();
        disks.damage(2, end - 1..end, |byte| byte ^ 1);
        let scrubbed = drive.scrub(true).unwrap();
        assert_eq!((scrubbed.copies_bad, scrubbed.copies_restored), (1, 1));
    }
}
