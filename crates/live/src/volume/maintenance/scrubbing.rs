//! Scrubs of an open drive: at once, periodically, or since reads found too much damage on a die,
//! none faster than is allowed.

use std::num::NonZeroU64;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::{LOOK_EVERY, Rest, tell};
use crate::Drive;

/// Shortest time from one scrub that the volume begins by itself to the next.
const DAMAGE_SCRUB_EVERY: Duration = Duration::from_hours(24);

/// A scrub that is wanted at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WantedScrub {
    /// Die on which reads found too much damage; none where an operator wants it.
    for_die: Option<usize>,
}

/// Pace of a scrub that reads no more than so much a second. Times are those of its owner's clock.
///
/// A scrub that was slower for a while does not catch up.
#[derive(Debug, Default)]
struct ScrubPace {
    /// Time at which the last row began.
    begun: Duration,
    bytes_read: u64,
}

impl ScrubPace {
    /// The pause at `now` before the next row, where the scrub has read `bytes_read` and may read
    /// `bytes_per_s`.
    fn pause(
        &mut self,
        now: Duration,
        bytes_read: u64,
        bytes_per_s: Option<NonZeroU64>,
    ) -> Duration {
        let bytes = bytes_read - self.bytes_read;
        let span = bytes_per_s.map_or(0.0, |it| bytes as f64 / it.get() as f64);
        // Nothing takes longer than can be told.
        let next = Duration::try_from_secs_f64(span)
            .map_or(Duration::MAX, |span| self.begun.saturating_add(span));
        (self.begun, self.bytes_read) = (next.max(now), bytes_read);
        next.saturating_sub(now)
    }
}

/// Scrubs at once, and rests as long as it works.
pub(super) fn scrub_now(drive: &Drive, rest: &Rest, told: &Sender<()>, wanted: WantedScrub) {
    let (clock, mut pace) = (Instant::now(), ScrubPace::default());
    let mut worked_since = clock;
    // Its status says how it went.
    let _ = drive.scrub_for(wanted.for_die, true, |_, _| {
        tell(told);
        let allowed = pace.pause(clock.elapsed(), drive.scrub_bytes_read(), rest.scrub_rate());
        let goes_on = rest.pause(allowed.max(worked_since.elapsed()));
        worked_since = Instant::now();
        goes_on
    });
}

/// Scrubs again and again, each time spread over the period that is wished for, until the
/// maintenance ends.
pub(super) fn scrub_periodically(drive: &Drive, rest: &Rest, told: &Sender<()>) {
    loop {
        let (begun, mut pace) = (Instant::now(), ScrubPace::default());
        if let Some(wanted) = rest.take_up_scrub() {
            scrub_now(drive, rest, told, wanted);
        } else {
            // Its status says how it went.
            let _ = drive.scrub_while(true, |done, all| {
                tell(told);
                let share = done as f64 / all.max(1) as f64;
                let now = begun.elapsed();
                let allowed = now + pace.pause(now, drive.scrub_bytes_read(), rest.scrub_rate());
                let wishes = rest.wait(|period| {
                    period.mul_f64(share).max(allowed).saturating_sub(begun.elapsed())
                });
                !wishes.is_over && wishes.wanted_scrub.is_none()
            });
        }
        if rest.wait(|period| period.saturating_sub(begun.elapsed())).is_over {
            return;
        }
    }
}

