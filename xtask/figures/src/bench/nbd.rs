//! `cargo xtask bench-nbd`: served drives beside other NBD servers, through fio over Unix sockets.
//!
//! Every round puts every load on every server in turn, so that a busy machine hurts all of them;
//! medians of the rounds count, and ratios to nbdkit's memory plugin. The processor time of a
//! server for each request moves least with other load, and is what there is to win: with fio on
//! the other side of a socket, the client is the ceiling.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::Value;

use xtask::program::{run, succeeds};
use xtask::root;

/// Bytes of every export, in MiB.
const SIZE_MIB: u64 = 1024;
/// Time limit for a server to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// The server that ratios are to, and that among volumes with other promises.
const REFERENCE: &str = "nbdkit-memory";
const REFERENCE_PROMISE: &str = "floatgate-volatile";
/// Command prefix that gives a process real-time priority.
const REALTIME: [&str; 3] = ["chrt", "--rr", "10"];

/// Load of fio on a server.
struct Load {
    name: &'static str,
    rw: &'static str,
    block: &'static str,
    depth: u32,
    jobs: u32,
    /// Writes between two flushes; zero without any.
    flush_every: u32,
}

const LOADS: [Load; 9] = [
    load("read-qd1", "randread", "4k", 1),
    load("write-qd1", "randwrite", "4k", 1),
    load("read-qd16", "randread", "4k", 16),
    load("write-qd16", "randwrite", "4k", 16),
    Load { jobs: 4, ..load("read-4x16", "randread", "4k", 16) },
    Load { jobs: 4, ..load("write-4x16", "randwrite", "4k", 16) },
    load("seq-read-128k", "read", "128k", 16),
    load("seq-write-128k", "write", "128k", 16),
    Load { flush_every: 1, ..load("durable-write", "randwrite", "4k", 1) },
];

/// Options of a benchmark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Rounds, of which the medians count.
    pub(crate) rounds: u32,
    /// Length of each load in seconds.
    pub(crate) seconds: f64,
    /// True if volumes are measured whose acknowledged writes survive different things, and no
    /// other server.
    pub(crate) of_promises: bool,
    /// True if servers and clients run at real-time priority.
    pub(crate) is_realtime: bool,
    /// True if results are printed as a line of JSON for each server and load, instead of tables.
    pub(crate) json: bool,
}

/// A server that runs.
struct Server {
    name: &'static str,
    process: Child,
    socket: PathBuf,
}

/// One server under one load, in one round or as the medians of all.
#[derive(Clone, Debug, Serialize)]
struct ServerMeasurement {
    server: &'static str,
    load: &'static str,
    /// Requests a second.
    iops: f64,
    /// Processor time of the server for each request, in microseconds.
    server_us_per_io: f64,
    /// Mean latency in microseconds.
    latency_us_mean: f64,
}

impl Load {
    /// True if it is part of a benchmark: only acknowledgements of writes depend on promises.
    fn is_for(&self, options: Options) -> bool {
        !options.of_promises || self.rw == "randwrite"
    }
}

const fn load(name: &'static str, rw: &'static str, block: &'static str, depth: u32) -> Load {
    Load { name, rw, block, depth, jobs: 1, flush_every: 0 }
}

