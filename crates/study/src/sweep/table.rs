//! A sweep as a table: one row a point, numbers unrounded.

use results::sweep::{LifetimeBasis, Point, PointOutcome, SettledDrive, Sweep};

use lab::{Error, Kind};

/// Columns after those of the dimensions.
const COLUMNS: [&str; 21] = [
    "user_capacity_gb",
    "over_provisioning_percent",
    "steady",
    "iops",
    "throughput_mb_s",
    "latency_ns_avg",
    "latency_ns_p50",
    "latency_ns_p99",
    "latency_ns_p999",
    "latency_ns_p9999",
    "write_amplification",
    "host_writes_pb",
    "lifetime_basis",
    "drive_writes_per_day",
    "years",
    "read_retries_at_end_of_life",
    "host_limited",
    "hit_rate",
    "slow_write_amplification",
    "fast_drive_writes_per_day",
    "slow_drive_writes_per_day",
];

/// The text of `sweep.csv`: the dimensions, what was measured, and why a point is infeasible.
///
/// # Errors
/// Fails if it cannot be written, which memory alone decides.
pub(super) fn csv(sweep: &Sweep) -> Result<String, Error> {
    let failed = |source: csv::Error| Error::new(Kind::Io, "writing a table").source(source);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let keys = sweep.dimensions.iter().map(|dimension| format!("swept {}", dimension.key));
    let head = keys.chain(COLUMNS.map(str::to_owned)).chain(["infeasible".to_owned()]);
    writer.write_record(head).map_err(failed)?;
    for point in &sweep.points {
        writer.write_record(row(point)).map_err(failed)?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| Error::new(Kind::Io, "writing a table").source(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn row(point: &Point) -> Vec<String> {
    let at = point.at.iter().map(ToString::to_string);
    let (cells, reason) = match &point.outcome {
        PointOutcome::Measured(settled) => (cells(settled), String::new()),
        PointOutcome::Infeasible { reason } => (COLUMNS.map(|_| String::new()), reason.clone()),
    };
    at.chain(cells).chain([reason]).collect()
}

fn cells(settled: &SettledDrive) -> [String; COLUMNS.len()] {
    let shown = |number: Option<f64>| number.map_or_else(String::new, |it| it.to_string());
    let percentile =
        |latency_ns: Option<u64>| latency_ns.map_or_else(String::new, |it| it.to_string());
    let SettledDrive { latency, lifetime, .. } = settled;
    let basis = lifetime.map(|lifetime| match lifetime.basis {
        LifetimeBasis::Cycles => "cycles",
        LifetimeBasis::Rating => "rating",
    });
    [
        settled.user_capacity_gb.to_string(),
        shown(settled.over_provisioning_percent),
        settled.steady.to_string(),
        settled.iops.to_string(),
        settled.throughput_mb_s.to_string(),
        shown(latency.mean_ns()),
        percentile(latency.latency_ns_p50),
        percentile(latency.latency_ns_p99),
        percentile(latency.latency_ns_p999),
        percentile(latency.latency_ns_p9999),
        shown(settled.write_amplification),
        shown(lifetime.map(|lifetime| lifetime.host_writes_pb)),
        basis.unwrap_or_default().to_owned(),
        shown(lifetime.and_then(|lifetime| lifetime.drive_writes_per_day)),
        shown(lifetime.and_then(|lifetime| lifetime.years)),
        shown(lifetime.and_then(|lifetime| lifetime.read_retries_at_end_of_life)),
        settled.host_limited.to_string(),
        shown(settled.tier.and_then(|tier| tier.hit_rate)),
        shown(settled.tier.and_then(|tier| tier.slow_write_amplification)),
        shown(settled.tier.map(|tier| tier.fast_drive_writes_per_day)),
        shown(settled.tier.map(|tier| tier.slow_drive_writes_per_day)),
    ]
}
