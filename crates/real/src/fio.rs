//! Real drives: one fio process for each load, on a file, a block device or an NBD server, on
//! several devices of this machine that are one target, or on the same file or device of several
//! other machines.
//!
//! ```text
//! <raw>/4k/precondition/
//! ├── job.fio                       what was asked; runs by hand
//! ├── output.json                   totals (json+)
//! ├── latency_clat_hist.1.log …     histograms of each job, interval by interval
//! ├── latency_lat.1.log …           largest total latencies of each job
//! ├── messages.txt                  what fio said besides
//! └── fill/                         the same of the fill, where one came before
//! ```
//!
//! After a purge everything is written once in order before the next load that reads (twice on a
//! device, as the SNIA specification asks), and where a file has holes before any load: a read of
//! space that was never written measures the file system or the mapping table, not the medium. A
//! load that only writes begins on the purged device, as the write saturation of SNIA does, unless
//! nothing could be unmapped, so that the fill stands for the purge.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use blockio::{Bytes, SECTOR_BYTES};
use lab::driver::{DeviceIntervals, Driver, Fill, LatencyParts, Load, LoadResult, Watch};
use lab::plan::fill_passes;
use lab::target::access::Access;
use lab::target::address::Address;
use lab::target::system::Block;
use lab::{Error, Kind, PurgeMethod, Rate};
use results::{Environment, PlatformRow, Summary, Warning, WarningKind};
use workload::{Span, Workload};

use self::engine::{Engine, Version};
use self::interval::JobLog;
use self::job::{FillJob, JobTarget, Logging, OUTPUT_FILE, SLACK_MS, fresh_folder, write_job};
use self::meter::DeviceMeter;
use self::output::FioOutput;
use self::process::{Ending, Observation};
use self::replay::Iologs;
use self::unwritten::UnwrittenSpace;
use crate::environment::{Health, Limit, Site};
use crate::interference::Interference;
use crate::lateness::Servers;
use crate::sites::Sites;
use crate::thermometer::{Heat, Thermometer};
use crate::tools::Tools;
use crate::tuning::TunedMachine;

#[cfg(test)]
pub(crate) mod conformance;
pub(crate) mod engine;
mod fleet;
mod interval;
mod job;
mod log;
mod meter;
mod opening;
mod output;
mod process;
mod purge;
pub(crate) mod replay;
mod unwritten;

/// Name of the file that keeps the drive's SMART data from before a run.
const HEALTH_FILE: &str = "health-before.json";

/// Share of threads times queue below which fio, not the target, decides how fast requests come.
const QUEUE_FILLED_MIN: f64 = 0.9;
/// Deviation from the asked rate, as a share of it, from which a warning tells it.
const RATE_MISSED_MAX: f64 = 0.02;
/// CPU time of a job from which it, not the drive, is measured, in percent of a core.
const JOB_CPU_PERCENT_MAX: f64 = 90.0;
/// CPU time of all jobs from which the processors of their machine, not the drive, are measured, as
/// a share of all of it. Interrupts and other processes take some of the rest.
const PROCESSORS_BUSY_MAX: f64 = 0.9;

/// fio on one target. Clones share the target: it is held until the last one is dropped.
#[derive(Clone, Debug)]
pub struct Fio {
    held: Arc<TargetState>,
    raw: PathBuf,
    method: PurgeMethod,
    unwritten: bool,
    /// A purge that could unmap nothing: the fill has to stand for it.
    unpurged: bool,
    shortfall: String,
}

/// State that all clones of a driver share, found out when the target is opened.
#[derive(Debug)]
struct TargetState {
    /// Tuned settings of this machine, put back before the target is released.
    tuned: Option<TunedMachine>,
    sites: Sites,
    /// True if nothing may be written to the target.
    read_only: bool,
    version: Version,
    engine: Engine,
    warned: AtomicBool,
    limit: Limit,
    /// SMART data of each drive before the first load of the run; absent where it tells none.
    before: Vec<Option<Health>>,
    /// Space of a target that keeps its data, which may never have been written; absent of others.
    unwritten: Option<UnwrittenSpace>,
    heat: Mutex<Option<Heat>>,
    /// Servers of the target, where it is a model that Floatgate serves.
    servers: Servers,
    /// A file that was made for this run and in which nothing was measured yet.
    unused: Mutex<Option<PathBuf>>,
}

