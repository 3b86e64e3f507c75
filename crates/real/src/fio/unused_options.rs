//! Options of job files, asked of the fio that is installed: all of them are known to the import,
//! and those that it notes as without effect leave fio's own log of its requests as it is.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use workload::fio::import;

use super::conformance::is_missing;

/// The commonest options that an import notes as without effect.
const COMMONEST: [&str; 23] = [
    "group_reporting",
    "thread",
    "invalidate=0",
    "randrepeat=1",
    "gtod_reduce=1",
    "clocksource=clock_gettime",
    "disable_lat=1",
    "disable_clat=1",
    "disable_slat=1",
    "disable_bw_measurement=1",
    "lat_percentiles=1",
    "clat_percentiles=0",
    "percentile_list=50:99",
    "write_lat_log=lat",
    "write_bw_log=bw",
    "write_iops_log=iops",
    "log_avg_msec=500",
    "refill_buffers",
    "scramble_buffers=0",
    "fallocate=none",
    "create_serialize=0",
    "continue_on_error=all",
    "exitall",
];

const JOB: &str = "[a]\nioengine=null\nrw=randrw\nbs=4k\nsize=256k\niodepth=4\n\
                   write_iolog=requests\n";

/// Output of fio with the argument `argument`.
fn output_of(argument: &str) -> String {
    let output = Command::new("fio").arg(argument).output().expect("fio is there");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Names at the beginnings of the lines of `help`.
fn names(help: &str) -> impl Iterator<Item = &str> {
    let first = |line: &'_ str| line.trim_start().find([' ', ':']).unwrap_or(line.len());
    help.lines().map(move |line| {
        let end = first(line);
        line.trim_start().get(..end).unwrap_or_default()
    })
}

fn begin(folder: &Path, option: &str) -> Child {
    fs::create_dir(folder).expect("a new folder");
    fs::write(folder.join("job.fio"), format!("{JOB}{option}\n")).expect("a job file");
    let mut fio = Command::new("fio");
    fio.arg("job.fio").current_dir(folder).stdout(Stdio::null());
    fio.spawn().expect("fio is there")
}

/// Direction, offset and length of each request of the log in `folder`.
fn requests(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("requests")).expect("fio logs its requests");
    let request = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_request = fields.iter().any(|field| matches!(*field, "read" | "write"));
        is_request.then(|| fields[fields.len() - 3..].join(" "))
    };
    text.lines().filter_map(request).collect()
}

#[test]
fn every_option_of_the_installed_fio_is_known() {
    if is_missing() {
        return;
    }
    let engines = output_of("--enghelp");
    let of_engine = |name: &str| output_of(&format!("--enghelp={name}"));
    let of_engines: Vec<String> =
        names(&engines).skip(1).filter(|name| !name.is_empty()).map(of_engine).collect();
    let all = output_of("--cmdhelp=all");
    let own = of_engines.iter().filter(|help| !help.contains("has no options"));
    let options: Vec<&str> =
        names(&all).chain(own.flat_map(|help| names(help))).filter(|it| !it.is_empty()).collect();
    assert!(options.len() > 200, "{}", options.len());
    let is_unknown = |option: &&str| {
        let refused = import(&format!("[a]\n{option}=1\n"), "a.fio").err();
        refused.is_some_and(|it| it.text.ends_with("leave it out if it changes nothing"))
    };
    let unknown: Vec<&str> = options.into_iter().filter(is_unknown).collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn options_without_effect_leave_the_requests_of_fio_as_they_are() {
    if is_missing() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = |option: &str| dir.path().join(option.replace(['=', ':'], "-"));
    let all = || std::iter::once("description=plain").chain(COMMONEST);
    let begun: Vec<Child> = all().map(|option| begin(&folder(option), option)).collect();
    for (mut fio, option) in begun.into_iter().zip(all()) {
        assert!(fio.wait().expect("fio ends").success(), "{option}");
    }
    let plain = requests(&folder("description=plain"));
    assert!(plain.len() >= 64, "{}", plain.len());
    for option in COMMONEST {
        assert_eq!(requests(&folder(option)), plain, "{option}");
        let key = option.split('=').next().unwrap_or_default();
        let notes = import(&format!("[a]\n{option}\n"), "a.fio").expect("it is imported").notes;
        let is_noted =
            |note: &String| note.ends_with(&format!("without effect on the load: {key}"));
        assert!(notes.iter().any(is_noted), "{option}: {notes:?}");
    }
}
