//! The job file of one step: everything that fio is told, kept beside what it answers.
//!
//! Each line is there because fio's own default, or its silence, would measure something else:
//!
//! - `size` counts for each job, so it is given in bytes; sequential jobs get a slice each
//!   (`offset_increment`), or all of them would read the same addresses, which only a workload with
//!   `shared_start` asks for;
//! - `norandommap`: addresses are drawn independently, as the models draw them; fio's map visits
//!   each block once, which only a workload with `random_map` asks for;
//! - `randseed` gives the same addresses on the next run, and others to each job;
//! - `refill_buffers`: new data in each write, incompressible but for `buffer_compress_percentage`,
//!   for drives that compress;
//! - `lat_percentiles` and its like: without them the report has no histogram of that latency;
//! - `exitall_on_error`, `allow_file_create=0`: no job goes on alone, no node becomes a file;
//! - the logs are kept for each job: fio cannot merge them, see [`super::interval`].

use std::fmt::{Display, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use lab::target::hosts::Hosts;
use lab::{Error, Gaps, Kind, Load};
use workload::{Access, Workload};

use super::engine::{Engine, Version};

/// Name of the job file.
pub(super) const JOB_FILE: &str = "job.fio";
/// Name of fio's report.
pub(super) const OUTPUT_FILE: &str = "output.json";
/// Load after the last interval, so that a request completes after its end: only then fio logs it.
pub(super) const SLACK_MS: u64 = 500;

/// Largest transfer of a fill, and what capacities are rounded down to, in bytes.
pub(super) const FILL_BYTES: u64 = 1 << 20;
/// Bytes of a transfer of the random writes after a fill.
const RANDOM_FILL_BYTES: u64 = 4 << 10;

/// Most that a trim names at a time: each is one command of the kernel.
const TRIM_BYTES: u64 = 64 << 20;

/// Requests of a look: fio's server keeps the last two rows of a log to itself.
const LOOK_REQUESTS: u32 = 8;

/// fio's histogram of one row: 1856 counters of 8 bytes, all of them in memory until the end.
const ROW_BYTES: u64 = 1856 * 8;
/// Row of the histogram as text, at full resolution: most counters are a digit and two separators.
const ROW_TEXT_BYTES: u64 = 1856 * 3;
/// Memory that the histograms of one step may take.
const LOG_BYTES_MAX: u64 = 1 << 30;
/// Space that the histogram logs of one step may take.
const LOG_TEXT_BYTES_MAX: u64 = 256 << 20;
/// Merging 4 bins (6 % wide) is the most that percentiles bear.
pub(super) const COARSENESS_MAX: u32 = 2;

/// Arguments of fio in the folder of the job file; `hosts` carry it out, or this machine where
/// there are none.
pub(super) fn arguments(hosts: Option<&Hosts>) -> Vec<String> {
    let mut all: Vec<String> =
        ["--output-format=json+", "--output=output.json"].map(String::from).into();
    match hosts {
        Some(hosts) => all.extend(hosts.arguments(JOB_FILE)),
        None => all.push(JOB_FILE.to_owned()),
    }
    all
}

/// Arguments of fio for the job file in `folder`: where it only reads, fio is also forbidden to
/// write.
pub(super) fn arguments_in(folder: &Path, hosts: Option<&Hosts>) -> Vec<String> {
    let mut all = arguments(hosts);
    let text = fs::read_to_string(folder.join(JOB_FILE)).unwrap_or_default();
    if hosts.is_none() && only_reads(&text) {
        all.insert(0, "--readonly".to_owned());
    }
    all
}

/// True if every job of the job file `text` states that it reads.
fn only_reads(text: &str) -> bool {
    let mut directions = text.lines().filter_map(|line| line.strip_prefix("rw=")).peekable();
    directions.peek().is_some() && directions.all(|it| matches!(it, "read" | "randread"))
}

/// Makes an empty folder, in place of what an earlier session left there.
pub(super) fn fresh_folder(folder: &Path) -> Result<PathBuf, Error> {
    let io = |source| Error::new(Kind::Io, format!("making {}", folder.display())).source(source);
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(io)?;
    }
    fs::create_dir_all(folder).map_err(io)?;
    Ok(folder.to_owned())
}

