//! Contents of a medium before it becomes a die: a die of some volume, a file system, a partition
//! table, or a member of a RAID, LVM or an encryption, by the magic numbers that `blkid` looks for.
//!
//! Sources: libblkid of util-linux 2.39 (`superblocks/`, `partitions/`), Linux `md_p.h`.

use std::io;

use crate::Medium;
use crate::engine::gathering::newest_header;
use crate::format::header::Header;
use crate::medium::overwrite;
use crate::status::named;

/// Bytes at the beginning and at the end in which signatures lie.
const ENDS_BYTES: u64 = 128 << 10;
const EXT: u64 = 1024;
const MD: u32 = 0xa92b_4efc;
/// Partition entries of a master boot record: 4 of 16 bytes each, the type at byte 4.
const MBR_ENTRIES: std::ops::Range<usize> = 446..510;

/// Magic numbers that alone say what is there: offset, bytes, what.
const MAGICS: [(u64, &[u8], &str); 18] = [
    (0, b"LUKS\xba\xbe", "a LUKS container"),
    (0, b"XFSB", "an XFS file system"),
    (65_600, b"_BHRfS_M", "a btrfs file system"),
    (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (0, b"bluestore block device", "a Ceph BlueStore device"),
    (24, b"LVM2 001", "an LVM physical volume"),
    (536, b"LVM2 001", "an LVM physical volume"),
    (1048, b"LVM2 001", "an LVM physical volume"),
    (1560, b"LVM2 001", "an LVM physical volume"),
    (4086, b"SWAPSPACE2", "swap space"),
    (65_526, b"SWAPSPACE2", "swap space"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (54, b"FAT1", "a FAT file system"),
    (82, b"FAT32   ", "a FAT file system"),
    (32_769, b"CD001", "an ISO 9660 file system"),
    (512, b"EFI PART", "a GPT partition table"),
    (4096, b"EFI PART", "a GPT partition table"),
];

/// Says what a medium holds, such as `holds an ext4 file system`; none if it is blank as far as
/// signatures tell.
///
/// # Errors
/// Fails if it cannot be read: then nobody knows.
pub(super) fn contents(medium: &dyn Medium) -> io::Result<Option<String>> {
    match newest_header(medium) {
        Ok(None) => {}
        Ok(Some(Header { die, drive, .. })) => {
            return Ok(Some(format!("is die {die} of volume {}", named(drive))));
        }
        Err(error) => return Ok(Some(format!("is a die of a volume ({error})"))),
    }
    let start = read(medium, 0, ENDS_BYTES)?;
    let found = in_magics(&start).or_else(|| ext(&start)).or_else(|| mbr(&start));
    let found = match found {
        Some(what) => Some(what),
        None => md(medium, &start)?,
    };
    Ok(found.map(|what| format!("holds {what}")))
}

/// Erases whatever says what a medium held, at both of its ends: no program takes it for that then.
pub(super) fn erase(medium: &dyn Medium) -> io::Result<()> {
    let size = medium.size();
    overwrite(medium, 0, size.min(ENDS_BYTES))?;
    overwrite(medium, size.saturating_sub(ENDS_BYTES), size.min(ENDS_BYTES))?;
    medium.sync()
}

/// Reads as much as is there of a range.
fn read(medium: &dyn Medium, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let end = (offset + length).min(medium.size());
    let mut bytes = vec![0; usize::try_from(end.saturating_sub(offset)).expect("a small range")];
    medium.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

fn part(bytes: &[u8], at: u64) -> &[u8] {
    usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default()
}

fn number(bytes: &[u8], at: u64) -> u32 {
    part(bytes, at).first_chunk().map_or(0, |it| u32::from_le_bytes(*it))
}

fn in_magics(start: &[u8]) -> Option<&'static str> {
    let is_there = |(at, magic, _): &&(u64, &[u8], &str)| part(start, *at).starts_with(magic);
    MAGICS.iter().find(is_there).map(|(_, _, what)| *what)
}

/// The ext file systems, told apart by their features: extents, 64 bit or flexible groups are ext4,
/// a journal alone is ext3.
fn ext(start: &[u8]) -> Option<&'static str> {
    let is_there = part(start, EXT + 56).starts_with(&[0x53, 0xef]);
    let (compatible, incompatible) = (number(start, EXT + 92), number(start, EXT + 96));
    is_there.then_some(match (compatible & 4 != 0, incompatible & 0x2c0 != 0) {
        (_, true) => "an ext4 file system",
        (true, false) => "an ext3 file system",
        (false, false) => "an ext2 file system",
    })
}

fn mbr(start: &[u8]) -> Option<&'static str> {
    let entries = start.get(MBR_ENTRIES)?;
    let is_used = entries.chunks(16).any(|entry| entry[4] != 0);
    (is_used && part(start, 510).starts_with(&[0x55, 0xaa])).then_some("an MBR partition table")
}

