//! Tests of traces: what each format says, what is skipped and what is refused.

use proptest::prelude::*;

use super::reading::BROKEN_MAX;
use super::*;
use crate::{Access, SizeShare, Span, Workload, catalogue};

fn trace(text: &str) -> Trace {
    read(text.as_bytes(), "t").unwrap()
}

fn told(text: &str) -> String {
    read(text.as_bytes(), "traces/t.csv").unwrap_err().to_string()
}

/// Time in microseconds, direction, sector and sectors of each request.
fn shown(trace: &Trace) -> Vec<(u64, Op, u64, u32)> {
    let requests = trace.requests().iter();
    requests.map(|it| (it.at.0 / 1000, it.op, it.lba, it.sectors)).collect()
}

const V2: &str = "fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sda read 4096 8192
/dev/sda wait 1500 0
/dev/sda write 0 512
/dev/sda sync 0 0
/dev/sda wait 500 0
/dev/sda trim 0 4096
/dev/sda read 1048576 4096
/dev/sda close
";

#[test]
fn version_2_of_an_iolog_gives_order_and_pauses() {
    let trace = trace(V2);
    assert_eq!(trace.format(), Format::IologV2);
    let expected = [(0, Op::Read, 8, 16), (1500, Op::Write, 0, 1), (2000, Op::Read, 2048, 8)];
    assert_eq!(shown(&trace), expected);
    assert_eq!(trace.skipped().other, 2, "a sync and a trim");
    assert_eq!(trace.space_sectors(), 4096, "whole MiB");
}

#[test]
fn version_3_of_an_iolog_gives_times_in_microseconds() {
    let text = "fio version 3 iolog\n5 /d add\n5 /d open\n10 /d read 0 512\n40 /d write 512 512\n";
    assert_eq!(shown(&trace(text)), [(0, Op::Read, 0, 1), (30, Op::Write, 1, 1)]);
}

#[test]
fn blkparse_counts_a_request_when_it_is_queued() {
    let text = "\
  8,0    3        1     0.000000000   697  Q   W 16 + 8 [kjournald]
  8,0    3        2     0.000001000   697  G   W 16 + 8 [kjournald]
  8,0    3        3     0.000002000   697  D   W 16 + 8 [kjournald]
  8,0    3        4     0.000100000     0  C   W 16 + 8 [0]
  8,0    3        5     0.000200000   697  Q  RA 800 + 64 [cat]
  8,0    3        6     0.000300000   697  Q   D 0 + 64 [fstrim]
  8,0    3        7     0.000300000   697  Q FWS [sync]
  8,0    3        8     0.000400000     0  m   N cfq700 idle
CPU3 (sda):
 Reads Queued:           1,       32KiB\t Writes Queued:           1,        4KiB
";
    let trace = trace(text);
    assert_eq!(trace.format(), Format::Blkparse);
    assert_eq!(shown(&trace), [(0, Op::Write, 16, 8), (200, Op::Read, 800, 64)]);
    assert_eq!((trace.skipped().broken, trace.skipped().other), (0, 2));
}

#[test]
fn blkparse_without_queueing_counts_a_request_when_it_is_issued() {
    let text = "8,0 0 1 1.000000000 1 D R 16 + 8 [a]\n8,0 0 2 1.000500000 1 D W 32 + 8 [a]\n";
    assert_eq!(shown(&trace(text)), [(0, Op::Read, 16, 8), (500, Op::Write, 32, 8)]);
    // An issue that was traced before the first queueing belongs to an earlier request.
    let text = "8,0 0 1 1.0 1 D R 16 + 8 [a]\n8,0 0 2 1.5 1 Q W 32 + 8 [a]\n";
    assert_eq!(shown(&trace(text)), [(0, Op::Write, 32, 8)]);
}

#[test]
fn msr_times_are_ticks_of_windows_and_disks_follow_each_other() {
    let text = "\
128166372003061629,hm,0,Read,383496192,32768,413
128166372016382155,hm,1,Write,0,4096,100
128166372003061639,hm,0,Read,512,512,1
";
    let trace = trace(text);
    assert_eq!(trace.format(), Format::Msr);
    let second = trace.requests()[2];
    assert_eq!(second.at, Nanos((128_166_372_016_382_155 - 128_166_372_003_061_629) * 100));
    let first_disk = (383_496_192_u64 + 32_768).div_ceil(1 << 20) << 11;
    assert_eq!(second.lba, first_disk, "after the first disk");
    assert_eq!(trace.skipped().disordered, 1);
    assert_eq!(trace.requests()[1].at, Nanos(1000), "put in its place");
}

