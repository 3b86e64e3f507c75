//! One protocol: which workloads run in which order, how loaded and for how long.

mod inline;
mod nodes;
mod rounds;

use blockio::nearest;
use serde::{Deserialize, Serialize};

use crate::error::{Fault, parse};
use crate::prose::prose;
use crate::trace::Addresses;
use crate::{SpecError, Workload, percent};

pub use self::nodes::Nodes;
pub use self::rounds::{Matrix, Rounds, TrackedMetric, TrackedNumber};

/// A protocol, as in `protocols/enterprise.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Version of this format, 1.
    pub schema: u32,
    /// Name, such as `enterprise`.
    pub name: String,
    /// Heading on a report.
    pub title: String,
    /// Question that the protocol answers, and what it cannot tell.
    #[serde(deserialize_with = "prose")]
    pub description: String,
    /// Source of the procedure, such as a standard or a review.
    #[serde(deserialize_with = "prose")]
    pub source: String,
    /// Published figures that the protocol reproduces; absent where there are none.
    #[serde(default)]
    pub published: Option<PublishedMapping>,
    /// Largest time lapse, from 1, at which a model carries it out when the caller does not say
    /// otherwise; absent: the drive's own.
    #[serde(default)]
    pub time_lapse_max: Option<u32>,
    /// True if a model is measured as the purge left it: nothing is written before the first load,
    /// though it reads. Absent: what reads anything is filled first.
    #[serde(default)]
    pub start_purged: bool,
    /// Workloads of its own, beside those that are found by name.
    #[serde(
        default,
        deserialize_with = "inline::workloads",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub workloads: Vec<Workload>,
    /// Suites, in order; each begins with a purge.
    pub suites: Vec<Suite>,
}

/// Mapping of a protocol's measurements to published figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedMapping {
    /// Documents whose figures were measured so; none: any document.
    #[serde(default)]
    pub documents: Vec<String>,
    /// Phase of the figures that its measurements are compared with.
    #[serde(default)]
    pub phase: PublishedPhase,
    /// Bytes of the `MB` of their `mb_s`: 1 000 000, or 1 048 576 where a tool divides by 2^20.
    #[serde(default = "decimal_mb")]
    pub mb_bytes: u32,
    /// True if preconditioning lasts the hours that a drive's file gives, where it gives them.
    #[serde(default)]
    pub precondition_by_drive: bool,
    /// Host of figures that state none, where the drive's file has it; empty: the drive's first.
    #[serde(default)]
    pub host: String,
}

/// Phase of a test that published figures belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedPhase {
    /// Measured on a settled drive.
    #[default]
    Primary,
    /// Measured on a drive that was purged just before.
    Burst,
    /// Stated by a data sheet: the best of several loads.
    Datasheet,
    /// Stated by a data sheet as sustained: the best of several loads on a settled drive.
    DatasheetSustained,
}

const fn decimal_mb() -> u32 {
    1_000_000
}

