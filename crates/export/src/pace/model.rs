//! The modelled drive behind a pace: commands of clients, and when each of them completes.
//!
//! The model owns no clock and no thread. Its callers pass times, in any order: time advances to
//! the latest of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use blockio::{ClimateReading, Lba, Nanos, Op, Pacer, Request, SECTOR_BYTES};
use device::{Device, DeviceError};

use super::PacedCommand;

/// Step in which what a device stores is asked for.
const STEP_BYTES: u64 = 1 << 30;

/// A drive in virtual time, and the commands that it has.
pub(crate) struct Model {
    drive: Box<dyn Pacer>,
    /// The latest time that a caller passed.
    now: Nanos,
    /// Tickets given so far; the next one's number.
    tickets: u32,
    lanes: Vec<LaneState>,
    /// Commands that the drive has, by ticket.
    outstanding: BTreeMap<u32, CommandIssue>,
    /// Completed commands that are not due yet, the earliest on top.
    completed: BinaryHeap<Reverse<Due>>,
}

/// A command that a model is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    /// Time at which the reply is due: the issue and the latency in the model.
    pub(crate) at: Nanos,
    /// Ticket that its submission returned.
    pub(crate) ticket: u32,
    /// Lane that it was submitted on.
    pub(crate) lane: u16,
    /// Latency in the model.
    pub(crate) latency: Nanos,
}

/// Issue of a command.
#[derive(Clone, Copy)]
struct CommandIssue {
    /// Time at which its client had it.
    at: Nanos,
    /// Time at which the drive got it: later than `at` if another client's command was later and
    /// came first.
    submitted_at: Nanos,
    lane: u16,
}

#[derive(Clone, Copy, Default)]
struct LaneState {
    is_taken: bool,
    outstanding: u32,
}

impl Model {
    /// The model of a drive whose time begins at zero.
    pub(crate) fn new(drive: Box<dyn Pacer>) -> Self {
        Self {
            drive,
            now: Nanos::ZERO,
            tickets: 0,
            lanes: Vec::new(),
            outstanding: BTreeMap::new(),
            completed: BinaryHeap::new(),
        }
    }

    /// Fills the model with what `device` stores already, as if it had been written long ago.
    ///
    /// # Errors
    /// Fails if the device does not report its allocations.
    pub(crate) fn hold(&mut self, device: &dyn Device) -> Result<(), DeviceError> {
        assert_eq!(self.tickets, 0, "no client has asked for anything");
        let user_sectors = self.drive.user_sectors();
        let size = device.size();
        for step in 0..size.div_ceil(STEP_BYTES) {
            let from = step * STEP_BYTES;
            let mut offset = device.origin() + from;
            for run in device.allocations(from, STEP_BYTES.min(size - from))? {
                if run.is_stored {
                    let asked =
                        PacedCommand { op: Op::Write, offset, length: run.length, fua: false };
                    let (lba, sectors) = place(asked, user_sectors);
                    self.drive.age(lba, sectors);
                }
                offset += run.length;
            }
        }
        Ok(())
    }

    /// Power and heat at `now`, or at a later time that a caller passed; none where the drive file
    /// does not describe them.
    pub(crate) fn climate(&self, now: Nanos) -> Option<ClimateReading> {
        self.drive.climate(self.now.max(now))
    }

    /// A lane for one more client, a thread of the host to the model; none when 65536 are in use.
    pub(crate) fn take_lane(&mut self) -> Option<u16> {
        // One whose last client left requests behind is not free before the model is done with
        // them: they would be taken for those of the next.
        let is_free = |state: &LaneState| !state.is_taken && state.outstanding == 0;
        let index = self.lanes.iter().position(is_free).unwrap_or(self.lanes.len());
        let number = u16::try_from(index).ok()?;
        if index == self.lanes.len() {
            self.lanes.push(LaneState::default());
        }
        self.lanes[index].is_taken = true;
        Some(number)
    }

    /// Frees a lane. Commands that its client left behind complete without a reply.
    pub(crate) fn give_back(&mut self, lane: u16) {
        self.lanes[usize::from(lane)].is_taken = false;
        self.completed.retain(|Reverse(due)| due.lane != lane);
    }

    /// Submits a command that a client of `lane` issued at `issued_at`. Returns its ticket.
    pub(crate) fn submit(&mut self, lane: u16, issued_at: Nanos, asked: PacedCommand) -> u32 {
        self.advance(issued_at);
        let ticket = self.tickets;
        self.tickets = self.tickets.wrapping_add(1);
        self.lanes[usize::from(lane)].outstanding += 1;
        let replaced = self
            .outstanding
            .insert(ticket, CommandIssue { at: issued_at, submitted_at: self.now, lane });
        assert!(replaced.is_none(), "tickets wrap around after 2^32 commands");
        let (lba, sectors) = place(asked, self.drive.user_sectors());
        let request = Request { tag: ticket, thread: lane, op: asked.op, handle: 0, lba, sectors };
        self.drive.submit(self.now, request);
        ticket
    }

    /// Advances the time of the model to `now`, never back.
    fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while let Some(done) = self.drive.next_completion(self.now) {
            let issued = self.outstanding.remove(&done.tag).expect("it was submitted");
            assert_eq!(issued.lane, done.thread, "a lane is a thread of the host");
            let state = &mut self.lanes[usize::from(issued.lane)];
            state.outstanding -= 1;
            if state.is_taken {
                let latency = done.completed_at - issued.submitted_at;
                let (at, ticket, lane) = (issued.at + latency, done.tag, issued.lane);
                self.completed.push(Reverse(Due { at, ticket, lane, latency }));
            }
        }
    }

    /// Adds to `due` the commands that are due at `now`, in order.
    pub(crate) fn take_due(&mut self, now: Nanos, due: &mut Vec<Due>) {
        self.advance(now);
        while self.completed.peek().is_some_and(|Reverse(first)| first.at <= now) {
            due.extend(self.completed.pop().map(|Reverse(first)| first));
        }
    }

    /// The next time at which something may have become due; none if no client waits.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let completed = self.completed.peek().map(|Reverse(first)| first.at);
        let event = self.drive.next_event().filter(|_| !self.outstanding.is_empty());
        completed.into_iter().chain(event).min()
    }
}

/// Maps a range of a device, which may be larger than the model, to the model: the same place,
/// counted again from the beginning where the model ends.
fn place(asked: PacedCommand, user_sectors: u64) -> (Lba, u32) {
    let first = asked.offset / SECTOR_BYTES;
    let end = asked.offset.saturating_add(asked.length).div_ceil(SECTOR_BYTES);
    let sectors = (end - first).min(user_sectors).min(u32::MAX.into());
    let sectors = if asked.op == Op::Flush { 0 } else { sectors };
    let first = (first % user_sectors).min(user_sectors - sectors);
    (Lba(first), u32::try_from(sectors).expect("it was bounded"))
}

#[cfg(test)]
mod tests;
