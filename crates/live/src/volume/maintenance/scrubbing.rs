//! Scrubs of an open drive: at once, periodically, or since reads found too much damage on a die,
//! none faster than is allowed.

use std::num::NonZeroU64;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::{LOOK_EVERY, Wishes, WorkSignal, tell};
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
        // The last pause may have been cut short by another rate.
        let begun = self.begun.min(now);
        // Nothing takes longer than can be told.
        let next = Duration::try_from_secs_f64(span)
            .map_or(Duration::MAX, |span| begun.saturating_add(span));
        (self.begun, self.bytes_read) = (next.max(now), bytes_read);
        next.saturating_sub(now)
    }
}

/// Scrubs at once, and rests as long as it works. One that the volume began by itself ends as soon
/// as a die goes away: it is a spare's turn then, and the scrub begins again once all are there.
pub(super) fn scrub_now(drive: &Drive, rest: &WorkSignal, told: &Sender<()>, wanted: WantedScrub) {
    let (clock, mut pace) = (Instant::now(), ScrubPace::default());
    let (mut worked_since, mut units_bad_before) = (clock, 0);
    let is_ordered = wanted.for_die.is_none();
    // Its status says how it went.
    let _ = drive.scrub_for(wanted.for_die, true, |_, _| {
        tell(told);
        let (bytes_read, units_bad) = drive.scrub_progress();
        let rate = rest.wishes().scrub_rate;
        let allowed = pace.pause(clock.elapsed(), bytes_read, rate);
        let goes_on = rest.pause_at_rate(rate, allowed.max(worked_since.elapsed()));
        worked_since = Instant::now();
        let has_found = std::mem::replace(&mut units_bad_before, units_bad) < units_bad;
        goes_on && (is_ordered || drive.is_settled() && (!has_found || drive.all_dies_respond()))
    });
    if !is_ordered && !is_in_order(drive) {
        rest.wish(|wishes| wishes.damage_scrub_begun = None);
    }
}

/// Scrubs again and again, each time spread over the period that is wished for, until the
/// maintenance ends.
pub(super) fn scrub_periodically(drive: &Drive, rest: &WorkSignal, told: &Sender<()>) {
    loop {
        let Some(turn) = rest.scrub_turn() else {
            tell(told);
            if rest.pause(LOOK_EVERY) {
                continue;
            }
            return;
        };
        let (begun, mut pace) = (Instant::now(), ScrubPace::default());
        if let Some(wanted) = rest.take_up_scrub() {
            scrub_now(drive, rest, told, wanted);
        } else {
            // Its status says how it went.
            let _ = drive.scrub_while(true, |done, all| {
                tell(told);
                let share = done as f64 / all.max(1) as f64;
                let now = begun.elapsed();
                let (bytes_read, _) = drive.scrub_progress();
                let rate = rest.wishes().scrub_rate;
                let allowed = now.saturating_add(pace.pause(now, bytes_read, rate));
                let left = |wishes: &Wishes| {
                    let allowed = if wishes.scrub_rate == rate { allowed } else { now };
                    wishes.period.mul_f64(share).max(allowed).saturating_sub(begun.elapsed())
                };
                let wishes = rest.wait(left);
                !wishes.is_over && wishes.wanted_scrub.is_none()
            });
        }
        drop(turn);
        if rest.wait(|wishes| wishes.period.saturating_sub(begun.elapsed())).is_over {
            return;
        }
    }
}

/// Scrubs, once a day at most, when reads find too much damage on a die: where they found it there
/// is more that no read sees until a further die fails, parity for example.
pub(super) fn scrub_damaged(drive: &Drive, rest: &WorkSignal, told: &Sender<()>) {
    tell(told);
    while rest.pause(LOOK_EVERY) {
        let Some(wanted) = damage_scrub(drive, rest) else { continue };
        if rest.wishes().is_scheduled {
            rest.wish(|wishes| wishes.wanted_scrub = Some(wanted));
        } else if let Some(_turn) = rest.scrub_turn() {
            scrub_now(drive, rest, told, wanted);
        } else {
            // The one that is under way may have passed the damage.
            rest.wish(|wishes| wishes.damage_scrub_begun = None);
        }
    }
}

