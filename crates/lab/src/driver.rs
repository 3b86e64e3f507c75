//! Drivers that carry out a load: a modelled drive, fio on a real one, or a mock.

pub mod contract;
pub mod mock;
pub mod model;

use results::{
    ApplicationInterval, DieFailures, Environment, Interval, Latencies, Lateness, Sampling, Spread,
    Target, Warning,
};
use workload::Workload;
use workload::recording::Recording;

use crate::application::{ReplayHost, ReplayResult};
use crate::progress::Glimpse;
use crate::replay::Replay;
use crate::{Error, Kind, Rate};

/// Constant load for a while.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Name of the step, unique in the run: `4k/precondition`.
    pub step: &'a str,
    /// Sizes, directions and addresses of the requests.
    pub workload: &'a Workload,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job keeps outstanding.
    pub queue_per_thread: u16,
    /// Load before the measurement that is not counted, in protocol seconds.
    pub ramp_s: f64,
    /// Length of the measurement, in protocol seconds.
    pub duration_s: f64,
    /// Length of one interval, in protocol seconds.
    pub interval_s: f64,
    /// Rate at which requests come, at most threads times queue of them at a time; absent where
    /// each completion is answered by the next request.
    pub rate: Option<Rate>,
    /// The trace that is replayed; absent where requests are generated independently.
    pub replay: Option<Replay<'a>>,
    /// Seed of the addresses.
    pub seed: u64,
}

/// Fill of the target: everything written in order, or as much written at random over it.
#[derive(Clone, Copy, Debug)]
pub struct Fill<'a> {
    /// Name of the step, unique in the run: `4k-read/fill`.
    pub step: &'a str,
    /// Sizes and addresses of the requests: sequential writes, or random ones after them.
    pub workload: &'a Workload,
    /// Times that everything is written, or as much as everything, at least 1.
    pub passes: u32,
}

impl Fill<'_> {
    /// Returns true if everything is written in order.
    pub fn is_in_order(&self) -> bool {
        self.workload.access == workload::Access::Sequential
    }
}

/// Result of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadResult {
    /// The whole intervals in order: what is judged and drawn over time.
    pub intervals: Vec<Interval>,
    /// Spans that the totals add up, all that was counted; empty: the intervals.
    pub counted: Vec<Interval>,
    /// Counts of each device by itself, where several real devices are one target.
    pub devices: Vec<DeviceIntervals>,
    /// The two parts of the latency; absent where the driver does not tell them apart.
    pub parts: Option<LatencyParts>,
    /// Description of the work for the report: a sentence or a command line.
    pub how: String,
    /// Latencies of all intervals from the time at which each request was due; absent where there
    /// was no rate.
    pub responses: Option<Latencies>,
    /// True if the load generator, not the target, kept requests from coming at the rate asked for.
    pub generator_limited: bool,
    /// Requests on average that were asked for and that no interval counts, since the load
    /// generator was at work on them, before it sent them or after they were answered.
    pub uncounted: f64,
    /// Requests on average that no interval counts, since they had not completed when the last one
    /// ended.
    pub unfinished: f64,
    /// Lateness of the server of a modelled drive, from before the load, its ramp included, until
    /// its end; absent of other targets, and where the server does not tell it.
    pub lateness: Option<LatenessCounts>,
    /// Dies of a model that failed under the load.
    pub die_failures: Option<DieFailures>,
    /// Sampling of the load, where it was asked for.
    pub sampling: Option<Sampling>,
    /// Intervals of the figures from the windows that were sampled; absent where all was simulated
    /// in detail.
    pub spread: Option<Spread>,
    /// Warnings that the driver raises itself.
    pub warnings: Vec<Warning>,
}

/// Replies of a server at the pace of a model over a span, and those of them that were late: by
/// more than a twentieth of the latency in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatenessCounts {
    /// Replies that were sent.
    pub replies: u64,
    /// Replies that were late.
    pub late: u64,
    /// Sum of the latencies in the model, of all of them.
    pub modelled_ns: u64,
    /// Sum of the times by which the late ones were late.
    pub late_by_ns: u64,
    /// The largest of those.
    pub late_by_ns_max: u64,
}

impl LatenessCounts {
    /// Counts of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        let larger = if self.late_by_ns_max > other.late_by_ns_max { self } else { other };
        Self {
            replies: self.replies + other.replies,
            late: self.late + other.late,
            modelled_ns: self.modelled_ns + other.modelled_ns,
            late_by_ns: self.late_by_ns + other.late_by_ns,
            late_by_ns_max: larger.late_by_ns_max,
        }
    }

    /// The counts as a result has them.
    pub fn figures(&self) -> Lateness {
        Lateness {
            replies: self.replies,
            late: self.late,
            latency_ns_avg: self.modelled_ns as f64 / (self.replies as f64).max(1.0),
            late_by_ns_mean: self.late_by_ns.checked_div(self.late).unwrap_or(0),
            late_by_ns_max: self.late_by_ns_max,
            slowdown: self.late_by_ns as f64 / (self.modelled_ns as f64).max(1.0),
        }
    }
}

