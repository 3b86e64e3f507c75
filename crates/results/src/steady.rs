//! Steady-state rule of the SNIA SSS PTS (2.0.2, 2.1.24), by which a drive is judged settled.
//!
//! A tracking variable is one number a round; the window is the last five rounds. It is steady when
//! both hold:
//!
//! - range: `max - min <= 0.20 * average` (the full width, not an excursion to either side);
//! - slope: the least-squares line over the five points rises or falls by at most 10 % of the
//!   average from the first round to the last, that is `|slope| * 4 <= 0.10 * average`.
//!
//! Tracked are IOPS and average latency; both must be steady in the same window. A round is a slice
//! of time (`round_s`), rounds follow each other from the start of the step, and a last round that
//! is not whole is not judged.
//!
//! Rounds of a purged drive hold still too, until the cliff. So a window counts only where one of
//! these is true of its end (the specification has drives written twice over before rounds are
//! judged, and its write saturation test runs on until four times the user capacity is written):
//!
//! - the load itself has written at least the space that it addresses, and the drive has been
//!   written at least its raw capacity since the purge: nothing that was never used is left. Where
//!   the raw capacity is unknown, as of real drives, twice the user capacity stands for it, which
//!   the specification writes before it judges rounds;
//! - the drive relocated in each round of the window, its write amplification meets the same range
//!   and slope, and NAND writes since the load began, relocation included, amount to at least the
//!   space that the load addresses: known of models;
//! - the media are written in place, or the load only reads: there is nothing to settle.

pub mod rounds;

use serde::{Deserialize, Serialize};

use crate::{Interval, NandWrites, Sample, Summary};

/// Rounds in a window.
pub const WINDOW_ROUNDS: usize = 5;
/// Largest range that passes, as a share of the average.
pub const RANGE_MAX: f64 = 0.20;
/// Largest rise or fall of the fitted line across the window that passes, as a share of the
/// average.
pub const SLOPE_MAX: f64 = 0.10;

/// User capacities to be written since the purge where the raw capacity is unknown: those of the
/// specification's workload-independent preconditioning.
pub const USER_CAPACITIES_MIN: f64 = 2.0;

/// Verdict of the steady-state rule of the SNIA SSS PTS (2.0.2, 2.1.24) over the last five rounds,
/// and of whether enough had been written for a steady state to exist: see the head of this module.
///
/// Range: `max - min <= 20 %` of the average. Slope: the least-squares line rises or falls by at
/// most 10 % of the average across the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// True if every variable met both conditions in some window by whose end enough was written,
    /// and meets them in the last window, which `settled` is of.
    pub achieved: bool,
    /// Evidence that enough was written, or that it was not though the rounds were steady; absent
    /// where they were not, and where the amount was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<SteadyEvidence>,
    /// Rounds until the end of the window in `variables`.
    pub rounds: u32,
    /// Protocol time at the end of that window, in seconds.
    pub at_s: f64,
    /// Length of one round in protocol time, in seconds.
    pub round_s: f64,
    /// The window judged: the first that met the rule; else the last that held still on too little
    /// written, else the last one.
    pub variables: Vec<SteadyVariable>,
}

/// Evidence that five steady rounds are those of a drive in steady state, or are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyEvidence {
    /// The load had written at least what it addresses, and the drive its raw capacity since the
    /// purge.
    Written,
    /// The drive relocated in every round of the window, and write amplification met the rule too.
    Relocation,
    /// The media are written in place: there is no transition to steady state.
    InPlace,
    /// The load writes nothing.
    OnlyReads,
    /// None of these: a burst at a constant rate.
    TooLittleWritten,
}

/// One tracking variable over one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyVariable {
    /// Tracking variable: `iops` or `latency_ns_avg`.
    pub name: String,
    /// Its value in each round of the window.
    pub rounds: Vec<f64>,
    /// Average of the rounds.
    pub average: f64,
    /// `(max - min) / average`, at most 0.20 to pass.
    pub range: f64,
    /// `|slope| * 4 / average`, at most 0.10 to pass.
    pub slope: f64,
}

