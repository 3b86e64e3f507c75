//! Signatures of other programs: a file system, a partition table, or a member of a RAID, LVM or an
//! encryption, by the magic numbers that `blkid` looks for.
//!
//! Sources: libblkid of util-linux 2.39 (`superblocks/`, `partitions/`), Linux `md_p.h`.

use std::io;

use crate::Medium;
use crate::format::layout::PAGE_BYTES;

/// Bytes at the beginning and at the end in which signatures lie.
pub(crate) const ENDS_BYTES: u64 = 128 << 10;
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

/// Name of what a medium holds; none if it is blank as far as signatures tell.
///
/// # Errors
/// Fails if it cannot be read: then it is unknown.
pub(crate) fn known(medium: &dyn Medium) -> io::Result<Option<&'static str>> {
    let start = read(medium, 0, ENDS_BYTES)?;
    match at_start(&start) {
        Some(what) => Ok(Some(what)),
        None => md(medium, &start),
    }
}

/// Says what else than a die a medium is by now, such as `an ext4 file system`, as far as it can be
/// read.
pub(crate) fn foreign(medium: &dyn Medium) -> Option<&'static str> {
    let mut start = vec![0; usize::try_from(medium.size().min(ENDS_BYTES)).expect("a small range")];
    for (page, at) in start.chunks_mut(PAGE_BYTES).zip((0..).step_by(PAGE_BYTES)) {
        if medium.read_at(at, page).is_err() {
            page.fill(0);
        }
    }
    at_start(&start).or_else(|| md(medium, &start).ok().flatten())
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

/// Name of what lies at the beginning, but for Linux RAIDs.
fn at_start(start: &[u8]) -> Option<&'static str> {
    in_magics(start).or_else(|| ext(start)).or_else(|| mbr(start))
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
