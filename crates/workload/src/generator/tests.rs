//! Tests of the requests that jobs draw: laws for every workload, statistics for the known ones.

use proptest::prelude::*;

use super::*;
use crate::{ByteRange, SizeShare, catalogue};

const ALONE: Job = Job { index: 0, count: 1 };

fn workload(access: Access, bytes: &[u32]) -> Workload {
    let percent = 100.0 / bytes.len() as f64;
    Workload {
        access,
        sizes: bytes.iter().map(|&bytes| SizeShare { bytes, percent }).collect(),
        ..catalogue::find_workload("8k-70-30").unwrap()
    }
}

/// Reads in order of addresses.
fn ordered(bytes: u32) -> Workload {
    Workload { read_percent: 100.0, ..workload(Access::Sequential, &[bytes]) }
}

fn drawn(workload: &Workload, sectors: u64, job: Job, count: usize) -> Vec<GeneratedRequest> {
    let mut generator = Generator::new(workload, Span { sectors }, job, 42).unwrap();
    (0..count).map(|_| generator.next()).collect()
}

#[test]
fn shares_are_met_within_one_percent_of_the_requests() {
    for workload in catalogue::workloads() {
        let requests = drawn(&workload, 1 << 24, ALONE, 200_000);
        let percent = |count: usize| 100.0 * count as f64 / requests.len() as f64;
        let reads = requests.iter().filter(|request| request.op == Op::Read).count();
        assert!((percent(reads) - workload.read_percent).abs() < 1.0, "{}", workload.name);
        for size in &workload.sizes {
            let same = requests.iter().filter(|request| request.sectors * SECTOR == size.bytes);
            assert!((percent(same.count()) - size.percent).abs() < 1.0, "{}", workload.name);
        }
    }
}

#[test]
fn addresses_are_uniform_by_chi_squared() {
    let places = 100;
    let requests = drawn(&workload(Access::Random, &[4096]), places * 8, ALONE, 100_000);
    let mut seen = vec![0_u32; 100];
    for request in &requests {
        seen[usize::try_from(request.lba.0 / 8).unwrap()] += 1;
    }
    let expected = 1000.0;
    let chi: f64 = seen.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    // 99 degrees of freedom: 99.9 % of uniform samples stay below 148.2, 0.1 % below 61.1.
    assert!((61.1..148.2).contains(&chi), "{chi}");
}

#[test]
fn a_random_map_meets_each_place_once_before_any_a_second_time() {
    let places = 1000;
    let workload = Workload { random_map: true, ..workload(Access::Random, &[4096]) };
    let requests = drawn(&workload, places * 8, ALONE, 2 * 1000);
    let passes: Vec<Vec<u64>> =
        requests.chunks(1000).map(|pass| pass.iter().map(|it| it.lba.0 / 8).collect()).collect();
    for pass in &passes {
        let mut sorted = pass.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..places).collect::<Vec<_>>());
    }
    assert_ne!(passes[0], passes[1], "each pass has an order of its own");
}

#[test]
fn reads_and_writes_of_a_mixed_sequential_load_each_go_through_all_addresses_in_order() {
    let workload = workload(Access::Sequential, &[4096]);
    let requests = drawn(&workload, 64 * 8, ALONE, 500);
    for op in [Op::Read, Op::Write] {
        let lbas = requests.iter().filter(|it| it.op == op).map(|it| it.lba.0 / 8);
        assert!(lbas.zip(0..).all(|(place, number)| place == number % 64), "{op:?}");
    }
}

#[test]
fn a_range_confines_every_access_to_whole_bytes_of_the_drive() {
    let capacity_bytes: u64 = 3_200_631_791_616;
    let range = Some(ByteRange { offset_bytes: 5 << 30, size_bytes: Some((10 << 30) + 4096) });
    let (first, end) = ((5 << 30) / 512, ((15 << 30) + 4096) / 512);
    for access in [Access::Random, Access::Sequential, Access::Zipf { theta: 1.1 }] {
        let ranged = Workload { range, ..workload(access, &[4096]) };
        let placed = ranged.placed(capacity_bytes).unwrap();
        let requests = drawn(&placed, capacity_bytes / 512, ALONE, 1000);
        assert!(requests.iter().all(|it| (first..end).contains(&it.lba.0)), "{access:?}");
        let beyond = ranged.placed((5 << 30) + 40_960).unwrap_err();
        assert_eq!((beyond.offset_bytes, beyond.capacity_bytes), (5 << 30, (5 << 30) + 40_960));
    }
    let small = Workload { range, ..ordered(4096) };
    let placed = small.placed((15 << 30) + 4096).unwrap();
    let all = drawn(&placed, end, ALONE, (10 << 30) / 4096 + 2);
    let lbas = |at: usize| all[at].lba.0;
    assert_eq!((lbas(0), lbas(all.len() - 2), lbas(all.len() - 1)), (first, end - 8, first));
}

