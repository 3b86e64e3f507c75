//! Requests to media without a map: media that is written in place, hard disks, and classes.

use blockio::{Nanos, Op};

use super::{Drive, Progress};
use crate::event::{Event, Lane};
use crate::in_place::Copying;
use crate::module::Extent;

impl Drive {
    /// Carries out a request on media that is written in place, on a disk, or on two classes.
    pub(super) fn access(
        &mut self,
        slot: u32,
        (op, extent): (Op, Extent),
        progress: &mut Progress,
        device: usize,
    ) {
        if self.classes.is_some() {
            self.access_classes(slot, (op, extent), progress);
        } else if self.disks.is_empty() {
            if extent.sectors > 0 && op != Op::Flush {
                self.access_in_place(op, extent, progress, device);
            }
        } else if op == Op::Flush {
            self.flush_disks(slot, progress, device);
        } else if extent.sectors > 0 {
            self.access_disks(slot, (op, extent), progress, device);
        }
    }

    /// Carries out a request to media that is written in place: its end is known at once.
    fn access_in_place(&mut self, op: Op, extent: Extent, progress: &mut Progress, device: usize) {
        let copied_at = progress.done_at;
        let begins_at = copied_at.saturating_sub(self.host.copying(extent.sectors));
        let begins_at = self.carry_in(op, extent, begins_at, device);
        let copying = Copying { begins_at, ends_at: copied_at.max(begins_at) };
        let (link, modules) = (&mut self.links[device], &mut self.in_place);
        progress.done_at = copying.ends_at;
        self.stripe.split(extent, |module, extent| {
            let done_at = match op {
                Op::Read => modules[module].read(copying, extent),
                Op::Write => modules[module].write(copying, extent),
                Op::Trim | Op::Flush => modules[module].trim(copying.ends_at),
            };
            progress.done_at = progress.done_at.max(done_at);
        });
        if op == Op::Read {
            self.carried.read += u64::from(extent.sectors);
            progress.done_at = link.read(progress.done_at, extent.sectors);
        }
    }

    /// Books the link for written data. Returns the time at which the drive has it.
    fn carry_in(&mut self, op: Op, extent: Extent, at: Nanos, device: usize) -> Nanos {
        if op != Op::Write {
            return at;
        }
        self.carried.written += u64::from(extent.sectors);
        self.links[device].write(at, extent.sectors)
    }

    /// Carries out a request to disks: the end of what memory serves is known at once, that of the
    /// rest once an arm has served it.
    fn access_disks(
        &mut self,
        slot: u32,
        (op, extent): (Op, Extent),
        progress: &mut Progress,
        device: usize,
    ) {
        let at = self.carry_in(op, extent, progress.done_at, device);
        progress.done_at = at;
        let (disks, events) = (&mut self.disks, &mut self.events);
        self.stripe.split(extent, |module, extent| match op {
            Op::Read => {
                progress.parts += 1;
                if let Some(ready_at) = disks[module].read(at, extent, slot, events) {
                    let pages = extent.sectors.div_ceil(8);
                    events.push(ready_at, Event::Answered { slot, pages });
                }
            }
            Op::Write => match disks[module].write(at, extent, slot, events) {
                Some(done_at) => progress.done_at = progress.done_at.max(done_at),
                None => progress.parts += 1,
            },
            Op::Trim | Op::Flush => {
                progress.done_at = progress.done_at.max(disks[module].trim(at));
            }
        });
    }

    /// Flushes every disk of a device: done once no earlier write is in a cache.
    fn flush_disks(&mut self, slot: u32, progress: &mut Progress, device: usize) {
        let at = progress.done_at;
        let of_device = self.modules_per_device * device..self.modules_per_device * (device + 1);
        for disk in &mut self.disks[of_device] {
            match disk.flush(at, slot) {
                Some(done_at) => progress.done_at = progress.done_at.max(done_at),
                None => progress.parts += 1,
            }
        }
    }

    /// The arm of a disk has its turn.
    pub(super) fn turn_of_arm(&mut self, at: Nanos, disk: u16) {
        let mut acknowledged = Vec::new();
        self.disks[usize::from(disk)].step(at, &mut self.events, |slot, done_at| {
            acknowledged.push((slot, done_at));
        });
        let (in_flight, events) = (&mut self.in_flight, &mut self.events);
        for (slot, done_at) in acknowledged {
            debug_assert!(done_at >= at, "what waits for an arm is done once it is there");
            in_flight[slot as usize].part_done(Lane::Link, slot, done_at, events);
        }
    }
}