/// True if nothing but damage can be wrong with any die.
fn is_in_order(drive: &Drive) -> bool {
    drive.is_settled() && drive.all_dies_respond()
}

/// The scrub that is due since reads found too much damage, which then counts as begun. None while
/// a die is missed or does not respond: that one has no damage to be found, but is to be replaced.
fn damage_scrub(drive: &Drive, rest: &WorkSignal) -> Option<WantedScrub> {
    let Wishes { wanted_scrub, damage_scrub_begun, .. } = *rest.wishes();
    let is_too_soon = damage_scrub_begun.is_some_and(|at| at.elapsed() < DAMAGE_SCRUB_EVERY);
    if wanted_scrub.is_some() || is_too_soon {
        return None;
    }
    let die = drive.die_over_damage_limit()?;
    is_in_order(drive).then(|| {
        rest.wish(|wishes| wishes.damage_scrub_begun = Some(Instant::now()));
        WantedScrub { for_die: Some(die) }
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt as _;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::Contents;
    use crate::volume::example::three_dies;
    use crate::volume::folder::Replacement;
    use crate::volume::maintenance::Maintenance;
    use device::{Device as _, Durability};
    use status::{MaintenanceStatus, ProblemKind};

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
                let (read, _) = drive.scrub_progress();
                now += pace.pause(now, read, NonZeroU64::new(rate));
                reads.push((now, read));
                // A die hangs once.
                now += if done == 3 { Duration::from_secs(5) } else { Duration::from_millis(1) };
                true
            })
            .unwrap();
        let (total, _) = drive.scrub_progress();
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

    /// Has a bit of each row rot on a die, where no read of the first pages sees all of it; returns
    /// how many.
    fn rot(folder: &Path, drive: &Drive, die: usize) -> u64 {
        // Everything is on the media then.
        drive.scrub(true).unwrap();
        let medium = File::options().write(true).open(&three_dies(folder).dies[die]).unwrap();
        let (core, layout) = (drive.core().unwrap(), &drive.store().layout);
        let rot = |(row, _)| {
            let at = layout.unit_from(row) + layout.extent_from(0).unwrap() as u64 + 132;
            medium.write_all_at(&[0xA7], at).unwrap();
        };
        core.rows.held().map(rot).count() as u64
    }

    fn read_pages(drive: &Drive, pages: u64) {
        let mut found = vec![0; usize::try_from(pages * 4096).unwrap()];
        drive.read(0, &mut found).unwrap();
        assert!(found.iter().all(|byte| *byte == 7), "it is as it was written");
    }

    fn wait_until(drive: &Drive, is_so: impl Fn(&MaintenanceStatus) -> bool) -> MaintenanceStatus {
        let begun = Instant::now();
        loop {
            let status = drive.status().maintenance;
            if is_so(&status) {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_mins(2), "it never was: {status:?}");
            std::thread::yield_now();
        }
    }

    /// Reads see some of the damage: the rest is of parity, or of pages that are not read.
    #[test]
    fn too_much_damage_of_a_die_has_everything_scrubbed_and_any_other_die_may_go() {
        let (folder, drive) = drive_with_rows();
        let rows = rot(folder.path(), &drive, 1);
        let maintenance = Maintenance::new(folder.path(), Arc::clone(&drive));
        drive.limit_damage(1);
        maintenance.keep_redundant().unwrap();
        read_pages(&drive, drive.size() / 4096 / 2);
        let status = wait_until(&drive, |it| it.scrubs.ended > 1);
        let scrub = status.scrub.unwrap();
        assert_eq!((status.scrubs.for_damage, scrub.for_die), (1, Some(1)));
        let restored = scrub.units_restored + status.units_mended;
        assert_eq!(restored, rows, "{scrub:?}, {} of {rows} mended", status.units_mended);
        assert!(damage_scrub(&drive, &maintenance.rest).is_none(), "one a day is enough");
        maintenance.stop();
        drive.fail_die(2).unwrap();
        read_pages(&drive, drive.size() / 4096);
    }

    /// A die that fails reads is a matter of spares. Nothing was read of it that could be rotten.
    #[test]
    fn a_die_that_does_not_respond_has_no_damage_and_nothing_is_scrubbed_for_it() {
        let (folder, drive) = drive_with_rows();
        drive.scrub(true).unwrap();
        drive.limit_damage(0);
        let path = &three_dies(folder.path()).dies[1];
        let away = folder.path().join("away");
        fs::copy(path, &away).unwrap();
        let empty = || File::options().write(true).open(path).unwrap().set_len(0).unwrap();
        empty();
        read_pages(&drive, drive.size() / 4096);
        let die = &drive.status().dies[1];
        assert!(die.reconstructed_reads > 0 && die.failures > 0, "parity answered: {die:?}");
        assert_eq!((die.damaged_places, die.rows_suspect), (0, 0));
        let rest = WorkSignal::default();
        assert!(damage_scrub(&drive, &rest).is_none());

        // It responds again, and some of it is rotten; then it is gone once more.
        fs::copy(&away, path).unwrap();
        rot(folder.path(), &drive, 1);
        read_pages(&drive, drive.size() / 4096);
        fs::copy(path, &away).unwrap();
        empty();
        assert!(drive.die_over_damage_limit().is_some() && damage_scrub(&drive, &rest).is_none());
        fs::copy(&away, path).unwrap();
        drive.fail_die(2).unwrap();
        assert!(damage_scrub(&drive, &rest).is_none(), "redundancy comes first");
    }

    #[test]
    fn a_scrub_that_the_volume_began_ends_when_a_die_goes_away_and_begins_again_later() {
        let (folder, drive) = drive_with_rows();
        rot(folder.path(), &drive, 1);
        drive.limit_damage(0);
        read_pages(&drive, drive.size() / 4096);
        let maintenance = Maintenance::new(folder.path(), Arc::clone(&drive));
        maintenance.limit_scrubs(NonZeroU64::new(1));
        let wanted = damage_scrub(&drive, &maintenance.rest).unwrap();
        maintenance
            .begin("scrub", move |drive, rest, told| scrub_now(drive, rest, told, wanted))
            .unwrap();
        wait_until(&drive, |it| it.scrub.as_ref().is_some_and(|scrub| scrub.bytes_read > 0));
        drive.fail_die(2).unwrap();
        maintenance.limit_scrubs(None);
        let status = wait_until(&drive, |it| it.scrub.as_ref().is_some_and(|it| !it.is_running));
        let scrub = status.scrub.unwrap();
        assert!(scrub.was_stopped && scrub.rows_done < scrub.rows, "{scrub:?}");
        let health = drive.status().health;
        assert!(health.problems.iter().all(|it| it.kind != ProblemKind::Scrub), "{health:?}");
        maintenance.stop();
        assert!(damage_scrub(&drive, &maintenance.rest).is_none(), "a die is missed");
        let (volume, new) = (three_dies(folder.path()).volume, folder.path().join("new.img"));
        let replacement = Replacement::prepare(&volume, &drive, 2, &new, Contents::Kept).unwrap();
        replacement.carry_out(&drive, |_, _| true).unwrap();
        assert_eq!(damage_scrub(&drive, &maintenance.rest).unwrap().for_die, Some(1));
    }

    #[test]
    fn a_scrub_waits_for_its_rate_and_ends_when_maintenance_ends() {
        let (folder, drive) = drive_with_rows();
        let maintenance = Maintenance::new(folder.path(), Arc::clone(&drive));
        maintenance.limit_scrubs(NonZeroU64::new(1));
        maintenance.scrub().unwrap();
        let is_begun =
            |it: &MaintenanceStatus| it.scrub.as_ref().is_some_and(|it| it.bytes_read > 0);
        let row_bytes = wait_until(&drive, is_begun).scrub.unwrap().bytes_read;
        let refused = maintenance.scrub().unwrap_err().to_string();
        assert!(refused.contains("under way"), "{refused}");
        maintenance.stop();
        let scrub = drive.status().maintenance.scrub.unwrap();
        assert!(scrub.was_stopped && scrub.bytes_read == row_bytes, "{scrub:?}");
    }
}
