//! Preconditioning that goes on until steady state: of a real drive, or of a model that is too
//! large for the time of the protocol.
//!
//! ```text
//! |<- shortest: one load ->|<- more ->|<- more ->| …            longest |
//!                          judged     judged: steady ──► measured at once
//! ```
//!
//! fio writes its histograms when it ends, so each stretch is a load of its own, with other random
//! numbers; the drive idles for the second or two between them. Intervals of all stretches follow
//! each other as those of one load.

use blockio::Rng;
use results::steady::WriteRequirement;
use results::{DieFailures, Interval, Sample, Sampling, Steady, Warning};

use crate::driver::{DeviceIntervals, LatencyParts};
use crate::plan::PlannedStep;
use crate::progress::Glimpse;
use crate::{Driver, Error, Load, LoadResult, Watch};

/// Stretches between the shortest and the longest preconditioning of a real drive, at most. A model
/// begins the next one at once, and takes one for each round.
const STRETCHES_MAX: f64 = 12.0;

/// Goes on with the load of a preconditioning after `loaded`, its shortest, until it is steady by
/// `required` or the longest is over; a plan without bounds is done.
///
/// # Errors
/// Fails if a stretch could not be carried out.
pub(super) fn extended(
    driver: &mut dyn Driver,
    load: &Load<'_>,
    (step, required): (&PlannedStep, &WriteRequirement),
    mut loaded: LoadResult,
    watch: &mut dyn Watch,
) -> Result<LoadResult, Error> {
    let real_max_s = step.real.map(|real| real.duration_s_max as f64);
    let is_model = driver.target().kind.is_model();
    let longest_s = if is_model { step.large_model_max_s } else { real_max_s };
    let Some(longest_s) = longest_s else { return Ok(loaded) };
    let rounds = (longest_s - load.duration_s) / step.round_s;
    let rounds = if is_model { 1.0 } else { (rounds / STRETCHES_MAX).ceil() };
    let stretch_s = rounds * step.round_s;
    let mut stretches = 0;
    while let Some(begun_s) = end_s(&loaded) {
        let rest_s = ((longest_s - begun_s) / step.round_s).floor() * step.round_s;
        if rest_s < step.round_s || watch.stop() || is_steady(&loaded, step, required) {
            break;
        }
        stretches += 1;
        let name = format!("{}/more-{stretches:02}", load.step);
        let seed = Rng::new(load.seed).split_index(stretches).next_u64();
        let duration_s = stretch_s.min(rest_s);
        let more = Load { step: &name, ramp_s: 0.0, duration_s, seed, ..*load };
        let mut beyond = Beyond { watch: &mut *watch, begun_s, longest_s };
        let added = driver.load(&more, &mut beyond)?;
        if added.intervals.is_empty() {
            break;
        }
        loaded = joined(loaded, added, load.step);
    }
    if stretches > 0 {
        let shortest_h = load.duration_s / 3600.0;
        loaded.how = format!(
            "{}; not steady after {shortest_h:.1} h, it went on for {stretches} more loads of up \
             to {stretch_s:.0} s",
            loaded.how
        );
    }
    Ok(loaded)
}

/// Protocol time of the last interval; absent where there is none.
fn end_s(loaded: &LoadResult) -> Option<f64> {
    loaded.intervals.last().map(|interval| interval.at_s)
}

fn is_steady(loaded: &LoadResult, step: &PlannedStep, required: &WriteRequirement) -> bool {
    let samples: Vec<Sample> = loaded.intervals.iter().map(Sample::of).collect();
    Steady::judge_written(&samples, step.round_s, required).achieved
}