/// One workload family: purge, fill or precondition where it says so, then measure without erasing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Name, such as `4k`.
    pub name: String,
    /// Heading on a report.
    pub title: String,
    /// Compressibility of all data of this suite in percent, instead of the workloads' own: 50 is
    /// 2:1.
    #[serde(default)]
    pub compressible_percent: Option<f64>,
    /// Share of the drive that this suite's loads address in percent, instead of the workloads'
    /// own; a fill writes everything all the same.
    #[serde(default)]
    pub footprint_percent: Option<f64>,
    /// Name of the sequential workload with which everything is written once after the purge;
    /// absent: with 128 KiB in order where the suite reads and the protocol does not start purged.
    #[serde(default)]
    pub fill: Option<String>,
    /// Passes of the fill over the whole drive, from 1 to 4.
    #[serde(default = "once")]
    pub fill_passes: u32,
    /// Passes of 4 KiB random writes over the whole drive after the fill, from 0 (the default) to
    /// 4: they leave invalid pages in every superblock, as on a drive that has been in use.
    #[serde(default)]
    pub fill_random_passes: u32,
    /// Rounds that are repeated until steady state, before anything else is measured; absent: none.
    #[serde(default)]
    pub rounds: Option<Rounds>,
    /// Preconditioning at constant load, which runs first; absent: measured at once.
    #[serde(default)]
    pub precondition: Option<Precondition>,
    /// Application whose built-in recordings are replayed, one for each number of clients, instead
    /// of loads: a name such as `sysbench-oltp`. For models only.
    #[serde(default)]
    pub application: Option<String>,
    /// Several drives with that application as the load of each, measured in intervals, instead of
    /// one replay for each number of clients; absent: none.
    #[serde(default)]
    pub nodes: Option<Nodes>,
    /// Rates at which every load of `measure` is measured after it ran free; absent: only free. A
    /// replay then sends the requests of its trace, in their order, at these rates.
    #[serde(default)]
    pub curve: Option<Curve>,
    /// Measurements that follow, in order; may be left out after rounds.
    #[serde(default)]
    pub measure: Vec<Measure>,
}

const fn once() -> u32 {
    1
}

/// Latency against load: shares of the rate that a load reaches when each completion is answered by
/// the next request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Shares of that rate in percent, ascending, each above 0; beyond 100 requests queue up.
    pub percents: Vec<f64>,
    /// Spans between requests.
    #[serde(default)]
    pub gaps: Gaps,
    /// Duration of each measurement, in seconds.
    pub duration_s: u64,
    /// Load before each measurement that is not counted, in seconds.
    pub ramp_s: u64,
    /// Length of one sample, in seconds.
    pub interval_s: u64,
}

/// Spans between requests that come at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Independent of each other: a Poisson process.
    #[default]
    Exponential,
    /// Equal.
    Constant,
}

/// Constant load until the drive has settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// Name of the workload.
    pub workload: String,
    /// Jobs.
    pub threads: u16,
    /// Requests that each job keeps outstanding.
    pub queue_per_thread: u16,
    /// Duration, in seconds.
    pub duration_s: u64,
    /// Length of one sample, in seconds.
    pub interval_s: u64,
    /// Length of one round of the steady-state rule, in seconds: five rounds make the window.
    pub round_s: u64,
    /// Length on a real drive, which goes on until steady state; absent: as long as `duration_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealLength>,
}

/// Length of a preconditioning on a real drive: it ends with the first judgement that finds it
/// steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RealLength {
    /// Shortest, in seconds, whole rounds: six hours by default.
    #[serde(default = "six_hours_s")]
    pub duration_s_min: u64,
    /// Longest, in seconds, whole rounds: twelve hours by default.
    #[serde(default = "twelve_hours_s")]
    pub duration_s_max: u64,
}

const fn six_hours_s() -> u64 {
    6 * 3600
}

const fn twelve_hours_s() -> u64 {
    12 * 3600
}

/// One workload at each combination of threads and queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Name of the workload.
    pub workload: String,
    /// Names by which published figures know it here; none: its own name.
    #[serde(default)]
    pub published_as: Vec<String>,
    /// Jobs, each value in turn (outer loop).
    pub threads: Vec<u16>,
    /// Requests that each job keeps outstanding, each value in turn (inner loop).
    pub queue_per_thread: Vec<u16>,
    /// Duration of each measurement, in seconds.
    pub duration_s: u64,
    /// Load before each measurement that is not counted, in seconds.
    pub ramp_s: u64,
    /// Length of one sample, in seconds.
    pub interval_s: u64,
    /// Requests that come in each second of all jobs together, above 0; absent: each completion is
    /// answered by the next request.
    #[serde(default)]
    pub rate_iops: Option<f64>,
    /// Spans between requests that come at that rate.
    #[serde(default)]
    pub gaps: Gaps,
    /// Mixes and sizes in which the workload is measured, instead of its own; absent: as it is.
    #[serde(default)]
    pub matrix: Option<Matrix>,
    /// Replay of the workload as a trace; absent: requests are independent.
    #[serde(default)]
    pub replay: Option<ReplayedTrace>,
}

