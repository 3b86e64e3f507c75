//! Tests of traces: what each format says, what is skipped and what is refused.

use proptest::prelude::*;

use super::reading::BROKEN_MAX;
use super::*;
use crate::{Span, catalogue};

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
         the file is no trace, or a damaged one)"
    );
}

#[test]
fn what_is_no_trace_is_told_what_one_would_be() {
    let known = "a fio iolog (version 2 or 3), blkparse text, MSR Cambridge CSV or an SPC trace";
    for text in ["\nhello\n", "fio version 1 iolog\n", "\u{0}\u{1}\u{2}\n"] {
        let told = told(text);
        assert!(told.starts_with("traces/t.csv:"), "{told}");
        assert!(told.ends_with(known), "{told}");
    }
    assert_eq!(told(""), "traces/t.csv: no request that reads or writes is in it");
    assert_eq!(
        told("fio version 2 iolog\n/a add\n/a reed 0 512\n"),
        "traces/t.csv:3: action `reed` is none of an iolog"
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
    let again = read(write_iolog("/x", true, requests()).as_bytes(), "x").unwrap();
    assert_eq!((again.requests(), again.is_synthetic()), (trace.requests(), false));
    let untimed = read(write_iolog(SYNTHETIC, false, requests()).as_bytes(), "x").unwrap();
    assert_eq!((untimed.span(), untimed.is_synthetic()), (Nanos::ZERO, true));
}

#[test]
fn a_made_up_trace_has_the_statistics_that_it_was_made_from() {
    let workload = catalogue::find_workload("mail-server").unwrap();
    let shape = TraceShape { requests: 200_000, ..workload.trace.unwrap() };
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

#[test]
fn gaps_without_bursts_are_those_of_a_poisson_process() {
    let workload = catalogue::find_workload("mail-server").unwrap();
    let shape = TraceShape { requests: 100_000, burstiness: 1.0, ..workload.trace.unwrap() };
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
        wraps: bool,
    ) {
        let text = format!("0,{lba},{},R,0\n", u64::from(sectors) * 512);
        let trace = trace(&text);
        let addresses = if wraps { Addresses::Wrapped } else { Addresses::Scaled };
        let placement = Placement::new(&trace, addresses, Span { sectors: span });
        let demand = placement.place(&trace.requests()[0]);
        prop_assert!(demand.lba.0 + u64::from(demand.sectors) <= span);
        let align = 1 << lba.trailing_zeros().min(3);
        prop_assert!(demand.lba.0.is_multiple_of(align));
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
