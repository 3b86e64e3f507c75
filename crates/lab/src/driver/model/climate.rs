//! Power and heat of a modelled drive: its limits, and warnings where it kept to them.

use blockio::Nanos;
use results::{Climate, Interval, Limits, Summary, Warning, WarningKind};
use ssd::DriveSpec;

use crate::{Error, Kind};

/// Remedy for a drive that is too hot.
const COOLER: &str = "provide cooler air (--ambient) or more airflow (--airflow)";

/// Sectors of a request whose work may well be scheduled seconds ahead: 16 MiB.
const LARGE_SECTORS: u32 = 1 << 15;
/// Part of a load by which its last requests may go on after it.
const BEYOND_PART: u64 = 10;

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

/// Warnings where the drive throttled its writes in the step named `step`, or would have.
pub(super) fn warnings(spec: &DriveSpec, step: &str, intervals: &[Interval]) -> Vec<Warning> {
    let Some((limits, climate)) = limits(spec).zip(Summary::of(intervals).climate) else {
        return Vec::new();
    };
    let warning = |text: String, remedy: &str| Warning {
        kind: WarningKind::Throttled,
        step: step.into(),
        text,
        remedy: remedy.into(),
    };
    let some = |share: Option<f64>| share.filter(|share| *share > 0.0).map(|share| share * 100.0);
    if intervals.iter().all(|interval| interval.write_bytes == 0) {
        // Reads are not throttled; a drive that may draw little has nothing to throttle either.
        let warm = some(climate.thermal_throttled_share)
            .map(|percent| only_warm(&limits, &climate, percent));
        return warm.map(|text| warning(text, COOLER)).into_iter().collect();
    }
    let throttled = |share: Option<f64>, why: String, remedy: &str| {
        let percent = some(share)?;
        let text = format!("the drive throttled its writes for {percent:.1} % of the time: {why}");
        Some(warning(text, remedy))
    };
    let throttle_c = limits.throttle_c.unwrap_or_default();
    let hottest_c = climate.temperature_c.unwrap_or_default();
    let hot = format!("it slows down at {throttle_c} °C and reached {hottest_c:.1} °C");
    let limit_w = limits.power_w.unwrap_or_default();
    let drawn =
        format!("it may draw {limit_w} W and drew {:.1} W", climate.power_w.unwrap_or_default());
    let heat = throttled(climate.thermal_throttled_share, hot, COOLER);
    let power =
        throttled(climate.power_throttled_share, drawn, "--slot-power external lifts the limit");
    heat.into_iter().chain(power).collect()
}

/// Warning where requests of the load named `step`, from `began` to `ended`, went on long after it:
/// the energy of media operations counts when they are scheduled, thus within it.
pub(super) fn booked_beyond(
    spec: &DriveSpec,
    step: &str,
    (began, ended): (Nanos, Nanos),
    completed_at: Nanos,
) -> Option<Warning> {
    limits(spec)?;
    let (span, beyond) = (ended.saturating_sub(began), completed_at.saturating_sub(ended));
    (beyond > span / BEYOND_PART).then(|| Warning {
        kind: WarningKind::Scale,
        step: step.into(),
        text: format!(
            "power and temperature are overstated: the energy of requests counts when it is \
             scheduled, and the last ones completed {beyond} after a measurement of {span}, both \
             on the drive's own clock"
        ),
        remedy: "use smaller requests, fewer of them at a time, or a longer measurement".into(),
    })
}

/// The sentence about a drive that was at its limit of heat while it only read.
fn only_warm(limits: &Limits, climate: &Climate, percent: f64) -> String {
    let throttle_c = limits.throttle_c.unwrap_or_default();
    let hottest_c = climate.temperature_c.unwrap_or_default();
    format!(
        "the drive was at its throttle temperature of {throttle_c} °C for {percent:.1} % of the \
         time, and reached {hottest_c:.1} °C; it only read, and reads are not throttled"
    )
}

/// The end of a load: the drive switched itself off `at` that protocol time or before, and
/// refused a request of so many sectors.
pub(super) fn switched_off(at: Nanos, sectors: u32) -> Error {
    let text = format!("after {at} the drive was too hot and had switched itself off");
    let large = " or smaller requests: their work counts when it is scheduled";
    Error::new(Kind::Program, text).hint(if sectors >= LARGE_SECTORS {
        format!("{COOLER},{large}")
    } else {
        COOLER.to_owned()
    })
}