impl TargetState {
    /// Refuses `what` writes where nothing may be written.
    fn check_writable(&self, what: &str) -> Result<(), Error> {
        if !self.read_only {
            return Ok(());
        }
        let name = self.sites.target().path().display();
        let text = format!("{what} would write to {name}, which is open for reading only");
        Err(Error::new(Kind::Refused, text).hint("leave out --read-only, or measure reads"))
    }

    /// Keeps a file that was made for the run: something was measured in it.
    fn keep(&self) {
        if let Ok(mut unused) = self.unused.lock() {
            *unused = None;
        }
    }
}

impl Drop for TargetState {
    fn drop(&mut self) {
        let unused = self.unused.lock().ok().and_then(|mut unused| unused.take());
        if let Some(path) = unused {
            // A file that was made and could not be used holds no data of a user; it does no harm
            // if it stays.
            let _ = fs::remove_file(path);
        }
    }
}

impl Fio {
    /// Takes hold of the target and finds out how fio can work on it.
    ///
    /// # Errors
    /// Fails if the guard refuses the target, fio is missing or too old, or it cannot read from it.
    /// A file that was made for it is then gone again.
    pub fn open(address: &Address, access: &Access) -> Result<Self, Error> {
        let version = Version::usable()?;
        let made = opening::make_if_absent(address, access)?;
        let opened = Self::open_existing(address, access, version, made.as_deref());
        if let (Err(_), Some(made)) = (&opened, made) {
            // The error that is returned matters more than one of tidying up.
            let _ = fs::remove_file(made);
        }
        opened
    }

    fn open_existing(
        address: &Address,
        access: &Access,
        version: Version,
        made: Option<&Path>,
    ) -> Result<Self, Error> {
        let (sites, engine) = opening::open(address, access, made.is_some())?;
        let tuned = access.conditions.is_tuned.then(|| tuned_for(&sites)).transpose()?;
        let warned = AtomicBool::new(false);
        let limit = sites.temperature_limit(access.conditions.temperature_max_c)?;
        let before = health_before(&access.raw, &sites);
        let heat = Mutex::new(None);
        // From here on the file is removed with what is held, unless something could be measured.
        let unused = Mutex::new(made.map(Path::to_owned));
        let servers = Servers::of(&sites, &Tools::default());
        let read_only = access.read_only;
        let unwritten = read_only.then(|| UnwrittenSpace::of_all(&sites));
        let held = TargetState {
            tuned,
            sites,
            read_only,
            version,
            engine,
            warned,
            limit,
            before,
            unwritten,
            heat,
            servers,
            unused,
        };
        let (raw, method) = (access.raw.clone(), access.purge);
        let held = Arc::new(held);
        Ok(Self { held, raw, method, unwritten: false, unpurged: false, shortfall: String::new() })
    }

