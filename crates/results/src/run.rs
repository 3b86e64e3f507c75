//! The result file, `run.json`.

pub(crate) mod doubt;
mod storage;

use serde::{Deserialize, Serialize};

use crate::mark::{is_unset, marked};
use crate::price::Price;
use crate::published::is_from_listed_stalls;
use crate::{
    ApplicationFigures, Bin, DieFailures, Figure, Latencies, LatencySummary, Lateness, NandWrites,
    Sample, Sampling, Spread, Steady, SteadyEvidence, Summary, WrittenAmount,
};

/// One drive, in one format, behind one host, through one protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of this schema; see [`Run::SCHEMA`].
    pub schema: u32,
    /// Name of the run's folder, unique: `2026-11-21T101503Z-iodrive-duo-stock`.
    pub id: String,
    /// Start of the run, RFC 3339 in UTC; of an imported one with the zone that its file names, and
    /// empty where it tells none.
    pub started_at: String,
    /// Version of the program.
    pub floatgate_version: String,
    /// Version of the drive models: rises whenever a simulated number moves. Absent for real
    /// drives.
    pub model_version: Option<u32>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Name of the protocol.
    pub protocol: String,
    /// Heading of the protocol.
    pub protocol_title: String,
    /// Target that was measured.
    pub target: Target,
    /// Test platform.
    pub environment: Environment,
    /// Steps, in order; those not yet reached are absent.
    pub steps: Vec<Step>,
    /// Steps that the plan has in all, without rounds that need not be measured; more than `steps`
    /// when the run was interrupted.
    pub steps_planned: u32,
    /// Warnings about the trustworthiness of the figures.
    pub warnings: Vec<Warning>,
    /// Published figures of this drive, where it has any.
    pub published: Vec<Figure>,
    /// Figures published of this drive and of workloads that this run measured, but by another
    /// protocol: nothing of this run is compared with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published_elsewhere: Vec<Figure>,
}

/// Target that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Model or real, and what kind.
    pub kind: TargetKind,
    /// Name: of the catalogue (`iodrive-duo`), or the path that was given.
    pub name: String,
    /// Heading on a report: `Fusion-io ioDrive Duo 640 GB (MLC)`.
    pub title: String,
    /// Format, such as `stock` or `high-performance`; empty where a drive has one only.
    pub format: String,
    /// Host driver or system, such as `linux`.
    pub host: String,
    /// Capacity that the host sees, in bytes.
    pub user_capacity_bytes: u64,
    /// Raw media capacity, in bytes; absent where unknown.
    pub raw_capacity_bytes: Option<u64>,
    /// The drive ran at 1/k of its capacity for 1/k of the time; 1 is full scale. All times in this
    /// file are the protocol's (multiplied by k) except latencies, which are what they are.
    pub time_lapse: u32,
    /// Identical devices that are one target; threads and queues of every step are those of each
    /// of them, results are added.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub devices: u32,
    /// True of a model whose rates have not been compared with published ones. Absent: false.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub unvalidated: bool,
    /// Limits of its power and heat; absent where nothing is known of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Memory of the host that the map of the flash translation layer takes, in bytes; absent where
    /// the drive keeps the map itself, and of real drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_map_bytes: Option<u64>,
    /// Longest of the stalls that the file of a model lists for its host, in milliseconds; absent
    /// where it lists none, and of real drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_stall_ms_max: Option<f64>,
    /// Limits of the rate of the host of a model, whatever the drive; absent where there are none,
    /// and of real drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_limits: Option<HostLimits>,
    /// Price, where one was published or stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Amount that the maker says may be written over the warranty, in decimal petabytes; absent
    /// where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endurance_pb: Option<f64>,
    /// Specification sheet, row by row.
    pub sheet: Vec<SheetRow>,
}

impl Target {
    /// A target at full scale of which nothing but its `kind` is known.
    pub const fn of_kind(kind: TargetKind) -> Self {
        Self {
            kind,
            name: String::new(),
            title: String::new(),
            format: String::new(),
            host: String::new(),
            user_capacity_bytes: 0,
            raw_capacity_bytes: None,
            time_lapse: 1,
            devices: 1,
            unvalidated: false,
            limits: None,
            host_map_bytes: None,
            host_stall_ms_max: None,
            host_limits: None,
            price: None,
            endurance_pb: None,
            sheet: Vec::new(),
        }
    }

    /// Capacity that the host sees of all devices together, in bytes.
    pub const fn user_capacity_all_bytes(&self) -> u64 {
        let devices = if self.kind.has_capacity_of_each_device() { self.devices } else { 1 };
        self.user_capacity_bytes * devices as u64
    }

    /// Heading on a report, with the mark of an unvalidated model.
    pub fn heading(&self) -> String {
        marked(&self.title, self.unvalidated)
    }
}