/// Replay of a trace: one synthesised from the workload, or one that a user gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayedTrace {
    /// Placement of its requests on a drive of another size.
    #[serde(default)]
    pub addresses: Addresses,
    /// Times as fast as the trace's own times, above 0; absent: each completion is answered by the
    /// next request.
    #[serde(default)]
    pub speed: Option<f64>,
}

/// Rounds in the window of the steady-state rule.
const WINDOW_ROUNDS: u64 = 5;

impl Protocol {
    /// Version of this format.
    pub const SCHEMA: u32 = 1;

    /// Reads a protocol from the text of a TOML file; `file` names it in errors.
    ///
    /// # Errors
    /// Says file, line, what is wrong and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        parse(text, file, Self::check_values)
    }

    /// Checks that every workload it names is among `known`.
    ///
    /// # Errors
    /// Names the protocol, the suite and the nearest known workload.
    pub fn check(&self, known: &[Workload]) -> Result<(), SpecError> {
        let known = known.iter().chain(&self.workloads).map(|workload| workload.name.as_str());
        for suite in &self.suites {
            for name in suite.workloads() {
                if known.clone().any(|known| known == name) {
                    continue;
                }
                let hint = nearest(name, known.clone())
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                return Err(SpecError {
                    file: format!("protocol `{}`", self.name),
                    line: 0,
                    column: 0,
                    text: format!("suite `{}`: there is no workload `{name}`{hint}", suite.name),
                });
            }
        }
        Ok(())
    }

    /// Length of all loads with their ramps, in seconds; purges and fills are not counted.
    pub fn duration_s(&self) -> u64 {
        self.suites.iter().map(Suite::duration_s).sum()
    }

    pub(crate) fn check_values(&self) -> Result<(), Fault> {
        Fault::unless(
            self.schema == Self::SCHEMA,
            "schema",
            format!("schema is {}, this program reads {}", self.schema, Self::SCHEMA),
        )?;
        Fault::unless(!self.name.is_empty(), "name", "name is empty")?;
        Fault::unless(
            self.time_lapse_max != Some(0),
            "time_lapse_max",
            "time_lapse_max is 0, not at least 1, which is full scale",
        )?;
        Fault::unless(!self.suites.is_empty(), "suites", "suites are empty: nothing to do")?;
        if let Some(published) = &self.published {
            published.check().map_err(|fault| fault.within("published"))?;
        }
        for (index, workload) in self.workloads.iter().enumerate() {
            let place = format!("workloads.{index}");
            workload.check().map_err(|fault| fault.within(&place))?;
            Fault::unless(
                self.workloads[..index].iter().all(|earlier| earlier.name != workload.name),
                format!("{place}.name"),
                format!("two workloads are named `{}`", workload.name),
            )?;
        }
        for (index, suite) in self.suites.iter().enumerate() {
            let place = format!("suites.{index}");
            suite.check().map_err(|fault| fault.within(&place))?;
            Fault::unless(
                self.suites[..index].iter().all(|earlier| earlier.name != suite.name),
                format!("{place}.name"),
                format!("two suites are named `{}`", suite.name),
            )?;
        }
        Ok(())
    }
}

impl PublishedMapping {
    fn check(&self) -> Result<(), Fault> {
        let known = [decimal_mb(), 1 << 20];
        Fault::unless(
            known.contains(&self.mb_bytes),
            "mb_bytes",
            format!("mb_bytes is {}, neither 1000000 nor 1048576", self.mb_bytes),
        )
    }
}