#[test]
fn a_disk_of_msr_is_its_host_and_its_number() {
    let space = |one: &str, other: &str| {
        let text = format!(
            "128166372003061629,{one},Write,0,4096,413\n\
             128166372003071629,{other},Read,0,4096,413\n"
        );
        trace(&text).space_sectors() * blockio::SECTOR_BYTES
    };
    let mib = 1 << 20;
    assert_eq!(space("hm,0", "hm,1"), 2 * mib);
    assert_eq!(space("hm,0", "web,0"), 2 * mib, "every host has a disk 0");
    assert_eq!(space("hm,0", "hm,0"), mib);
}

#[test]
fn systor_times_are_seconds_and_logical_units_follow_each_other() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                1456088400.000001,.001200,W,0,4096,4096\n\
                1456088400.000003,,R,1,0,512\n1456088401.5,.1,R,0,8192,8192\n";
    let found = trace(text);
    assert_eq!(found.format(), Format::Systor);
    let expected = [(0, Op::Write, 8, 8), (2, Op::Read, 2048, 1), (1_499_999, Op::Read, 16, 16)];
    assert_eq!(shown(&found), expected);
    let headless = trace("1456088400.000001,.001200,W,0,4096,4096\n");
    assert_eq!(headless.format(), Format::Systor);
}

#[test]
fn a_device_beneath_another_of_the_same_trace_is_named() {
    let dm = "253,0 3 1 0.000000000 697 Q W 16 + 8 [kjournald]\n";
    let remapped = "8,0 3 2 0.000001000 697 A W 2064 + 8 <- (253,0) 16\n";
    let disk = "8,0 3 3 0.000002000 697 Q W 2064 + 8 [kjournald]\n";
    let beneath = |text: String| trace(&text).skipped().beneath.clone();
    let pair = Beneath { upper: "253,0".into(), lower: "8,0".into() };
    assert_eq!(beneath(format!("{dm}{remapped}{disk}")), [pair]);
    let partition = "8,0 3 2 0.000001000 697 A W 2064 + 8 <- (8,1) 16\n";
    assert_eq!(beneath(format!("{partition}{disk}")), [], "a partition has no requests of its own");
}

#[test]
fn requests_that_are_no_whole_sectors_are_widened_and_counted() {
    let text = "fio version 2 iolog\n/d read 100 512\n/d read 512 1024\n/d write 0 100\n";
    let found = trace(text);
    assert_eq!(found.skipped().widened, 2);
    assert_eq!(shown(&found)[0], (0, Op::Read, 0, 2));
}

#[test]
fn spc_addresses_are_blocks_and_sizes_bytes() {
    let trace = trace("0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041,extra\n");
    assert_eq!(trace.format(), Format::Spc);
    assert_eq!(shown(&trace), [(0, Op::Write, 20_941_264, 16), (2335, Op::Read, 20_939_840, 16)]);
}

#[test]
fn a_broken_line_is_counted_and_the_first_is_kept_with_its_reason() {
    let trace = trace("0,1,512,W,0.1\n0,1,5x2,W,0.2\n0,1,512,Z,0.3\n0,1,0,R,0.4\n0,2,512,R,0.5\n");
    assert_eq!(trace.requests().len(), 2);
    assert_eq!(trace.skipped().broken, 3);
    let first = trace.skipped().first_broken.as_ref().unwrap();
    assert_eq!((first.line, first.text.as_str()), (2, "the size is `5x2`, not a number"));
}

#[test]
fn too_many_broken_lines_stop_the_reading() {
    let mut text = "0,1,512,W,0.1\n".to_owned();
    (0..=BROKEN_MAX).for_each(|_| text.push_str("0,1,512\n"));
    assert_eq!(
        told(&text),
        "traces/t.csv:2: 3 fields, at least 5 are needed (this and 1000 more lines are broken: \
         the file is not a trace, or is damaged)"
    );
}

