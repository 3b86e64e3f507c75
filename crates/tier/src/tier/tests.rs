//! Places of blocks under each policy.

use proptest::prelude::*;

use super::*;
use crate::Replacement;
use crate::policy::Pin;

const DAY: Nanos = Nanos(86_400_000_000_000);

fn policy(write: WriteMode) -> Policy {
    Policy {
        write,
        layout: Layout::InPlace,
        read_cache: Some(Replacement::Lru),
        write_percent: 50.0,
        destage_kib: 16,
        destage_percent: 50.0,
        destage_units: 2,
        spare_percent: 30.0,
        band_mib: 1,
        split: false,
        admit_after: 1,
        admit_kib_max: 128,
        admit_drive_writes_per_day: None,
        pins: Vec::new(),
    }
}

fn tier(policy: &Policy) -> Tier {
    Tier::new(policy, &classes(64, 8192)).unwrap()
}

fn classes(fast_blocks: u64, slow_blocks: u64) -> Classes {
    Classes { fast_blocks, slow_blocks, time_lapse: 1 }
}

fn transfer(class: Class, direction: Direction, first: u32, blocks: u32) -> Transfer {
    Transfer { class, direction, first, blocks }
}

#[test]
fn what_was_written_is_read_from_the_fast_class_until_it_is_destaged() {
    for write in [WriteMode::Shape, WriteMode::Back] {
        let mut tier = tier(&policy(write));
        for block in 0..17 {
            assert!(tier.destage().is_none(), "half of the space is not in use");
            let plan = tier.write((100 + block, 1), Nanos::ZERO);
            assert_eq!(plan.awaited, [transfer(Class::Fast, Direction::Write, block, 1)]);
        }
        assert_eq!(tier.read((100, 1), Nanos::ZERO).awaited[0].class, Class::Fast);
        let destage = tier.destage().unwrap();
        assert_eq!(destage.writes, [transfer(Class::Slow, Direction::Write, 100, 4)]);
        assert_eq!(destage.reads, [transfer(Class::Fast, Direction::Read, 0, 4)]);
        assert_eq!(tier.read((100, 1), Nanos::ZERO).awaited[0].class, Class::Fast);
        tier.destaged(&destage);
        let plan = tier.read((100, 1), Nanos::ZERO);
        assert_eq!(plan.awaited, [transfer(Class::Slow, Direction::Read, 100, 1)]);
        assert_eq!(plan.after[0].direction, Direction::Write, "it is admitted to the cache");
        assert_eq!(tier.read((100, 1), Nanos::ZERO).awaited[0].class, Class::Fast);
        assert_eq!((tier.counters().destaged, tier.counters().held), (4, 3));
    }
}

#[test]
fn a_write_waits_where_the_fast_class_is_full() {
    let mut tier = tier(&policy(WriteMode::Back));
    while tier.has_room(1) {
        let block = u32::try_from(tier.counters().written * 8).unwrap();
        tier.write((block, 1), Nanos::ZERO);
    }
    assert_eq!(tier.counters().written, 32);
    let destages: Vec<Destage> = std::iter::from_fn(|| tier.destage()).collect();
    assert_eq!(destages.len(), 2, "no more at a time than the policy says");
    tier.destaged(&destages[0]);
    assert!(tier.has_room(1) && tier.destage().is_some());
}

#[test]
fn writes_around_invalidate_the_copy_and_writes_through_renew_it() {
    let mut around = tier(&policy(WriteMode::Around));
    around.read((5, 1), Nanos::ZERO);
    let slow = transfer(Class::Slow, Direction::Write, 5, 1);
    assert_eq!(around.write((5, 1), Nanos::ZERO).awaited, [slow]);
    assert_eq!(around.read((5, 1), Nanos::ZERO).awaited[0].class, Class::Slow);
    let mut through = tier(&policy(WriteMode::Through));
    through.read((5, 1), Nanos::ZERO);
    let both = through.write((5, 1), Nanos::ZERO).awaited;
    assert_eq!(both, [slow, transfer(Class::Fast, Direction::Write, 0, 1)]);
    assert_eq!(through.read((5, 1), Nanos::ZERO).awaited[0].class, Class::Fast);
}