/// Both loads as one, named `step`.
fn joined(first: LoadResult, second: LoadResult, step: &str) -> LoadResult {
    let offset_s = end_s(&first).unwrap_or_default();
    let span_s = |loaded: &LoadResult| loaded.intervals.iter().map(|it| it.span_s).sum::<f64>();
    let (first_s, second_s) = (span_s(&first), span_s(&second));
    let total_s = (first_s + second_s).max(f64::MIN_POSITIVE);
    let later = |interval: Interval| Interval { at_s: interval.at_s + offset_s, ..interval };
    let counts = |loaded: &LoadResult| !loaded.counted.is_empty();
    // Where one has no totals of its own, the intervals are all that was counted of both.
    let counted = if counts(&first) && counts(&second) {
        first.counted.into_iter().chain(second.counted.into_iter().map(later)).collect()
    } else {
        Vec::new()
    };
    let mut warnings = first.warnings;
    for warning in second.warnings {
        let warning = if warning.step.is_empty() {
            warning
        } else {
            Warning { step: step.to_owned(), ..warning }
        };
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    LoadResult {
        intervals: first
            .intervals
            .into_iter()
            .chain(second.intervals.into_iter().map(later))
            .collect(),
        counted,
        devices: devices(first.devices, second.devices),
        parts: first.parts.zip(second.parts).map(|(first, second)| parts(first, &second)),
        how: first.how,
        responses: None,
        generator_limited: first.generator_limited || second.generator_limited,
        lateness: first.lateness.zip(second.lateness).map(|(first, second)| first.and(second)),
        uncounted: (first.uncounted * first_s + second.uncounted * second_s) / total_s,
        unfinished: (first.unfinished * first_s + second.unfinished * second_s) / total_s,
        die_failures: DieFailures::joined(first.die_failures, second.die_failures, offset_s),
        sampling: sampling(first.sampling, second.sampling, offset_s),
        spread: None,
        warnings,
    }
}

/// Sampling of both loads as one, of which the second began at `offset_s`. The interval of the
/// rate is that of neither.
fn sampling(first: Option<Sampling>, second: Option<Sampling>, offset_s: f64) -> Option<Sampling> {
    let (first, second) = (first?, second?);
    let (detailed, detailed_from_s) = if second.is_sampled() {
        (second.detailed, second.detailed_from_s.map(|from_s| from_s + offset_s))
    } else if first.is_sampled() {
        // The first may have been in detail from some time on, and the second is to its end.
        let from_s = first.detailed_from_s.unwrap_or(offset_s);
        (first.detailed.or(second.detailed), Some(from_s))
    } else {
        (first.detailed.or(second.detailed), None)
    };
    Some(Sampling {
        windows: first.windows + second.windows,
        requests_measured: first.requests_measured + second.requests_measured,
        requests_detailed: first.requests_detailed + second.requests_detailed,
        requests: first.requests + second.requests,
        intervals_unmeasured: first.intervals_unmeasured + second.intervals_unmeasured,
        detailed,
        detailed_from_s,
        iops: None,
        precision_reached: None,
        precision: first.precision,
    })
}

fn devices(first: Vec<DeviceIntervals>, second: Vec<DeviceIntervals>) -> Vec<DeviceIntervals> {
    let pairs = first.into_iter().zip(second);
    let joined = pairs.map(|(mut device, more)| {
        device.counted.extend(more.counted);
        device
    });
    joined.collect()
}

fn parts(mut first: LatencyParts, second: &LatencyParts) -> LatencyParts {
    first.submission.merge(&second.submission);
    first.completion.merge(&second.completion);
    first
}

/// Observer of a stretch beyond the planned length, of which no progress is known.
struct Beyond<'a> {
    watch: &'a mut dyn Watch,
    begun_s: f64,
    longest_s: f64,
}

impl Watch for Beyond<'_> {
    fn progress(&mut self, _: f64, text: &str) {
        let [begun_h, longest_h] = [self.begun_s, self.longest_s].map(|seconds| seconds / 3600.0);
        let told = format!("{text}, not steady after {begun_h:.1} h, {longest_h:.1} h at most");
        self.watch.progress(1.0, told.trim_start_matches(", "));
    }

    fn saw(&mut self, glimpse: Glimpse) {
        self.watch.saw(glimpse);
    }

    fn stop(&self) -> bool {
        self.watch.stop()
    }
}

#[cfg(test)]
mod tests {
    use results::{Environment, Target, TargetKind};
    use workload::{RealLength, catalogue};

    use super::*;
    use crate::driver::mock::{CommandLog, Mock};
    use crate::driver::{Fill, SilentWatch};

    /// A driver whose rate falls by `fall_percent` an hour until `until_s`, and holds from then on.
    struct Falling {
        kind: TargetKind,
        until_s: f64,
        passed_s: f64,
        asked: Vec<(String, f64, u64)>,
    }

    impl Driver for Falling {
        fn target(&self) -> Target {
            Mock::new(self.kind, &CommandLog::default()).target()
        }

        fn environment(&self) -> Environment {
            Environment::default()
        }

        fn purge(&mut self) -> Result<String, Error> {
            Ok(String::new())
        }

        fn fill(&mut self, _: &Fill<'_>, _: &mut dyn Watch) -> Result<String, Error> {
            Ok(String::new())
        }

        fn load(&mut self, load: &Load<'_>, _: &mut dyn Watch) -> Result<LoadResult, Error> {
            self.asked.push((load.step.to_owned(), load.duration_s, load.seed));
            let mut loaded = LoadResult::default();
            let mut at_s = load.interval_s;
            while at_s <= load.duration_s {
                self.passed_s += load.interval_s;
                let mut interval =
                    Interval { at_s, span_s: load.interval_s, ..Interval::default() };
                let hours = self.passed_s.min(self.until_s) / 3600.0;
                let latency_ns = 100_000.0 * 1.5_f64.powf(hours);
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ns")]
                let latency_ns = latency_ns as u64;
                let requests = 60_000_000_000 / latency_ns;
                interval.write.record_many(latency_ns, requests);
                interval.write_bytes = requests * 4096;
                loaded.intervals.push(interval);
                at_s += load.interval_s;
            }
            let warning = results::WarningKind::Environment;
            let (step, text) = (load.step.to_owned(), "warm".to_owned());
            loaded.warnings = vec![Warning { kind: warning, step, text, remedy: String::new() }];
            Ok(loaded)
        }
    }

