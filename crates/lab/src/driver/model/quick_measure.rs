//! A short look at a drive, where a protocol would look for hours.
//!
//! A drive that is already in its state needs no preconditioning: it is aged in no time, put behind
//! the timing in question, loaded until queues and buffers are full, and measured for a moment.

use blockio::{Nanos, Op};
use results::Interval;
use ssd::{Drive, WarmedRequests};

use super::Pressure as _;
use super::closed::ClosedLoop;
use super::feed::Feed;
use super::meter::Meter;
use super::space::exhausted_by_fill;
use crate::Error;
use crate::driver::Load;

/// Length of a short measurement, in requests and bytes.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Requests at least, of the look itself and as much again before it.
    pub requests_min: u64,
    /// Requests at most.
    pub requests_max: u64,
    /// Bytes written at least, where anything is.
    pub written_min: u64,
}

/// Asks whether to stop; what is measured after it said so is no result.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);
/// Requests between two questions.
const STOP_CHECK_REQUESTS: u64 = 4096;

/// Measures an idle `drive` under `load` at once; the ramp before it is half as long.
///
/// # Errors
/// Fails if the drive is too small for the load, or a request failed.
pub fn brief(
    drive: &mut Drive,
    load: &Load<'_>,
    span: Span,
    stop: Stop<'_>,
) -> Result<Interval, Error> {
    let feeds = Feed::of_all(load, drive)?;
    let mut closed = ClosedLoop::start(drive, feeds, load, Nanos::ZERO);
    let outstanding = u64::from(load.threads) * u64::from(load.queue_per_thread);
    let half = Span {
        requests_min: span.requests_min / 2 + outstanding,
        requests_max: span.requests_max / 2 + outstanding,
        written_min: span.written_min / 2,
    };
    let mut ramp = Meter::new(closed.drive(), Nanos::ZERO);
    let began = run(&mut closed, half, &mut ramp, stop)?;
    let mut meter = Meter::new(closed.drive(), began);
    let ended = run(&mut closed, span, &mut meter, stop)?;
    Ok(meter.cut(closed.drive(), ended.max(began + Nanos(1)), 0.0))
}

/// Keeps the load up for `span`; returns the time of its end.
fn run(
    closed: &mut ClosedLoop<'_>,
    span: Span,
    meter: &mut Meter,
    stop: Stop<'_>,
) -> Result<Nanos, Error> {
    let (mut requests, mut written, mut at) = (0, 0, Nanos::ZERO);
    while requests < span.requests_max {
        let Some(done) = closed.answer_one(meter)? else { break };
        at = at.max(done.completed_at);
        requests += 1;
        if requests % STOP_CHECK_REQUESTS == 0 && stop() {
            break;
        }
        if done.op == Op::Write {
            written += u64::from(done.sectors) * blockio::SECTOR_BYTES;
        }
        if requests >= span.requests_min && (written == 0 || written >= span.written_min) {
            break;
        }
    }
    Ok(at)
}

/// Host pages after which ageing looks whether write amplification still changes, as a share of
/// the drive.
const ROUND: f64 = 0.25;
/// Rounds of a window of the steady state, and by how much they may differ.
const WINDOW: usize = 4;
const DIFFERENCE_MAX: f64 = 0.04;
/// The drive is written this often over at least, and at most.
const TIMES_MIN: f64 = 2.0;
const TIMES_MAX: f64 = 8.0;

/// Ages `drive` with the writes of `load`, in no time, until write amplification holds still.
///
/// # Errors
/// Fails if the drive is too small for the load, or has too little flash for its data.
pub fn settle(drive: &mut Drive, load: &Load<'_>, stop: Stop<'_>) -> Result<(), Error> {
    let sectors = drive.user_sectors();
    let mut feeds = Feed::of_all(load, drive)?;
    if load.workload.only_reads() {
        return Ok(());
    }
    let share = load.workload.footprint_percent / 100.0;
    let round_bytes = (sectors * blockio::SECTOR_BYTES) as f64 * share * ROUND;
    let mut amplifications: Vec<f64> = Vec::new();
    while (amplifications.len() as f64) * ROUND < TIMES_MAX && !stop() {
        let before = drive.counters();
        age(drive, &mut feeds, round_bytes, stop)?;
        let after = drive.counters();
        let pages = (after.pages_host - before.pages_host).max(1) as f64;
        let moved = (after.pages_relocation - before.pages_relocation) as f64;
        amplifications.push(1.0 + moved / pages);
        if amplifications.len() as f64 * ROUND >= TIMES_MIN && is_steady(&amplifications) {
            break;
        }
    }
    Ok(())
}