pub(super) fn write_job(folder: &Path, text: &str) -> Result<(), Error> {
    let path = folder.join(JOB_FILE);
    fs::write(&path, text).map_err(|source| {
        Error::new(Kind::Io, format!("writing {}", path.display())).source(source)
    })
}

/// Target of the jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobTarget<'a> {
    /// The machines that it is on, each with one of its own; absent: this one.
    pub(super) hosts: Option<&'a Hosts>,
    /// The file or device, absolute on this machine.
    pub(super) path: &'a Path,
    /// The devices that are one target, each with jobs of its own; empty: `path` alone.
    pub(super) group: &'a [PathBuf],
    /// Its capacity in bytes, whole fill transfers.
    pub(super) capacity_bytes: u64,
    /// Smallest transfer that it takes, in bytes.
    pub(super) sector_bytes: u64,
}

impl JobTarget<'_> {
    /// Devices that take the load, each all of its jobs: those of a group, or one on each host.
    pub(super) fn devices(&self) -> u32 {
        let here = u32::try_from(self.group.len().max(1)).expect("a command line is shorter");
        here * self.hosts.map_or(1, Hosts::count)
    }
}

/// Resolution of fio's latency logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Logging {
    /// Length of one row, in milliseconds: a multiple of the interval that was asked for.
    pub(super) interval_ms: u64,
    /// Rows that are wanted.
    pub(super) rows: u64,
    /// Each value in a row is the sum of `2^coarseness` bins.
    pub(super) coarseness: u32,
}

impl Logging {
    /// The finest logging of `load` on each of `devices` that neither exhausts the memory nor fills
    /// the disk: fio keeps 15 KB in memory for each row of each job and direction, whatever the
    /// coarseness.
    ///
    /// # Errors
    /// Fails if the load holds no interval.
    pub(super) fn of(load: &Load<'_>, devices: u32) -> Result<Self, Error> {
        let asked_ms = milliseconds(load.interval_s);
        let duration_ms = milliseconds(load.duration_s);
        if asked_ms == 0 || duration_ms < asked_ms {
            let text = format!(
                "step {}: {} s of load hold no interval of {} s",
                load.step, load.duration_s, load.interval_s
            );
            return Err(Error::new(Kind::Input, text).hint("measure for one interval at least"));
        }
        let directions =
            if load.workload.only_reads() || load.workload.only_writes() { 1 } else { 2 };
        let logs = u64::from(load.threads) * directions * u64::from(devices);
        let asked_bytes = logs * (duration_ms / asked_ms) * ROW_BYTES;
        let stretch = asked_bytes.div_ceil(LOG_BYTES_MAX).max(1);
        let interval_ms = asked_ms * stretch;
        let rows = duration_ms / interval_ms;
        let text_bytes = logs * rows * ROW_TEXT_BYTES;
        let coarseness = (0..COARSENESS_MAX).find(|by| text_bytes >> by <= LOG_TEXT_BYTES_MAX);
        Ok(Self { interval_ms, rows, coarseness: coarseness.unwrap_or(COARSENESS_MAX) })
    }
}

/// Seconds as whole milliseconds; never negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
pub(super) fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3).round().max(0.0) as u64
}

/// The text of the job file of `load`.
///
/// # Errors
/// Fails if fio cannot express it, or the place cannot take it.
pub(super) fn of_load(
    load: &Load<'_>,
    place: JobTarget<'_>,
    engine: Engine,
    logging: Logging,
) -> Result<String, Error> {
    let Load { workload, queue_per_thread, .. } = *load;
    check_transfers(workload, place, engine)?;
    let warning = if workload.only_reads() { "" } else { ": it overwrites the target" };
    let what = format!("step {}, workload {}{warning}", load.step, workload.name);
    let mut job = heading(&what, place.hosts);
    job.target(place, engine, Jobs::Threads)?;
    job.requests(workload)?;
    job.compressible(&workload.name, workload.compressible_percent)?;
    job.addresses(load, place)?;
    job.rate(load, place);
    job.line("iodepth", queue_per_thread);
    job.measured(load, logging, (place, engine))?;
    Ok(job.text)
}

