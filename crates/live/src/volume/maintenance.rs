//! Maintenance of an open drive while its clients go on: it fills hot spares when dies fail,
//! replaces dies, and scrubs, each in a thread of its own that ends when the maintenance is
//! stopped.

mod scrubbing;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use status::UserCapacity;
use status::{AbsentDie, Writes};

use self::scrubbing::{WantedScrub, scrub_damaged, scrub_now, scrub_periodically};
use crate::lock::lock;
use crate::volume::damage_list;
use crate::volume::failing_reads::FailingReads;
use crate::volume::folder::Replacement;
use crate::volume::hot_spares::{SpareAttempts, add_spare, remove_spare};
use crate::volume::purge::{purge_volume, reformat_volume};
use crate::{Beyond, Contents, Drive, Namespaces, OpenError};

/// Interval of checks for failed dies, and pause after redundancy could not be restored or a hot
/// spare not be used.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Pause from one look to the next at whether anything was added to what is not durable. Between
/// two looks that find nothing new and the last write lie at most two.
const REST: Duration = Duration::from_millis(45);
/// Longest wait for a die that was not found when the drive was opened, while no client writes.
const ABSENCE_PATIENCE: Duration = Duration::from_mins(5);

/// Looks after a drive of a folder. Dropping it stops what is under way.
#[derive(Debug)]
pub struct Maintenance {
    volume: PathBuf,
    drive: Arc<Drive>,
    rest: Arc<WorkSignal>,
    work: Mutex<Vec<JoinHandle<()>>>,
}

/// Pauses that end early when there is something else to be done, or nothing more.
#[derive(Debug, Default)]
struct WorkSignal {
    wishes: Mutex<Wishes>,
    told: Condvar,
    /// True if a die is being filled.
    filling: Arc<AtomicBool>,
    /// True if a scrub is under way.
    scrubbing: Arc<AtomicBool>,
}