#[test]
fn admission_waits_for_misses_and_keeps_to_size_and_budget() {
    let twice = Policy { admit_after: 2, ..policy(WriteMode::Around) };
    let mut tier_twice = tier(&twice);
    let admitted = [0, 1, 2].map(|_| tier_twice.read((5, 1), Nanos::ZERO).after.len());
    assert_eq!(admitted, [0, 1, 0]);
    let small = Policy { admit_kib_max: 8, ..policy(WriteMode::Around) };
    let mut tier_small = tier(&small);
    assert!(tier_small.read((8, 3), Nanos::ZERO).after.is_empty());
    assert_eq!(tier_small.read((8, 2), Nanos::ZERO).after[0].blocks, 2);
    let budgeted =
        Policy { admit_drive_writes_per_day: Some(24.0 / 64.0), ..policy(WriteMode::Around) };
    let mut tier_budgeted = tier(&budgeted);
    let mut admitted = |block, at| tier_budgeted.read((block, 1), at).after.len();
    assert_eq!([admitted(1, Nanos::ZERO), admitted(2, Nanos::ZERO)], [1, 0], "one an hour");
    assert_eq!(admitted(3, DAY / 24), 1);
}

#[test]
fn pinned_ranges_stay_on_their_class() {
    let gb = |blocks: f64| blocks * 4096.0 / 1e9;
    let pin = |from, to, class| Pin { from_gb: gb(from), to_gb: gb(to), class };
    let pins = vec![pin(10.0, 20.0, Class::Fast), pin(30.0, 40.0, Class::Slow)];
    let pinned = Policy { pins, ..policy(WriteMode::Back) };
    let mut tier = tier(&pinned);
    let fast = tier.write((12, 2), Nanos::ZERO).awaited;
    assert_eq!(fast, [transfer(Class::Fast, Direction::Write, 2, 2)]);
    assert_eq!(tier.read((12, 2), Nanos::ZERO).awaited[0].class, Class::Fast);
    assert_eq!(tier.write((30, 1), Nanos::ZERO).awaited[0].class, Class::Slow);
    let read = tier.read((30, 1), Nanos::ZERO);
    assert_eq!((read.awaited[0].class, read.after.len()), (Class::Slow, 0));
    let beyond = Policy { pins: vec![pin(0.0, 65.0, Class::Fast)], ..policy(WriteMode::Back) };
    let error = Tier::new(&beyond, &classes(64, 8192)).unwrap_err().to_string();
    let expected = "pin is 65 blocks on the fast class, must be at most the 64 blocks of the fast \
                    class";
    assert_eq!(error, expected);
}

#[test]
fn policies_that_cannot_work_are_refused_with_the_reason() {
    let refused =
        |policy: Policy, fast| Tier::new(&policy, &classes(fast, 8192)).unwrap_err().to_string();
    let error = refused(policy(WriteMode::Back), 16);
    assert!(error.starts_with("write_percent is 50, 8 blocks of 4 KiB, must be at least 16"));
    let log = Policy { layout: Layout::Log, ..policy(WriteMode::Around) };
    assert!(refused(log, 64).starts_with("layout is log, must be in-place where writes"));
    let few = Policy { layout: Layout::Log, band_mib: 8, ..policy(WriteMode::Shape) };
    assert!(refused(few, 64).starts_with("band_mib is 8 MiB of 8192 blocks of 4 KiB, must be a"));
    let alone = Policy { read_cache: None, ..policy(WriteMode::Around) };
    assert!(refused(alone, 64).starts_with("write is around or through, must be shape or back"));
    let odd = Policy { destage_kib: 6, ..policy(WriteMode::Back) };
    assert_eq!(refused(odd, 64), "destage_kib is 6, must be a multiple of 4");
    let error = Tier::new(&policy(WriteMode::Back), &classes(64, 1 << 32)).unwrap_err();
    assert!(error.to_string().starts_with("slow is 4294967296 blocks, must be below"));
}

proptest! {
    #[test]
    fn a_log_writes_whole_units_and_finds_each_block_where_it_was_written(
        writes in prop::collection::vec(0_u32..5000, 400..2000),
    ) {
        let log = Policy { layout: Layout::Log, destage_percent: 0.0, ..policy(WriteMode::Shape) };
        let mut tier = tier(&log);
        let mut units = std::collections::BTreeSet::new();
        for block in &writes {
            tier.write((*block % tier.blocks(), 1), Nanos::ZERO);
            while let Some(destage) = tier.destage() {
                for write in &destage.writes {
                    prop_assert_eq!((write.first % 4, write.blocks), (0, 4));
                    units.insert(write.first);
                }
                tier.destaged(&destage);
            }
        }
        let blocks = tier.blocks();
        let mut unwritten = std::collections::BTreeSet::new();
        for block in writes.iter().map(|block| block % blocks) {
            let read = tier.read((block, 1), Nanos::ZERO).awaited[0];
            if read.class == Class::Slow && !units.contains(&(read.first / 4 * 4)) {
                unwritten.insert(read.first);
            }
        }
        prop_assert!(unwritten.len() < 4, "the last blocks wait in memory for the rest of a unit");
        let counters = tier.counters();
        prop_assert!(counters.destaged + counters.absorbed <= counters.written);
    }
}