#[test]
fn what_is_no_trace_is_told_what_one_would_be() {
    let known =
        "fio iolog (version 2 or 3), blkparse text, MSR Cambridge CSV, SYSTOR '17 CSV or SPC";
    for text in ["\nhello\n", "fio version 1 iolog\n", "\u{0}\u{1}\u{2}\n"] {
        let told = told(text);
        assert!(told.starts_with("traces/t.csv:"), "{told}");
        assert!(told.ends_with(known), "{told}");
    }
    assert_eq!(told(""), "traces/t.csv: it has no reads or writes");
    assert_eq!(
        told("fio version 2 iolog\n/a add\n/a reed 0 512\n"),
        "traces/t.csv:3: `reed` is not an action of an iolog"
    );
}

#[test]
fn lines_of_another_system_and_blank_lines_are_read() {
    let trace = trace("\r\n0,1,512,W,0.1\r\n\r\n0,1,512,R,0.2\r\n");
    assert_eq!((trace.requests().len(), trace.skipped().broken), (2, 0));
}

#[test]
fn a_written_iolog_is_read_back() {
    let trace = trace("0,8,4096,W,0.5\n0,16,512,R,0.75\n");
    let requests = || trace.requests().iter().map(|it| (it.at, it.op, it.lba, it.sectors));
    let written = |file, is_timed| Iolog { file, is_timed }.text(requests());
    let again = read(written("/x", true).as_bytes(), "x").unwrap();
    assert_eq!((again.requests(), again.is_synthetic()), (trace.requests(), false));
    let untimed = read(written(SYNTHETIC, false).as_bytes(), "x").unwrap();
    assert_eq!((untimed.span(), untimed.is_synthetic()), (Nanos::ZERO, true));
}

#[test]
fn a_made_up_trace_has_the_statistics_that_it_was_made_from() {
    let workload = catalogue::find_workload("mail-server").unwrap();
    let shape = TraceShape { requests: 200_000, ..workload.trace.clone().unwrap() };
    let trace = synthesise(&workload, &shape, 7).unwrap();
    let found = trace.statistics();
    let near = |found: f64, asked: f64, by: f64| assert!((found - asked).abs() < by, "{found}");
    assert!(trace.is_synthetic());
    near(found.read_percent, workload.read_percent, 0.3);
    near(found.mean_bytes / workload.mean_bytes(), 1.0, 0.01);
    near(found.sequential_percent, shape.sequential_percent, 0.5);
    near(found.iops.unwrap() / shape.iops, 1.0, 0.03);
    near(found.burstiness.unwrap() / shape.burstiness, 1.0, 0.1);
    assert!(found.hottest_tenth_percent > 20.0, "{}", found.hottest_tenth_percent);
    assert_eq!(synthesise(&workload, &shape, 7).unwrap(), trace);
    assert_ne!(synthesise(&workload, &shape, 8).unwrap(), trace);
}

/// A digest of all requests of a trace, in order: times in microseconds, sectors, directions.
fn digest(trace: &Trace) -> u64 {
    trace.requests().iter().fold(0xcbf2_9ce4_8422_2325, |hash, it| {
        let fields = [it.at.0 / 1000, it.lba, it.sectors.into(), u64::from(it.op == Op::Write)];
        fields.iter().fold(hash, |hash, field| (hash ^ field).wrapping_mul(0x100_0000_01b3))
    })
}

/// Digest of the first 20,000 requests that version 0.1.0 made of the mail server with the seed 7.
const DIGEST: u64 = 0xac37_27ab_5d16_cec1;

#[test]
fn a_trace_without_phases_is_the_one_that_it_always_was() {
    let workload = catalogue::find_workload("mail-server").unwrap();
    let shape = TraceShape { requests: 20_000, ..workload.trace.clone().unwrap() };
    assert_eq!(digest(&synthesise(&workload, &shape, 7).unwrap()), DIGEST);
    // One phase that states nothing is no phase.
    let phases = vec![phase("all", 100.0)];
    let shape = TraceShape { phases, cycles: 7, ..shape };
    assert_eq!(digest(&synthesise(&workload, &shape, 7).unwrap()), DIGEST);
}

fn phase(name: &str, percent: f64) -> TracePhase {
    TracePhase {
        name: name.into(),
        percent,
        read_percent: None,
        access: None,
        sizes: None,
        sequential_percent: None,
        iops: None,
        burstiness: None,
    }
}

