//! The dies of a drive, found among media by their headers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use status::drive_id;

use crate::engine::core::bad_places::BadPlaces;
use crate::engine::dies::header_copies::{end_header, newest_header};
use crate::engine::dies::signature::foreign;
use crate::engine::dies::witness::{Proof, Witness};
use crate::engine::dies::{Dies, die_number};
use crate::engine::store::Store;
use crate::format::die_set::DieSet;
use crate::format::header::{Header, Unfit};
use crate::format::layout::{Layout, UNIT_HEADER_BYTES};
use crate::format::unit::UnitHeader;
use crate::mutants::{self, Mutant};
use crate::{Medium, OpenError, Shape};

/// The dies of a drive, found among media that were given in any order.
#[derive(Debug)]
pub(crate) struct GatheredDies {
    pub(crate) store: Store,
    /// The newest header.
    pub(crate) header: Header,
    /// Media that are not used, with why: one sentence each.
    pub(crate) unused: Vec<UnusedMedium>,
}

/// A medium that is not used as a die.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnusedMedium {
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
/// Fails if that leaves too few dies, naming each medium that was left aside, or if media of more
/// than one drive could be opened.
pub(crate) fn gather(media: Vec<Box<dyn Medium>>) -> Result<GatheredDies, OpenError> {
    gather_if(media, Missing::Limited, None)
}

/// As [`gather`], unless `witness` proves that dies of which these are the newest cannot include
/// all that was written. It notes what headers say from then on.
///
/// # Errors
/// As [`gather`], and [`OpenError::Stale`].
pub(crate) fn gather_proven(
    media: Vec<Box<dyn Medium>>,
    witness: Option<Arc<dyn Witness>>,
) -> Result<GatheredDies, OpenError> {
    gather_if(media, Missing::Limited, witness)
}

/// As [`gather`], however many dies are missing, and with those that hold an earlier state where
/// there is no other one: for reading what is left.
///
/// # Errors
/// Fails if none of the media is a die, or they are dies of several drives.
pub(crate) fn gather_all(
    media: Vec<Box<dyn Medium>>,
    witness: Option<Arc<dyn Witness>>,
) -> Result<GatheredDies, OpenError> {
    gather_if(media, Missing::Any, witness)
}

/// Limit on missing dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// As many as the drive can do without.
    Limited,
    /// Any number, as long as one is there.
    Any,
}

