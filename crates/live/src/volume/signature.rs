//! Contents of a medium before it becomes a die: a die of some volume, or what other programs have
//! there.

use std::io;

use status::drive_id;

use crate::Medium;
use crate::engine::dies::header_copies::{self, newest_header};
use crate::engine::dies::signature::{ENDS_BYTES, known};
use crate::format::header::Header;
use crate::medium::overwrite;

/// Says what a medium holds, such as `holds an ext4 file system`; none if it is blank as far as
/// signatures tell.
///
/// # Errors
/// Fails if it cannot be read: then its contents are unknown.
pub(super) fn contents(medium: &dyn Medium) -> io::Result<Option<String>> {
    match newest_header(medium) {
        Ok(None) => {}
        Ok(Some(Header { die, drive, .. })) => {
            return Ok(Some(format!("is die {die} of volume {}", drive_id(drive))));
        }
        Err(error) => return Ok(Some(format!("is a die of a volume ({error})"))),
    }
    Ok(known(medium)?.map(|what| format!("holds {what}")))
}

/// Erases whatever says what a medium held, at both of its ends: no program takes it for that then.
pub(super) fn erase(medium: &dyn Medium) -> io::Result<()> {
    header_copies::erase(medium)?;
    let size = medium.size();
    overwrite(medium, 0, size.min(ENDS_BYTES))?;
    overwrite(medium, size.saturating_sub(ENDS_BYTES), size.min(ENDS_BYTES))?;
    medium.sync()
}

#[cfg(test)]
mod tests {
    use blockio::Rng;

    use super::*;
    use crate::engine::drive::SMALL_SHAPE;
    use crate::format;
    use crate::simulation::Disks;

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
        let disks = Disks::new(
            1,
            usize::try_from(SMALL_SHAPE.die_bytes_with_end().0).unwrap(),
            Rng::new(0),
        );
        format(disks.media(), &SMALL_SHAPE, 0x5f).unwrap();
        let die = disks.media().remove(0);
        let expected = "is die 0 of volume 000000000000005f";
        assert_eq!(contents(&*die).unwrap().as_deref(), Some(expected));
        die.write_at(disks.media()[0].size() - (8 << 10), &[0xfc, 0x4e, 0x2b, 0xa9]).unwrap();
        erase(&*die).unwrap();
        assert_eq!(contents(&*die).unwrap(), None);
    }
}