/// Recording of an application that is to be replayed.
#[derive(Clone, Copy, Debug)]
pub struct RecordedLoad<'a> {
    /// Name of the step.
    pub step: &'a str,
    /// The recording.
    pub recording: &'a Recording,
    /// Host of the replay.
    pub host: &'a ReplayHost,
    /// Intervals over which the recording is replayed repeatedly; absent: it is replayed once.
    pub looped: Option<LoopedLoad>,
}

/// Intervals of a load on one of several drives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopedLoad {
    /// Number of intervals.
    pub intervals: u32,
    /// Length of an interval, in seconds of the drive's own time.
    pub interval_s: f64,
    /// Share of the recording, from 0 to 1, at which its first replay begins, so that the drives
    /// are not in step.
    pub begins_at: f64,
}

/// Result of a recorded application.
#[derive(Clone, Debug)]
pub struct ReplayedApplication {
    /// Prediction of the replay.
    pub replayed: ReplayResult,
    /// Requests of the replay, in intervals: what its totals add up.
    pub intervals: Vec<Interval>,
    /// Transactions of each interval; empty if the load has no intervals, or no rate is predicted.
    pub transactions: Vec<ApplicationInterval>,
}

/// Intervals of one device of several that are one target.
#[derive(Clone, Debug, Default)]
pub struct DeviceIntervals {
    /// Name of the device.
    pub name: String,
    /// Spans that its totals add up.
    pub counted: Vec<Interval>,
}

/// Latency in two parts, over reads and writes together.
#[derive(Clone, Debug, Default)]
pub struct LatencyParts {
    /// Latency of the submission: fio's `slat`.
    pub submission: Latencies,
    /// Latency from there to the completion: fio's `clat`.
    pub completion: Latencies,
}

/// Observer of a load, which takes its progress and may stop it.
pub trait Watch {
    /// `done` of the load is over, 0 to 1; `text` says what was seen last, such as `42.6k IOPS`.
    fn progress(&mut self, done: f64, text: &str);
    /// Takes the latest figures of the load; called before `progress`.
    fn saw(&mut self, glimpse: Glimpse);
    /// True if the load is to end now, keeping what was measured.
    fn stop(&self) -> bool;
}

/// Observer that shows nothing and never stops a load.
#[derive(Debug)]
pub struct SilentWatch;

impl Watch for SilentWatch {
    fn progress(&mut self, _: f64, _: &str) {}

    fn saw(&mut self, _: Glimpse) {}

    fn stop(&self) -> bool {
        false
    }
}

/// Carries out purges and loads on one target.
pub trait Driver: Send {
    /// Returns the target under measurement, for the report.
    fn target(&self) -> Target;
    /// Returns the platform of the measurement, for the report.
    fn environment(&self) -> Environment;
    /// Checks that `load`, which replays no trace, can be carried out, before anything is purged:
    /// what the target or the load generator cannot do is then told at once.
    ///
    /// # Errors
    /// Fails if it cannot.
    fn check(&self, _load: &Load<'_>) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the target to its state before the first write; says how.
    ///
    /// # Errors
    /// Fails if the target cannot be purged.
    fn purge(&mut self) -> Result<String, Error>;
    /// Purges as [`Driver::purge`] does, but waits for the target no longer than `watch` lets it.
    ///
    /// # Errors
    /// Fails if the target cannot be purged. Being stopped is no error.
    fn purge_watched(&mut self, _watch: &mut dyn Watch) -> Result<String, Error> {
        self.purge()
    }
    /// Writes everything in order, or as much as everything at random; says how. After the former
    /// no read meets space that was never written.
    ///
    /// # Errors
    /// Fails if a write failed. Being stopped is no error.
    fn fill(&mut self, fill: &Fill<'_>, watch: &mut dyn Watch) -> Result<String, Error>;
    /// Loads the target.
    ///
    /// # Errors
    /// Fails if the load could not be carried out. Being stopped is no error.
    fn load(&mut self, load: &Load<'_>, watch: &mut dyn Watch) -> Result<LoadResult, Error>;
    /// Replays the recording of an application, each request once its parent has completed.
    ///
    /// # Errors
    /// Fails if the recording does not fit the target, or the target is real: no driver of real
    /// drives keeps to the order of what waits for what.
    fn replay(
        &mut self,
        load: &RecordedLoad<'_>,
        _watch: &mut dyn Watch,
    ) -> Result<ReplayedApplication, Error> {
        Err(only_models(load.step))
    }
}

/// Refusal of a recorded application on a real target.
pub fn only_models(step: &str) -> Error {
    let text = format!("{step} replays the recording of an application, which only models do");
    let hint = "run the application itself on a file system of the drive: \
                `floatgate app NAME FOLDER`";
    Error::new(Kind::Input, text).hint(hint)
}

/// Makes a driver for one suite, at its state before the first write or not: the suite purges it.
pub type Drivers<'a> = dyn Fn() -> Result<Box<dyn Driver>, Error> + Sync + 'a;
