//! Lifetime of a drive under a load.

use results::sweep::{Lifetime, LifetimeBasis, SettledDrive};
use ssd::DriveSpec;

const DAYS_A_YEAR: f64 = 365.25;
const GB_A_PB: f64 = 1e6;

/// The lifetime of `drive` when it settled as `settled`, written with `load_gb_per_day`.
///
/// All superblocks are taken to wear alike: drives have static wear levelling, whose moves are not
/// counted. Absent where nothing is known of its endurance, nothing was written, or the drive was
/// not in steady state: its write amplification still changes.
pub(super) fn lifetime(
    drive: &DriveSpec,
    settled: &SettledDrive,
    load_gb_per_day: Option<f64>,
) -> Option<Lifetime> {
    let endurance = drive.endurance.as_ref()?;
    let amplification = settled.write_amplification.filter(|_| settled.steady)?;
    let cycles = endurance.pe_cycles.map(|cycles| {
        let written_gb = f64::from(cycles) * settled.raw_capacity_gb / amplification;
        (LifetimeBasis::Cycles, written_gb / GB_A_PB)
    });
    let rating = endurance.rated_pb.map(|rated_pb| (LifetimeBasis::Rating, rated_pb));
    let (basis, host_writes_pb) = cycles.or(rating)?;
    let host_writes_gb = host_writes_pb * GB_A_PB;
    // A warranty ends at the maker's rating, whatever the flash would last.
    let warranted_pb = endurance.rated_pb.map_or(host_writes_pb, |pb| pb.min(host_writes_pb));
    let read_retries_at_end_of_life = drive.read_retry.as_ref().and_then(|retry| {
        let cycles = f64::from(endurance.pe_cycles?);
        Some(retry.steps_at(cycles, *retry.retention_days.last()?))
    });
    let per_day =
        |years: f64| warranted_pb * GB_A_PB / (years * DAYS_A_YEAR) / settled.user_capacity_gb;
    Some(Lifetime {
        basis,
        host_writes_pb,
        drive_writes_per_day: endurance.warranty_years.map(per_day),
        years: load_gb_per_day.map(|load| host_writes_gb / load / DAYS_A_YEAR),
        read_retries_at_end_of_life,
    })
}