/// Measures all servers and prints what came out.
///
/// # Errors
/// Fails if a server does not start, or a load fails.
pub(crate) fn run_all(options: Options, folder: Option<&Path>) -> Result<()> {
    run("cargo", &["build", "--release", "--quiet", "--package", "cli"], &[])?;
    let parent = folder.map_or_else(|| root().join("target"), Path::to_owned);
    let folder = parent.join("bench-nbd");
    if folder.exists() {
        // What an interrupted benchmark left.
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let start = if options.of_promises { start_promises } else { start_all };
    let servers = start(&folder, options)?;
    for server in &servers {
        fill(server)?;
    }
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        for server in &servers {
            for load in LOADS.iter().filter(|load| load.is_for(options)) {
                rounds.push(measure(server, load, options)?);
            }
        }
    }
    drop(servers);
    fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    show(&rounds, options)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Starts a server for each promise about acknowledged writes.
fn start_promises(folder: &Path, options: Options) -> Result<Vec<Server>> {
    let floatgate = root().join("target/release/floatgate").display().to_string();
    let promises = [
        (REFERENCE_PROMISE, "--volatile"),
        ("floatgate-default", ""),
        ("floatgate-durable", "--durable"),
    ];
    let started = promises.map(|(name, option)| {
        let volume = make_volume(folder, &format!("{name}.volume"), &floatgate)?;
        start(folder, name, options, |socket| {
            words(&format!("{floatgate} serve {volume} {option} --nbd unix:{socket}"))
        })
    });
    started.into_iter().collect()
}

/// Starts the servers that are there, ours first.
fn start_all(folder: &Path, options: Options) -> Result<Vec<Server>> {
    let size = format!("{SIZE_MIB}M");
    let floatgate = root().join("target/release/floatgate").display().to_string();
    let [cached, direct, in_turn] =
        ["cached", "direct", "in-turn"].map(|name| make_volume(folder, name, &floatgate));
    let ours = [
        ("floatgate-7+1", cached?),
        ("floatgate-memory", format!("--memory {SIZE_MIB}MiB")),
        // Past the page cache, with several requests to the dies at once and without.
        ("floatgate-direct", format!("{} --direct", direct?)),
        ("floatgate-in-turn", format!("{} --direct --no-io-uring", in_turn?)),
    ];
    let mut servers = Vec::new();
    for (name, what) in ours {
        servers.push(start(folder, name, options, |socket| {
            words(&format!("{floatgate} serve {what} --nbd unix:{socket}"))
        })?);
    }
    if succeeds("nbdkit", &["--version"]) {
        let file = image(folder, "nbdkit.img")?;
        servers.push(start(folder, REFERENCE, options, |socket| {
            words(&format!("nbdkit -f -U {socket} memory {size}"))
        })?);
        servers.push(start(folder, "nbdkit-file", options, |socket| {
            words(&format!("nbdkit -f -U {socket} file {file}"))
        })?);
    }
    if succeeds("qemu-nbd", &["--version"]) {
        let raw = image(folder, "qemu.img")?;
        let qcow2 = folder.join("qemu.qcow2").display().to_string();
        run("qemu-img", &["create", "-q", "-f", "qcow2", &qcow2, &size], &[])?;
        for (name, format, file) in [("qemu-raw", "raw", raw), ("qemu-qcow2", "qcow2", qcow2)] {
            servers.push(start(folder, name, options, |socket| {
                words(&format!(
                    "qemu-nbd -f {format} --cache=writeback --aio=threads -t -e 8 \
                     -k {socket} {file}"
                ))
            })?);
        }
    }
    Ok(servers)
}

/// Makes a drive of eight files with parity. Returns its path.
fn make_volume(folder: &Path, name: &str, floatgate: &str) -> Result<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let dies: Vec<String> = (0..8).map(|die| path(&format!("{name}-{die}.img"))).collect();
    let (volume, size) = (path(name), format!("{SIZE_MIB}MiB"));
    let (dies, how) = (dies.join(","), ["--size", &size, "--protect", "7+1"]);
    run(floatgate, &[&["create", &volume, "--dies", &dies][..], &how].concat(), &[])?;
    Ok(volume)
}

fn image(folder: &Path, name: &str) -> Result<String> {
    let path = folder.join(name);
    File::create(&path)
        .and_then(|file| file.set_len(SIZE_MIB << 20))
        .with_context(|| format!("making {}", path.display()))?;
    Ok(path.display().to_string())
}

