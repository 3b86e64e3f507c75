//! Dies that failed under a load of a model, and what the load reached before, while and after what
//! they held was made good.

use serde::{Deserialize, Serialize};

use crate::{Interval, Summary};

/// Dies that failed in a step, and the load in each state of the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DieFailures {
    /// The dies, in the order of their failures.
    pub failed: Vec<FailedDie>,
    /// States that the drive was in, in order; those shorter than a sample are left out.
    pub phases: Vec<FailurePhase>,
    /// True if its stripes of dies have parity.
    pub has_parity: bool,
}

/// A die of a model that failed, as was asked for. Times are of the protocol, since the first
/// sample of the step began; those before it are below zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedDie {
    /// The die, counted over all modules from 0.
    pub die: u32,
    /// Time of its failure, in seconds.
    pub failed_s: f64,
    /// Time at which all that parity gives back of its data had been rebuilt, in seconds; absent
    /// where that was not so when the step ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt_s: Option<f64>,
    /// Time at which no stripe lacked a unit any more, in seconds; absent where that was not so
    /// when the step ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundant_s: Option<f64>,
    /// Data that no redundancy could give back, in bytes at full scale.
    pub lost_bytes: u64,
    /// True if the spare space could not stand in for it: the drive took no writes any more.
    pub is_read_only: bool,
    /// Flash for data beyond the user capacity that was left, as a share of it, in percent.
    pub spare_percent: f64,
}

/// State of a drive between failures of dies and the repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureState {
    /// No die has failed.
    Intact,
    /// Data of a failed die is being rebuilt from parity.
    Rebuilding,
    /// All data is rebuilt, and moves to stripes that lack no unit.
    RestoringRedundancy,
    /// Nothing is left to be made good: the next die may fail, if there is parity.
    Restored,
    /// The drive takes no writes any more.
    ReadOnly,
}

impl FailureState {
    /// The state, as in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Rebuilding => "rebuilding",
            Self::RestoringRedundancy => "restoring redundancy",
            Self::Restored => "restored",
            Self::ReadOnly => "read-only",
        }
    }

    /// The state as the end of a sentence on what a load reached, such as `while rebuilding`.
    pub const fn clause(self) -> &'static str {
        match self {
            Self::Intact => "before",
            Self::Rebuilding => "while rebuilding",
            Self::RestoringRedundancy => "while restoring redundancy",
            Self::Restored => "afterwards",
            Self::ReadOnly => "of reads from then on",
        }
    }
}

/// A load while the drive was in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailurePhase {
    /// State of the drive.
    pub state: FailureState,
    /// Its beginning in protocol time since the step began, in seconds.
    pub from_s: f64,
    /// Its end, in seconds.
    pub to_s: f64,
    /// Totals of the samples whose middle lies in it.
    pub summary: Summary,
}

impl DieFailures {
    /// The failures of `failed` under a load of which `intervals` were measured.
    pub fn of(failed: Vec<FailedDie>, has_parity: bool, intervals: &[Interval]) -> Self {
        let end_s = intervals.last().map_or(0.0, |interval| interval.at_s);
        let events = failed.iter().flat_map(|it| [Some(it.failed_s), it.rebuilt_s, it.redundant_s]);
        let within = events.flatten().filter(|at_s| (0.0..end_s).contains(at_s));
        let mut bounds: Vec<f64> = within.chain([0.0, end_s]).collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        let mut phases: Vec<FailurePhase> = Vec::new();
        for span in bounds.windows(2) {
            let (from_s, to_s) = (span[0], span[1]);
            let state = state(&failed, has_parity, from_s);
            // What the loss of another die cuts in two is one.
            let from_s =
                phases.last().filter(|it| it.state == state).map_or(from_s, |it| it.from_s);
            let starts = std::iter::once(0.0).chain(intervals.iter().map(|it| it.at_s));
            let of_span = starts.zip(intervals).filter(|(start, interval)| {
                let middle = f64::midpoint(*start, interval.at_s);
                from_s <= middle && middle < to_s
            });
            let of_span: Vec<Interval> = of_span.map(|(_, interval)| interval.clone()).collect();
            if of_span.is_empty() {
                continue;
            }
            if phases.last().is_some_and(|it| it.state == state) {
                phases.pop();
            }
            phases.push(FailurePhase { state, from_s, to_s, summary: Summary::of(&of_span) });
        }
        Self { failed, phases, has_parity }
    }