#[test]
fn jobs_of_a_shared_start_go_through_the_same_addresses() {
    let workload = Workload { shared_start: true, ..ordered(4096) };
    for index in [0, 3] {
        let requests = drawn(&workload, 64, Job { index, count: 4 }, 9);
        let lbas: Vec<u64> = requests.iter().map(|it| it.lba.0).collect();
        assert_eq!(lbas, [0, 8, 16, 24, 32, 40, 48, 56, 0], "job {index}");
    }
}

#[test]
fn the_same_seed_draws_the_same_requests_and_another_job_others() {
    for workload in catalogue::workloads() {
        let of = |index| drawn(&workload, 1 << 24, Job { index, count: 2 }, 100);
        assert_eq!(of(0), of(0), "{}", workload.name);
        assert_ne!(of(0), of(1), "{}", workload.name);
    }
}

#[test]
fn the_requests_of_a_seed_never_change() {
    let requests = drawn(&catalogue::find_workload("file-server").unwrap(), 1 << 30, ALONE, 4);
    let shown: Vec<_> = requests.iter().map(|it| (it.op, it.lba.0, it.sectors)).collect();
    let expected = [
        (Op::Read, 917_768_283, 8),
        (Op::Write, 792_263_261, 2),
        (Op::Read, 1_007_641_608, 2),
        (Op::Write, 671_914_828, 128),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn sequential_jobs_ascend_in_slices_of_their_own_and_wrap() {
    let workload = ordered(8192);
    let lbas = |index| {
        let requests = drawn(&workload, 16 * 7, Job { index, count: 2 }, 4);
        requests.iter().map(|request| request.lba.0).collect::<Vec<_>>()
    };
    assert_eq!(lbas(0), [0, 16, 32, 0]);
    assert_eq!(lbas(1), [48, 64, 80, 48]);
}

#[test]
fn hot_requests_go_to_the_first_part_of_the_footprint() {
    let access = Access::HotCold { hot_request_percent: 90.0, hot_space_percent: 20.0 };
    let requests = drawn(&workload(access, &[4096]), 8 * 1000, ALONE, 100_000);
    let hot = requests.iter().filter(|request| request.lba.0 < 8 * 200).count();
    assert!((89_500..90_500).contains(&hot), "{hot}");
}

#[test]
fn zipf_jobs_share_what_is_hot() {
    let workload = workload(Access::Zipf { theta: 1.2 }, &[4096]);
    let hottest = |index| {
        let requests = drawn(&workload, 8 * 10_000, Job { index, count: 2 }, 10_000);
        let mut lbas: Vec<u64> = requests.iter().map(|request| request.lba.0).collect();
        lbas.sort_unstable();
        let longest = lbas.chunk_by(|a, b| a == b).max_by_key(|chunk| chunk.len()).unwrap();
        (longest[0], longest.len() > 1000)
    };
    assert_eq!(hottest(0), hottest(1));
    assert!(hottest(0).1);
}

#[test]
fn a_drive_too_small_for_the_largest_request_is_refused() {
    let workload = workload(Access::Sequential, &[4096, 1 << 20]);
    let job = Job { index: 0, count: 16 };
    let error = Generator::new(&workload, Span { sectors: 16 * 1000 }, job, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "workload `8k-70-30` has 1000 sectors to address in each of 16 slices, but its largest \
         request needs 2048"
    );
}

fn any_access() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Random),
        Just(Access::Sequential),
        (0.1_f64..5.0).prop_map(|theta| Access::Zipf { theta }),
        (0.0_f64..=100.0, 0.1_f64..99.9).prop_map(|(hot_request_percent, hot_space_percent)| {
            Access::HotCold { hot_request_percent, hot_space_percent }
        }),
    ]
}

proptest! {
    #[test]
    fn every_request_is_aligned_inside_and_of_a_size_of_the_mix(
        access in any_access(),
        sizes in proptest::collection::btree_set(1_u32..300, 1..6),
        align_sectors in 0_u32..20,
        sectors in 1_u64..1 << 20,
        footprint_percent in 0.1_f64..=100.0,
        job in (1_u16..20).prop_flat_map(|count| {
            (0..count).prop_map(move |index| Job { index, count })
        }),
    ) {
        let bytes: Vec<u32> = sizes.iter().map(|sectors| sectors * SECTOR).collect();
        let workload = Workload {
            align_bytes: align_sectors * SECTOR,
            footprint_percent,
            ..workload(access, &bytes)
        };
        let footprint = sectors as f64 * footprint_percent / 100.0;
        let Ok(mut generator) = Generator::new(&workload, Span { sectors }, job, 1) else {
            return Ok(());
        };
        for _ in 0..200 {
            let request = generator.next();
            prop_assert!(sizes.contains(&request.sectors));
            prop_assert!((request.lba.0 + u64::from(request.sectors)) as f64 <= footprint);
            let align = u64::from(workload.alignment_bytes() / SECTOR);
            prop_assert!(request.lba.0.is_multiple_of(align));
        }
    }
}