impl Suite {
    /// Length of its loads with their ramps, in seconds; purge and fill are not counted.
    pub fn duration_s(&self) -> u64 {
        let precondition_s = self.precondition.as_ref().map_or(0, |it| it.duration_s);
        let curve_s = self.curve.as_ref().map_or(0, Curve::duration_all_s);
        let of = |measure: &Measure| measure.duration_all_s() + measure.point_count() * curve_s;
        let rounds_s = self.rounds.as_ref().map_or(0, Rounds::duration_all_s);
        precondition_s + rounds_s + self.measure.iter().map(of).sum::<u64>()
    }

    /// Names of its workloads, in the order in which they are needed.
    fn workloads(&self) -> impl Iterator<Item = &str> {
        let precondition = self.precondition.as_ref().map(|it| it.workload.as_str());
        let rounds = self.rounds.iter().flat_map(|rounds| &rounds.measure);
        let measured = rounds.chain(&self.measure).map(|measure| measure.workload.as_str());
        self.fill.as_deref().into_iter().chain(precondition).chain(measured)
    }

    /// `workload` as this suite runs it.
    pub fn adapted(&self, workload: &Workload) -> Workload {
        let is_own = self.footprint_percent.is_none();
        Workload {
            compressible_percent: self
                .compressible_percent
                .unwrap_or(workload.compressible_percent),
            footprint_percent: self.footprint_percent.unwrap_or(workload.footprint_percent),
            offset_percent: if is_own { workload.offset_percent } else { 0.0 },
            range: workload.range.filter(|_| is_own),
            ..workload.clone()
        }
    }

    /// Checks the fill passes and the rounds; without rounds, that there is something to measure.
    fn check_rounds(&self) -> Result<(), Fault> {
        Fault::unless(
            (1..=4).contains(&self.fill_passes),
            "fill_passes",
            format!("fill_passes is {}, not from 1 to 4", self.fill_passes),
        )?;
        Fault::unless(
            self.fill_passes == 1 || self.fill.is_some(),
            "fill_passes",
            "fill_passes without fill: say what fills the drive",
        )?;
        Fault::unless(
            self.fill_random_passes <= 4,
            "fill_random_passes",
            format!("fill_random_passes is {}, not from 0 to 4", self.fill_random_passes),
        )?;
        Fault::unless(
            self.fill_random_passes == 0 || self.fill.is_some(),
            "fill_random_passes",
            "fill_random_passes without fill: random writes leave space unwritten, so say what \
             fills the drive before them",
        )?;
        let is_application = self.application.is_some();
        Fault::unless(
            !is_application || (self.rounds.is_none() && self.measure.is_empty()),
            "application",
            "an application beside measure or rounds: give it a suite of its own",
        )?;
        if let Some(nodes) = &self.nodes {
            let text = "nodes without an application: name the application that they run";
            Fault::unless(is_application, "nodes", text)?;
            nodes.check().map_err(|fault| fault.within("nodes"))?;
        }
        let Some(rounds) = &self.rounds else {
            let text = "measure is empty, and there are no rounds: nothing is measured";
            return Fault::unless(is_application || !self.measure.is_empty(), "measure", text);
        };
        Fault::unless(
            self.precondition.is_none(),
            "precondition",
            "a precondition beside rounds: the rounds are the preconditioning",
        )?;
        rounds.check().map_err(|fault| fault.within("rounds"))
    }

