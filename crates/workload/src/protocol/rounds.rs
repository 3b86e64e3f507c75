//! Rounds: measurements that are repeated until they hold still, as the SNIA SSS PTS has them.

use serde::{Deserialize, Serialize};

use super::Measure;
use crate::error::Fault;
use crate::{Access, SizeShare, Workload, percent};

/// Measurements that are repeated, round by round, until what is tracked has settled by the
/// steady-state rule over five rounds, or there were enough of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rounds {
    /// Rounds at most, from 5 to 100.
    pub count_max: u32,
    /// Numbers that must meet the steady-state rule, all in the same five rounds.
    pub track: Vec<TrackedNumber>,
    /// Measurements of one round, in order.
    pub measure: Vec<Measure>,
}

/// Number of a workload that must meet the steady-state rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackedNumber {
    /// Name of a workload of the rounds, such as `4k-rand-0-100` out of a matrix.
    pub workload: String,
    /// Number that is tracked.
    pub metric: TrackedMetric,
}

/// A number that has to hold still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrackedMetric {
    /// Requests in each second.
    Iops,
    /// Average latency.
    Latency,
}

/// One workload in many mixes and sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Shares of requests that read, 0 to 100, each in turn (outer loop).
    pub read_percents: Vec<f64>,
    /// Transfer sizes in bytes, each in turn (inner loop).
    pub sizes_bytes: Vec<u32>,
}

/// Rounds in the window of the steady-state rule.
const WINDOW_ROUNDS: u32 = 5;
/// Most rounds.
const ROUNDS_MAX: u32 = 100;

impl Rounds {
    /// Length of all rounds with their ramps, in seconds, if it takes all of them.
    pub fn duration_all_s(&self) -> u64 {
        let round_s: u64 = self.measure.iter().map(Measure::duration_all_s).sum();
        u64::from(self.count_max) * round_s
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        Fault::unless(
            (WINDOW_ROUNDS..=ROUNDS_MAX).contains(&self.count_max),
            "count_max",
            format!(
                "count_max is {}, not from {WINDOW_ROUNDS} (the window of the steady-state rule) \
                 to {ROUNDS_MAX}",
                self.count_max
            ),
        )?;
        Fault::unless(!self.measure.is_empty(), "measure", "a round measures nothing")?;
        Fault::unless(!self.track.is_empty(), "track", "nothing is tracked: give at least one")?;
        for (index, measure) in self.measure.iter().enumerate() {
            let place = format!("measure.{index}");
            measure.check().map_err(|fault| fault.within(&place))?;
            Fault::unless(
                measure.point_count() == 1,
                &place,
                "several loads in a round: a tracked number would not be one",
            )?;
        }
        self.check_tracked()
    }

    /// Checks that every tracked workload is measured, and each name only once. A workload without
    /// a matrix keeps its name, others are called after their cells.
    fn check_tracked(&self) -> Result<(), Fault> {
        let names: Vec<String> = self.measure.iter().flat_map(Measure::names).collect();
        for (index, name) in names.iter().enumerate() {
            let text = format!("a round measures `{name}` twice");
            Fault::unless(!names[..index].contains(name), "measure", text)?;
        }
        for (index, tracked) in self.track.iter().enumerate() {
            let known = names.iter().map(String::as_str);
            let near = blockio::nearest(&tracked.workload, known)
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Fault::unless(
                names.contains(&tracked.workload),
                format!("track.{index}.workload"),
                format!("no round measures `{}`{near}", tracked.workload),
            )?;
        }
        Ok(())
    }
}

impl Measure {
    /// Names of the workloads that it measures, as far as its own text tells them.
    fn names(&self) -> Vec<String> {
        match &self.matrix {
            None => vec![self.workload.clone()],
            Some(matrix) => {
                let order = if self.workload.contains("seq") { "seq" } else { "rand" };
                matrix.cells().map(|(read, bytes)| name(read, bytes, order)).collect()
            }
        }
    }

    /// The workloads that it measures: `workload`, or that in all mixes and sizes of the matrix.
    pub fn variants(&self, workload: &Workload) -> Vec<Workload> {
        let Some(matrix) = &self.matrix else { return vec![workload.clone()] };
        let order = if workload.access == Access::Sequential { "seq" } else { "rand" };
        let variant = |(read_percent, bytes)| Workload {
            name: name(read_percent, bytes, order),
            title: name(read_percent, bytes, order),
            read_percent,
            sizes: vec![SizeShare { bytes, percent: 100.0 }],
            align_bytes: 0,
            ..workload.clone()
        };
        matrix.cells().map(variant).collect()
    }
}

impl Matrix {
    /// Cells of the matrix.
    pub(super) fn cell_count(&self) -> u64 {
        self.read_percents.len() as u64 * self.sizes_bytes.len() as u64
    }

