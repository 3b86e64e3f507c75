//! An outage: for a while some disks do not respond to reads, as when a cable or a path to storage
//! fails. Commands may fail meanwhile. Afterwards nothing is lost.

use device::{Device, DeviceError, Durability};

use super::{BYTES, Run, SECTOR_BYTES, Stop};
use crate::Drive;

impl Run {
    /// Carries out some commands while reads of some disks fail, and checks everything after that.
    pub(super) fn outage(&mut self, drive: &Drive) -> Result<(), Stop> {
        let disks = self.disks.media().len();
        let silent = 1 + self.outages.below((1 << disks) - 1);
        // A redundant drive does without one of its dies.
        let is_covered = self.is_honest && drive.is_redundant() && drive.lost_dies().is_empty();
        let may_fail = !(is_covered && silent.is_power_of_two());
        self.tally.outages += 1;
        self.disks.fail_reads(silent);
        let mut uncertain = vec![false; self.history.sectors()];
        let mut stop = Ok(());
        for _ in 0..=self.outages.below(60) {
            self.tally.operations += 1;
            // Some outages end in the middle of a command, and the next one begins with another.
            let reads = if self.outages.below(2) == 0 { u64::MAX } else { self.outages.below(30) };
            self.disks.fail_some_reads(silent, reads);
            stop = if self.outages.below(4) == 0 {
                self.read_in_outage(drive, may_fail, &uncertain)
            } else {
                self.write_in_outage(drive, may_fail, &mut uncertain)
            };
            if stop.is_err() {
                break;
            }
        }
        self.disks.fail_reads(0);
        stop?;
        let flushed = drive.flush();
        self.outcome(flushed)?;
        self.check_after_outage(drive, &uncertain)
    }

    /// Has reads of a disk fail for a while, or not, as the next row is restored or the next pages
    /// are moved; says whether it does.
    pub(super) fn silence_one(&mut self) -> bool {
        let is_silent = self.outages.below(8) == 0;
        let disk = self.outages.below(self.disks.media().len() as u64);
        let reads = 1 + self.outages.below(40);
        self.disks.fail_some_reads(if is_silent { 1 << disk } else { 0 }, reads);
        is_silent
    }

    fn read_in_outage(
        &mut self,
        drive: &Drive,
        may_fail: bool,
        uncertain: &[bool],
    ) -> Result<(), Stop> {
        let (first, count) = self.range();
        let mut bytes = vec![0; count * BYTES];
        match drive.read(first as u64 * SECTOR_BYTES, &mut bytes) {
            Ok(()) if uncertain[first..first + count].contains(&true) => Ok(()),
            Ok(()) => self.history.check_read(first, &bytes).map_err(Stop::Broken),
            Err(_) if may_fail && !self.disks.is_cut() => Ok(()),
            failed => self.outcome(failed),
        }
    }

    /// A write that fails may have been carried out, or part of it.
    fn write_in_outage(
        &mut self,
        drive: &Drive,
        may_fail: bool,
        uncertain: &mut [bool],
    ) -> Result<(), Stop> {
        let (first, count) = self.range();
        let durability =
            if self.outages.below(8) == 0 { Durability::Durable } else { Durability::Volatile };
        let bytes = self.history.write(first, count);
        match drive.write(first as u64 * SECTOR_BYTES, &bytes, durability) {
            Err(DeviceError::NoSpace { offset, .. }) => {
                self.cut_short(first, count, offset)?;
                let written = usize::try_from(offset / SECTOR_BYTES).expect("within the drive");
                uncertain[first..written.max(first)].fill(false);
                Ok(())
            }
            Err(_) if may_fail && !self.disks.is_cut() => {
                self.tally.failed_in_outages += 1;
                uncertain[first..first + count].fill(true);
                Ok(())
            }
            done => {
                uncertain[first..first + count].fill(false);
                self.settled(done, first, count, durability)
            }
        }
    }

    /// Checks all sectors, which are durable now.
    fn check_after_outage(&mut self, drive: &Drive, uncertain: &[bool]) -> Result<(), Stop> {
        let mut sector = [0; BYTES];
        for (first, uncertain) in uncertain.iter().enumerate() {
            let read = drive.read(first as u64 * SECTOR_BYTES, &mut sector);
            self.outcome(read)?;
            if *uncertain {
                self.history.check_recovered(first, &sector).map_err(Stop::Broken)?;
            } else {
                self.history.check_read(first, &sector).map_err(Stop::Broken)?;
                self.history.settle(first, 1);
            }
        }
        Ok(())
    }
}