/// Limits of the rate of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostLimits {
    /// Processors that the threads of all devices share; absent where there are always enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Time of each request in the critical section (lock) of the driver, in microseconds; absent
    /// where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_us: Option<f64>,
}

/// Limits of a drive's power and heat, each absent where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Temperature from which on it slows writes down, in degrees Celsius; of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_c: Option<f64>,
    /// Temperature at which it switches itself off, in degrees Celsius; of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown_c: Option<f64>,
    /// Temperature from which on it warns of heat, in degrees Celsius: `temp1_max` of the kernel's
    /// sensor, an NVMe drive's WCTEMP; of real drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning_c: Option<f64>,
    /// Temperature that it calls critical, in degrees Celsius: `temp1_crit` of the kernel's sensor,
    /// an NVMe drive's CCTEMP; of real drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_c: Option<f64>,
    /// Power that it may draw, in watts; absent where it has what it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_one(devices: &u32) -> bool {
    *devices == 1
}

/// Kind of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A modelled drive in virtual time.
    Model,
    /// A real block device.
    BlockDevice,
    /// A file on a real file system.
    File,
    /// A drive behind an NBD server.
    Nbd,
    /// Drives of the same name on other machines, through fio's servers.
    Remote,
}

impl TargetKind {
    /// True for a modelled drive, whose time is virtual.
    pub const fn is_model(self) -> bool {
        match self {
            Self::Model => true,
            Self::BlockDevice | Self::File | Self::Nbd | Self::Remote => false,
        }
    }

    /// True if the state of the drive outlives the program: what was measured before an
    /// interruption needs not be measured again.
    pub const fn outlives_the_program(self) -> bool {
        !self.is_model()
    }

    /// True if the capacity of a target is that of each of its devices; the devices of a modelled
    /// group are one drive.
    pub const fn has_capacity_of_each_device(self) -> bool {
        !self.is_model()
    }
}

/// One row of a specification sheet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SheetRow {
    /// Group, such as `NAND` or `Controller`.
    pub group: String,
    /// Name of the property, such as `Program time`.
    pub name: String,
    /// Value with its unit.
    pub value: String,
    /// `published`, `derived` or `estimated`, then where from.
    pub source: String,
}

/// Test platform of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Rows for the report's test platform: for a model, the modelled host; for a real drive, the
    /// machine, kernel, scheduler, fio.
    pub sheet: Vec<PlatformRow>,
    /// Program whose report the figures were imported from, such as `fio-3.33`; absent where the
    /// run carried its loads out itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
}

/// One row of the test platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformRow {
    /// Name of the property, such as `Kernel`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Returned the drive to its state before the first write.
    Purge,
    /// Wrote everything once, in order.
    Fill,
    /// Loaded it before the measurements, to bring it into steady state.
    Precondition,
    /// Measured it.
    Measure,
    /// Replayed the recording of an application.
    Application,
}

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name, unique in the run: `4k/precondition`, `8k/8k-70-30/T4Q8`.
    pub id: String,
    /// Kind of step.
    pub kind: StepKind,
    /// Name of the suite, such as `8k-70-30`.
    pub suite: String,
    /// Heading of the suite.
    pub suite_title: String,
    /// Name of the workload; empty for a purge.
    pub workload: String,
    /// Share by which its data could be compressed, in percent: 50 is 2:1.
    #[serde(default)]
    pub compressible_percent: f64,
    /// Share of the user capacity that its requests address, in percent; absent where that is all
    /// of it, and in results from versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footprint_percent: Option<f64>,
    /// Jobs; 0 for a purge or a fill.
    pub threads: u16,
    /// Requests that each job kept outstanding; 0 for a purge or a fill.
    pub queue_per_thread: u16,
    /// Rate at which requests were to come; absent where each completion was answered by the next
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<AskedRate>,
    /// The round that it belongs to, from 1; absent outside of rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// Number that decides whether the rounds are steady; absent where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked: Option<TrackedMetric>,
    /// The one size and mix that it asked for, in rounds; absent outside of rounds, and where its
    /// workload mixes sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<Cell>,
    /// Length in protocol time, in seconds (ramp excluded).
    pub duration_s: f64,
    /// Length of what the totals count in protocol time, in seconds, where that is more than the
    /// samples show: what ends after the last whole interval. Absent: `duration_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_s: Option<f64>,
    /// Length of one sample in protocol time, in seconds.
    pub interval_s: f64,
    /// Amount written to the drive by the end of the step; absent in results from versions without
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenAmount>,
    /// Description of the step, in a sentence: purge method, fio command line.
    pub how: String,
    /// Totals over the whole step.
    pub summary: Option<Summary>,
    /// Intervals of these totals at a confidence of 95 %: over repeats with other seeds, else from
    /// the parts of the step. Absent outside of measurements, and in results from versions without
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Transactions of the application that was replayed; absent in steps of other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationFigures>,
    /// Latency from the time at which each request was due, over reads and writes together: waiting
    /// at the host is in it. Absent where there was no rate, or where it is not known when
    /// requests were due (fio).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<LatencySummary>,
    /// The part of the latency in which requests were submitted (fio's `slat`), over reads and
    /// writes together; absent if the parts are not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<LatencySummary>,
    /// The part from there to the completion (fio's `clat`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<LatencySummary>,
    /// Lateness of the server, where the target is a modelled drive that Floatgate serves; absent
    /// for other targets, and if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Lateness>,
    /// Totals of each device by itself, where several real devices are one target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceFigures>,
    /// Dies of a model that failed under it; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub die_failures: Option<DieFailures>,
    /// Part of the load that was simulated in detail; absent where all was, unasked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Totals over the last five rounds of a preconditioning (the window of the steady-state rule),
    /// whether or not they are in steady state: see `steady.achieved`.
    pub settled: Option<Summary>,
    /// Verdict of the steady-state rule, for a preconditioning.
    pub steady: Option<Steady>,
    /// One entry an interval; kept in `samples.parquet`, not in the JSON.
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// Latencies of the reads of the whole step, ascending; kept in `latencies.parquet`.
    #[serde(skip)]
    pub read_bins: Vec<Bin>,
    /// Latencies of the writes of the whole step, ascending; kept in `latencies.parquet`.
    #[serde(skip)]
    pub write_bins: Vec<Bin>,
}