    /// Returns the part of the target that loads address: whole MiB of it.
    fn place(&self) -> JobTarget<'_> {
        let (sites, target) = (&self.held.sites, self.held.sites.target());
        JobTarget {
            hosts: target.hosts(),
            path: target.path(),
            group: sites.group(),
            capacity_bytes: sites.capacity_bytes() / job::FILL_BYTES * job::FILL_BYTES,
            sector_bytes: target.sector_bytes(),
        }
    }

    /// True if everything has to be written before `workload`: it reads and could meet space that
    /// was never written, a file is not allocated, or the fill stands for the purge.
    fn needs_fill(&self, workload: &Workload) -> bool {
        if self.held.read_only {
            return false;
        }
        let is_read = self.unwritten && !workload.only_writes();
        is_read || self.unpurged || self.held.sites.has_holes(self.place().capacity_bytes)
    }

    fn purge_until(&mut self, stop: &dyn Fn() -> bool) -> Result<String, Error> {
        self.held.check_writable("purging")?;
        let TargetState { sites, engine, .. } = &*self.held;
        let purged = purge::of_all(sites, *engine, self.method, &self.raw, stop)?;
        self.unwritten = true;
        self.unpurged = !purged.is_unmapped;
        self.shortfall = purged.shortfall;
        Ok(purged.how)
    }

    /// Writes everything; says how, or nothing when it was stopped.
    fn write_all(
        &mut self,
        folder: &Path,
        wanted: FillJob,
        watch: &mut dyn Watch,
    ) -> Result<Option<String>, Error> {
        self.held.check_writable("filling")?;
        let sites = &self.held.sites;
        sites.check_space()?;
        let is_file = sites.target().file().is_some();
        let passes_min = if wanted.is_random { 1 } else { fill_passes(is_file) };
        let passes = wanted.passes.max(passes_min);
        let folder = fresh_folder(folder)?;
        let wanted = FillJob { passes, ..wanted };
        let text = job::of_fill(self.place(), self.held.engine, wanted)?;
        write_job(&folder, &text)?;
        let meter = DeviceMeter::new(sites.devices());
        let size = self.place().capacity_bytes;
        let whole = size * u64::from(passes) * u64::from(sites.count());
        let (ending, _) = self.carried_out(&folder, watch, |watch, _| {
            let percent = meter.written_bytes().map(|bytes| (bytes * 100 / whole).min(100));
            let told = percent.map_or("filling".into(), |it| format!("filling, {it} %"));
            watch.progress(0.0, &told);
        })?;
        if ending == Ending::Stopped {
            self.held.keep();
            return Ok(None);
        }
        FioOutput::read(&folder.join(OUTPUT_FILE))?;
        self.unwritten &= wanted.is_random;
        self.unpurged &= wanted.is_random;
        let times = match passes {
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            more => format!("{more} times"),
        };
        let each = match self.held.sites.count() {
            1 => String::new(),
            count => format!(" on each of {count} devices"),
        };
        let size = Bytes(size);
        Ok(Some(if wanted.is_random {
            // Not all of it: some addresses more than once, others not at all.
            format!("{size} written {times} at random addresses{each}")
        } else {
            format!("all {size} written {times} in order{each}")
        }))
    }

    /// Reads fio's output and logs in `folder`, as far as the load came.
    fn measured(
        &self,
        folder: &Path,
        logging: Logging,
        load: &Load<'_>,
    ) -> Result<LoadResult, Error> {
        let output = FioOutput::read(&folder.join(OUTPUT_FILE))?;
        let (mut logs, mut totals) = (Vec::new(), Vec::new());
        let size = match load.workload.sizes.as_slice() {
            [size] if load.replay.is_none() => Some(u64::from(size.bytes)),
            _ => None,
        };
        let place = self.place();
        let jobs =
            load.threads.saturating_mul(u16::try_from(place.group.len().max(1)).unwrap_or(1));
        for host in place.hosts.map_or_else(|| vec![""], |hosts| hosts.names().collect()) {
            output.check_jobs(host, jobs)?;
            for (job, of_job) in (1..).zip(output.of_host(host)) {
                let (rows, largest) =
                    (log::rows(folder, host, job)?, log::largest(folder, host, job)?);
                logs.push(JobLog { rows, largest });
                totals.push(size.map_or_else(|| of_job.clone(), |size| of_job.of_size(size)));
            }
        }
        let intervals = interval::merged(logging, &logs, &totals);
        let wanted =
            f64::from(load.threads) * f64::from(load.queue_per_thread) * f64::from(place.devices());
        let mut warnings = judged(load, wanted, &output);
        // How many processors other machines have, fio does not report.
        let here = thread::available_parallelism().ok().filter(|_| place.hosts.is_none());
        warnings.extend(here.and_then(|here| processors_busy(load, &output, here.get())));
        let (counted, parts) = (output::counted(&totals), output::parts(&totals));
        warnings.extend(parts.as_ref().and_then(|parts| submission(load, parts)));
        if logging.interval_ms != job::milliseconds(load.interval_s) {
            warnings.push(stretched(load, logging));
        }
        // fio's latency begins with the submission: nothing is known of when a request was due.
        let generator_limited = generator_limited(wanted, &output);
        let mut how = self.how(folder);
        if let Some(replay) = &load.replay {
            let requests = intervals.iter().map(|it| it.read.count() + it.write.count()).sum();
            let span = Span { sectors: self.place().capacity_bytes / SECTOR_BYTES };
            let span = span.footprint(load.workload);
            how = format!("{how}; {}", replay.how(span, load.rate, requests));
        }
        let uncounted = output.held_back();
        Ok(LoadResult {
            intervals,
            counted: counted.into_iter().collect(),
            devices: self.of_each(&totals, load.threads),
            parts,
            how,
            generator_limited,
            uncounted,
            warnings,
            ..LoadResult::default()
        })
    }

    /// Totals of each device of a group, from those of its jobs: so many `threads` each, device by
    /// device.
    fn of_each(&self, totals: &[output::JobTotals], threads: u16) -> Vec<DeviceIntervals> {
        if self.held.sites.group().is_empty() {
            return Vec::new();
        }
        let of_device = totals.chunks(usize::from(threads.max(1)));
        let named = self.held.sites.all().iter().zip(of_device);
        let counted = named.filter_map(|(site, totals)| {
            let counted = vec![output::counted(totals)?];
            Some(DeviceIntervals { name: site.name().to_owned(), counted })
        });
        counted.collect()
    }

    /// The text of the job file of `load`.
    fn job(&self, load: &Load<'_>, logging: Logging) -> Result<String, Error> {
        let TargetState { version, engine, .. } = *self.held;
        match &load.replay {
            None => {
                job::check_rate(load, version)?;
                job::of_load(load, self.place(), engine, logging)
            }
            Some(replay) => replay::of_replay(load, replay, self.place(), engine, logging),
        }
    }

    /// Runs the job file of `load` in `folder`, see [`Self::carried_out`]; where it replays a trace
    /// its jobs are sent their iologs.
    fn loaded(
        &self,
        folder: &Path,
        load: &Load<'_>,
        watch: &mut dyn Watch,
        tell: impl FnMut(&mut dyn Watch, Observation),
    ) -> Result<(Ending, Thermometer), Error> {
        let Some(replay) = &load.replay else { return self.carried_out(folder, watch, tell) };
        let place = self.place();
        let file = job::target_name(place.path, self.held.engine)?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let at = (place, file.as_str());
            let _iologs = Iologs::begin(folder, (load, replay), at, (scope, &over))?;
            self.carried_out(folder, watch, tell)
        })
    }

    /// Runs the job file in `folder` until the drive is too hot for it; what became of the target
    /// goes before what fio says of it.
    fn carried_out(
        &self,
        folder: &Path,
        watch: &mut dyn Watch,
        mut tell: impl FnMut(&mut dyn Watch, Observation),
    ) -> Result<(Ending, Thermometer), Error> {
        let TargetState { sites, limit, .. } = &*self.held;
        let mut thermometer = Thermometer::new(limit.max_c, Instant::now());
        let ended = process::run(folder, sites.target().hosts(), watch, |watch, look| {
            thermometer.look(Instant::now(), || sites.sensed_under_load(*limit));
            tell(watch, look);
            !thermometer.is_too_hot()
        });
        self.warmed(thermometer.heat());
        if thermometer.is_too_hot() {
            return Err(thermometer.refusal());
        }
        match (sites.check_still(), ended) {
            (Ok(()), ended) => ended.map(|ending| (ending, thermometer)),
            (Err(gone), Ok(_)) => Err(gone),
            (Err(gone), Err(failed)) => Err(gone.source(failed)),
        }
    }

    /// Keeps the temperatures that were seen under a load.
    fn warmed(&self, heat: Option<Heat>) {
        if let Ok(mut all) = self.held.heat.lock() {
            *all = match (*all, heat) {
                (Some(a), Some(b)) => Some(a.and(b)),
                (a, b) => a.or(b),
            };
        }
    }

    /// Wear and heat that the run cost the drives so far, as rows of the test platform.
    fn cost(&self) -> Vec<PlatformRow> {
        let TargetState { sites, before, heat, servers, .. } = &*self.held;
        let mut rows = Vec::new();
        for (index, (site, before)) in sites.all().iter().zip(before).enumerate() {
            let Some(before) = before else { continue };
            let after = site.health(&Tools::default());
            let of = sites.beside(index);
            rows.push((format!("Drive before{of}"), before.shown()));
            if let Some(after) = after {
                rows.push((format!("Drive after{of}"), after.shown()));
                rows.push((format!("Wear caused by the test{of}"), after.since(before)));
            }
        }
        let heat = heat.lock().ok().and_then(|heat| *heat);
        rows.extend(heat.map(|heat| ("Temperature under load".to_owned(), heat.to_string())));
        let lateness = servers.since_opened(&Tools::default()).map(|it| it.figures().to_string());
        rows.extend(lateness.map(|text| ("Replies late for the served model".to_owned(), text)));
        let told = rows.into_iter().filter(|(_, value)| !value.is_empty());
        told.map(|(name, value)| PlatformRow { name, value }).collect()
    }

    fn how(&self, folder: &Path) -> String {
        let TargetState { version, engine, .. } = &*self.held;
        let arguments = job::arguments_in(folder, self.place().hosts).join(" ");
        format!("fio {version} ({engine}): `fio {arguments}` in {}", folder.display())
    }

    /// Warnings that are raised once, before anything was measured: those of the whole run, and a
    /// purge that fell short.
    fn first_warnings(&mut self, step: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if !self.held.warned.swap(true, Ordering::Relaxed) {
            warnings = self.held.sites.warnings(self.held.engine.direct);
            warnings.extend(self.held.tuned.iter().flat_map(TunedMachine::warnings));
            warnings.extend(self.held.servers.warnings());
            warnings.extend(self.held.unwritten.as_ref().and_then(UnwrittenSpace::warning));
        }
        let shortfall = std::mem::take(&mut self.shortfall);
        if !shortfall.is_empty() {
            warnings.push(Warning {
                kind: WarningKind::Purge,
                step: step.into(),
                text: shortfall,
                remedy: "give the drive a secure erase or format before, if its first hours matter"
                    .into(),
            });
        }
        warnings
    }
}

