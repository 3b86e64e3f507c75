//! Drives into which faults are injected: what was flushed is there, and wrong data is never
//! returned.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockio::Bytes;
use live::fault_injection::{Fault, FaultInjector, InjectionTime, Schedule};
use live::{Access, CreateOptions, Device, DeviceError, Drive, Durability};

use crate::volume_options;

const BLOCK: usize = 8192;
const BLOCKS: u64 = 512;

fn create(folder: &Path, dies: usize) -> CreateOptions {
    let options = volume_options(folder, dies, Bytes(BLOCKS * BLOCK as u64));
    Drive::create(&options).expect("there is room").close().expect("nothing fails");
    options
}

/// A drive with the faults of a schedule.
fn open(options: &CreateOptions, schedule: Schedule) -> (Arc<FaultInjector>, Arc<dyn Device>) {
    open_as(options, schedule, Access::default())
}

/// A drive with the faults of a schedule, its dies accessed in this way.
fn open_as(
    options: &CreateOptions,
    schedule: Schedule,
    access: Access,
) -> (Arc<FaultInjector>, Arc<dyn Device>) {
    let injector = FaultInjector::new(schedule, |_| (), |_, _| ());
    let drive = Drive::open_with_faults(&options.volume, access, &injector).expect("it is whole");
    let device = injector.device(Arc::new(drive));
    (injector, device)
}

fn content(block: u64, round: u64) -> Vec<u8> {
    let seed = block * 1000 + round;
    (0..BLOCK as u64)
        .map(|at| (seed.wrapping_mul(0x9e37_79b9 + at / 512) >> 7).to_le_bytes()[0])
        .collect()
}

fn at(block: u64) -> u64 {
    block * BLOCK as u64
}

#[test]
fn what_a_host_ordered_comes_once_after_so_many_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let (injector, device) = open(&create(folder.path(), 1), Schedule::default());
    let fails = || device.read(0, &mut [0; BLOCK]).is_err();
    injector.order([(2, vec![Fault::FailReads { commands: 1 }]), (9, Vec::new())]);
    assert_eq!(injector.pending_orders(), [0, 1]);
    assert_eq!([(); 3].map(|()| fails()), [false, true, false]);
    assert_eq!(injector.pending_orders(), [1]);
    // The next order takes the place of what is still to come.
    injector.order([(1, vec![Fault::FailReads { commands: 1 }])]);
    injector.order([]);
    assert_eq!([(); 3].map(|()| fails()), [false; 3]);
}

#[test]
fn what_was_flushed_survives_cuts_of_the_power() {
    cut_power_in_rounds(1..40, Access::default());
}

#[test]
fn what_was_flushed_survives_cuts_of_the_power_past_the_page_cache() {
    // Of some sectors all that was written survives: nothing is put back there, at no block's edge.
    cut_power_in_rounds(1..10, Access { is_direct: true, ..Access::default() });
}

#[expect(clippy::unwrap_used, reason = "what the drive does not do fails the test")]
fn cut_power_in_rounds(rounds: Range<u64>, access: Access) {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path(), 4);
    let mut flushed = std::collections::BTreeMap::new();
    for round in rounds {
        let schedule = Schedule { seed: round, planned: Vec::new() };
        let (injector, device) = open_as(&options, schedule, access);
        for block in (0..BLOCKS).filter(|block| (block * 7 + round) % 5 == 0) {
            device.write(at(block), &content(block, round), Durability::Volatile).unwrap();
            flushed.insert(block, round);
        }
        device.flush().unwrap();
        // What is not flushed goes to other blocks.
        let others = |block: &u64| (block * 7 + round) % 5 == 1;
        for block in (0..BLOCKS).filter(others) {
            device.write(at(block), &content(block, round + 1000), Durability::Volatile).unwrap();
        }
        injector.inject(Fault::CutPower {}).unwrap();
        assert!(device.read(0, &mut [0; 512]).is_err() && device.flush().is_err());
        drop(device);
        drop(injector);
        let drive = Drive::open(&options.volume).unwrap();
        for block in 0..BLOCKS {
            let mut found = vec![0; BLOCK];
            drive.read(at(block), &mut found).unwrap();
            let was = flushed.get(&block).copied().unwrap_or_default();
            let expected = if was == 0 { vec![0; BLOCK] } else { content(block, was) };
            if others(&block) {
                // Old or new, page by page; whatever it is stays so.
                let new = content(block, round + 1000);
                for (page, found) in found.chunks(4096).enumerate() {
                    let range = page * 4096..(page + 1) * 4096;
                    assert!(*found == expected[range.clone()] || *found == new[range]);
                }
                drive.write(at(block), &expected, Durability::Volatile).unwrap();
            } else {
                assert!(found == expected, "block {block} after cut {round}");
            }
        }
        drive.close().unwrap();
    }
}