/// Totals of one device of several that are one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Name of the device, such as `/dev/nvme1n1`.
    pub name: String,
    /// Its totals over the whole step.
    pub summary: Summary,
}

/// The rate that a step asked for, and whether requests came at it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskedRate {
    /// Requests due in each second of the drive's own time.
    pub iops: f64,
    /// Rate as a share of what the load reached without a rate, in percent: a point of a curve.
    /// Absent where the rate was given as a number.
    pub percent: Option<f64>,
    /// Limit that kept requests from coming at that rate; absent where they did.
    pub limit: Option<RateLimit>,
}

/// Limit that keeps requests from coming at the rate that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateLimit {
    /// All that may be outstanding was: the drive answers no faster.
    Drive,
    /// The load generator could not send them, whatever the drive does.
    Generator,
}

/// One size and one mix, as a cell of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Size of each request, in bytes.
    pub bytes: u32,
    /// Share of requests that read, in percent.
    pub read_percent: f64,
}

/// A number of a step that decides whether rounds are steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrackedMetric {
    /// Requests completed in each second.
    Iops,
    /// Average latency.
    LatencyNsAvg,
}

impl Step {
    /// Requests that it kept outstanding on each device: threads × queue depth.
    pub fn outstanding(&self) -> u32 {
        u32::from(self.threads) * u32::from(self.queue_per_thread)
    }

    /// The latencies of `bins`, those of its reads or of its writes: as many count as measured as
    /// windows measured where it was sampled.
    pub fn latencies(&self, bins: &[Bin]) -> Latencies {
        let latencies = Latencies::from_bins(bins);
        let share = self.sampling.as_ref().map_or(1.0, Sampling::measured_share);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let measured = (latencies.count() as f64 * share).ceil() as u64;
        latencies.of_measured(measured)
    }

    /// Few words beside its maximum where it was sampled, see [`Sampling::note`].
    pub fn sampling_note(&self) -> Option<String> {
        self.sampling.as_ref().and_then(Sampling::note)
    }

    /// True if it measured what a load reaches when nothing limits it: neither at a rate, nor in a
    /// preconditioning, nor in rounds that are one.
    pub fn is_primary(&self) -> bool {
        self.kind == StepKind::Measure && self.rate.is_none() && self.round.is_none()
    }
}

/// Warning about the trustworthiness of figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Kind of warning.
    pub kind: WarningKind,
    /// Step that it concerns; empty for the whole run.
    pub step: String,
    /// Observation, with the numbers.
    pub text: String,
    /// Remedy that is suggested.
    pub remedy: String,
}