    fn check(&self) -> Result<(), Fault> {
        Fault::unless(!self.name.is_empty(), "name", "name is empty")?;
        if let Some(value) = self.compressible_percent {
            percent::up_to_whole("compressible_percent", value)?;
        }
        if let Some(value) = self.footprint_percent {
            percent::some("footprint_percent", value)?;
        }
        if let Some(precondition) = &self.precondition {
            precondition.check().map_err(|fault| fault.within("precondition"))?;
        }
        if let Some(curve) = &self.curve {
            curve.check().map_err(|fault| fault.within("curve"))?;
            Fault::unless(
                !self.measure.is_empty(),
                "curve",
                "a curve without anything in measure: there is no rate to take shares of",
            )?;
        }
        self.check_rounds()?;
        let mut seen = Vec::new();
        for (index, measure) in self.measure.iter().enumerate() {
            let place = format!("measure.{index}");
            measure.check().map_err(|fault| fault.within(&place))?;
            Fault::unless(
                self.curve.is_none() || measure.rate_iops.is_none(),
                format!("{place}.rate_iops"),
                "a rate in a suite with a curve: the curve has rates of its own, leave one out",
            )?;
            let has_times = measure.replay.is_some_and(|replay| replay.speed.is_some());
            Fault::unless(
                self.curve.is_none() || !has_times,
                format!("{place}.replay.speed"),
                "a speed in a suite with a curve: the curve has rates of its own, leave one out",
            )?;
            for (threads, queue) in measure.points() {
                let point = (measure.workload.as_str(), threads, queue);
                Fault::unless(
                    !seen.contains(&point),
                    &place,
                    format!("`{}` is measured twice at T{threads}Q{queue}", measure.workload),
                )?;
                seen.push(point);
            }
        }
        Ok(())
    }
}

impl Precondition {
    fn check(&self) -> Result<(), Fault> {
        check_load("threads", self.threads, THREADS_MAX)?;
        check_load("queue_per_thread", self.queue_per_thread, QUEUE_MAX)?;
        check_span("interval_s", self.interval_s)?;
        check_span("round_s", self.round_s)?;
        Fault::unless(
            self.round_s.is_multiple_of(self.interval_s),
            "round_s",
            format!(
                "round_s is {}, not a multiple of interval_s, {}",
                self.round_s, self.interval_s
            ),
        )?;
        let window_s = self.round_s.saturating_mul(WINDOW_ROUNDS);
        Fault::unless(
            (window_s..=SPAN_MAX_S).contains(&self.duration_s),
            "duration_s",
            format!(
                "duration_s is {}, not from {window_s} ({WINDOW_ROUNDS} rounds, the window of the \
                 steady-state rule) to {SPAN_MAX_S}",
                self.duration_s
            ),
        )?;
        let real = self.real.map_or(Ok(()), |real| real.check(self.round_s));
        real.map_err(|fault| fault.within("real"))
    }
}

impl RealLength {
    fn check(self, round_s: u64) -> Result<(), Fault> {
        let Self { duration_s_min: min, duration_s_max: max } = self;
        let window_s = round_s.saturating_mul(WINDOW_ROUNDS);
        for (key, value) in [("duration_s_min", min), ("duration_s_max", max)] {
            Fault::unless(
                (window_s..=SPAN_MAX_S).contains(&value) && value.is_multiple_of(round_s),
                key,
                format!(
                    "{key} is {value}, not whole rounds of {round_s} from {window_s} to \
                     {SPAN_MAX_S}"
                ),
            )?;
        }
        Fault::unless(
            min <= max,
            "duration_s_max",
            format!("duration_s_max is {max}, below duration_s_min, {min}"),
        )
    }
}

impl Measure {
    /// Threads and queue of each combination, in order.
    pub fn points(&self) -> impl Iterator<Item = (u16, u16)> {
        self.threads
            .iter()
            .flat_map(|threads| self.queue_per_thread.iter().map(|queue| (*threads, *queue)))
    }

    /// Length of all combinations with their ramps, in seconds.
    pub fn duration_all_s(&self) -> u64 {
        let cells = self.matrix.as_ref().map_or(1, Matrix::cell_count);
        cells * self.point_count() * (self.duration_s + self.ramp_s)
    }