impl Driver for Fio {
    fn target(&self) -> results::Target {
        self.held.sites.described()
    }

    fn environment(&self) -> Environment {
        let TargetState { sites, version, engine, tuned, .. } = &*self.held;
        let mut environment = sites.environment(&format!("{version}, {engine}"));
        environment.sheet.extend(
            tuned.iter().map(|tuned| PlatformRow {
                name: "Tuned for the run".into(),
                value: tuned.shown(),
            }),
        );
        environment.sheet.extend(
            self.held
                .unwritten
                .as_ref()
                .map(|it| PlatformRow { name: "Never written".into(), value: it.to_string() }),
        );
        environment.sheet.extend(self.cost());
        environment
    }

    fn check(&self, load: &Load<'_>) -> Result<(), Error> {
        if !load.workload.only_reads() {
            self.held.check_writable(load.step)?;
        }
        let logging = Logging::of(load, self.held.sites.count())?;
        self.job(load, logging).map(drop)
    }

    fn purge(&mut self) -> Result<String, Error> {
        self.purge_until(&|| false)
    }

    fn purge_watched(&mut self, watch: &mut dyn Watch) -> Result<String, Error> {
        self.purge_until(&|| watch.stop())
    }

    /// Fills in order with the transfers of the workload, if they are of one size that divides
    /// whole MiB, else with 1 MiB; at random with 4 KiB.
    fn fill(&mut self, fill: &Fill<'_>, watch: &mut dyn Watch) -> Result<String, Error> {
        let wanted = FillJob {
            is_random: !fill.is_in_order(),
            passes: fill.passes,
            bytes: job::fill_bytes(fill.workload),
            compressible_percent: fill.workload.compressible_percent,
        };
        let how = self.write_all(&self.raw.join(fill.step), wanted, watch)?;
        Ok(how.unwrap_or_else(|| "stopped while filling".into()))
    }