/// Amount written to a drive by the end of a step. Bytes and capacities are those of the whole
/// drive, whatever the time lapse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WrittenAmount {
    /// Bytes that the host had written since the purge: fills, ramps and the step itself.
    pub since_purge_bytes: u64,
    /// Bytes since the purge ÷ the user capacity: 1 is one drive write.
    pub since_purge_share: f64,
    /// Bytes that the step itself wrote ÷ the space that it addresses.
    pub addressed_share: f64,
}

/// Amount that a step has to write before it can have settled its drive. Bytes are those of the
/// whole drive, whatever the time lapse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteRequirement {
    /// Written since the purge, before the first sample.
    pub before_bytes: f64,
    /// Space that the load addresses.
    pub addressed_bytes: f64,
    /// Capacity that the host sees.
    pub user_bytes: f64,
    /// Media of the drive; absent where unknown.
    pub raw_bytes: Option<f64>,
    /// Factor by which bytes of samples are multiplied.
    pub time_lapse: f64,
}

impl WriteRequirement {
    /// Returns the amount written to the drive by a step whose samples wrote `bytes`, after
    /// `ramp_bytes` of its ramp.
    pub fn written(&self, bytes: f64, ramp_bytes: f64) -> WrittenAmount {
        let own = bytes + ramp_bytes;
        let share = |bytes: f64, of: f64| if of > 0.0 { bytes / of } else { 0.0 };
        WrittenAmount {
            since_purge_bytes: whole_bytes(self.before_bytes + own),
            since_purge_share: share(self.before_bytes + own, self.user_bytes),
            addressed_share: share(own, self.addressed_bytes),
        }
    }

    /// Returns the amount since the purge by which no space is left that was never used: the raw
    /// capacity, or, where it is unknown, twice the user capacity.
    pub fn used_up_bytes(&self) -> f64 {
        self.raw_bytes.unwrap_or(self.user_bytes * USER_CAPACITIES_MIN)
    }