/// Transfer size of a fill with `workload`: its own, where it has one of which fills are made up;
/// else [`FILL_BYTES`].
pub(super) fn fill_bytes(workload: &Workload) -> u64 {
    match workload.sizes.as_slice() {
        [size] if FILL_BYTES.is_multiple_of(size.bytes.into()) => size.bytes.into(),
        _ => FILL_BYTES,
    }
}

/// Writes over all of a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct FillJob {
    /// True if they are random writes of 4 KiB; otherwise they are in order.
    pub(super) is_random: bool,
    /// Times that the capacity is written.
    pub(super) passes: u32,
    /// Bytes of a transfer in order: a divisor of [`FILL_BYTES`].
    pub(super) bytes: u64,
    pub(super) compressible_percent: f64,
}

/// The text of the job file that writes over all of `place` as `wanted`.
pub(super) fn of_fill(
    place: JobTarget<'_>,
    engine: Engine,
    wanted: FillJob,
) -> Result<String, Error> {
    let what = if wanted.is_random { "random addresses" } else { "every address in order" };
    let mut job = heading(&format!("{what}: it overwrites the target"), place.hosts);
    job.target(place, engine, Jobs::Threads)?;
    job.compressible("fill", wanted.compressible_percent)?;
    if wanted.is_random {
        job.line("rw", "randwrite");
        job.line("bs", RANDOM_FILL_BYTES.max(place.sector_bytes));
        // As a model draws them: some addresses more than once, others not at all.
        job.line("norandommap", 1);
    } else {
        job.line("rw", "write");
        job.line("bs", wanted.bytes.max(place.sector_bytes));
    }
    job.line("size", place.capacity_bytes);
    job.line("iodepth", if wanted.is_random { 64 } else { 16 });
    if wanted.is_random {
        // Each of several loops would draw the addresses of the first one again.
        job.line("io_size", place.capacity_bytes * u64::from(wanted.passes));
    } else {
        job.line("loops", wanted.passes);
    }
    job.sections("fill", place, engine, None)?;
    Ok(job.text)
}

/// The text of the job file that trims all of `place`, in order.
pub(super) fn of_trim(place: JobTarget<'_>, engine: Engine) -> Result<String, Error> {
    let mut job = heading("every block trimmed: it empties the target", place.hosts);
    job.target(place, engine, Jobs::Threads)?;
    job.line("rw", "trim");
    // fio leaves out what is less than a transfer.
    let rest = place.capacity_bytes % TRIM_BYTES;
    let whole = place.capacity_bytes - rest;
    for (name, offset, size, bs) in
        [("trim", 0, whole, TRIM_BYTES), ("rest", whole, rest, FILL_BYTES)]
    {
        if size > 0 {
            job.section(name);
            job.line("offset", offset);
            job.line("size", size);
            job.line("bs", bs);
        }
    }
    Ok(job.text)
}

/// The text of the job file that reads a few blocks of `path`, of so many bytes each, from an
/// offset on that fio understands, and logs where they were.
pub(super) fn of_look(
    hosts: &Hosts,
    path: &Path,
    engine: Engine,
    offset: &str,
    bytes: u64,
) -> Result<String, Error> {
    let mut job = heading("a test read of the target, which changes nothing", Some(hosts));
    job.line(engine.target_key(), target_name(path, engine)?);
    job.line("allow_file_create", 0);
    job.line("ioengine", engine.name);
    job.line("direct", u8::from(engine.direct));
    job.line("thread", 1);
    job.line("rw", "read");
    job.line("bs", bytes);
    job.line("offset", offset);
    job.line("number_ios", LOOK_REQUESTS);
    job.line("write_lat_log", "latency");
    job.line("log_offset", 1);
    job.section("look");
    Ok(job.text)
}

