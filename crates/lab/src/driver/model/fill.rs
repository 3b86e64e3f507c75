//! Writing everything once, in order, or as much at random, without measuring.

use blockio::{Nanos, SECTOR_BYTES, Status};
use ssd::Drive;

use super::feed::Feed;
use super::pressure::failed;
use crate::Error;
use crate::driver::{Fill, Load, Watch};

/// Requests that a fill keeps outstanding on each device.
const OUTSTANDING: u16 = 32;
/// Requests between two looks at whether to stop.
const STOP_CHECK_REQUESTS: u64 = 4096;

/// Writes as much as all of `drive` with the fill's workload from `at` on, devices of a group side
/// by side.
///
/// Returns when the last of it completed; less is written when it was told to stop.
///
/// # Errors
/// Fails if the drive is too small for the workload, or a request failed.
pub(super) fn fill(
    drive: &mut Drive,
    fill: &Fill<'_>,
    at: Nanos,
    watch: &mut dyn Watch,
) -> Result<Nanos, Error> {
    let mut feeds = Feed::of_all(&load(fill), drive)?;
    let device_bytes = drive.user_sectors() * SECTOR_BYTES / drive.devices() as u64;
    let requests = requests(device_bytes, fill.workload.mean_bytes());
    let total = requests * feeds.len() as u64;
    let mut left: Vec<u64> = vec![requests; feeds.len()];
    for (feed, left) in feeds.iter_mut().zip(&mut left) {
        for tag in 0..u32::from(OUTSTANDING) {
            if *left > 0 {
                drive.submit(at, feed.request(tag, drive));
                *left -= 1;
            }
        }
    }
    let (mut completed, mut ended_at) = (0, at);
    while let Some(done) = drive.next_completion(Nanos::MAX) {
        if done.status != Status::Ok {
            return Err(failed(&done, drive.time_lapse()));
        }
        ended_at = ended_at.max(done.completed_at);
        completed += 1;
        if completed % STOP_CHECK_REQUESTS == 0 {
            watch.progress(completed as f64 / total as f64, "filling");
            if watch.stop() {
                left.fill(0);
            }
        }
        let thread = usize::from(done.thread);
        if left[thread] > 0 {
            drive.submit(done.completed_at, feeds[thread].request(done.tag, drive));
            left[thread] -= 1;
        }
    }
    Ok(ended_at)
}

/// Whole requests of `size` bytes in `bytes`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count")]
fn requests(bytes: u64, size: f64) -> u64 {
    (bytes as f64 / size) as u64
}

/// Load of a fill: one job for each device.
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
        replay: None,
        seed: 0,
    }
}