#[test]
fn flipped_bits_are_repaired_or_an_error_and_never_wrong_data() {
    for (dies, bits) in [(4, 200), (1, 200)] {
        let folder = tempfile::tempdir().unwrap();
        let options = create(folder.path(), dies);
        let (injector, device) = open(&options, Schedule::default());
        for block in 0..BLOCKS {
            device.write(at(block), &content(block, 1), Durability::Volatile).unwrap();
        }
        device.flush().unwrap();
        injector.inject(Fault::FlipBits { die: Some(0), bits }).unwrap();
        let mut lost = 0;
        for block in 0..BLOCKS {
            let mut found = vec![0; BLOCK];
            match device.read(at(block), &mut found) {
                Ok(()) => assert!(found == content(block, 1), "block {block}"),
                Err(DeviceError::Unreadable { lba, .. }) if dies == 1 => {
                    assert!((block * 16..block * 16 + 16).contains(&lba));
                    lost += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(lost > 0, dies == 1, "{lost} of {BLOCKS} blocks");
    }
}

#[test]
fn a_drive_goes_on_without_a_die_that_is_made_to_fail() {
    let folder = tempfile::tempdir().unwrap();
    let options = create(folder.path(), 4);
    let planned = vec![(InjectionTime::AfterCommands(20), Fault::FailDie { die: 2 })];
    let (injector, device) = open(&options, Schedule { seed: 1, planned });
    for block in 0..BLOCKS {
        device.write(at(block), &content(block, 1), Durability::Volatile).unwrap();
    }
    device.flush().unwrap();
    for block in 0..BLOCKS {
        let mut found = vec![0; BLOCK];
        device.read(at(block), &mut found).unwrap();
        assert!(found == content(block, 1), "block {block}");
    }
    drop((device, injector));
    assert_eq!(live::inspect(&options.volume).unwrap().smart.critical_warning, 4);
}

#[test]
fn a_drive_that_is_filled_up_reads_trims_and_takes_what_was_trimmed() {
    let folder = tempfile::tempdir().unwrap();
    let (injector, device) = open(&create(folder.path(), 4), Schedule::default());
    device.write(0, &content(0, 1), Durability::Volatile).unwrap();
    injector.inject(Fault::Fill { left_bytes: 0 }).unwrap();
    let write = || device.write(at(1), &content(1, 1), Durability::Volatile);
    assert!(matches!(write(), Err(DeviceError::NoSpace { .. })));
    device.read(0, &mut [0; BLOCK]).unwrap();
    device.trim(0, BLOCK as u64, Durability::Volatile).unwrap();
    write().unwrap();
    assert!(matches!(write(), Err(DeviceError::NoSpace { .. })));
}

#[test]
fn a_drive_that_stalls_answers_when_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let (injector, device) = open(&create(folder.path(), 1), Schedule::default());
    device.write(0, &content(0, 1), Durability::Volatile).unwrap();
    let begun = Instant::now();
    injector.inject(Fault::Stall { stall_ms: 120 }).unwrap();
    device.flush().unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(120));
}