/// Members of a Linux RAID: superblock 1.1 at the beginning, 1.2 after 4 KiB, 1.0 in the last 8 to
/// 12 KiB, 0.90 in the last whole 64 KiB.
fn md(medium: &dyn Medium, start: &[u8]) -> io::Result<Option<&'static str>> {
    let size = medium.size();
    let ends = [
        (size.saturating_sub(8 << 10) & !0xfff, 4096),
        ((size & !0xffff).saturating_sub(64 << 10), 4096),
    ];
    let mut is_member = [0, 4096].iter().any(|at| number(start, *at) == MD);
    for (at, length) in ends {
        is_member = is_member || number(&read(medium, at, length)?, 0) == MD;
    }
    Ok(is_member.then_some("a member of a Linux RAID"))
}

#[cfg(test)]
mod tests {
    use blockio::Rng;

    use super::*;
    use crate::format;
    use crate::simulation::Disks;
    use crate::volume::example::ONE_DIE;

    const BYTES: usize = (1 << 20) + 4096;

    /// A medium with these bytes at these offsets, and zeroes besides.
    fn medium(parts: &[(usize, &[u8])]) -> Box<dyn Medium> {
        let disks = Disks::new(1, BYTES, Rng::new(0));
        let medium = disks.media().remove(0);
        for (at, bytes) in parts {
            medium.write_at(*at as u64, bytes).unwrap();
        }
        medium
    }

    fn said(parts: &[(usize, &[u8])]) -> Option<String> {
        contents(&*medium(parts)).unwrap()
    }

    #[test]
    fn a_blank_medium_and_a_boot_code_without_partitions_hold_nothing() {
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[(510, &[0x55, 0xaa])]), None);
    }

    #[test]
    fn what_other_programs_keep_there_is_named() {
        let ext: (usize, &[u8]) = (1080, &[0x53, 0xef]);
        for (parts, expected) in [
            (vec![ext], "holds an ext2 file system"),
            (vec![ext, (1116, &[4])], "holds an ext3 file system"),
            (vec![ext, (1120, &[0x40])], "holds an ext4 file system"),
            (vec![(0, b"XFSB")], "holds an XFS file system"),
            (vec![(65_600, b"_BHRfS_M")], "holds a btrfs file system"),
            (vec![(512, b"EFI PART")], "holds a GPT partition table"),
            (vec![(450, &[0x83]), (510, &[0x55, 0xaa])], "holds an MBR partition table"),
            (vec![(512, b"LABELONE"), (536, b"LVM2 001")], "holds an LVM physical volume"),
            (vec![(4086, b"SWAPSPACE2")], "holds swap space"),
            (vec![(0, b"LUKS\xba\xbe")], "holds a LUKS container"),
            (vec![(3, b"NTFS    ")], "holds an NTFS file system"),
        ] {
            assert_eq!(said(&parts).as_deref(), Some(expected));
        }
        let md = &[0xfc, 0x4e, 0x2b, 0xa9];
        // Superblocks 1.1, 1.2, 1.0 and 0.90 of a medium of 257 pages.
        for at in [0, 4096, BYTES - (8 << 10), (1 << 20) - (64 << 10)] {
            assert_eq!(said(&[(at, md)]).as_deref(), Some("holds a member of a Linux RAID"));
        }
    }

    #[test]
    fn a_die_is_named_with_its_volume_and_nothing_is_left_of_what_is_erased() {
        let bytes = usize::try_from(ONE_DIE.die_bytes().0).unwrap();
        let disks = Disks::new(1, bytes, Rng::new(0));
        format(disks.media(), &ONE_DIE, 0x5f).unwrap();
        let die = disks.media().remove(0);
        let expected = "is die 0 of volume 000000000000005f";
        assert_eq!(contents(&*die).unwrap().as_deref(), Some(expected));
        die.write_at(disks.media()[0].size() - (8 << 10), &[0xfc, 0x4e, 0x2b, 0xa9]).unwrap();
        erase(&*die).unwrap();
        assert_eq!(contents(&*die).unwrap(), None);
    }
}