    fn load(&mut self, load: &Load<'_>, watch: &mut dyn Watch) -> Result<LoadResult, Error> {
        self.check(load)?;
        let at = (self.held.version, self.held.engine);
        let (load, drawn) = replay::feasible(load, self.place(), at)?;
        let load = &load;
        let logging = Logging::of(load, self.held.sites.count())?;
        let text = self.job(load, logging)?;
        let folder = fresh_folder(&self.raw.join(load.step))?;
        let mut before = String::new();
        if self.needs_fill(load.workload) {
            let compressible_percent = load.workload.compressible_percent;
            let bytes = job::FILL_BYTES;
            let wanted = FillJob { is_random: false, passes: 1, bytes, compressible_percent };
            match self.write_all(&folder.join("fill"), wanted, watch)? {
                Some(how) => before = format!("{how} before; "),
                None => {
                    return Ok(LoadResult {
                        how: "stopped while filling".into(),
                        ..LoadResult::default()
                    });
                }
            }
        }
        write_job(&folder, &text)?;
        let mut meter = DeviceMeter::new(self.held.sites.devices());
        let slack_s = SLACK_MS as f64 / 1e3;
        let length_s = load.ramp_s + load.duration_s + slack_s;
        let held = Arc::clone(&self.held);
        let mut interference = Interference::begin(&held.sites);
        let (tools, servers) = (Tools::default(), &held.servers);
        let counted = servers.read(&tools);
        let (ending, thermometer) = self.loaded(&folder, load, watch, |watch, look| {
            interference.look(look.process);
            let glimpse = meter.look();
            if let Some(glimpse) = glimpse {
                watch.saw(glimpse);
            }
            let told = glimpse.map_or_else(String::new, |glimpse| meter::shown(glimpse.iops));
            watch.progress((look.passed_s / length_s).min(1.0), &told);
        })?;
        let lateness = counted.and_then(|before| servers.since(&before, &tools));
        let mut warnings = self.first_warnings(load.step);
        warnings.extend(drawn);
        warnings.extend(interference.warnings(load.step, held.engine.direct));
        let mut loaded = match self.measured(&folder, logging, load) {
            // Stopped before it measured anything, fio may leave no report.
            Err(_) if ending == Ending::Stopped => LoadResult::default(),
            measured => measured?,
        };
        if loaded.intervals.is_empty() && ending == Ending::Done {
            return Err(nothing_logged(load, &folder));
        }
        add_climate(&mut loaded, &thermometer, load.ramp_s);
        loaded.lateness = lateness;
        held.keep();
        loaded.how.insert_str(0, &before);
        loaded.warnings.splice(0..0, warnings);
        Ok(loaded)
    }
}

