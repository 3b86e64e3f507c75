//! Processor time of a request over ublk and over kernel NBD, in an emulated machine whose clock
//! counts instructions. `cargo xtask guest-speed` takes medians for two processors and the release
//! build; without it, one round for one processor shows that there is something to measure.

use std::collections::BTreeMap;
use std::time::Duration;
use std::{env, fs};

use super::emulator::emulator_is_missing;
use super::linux::{self, listen};
use super::{PROGRAM_VARIABLE, Running, kernel, lines_of};
use crate::fio_is_missing;

/// Programs that the guest runs.
const PROGRAMS: [&str; 9] =
    ["floatgate", "sh", "mount", "cat", "dd", "seq", "insmod", "fio", "nbd-client"];
/// Two processors: the newest, and one without the fast string instructions, which the emulator
/// carries out byte by byte.
const PROCESSORS: [&str; 2] = ["max", "max,-erms,-fsrm"];
/// Rounds of measurements in one machine, an odd number for a median.
const ROUNDS: usize = 3;
/// Requests of two measurements, of which the difference counts: that fio begins and ends is in
/// both.
const REQUESTS: [u32; 2] = [1024, 9216];
/// Requests where it is to show only that there is something to measure.
const REQUESTS_BRIEF: [u32; 2] = [256, 2304];
/// MiB of each device that are written before, and measured.
const SIZE_MIB: u32 = 64;
const SIZE_MIB_BRIEF: u32 = 8;
/// Microseconds of a tick of the guest's kernel.
const TICK_US: f64 = 10_000.0;
/// Time limit for one machine.
const PATIENCE: Duration = Duration::from_mins(30);

/// Costs of a number of requests of a kind over a front end: nanoseconds of the server's threads,
/// and ticks of the machine, by round.
type Took = BTreeMap<(String, String, u32), Vec<(f64, f64)>>;

#[test]
fn a_request_over_ublk_and_over_kernel_nbd_takes_time_of_server_and_machine() {
    if fio_is_missing() || emulator_is_missing() {
        return;
    }
    let Some(kernel) = kernel() else { return };
    let script = include_bytes!("ublk_speed.sh");
    let files = linux::first_files(&kernel, (&PROGRAMS, &["nbd", "ublk_drv"]), script);
    let Some(archive) = files else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("initramfs"), archive.finished()).unwrap();
    let is_measurement = env::var_os(PROGRAM_VARIABLE).is_some();
    let (rounds, processors, requests, size_mib) = if is_measurement {
        (ROUNDS, 2, REQUESTS, SIZE_MIB)
    } else {
        (1, 1, REQUESTS_BRIEF, SIZE_MIB_BRIEF)
    };
    for processor in &PROCESSORS[..processors] {
        let devices = ["-cpu", processor, "-icount", "shift=2", "-machine", "q35"];
        let [few, many] = requests;
        let words = format!("rounds={rounds} few={few} many={many} mib={size_mib}");
        let mut guest = Running(linux::machine(folder.path(), &kernel, (&devices, &words)));
        let said = listen(&lines_of(&mut guest.0), PATIENCE, |_| {});
        let mut took = Took::new();
        for line in said["ublk"].lines().chain(said["nbd"].lines()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let &["measured", front, kind, requests, ran, busy] = &words[..] else {
                assert_eq!(line, "guest: exit 0");
                continue;
            };
            let key = (front.to_owned(), kind.to_owned(), requests.parse().unwrap());
            took.entry(key).or_default().push((ran.parse().unwrap(), busy.parse().unwrap()));
        }
        assert_eq!(took.len(), 8, "{said:#?}");
        assert!(took.values().all(|of| of.len() == rounds), "{said:#?}");
        print(processor, requests, &took);
    }
}

/// Prints medians in microseconds, and the ratios. All of the machine takes longer than the server.
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
fn print(processor: &str, [few, many]: [u32; 2], took: &Took) {
    println!("processor {processor}: us of a 4 KiB request, 16 outstanding, medians");
    for kind in ["write", "read"] {
        let [ublk, nbd] = ["ublk", "nbd"].map(|front| {
            let of = |requests| &took[&(front.to_owned(), kind.to_owned(), requests)];
            let rounds = of(few).iter().zip(of(many));
            let (server, machine): (Vec<f64>, Vec<f64>) = rounds
                .map(|(few, many)| ((many.0 - few.0) / 1e3, (many.1 - few.1) * TICK_US))
                .unzip();
            [server, machine].map(|it| median(it) / f64::from(many - few))
        });
        // Each of the two counts of a difference is right to a tick on each of two processors.
        let ticks_us = 4.0 * TICK_US / f64::from(many - few);
        for [server, machine] in [ublk, nbd] {
            assert!(0.0 < server && server < machine + ticks_us, "{server} of {machine} us");
        }
        for (of, what) in ["the server's threads", "all of the machine"].iter().enumerate() {
            let (ublk, nbd) = (ublk[of], nbd[of]);
            let ratio = ublk / nbd;
            println!("  {kind}, {what}: ublk {ublk:.1}, kernel NBD {nbd:.1}, ratio {ratio:.2}");
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