/// Scrubs, once a day at most, when reads find too much damage on a die: where they found it there
/// is more that no read sees until a further die fails, parity for example.
pub(super) fn scrub_damaged(drive: &Drive, rest: &Rest, told: &Sender<()>) {
    tell(told);
    let mut last: Option<Instant> = None;
    while rest.pause(LOOK_EVERY) {
        let Some(die) = drive.die_over_damage_limit() else { continue };
        if last.is_some_and(|last| last.elapsed() < DAMAGE_SCRUB_EVERY) {
            continue;
        }
        let wanted = WantedScrub { for_die: Some(die) };
        if rest.wishes().is_scheduled {
            rest.wish(|wishes| wishes.wanted_scrub = Some(wanted));
        } else if drive.is_scrubbing() {
            continue;
        } else {
            scrub_now(drive, rest, told, wanted);
        }
        last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::sync::Arc;

    use super::*;
    use crate::volume::example::three_dies;
    use crate::volume::maintenance::Maintenance;
    use crate::{Device as _, Durability};

    /// A drive in which several rows hold data, and its folder.
    fn drive_with_rows() -> (tempfile::TempDir, Arc<Drive>) {
        let folder = tempfile::tempdir().unwrap();
        let drive = Arc::new(Drive::create(&three_dies(folder.path())).unwrap());
        let bytes = usize::try_from(drive.size()).unwrap();
        drive.write(0, &vec![7; bytes], Durability::Durable).unwrap();
        (folder, drive)
    }

    #[test]
    fn a_scrub_reads_no_more_than_its_rate_in_any_second_of_its_clock() {
        let (_folder, drive) = drive_with_rows();
        let rate = 1 << 20;
        let (mut now, mut pace) = (Duration::ZERO, ScrubPace::default());
        let mut reads: Vec<(Duration, u64)> = Vec::new();
        drive
            .scrub_while(true, |done, _| {
                let read = drive.scrub_bytes_read();
                now += pace.pause(now, read, NonZeroU64::new(rate));
                reads.push((now, read));
                // A die hangs once.
                now += if done == 3 { Duration::from_secs(5) } else { Duration::from_millis(1) };
                true
            })
            .unwrap();
        let total = drive.scrub_bytes_read();
        reads.push((now, total));
        let row_bytes = reads.iter().map(|(_, read)| *read).find(|read| *read > 0).unwrap();
        assert!(total > 3 * rate && row_bytes < rate, "{total} bytes, {row_bytes} a row");
        for (at, read) in &reads {
            let later = reads.iter().filter(|(then, _)| *then < *at + Duration::from_secs(1));
            let most = later.map(|(_, then)| then.saturating_sub(*read)).max().unwrap();
            assert!(most <= rate + row_bytes, "{most} bytes in the second from {at:?}");
        }
        let slowest = Duration::from_secs_f64(total as f64 / rate as f64) + Duration::from_secs(6);
        assert!(now <= slowest, "{now:?} for {total} bytes: it rests longer than it has to");
    }

    /// Reads see some of the damage: the rest is of parity, or of pages that are not read.
    #[test]
    fn too_much_damage_of_a_die_has_everything_scrubbed_and_any_other_die_may_go() {
        let (folder, drive) = drive_with_rows();
        let die = File::options().write(true).open(&three_dies(folder.path()).dies[1]).unwrap();
        // Everything is on the media then.
        drive.scrub(true).unwrap();
        let (layout, rows) = (&drive.store().layout, drive.core().unwrap().rows.held().count());
        for row in drive.core().unwrap().rows.held().map(|(row, _)| row) {
            let at = layout.unit_from(row) + layout.extent_from(0).unwrap() as u64 + 132;
            die.write_all_at(&[0xA7], at).unwrap();
        }
        let maintenance = Maintenance::new(folder.path(), Arc::clone(&drive));
        drive.limit_damage(1);
        maintenance.keep_redundant().unwrap();
        let read_all = |pages: u64| {
            let mut found = vec![0; usize::try_from(pages * 4096).unwrap()];
            drive.read(0, &mut found).unwrap();
            assert!(found.iter().all(|byte| *byte == 7), "it is as it was written");
        };
        read_all(drive.size() / 4096 / 2);
        let begun = Instant::now();
        let status = loop {
            let status = drive.status().maintenance;
            if status.scrubs.ended > 1 {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_mins(2), "no scrub came: {status:?}");
            std::thread::yield_now();
        };
        let scrub = status.scrub.unwrap();
        assert_eq!((status.scrubs.for_damage, scrub.for_die), (1, Some(1)));
        let restored = scrub.units_restored + status.units_mended;
        assert_eq!(restored, rows as u64, "{scrub:?}, {} of {rows} mended", status.units_mended);
        maintenance.stop();
        drive.fail_die(2).unwrap();
        read_all(drive.size() / 4096);
    }

    #[test]
    fn a_scrub_waits_for_its_rate_and_ends_when_maintenance_ends() {
        let (folder, drive) = drive_with_rows();
        let maintenance = Maintenance::new(folder.path(), Arc::clone(&drive));
        maintenance.limit_scrubs(NonZeroU64::new(1));
        maintenance.scrub().unwrap();
        while drive.scrub_bytes_read() == 0 {
            std::thread::yield_now();
        }
        let row_bytes = drive.scrub_bytes_read();
        maintenance.stop();
        let scrub = drive.status().maintenance.scrub.unwrap();
        assert!(scrub.was_stopped && scrub.bytes_read == row_bytes, "{scrub:?}");
    }
}