/// A workload of uniform 4 KiB reads, whose trace of 40,000 requests has two phases in ten cycles:
/// a quarter like the workload itself, then writes of 64 KiB in runs to the second half, four times
/// as fast.
fn phased() -> (Workload, TraceShape) {
    let workload = catalogue::find_workload("4k-rand-read").unwrap();
    let writes = TracePhase {
        read_percent: Some(0.0),
        access: Some(Access::HotCold { hot_request_percent: 0.0, hot_space_percent: 50.0 }),
        sizes: Some(vec![SizeShare { bytes: 65536, percent: 100.0 }]),
        sequential_percent: Some(75.0),
        iops: Some(4000.0),
        ..phase("writes", 75.0)
    };
    let shape = TraceShape {
        requests: 40_000,
        space_gb: 10.0,
        sequential_percent: 0.0,
        iops: 1000.0,
        burstiness: 1.0,
        cycles: 10,
        phases: vec![phase("reads", 25.0), writes],
    };
    (workload, shape)
}

#[test]
fn each_phase_has_its_share_of_every_cycle_and_what_it_states() {
    let (workload, shape) = phased();
    let trace = synthesise(&workload, &shape, 7).unwrap();
    assert_eq!(trace.requests().len(), 40_000);
    let (mut runs, mut spans_s) = (0, [0.0; 2]);
    for cycle in trace.requests().chunks(4000) {
        let (reads, writes) = cycle.split_at(1000);
        assert!(reads.iter().all(|it| it.op == Op::Read && it.sectors == 8));
        let half = trace.space_sectors() / 2;
        assert!(writes.iter().all(|it| it.op == Op::Write && it.sectors == 128));
        // A run may reach over the end of the space's half, never back into the first.
        assert!(writes.iter().all(|it| it.lba >= half - 128), "the other half is cold");
        runs += writes.windows(2).filter(|pair| pair[0].lba + 128 == pair[1].lba).count();
        spans_s[0] += (reads[999].at - reads[0].at).as_secs_f64();
        spans_s[1] += (writes[2999].at - writes[0].at).as_secs_f64();
    }
    let share = runs as f64 / (10.0 * 2999.0);
    assert!((share - 0.75).abs() < 0.02, "{share} go on where the last one ended");
    let [slow, fast] = [9990.0 / spans_s[0], 29_990.0 / spans_s[1]];
    assert!((slow / 1000.0 - 1.0).abs() < 0.05, "{slow} a second");
    assert!((fast / 4000.0 - 1.0).abs() < 0.05, "{fast} a second");
}

#[test]
fn phases_draw_apart_from_each_other_but_share_what_is_hot() {
    let (workload, shape) = phased();
    let access = Access::Zipf { theta: 1.2 };
    let workload = Workload { access, ..workload };
    let phases = vec![phase("first", 50.0), phase("second", 50.0)];
    let shape = TraceShape { cycles: 1, phases, ..shape };
    let trace = synthesise(&workload, &shape, 7).unwrap();
    let (first, second) = trace.requests().split_at(20_000);
    let lbas = |part: &[TraceRequest]| part.iter().map(|it| it.lba).collect::<Vec<_>>();
    assert_ne!(lbas(first), lbas(second));
    let hottest = |part: &[TraceRequest]| {
        let mut counts = std::collections::BTreeMap::<u64, usize>::new();
        for it in part {
            *counts.entry(it.lba).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(lba, _)| lba)
    };
    assert_eq!(hottest(first), hottest(second));
}

#[test]
fn a_phase_in_order_goes_through_the_whole_space_and_on_in_the_next_cycle() {
    let (workload, shape) = phased();
    let ordered = TracePhase { access: Some(Access::Sequential), ..phase("ordered", 50.0) };
    let phases = vec![phase("random", 50.0), ordered];
    let shape = TraceShape { requests: 40, cycles: 2, phases, ..shape };
    let trace = synthesise(&workload, &shape, 7).unwrap();
    let in_order = [&trace.requests()[10..20], &trace.requests()[30..]].concat();
    let lbas: Vec<u64> = in_order.iter().map(|it| it.lba).collect();
    assert_eq!(lbas, (0..20).map(|nth| nth * 8).collect::<Vec<_>>());
}