/// Kind of warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Stopped before its plan was done.
    Interrupted,
    /// The steady-state rule was never met.
    NotSteady,
    /// A real drive measured writes without a preconditioning, or a preconditioning met the limits
    /// of the steady-state rule before it had written enough.
    NotPreconditioned,
    /// Reads met unwritten space: the drive answered them without its media.
    UnwrittenReads,
    /// Outstanding requests fell short of threads times queue.
    QueueNotFilled,
    /// IOPS times average latency disagrees with what was outstanding.
    LittlesLaw,
    /// Requests that had not completed when the measurement ended are in no figure, and are more
    /// than 5 % of those that were outstanding.
    Unfinished,
    /// The server of a modelled drive sent many replies later than the model has them.
    Lateness,
    /// Submitting requests took a good part of their latency.
    Submission,
    /// The page cache or a write cache is between fio and the media.
    PageCache,
    /// The machine or the test setup affects the figures: other load, power saving, a hypervisor,
    /// a narrow link, a network, or figures that fio did not report.
    Environment,
    /// The purge was only emulated.
    Purge,
    /// Model shortened by time lapse, or other scale limits.
    Scale,
    /// A drive that offers more than it holds is running out of physical space.
    Space,
    /// The drive throttled its writes: it was too hot, or drew all the power that it may.
    Throttled,
    /// A die of a model failed, as was asked for.
    DieFailure,
}

impl Run {
    /// Version of this schema.
    pub const SCHEMA: u32 = 1;

    /// Start of the run, in words.
    pub fn begun(&self) -> &str {
        if self.started_at.is_empty() { "at an unknown time" } else { &self.started_at }
    }

    /// Takes back steady states of results from before what was written was judged, where their
    /// preconditioning had not written the user capacity and nothing was relocated.
    pub(crate) fn judge_earlier(&mut self) {
        let capacity = self.target.user_capacity_bytes as f64;
        let time_lapse = f64::from(self.target.time_lapse);
        for step in &mut self.steps {
            let Some(steady) = &mut step.steady else { continue };
            let Some(summary) = &step.summary else { continue };
            let relocates = step
                .settled
                .as_ref()
                .and_then(|settled| settled.nand)
                .is_some_and(|nand| nand.relocation_bytes > 0);
            let little = summary.written_bytes() * time_lapse < capacity;
            let wrote = summary.write.count > 0;
            if steady.achieved && steady.evidence.is_none() && little && wrote && !relocates {
                steady.achieved = false;
                steady.evidence = Some(SteadyEvidence::TooLittleWritten);
            }
        }
    }

    /// The spread of what `step` of this run measured: over all `repeats` of the run, itself
    /// included, completed by that of its own parts; absent without either.
    pub fn spread(&self, step: &Step, repeats: &[&Self]) -> Option<Spread> {
        let same = repeats.iter().filter_map(|run| run.step(&step.id)?.summary.as_ref());
        Spread::over(&same.collect::<Vec<&Summary>>(), step.spread)
    }

    /// True if what the run measured for `figure` comes from the stalls that the file of its model
    /// lists, and from no mechanism.
    pub fn is_from_listed_stalls(&self, figure: &Figure) -> bool {
        let from = |measured| {
            is_from_listed_stalls(&figure.metric, measured, self.target.host_stall_ms_max)
        };
        figure.measured.is_some_and(from)
    }

    /// True if `step` measured a drive in steady state: the preconditioning of its suite, or its
    /// rounds, reached it. Absent if that was not judged.
    pub fn is_settled(&self, step: &Step) -> Option<bool> {
        let suite = || self.steps.iter().filter(|other| other.suite == step.suite);
        let preconditioned = suite().find_map(|other| other.steady.as_ref());
        let steady = preconditioned.map(|steady| steady.achieved);
        steady.or_else(|| {
            let rounds = suite().filter(|it| it.round.is_some());
            Some(Steady::of_rounds(rounds, &self.target)?.achieved)
        })
    }

    /// Precision to which loads of the run were sampled, those of `suite` alone where it is named:
    /// of several the coarsest. Absent where all of them were simulated in detail.
    pub fn precision(&self, suite: Option<&str>) -> Option<f64> {
        let steps = self.steps.iter().filter(|step| suite.is_none_or(|it| it == step.suite));
        let sampled = steps.filter_map(|step| step.sampling.as_ref()).filter(|it| it.is_sampled());
        sampled.map(|it| it.precision).reduce(f64::max)
    }

    /// Program whose report the figures come from; absent where the run carried its loads out
    /// itself.
    pub fn imported_from(&self) -> Option<&str> {
        self.environment.imported_from.as_deref()
    }

    /// NAND writes of the whole run, by cause; zero for real drives.
    pub fn nand_writes(&self) -> NandWrites {
        self.steps
            .iter()
            .filter_map(|step| step.summary.as_ref()?.nand)
            .fold(NandWrites::default(), |sum, nand| sum + nand)
    }
}

impl Step {
    /// The number that decides whether the rounds hold still; absent where none does, or nothing
    /// was measured.
    pub fn tracked_value(&self) -> Option<f64> {
        let summary = self.summary.as_ref()?;
        Some(match self.tracked? {
            TrackedMetric::Iops => summary.iops,
            TrackedMetric::LatencyNsAvg => summary.latency.latency_ns_avg,
        })
    }
}