    /// Share of reads and size of each cell, in order.
    fn cells(&self) -> impl Iterator<Item = (f64, u32)> {
        let sizes = &self.sizes_bytes;
        self.read_percents.iter().flat_map(|read| sizes.iter().map(|bytes| (*read, *bytes)))
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        Fault::unless(!self.read_percents.is_empty(), "read_percents", "read_percents are empty")?;
        Fault::unless(!self.sizes_bytes.is_empty(), "sizes_bytes", "sizes_bytes are empty")?;
        for (index, value) in self.read_percents.iter().enumerate() {
            let place = format!("read_percents.{index}");
            percent::up_to_whole(&place, *value)?;
            let text = format!("{place} is {value} again");
            Fault::unless(!self.read_percents[..index].contains(value), place, text)?;
        }
        for (index, bytes) in self.sizes_bytes.iter().enumerate() {
            let place = format!("sizes_bytes.{index}");
            let text = format!("{place} is {bytes}, not a multiple of 512 above 0");
            Fault::unless(*bytes > 0 && bytes.is_multiple_of(512), &place, text)?;
            let text = format!("{place} is {bytes} again");
            Fault::unless(!self.sizes_bytes[..index].contains(bytes), place, text)?;
        }
        Ok(())
    }
}

/// Name of a cell: `64k-rand-65-35`, `512b-rand-0-100`.
fn name(read_percent: f64, bytes: u32, order: &str) -> String {
    let size =
        if bytes.is_multiple_of(1024) { format!("{}k", bytes / 1024) } else { format!("{bytes}b") };
    format!("{size}-{order}-{read_percent}-{}", 100.0 - read_percent)
}

#[cfg(test)]
mod tests {
    use crate::Protocol;
    use crate::protocol::tests::{GOOD, told_of};

    const SUITE: &str = r#"[[suites]]
name = "iops"
title = "IOPS"
fill = "128k-seq-write"
fill_passes = 2

[suites.rounds]
count_max = 25
track = [{ workload = "4k-rand-0-100", metric = "iops" }]

[[suites.rounds.measure]]
workload = "4k-rand-write"
threads = [4]
queue_per_thread = [32]
duration_s = 60
ramp_s = 0
interval_s = 60

[suites.rounds.measure.matrix]
read_percents = [100, 0]
sizes_bytes = [65536, 4096]
"#;

    /// A protocol of that suite.
    fn good() -> String {
        GOOD[..GOOD.find("[[suites]]").expect("it has suites")].to_owned() + SUITE
    }

    #[test]
    fn all_rounds_are_counted_until_the_last_one() {
        let protocol = Protocol::parse(&good(), "p.toml").unwrap();
        assert_eq!(protocol.duration_s(), 25 * 4 * 60);
    }

    #[test]
    fn rounds_that_contradict_themselves_are_told_where() {
        let precondition = "[suites.precondition]\nworkload = \"4k-rand-write\"\nthreads = 1\n\
                            queue_per_thread = 1\nduration_s = 5\ninterval_s = 1\nround_s = 1\n\n\
                            [suites.rounds]";
        let second = "[[suites.rounds.measure]]\nworkload = \"4k-rand-0-100\"\nthreads = [1]\n\
                      queue_per_thread = [1]\nduration_s = 1\nramp_s = 0\ninterval_s = 1\n\n\
                      [[suites.rounds.measure]]";
        let cases = [
            ("count_max = 25", "count_max = 4", "14: count_max is 4, not from 5 (the window of"),
            ("fill_passes = 2", "fill_passes = 5", "11: fill_passes is 5, not from 1 to 4"),
            (
                "fill_passes = 2",
                "fill_random_passes = 5",
                "11: fill_random_passes is 5, not from 0 to 4",
            ),
            ("fill = \"128k-seq-write\"\n", "", "10: fill_passes without fill: say what fills"),
            ("[suites.rounds]", precondition, "13: a precondition beside rounds: the rounds are"),
            ("track = [{", "track = []\nother = [{", "unknown field `other`"),
            ("\"4k-rand-0-100\"", "\"4k-rand-100\"", "15: no round measures `4k-rand-100`; did"),
            ("threads = [4]", "threads = [4, 8]", "17: several loads in a round: a tracked"),
            ("[65536, 4096]", "[65536, 1000]", "27: sizes_bytes.1 is 1000, not a multiple of 512"),
            ("[65536, 4096]", "[4096, 4096]", "27: sizes_bytes.1 is 4096 again"),
            ("[100, 0]", "[100, 101]", "26: read_percents.1 is 101, not from 0 to 100"),
            ("ramp_s = 0", "ramp_s = 0\nreplay = {}", "a replay beside a matrix: a trace has"),
            ("[[suites.rounds.measure]]", second, "a round measures `4k-rand-0-100` twice"),
        ];
        for (from, to, expect) in cases {
            let told = told_of(&good(), from, to);
            assert!(told.contains(expect), "{to}: {told}");
        }
    }
}
