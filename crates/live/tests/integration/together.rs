//! Reads that are asked for together give what each of them gives alone, whatever way dies are
//! accessed, however pages are stored, and without a die.

use std::path::Path;

use blockio::{Bytes, Rng};
use live::{
    Access, Compression, CreateOptions, Device as _, DeviceError, Drive, Durability, ReadPart,
};

use crate::volume_options;

const SIZE: u64 = 16 << 20;

fn options(folder: &Path, compression: Compression) -> CreateOptions {
    CreateOptions { compression, ..volume_options(folder, 4, Bytes(SIZE)) }
}

/// A range of up to 80 KiB that begins anywhere.
fn any_range(rng: &mut Rng) -> (u64, usize) {
    let offset = rng.below(SIZE - (80 << 10));
    let pages = [0, 1, 2, 20][usize::try_from(rng.below(4)).expect("below 4")];
    let (offset, length) = match rng.below(3) {
        0 => (offset, 1 + rng.below(4096 * pages + 500)),
        _ => (offset / 4096 * 4096, 4096 * pages.max(1)),
    };
    (offset, usize::try_from(length).expect("80 KiB at most"))
}

/// Writes and trims, until relocation has moved much of it. Returns what the drive is to hold.
fn fill(drive: &Drive, rng: &mut Rng) -> Vec<u8> {
    let mut expected = vec![0; usize::try_from(SIZE).expect("a small drive")];
    for _ in 0..3000 {
        let (offset, length) = any_range(rng);
        let from = usize::try_from(offset).expect("a small drive");
        let range = &mut expected[from..from + length];
        if rng.below(10) == 0 {
            range.fill(0);
            drive.trim(offset, length as u64, Durability::Volatile).expect("it is open");
        } else {
            let half = length / 2;
            range[..half].fill_with(|| rng.next_u64().to_le_bytes()[0]);
            range[half..].fill(7);
            drive.write(offset, range, Durability::Volatile).expect("there is space");
        }
    }
    expected
}

/// Reads ranges in lots of up to 200, some of them beyond the end, and looks at each.
fn check(drive: &Drive, expected: &[u8], rng: &mut Rng) {
    for count in [1, 2, 16, 200] {
        let mut places: Vec<(u64, usize)> = (0..count).map(|_| any_range(rng)).collect();
        if count > 2 {
            places[1] = (SIZE - 10, 11);
        }
        let mut found: Vec<Vec<u8>> = places.iter().map(|(_, length)| vec![9; *length]).collect();
        let mut reads = Vec::new();
        for ((offset, _), buffer) in places.iter().zip(&mut found) {
            reads.push(ReadPart { offset: *offset, buffer });
        }
        let answers = drive.read_many(&mut reads);
        assert_eq!(answers.len(), places.len());
        for (((offset, length), found), answer) in places.into_iter().zip(found).zip(answers) {
            if offset + length as u64 > SIZE {
                assert!(matches!(answer, Err(DeviceError::OutOfRange { size: SIZE, .. })));
                continue;
            }
            answer.expect("nothing is lost");
            let from = usize::try_from(offset).expect("a small drive");
            assert!(found == expected[from..from + length], "{length} bytes at {offset}");
        }
    }
}

#[test]
fn reads_asked_for_together_give_what_each_gives_alone() {
    let mut rng = Rng::new(1);
    for compression in [Compression::None, Compression::Lz4] {
        for (is_direct, is_ringed) in [(false, true), (true, true), (true, false)] {
            let folder = tempfile::tempdir().unwrap();
            let options = options(folder.path(), compression);
            Drive::create(&options).unwrap().close().unwrap();
            let access = Access { is_direct, is_ringed };
            let drive = Drive::open_as(&options.volume, access).unwrap();
            let expected = fill(&drive, &mut rng);
            check(&drive, &expected, &mut rng);
            drive.flush().unwrap();
            drive.fail_die(2).unwrap();
            check(&drive, &expected, &mut rng);
            drop(drive);
            let drive = Drive::open_as(&options.volume, access).unwrap();
            check(&drive, &expected, &mut rng);
        }
    }
}
