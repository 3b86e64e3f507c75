//! Writing everything once, in order, without measuring.

use blockio::{Nanos, SECTOR_BYTES, Status};
use ssd::Drive;

use super::failed;
use super::feed::Feed;
use crate::Error;
use crate::driver::{Fill, Load, Watch};

/// Requests that a fill keeps outstanding.
const OUTSTANDING: u16 = 32;
/// Requests between two looks at whether to stop.
const STOP_CHECK_REQUESTS: u64 = 4096;

/// Writes all of `drive` with the fill's workload, from `at` on. Returns when the last of it
/// completed; less is written when it was told to stop.
///
/// # Errors
/// When the drive is too small for the workload, or a request failed.
pub(super) fn fill(
    drive: &mut Drive,
    fill: &Fill<'_>,
    at: Nanos,
    watch: &mut dyn Watch,
) -> Result<Nanos, Error> {
    let mut feed = Feed::new(&load(fill), 0, drive.user_sectors())?;
    let bytes = fill.workload.mean_bytes();
    let mut left = requests(drive.user_sectors() * SECTOR_BYTES, bytes);
    let total = left;
    let (mut outstanding, mut ended_at) = (0, at);
    while left > 0 && outstanding < u32::from(OUTSTANDING) {
        drive.submit(at, feed.request(outstanding, drive));
        (outstanding, left) = (outstanding + 1, left - 1);
    }
    while let Some(done) = drive.next_completion(Nanos::MAX) {
        if done.status != Status::Ok {
            return Err(failed(&done));
        }
        ended_at = ended_at.max(done.completed_at);
        if left == 0 {
            continue;
        }
        drive.submit(done.completed_at, feed.request(done.tag, drive));
        left -= 1;
        if left.is_multiple_of(STOP_CHECK_REQUESTS) {
            watch.progress((total - left) as f64 / total as f64, "filling");
            if watch.stop() {
                left = 0;
            }
        }
    }
    Ok(ended_at)
}

/// Whole requests of `size` bytes in `bytes`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count")]
fn requests(bytes: u64, size: f64) -> u64 {
    (bytes as f64 / size) as u64
}

/// One job, however long it takes.
const fn load<'a>(fill: &Fill<'a>) -> Load<'a> {
    Load {
        step: fill.step,
        workload: fill.workload,
        threads: 1,
        queue_per_thread: OUTSTANDING,
        ramp_s: 0.0,
        duration_s: 0.0,
        interval_s: 0.0,
        rate: None,
        seed: 0,
    }
}
