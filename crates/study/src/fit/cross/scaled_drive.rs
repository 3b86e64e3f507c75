//! A smaller drive in place of a large one, whose states take less memory and time.
//!
//! The corrections of a cross-validation hold the remaining difference, a factor for each figure.

use ssd::{DriveSpec, HostSpec};

/// Pages of 4 KiB of the media, at its time lapse, above which a drive is made smaller.
const PAGES_LARGE: u64 = 40_000_000;
/// Pages of 4 KiB that a drive which is made smaller has at most.
const PAGES_MAX: u64 = 12_000_000;
/// Programs of an erase block that remain at least.
const PROGRAMS_MIN: u32 = 16;
const PAGE_KIB: u32 = 4;

/// One device of a group of NAND drives, with its share of the host's processors, and with erase
/// blocks of fewer pages where it is large.
///
/// Devices of a group are alike and share nothing else, so the rate of the group is that of one
/// times their number. Write amplification depends on the number of superblocks and on the spare
/// share, not on their size. The time of an erase shrinks with its block.
pub(super) fn scaled_drive(spec: DriveSpec) -> DriveSpec {
    if !spec.is_nand() {
        return spec;
    }
    let mut spec = one_of_its_group(spec);
    let by = shrinking(&spec);
    spec.geometry.pages_per_erase_block /= by;
    spec.nand.t_erase_us /= f64::from(by);
    for format in &mut spec.formats {
        format.user_gb /= f64::from(by);
        format.physical_gb = format.physical_gb.map(|physical_gb| physical_gb / f64::from(by));
    }
    spec
}

fn one_of_its_group(spec: DriveSpec) -> DriveSpec {
    let count = spec.device_count();
    let share = |host: HostSpec| HostSpec { processors: host.processors.div_ceil(count), ..host };
    let hosts = spec.hosts.into_iter().map(share).collect();
    DriveSpec { devices: None, hosts, ..spec }
}

/// Power of two by which the pages of erase blocks are divided.
fn shrinking(spec: &DriveSpec) -> u32 {
    let geometry = &spec.geometry;
    let mut pages = spec.raw_capacity().0 / (u64::from(PAGE_KIB) * 1024);
    pages /= u64::from(spec.time_lapse_default());
    let (mut by, of_block) = (1, geometry.pages_per_erase_block);
    let may_halve = |by: u32| {
        let left = of_block / (by * 2);
        of_block.is_multiple_of(by * 2)
            && left.is_multiple_of(geometry.pages_per_program)
            && left >= PROGRAMS_MIN * geometry.pages_per_program
    };
    if pages <= PAGES_LARGE {
        return 1;
    }
    while pages > PAGES_MAX && may_halve(by) {
        (pages, by) = (pages / 2, by * 2);
    }
    by
}

#[cfg(test)]
mod tests {
    use ssd::catalogue;

    use super::*;

    #[test]
    fn large_drives_and_groups_get_small_and_others_stay() {
        let seen = |name: &str| scaled_drive(catalogue::find(name).unwrap());
        let large = "solidigm-d5-p5336-122880";
        let (whole, small) = (catalogue::find(large).unwrap(), seen(large));
        let by = whole.geometry.pages_per_erase_block / small.geometry.pages_per_erase_block;
        assert!(by >= 4, "{by}");
        let share = |it: &DriveSpec| it.formats[0].user_gb * 1e9 / it.raw_capacity().0 as f64;
        let shares = [share(&whole), share(&small)];
        assert!((shares[0] / shares[1] - 1.0).abs() < 1e-9, "as much to spare: {shares:?}");
        let one = seen("p5510-eight");
        assert_eq!((one.device_count(), one.hosts[0].processors), (1, 10));
        assert_eq!(seen("px600-2600"), catalogue::find("px600-2600").unwrap());
        assert_eq!(seen("p5800x-pair"), catalogue::find("p5800x-pair").unwrap());
    }
}