/// Adds what the drive's sensors told to the intervals, and to the totals of the load.
fn add_climate(loaded: &mut LoadResult, thermometer: &Thermometer, ramp_s: f64) {
    thermometer.add_to(&mut loaded.intervals, ramp_s);
    let whole = Summary::of(&loaded.intervals).climate;
    if let Some(counted) = loaded.counted.first_mut() {
        counted.climate = whole;
    }
}

/// Tunes this machine for loads on `target`. The queue of a device that a file shares with others
/// stays as it is.
fn tuned_for(sites: &Sites) -> Result<TunedMachine, Error> {
    let target = sites.target();
    if !target.is_here() {
        let text = "--tune changes settings of this machine, which neither holds nor loads it";
        return Err(Error::new(Kind::Input, text).hint("leave it out; tune where the drive is"));
    }
    let devices = if target.file().is_none() { sites.devices() } else { Vec::new() };
    let disks: Vec<Block> = devices.iter().map(Block::disk).collect();
    TunedMachine::begin(sites.system(), &disks)
}

/// Returns the SMART data of each drive before the first session of a run, and keeps it beside
/// fio's files for a session that resumes the run.
fn health_before(raw: &Path, sites: &Sites) -> Vec<Option<Health>> {
    let of_site = |(number, site): (usize, &Site)| {
        let name =
            if number == 1 { HEALTH_FILE.to_owned() } else { format!("{number}-{HEALTH_FILE}") };
        let path = raw.join(name);
        let kept = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        if kept.is_some() {
            return kept;
        }
        let health = site.health(&Tools::default())?;
        // Where it cannot be kept, it is asked anew after an interruption.
        let _ = fs::create_dir_all(raw).and_then(|()| fs::write(&path, json_of(&health)));
        Some(health)
    };
    (1..).zip(sites.all()).map(of_site).collect()
}

fn json_of(health: &Health) -> String {
    serde_json::to_string(health).expect("plain numbers")
}