#[test]
fn a_trace_addresses_its_whole_space_whatever_part_of_a_drive_it_is_placed_on() {
    let (workload, shape) = phased();
    let quarter = Workload { footprint_percent: 25.0, ..workload.clone() };
    let made = |workload: &Workload| synthesise(workload, &shape, 7).unwrap();
    assert_eq!(made(&quarter), made(&workload));
    let span = Span { sectors: 1 << 24 };
    assert_eq!(span.footprint(&quarter), Span { sectors: 1 << 22 });
    assert_eq!(span.footprint(&workload), span);
}

#[test]
fn faults_of_phases_name_what_would_be_right() {
    let text = |trace: &str| {
        format!(
            "schema = 1\nname = \"x\"\ntitle = \"X\"\ndescription = \"x\"\nsource = \"x\"\n\
             read_percent = 50\naccess = {{ kind = \"random\" }}\n\
             sizes = [{{ bytes = 4096, percent = 100 }}]\n[trace]\nrequests = 100\n\
             space_gb = 1\niops = 10\n{trace}"
        )
    };
    let a = "[[trace.phases]]\nname = \"a\"\npercent = 60\n";
    let b = "[[trace.phases]]\nname = \"b\"\npercent = 40\n";
    Workload::parse(&text(&format!("cycles = 100\n{a}{b}")), "x.toml").unwrap();
    for (trace, line, expected) in [
        (format!("{a}{a}"), 17, "two phases are named `a`"),
        (a.to_owned(), 13, "phases sum to 60 percent, not 100"),
        ("cycles = 2\n".to_owned(), 13, "cycles is 2, but there are no [[trace.phases]]"),
        (format!("cycles = 101\n{a}{b}"), 13, "cycles is 101, not from 1 to 100"),
        (format!("{a}read_percent = 101\n{b}"), 16, "read_percent is 101, not from 0 to 100"),
        (format!("{a}iops = 0\n{b}"), 16, "iops is 0, not from 0.001"),
        (format!("{a}burstiness = 0.5\n{b}"), 16, "burstiness is 0.5, not from 1"),
        (format!("{a}sizes = []\n{b}"), 16, "sizes are empty"),
        (
            format!("{a}sizes = [{{ bytes = 512, percent = 90 }}]\n{b}"),
            16,
            "sizes sum to 90 percent, not 100",
        ),
        (format!("{a}access = {{ kind = \"streams\" }}\n{b}"), 16, "a phase cannot have"),
        (format!("{a}space_gb = 1\n{b}"), 16, "unknown field `space_gb`"),
    ] {
        let error = Workload::parse(&text(&trace), "x.toml").unwrap_err();
        assert!(error.text.contains(expected), "{trace}: {error}");
        assert_eq!(error.line, line, "{trace}: {error}");
    }
}

#[test]
fn gaps_without_bursts_are_those_of_a_poisson_process() {
    let workload = catalogue::find_workload("mail-server").unwrap();
    let shape =
        TraceShape { requests: 100_000, burstiness: 1.0, ..workload.trace.clone().unwrap() };
    let found = synthesise(&workload, &shape, 1).unwrap().statistics().burstiness.unwrap();
    assert!((found - 1.0).abs() < 0.03, "{found}");
}

#[test]
fn scaled_addresses_keep_their_share_of_the_space_and_wrapped_ones_their_neighbours() {
    let trace = trace("0,0,4096,R,0\n0,2048,4096,R,1\n0,4088,4096,R,2\n");
    assert_eq!(trace.space_sectors(), 4096);
    let lbas = |addresses, sectors| {
        let placement = Placement::new(&trace, addresses, Span { sectors });
        let placed = trace.requests().iter().map(|it| placement.place(it).lba.0);
        (placed.collect::<Vec<_>>(), placement.to_string())
    };
    assert_eq!(
        lbas(Addresses::Scaled, 1024),
        (vec![0, 512, 1016], "scaled by 0.250 from 2 MiB to 512 KiB".into())
    );
    assert_eq!(
        lbas(Addresses::Wrapped, 3072),
        (vec![0, 2048, 1016], "wrapped from 2 MiB to 1.57 MB".into())
    );
    assert_eq!(lbas(Addresses::Wrapped, 8192).1, "kept: 2 MiB on 4 MiB");
}

