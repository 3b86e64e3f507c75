//! Cost of watching a served drive: its rate with ten viewers of the dashboard's stream beside that
//! without, in pairs.
//!
//! Both halves of a pair see the same machine; which one is first changes with each pair. One of
//! the ten takes nothing of what it is sent.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::Value;

use super::overhead::{FOLDERS, median};
use xtask::root;

/// Name of the case.
pub(super) const NAME: &str = "viewers";
/// Pairs that are measured, of which the median counts.
const PAIRS: usize = 9;
/// Length of each half, in seconds.
const LOAD_S: u32 = 5;
const SIZE_MIB: u64 = 256;
const VIEWERS: usize = 10;
/// Time limit for a server to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// The ratio that must be reached.
const RATIO_MIN: f64 = 0.98;

/// Results of the benchmark.
#[derive(Debug, Serialize)]
pub(super) struct Watching {
    case: &'static str,
    /// Requests a second without viewers, of each pair.
    alone: Vec<f64>,
    /// Requests a second with viewers, of each pair.
    watched: Vec<f64>,
    /// Median of the ratios of the pairs.
    ratio: f64,
}

/// A program of ours that runs until it is dropped.
pub(super) struct Program(pub(super) Child);

/// Served drive, and the addresses of its socket and page.
pub(super) struct Server {
    pub(super) program: Program,
    socket: PathBuf,
    http: String,
}

/// Connected viewers, which disconnect when dropped.
pub(super) struct Viewers(Vec<TcpStream>);

impl Watching {
    /// The line of a table.
    pub(super) fn shown(&self) -> String {
        let verdict = if self.ratio >= RATIO_MIN { "within" } else { "not within" };
        format!(
            "{NAME:<20} {:.1} % of the IOPS of a drive without viewers, {verdict} 2 % (median \
             of {PAIRS} pairs, 4 KiB half reads at 16 outstanding, alone {:.0} IOPS)",
            self.ratio * 100.0,
            median(self.alone.clone()),
        )
    }
}

/// Measures the pairs.
///
/// # Errors
/// Fails if fio is missing, or the server or the load failed.
pub(super) fn measure() -> Result<Watching> {
    in_folder(pairs)
}

/// Measures something in a folder in memory, where there is such, with the command built.
///
/// # Errors
/// Fails if one of these failed.
pub(super) fn in_folder<T>(measure: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let build = ["build", "--release", "--quiet", "--package", "cli"];
    let built = Command::new("cargo").args(build).current_dir(root()).status();
    ensure!(built.context("starting cargo")?.success(), "the command could not be built");
    let folder = FOLDERS.into_iter().find(|folder| Path::new(folder).is_dir());
    let place = PathBuf::from(folder.context("no folder for the drive")?);
    let place = place.join(format!("floatgate-{}", std::process::id()));
    fs::create_dir_all(&place)?;
    let measured = measure(&place);
    fs::remove_dir_all(&place)?;
    measured
}

fn pairs(place: &Path) -> Result<Watching> {
    let server = Server::start(place, SIZE_MIB)?;
    server.load(&["--rw=write", "--bs=1m", "--iodepth=8"])?;
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        for half in 0..2 {
            if (pair + half) % 2 == 0 {
                alone.push(server.rate()?);
            } else {
                let viewers = Viewers::come(&server.http, VIEWERS - 1, 1)?;
                watched.push(server.rate()?);
                drop(viewers);
            }
        }
    }
    let ratios = watched.iter().zip(&alone).map(|(watched, alone)| watched / alone);
    let ratio = median(ratios.collect());
    Ok(Watching { case: NAME, alone, watched, ratio })
}

/// The command that is measured.
pub(super) fn floatgate() -> Command {
    Command::new(root().join("target/release/floatgate"))
}

impl Program {
    /// Starts it, and waits until it has said in the file `said` where it answers over HTTP.
    pub(super) fn start(command: &mut Command, said: &Path) -> Result<(Self, String)> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(said)?);
        let program = Self(command.spawn().context("starting the command")?);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(said)?;
            let place = text.split_once("http://").and_then(|(_, rest)| rest.split_once('/'));
            if let Some((address, _)) = place {
                return Ok((program, address.to_owned()));
            }
            ensure!(Instant::now() < deadline, "it does not start: {text}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Server {
    /// Serves a new drive on four dies in a folder.
    pub(super) fn start(place: &Path, size_mib: u64) -> Result<Self> {
        let path = |name: &str| place.join(name).display().to_string();
        let dies: Vec<String> = (0..4).map(|die| path(&format!("die{die}.img"))).collect();
        let volume = path("volume");
        let size = format!("{size_mib}MiB");
        let create = ["create", &volume, "--dies", &dies.join(","), "--size", &size];
        let created = floatgate().args(create).output().context("making a drive")?;
        ensure!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let socket = place.join("socket");
        let mut command = floatgate();
        command.args(["serve", &volume, "--http", "127.0.0.1:0", "--nbd"]);
        command.arg(format!("unix:{}", socket.display()));
        let (program, http) = Program::start(&mut command, &place.join("said"))?;
        let deadline = Instant::now() + PATIENCE;
        while !socket.exists() {
            ensure!(Instant::now() < deadline, "the server does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { program, socket, http })
    }

    /// Requests a second, reads and writes together.
    fn rate(&self) -> Result<f64> {
        let runtime = format!("--runtime={LOAD_S}");
        let report = self.load(&[
            "--rw=randrw",
            "--bs=4k",
            "--iodepth=16",
            "--norandommap",
            "--randrepeat=0",
            "--time_based",
            &runtime,
        ])?;
        let job = &report["jobs"][0];
        let iops = |side: &str| job[side]["iops"].as_f64();
        iops("read").zip(iops("write")).map(|(r, w)| r + w).context("a report without IOPS")
    }

    /// Runs a job of fio against it. Returns its report.
    fn load(&self, job: &[&str]) -> Result<Value> {
        let output = Command::new("fio")
            .args(["--name=t", "--ioengine=nbd", "--output-format=json"])
            .args([format!("--size={SIZE_MIB}m"), self.uri()])
            .args(job)
            .output()
            .context("starting fio")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let Some(begin) = said.find('{').filter(|_| output.status.success()) else {
            bail!("fio failed: {said}{}", String::from_utf8_lossy(&output.stderr));
        };
        serde_json::from_str(&said[begin..]).context("reading fio's report")
    }

    fn uri(&self) -> String {
        format!("--uri=nbd+unix:///?socket={}", self.socket.display())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It is gone already where it ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Viewers {
    /// So many of a page, and `stuck` more that take nothing of what they are sent.
    pub(super) fn come(http: &str, takers: usize, stuck: usize) -> Result<Self> {
        let mut viewers = Vec::new();
        for number in 0..takers + stuck {
            let mut viewer = TcpStream::connect(http).context("looking on")?;
            let request = format!("GET /stream HTTP/1.1\r\nHost: {http}\r\n\r\n");
            viewer.write_all(request.as_bytes())?;
            if number >= stuck {
                let mut reader = viewer.try_clone()?;
                thread::spawn(move || {
                    let mut taken = [0; 4096];
                    while reader.read(&mut taken).is_ok_and(|length| length > 0) {}
                });
            }
            viewers.push(viewer);
        }
        Ok(Self(viewers))
    }
}

impl Drop for Viewers {
    fn drop(&mut self) {
        for viewer in &self.0 {
            // The server may have gone first.
            let _ = viewer.shutdown(std::net::Shutdown::Both);
        }
    }
}