fn check_transfers(workload: &Workload, place: JobTarget<'_>, engine: Engine) -> Result<(), Error> {
    let sector = place.sector_bytes;
    let align = u64::from(workload.alignment_bytes());
    let smallest = workload.sizes.iter().map(|size| u64::from(size.bytes)).min().unwrap_or(align);
    let fits = align.is_multiple_of(sector)
        && workload.sizes.iter().all(|size| u64::from(size.bytes).is_multiple_of(sector));
    if engine.direct && !fits {
        let text = format!(
            "workload {} has transfers of {smallest} bytes at multiples of {align}, {} takes \
             multiples of {sector}",
            workload.name,
            place.path.display()
        );
        return Err(Error::new(Kind::Input, text).hint(
            "take a workload of whole sectors, leave the suite or the size out in a copy of the \
             protocol (`floatgate protocols show NAME --toml`), or format the drive to smaller \
             sectors",
        ));
    }
    Ok(())
}

/// Refuses a rate of `load` that fio of this `version` does not keep: before 3.42 its even gaps are
/// those of the smallest transfer, so that a mix of sizes comes out 8 to 30 times too slow.
pub(super) fn check_rate(load: &Load<'_>, version: Version) -> Result<(), Error> {
    let even = load.rate.is_some_and(|rate| rate.gaps == Gaps::Constant);
    if even && load.workload.sizes.len() > 1 && version < Version::RECOMMENDED {
        let (name, needed) = (&load.workload.name, Version::RECOMMENDED);
        let text =
            format!("workload {name} mixes sizes: fio {version} cannot send them at even gaps");
        return Err(Error::new(Kind::Input, text)
            .hint(format!("ask for exponential gaps, or install fio {needed} or later")));
    }
    Ok(())
}

/// Form in which the kernel runs jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jobs {
    /// Threads of one process.
    Threads,
    /// A process each.
    Processes,
}

/// A job file in the making.
pub(super) struct JobFile {
    pub(super) text: String,
}

pub(super) fn heading(what: &str, hosts: Option<&Hosts>) -> JobFile {
    let arguments = arguments(hosts).join(" ");
    JobFile { text: format!("# {what}\n# By hand, in this folder: fio {arguments}\n[global]\n") }
}

impl JobFile {
    pub(super) fn line(&mut self, key: &str, value: impl Display) {
        writeln!(self.text, "{key}={value}").expect("writing to a string cannot fail");
    }

    fn section(&mut self, name: &str) {
        writeln!(self.text, "[{name}]").expect("writing to a string cannot fail");
    }

    pub(super) fn target(
        &mut self,
        place: JobTarget<'_>,
        engine: Engine,
        jobs: Jobs,
    ) -> Result<(), Error> {
        if place.group.is_empty() {
            self.line(engine.target_key(), target_name(place.path, engine)?);
        }
        self.line("allow_file_create", 0);
        self.line("fallocate", "none");
        self.line("ioengine", engine.name);
        self.line("direct", u8::from(engine.direct));
        if jobs == Jobs::Threads {
            self.line("thread", 1);
        }
        self.line("exitall_on_error", 1);
        self.line("refill_buffers", 1);
        Ok(())
    }

    /// Adds the section `name` of so many `jobs`, or of one; for a group one on each device, which
    /// are carried out at the same time.
    fn sections(
        &mut self,
        name: &str,
        place: JobTarget<'_>,
        engine: Engine,
        jobs: Option<u16>,
    ) -> Result<(), Error> {
        if place.group.is_empty() {
            self.section(name);
            self.count(jobs);
        }
        for (number, path) in (1..).zip(place.group) {
            self.section(&format!("{name}-{number}"));
            self.line(engine.target_key(), target_name(path, engine)?);
            self.count(jobs);
        }
        Ok(())
    }