    fn point_count(&self) -> u64 {
        self.threads.len() as u64 * self.queue_per_thread.len() as u64
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        if let Some(matrix) = &self.matrix {
            matrix.check().map_err(|fault| fault.within("matrix"))?;
            Fault::unless(
                self.replay.is_none(),
                "replay",
                "a replay beside a matrix: a trace has its own mix and sizes, leave one out",
            )?;
        }
        check_loads("threads", &self.threads, THREADS_MAX)?;
        check_loads("queue_per_thread", &self.queue_per_thread, QUEUE_MAX)?;
        if let Some(iops) = self.rate_iops {
            Fault::unless(
                iops > 0.0 && iops.is_finite(),
                "rate_iops",
                format!("rate_iops is {iops}, not above 0"),
            )?;
            Fault::unless(
                self.replay.is_none(),
                "rate_iops",
                "a rate beside a replay: a trace has its own times, leave one out",
            )?;
        }
        if let Some(speed) = self.replay.and_then(|replay| replay.speed) {
            Fault::unless(
                speed > 0.0 && speed <= SPEED_MAX,
                "replay.speed",
                format!("speed is {speed}, not above 0 and up to {SPEED_MAX}"),
            )?;
        }
        check_spans(self.ramp_s, self.duration_s, self.interval_s)
    }
}

/// Largest speed of a replay.
const SPEED_MAX: f64 = 1e6;

impl Curve {
    /// Length of all shares with their ramps, in seconds.
    pub fn duration_all_s(&self) -> u64 {
        self.percents.len() as u64 * (self.duration_s + self.ramp_s)
    }

    fn check(&self) -> Result<(), Fault> {
        Fault::unless(!self.percents.is_empty(), "percents", "percents are empty: nothing to do")?;
        for (index, percent) in self.percents.iter().enumerate() {
            Fault::unless(
                *percent > 0.0 && *percent <= PERCENT_MAX,
                format!("percents.{index}"),
                format!("percents.{index} is {percent}, not above 0 and up to {PERCENT_MAX}"),
            )?;
            let before = index.checked_sub(1).map_or(0.0, |before| self.percents[before]);
            Fault::unless(
                *percent > before,
                format!("percents.{index}"),
                format!("percents.{index} is {percent}, not above the {before} before it"),
            )?;
        }
        check_spans(self.ramp_s, self.duration_s, self.interval_s)
    }
}

/// Largest share of a curve, in percent: ten times what a drive does is no question of latency.
const PERCENT_MAX: f64 = 1000.0;
/// Most jobs of a load.
const THREADS_MAX: u16 = 256;
/// Most requests that a job keeps outstanding.
const QUEUE_MAX: u16 = 1024;
/// Longest span, in seconds: a year.
const SPAN_MAX_S: u64 = 365 * 24 * 3600;

fn check_load(place: &str, value: u16, limit: u16) -> Result<(), Fault> {
    Fault::unless(
        (1..=limit).contains(&value),
        place,
        format!("{place} is {value}, not from 1 to {limit}"),
    )
}

fn check_loads(place: &str, values: &[u16], limit: u16) -> Result<(), Fault> {
    Fault::unless(
        !values.is_empty(),
        place,
        format!("{place} is empty: give at least one number from 1 to {limit}"),
    )?;
    for (index, value) in values.iter().enumerate() {
        check_load(&format!("{place}.{index}"), *value, limit)?;
    }
    Ok(())
}

fn check_span(place: &str, value: u64) -> Result<(), Fault> {
    Fault::unless(
        (1..=SPAN_MAX_S).contains(&value),
        place,
        format!("{place} is {value}, not from 1 to {SPAN_MAX_S}"),
    )
}

fn check_spans(ramp_s: u64, duration_s: u64, interval_s: u64) -> Result<(), Fault> {
    check_span("interval_s", interval_s)?;
    Fault::unless(
        ramp_s <= SPAN_MAX_S,
        "ramp_s",
        format!("ramp_s is {ramp_s}, not from 0 to {SPAN_MAX_S}"),
    )?;
    Fault::unless(
        (interval_s..=SPAN_MAX_S).contains(&duration_s),
        "duration_s",
        format!("duration_s is {duration_s}, not from {interval_s} (one interval) to {SPAN_MAX_S}"),
    )
}

#[cfg(test)]
mod tests;