    /// A preconditioning of real drives of six to twelve hours.
    fn step() -> PlannedStep {
        PlannedStep {
            round_s: 1800.0,
            real: Some(RealLength { duration_s_min: 21_600, duration_s_max: 43_200 }),
            ..crate::plan::blank("4k", "4K")
        }
    }

    /// The preconditioning of a drive that settles at `until_s`, and the loads asked for.
    fn preconditioned(kind: TargetKind, until_s: f64) -> (LoadResult, Vec<(String, f64, u64)>) {
        carried_out(kind, until_s, &step())
    }

    /// Like [`preconditioned`], of `step`.
    fn carried_out(
        kind: TargetKind,
        until_s: f64,
        step: &PlannedStep,
    ) -> (LoadResult, Vec<(String, f64, u64)>) {
        let workload = catalogue::find_workload("4k-rand-write").unwrap();
        let load = Load {
            step: "4k/precondition",
            workload: &workload,
            threads: 1,
            queue_per_thread: 1,
            ramp_s: 0.0,
            duration_s: 21_600.0,
            interval_s: 60.0,
            rate: None,
            replay: None,
            seed: 7,
        };
        let required = WriteRequirement {
            before_bytes: 0.0,
            addressed_bytes: 1.0,
            user_bytes: 1.0,
            raw_bytes: None,
            time_lapse: 1.0,
        };
        let mut driver = Falling { kind, until_s, passed_s: 0.0, asked: Vec::new() };
        let loaded = driver.load(&load, &mut SilentWatch).unwrap();
        let loaded =
            extended(&mut driver, &load, (step, &required), loaded, &mut SilentWatch).unwrap();
        (loaded, driver.asked)
    }

    #[test]
    fn a_drive_that_is_steady_within_the_shortest_time_is_loaded_no_longer() {
        let (loaded, asked) = preconditioned(TargetKind::BlockDevice, 3600.0);
        assert_eq!((asked.len(), end_s(&loaded)), (1, Some(21_600.0)));
    }

    #[test]
    fn a_drive_that_is_not_steady_goes_on_until_it_is() {
        let (loaded, asked) = preconditioned(TargetKind::BlockDevice, 7.0 * 3600.0);
        // Five rounds that hold still end between eight and ten hours.
        let end_s = end_s(&loaded).unwrap();
        assert!((28_800.0..=36_000.0).contains(&end_s), "{end_s}");
        let ends = (1..).map(|minute| f64::from(minute) * 60.0);
        let is_next = |(interval, end): (&Interval, f64)| (interval.at_s - end).abs() < 1e-6;
        assert!(loaded.intervals.iter().zip(ends).all(is_next), "one follows another");
        assert_eq!((asked[1].0.as_str(), asked[1].1), ("4k/precondition/more-01", 1800.0));
        let mut seeds: Vec<u64> = asked.iter().map(|asked| asked.2).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), asked.len(), "no stretch repeats the addresses of another");
        assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
        assert!(loaded.how.contains("not steady after 6.0 h"), "{}", loaded.how);
    }

    #[test]
    fn detail_begins_where_it_did_in_the_load_that_it_began_in() {
        let of = |windows, detailed_from_s: Option<f64>| {
            let detailed = (windows == 0 || detailed_from_s.is_some()).then(|| "hot".to_owned());
            Some(Sampling { windows, detailed, detailed_from_s, ..Sampling::default() })
        };
        let joined = |first, second| {
            let joined = sampling(first, second, 600.0).unwrap();
            (joined.detailed_from_s, joined.detailed.is_some())
        };
        assert_eq!(joined(of(40, None), of(40, None)), (None, false));
        assert_eq!(joined(of(40, None), of(40, Some(60.0))), (Some(660.0), true));
        assert_eq!(joined(of(40, None), of(0, None)), (Some(600.0), true));
        assert_eq!(joined(of(40, Some(60.0)), of(0, None)), (Some(60.0), true));
        assert_eq!(joined(of(0, None), of(0, None)), (None, true));
        // To its end it was sampled.
        assert_eq!(joined(of(40, Some(60.0)), of(40, None)), (None, false));
    }

    #[test]
    fn a_drive_that_never_settles_is_loaded_for_the_longest_time() {
        let (loaded, asked) = preconditioned(TargetKind::BlockDevice, f64::MAX);
        assert_eq!((asked.len(), end_s(&loaded)), (13, Some(43_200.0)));
    }

    #[test]
    fn a_model_keeps_to_the_time_of_the_protocol_unless_it_is_too_large_for_it() {
        let (_, asked) = preconditioned(TargetKind::Model, f64::MAX);
        assert_eq!(asked.len(), 1, "bounds of real drives");
        let step = PlannedStep { large_model_max_s: Some(36_000.0), ..step() };
        let (loaded, asked) = carried_out(TargetKind::Model, f64::MAX, &step);
        assert_eq!((asked.len(), end_s(&loaded)), (9, Some(36_000.0)), "a round each");
    }
}