    /// Judges whether `rounds`, whose last five are steady, are those of a settled drive.
    fn evidence(&self, rounds: &[Round]) -> SteadyEvidence {
        let own: f64 =
            rounds.iter().map(|round| round.written_bytes).sum::<f64>() * self.time_lapse;
        let nand = rounds.iter().filter_map(|round| round.nand);
        let nand_bytes = nand.map(|nand| nand.total_bytes() as f64).sum::<f64>() * self.time_lapse;
        let window = &rounds[rounds.len().saturating_sub(WINDOW_ROUNDS)..];
        let since_purge = self.before_bytes + own;
        if own <= 0.0 {
            SteadyEvidence::OnlyReads
        } else if window.iter().all(|round| round.is_in_place) {
            SteadyEvidence::InPlace
        } else if own >= self.addressed_bytes && since_purge >= self.used_up_bytes() {
            SteadyEvidence::Written
        } else if relocates_steadily(window.iter().map(|round| round.nand))
            && nand_bytes >= self.addressed_bytes
        {
            SteadyEvidence::Relocation
        } else {
            SteadyEvidence::TooLittleWritten
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole_bytes(bytes: f64) -> u64 {
    bytes.round() as u64
}

/// True if the drive relocated in each round of a window, at a write amplification that is steady;
/// `window` has what each round wrote.
pub(crate) fn relocates_steadily(window: impl Iterator<Item = Option<NandWrites>>) -> bool {
    let amplifications: Option<Vec<f64>> = window
        .map(|nand| nand.filter(|nand| nand.relocation_bytes > 0)?.write_amplification())
        .collect();
    amplifications.is_some_and(|all| SteadyVariable::of("write_amplification", &all).is_steady())
}

impl Steady {
    /// Judges a step by its samples, however little it wrote: the first window that held still,
    /// else the last one.
    ///
    /// A step of fewer than five whole rounds has not settled; its window is what there is.
    pub fn judge(samples: &[Sample], round_s: f64) -> Self {
        let rounds = rounds(samples, round_s);
        let still = windows_that_hold(&rounds).next();
        Self::of_window(&rounds, still, round_s)
    }

    /// Judges a step by its samples and by what it wrote: the first window that held still and by
    /// whose end enough was written, if the last one holds still, too; else the last that held
    /// still before enough was written, else the last one.
    pub fn judge_written(samples: &[Sample], round_s: f64, required: &WriteRequirement) -> Self {
        let rounds = rounds(samples, round_s);
        let mut last = None;
        for end in windows_that_hold(&rounds) {
            let evidence = required.evidence(&rounds[..end]);
            if evidence != SteadyEvidence::TooLittleWritten {
                // The figures of the step are those of its last window, which is judged, too.
                let window = &rounds[rounds.len() - WINDOW_ROUNDS..];
                if !holds(&variables(window)) {
                    return Self::of_window(&rounds, None, round_s);
                }
                let evidence = Some(evidence);
                return Self { evidence, ..Self::of_window(&rounds, Some(end), round_s) };
            }
            last = Some(end);
        }
        let Some(end) = last else { return Self::of_window(&rounds, None, round_s) };
        Self {
            achieved: false,
            evidence: Some(SteadyEvidence::TooLittleWritten),
            ..Self::of_window(&rounds, Some(end), round_s)
        }
    }

    /// The window that ends `met` rounds in, which held still; the last one where none did.
    fn of_window(rounds: &[Round], met: Option<usize>, round_s: f64) -> Self {
        let end = met.unwrap_or(rounds.len());
        let window = &rounds[end.saturating_sub(WINDOW_ROUNDS)..end];
        Self {
            achieved: met.is_some(),
            evidence: None,
            rounds: u32::try_from(end).unwrap_or(u32::MAX),
            at_s: end as f64 * round_s,
            round_s,
            variables: variables(window),
        }
    }
}

impl SteadyVariable {
    /// Judges `rounds` of the variable called `name`.
    pub fn of(name: &str, rounds: &[f64]) -> Self {
        let count = rounds.len() as f64;
        let average = if rounds.is_empty() { 0.0 } else { rounds.iter().sum::<f64>() / count };
        let max = rounds.iter().copied().fold(f64::MIN, f64::max);
        let min = rounds.iter().copied().fold(f64::MAX, f64::min);
        let share = |amount: f64| if average > 0.0 { amount / average } else { 0.0 };
        Self {
            name: name.to_owned(),
            rounds: rounds.to_vec(),
            average,
            range: share(max - min),
            slope: share(slope(rounds).abs() * (count - 1.0)),
        }
    }

    /// True if it meets both conditions over a whole window.
    pub fn is_steady(&self) -> bool {
        self.rounds.len() == WINDOW_ROUNDS
            && self.average > 0.0
            && self.range <= RANGE_MAX + ROUNDING
            && self.slope <= SLOPE_MAX + ROUNDING
    }
}

/// Summarises the last window of a step: the settled figures, steady or not.
///
/// Absent where there is not one whole round. A step of fewer than five gives what there is.
pub fn last_window(intervals: &[Interval], round_s: f64) -> Option<Summary> {
    let rounds = whole_rounds(intervals.last()?.at_s, round_s);
    let first = rounds.saturating_sub(WINDOW_ROUNDS);
    let window: Vec<Interval> = intervals
        .iter()
        .filter(|interval| (first..rounds).contains(&round_of(interval.at_s, round_s)))
        .cloned()
        .collect();
    (!window.is_empty()).then(|| Summary::of(&window))
}

/// A value exactly at a limit passes, however its last bit was rounded.
const ROUNDING: f64 = 1e-12;

/// One round: requests each second, their average latency in nanoseconds, and what it wrote, on the
/// drive's own scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Round {
    iops: f64,
    latency_ns_avg: f64,
    written_bytes: f64,
    nand: Option<NandWrites>,
    /// The NAND is known, and there is none.
    is_in_place: bool,
}

/// Sums over the samples of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    span_s: f64,
    requests: f64,
    latency_ns: f64,
    written_bytes: f64,
    nand: Option<NandWrites>,
    has_superblocks: bool,
}

impl Sums {
    fn add(&mut self, sample: &Sample) {
        let Summary { latency, span_s, nand, .. } = &sample.summary;
        self.span_s += span_s;
        self.requests += latency.count as f64;
        self.latency_ns += latency.latency_ns_avg * latency.count as f64;
        self.written_bytes += sample.summary.written_bytes();
        self.nand = nand.map(|nand| self.nand.unwrap_or_default() + nand).or(self.nand);
        // What the classes of a tier hold is a state, too.
        self.has_superblocks |=
            sample.superblocks_free_share.is_some() || sample.summary.tier.is_some();
    }