#[test]
fn addresses_moved_in_regions_keep_their_neighbours_in_time_lapse_too() {
    // Two runs of two requests, a quarter of the space apart.
    let text =
        "0,0,4096,R,0\n0,8,4096,R,1\n0,32768,4096,R,2\n0,32776,4096,R,3\n0,131064,4096,R,4\n";
    let trace = trace(text);
    assert_eq!(trace.space_sectors(), 131_072, "64 regions");
    let placement = |sectors| Placement::new(&trace, Addresses::Regions, Span { sectors });
    let lbas = |placement: Placement| {
        trace.requests().iter().map(|it| placement.place(it).lba.0).collect::<Vec<_>>()
    };
    let whole = placement(1 << 18);
    assert_eq!(whole.to_string(), "moved in regions of 1 MiB from 64 MiB to 128 MiB");
    assert_eq!(lbas(whole), [0, 8, 1 << 16, (1 << 16) + 8, 126 * 2048 + 2040], "stretched");
    let part = whole.in_time_lapse(Span { sectors: 1 << 14 });
    assert_eq!(lbas(part), [0, 8, 4096, 4104, (1 << 14) - 8], "an eighth of its regions");
    assert_eq!(lbas(placement(1 << 10)), [0, 0, 256, 256, 1016], "below a region, as if scaled");
}

#[test]
fn a_drive_in_time_lapse_has_all_addresses_shrunk_alike() {
    let trace = trace("0,0,4096,R,0\n0,2048,4096,R,1\n0,4088,4096,R,2\n");
    let lbas = |addresses| {
        let placement = Placement::new(&trace, addresses, Span { sectors: 8192 });
        let part = placement.in_time_lapse(Span { sectors: 1024 });
        trace.requests().iter().map(|it| part.place(it).lba.0).collect::<Vec<_>>()
    };
    assert_eq!(lbas(Addresses::Scaled), [0, 512, 1016]);
    assert_eq!(lbas(Addresses::Wrapped), [0, 256, 504]);
}

proptest! {
    #[test]
    fn a_placed_request_lies_on_the_drive_and_stays_aligned(
        lba in 0_u64..1 << 40,
        sectors in 1_u32..5000,
        span in 1_u64..1 << 40,
        kind in 0_usize..3,
    ) {
        let text = format!("0,{lba},{},R,0\n", u64::from(sectors) * 512);
        let trace = trace(&text);
        let addresses = [Addresses::Scaled, Addresses::Wrapped, Addresses::Regions][kind];
        let placement = Placement::new(&trace, addresses, Span { sectors: span });
        let request = placement.place(&trace.requests()[0]);
        prop_assert!(request.lba.0 + u64::from(request.sectors) <= span);
        let align = 1 << lba.trailing_zeros().min(3);
        prop_assert!(request.lba.0.is_multiple_of(align));
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "(.|\n){0,200}", head in 0_usize..5) {
        let heads = [
            "fio version 2 iolog\n",
            "fio version 3 iolog\n",
            "8,0 0 1 0.1 1 Q R 16 + 8 [a]\n",
            "128166372003061629,hm,0,Read,1,1,1\n",
            "0,1,512,W,0.1\n",
        ];
        let _ = read(format!("{}{text}", heads[head]).as_bytes(), "t");
    }

    #[test]
    fn numbers_of_any_size_are_told_or_taken(
        fields in proptest::collection::vec(any::<u64>(), 10), format in 0_usize..5,
    ) {
        let [a, b, c, d, e, f, ..] = fields.as_slice() else { unreachable!("ten") };
        let text = match format {
            0 => format!("fio version 2 iolog\n/a wait {a} 0\n/a wait {b} 0\n/a read {c} {d}\n"),
            1 => format!("fio version 3 iolog\n{a} /a read {b} {c}\n{d} /a write {e} {f}\n"),
            2 => format!("{a},{b} 0 1 {c}.{d} 1 Q R {e} + {f} [a]\n"),
            3 => format!("{a},h,0,Read,{b},{c},1\n{d},h,1,Write,{e},{f},1\n"),
            _ => format!("1,{a},{b},W,{c}\n1,{d},{e},R,{f}\n"),
        };
        if let Ok(trace) = read(text.as_bytes(), "t") {
            for request in trace.requests() {
                prop_assert!(request.lba + u64::from(request.sectors) <= trace.space_sectors());
            }
        }
    }
}