    /// Adds the number of jobs of a section, where it is not one.
    fn count(&mut self, jobs: Option<u16>) {
        if let Some(jobs) = jobs {
            self.line("numjobs", jobs);
        }
    }

    /// Adds the length and the logs of a measurement, then its sections of `load.threads` jobs.
    pub(super) fn measured(
        &mut self,
        load: &Load<'_>,
        logging: Logging,
        at: (JobTarget<'_>, Engine),
    ) -> Result<(), Error> {
        self.line("time_based", 1);
        if load.ramp_s > 0.0 {
            self.line("ramp_time", format!("{}ms", milliseconds(load.ramp_s)));
        }
        self.line("runtime", format!("{}ms", logging.interval_ms * logging.rows + SLACK_MS));
        self.line("slat_percentiles", 1);
        self.line("clat_percentiles", 1);
        self.line("lat_percentiles", 1);
        self.line("write_hist_log", "latency");
        self.line("log_hist_msec", logging.interval_ms);
        self.line("log_hist_coarseness", logging.coarseness);
        self.line("write_lat_log", "latency");
        self.line("log_avg_msec", logging.interval_ms);
        self.line("log_max_value", 1);
        let name = format!("T{}Q{}", load.threads, load.queue_per_thread);
        self.sections(&name, at.0, at.1, Some(load.threads))
    }

    /// Direction and sizes.
    fn requests(&mut self, workload: &Workload) -> Result<(), Error> {
        if workload.access == Access::Streams {
            let text = format!("workload {}: its streams are for models", workload.name);
            let hint = "measure a real drive with a workload of one stream";
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
        let order = if workload.access == Access::Sequential { "" } else { "rand" };
        if workload.only_reads() {
            self.line("rw", format!("{order}read"));
        } else if workload.only_writes() {
            self.line("rw", format!("{order}write"));
        } else {
            self.line("rw", if order.is_empty() { "rw" } else { "randrw" });
            let share = whole_percent(&workload.name, "read_percent", workload.read_percent)?;
            self.line("rwmixread", share);
        }
        if let [size] = workload.sizes.as_slice() {
            self.line("bs", size.bytes);
        } else {
            let mix = size_mix(workload)?;
            self.line("bssplit", format!("{mix},{mix}"));
        }
        Ok(())
    }

    /// Data that a compressor can shorten, in every write anew; without a word it is random.
    pub(super) fn compressible(&mut self, name: &str, percent: f64) -> Result<(), Error> {
        if percent > 0.0 {
            let share = whole_percent(name, "compressible_percent", percent)?;
            self.line("buffer_compress_percentage", share);
        }
        Ok(())
    }

    /// Requests a second. fio's rates are whole numbers for each job and direction, and zero is no
    /// limit; what was reached is compared with what was asked for afterwards.
    fn rate(&mut self, load: &Load<'_>, place: JobTarget<'_>) {
        let Some(rate) = load.rate else { return };
        let jobs = u32::from(load.threads) * place.devices();
        let of_all = rate.iops / f64::from(jobs);
        let share = |percent: f64| (of_all * percent / 100.0).round().max(1.0);
        let read_percent = load.workload.read_percent;
        if load.workload.only_reads() || load.workload.only_writes() {
            self.line("rate_iops", share(100.0));
        } else {
            let (reads, writes) = (share(read_percent), share(100.0 - read_percent));
            self.line("rate_iops", format!("{reads},{writes}"));
        }
        if rate.gaps == Gaps::Exponential {
            self.line("rate_process", "poisson");
        }
    }

    fn addresses(&mut self, load: &Load<'_>, place: JobTarget<'_>) -> Result<(), Error> {
        let workload = load.workload;
        let footprint_bytes = footprint_bytes(workload, place.capacity_bytes);
        let largest = workload.sizes.iter().map(|size| u64::from(size.bytes)).max().unwrap_or(1);
        let slices = u64::from(workload.slices(load.threads));
        let slice_bytes = footprint_bytes / slices / largest * largest;
        if slice_bytes == 0 {
            let text = format!(
                "step {}: {footprint_bytes} bytes cannot hold {slices} jobs with transfers of \
                 {largest} bytes",
                load.step
            );
            return Err(Error::new(Kind::Input, text).hint("take a larger target"));
        }
        self.line("size", if slices == 1 { footprint_bytes } else { slice_bytes });
        let offset_bytes = share_bytes(workload.offset_percent, place.capacity_bytes);
        let offset_bytes = offset_bytes - offset_bytes % u64::from(workload.alignment_bytes());
        if offset_bytes > 0 {
            self.line("offset", offset_bytes);
        }
        if slices > 1 {
            self.line("offset_increment", slice_bytes);
        }
        if workload.access != Access::Sequential {
            if !workload.random_map {
                self.line("norandommap", 1);
            }
            self.line("blockalign", workload.alignment_bytes());
            self.line("random_generator", "tausworthe64");
        }
        match workload.access {
            Access::Random | Access::Sequential | Access::Streams => {}
            Access::Zipf { theta } => self.line("random_distribution", format!("zipf:{theta}")),
            Access::HotCold { hot_request_percent, hot_space_percent } => {
                let requests =
                    whole_percent(&workload.name, "hot_request_percent", hot_request_percent)?;
                let space = whole_percent(&workload.name, "hot_space_percent", hot_space_percent)?;
                let zones = format!("{requests}/{space}:{}/{}", 100 - requests, 100 - space);
                self.line("random_distribution", format!("zoned:{zones}"));
            }
        }
        self.line("randrepeat", 1);
        // fio reads 63 bits; zero would make the seeds of all jobs equal.
        self.line("randseed", (load.seed & (u64::MAX >> 1)).max(1));
        Ok(())
    }
}

/// Bytes that are addressed, in whole fill transfers.
fn footprint_bytes(workload: &Workload, capacity_bytes: u64) -> u64 {
    share_bytes(workload.footprint_percent, capacity_bytes) / FILL_BYTES * FILL_BYTES
}

/// `percent` of the capacity, rounded down.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the capacity")]
fn share_bytes(percent: f64, capacity_bytes: u64) -> u64 {
    ((capacity_bytes as f64 * (percent / 100.0)) as u64).min(capacity_bytes)
}

fn size_mix(workload: &Workload) -> Result<String, Error> {
    let shares = workload.sizes.iter().map(|size| {
        let percent = whole_percent(&workload.name, "percent", size.percent)?;
        Ok(format!("{}/{percent}", size.bytes))
    });
    Ok(shares.collect::<Result<Vec<_>, Error>>()?.join(":"))
}

/// fio reads percentages as whole numbers and drops the rest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100, checked")]
fn whole_percent(name: &str, key: &str, percent: f64) -> Result<u32, Error> {
    if percent.fract().abs() > 1e-9 || !(0.0..=100.0).contains(&percent) {
        let text = format!("workload {name}: {key} is {percent}, fio takes whole percents only");
        return Err(Error::new(Kind::Input, text).hint("round it in the workload's file"));
    }
    Ok(percent as u32)
}

/// A path as fio's `filename` takes it, or an address as its `uri`: `:` separates files, and what
/// its reader of job files would take for a comment or a variable cannot be escaped.
pub(super) fn target_name(path: &Path, engine: Engine) -> Result<String, Error> {
    let name = path
        .to_str()
        .filter(|name| !name.contains([';', '#', '$', '\\', '\n', '"']) && name.trim() == *name);
    let plain = engine == Engine::NBD;
    let escaped = |name: &str| if plain { name.to_owned() } else { name.replace(':', "\\:") };
    name.map(escaped).ok_or_else(|| {
        let text = format!("fio cannot be given the path {}", path.display());
        Error::new(Kind::Input, text).hint("rename it: none of ; # $ \\ \" and no line ends")
    })
}

#[cfg(test)]
mod tests;
