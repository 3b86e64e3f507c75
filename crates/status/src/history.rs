//! History of a served drive: its last minutes, hour and day, kept in memory by its server.

use serde::{Deserialize, Serialize};

/// Time span of a history, and the length of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HistorySpan {
    /// Two minutes, in steps of a second.
    #[serde(rename = "2min")]
    Minutes,
    /// An hour, in steps of ten seconds.
    #[serde(rename = "1h")]
    Hour,
    /// A day, in steps of a minute.
    #[serde(rename = "24h")]
    Day,
}

impl HistorySpan {
    /// All of them, the shortest first.
    pub const ALL: [Self; 3] = [Self::Minutes, Self::Hour, Self::Day];

    /// Seconds of a step.
    pub const fn step_s(self) -> u32 {
        match self {
            Self::Minutes => 1,
            Self::Hour => 10,
            Self::Day => 60,
        }
    }

    /// Steps that are kept: never more, so that memory is bounded.
    pub const fn steps_max(self) -> usize {
        match self {
            Self::Minutes => 120,
            Self::Hour => 360,
            Self::Day => 1440,
        }
    }

    /// The word, as JSON and addresses have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Minutes => "2min",
            Self::Hour => "1h",
            Self::Day => "24h",
        }
    }
}

/// History of a drive in steps, the latest at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Time span that it may cover.
    pub span: HistorySpan,
    /// Seconds of a step.
    pub step_s: u32,
    /// Most steps that there may be.
    pub steps_max: usize,
    /// The steps; fewer than there may be while the server is younger than the span.
    pub steps: Vec<Step>,
}

/// Traffic of a drive from the step before until this one. Rates are over that time; percentiles
/// are those of the commands that ended in it, never averages of percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its end, in seconds since the beginning of 1970, UTC.
    pub at_unix_s: u64,
    /// Reads of clients.
    pub reads: StepCommands,
    /// Writes of clients.
    pub writes: StepCommands,
    /// Flushes of clients.
    pub flushes: StepCommands,
    /// Bytes a second written to the dies: host, relocation, wear, parity, metadata, rebuild.
    pub written_bytes_per_s: [u64; 6],
    /// Temperature of the modelled drive at its end, in degrees Celsius; none without a model.
    pub temperature_c: Option<f32>,
    /// Power of the modelled drive on average, in watts; none without one.
    pub power_w: Option<f32>,
    /// Erases of a superblock at its end, on average.
    pub erase_count_mean: Option<f32>,
    /// Bytes of flash that data takes at its end.
    pub stored_bytes: Option<u64>,
}

/// Rates and latencies of one kind of command in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepCommands {
    /// Commands a second.
    pub iops: f32,
    /// Bytes a second of those that succeeded.
    pub bytes_per_s: u64,
    /// Nanoseconds that half of them stayed below; none where there were none.
    pub latency_ns_p50: Option<u64>,
    /// Nanoseconds that 99 % of them stayed below.
    pub latency_ns_p99: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_as_long_as_its_word_says() {
        let seconds = HistorySpan::ALL.map(|span| span.step_s() as usize * span.steps_max());
        assert_eq!(seconds, [120, 3600, 86_400]);
        assert!(seconds.is_sorted(), "the shortest first");
    }

    #[test]
    fn words_are_those_of_json_and_addresses() {
        for span in HistorySpan::ALL {
            let json = serde_json::to_string(&span).unwrap();
            assert_eq!(json, format!("\"{}\"", span.word()));
            assert_eq!(serde_json::from_str::<HistorySpan>(&json).unwrap(), span);
        }
        assert!(serde_json::from_str::<HistorySpan>("\"1week\"").is_err());
    }
}
