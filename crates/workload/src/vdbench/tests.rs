//! Parameter files, right and wrong.

use super::*;
use crate::Access;

const FILE: &str = "\
* two runs
compratio=2
sd=default,openflags=o_direct
sd=sd1,lun=/dev/nvme0n1,threads=16
wd=oltp,sd=sd1,xfersize=(4k,60,8k,40),rdpct=70,seekpct=100,range=(0,25)
wd=stream,sd=sd1,xfersize=128k,rdpct=0,seekpct=seq   writes in order
rd=default,elapsed=60,interval=5
rd=mixed,wd=oltp,iorate=max,
forthreads=(8,32)
rd=paced,wd=stream,iorate=500,warmup=10
";

fn refusal(text: &str) -> String {
    import(text, "a.parm").unwrap_err().to_string()
}

#[test]
fn runs_become_workloads_and_measurements_in_their_order() {
    assert!(is_parameter_file(FILE));
    assert!(!is_parameter_file("[a]\nrw=read\n"));
    let ImportedProtocol { protocol, notes } = import(FILE, "dir/Nightly.parm").unwrap();
    let [first, second, third] = protocol.workloads.as_slice() else { panic!("{protocol:?}") };
    let names = [first, second, third].map(|it| it.name.as_str());
    assert_eq!(names, ["mixed", "mixed-2", "paced"]);
    let sizes: Vec<(u32, f64)> = first.sizes.iter().map(|it| (it.bytes, it.percent)).collect();
    assert_eq!(sizes, [(4096, 60.0), (8192, 40.0)]);
    assert_eq!((first.read_percent, first.access), (70.0, Access::Random));
    assert_eq!((first.footprint_percent, first.compressible_percent), (25.0, 50.0));
    assert_eq!((third.read_percent, third.access), (0.0, Access::Sequential));
    let suite = &protocol.suites[0];
    let loads: Vec<(u16, u16)> =
        suite.measure.iter().map(|it| (it.threads[0], it.queue_per_thread[0])).collect();
    assert_eq!(loads, [(8, 1), (32, 1), (16, 1)]);
    let [first, _, third] = suite.measure.as_slice() else { panic!("{suite:?}") };
    assert_eq!((first.ramp_s, first.duration_s), (5, 55), "the first interval does not count");
    assert_eq!((third.ramp_s, third.duration_s, third.rate_iops), (10, 60, Some(500.0)));
    assert!(notes.contains(&"without effect on the load: lun".to_owned()), "{notes:?}");
    let text = toml::to_string(&protocol).unwrap();
    assert_eq!(Protocol::parse(&text, "a.toml").unwrap(), protocol);
}

#[test]
fn a_curve_measures_shares_of_the_highest_rate() {
    let text = "sd=sd1,lun=x\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=curve,elapsed=60,interval=5\n";
    let protocol = import(text, "a.parm").unwrap().protocol;
    let curve = protocol.suites[0].curve.as_ref().unwrap();
    assert_eq!(curve.percents, [10.0, 50.0, 70.0, 80.0, 90.0, 100.0]);
    let given = text.replace("iorate=curve", "iorate=curve,curve=(20,40)");
    let protocol = import(&given, "a.parm").unwrap().protocol;
    assert_eq!(protocol.suites[0].curve.as_ref().unwrap().percents, [20.0, 40.0]);
}

#[test]
fn what_cannot_be_said_is_refused_with_its_line() {
    let base = "sd=sd1,lun=x\nwd=wd1,sd=sd1,xfersize=4k\n";
    let cases = [
        ("rd=r,wd=wd1,iorate=max,foo=1\n", "a.parm:3: foo=1: is not supported here"),
        ("wd=wd2,sd=sd1\nrd=r,wd=wd*\n", "a.parm:4: rd=r has 2 workloads at the same time"),
        ("wd=wd2,sd=sd1,seekpct=40\nrd=r,wd=wd2\n", "a.parm:3: seekpct=40: a load is random"),
        ("rd=r,wd=wd1,forthreads=(4096)\n", "a.parm:3: threads.0 is 4096, not from 1 to 256"),
        ("wd=wd2,sd=sd1,xfersize=1000\nrd=r,wd=wd2\n", "a.parm:4: bytes is 1000, not a multiple"),
        ("fsd=fsd1,anchor=/x\nrd=r,wd=wd1\n", "a.parm:3: fsd=fsd1: loads of file systems"),
        ("wd=wd2,sd=sd1,openflags=fsync\nrd=r,wd=wd2\n", "a.parm:3: openflags=fsync: workloads"),
        ("dedupratio=2\nrd=r,wd=wd1\n", "a.parm:3: dedupratio=2: is not supported here"),
        ("", "a.parm: there is no run in it"),
    ];
    for (text, expected) in cases {
        let said = refusal(&format!("{base}{text}"));
        assert!(said.starts_with(expected), "{said}");
    }
}
