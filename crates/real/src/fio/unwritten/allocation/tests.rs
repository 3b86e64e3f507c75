//! Allocation of files, and of NVMe drives as nvme-cli would tell it.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::*;
use crate::machine_fixture::Machine;
use crate::tools::fake::Fakes;

#[test]
fn holes_of_a_file_hold_no_data() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(64 << 20).unwrap();
    assert_eq!(of_file(&file, 64 << 20), Some(Vec::new()));
    file.write_all_at(&vec![0; 8 << 20], 16 << 20).unwrap();
    let allocation = Allocation::new("it", of_file(&file, 64 << 20).unwrap());
    assert_eq!(allocation.data_bytes(), 8 << 20, "zeroes that were written are data");
    let places = [0, (16 << 20) - 1, 16 << 20, (24 << 20) - 1, 24 << 20];
    assert_eq!(places.map(|at| allocation.holds(at)), [false, false, true, true, false]);
    assert_eq!(of_file(&file, 20 << 20), Some(vec![(16 << 20, 20 << 20)]), "up to its capacity");
}

/// An answer to Get LBA Status: `condition`, and stretches by first sector and length.
fn answer(condition: u8, stretches: &[(u64, u32)]) -> Vec<u8> {
    let count = u32::try_from(stretches.len()).unwrap();
    let mut bytes = [&count.to_le_bytes()[..], &[condition, 0, 0, 0]].concat();
    for (first, length) in stretches {
        bytes.extend(first.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend([0; 4]);
    }
    bytes.resize(ANSWER_BYTES, 0);
    bytes
}

#[test]
fn allocated_sectors_are_read_from_an_answer() {
    let read =
        |condition, stretches: &[_]| AllocatedSectors::read(&answer(condition, stretches), 8, 100);
    let data = vec![(8, 10), (40, 100)];
    assert_eq!(read(2, &[(0, 10), (40, 60)]), Some(AllocatedSectors { data, is_complete: true }));
    let nothing = Some(AllocatedSectors { data: Vec::new(), is_complete: true });
    assert_eq!(read(2, &[]), nothing);
    assert!(!read(1, &[(8, 1)]).unwrap().is_complete);
    for (why, bad) in [
        ("beyond the end", read(2, &[(40, 61)])),
        ("not in order", read(2, &[(40, 2), (20, 2)])),
        ("no condition", read(0, &[])),
        ("short", AllocatedSectors::read(&[1, 0, 0, 0, 2], 8, 100)),
    ] {
        assert_eq!(bad, None, "{why}");
    }
}

#[test]
fn a_namespace_is_asked_until_its_end_and_only_where_it_can_tell() {
    let machine = Machine::with_disk();
    machine.block("nvme0n1", "nvme0n1", "259:0");
    machine.write("sys/devices/block/nvme0n1/nsid", "1");
    machine.write("sys/devices/block/nvme0n1/queue/logical_block_size", "512");
    let block = machine.system().block_at(Path::new("/dev/nvme0n1")).unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let file = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let first = file("first", answer(1, &[(0, 8)]));
    let second = file("second", answer(2, &[(16, 16)]));
    let body = |oacs| {
        format!(
            "case \"$*\" in id-ctrl*) echo '{{\"oacs\":{oacs}}}';; *cdw10=0\\ *) cat {first};; \
             *cdw10=8\\ *) cat {second};; *) exit 1;; esac"
        )
    };
    let able = Fakes::none().with("nvme", &body(HAS_LBA_STATUS));
    let data = Some(vec![(0, 4096), (8192, 16384)]);
    assert_eq!(of_nvme(&able.tools(), &block, 1 << 20), data);
    let asked = able.asked();
    assert!(asked[1].contains("--opcode=0x86 --namespace-id=1 "), "{asked:?}");
    assert!(asked[2].ends_with("--cdw13=33554432 --read --raw-binary"), "{asked:?}");
    let unable = Fakes::none().with("nvme", &body(0));
    assert_eq!(of_nvme(&unable.tools(), &block, 1 << 20), None);
    assert_eq!(unable.asked().len(), 1, "it is not asked for what it lacks");
    assert_eq!(of_nvme(&Fakes::none().tools(), &block, 1 << 20), None, "no nvme-cli");
}