    /// The failures of two loads of which the second began `offset_s` after the first, and knows
    /// more of the dies of both.
    pub fn joined(first: Option<Self>, second: Option<Self>, offset_s: f64) -> Option<Self> {
        let Some(mut second) = second else { return first };
        let later = |time: &mut Option<f64>| *time = time.map(|time| time + offset_s);
        for failed in &mut second.failed {
            failed.failed_s += offset_s;
            later(&mut failed.rebuilt_s);
            later(&mut failed.redundant_s);
        }
        for phase in &mut second.phases {
            (phase.from_s, phase.to_s) = (phase.from_s + offset_s, phase.to_s + offset_s);
        }
        let mut both = first.unwrap_or_default();
        both.has_parity = second.has_parity;
        both.failed.retain(|it| second.failed.iter().all(|later| later.die != it.die));
        both.failed.append(&mut second.failed);
        both.phases.append(&mut second.phases);
        Some(both)
    }
}

/// State of the drive from `at_s` on, until the next event.
fn state(failed: &[FailedDie], has_parity: bool, at_s: f64) -> FailureState {
    let so_far = || failed.iter().filter(|it| it.failed_s <= at_s);
    let is_past = |time: Option<f64>| time.is_some_and(|time| time <= at_s);
    if so_far().next().is_none() {
        FailureState::Intact
    } else if so_far().any(|it| it.is_read_only) {
        FailureState::ReadOnly
    } else if !has_parity {
        FailureState::Restored
    } else if !so_far().all(|it| is_past(it.rebuilt_s)) {
        FailureState::Rebuilding
    } else if !so_far().all(|it| is_past(it.redundant_s)) {
        FailureState::RestoringRedundancy
    } else {
        FailureState::Restored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(rates: &[u64]) -> Vec<Interval> {
        crate::example::minutes(rates, 0)
    }

    fn failed(die: u32, failed_s: f64, rebuilt_s: f64, redundant_s: f64) -> FailedDie {
        FailedDie {
            die,
            failed_s,
            rebuilt_s: Some(rebuilt_s),
            redundant_s: Some(redundant_s),
            lost_bytes: 0,
            is_read_only: false,
            spare_percent: 20.0,
        }
    }

    #[test]
    fn a_load_is_cut_where_the_state_of_the_drive_changes() {
        use FailureState::{Intact, Rebuilding, Restored, RestoringRedundancy};
        let intervals = minutes(&[100, 100, 40, 60, 60, 90, 50, 70, 80]);
        let dies = vec![failed(3, 120.0, 180.0, 300.0), failed(4, 360.0, 420.0, 480.0)];
        let found = DieFailures::of(dies, true, &intervals);
        let told = found.phases.iter().map(|it| (it.state, it.from_s, it.to_s, it.summary.iops));
        let expected = [
            (Intact, 0.0, 120.0, 100.0),
            (Rebuilding, 120.0, 180.0, 40.0),
            (RestoringRedundancy, 180.0, 300.0, 60.0),
            (Restored, 300.0, 360.0, 90.0),
            (Rebuilding, 360.0, 420.0, 50.0),
            (RestoringRedundancy, 420.0, 480.0, 70.0),
            (Restored, 480.0, 540.0, 80.0),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_die_that_fails_while_another_is_rebuilt_goes_on_with_the_rebuild() {
        let first = FailedDie { rebuilt_s: None, redundant_s: None, ..failed(3, 60.0, 0.0, 0.0) };
        let second = FailedDie { rebuilt_s: None, redundant_s: None, ..failed(4, 120.0, 0.0, 0.0) };
        let intervals = minutes(&[100, 40, 20]);
        let found = DieFailures::of(vec![first.clone(), second.clone()], true, &intervals);
        let states = found.phases.iter().map(|it| (it.state, it.to_s, it.summary.iops));
        let rebuilding = (FailureState::Rebuilding, 180.0, 30.0);
        assert_eq!(states.collect::<Vec<_>>(), [(FailureState::Intact, 60.0, 100.0), rebuilding]);
        let last = FailedDie { is_read_only: true, ..second };
        let found = DieFailures::of(vec![first, last], true, &intervals);
        assert_eq!(found.phases.last().map(|it| it.state), Some(FailureState::ReadOnly));
    }

    #[test]
    fn a_second_load_goes_on_with_the_dies_of_the_first() {
        let open = FailedDie { redundant_s: None, ..failed(3, 60.0, 120.0, 0.0) };
        let first = DieFailures::of(vec![open], true, &minutes(&[100, 40, 60]));
        let second =
            DieFailures::of(vec![failed(3, -120.0, -60.0, 60.0)], true, &minutes(&[60, 90]));
        let states = second.phases.iter().map(|it| it.state);
        let expected = [FailureState::RestoringRedundancy, FailureState::Restored];
        assert_eq!(states.collect::<Vec<_>>(), expected);
        let both = DieFailures::joined(Some(first), Some(second), 180.0).expect("of two");
        assert_eq!(both.failed, [failed(3, 60.0, 120.0, 240.0)]);
        assert_eq!(both.phases.last().map(|it| (it.from_s, it.to_s)), Some((240.0, 300.0)));
    }
}
