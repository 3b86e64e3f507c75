//! Work that goes on beside the host's commands: scrubs and purges, with damage to one die, cuts of
//! the power and a host without room in between.

use device::{Device as _, DeviceError};

use super::{Beside, Run, Stop};
use crate::Drive;
use crate::format::layout::{Layout, PAGE_BYTES};

impl Run {
    /// Lets something happen beside the next command, now and then; returns the result if that
    /// takes the place of the command.
    pub(super) fn happen_beside(&mut self, drive: &Drive) -> Option<Result<(), Stop>> {
        match self.beside.below(900) {
            0..3 => Some(self.scrub(drive)),
            3 => {
                self.fill_host();
                None
            }
            4..24 if self.is_spoilt => {
                self.spoil();
                None
            }
            _ => None,
        }
    }

    /// Has the host find no room for rows soon.
    fn fill_host(&mut self) {
        let layout = Layout::new(&self.shape);
        let rows = layout.unit_from(0)..layout.die_bytes();
        self.disks.fill_host(rows, self.beside.below(12));
    }

    /// The host had no room: where a flush goes on to succeed, what is there now is durable.
    pub(super) fn check_full_host(&mut self, drive: &Drive) -> Result<(), String> {
        let is_full = self.disks.is_host_full() && !self.disks.is_cut();
        if is_full && drive.flush().is_ok() { self.verify(drive) } else { Ok(()) }
    }

    /// The host has room again, or not before the drive has been opened.
    pub(super) fn free_host(&mut self) {
        if self.disks.free_host() {
            self.tally.hosts_full += 1;
            if self.beside.below(3) == 0 {
                self.fill_host();
            }
        }
    }

    /// Flips a bit of what rows hold on the die that does wrong, or makes some of it unreadable.
    fn spoil(&mut self) {
        let Some(die) = self.wrong_die else { return };
        let layout = Layout::new(&self.shape);
        let (from, length) = (layout.unit_from(0), layout.die_bytes() - layout.unit_from(0));
        let mut byte = || usize::try_from(from + self.beside.below(length)).expect("an index");
        let (at, bytes) = (byte(), 1 + byte() % (2 * PAGE_BYTES));
        if self.beside.below(4) == 0 {
            self.disks.make_unreadable(die, at..at + bytes);
        } else {
            self.disks.flip(die, at, 1 << self.beside.below(8));
        }
        self.tally.spoilt += 1;
    }

    /// Verifies all rows while the host goes on: nothing is lost by it, nor was anything before.
    fn scrub(&mut self, drive: &Drive) -> Result<(), Stop> {
        let may_silence = self.wrong_die.is_none() && self.beside.below(3) == 0;
        let mut beside = Beside { may_silence, ..Beside::default() };
        let rows = u64::from(self.shape.rows_total());
        let mut seen = 0;
        let scrubbed = drive.scrub_while(true, |row, _| {
            seen = row + 1;
            if self.is_spoilt && self.beside.below(64) == 0 {
                self.spoil();
            }
            self.goes_on_beside(drive, &mut beside)
        });
        self.disks.fail_reads(0);
        match (beside.stop, scrubbed) {
            (Some(stop), _) => Err(stop),
            (None, Ok(found)) if !found.lost_lbas.is_empty() => {
                Err(Stop::Broken(format!("a scrub calls sectors {:?} lost", found.lost_lbas)))
            }
            (None, Err(DeviceError::Transient { .. })) if beside.was_silent => {
                self.tally.failed_in_outages += 1;
                Ok(())
            }
            (None, done) => {
                self.tally.scrubbed += u64::from(done.is_ok() && seen == rows);
                self.outcome(done.map(|_| ()))
            }
        }
    }

    /// Everything is forgotten, durably before the first superblock is erased; the host writes
    /// beside that.
    pub(super) fn purge(&mut self, drive: &Drive) -> Result<(), Stop> {
        let all = self.history.sectors();
        self.history.trim(0, all);
        let (mut beside, mut is_forgotten) = (Beside::default(), false);
        let purged = drive.purge_while(|_, _| {
            if !std::mem::replace(&mut is_forgotten, true) {
                self.history.settle(0, all);
            }
            self.goes_on_beside(drive, &mut beside)
        });
        self.tally.reformatted += 1;
        beside.stop.map_or_else(|| self.outcome(purged), Err)
    }
}
