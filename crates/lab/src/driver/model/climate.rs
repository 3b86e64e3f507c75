//! Power and heat of a modelled drive: its limits, and warnings where it kept to them.

use blockio::Nanos;
use results::{Interval, Limits, Summary, Warning, WarningKind};
use ssd::DriveSpec;

use crate::{Error, Kind};

/// Remedy for a drive that is too hot.
const COOLER: &str = "provide cooler air (--ambient) or more airflow (--airflow)";

/// The limits of a drive of whose heat something is known.
pub(super) fn limits(spec: &DriveSpec) -> Option<Limits> {
    let power = spec.thermal.as_ref().and(spec.power.as_ref())?;
    Some(Limits {
        throttle_c: Some(power.throttle_c),
        shutdown_c: Some(power.shutdown_c),
        power_w: power.limit_w,
        ..Limits::default()
    })
}

/// Warnings where the drive throttled its writes in the step named `step`.
pub(super) fn warnings(spec: &DriveSpec, step: &str, intervals: &[Interval]) -> Vec<Warning> {
    let Some((limits, climate)) = limits(spec).zip(Summary::of(intervals).climate) else {
        return Vec::new();
    };
    let throttled = |share: Option<f64>, why: String, remedy: &str| {
        share.filter(|share| *share > 0.0).map(|share| Warning {
            kind: WarningKind::Throttled,
            step: step.into(),
            text: format!(
                "the drive throttled its writes for {:.1} % of the time: {why}",
                share * 100.0
            ),
            remedy: remedy.into(),
        })
    };
    let throttle_c = limits.throttle_c.unwrap_or_default();
    let hottest_c = climate.temperature_c.unwrap_or_default();
    let hot = format!("it slows down at {throttle_c} °C and reached {hottest_c:.1}");
    let limit_w = limits.power_w.unwrap_or_default();
    let drawn =
        format!("it may draw {limit_w} W and drew {:.1}", climate.power_w.unwrap_or_default());
    let heat = throttled(climate.thermal_throttled_share, hot, COOLER);
    let power =
        throttled(climate.power_throttled_share, drawn, "--slot-power external lifts the limit");
    heat.into_iter().chain(power).collect()
}

/// The end of a load: the drive switched itself off `at` that time or before.
pub(super) fn switched_off(at: Nanos) -> Error {
    let text = format!("after {at} the drive was too hot and had switched itself off");
    Error::new(Kind::Program, text).hint(COOLER)
}
