//! Cost of recording: processor time of a served drive for each request, recorded and not, in
//! pairs.
//!
//! The drive is in memory and answers over NBD, so that the cost of a recorder is a visible share.
//! Each half of a pair has its own server; which one is first alternates.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::nbd::processor_s;
use super::overhead::median;
use super::viewers::{Program, floatgate, in_folder};

/// Name of the case.
pub(super) const NAME: &str = "recording";
/// Pairs that are measured, of which the median counts.
const PAIRS: usize = 15;
/// Requests of each half.
const REQUESTS: u32 = 200_000;
const SIZE_MIB: u64 = 256;
/// Time limit for a server to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest share that a recorder may take.
const SHARE_MAX: f64 = 0.02;

/// Results of the benchmark.
#[derive(Debug, Serialize)]
pub(super) struct RecordingCost {
    case: &'static str,
    /// Processor microseconds of the server for each request without a recording, of each pair.
    alone_us: Vec<f64>,
    /// Processor microseconds of the server for each request with a recording, of each pair.
    recorded_us: Vec<f64>,
    /// Median over the pairs of what a recording adds, as a share.
    share: f64,
}

impl RecordingCost {
    /// The line of a table.
    pub(super) fn shown(&self) -> String {
        let verdict = if self.share <= SHARE_MAX { "within" } else { "not within" };
        format!(
            "{NAME:<20} {:+.1} % of processor time a request, {verdict} 2 % (median of {PAIRS} \
             pairs, 4 KiB half reads at 16 outstanding over NBD, unrecorded {:.1} us)",
            self.share * 100.0,
            median(self.alone_us.clone()),
        )
    }
}

/// Measures the pairs.
///
/// # Errors
/// Fails if fio is missing, or the server or the load failed.
pub(super) fn measure() -> Result<RecordingCost> {
    in_folder(|place| {
        let (mut alone_us, mut recorded_us) = (Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            for half in 0..2 {
                let is_recorded = (pair + half) % 2 == 1;
                let us = half_us(place, is_recorded)?;
                if is_recorded { recorded_us.push(us) } else { alone_us.push(us) }
            }
        }
        let added = recorded_us.iter().zip(&alone_us).map(|(with, without)| with / without - 1.0);
        let share = median(added.collect());
        Ok(RecordingCost { case: NAME, alone_us, recorded_us, share })
    })
}

/// Processor time of a new server for each request, in microseconds.
fn half_us(place: &Path, is_recorded: bool) -> Result<f64> {
    let (socket, recording) = (place.join("socket"), place.join("recording"));
    for left in [&socket, &recording] {
        let _ = std::fs::remove_file(left);
    }
    let mut command = floatgate();
    command.args(["serve", "--memory", &format!("{SIZE_MIB}MiB"), "--nbd"]);
    command.arg(format!("unix:{}", socket.display()));
    if is_recorded {
        command.arg("--record").arg(&recording);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Program(command.spawn().context("starting the server")?);
    let deadline = Instant::now() + PATIENCE;
    while !socket.exists() {
        ensure!(Instant::now() < deadline, "the server does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    // Memory is touched for the first time here.
    fio(&socket, &["--rw=write", "--bs=1m", "--iodepth=8"])?;
    let before_s = processor_s(server.0.id())?;
    let requests = format!("--number_ios={REQUESTS}");
    let load = ["--rw=randrw", "--bs=4k", "--iodepth=16", "--norandommap", "--io_size=100g"];
    fio(&socket, &[&load[..], &[&requests]].concat())?;
    Ok((processor_s(server.0.id())? - before_s) * 1e6 / f64::from(REQUESTS))
}

fn fio(socket: &Path, job: &[&str]) -> Result<()> {
    let uri = format!("--uri=nbd+unix:///?socket={}", socket.display());
    let output = Command::new("fio")
        .args(["--name=t", "--ioengine=nbd", &uri, &format!("--size={SIZE_MIB}m")])
        .args(job)
        .output()
        .context("starting fio")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "fio failed: {said}");
    Ok(())
}