/// Carries out the writes of `feeds` in no time until they amount to `bytes`.
fn age(drive: &mut Drive, feeds: &mut [Feed], bytes: f64, stop: Stop<'_>) -> Result<(), Error> {
    assert!(!feeds.is_empty(), "a load has threads");
    let (mut written, mut rounds) = (0.0, 0);
    while written < bytes {
        rounds += 1;
        if rounds % STOP_CHECK_REQUESTS == 0 && stop() {
            break;
        }
        for feed in &mut *feeds {
            let request = feed.request(0, drive);
            if request.op == Op::Write {
                if !drive.age_through(request.handle, request.lba, request.sectors) {
                    return Err(exhausted_by_fill());
                }
                written += f64::from(request.sectors) * blockio::SECTOR_BYTES as f64;
            }
        }
    }
    Ok(())
}

/// Does what the first `requests` requests of `load` do to the state of an idle `drive`, in no time
/// and without events.
///
/// # Errors
/// Fails if the drive is too small for the load, or has too little flash for its data.
pub fn warm(drive: &mut Drive, load: &Load<'_>, requests: u64) -> Result<WarmedRequests, Error> {
    let feeds = Feed::of_all(load, drive)?;
    ClosedLoop::idle(drive, feeds).warm(requests, 0.0)
}

/// Writes as much as all of `drive`, this often, with `load`, in no time.
///
/// # Errors
/// Fails if the drive is too small for the load, or has too little flash for its data.
pub fn overwrite(
    drive: &mut Drive,
    load: &Load<'_>,
    passes: u32,
    stop: Stop<'_>,
) -> Result<(), Error> {
    assert!(load.workload.only_writes(), "a fill reads nothing");
    let mut feeds = Feed::of_all(load, drive)?;
    let bytes = (drive.user_sectors() * blockio::SECTOR_BYTES) as f64 * f64::from(passes);
    age(drive, &mut feeds, bytes, stop)
}

fn is_steady(amplifications: &[f64]) -> bool {
    let window = &amplifications[amplifications.len().saturating_sub(WINDOW)..];
    let most = window.iter().copied().fold(f64::MIN, f64::max);
    let least = window.iter().copied().fold(f64::MAX, f64::min);
    window.len() == WINDOW && most - least <= DIFFERENCE_MAX * least
}

/// Writes all of `drive` once, in order, in no time.
///
/// # Errors
/// Fails if the drive offers more than it holds, and the data compresses too little for it.
pub fn fill(drive: &mut Drive) -> Result<(), Error> {
    const SECTORS: u32 = 256;
    let end = drive.user_sectors();
    let mut first = 0;
    while first < end {
        let sectors = u32::try_from(end - first).map_or(SECTORS, |left| left.min(SECTORS));
        if !drive.age(blockio::Lba(first), sectors) {
            return Err(exhausted_by_fill());
        }
        first += u64::from(sectors);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_offers_more_than_it_holds_is_not_filled_with_what_does_not_fit() {
        let spec = ssd::catalogue::find("csd-3000-6400").unwrap();
        let (format, host) = ("2x".to_owned(), spec.hosts().remove(0));
        let setup = ssd::Setup { format, host, time_lapse: 1024, seed: 1 };
        let mut drive = Drive::new(&spec, &setup).unwrap();
        drive.set_compressible(0.0);
        let error = fill(&mut drive).unwrap_err();
        assert!(error.to_string().starts_with("while it was filled the drive was out of"));
        let mut drive = Drive::new(&spec, &setup).unwrap();
        drive.set_compressible(60.0);
        fill(&mut drive).unwrap();
    }

    #[test]
    fn write_amplification_holds_still_over_a_whole_window_or_not_at_all() {
        assert!(!is_steady(&[]));
        assert!(!is_steady(&[2.0, 2.0, 2.0]), "three rounds are no window");
        assert!(is_steady(&[2.0, 2.0, 2.0, 2.0]));
        assert!(is_steady(&[9.0, 2.0, 2.03, 2.07, 2.05]), "what was before does not count");
        assert!(!is_steady(&[2.0, 2.0, 2.0, 2.1]), "5 % apart");
    }
}
