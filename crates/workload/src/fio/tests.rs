//! Job files, right and wrong.

use super::*;
use crate::{Access, Gaps, SizeShare};

const FILE: &str = "\
; a job file
[global]
ioengine=libaio
direct=1
filename=/dev/nvme0n1
runtime=30
ramp_time=5s
time_based

[Random reads]
rw=randread
bs=4k
iodepth=32
numjobs=4
random_distribution=zipf:1.1

[mixed]
stonewall
rw=randrw
rwmixread=70
bssplit=4k/60:8k/:16k/
size=50%
rate_iops=700,300
rate_process=poisson
";

fn told(text: &str) -> String {
    import(text, "a.fio").unwrap_err().to_string()
}

#[test]
fn jobs_become_workloads_and_measurements_in_their_order() {
    let Imported { protocol, notes } = import(FILE, "dir/Nightly.fio").unwrap();
    let [reads, mixed] = protocol.workloads.as_slice() else { panic!("{protocol:?}") };
    assert_eq!((reads.name.as_str(), reads.read_percent), ("random-reads", 100.0));
    assert_eq!(reads.access, Access::Zipf { theta: 1.1 });
    let of = |bytes, percent| SizeShare { bytes, percent };
    assert_eq!(mixed.sizes, [of(4096, 60.0), of(8192, 20.0), of(16384, 20.0)]);
    assert_eq!((mixed.read_percent, mixed.footprint_percent), (70.0, 50.0));
    let [first, second] = protocol.suites[0].measure.as_slice() else { panic!("{protocol:?}") };
    assert_eq!(first.points().collect::<Vec<_>>(), [(4, 32)]);
    assert_eq!((first.duration_s, first.ramp_s, first.rate_iops), (30, 5, None));
    assert_eq!((second.rate_iops, second.gaps), (Some(1000.0), Gaps::Exponential));
    assert_eq!((protocol.name.as_str(), notes.len()), ("nightly", 1), "{notes:?}");
}

#[test]
fn what_comes_out_is_a_protocol_that_is_read_again() {
    let protocol = import(FILE, "nightly.fio").unwrap().protocol;
    let text = toml::to_string(&protocol).unwrap();
    assert_eq!(Protocol::parse(&text, "nightly.toml").unwrap(), protocol, "{text}");
    protocol.check(&[]).unwrap();
}

#[test]
fn a_range_is_every_multiple_of_its_smallest_size() {
    let imported = import("[a]\nrw=write\nbsrange=4k-16k\n", "a.fio").unwrap();
    let sizes: Vec<u32> = imported.protocol.workloads[0].sizes.iter().map(|it| it.bytes).collect();
    assert_eq!(sizes, [4096, 8192, 12288, 16384]);
    assert_eq!(imported.protocol.workloads[0].access, Access::Sequential);
}

#[test]
fn a_rate_in_bytes_counts_every_job() {
    let text = "[a]\nrw=randwrite\nbs=8k\nnumjobs=2\nrate=80m\n";
    let measure = import(text, "a.fio").unwrap().protocol.suites[0].measure[0].clone();
    assert_eq!(measure.rate_iops, Some(2.0 * 10_240.0));
    assert_eq!(measure.gaps, Gaps::Constant);
}

#[test]
fn names_that_are_built_in_are_not_taken() {
    let text = "[4k-rand-read]\nrw=randread\n[4k-rand-read]\nstonewall\nrw=randread\n";
    let protocol = import(text, "quick.fio").unwrap().protocol;
    let names: Vec<&str> = protocol.workloads.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["fio-quick-4k-rand-read", "fio-quick-4k-rand-read-2"]);
    assert_eq!(protocol.name, "fio-quick");
}

#[test]
fn what_cannot_be_said_is_refused_with_its_line() {
    let cases = [
        ("", "a.fio: there is no job in it: a job begins with [its name]"),
        ("rw=read\n", "a.fio:1: `rw=read` stands before any [job]"),
        ("[a]\n[b]\n", "a.fio:2: [a] and [b] run at the same time, and a protocol has one load"),
        ("[a]\nrw=randread\nfsync=1\n", "a.fio:3: fsync: workloads have no flushes"),
        ("[a]\nbs=4q\n", "a.fio:2: bs: `4q` is not a size such as 4k"),
        ("[a]\nthinktime=10\n", "a.fio:2: thinktime: pauses of a job are not supported"),
        ("[a]\nrw=trim\n", "a.fio:1: [a]: rw=trim is not supported"),
        ("[a]\nrw=randrw\nbs=4k,8k\n", "a.fio:1: [a]: reads and writes of different sizes"),
        ("[a]\nrw=randrw\nrate_iops=100,100\nrwmixread=90\n", "a.fio:1: [a]: the rates make 50 %"),
        ("[a]\noffset=1g\n", "a.fio:2: offset: a load begins at the start of the drive"),
        ("[a]\nrandom_distribution=pareto:0.2\n", "a.fio:2: random_distribution: `pareto:0.2`"),
        ("[a]\nfrobnicate=1\n", "a.fio:2: frobnicate: is not known here"),
        ("[a]\nsize=${SIZE}\n", "a.fio:2: `size=${SIZE}`: other files and variables"),
        ("[a]\nruntime=soon\n", "a.fio:2: runtime: `soon` is not a time such as 60 or 10m"),
    ];
    for (text, expected) in cases {
        let said = told(text);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn switches_that_are_off_and_what_changes_nothing_are_passed_over() {
    let text = "[a]\nrw=randread\nfsync=0\nthread=1\nnorandommap\noffset=0\ngroup_reporting\n";
    import(text, "a.fio").unwrap();
}

#[test]
fn options_of_a_report_are_known_by_what_is_built_in() {
    let options = [("rw", "randread"), ("bs", "4k"), ("iodepth", "16"), ("fsync", "1")];
    let found = super::told("my job", options.into_iter());
    assert_eq!(found.workload.name, "4k-rand-read");
    assert_eq!((found.threads, found.queue_per_thread), (1, 16));
    let other = [("rw", "randrw"), ("rwmixread", "63")];
    assert_eq!(super::told("my job", other.into_iter()).workload.name, "my-job");
}

#[test]
fn values_are_read_as_fio_reads_them() {
    assert_eq!(value::bytes("4k"), Ok(4096));
    assert_eq!(value::bytes("4kb"), Ok(4096));
    assert_eq!(value::bytes("4KiB"), Ok(4000), "the other way round, says fio's manual");
    assert_eq!((value::seconds("90"), value::seconds("1500ms")), (Ok(90), Ok(2)));
    assert_eq!(value::seconds("10m"), Ok(600));
}