fn start(
    folder: &Path,
    name: &'static str,
    options: Options,
    words: impl FnOnce(&str) -> Vec<String>,
) -> Result<Server> {
    let socket = folder.join(name);
    let mut command = command(&words(&socket.display().to_string()), options);
    let process = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {name}"))?;
    let server = Server { name, process, socket };
    let deadline = Instant::now() + PATIENCE;
    while !server.socket.exists() {
        ensure!(Instant::now() < deadline, "{name} made no socket within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(server)
}

fn command(words: &[String], options: Options) -> Command {
    let prefix = if options.is_realtime { &REALTIME[..] } else { &[] };
    let mut words = prefix.iter().map(|word| (*word).to_owned()).chain(words.iter().cloned());
    let mut command = Command::new(words.next().expect("a command has a first word"));
    command.args(words);
    command
}

fn fill(server: &Server) -> Result<()> {
    let words = fio(server, &["--rw=write", "--bs=1m", "--iodepth=8"].map(str::to_owned));
    let output = Command::new(&words[0]).args(&words[1..]).output().context("starting fio")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "filling {} failed: {said}", server.name);
    Ok(())
}

fn fio(server: &Server, rest: &[String]) -> Vec<String> {
    let uri = format!("--uri=nbd+unix:///?socket={}", server.socket.display());
    let size = format!("--size={SIZE_MIB}m");
    let fixed = ["fio", "--name=t", "--ioengine=nbd", &uri, &size];
    fixed.iter().map(|word| (*word).to_owned()).chain(rest.iter().cloned()).collect()
}

fn measure(server: &Server, load: &Load, options: Options) -> Result<ServerMeasurement> {
    let Load { name, rw, block, depth, jobs, flush_every } = load;
    let rest = format!(
        "--rw={rw} --bs={block} --iodepth={depth} --numjobs={jobs} --fsync={flush_every} \
         --group_reporting --norandommap --randrepeat=0 --time_based --runtime={}ms \
         --output-format=json",
        options.seconds * 1e3
    );
    let rest: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    if *flush_every > 0 {
        // What earlier loads left is not to be made durable in this one's time.
        let words = ["--rw=write", "--bs=4k", "--io_size=4k", "--end_fsync=1"].map(str::to_owned);
        command(&fio(server, &words), options).output().context("starting fio")?;
    }
    let before_s = processor_s(server.process.id())?;
    let output = command(&fio(server, &rest), options).output().context("starting fio")?;
    let used_s = processor_s(server.process.id())? - before_s;
    let said = String::from_utf8_lossy(&output.stdout);
    let begin = said.find('{').with_context(|| format!("fio on {}: {said}", server.name))?;
    let report: Value = serde_json::from_str(&said[begin..]).context("reading fio's report")?;
    let side = if rw.ends_with("read") { "read" } else { "write" };
    let figures = &report["jobs"][0][side];
    let figure = |value: &Value| value.as_f64().context("a figure of fio's report");
    let ios = figure(&figures["total_ios"])?;
    ensure!(ios > 0.0, "{name} on {} moved nothing", server.name);
    Ok(ServerMeasurement {
        server: server.name,
        load: name,
        iops: figure(&figures["iops"])?,
        server_us_per_io: used_s * 1e6 / ios,
        latency_us_mean: figure(&figures["lat_ns"]["mean"])? / 1e3,
    })
}

/// Processor time that the process numbered `id` has used, in seconds.
pub(super) fn processor_s(id: u32) -> Result<f64> {
    /// Clock ticks a second, which Linux tells programs on every architecture.
    const TICKS: f64 = 100.0;
    let path = format!("/proc/{id}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let (_, fields) = stat.rsplit_once(')').context("the name of a process ends")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let [Some(user), Some(system)] = [11, 12].map(|index| fields.get(index)) else {
        bail!("{path} is too short");
    };
    Ok((user.parse::<f64>()? + system.parse::<f64>()?) / TICKS)
}

fn show(rounds: &[ServerMeasurement], options: Options) -> Result<()> {
    let medians = medians(rounds);
    let reference = if options.of_promises { REFERENCE_PROMISE } else { REFERENCE };
    if options.json {
        for measured in &medians {
            println!("{}", serde_json::to_string(measured)?);
        }
        return Ok(());
    }
    let of =
        |server: &str, load: &str| medians.iter().find(|it| it.server == server && it.load == load);
    let mut servers: Vec<&str> = medians.iter().map(|it| it.server).collect();
    servers.dedup();
    println!(
        "\nthousand requests a second (ratio to {reference}), server's processor us a request"
    );
    for load in LOADS.iter().filter(|load| load.is_for(options)) {
        let mut line = format!("{:<15}", load.name);
        for server in &servers {
            let Some(measured) = of(server, load.name) else { continue };
            let ratio = of(reference, load.name).map_or(1.0, |it| measured.iops / it.iops);
            let (thousands, us) = (measured.iops / 1e3, measured.server_us_per_io);
            write!(line, "  {server} {thousands:.1} ({ratio:.2}) {us:.1} us")?;
        }
        println!("{line}");
    }
    Ok(())
}

/// The medians of each server under each load.
fn medians(rounds: &[ServerMeasurement]) -> Vec<ServerMeasurement> {
    let mut medians: Vec<ServerMeasurement> = Vec::new();
    for measured in rounds {
        let ServerMeasurement { server, load, .. } = *measured;
        if medians.iter().any(|it| it.server == server && it.load == load) {
            continue;
        }
        let same: Vec<&ServerMeasurement> =
            rounds.iter().filter(|it| it.server == server && it.load == load).collect();
        let median = |figure: fn(&ServerMeasurement) -> f64| {
            let mut figures: Vec<f64> = same.iter().map(|it| figure(it)).collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        medians.push(ServerMeasurement {
            server,
            load,
            iops: median(|it| it.iops),
            server_us_per_io: median(|it| it.server_us_per_io),
            latency_us_mean: median(|it| it.latency_us_mean),
        });
    }
    medians
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already where it ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