fn gather_if(
    media: Vec<Box<dyn Medium>>,
    missing: Missing,
    witness: Option<Arc<dyn Witness>>,
) -> Result<GatheredDies, OpenError> {
    let proof = witness.as_ref().and_then(|it| it.proof());
    let SortedMedia { found, nameless, taken, unfit } = sort(media, missing, proof.as_ref());
    let mut drives: BTreeMap<u64, Vec<FoundDie>> = BTreeMap::new();
    for (header, medium) in found {
        drives.entry(header.drive).or_default().push((header, medium));
    }
    if missing == Missing::Any
        && let Some(proof) = proof.as_ref().filter(|_| !nameless.is_empty() && drives.is_empty())
    {
        drives.insert(proof.header.drive, Vec::new());
    }
    if drives.is_empty() {
        let none = || {
            let why: Vec<String> = taken.iter().map(|(_, it)| format!("; {}", it.text)).collect();
            OpenError::refused(format!("none of the media is a die of a volume{}", why.concat()))
        };
        return Err(unfit.unwrap_or_else(none));
    }
    let several = drives.len() > 1;
    let all = if several { list_drives(&drives) } else { String::new() };
    let names: BTreeMap<u64, Vec<String>> =
        drives.iter().map(|(drive, found)| (*drive, found.iter().map(name_of).collect())).collect();
    let (mut usable, mut failed) = (Vec::new(), None);
    // Only units say which dies these are, which is enough for reading.
    let mut nameless = if missing == Missing::Any && !several { nameless } else { Vec::new() };
    for (drive, found) in drives {
        let own = taken.iter().filter(|(of, _)| *of == drive).map(|(_, it)| it.clone());
        let others = std::mem::take(&mut nameless);
        match assemble(found, missing, proof.as_ref(), others, own.collect()) {
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
        let what = format!("{all}: give the dies of one volume only");
        return Err(OpenError::refused(what));
    }
    let others = names.into_iter().filter(|(drive, _)| *drive != gathered.header.drive);
    let foreign = |name: String| {
        let text = format!("{name} is a die of another volume and is not used");
        UnusedMedium { die: None, text }
    };
    gathered.unused.extend(others.flat_map(|(_, names)| names).map(foreign));
    if let Some(witness) = witness {
        gathered.store.dies.attach_witness(witness);
    }
    Ok(gathered)
}

/// The die that each of the media with these headers is of the one drive that they can be; none for
/// a medium that is none of its dies, or not as good as another one, and for all where opening
/// fails or has to choose. Of two copies of a die that know as much, it is the one in that die's
/// place.
pub(crate) fn die_of_each(headers: &[Option<Header>]) -> Vec<Option<usize>> {
    let mut drives: BTreeMap<u64, BTreeMap<usize, (usize, &Header)>> = BTreeMap::new();
    for (medium, header) in headers.iter().enumerate() {
        let Some(header) = header else { continue };
        let found = drives.entry(header.drive).or_default();
        let die = header.die as usize;
        let best = found.entry(die).or_insert((medium, header));
        if (header.version, medium == die) > (best.1.version, best.0 == die) {
            *best = (medium, header);
        }
    }
    drives.retain(|_, found| {
        let newest = found.values().map(|(_, header)| header).max_by_key(|header| header.version);
        let (shape, removed) = newest.map(|it| (it.shape, it.removed)).expect("one at least");
        let there: DieSet = found.keys().copied().collect();
        let missing = DieSet(shape.all_dies().0 & !there.0 & !removed.0);
        missing.count() <= u32::from(shape.is_protected)
    });
    let mut dies = vec![None; headers.len()];
    if drives.len() == 1 {
        for (die, (medium, _)) in drives.into_values().flatten() {
            dies[medium] = Some(die);
        }
    }
    dies
}

/// Media that are no listed dies and hold what a listed one should: each with the entry of the list
/// that it stands for. It is a die of the volume that the others know of, and that none of the
/// listed media is; the entry is one that is no die of the volume. None where listed media are dies
/// of several volumes.
pub(crate) fn displaced(
    listed: &[Option<Header>],
    others: &[Option<Header>],
) -> Vec<(usize, usize)> {
    let drives: BTreeSet<u64> = listed.iter().flatten().map(|header| header.drive).collect();
    if drives.len() != 1 {
        return Vec::new();
    }
    let is_own = |header: &&Header| drives.contains(&header.drive);
    let all: Vec<&Header> = listed.iter().chain(others).flatten().filter(is_own).collect();
    let newest = all.iter().max_by_key(|header| header.version).expect("one is listed");
    let as_new = all.iter().filter(|header| header.version == newest.version);
    let lost = DieSet(as_new.fold(0, |lost, header| lost | header.lost.0));
    let counts = |header: &&Header| {
        is_own(header) && !lost.has(header.die as usize) && !newest.is_stale(header)
    };
    let die = |header: &Option<Header>| header.as_ref().filter(counts).map(|it| it.die as usize);
    let mut there: DieSet = listed.iter().filter_map(die).collect();
    let mut free: Vec<usize> = (0..listed.len()).filter(|it| die(&listed[*it]).is_none()).collect();
    let mut found = Vec::new();
    for (other, header) in others.iter().enumerate() {
        let Some(die) = die(header).filter(|die| !there.has(*die)) else { continue };
        // Names that were exchanged: its place in the list is that of the other one.
        let place = free.iter().position(|entry| *entry == die).unwrap_or(0);
        if !free.is_empty() {
            found.push((free.remove(place), other));
            there.add(die);
        }
    }
    found
}

/// Returns the name of a medium for messages.
fn name_of((_, medium): &FoundDie) -> String {
    let name = medium.name();
    if name.is_empty() { "a medium".to_owned() } else { name }
}

/// Lists the media by the drive that they are dies of, for an error message.
fn list_drives(drives: &BTreeMap<u64, Vec<FoundDie>>) -> String {
    let of_drive = |(drive, found): (&u64, &Vec<FoundDie>)| {
        let names: Vec<String> = found.iter().map(name_of).collect();
        format!("{} of volume {}", names.join(", "), drive_id(*drive))
    };
    let all: Vec<String> = drives.iter().map(of_drive).collect();
    format!("the media are dies of {} volumes ({})", drives.len(), all.join("; "))
}

/// The drive that these media, all of which name it, are dies of.
fn assemble(
    mut found: Vec<FoundDie>,
    allowed: Missing,
    proof: Option<&Proof>,
    nameless: Vec<Box<dyn Medium>>,
    mut unused: Vec<UnusedMedium>,
) -> Result<GatheredDies, OpenError> {
    // Of two that say they are the same die, the one that knows more.
    found.sort_by_key(|(header, _)| std::cmp::Reverse(header.version));
    let newest = found.first().map(|(header, _)| *header);
    let mut header = newest.or(proof.map(|it| it.header)).expect("one of them has a header");
    let shape = header.shape;
    check_relations(&found, &shape)?;
    // Headers of one version say the same, unless the volume was in use in two states of itself.
    let as_new = found.iter().filter(|(own, _)| own.version == header.version);
    header.lost = as_new.fold(header.lost, |lost, (own, _)| DieSet(lost.0 | own.lost.0));
    let mut slots: Vec<Option<Box<dyn Medium>>> = Vec::new();
    slots.resize_with(shape.dies as usize, || None);
    if let Some(text) = split_brain(&found) {
        if allowed == Missing::Limited {
            return Err(OpenError::refused(text));
        }
        unused.push(UnusedMedium { die: None, text });
    }
    let is_proven = |it: &&Proof| it.is_ahead_of(&header) && !mutants::is(Mutant::WitnessIgnored);
    if let Some(proof) = proof.filter(is_proven) {
        let what = stale(&header, &found, proof);
        if allowed == Missing::Limited {
            return Err(OpenError::Stale { what });
        }
        unused.push(UnusedMedium { die: None, text: what });
    }
    for found in found {
        let die = found.0.die as usize;
        let is_any = allowed == Missing::Any;
        if header.lost.has(die) && !is_any {
            // One that is being filled says so of itself.
            if !found.0.lost.has(die) {
                let text = format!("die {die} has failed, and {} is not used", name_of(&found));
                unused.push(UnusedMedium { die: Some(found.0.die), text });
            }
            continue;
        }
        let why = why_unused(&header, &found, slots[die].as_deref());
        if is_any && slots[die].is_none() {
            unused.extend(why.map(|text| UnusedMedium { die: Some(found.0.die), text }));
            slots[die] = Some(found.1);
        } else if let Some(text) = why {
            unused.push(UnusedMedium { die: Some(found.0.die), text });
        } else {
            slots[die] = Some(found.1);
        }
    }
    for medium in nameless {
        let Some(die) = die_by_units(&*medium, &shape, header.drive) else { continue };
        if slots[die].is_none() {
            let name = medium.name();
            let text = format!("{name} has no header; its units are those of die {die}");
            unused.push(UnusedMedium { die: Some(die_number(die)), text });
            slots[die] = Some(medium);
        }
    }
    let dies = Dies::new(slots, shape.is_protected);
    dies.remove(header.removed);
    let (missing, spare) = (dies.missed().count(), u32::from(shape.is_protected));
    if missing > spare && allowed == Missing::Limited {
        let why: Vec<String> = unused.iter().map(|it| format!("; {}", it.text)).collect();
        let (dies, why) = (shape.dies, why.concat());
        return Err(OpenError::DiesMissing { missing, dies, spare, why });
    }
    let mut store = Store::new(Layout::new(&shape), dies, header.drive);
    let proof = proof.filter(|it| it.header.drive == header.drive);
    let listed = proof.map_or(&[][..], |it| &it.bad_places);
    store.bad_places = BadPlaces::of(listed, &shape);
    Ok(GatheredDies { store, header, unused })
}

/// Description of dies that hold an earlier state than `proof` says there was: which of them would
/// be needed, and which state each has.
fn stale(newest: &Header, found: &[FoundDie], proof: &Proof) -> String {
    let Header { session, version_everywhere: version, lost, .. } = proof.header;
    let has = |die: &usize| {
        found.iter().any(|(own, _)| own.die as usize == *die && own.version >= version)
    };
    let all = (0..proof.members.len()).filter(|die| !lost.has(*die));
    let lacking: Vec<String> = all.filter(|die| !has(die)).map(|die| die.to_string()).collect();
    let dies = if lacking.len() == 1 { "die" } else { "dies" };
    format!(
        "the dies that are there hold an earlier state of the volume than its folder proves: they \
         have version {} of its header, written in session {}, and version {version} of session \
         {session} was on {dies} {}, so that what was written since would be missing",
        newest.version,
        newest.session,
        lacking.join(", ")
    )
}

/// Description of a split brain, if a die was in use without those that went on without it: they
/// hold different data, and only their owner knows which is wanted. The newest one comes first. The
/// two sides are the dies of a mirror, or what was left of more dies whose redundancy was restored
/// without the others. Of more dies in use any two groups that suffice share one, which knows what
/// came later.
fn split_brain(found: &[FoundDie]) -> Option<String> {
    let newest = found.first()?;
    let other = found.iter().find(|(header, _)| newest.0.diverged_from(header))?;
    let (first, own, second) = (name_of(newest), newest.0.die, name_of(other));
    Some(format!(
        "{first} (die {own}) and {second} (die {}) were each written without the other and hold \
         different data: move the one whose data is to be given up away, and replace that die",
        other.0.die
    ))
}

/// Returns the reason why a medium is not used as the die that its header names, whose place is
/// that of `taken`; none if it is to be used.
fn why_unused(newest: &Header, found: &FoundDie, taken: Option<&dyn Medium>) -> Option<String> {
    let (own, medium) = found;
    let (name, die, needed) = (name_of(found), own.die, newest.shape.die_bytes());
    if medium.size() < needed.0 {
        // As good as missing: nothing says what else of it is gone.
        let (size, needed) = (medium.size(), needed.0);
        return Some(format!("{name}, die {die}, has {size} bytes, {needed} are needed"));
    }
    if newest.is_stale(own) && !mutants::is(Mutant::StaleDiesTaken) {
        return Some(format!(
            "{name}, die {die}, holds an earlier state of the volume (version {} of its header, \
             all dies had {})",
            own.version, newest.version_everywhere
        ));
    }
    taken.map(|taken| format!("{name} is another copy of die {die}, which {} is", taken.name()))
}

/// A medium with the header of a die.
type FoundDie = (Header, Box<dyn Medium>);

/// Media by what they say of themselves.
struct SortedMedia {
    /// Dies, each with its newest header.
    found: Vec<FoundDie>,
    /// Media without a header that is whole.
    nameless: Vec<Box<dyn Medium>>,
    /// Dies that hold something else at their beginning, each with the drive that it was a die of.
    taken: Vec<(u64, UnusedMedium)>,
    /// Reason why a medium is no die, if it says that it were.
    unfit: Option<OpenError>,
}

fn sort(media: Vec<Box<dyn Medium>>, missing: Missing, proof: Option<&Proof>) -> SortedMedia {
    let (mut found, mut headless, mut unfit) = (Vec::new(), Vec::new(), None);
    for (die, medium) in media.into_iter().enumerate() {
        match newest_header(&*medium) {
            Ok(Some(header)) => found.push((header, medium)),
            Ok(None) => headless.push(medium),
            Err(Unfit::Version(found)) => unfit = Some(OpenError::Version { die, found }),
            Err(error) => {
                let what = format!("the header of die {die} is invalid: {error}");
                unfit.get_or_insert(OpenError::Damaged { what });
            }
        }
    }
    // On a device that is longer than a die, only the others say where it ends.
    let proven = proof.map(|it| it.header.shape);
    let shapes: Vec<Shape> = found.iter().map(|(it, _)| it.shape).chain(proven).collect();
    let (mut nameless, mut taken) = (Vec::new(), Vec::new());
    for medium in headless {
        let Ok(Some(header)) = end_header(&*medium, &shapes) else {
            nameless.push(medium);
            continue;
        };
        let Some(what) = foreign(&*medium) else {
            found.push((header, medium));
            continue;
        };
        let Header { die, drive, .. } = header;
        let text = format!("{}, die {die}, holds {what} at its beginning", medium.name());
        let end = match missing {
            Missing::Limited => "and is not used",
            Missing::Any => "and its header is read from its end",
        };
        taken.push((drive, UnusedMedium { die: Some(die), text: format!("{text}, {end}") }));
        if missing == Missing::Any {
            found.push((header, medium));
        }
    }
    SortedMedia { found, nameless, taken, unfit }
}

/// The die of a drive whose units a medium holds, if it holds any that say so.
fn die_by_units(medium: &dyn Medium, shape: &Shape, drive: u64) -> Option<usize> {
    let layout = Layout::new(shape);
    (0..shape.rows_total()).find_map(|row| {
        let mut head = [0; UNIT_HEADER_BYTES];
        medium.read_at(layout.unit_from(row), &mut head).ok()?;
        let unit = UnitHeader::parse(&head)?;
        let is_own = (unit.identity.drive, unit.row) == (drive, row);
        let is_possible = shape.may_leave_out(unit.out) && unit.position < shape.dies;
        let is_own =
            is_own && is_possible && layout.positions(unit.out).any(|it| it == unit.position);
        is_own.then(|| layout.die(row, unit.position, unit.out))
    })
}

/// Checks that media are dies of one arrangement.
fn check_relations(found: &[FoundDie], shape: &Shape) -> Result<(), OpenError> {
    // Of what was decided for good every die says the same, however old its header is.
    let is_other = |(header, _): &&FoundDie| {
        let Shape { pages_logical, pages_stored_max, .. } = *shape;
        Shape { pages_logical, pages_stored_max, ..header.shape } != *shape
    };
    match found.iter().find(is_other) {
        Some((header, _)) => {
            let what = format!("the header of die {} states another layout", header.die);
            Err(OpenError::Damaged { what })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::drive::SMALL_SHAPE;
    use crate::format::layout::PAGE_BYTES;
    use crate::simulation::Disks;
    use crate::{Drive, Medium, Shape};
    use device::{Device as _, Durability};

    const PAGE: u64 = PAGE_BYTES as u64;

    fn write(drive: &Drive, content: u8) {
        drive.write(0, &[content; PAGE_BYTES], Durability::Durable).unwrap();
    }

    fn page(drive: &Drive) -> u8 {
        let mut page = [0; PAGE_BYTES];
        drive.read(0, &mut page).unwrap();
        assert!(drive.size() >= PAGE && page == [page[0]; PAGE_BYTES]);
        page[0]
    }

    fn only(disks: &Disks, die: usize) -> Vec<Box<dyn Medium>> {
        vec![disks.media().remove(die)]
    }

    /// Of three dies one was given up. The other two are each opened alone, and one of them gets a
    /// new die beside it: neither side knows all dies of the other as lost.
    #[test]
    fn a_die_that_was_written_without_a_group_is_refused_beside_it() {
        let shape = Shape { dies: 3, is_protected: true, superblocks: 60, ..SMALL_SHAPE };
        for more in [0, 5] {
            let disks = Disks::formatted(&shape);
            let drive = Drive::open_media(disks.media()).unwrap();
            write(&drive, 1);
            drive.fail_die(0).unwrap();
            assert!(drive.restore_redundancy().unwrap());
            drive.close().unwrap();
            let alone = disks.fork();
            for content in 0..=more {
                let drive = Drive::open_media(only(&alone, 2)).unwrap();
                write(&drive, 2 + content);
                drive.close().unwrap();
            }
            let drive = Drive::open_media(only(&disks, 1)).unwrap();
            write(&drive, 20);
            drive.replace_die(0, disks.replace(0)).unwrap();
            drive.close().unwrap();
            disks.roll_back(2, &alone);
            let refused = Drive::open_media(disks.fork().media()).unwrap_err().to_string();
            assert!(refused.contains("(die 2)") && refused.contains("different"), "{refused}");
            assert_eq!(page(&Drive::open_media(only(&disks.fork(), 2)).unwrap()), 2 + more);
            let mut group = disks.media();
            group.remove(2);
            assert_eq!(page(&Drive::open_media(group).unwrap()), 20);
        }
    }

    /// An opening is cut off at each of its commands, one die is away for one start, and is back.
    #[test]
    fn an_opening_that_was_cut_off_is_no_write_without_the_others() {
        let shape = Shape { dies: 3, is_protected: true, ..SMALL_SHAPE };
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        write(&drive, 7);
        drop(drive);
        disks.restore_by(|_| true);
        for commands in 0.. {
            let mut was_cut = false;
            for away in 0..3 {
                let disks = disks.fork();
                disks.cut_after(commands);
                drop(Drive::open_media(disks.media()));
                was_cut |= disks.is_cut();
                disks.restore_by(|_| true);
                let mut others = disks.media();
                others.remove(away);
                assert_eq!(page(&Drive::open_media(others).unwrap()), 7);
                disks.restore_by(|_| true);
                let drive = Drive::open_media(disks.media())
                    .unwrap_or_else(|error| panic!("{commands}, without die {away}: {error}"));
                assert_eq!(page(&drive), 7);
            }
            if !was_cut {
                assert!(commands > 20, "headers are among what was cut");
                break;
            }
        }
    }

    /// The new half of a mirror is whole, and the other half fails before its header says so.
    #[test]
    fn a_half_that_failed_before_it_knew_of_the_new_one_is_left_aside() {
        let shape = Shape { dies: 2, is_protected: true, ..SMALL_SHAPE };
        let disks = Disks::formatted(&shape);
        let drive = Drive::open_media(disks.media()).unwrap();
        write(&drive, 1);
        drive.fail_die(1).unwrap();
        write(&drive, 2);
        let before = disks.fork();
        drive.replace_die(1, disks.replace(1)).unwrap();
        drive.fail_die(0).unwrap();
        write(&drive, 3);
        drop(drive);
        disks.restore_by(|_| true);
        disks.roll_back(0, &before);
        let drive = Drive::open_media(disks.media()).unwrap();
        assert_eq!((page(&drive), drive.lost_dies()), (3, vec![0]));
        let unused: Vec<&str> = drive.unused_media().collect();
        assert!(unused.len() == 1 && unused[0].starts_with("die 0 has failed, and "), "{unused:?}");
    }
}