/// Share of the total latency that may pass before a request is submitted.
const SUBMISSION_MAX: f64 = 0.05;

/// Submissions that take a good part of the latency.
fn submission(load: &Load<'_>, parts: &LatencyParts) -> Option<Warning> {
    let [submission, completion] =
        [&parts.submission, &parts.completion].map(|part| part.summary().latency_ns_avg);
    let share = submission / completion.max(1.0);
    (share > SUBMISSION_MAX).then(|| Warning {
        kind: WarningKind::Submission,
        step: load.step.into(),
        text: format!(
            "of the {:.1} us of mean latency {:.1} us passed while requests were submitted (fio's \
             slat): total latency is {:.0} % above fio's clat",
            (submission + completion) / 1e3,
            submission / 1e3,
            share * 100.0
        ),
        remedy: "compare it with total latencies; the host's driver or file system takes that time"
            .into(),
    })
}

/// Warnings that fio's totals raise against the measurement; `wanted` requests were to be
/// outstanding.
fn judged(load: &Load<'_>, wanted: f64, output: &FioOutput) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let iops = output.iops();
    let is_missed = |rate: &Rate| (iops / rate.iops - 1.0).abs() > RATE_MISSED_MAX;
    let missed = load.rate.filter(|rate| is_missed(rate) && generator_limited(wanted, output));
    warnings.extend(missed.map(|rate| {
        Warning {
            kind: WarningKind::Environment,
            step: load.step.into(),
            text: format!("{iops:.0} requests per second arrived instead of {:.0}", rate.iops),
            remedy:
                "fio could not send them: its gaps are whole microseconds, and a job is one core \
                 at most; spread the rate over more threads"
                    .into(),
        }
    }));
    let cpu = output.cpu_percent();
    if cpu > JOB_CPU_PERCENT_MAX {
        warnings.push(Warning {
            kind: WarningKind::Environment,
            step: load.step.into(),
            text: format!("each job used {cpu:.0} % of a core: fio, not the drive, is the limit"),
            remedy: "spread the load over more threads, or take a faster machine".into(),
        });
    }
    warnings
}

/// Jobs that together take nearly all of the `processors` of their machine, though none needs a
/// whole one.
fn processors_busy(load: &Load<'_>, output: &FioOutput, processors: usize) -> Option<Warning> {
    let busy = output.cpu_percent() / 100.0 * output.jobs.len() as f64;
    let is_told_of_jobs = output.cpu_percent() > JOB_CPU_PERCENT_MAX;
    (busy > PROCESSORS_BUSY_MAX * processors as f64 && !is_told_of_jobs).then(|| Warning {
        kind: WarningKind::Environment,
        step: load.step.into(),
        text: format!(
            "fio's jobs used {busy:.1} of {}: the machine, not the drive, may be the limit",
            blockio::text::counted(processors as u64, "processor")
        ),
        remedy: "measure on a machine with more processors, or compare the rate only with those \
                 of the same machine"
            .into(),
    })
}

/// True if fio had neither all `wanted` requests outstanding nor a core to spare: then it, not the
/// target, decides how fast requests come.
fn generator_limited(wanted: f64, output: &FioOutput) -> bool {
    output.outstanding() < wanted * QUEUE_FILLED_MIN || output.cpu_percent() > JOB_CPU_PERCENT_MAX
}

fn stretched(load: &Load<'_>, logging: Logging) -> Warning {
    let (asked_s, taken_s) = (load.interval_s, logging.interval_ms as f64 / 1e3);
    Warning {
        kind: WarningKind::Environment,
        step: load.step.into(),
        text: format!(
            "intervals of {taken_s} s instead of {asked_s} s: fio keeps all histograms in memory"
        ),
        remedy: "take fewer threads, a shorter step or longer intervals".into(),
    }
}

fn nothing_logged(load: &Load<'_>, folder: &Path) -> Error {
    let text = format!("step {}: no job completed an interval of {} s", load.step, load.interval_s);
    let folder = folder.display();
    Error::new(Kind::Program, text)
        .hint(format!("the target stood still, or the interval is too short; fio's logs: {folder}"))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod unused_options;