    fn round(self) -> Round {
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        Round {
            iops: ratio(self.requests, self.span_s),
            latency_ns_avg: ratio(self.latency_ns, self.requests),
            written_bytes: self.written_bytes,
            nand: self.nand,
            is_in_place: self.nand.is_some() && !self.has_superblocks,
        }
    }
}

/// Ends of the windows that hold still, in rounds, ascending.
fn windows_that_hold(rounds: &[Round]) -> impl Iterator<Item = usize> {
    let ends = WINDOW_ROUNDS..=rounds.len();
    ends.filter(|end| holds(&variables(&rounds[end - WINDOW_ROUNDS..*end])))
}

fn rounds(samples: &[Sample], round_s: f64) -> Vec<Round> {
    let count = samples.last().map_or(0, |sample| whole_rounds(sample.at_s, round_s));
    let mut sums = vec![Sums::default(); count];
    for sample in samples {
        if let Some(sums) = sums.get_mut(round_of(sample.at_s, round_s)) {
            sums.add(sample);
        }
    }
    sums.into_iter().map(Sums::round).collect()
}

fn variables(window: &[Round]) -> Vec<SteadyVariable> {
    if window.is_empty() {
        return Vec::new();
    }
    let of = |value: fn(&Round) -> f64| window.iter().map(value).collect::<Vec<_>>();
    vec![
        SteadyVariable::of("iops", &of(|round| round.iops)),
        SteadyVariable::of("latency_ns_avg", &of(|round| round.latency_ns_avg)),
    ]
}

fn holds(variables: &[SteadyVariable]) -> bool {
    variables.iter().all(SteadyVariable::is_steady)
}

/// The least-squares line through `values` at 0, 1, 2, …: its value at 0, and its slope.
pub fn line_through(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let slope = slope(values);
    let average = values.iter().sum::<f64>() / count.max(1.0);
    (average - slope * (count - 1.0) / 2.0, slope)
}

/// Slope of the least-squares line through `values` at 0, 1, 2, …
fn slope(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let average = values.iter().sum::<f64>() / count;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let distance = index as f64 - middle;
        covariance += distance * (value - average);
        variance += distance * distance;
    }
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

/// Times are sums of interval lengths: this much of a round is rounding.
const ROUND_ROUNDING: f64 = 1e-6;

/// Whole rounds until `at_s`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole_rounds(at_s: f64, round_s: f64) -> usize {
    assert!(round_s > 0.0, "a round lasts {round_s} s");
    (at_s / round_s + ROUND_ROUNDING).floor() as usize
}

/// The round, from zero, of the interval that ends at `at_s`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn round_of(at_s: f64, round_s: f64) -> usize {
    ((at_s / round_s - ROUND_ROUNDING).ceil() as usize).saturating_sub(1)
}

#[cfg(test)]
mod tests;