/// Permission to fill a die, or to scrub, which only one thread has at a time; given back when
/// dropped.
#[derive(Debug)]
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn of(is_taken: &Arc<AtomicBool>) -> Option<Self> {
        let was_taken = is_taken.swap(true, Ordering::AcqRel);
        (!was_taken).then(|| Self(Arc::clone(is_taken)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Wishes {
    /// True if all work is to end.
    is_over: bool,
    /// The scrub that is wanted now, whatever was planned.
    wanted_scrub: Option<WantedScrub>,
    /// True if scrubs run periodically.
    is_scheduled: bool,
    /// Time in which everything is to be scrubbed once.
    period: Duration,
    /// Bytes of the dies that scrubs read each second at most; none without a limit.
    scrub_rate: Option<NonZeroU64>,
    /// Time at which the last scrub was begun since reads found too much damage; none if it is to
    /// be begun again.
    damage_scrub_begun: Option<Instant>,
}

impl WorkSignal {
    /// Waits as long as `left` says for what is wished for, or until a scrub is wanted at once;
    /// says what is wished for.
    fn wait(&self, left: impl Fn(&Wishes) -> Duration) -> Wishes {
        let mut wishes = lock(&self.wishes);
        loop {
            let left = left(&wishes);
            if wishes.is_over || wishes.wanted_scrub.is_some() || left.is_zero() {
                return *wishes;
            }
            let waited = self.told.wait_timeout(wishes, left);
            wishes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes a pause of its own length; says whether to go on.
    fn pause(&self, pause: Duration) -> bool {
        let wishes = lock(&self.wishes);
        let waited = self.told.wait_timeout_while(wishes, pause, |wishes| !wishes.is_over);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    /// As [`WorkSignal::pause`], until another rate of scrubs is wished for.
    fn pause_at_rate(&self, rate: Option<NonZeroU64>, pause: Duration) -> bool {
        let wishes = lock(&self.wishes);
        let is_as_wished = |wishes: &mut Wishes| !wishes.is_over && wishes.scrub_rate == rate;
        let waited = self.told.wait_timeout_while(wishes, pause, is_as_wished);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    /// Leave to fill a die; none while another one is being filled.
    fn turn(&self) -> Option<Turn> {
        Turn::of(&self.filling)
    }

    /// Leave to scrub; none while another scrub is under way.
    fn scrub_turn(&self) -> Option<Turn> {
        Turn::of(&self.scrubbing)
    }

    fn wish(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut lock(&self.wishes));
        self.told.notify_all();
    }

    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        lock(&self.wishes)
    }

    /// Takes up the wish for a scrub, if there is one.
    fn take_up_scrub(&self) -> Option<WantedScrub> {
        self.wishes().wanted_scrub.take()
    }
}

impl Maintenance {
    /// Looks after the drive of a folder.
    pub fn new(volume: &Path, drive: Arc<Drive>) -> Self {
        Self { volume: volume.to_owned(), drive, rest: Arc::default(), work: Mutex::default() }
    }

    /// Goes on without a die.
    ///
    /// # Errors
    /// Fails if there is no such die, and as [`Drive::fail_die`].
    pub fn fail_die(&self, die: usize) -> Result<(), OpenError> {
        check_die(&self.drive, die)?;
        Ok(self.drive.fail_die(die)?)
    }

    /// Puts a new file, or a block device, in the place of a die that has failed, and begins to
    /// restore what belongs there; [`Drive::status`] says how far that is.
    ///
    /// # Errors
    /// Fails if the die has not failed, or the new one cannot take its place.
    pub fn replace_die(&self, die: usize, new: &Path, contents: Contents) -> Result<(), OpenError> {
        let Some(turn) = self.rest.turn() else {
            return Err(OpenError::refused("another die is being replaced; wait for it".into()));
        };
        let replacement = Replacement::prepare(&self.volume, &self.drive, die, new, contents)?;
        self.begin("rebuild", move |drive, rest, begun| {
            // Its status says how it went.
            let _ = replacement.carry_out(drive, |_, _| {
                tell(begun);
                rest.pause(Duration::ZERO)
            });
            drop(turn);
        })
    }

    /// Gives the drive a hot spare, as [`add_spare`] does.
    ///
    /// # Errors
    /// As [`add_spare`].
    pub fn add_spare(&self, new: &Path, contents: Contents) -> Result<(), OpenError> {
        add_spare(&self.volume, &self.drive, new, contents)
    }

    /// Takes a hot spare from the drive, as [`remove_spare`] does, and forgets that it could not be
    /// used.
    ///
    /// # Errors
    /// As [`remove_spare`].
    pub fn remove_spare(&self, spare: &Path) -> Result<(), OpenError> {
        let removed = remove_spare(&self.volume, spare)?.display().to_string();
        self.drive.maintenance().spare_failures.retain(|it| it.path != removed);
        Ok(())
    }

    /// From now on takes a die out of service that fails every read. When a die fails, fills a hot
    /// spare with what belongs there; where there is none, or none that can be used now, moves what
    /// lies in rows that lack a unit, as long as there is space, so that the volume tolerates
    /// another failure. Besides, pages that were found lost are made known durably within a second,
    /// and rows in which reads found damage are written again; where they found too much of it on a
    /// die, the volume is scrubbed, once a day at most.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub fn keep_redundant(&self) -> Result<(), OpenError> {
        let volume = self.volume.clone();
        self.begin("attendance", move |drive, rest, told| {
            tell(told);
            let mut goes_on = true;
            while goes_on {
                goes_on = rest.pause(LOOK_EVERY);
                // What fails is tried again; that a die fails, or the drive, its status says.
                let _ = drive.attend();
                // Where the folder takes no file, the rest of the status tells what is wrong.
                let _ = damage_list::add(&volume, &drive.take_damage());
            }
        })?;
        self.begin("damage", scrub_damaged)?;
        let volume = self.volume.clone();
        self.begin("redundancy", move |drive, rest, told| {
            tell(told);
            let (mut pause, mut tried) = (LOOK_EVERY, SpareAttempts::default());
            let mut failing = FailingReads::default();
            let begun = Instant::now();
            while rest.pause(pause) {
                pause = LOOK_EVERY;
                failing.end(drive);
                if begun.elapsed() < ABSENCE_PATIENCE && is_waited_for(drive) {
                    continue;
                }
                if drive.lost_dies().is_empty() || is_spared(&volume, drive, rest, &mut tried) {
                    continue;
                }
                if !drive.is_redundant() {
                    // Its status says how it went.
                    let is_done = drive.restore_redundancy_while(|_, _| rest.pause(Duration::ZERO));
                    if !matches!(is_done, Ok(true)) {
                        pause = LOOK_AGAIN;
                    }
                }
            }
        })
    }

    /// From now on makes durable what was acknowledged from the write buffer once nothing is added
    /// for 100 ms, so that little is left there for a cut of the power.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub fn commit_at_rest(&self) -> Result<(), OpenError> {
        self.begin("rest", |drive, rest, told| {
            tell(told);
            let mut seen = 0;
            while rest.pause(REST) {
                // A drive that failed says so in its status.
                seen = drive.commit_at_rest(seen).unwrap_or(0);
            }
        })
    }

    /// Begins a scrub that repairs what it can, and takes no more than half of the time of one
    /// thread. One that is spread over a longer time is given up for it.
    ///
    /// # Errors
    /// Fails if one is under way.
    pub fn scrub(&self) -> Result<(), OpenError> {
        let wanted = WantedScrub::default();
        if self.rest.wishes().is_scheduled {
            self.rest.wish(|wishes| wishes.wanted_scrub = Some(wanted));
            return Ok(());
        }
        let Some(turn) = self.rest.scrub_turn() else {
            return Err(OpenError::refused("a scrub is under way; wait for it".to_owned()));
        };
        self.begin("scrub", move |drive, rest, told| {
            scrub_now(drive, rest, told, wanted);
            drop(turn);
        })
    }

    /// Has scrubs read no more of the dies than so many bytes each second, also those under way.
    pub fn limit_scrubs(&self, bytes_per_s: Option<NonZeroU64>) {
        self.rest.wish(|wishes| wishes.scrub_rate = bytes_per_s);
    }

    /// Scrubs again and again, each time spread evenly over `period`; where it does already, over
    /// that from now on.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub fn scrub_every(&self, period: Duration) -> Result<(), OpenError> {
        let mut was_scheduled = false;
        self.rest.wish(|wishes| {
            wishes.period = period;
            was_scheduled = std::mem::replace(&mut wishes.is_scheduled, true);
        });
        if was_scheduled { Ok(()) } else { self.begin("scrub", scrub_periodically) }
    }

    /// Begins to erase everything that is stored.
    ///
    /// # Errors
    /// Fails if that is under way already.
    pub fn purge(&self) -> Result<(), OpenError> {
        let volume = self.volume.clone();
        self.begin_purge(move |drive, go_on| {
            // Its status says how it went.
            let _ = purge_volume(&volume, drive, go_on);
        })
    }

    /// Begins to erase everything that is stored, after which clients have another capacity.
    ///
    /// # Errors
    /// Fails if something is being erased already, or the drive cannot have that capacity.
    pub fn format(&self, capacity: UserCapacity) -> Result<(), OpenError> {
        self.drive.check_capacity(capacity)?;
        Namespaces::allow(&self.volume, &self.drive, capacity)?;
        let volume = self.volume.clone();
        self.begin_purge(move |drive, go_on| {
            // Its status says how it went.
            let _ = reformat_volume(&volume, drive, capacity, go_on);
        })
    }

    /// Gives clients another size, keeping what is stored, unless what lies beyond the new end is
    /// to be lost.
    ///
    /// # Errors
    /// As [`Drive::resize`].
    pub fn resize(&self, bytes: u64, beyond: Beyond) -> Result<(), OpenError> {
        let capacity = UserCapacity::Bytes(bytes);
        Namespaces::allow(&self.volume, &self.drive, capacity)?;
        self.drive.resize(&self.drive.capacity_of(capacity), beyond)
    }

    fn begin_purge(
        &self,
        purge: impl FnOnce(&Drive, &mut dyn FnMut(u64, u64) -> bool) + Send + 'static,
    ) -> Result<(), OpenError> {
        if self.drive.status().maintenance.purge.is_some_and(|it| it.is_running) {
            return Err(OpenError::refused("a purge is under way; wait for it".to_owned()));
        }
        self.begin("purge", move |drive, rest, begun| {
            purge(drive, &mut |_, _| {
                tell(begun);
                rest.pause(Duration::ZERO)
            });
        })
    }

    /// Ends what is under way, and waits until it has.
    pub fn stop(&self) {
        self.rest.wish(|wishes| wishes.is_over = true);
        // A thread that begins work now does not wait for all that ends.
        let work = std::mem::take(&mut *lock(&self.work));
        for worker in work {
            // One that panicked is gone as well.
            let _ = worker.join();
        }
    }

    /// Has `work` done by a thread of its own; returns when it has told that it has begun, so that
    /// a client that asks how far it is does not hear of the work before it.
    fn begin(
        &self,
        name: &str,
        work: impl FnOnce(&Drive, &WorkSignal, &Sender<()>) + Send + 'static,
    ) -> Result<(), OpenError> {
        let (drive, rest) = (Arc::clone(&self.drive), Arc::clone(&self.rest));
        let (begun, begins) = mpsc::channel();
        let worker = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&drive, &rest, &begun))
            .map_err(|source| {
                OpenError::medium(&format!("starting a thread for a {name}"), source)
            })?;
        let mut workers = lock(&self.work);
        workers.retain(|worker| !worker.is_finished());
        workers.push(worker);
        drop(workers);
        // Work that ended before it began tells nothing.
        let _ = begins.recv();
        Ok(())
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Checks that a drive has a die of this number.
///
/// # Errors
/// Fails if it has not; says which it has.
pub fn check_die(drive: &Drive, die: usize) -> Result<(), OpenError> {
    let dies = drive.store().dies.count();
    if die < dies {
        return Ok(());
    }
    let what = format!("die {die} does not exist: the volume has {dies} dies, numbered from 0");
    Err(OpenError::refused(what))
}

/// True if a die that has failed was not found when the drive was opened, and no client has changed
/// anything since: its path may be wrong or not mounted yet, and neither a spare nor space is spent
/// on it before the owner had time to notice.
fn is_waited_for(drive: &Drive) -> bool {
    let lost = drive.lost_dies();
    let is_absent = |it: &AbsentDie| it.may_be_whole() && lost.contains(&(it.die as usize));
    let is_one_absent = drive.maintenance().absent_dies.iter().any(is_absent);
    let is_changed = |it: Writes| it.host_sent_bytes > 0 || it.trimmed_bytes > 0;
    is_one_absent && !drive.status().writes.is_some_and(is_changed)
}

/// Fills a hot spare with what belongs on a die that has failed; says whether there is nothing else
/// to be done now, since one was filled, is being, or was given up for the next one.
fn is_spared(volume: &Path, drive: &Drive, rest: &WorkSignal, tried: &mut SpareAttempts) -> bool {
    tried.forget(LOOK_AGAIN);
    if tried.next_spare(volume, &drive.lost_dies()).is_none() {
        return false;
    }
    let Some(_turn) = rest.turn() else { return true };
    tried.fill_spare(volume, drive, &|| rest.pause(Duration::ZERO))
}

/// Tells the thread that waits for the beginning; later none waits.
fn tell(begun: &Sender<()>) {
    let _ = begun.send(());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::example::three_dies;
    use device::{Device as _, Durability};

    #[test]
    fn a_write_that_is_not_flushed_is_committed_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let drive = Arc::new(Drive::create(&three_dies(folder.path())).unwrap());
        let maintenance = Maintenance::new(folder.path(), Arc::clone(&drive));
        drive.write(0, &[1; 4096], Durability::Volatile).unwrap();
        let metadata = || drive.status().writes.unwrap().metadata_bytes;
        let (before, begun) = (metadata(), Instant::now());
        maintenance.commit_at_rest().unwrap();
        while metadata() == before {
            assert!(begun.elapsed() < Duration::from_mins(1), "it was left in the buffer");
            thread::yield_now();
        }
    }

    #[test]
    fn a_die_that_was_not_found_is_waited_for_until_a_client_writes() {
        let folder = tempfile::tempdir().unwrap();
        let options = three_dies(folder.path());
        let drive = Drive::create(&options).unwrap();
        assert!(!is_waited_for(&drive));
        drive.close().unwrap();
        std::fs::rename(&options.dies[1], folder.path().join("elsewhere")).unwrap();
        let drive = Drive::open(&options.volume).unwrap();
        assert!(is_waited_for(&drive), "no client wrote");
        drive.write(0, &[1; 4096], Durability::Volatile).unwrap();
        assert!(!is_waited_for(&drive));
        drive.close().unwrap();
        // One that was left behind is at its path, and is no use.
        std::fs::rename(folder.path().join("elsewhere"), &options.dies[1]).unwrap();
        let drive = Drive::open(&options.volume).unwrap();
        assert_eq!(drive.lost_dies(), [1]);
        assert!(!is_waited_for(&drive));
    }
}
