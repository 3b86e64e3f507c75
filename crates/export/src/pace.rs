//! Pace: when a modelled drive would be done with what a real one has done already.
//!
//! ```text
//!   command ──► device: carried out at once ──► reply, held back ──► sent when it is due
//!          └──► model: told of the same ──► when would it have completed? ──┘
//! ```
//!
//! A [`Pace`] owns a drive in virtual time and no clock: whoever serves clients says what time it
//! is, and asks what is due. Clients share one model, as they share the drive, so one client's
//! load is felt by the others, and bursts, cliffs and stalls are those of the model.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blockio::{Lba, Nanos, Op, Request, SECTOR_BYTES};
use device::{Device, DeviceError};
use ssd::{Drive, Reading};

/// A modelled drive that many clients share.
pub struct Pace {
    model: Mutex<Model>,
}

/// One client's way to the model. It is given back when dropped.
#[derive(Debug)]
pub struct Lane {
    pace: Arc<Pace>,
    number: u16,
}

/// Command of a client, as the model needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Kind of command.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// True if it is answered only once it is durable (force unit access).
    pub fua: bool,
}

struct Model {
    drive: Drive,
    /// The latest time that anybody said.
    now: Nanos,
    /// Tickets given so far; the next one's number.
    tickets: u32,
    lanes: Vec<State>,
}

#[derive(Default)]
struct State {
    is_taken: bool,
    outstanding: u32,
    /// Completion times in the model, with tickets, of commands whose clients were not told yet.
    completed: BTreeSet<(Nanos, u32)>,
}

impl Pace {
    /// The pace of a drive whose time begins at zero.
    pub const fn new(drive: Drive) -> Self {
        Self { model: Mutex::new(Model::new(drive)) }
    }

    /// Has the model hold what `device` stores already, as if it had been written long ago: reads
    /// of it go to the flash. Comes before the first client.
    ///
    /// # Errors
    /// Fails if the device cannot tell what it stores.
    pub fn hold(&self, device: &dyn Device) -> Result<(), DeviceError> {
        const STEP_BYTES: u64 = 1 << 30;
        let model = &mut *self.model();
        assert_eq!(model.tickets, 0, "no client has asked for anything");
        let user_sectors = model.drive.user_sectors();
        let size = device.size();
        for step in 0..size.div_ceil(STEP_BYTES) {
            let from = step * STEP_BYTES;
            let mut offset = device.origin() + from;
            for run in device.allocations(from, STEP_BYTES.min(size - from))? {
                if run.is_stored {
                    let asked = Asked { op: Op::Write, offset, length: run.length, fua: false };
                    let (lba, sectors) = place(asked, user_sectors);
                    model.drive.age(lba, sectors);
                }
                offset += run.length;
            }
        }
        Ok(())
    }

    /// Power and heat of the model at `now`, or at the latest time that anybody said; absent where
    /// nothing is known of them.
    pub fn climate(&self, now: Nanos) -> Option<Reading> {
        let model = self.model();
        model.drive.climate(model.now.max(now))
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pace").finish_non_exhaustive()
    }
}

impl Lane {
    /// A way for one more client: to the model, a thread of the host.
    ///
    /// Returns nothing when 65536 are in use.
    pub fn new(pace: &Arc<Pace>) -> Option<Self> {
        let mut model = pace.model();
        // One whose last client left requests behind is not free before the model is done with
        // them: they would be taken for those of the next.
        let is_free = |state: &State| !state.is_taken && state.outstanding == 0;
        let index = model.lanes.iter().position(is_free).unwrap_or(model.lanes.len());
        let number = u16::try_from(index).ok()?;
        if index == model.lanes.len() {
            model.lanes.push(State::default());
        }
        model.lanes[index] = State { is_taken: true, ..State::default() };
        Some(Self { pace: Arc::clone(pace), number })
    }

    /// Submits a command to the model at `now`. Returns a ticket, under which it is reported as
    /// due.
    pub fn submit(&self, now: Nanos, asked: Asked) -> u32 {
        let mut model = self.pace.model();
        model.advance(now);
        model.submit(self.number, asked)
    }

    /// Adds to `due` the tickets of this lane that are due at `now`, in order. Returns when to ask
    /// again: the next time at which something may have become due, if something is outstanding.
    pub fn due(&self, now: Nanos, due: &mut Vec<u32>) -> Option<Nanos> {
        let mut model = self.pace.model();
        model.advance(now);
        let next_event = model.drive.next_event();
        let state = &mut model.lanes[usize::from(self.number)];
        while state.completed.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(state.completed.pop_first().map(|(_, ticket)| ticket));
        }
        let completed = state.completed.first().map(|(at, _)| *at);
        let next_event = next_event.filter(|_| state.outstanding > 0);
        completed.into_iter().chain(next_event).min()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.pace.model().lanes[usize::from(self.number)].is_taken = false;
    }
}

impl Model {
    const fn new(drive: Drive) -> Self {
        Self { drive, now: Nanos::ZERO, tickets: 0, lanes: Vec::new() }
    }

    /// Advances the model's time to `now`; it never goes back.
    fn advance(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        while let Some(done) = self.drive.next_completion(self.now) {
            let state = &mut self.lanes[usize::from(done.thread)];
            state.outstanding -= 1;
            if state.is_taken {
                state.completed.insert((done.completed_at, done.tag));
            }
        }
    }

    fn submit(&mut self, lane: u16, asked: Asked) -> u32 {
        let ticket = self.tickets;
        self.tickets = self.tickets.wrapping_add(1);
        self.lanes[usize::from(lane)].outstanding += 1;
        let (lba, sectors) = place(asked, self.drive.user_sectors());
        let request = Request { tag: ticket, thread: lane, op: asked.op, handle: 0, lba, sectors };
        self.drive.submit(self.now, request);
        ticket
    }
}

/// Maps a range of a device, which may be larger than the model, to the model: the same place,
/// counted again from the beginning where the model ends.
fn place(asked: Asked, user_sectors: u64) -> (Lba, u32) {
    let first = asked.offset / SECTOR_BYTES;
    let end = asked.offset.saturating_add(asked.length).div_ceil(SECTOR_BYTES);
    let sectors = (end - first).min(user_sectors).min(u32::MAX.into());
    let sectors = if asked.op == Op::Flush { 0 } else { sectors };
    let first = (first % user_sectors).min(user_sectors - sectors);
    (Lba(first), u32::try_from(sectors).expect("it was bounded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Arc<Pace> {
        Arc::new(Pace::new(drive()))
    }

    fn drive() -> Drive {
        let spec = ssd::catalogue::find("iodrive-duo").unwrap();
        let setup = ssd::Setup {
            format: spec.formats()[0].clone(),
            host: spec.hosts()[0].clone(),
            time_lapse: 64,
            seed: 1,
        };
        Drive::new(&spec, &setup).unwrap()
    }

    fn asked(op: Op, offset: u64) -> Asked {
        Asked { op, offset, length: 4096, fua: false }
    }

    #[test]
    fn a_command_is_due_when_the_model_completes_it() {
        let lane = Lane::new(&pace()).unwrap();
        let mut alone = drive();
        for (second, op) in [(1, Op::Write), (2, Op::Read), (3, Op::Flush), (4, Op::Trim)] {
            let at = Nanos::from_secs(second);
            let ticket = lane.submit(at, asked(op, 1 << 20));
            let mut due = Vec::new();
            let mut now = at;
            while let Some(next) = lane.due(now, &mut due) {
                now = next;
            }
            assert_eq!(due, [ticket]);

            let sectors = if op == Op::Flush { 0 } else { 8 };
            let request = Request { tag: 0, thread: 0, op, handle: 0, lba: Lba(2048), sectors };
            alone.submit(at, request);
            let expected = alone.next_completion(Nanos::MAX).unwrap().completed_at;
            assert_eq!(now, expected, "{op:?}");
        }
    }

    #[test]
    fn what_a_device_stores_is_read_from_the_flash_of_the_model() {
        use device::{Durability, MemoryDevice};
        let latency = |pace: &Arc<Pace>, offset| {
            let lane = Lane::new(pace).unwrap();
            lane.submit(Nanos::ZERO, asked(Op::Read, offset));
            let (mut now, mut due) = (Nanos::ZERO, Vec::new());
            while let Some(next) = lane.due(now, &mut due) {
                now = next;
            }
            now
        };
        let device = MemoryDevice::new(16 << 20);
        device.write(8 << 20, &vec![1; 1 << 20], Durability::Volatile).unwrap();
        let holds = pace();
        holds.hold(&device).unwrap();
        let stored = latency(&holds, (8 << 20) + 4096);
        let empty = latency(&pace(), (8 << 20) + 4096);
        assert!(stored > empty + Nanos::from_micros(20), "{stored} and {empty}: a NAND read apart");
        let another = pace();
        another.hold(&device).unwrap();
        assert_eq!(latency(&another, 4096), empty, "nothing is stored there");
    }

    #[test]
    fn a_model_cools_while_nobody_asks_for_anything_and_is_due_when_it_was() {
        let pace = pace();
        let lane = Lane::new(&pace).unwrap();
        for page in 0..2000 {
            lane.submit(Nanos::ZERO, asked(Op::Write, page * 4096));
        }
        let (mut now, mut due) = (Nanos::ZERO, Vec::new());
        while let Some(next) = lane.due(now, &mut due) {
            now = next;
        }
        let at = |later| pace.climate(now + later).expect("the Duo tells").temperature_c;
        let (warm, cool) = (at(Nanos::from_millis(100)), at(Nanos::from_secs(60)));
        assert!(warm > cool, "{warm} and {cool} °C");
        let ticket = lane.submit(now, asked(Op::Read, 0));
        due.clear();
        while let Some(next) = lane.due(now, &mut due) {
            now = next;
        }
        assert_eq!(due, [ticket]);
        assert!(now < Nanos::from_secs(60), "asking for the heat moved no time: {now}");
    }

    #[test]
    fn nothing_is_due_before_its_time_and_each_ticket_once() {
        let pace = pace();
        let lane = Lane::new(&pace).unwrap();
        let submitted: Vec<u32> =
            (0..32).map(|page| lane.submit(Nanos::ZERO, asked(Op::Write, page * 4096))).collect();
        let mut due = Vec::new();
        let mut now = Nanos::ZERO;
        while let Some(next) = lane.due(now, &mut due) {
            assert!(next > now, "asked again at the same time");
            now = next;
        }
        due.sort_unstable();
        assert_eq!(due, submitted);
    }

    #[test]
    fn a_client_is_not_told_of_what_another_left_behind() {
        let pace = pace();
        let left = Lane::new(&pace).unwrap();
        left.submit(Nanos::ZERO, asked(Op::Write, 0));
        drop(left);
        let next = Lane::new(&pace).unwrap();
        let mut due = Vec::new();
        assert_eq!(next.due(Nanos::from_secs(1), &mut due), None);
        assert!(due.is_empty());
    }

    #[test]
    fn a_range_beyond_the_model_begins_again() {
        let ask = |offset, length| place(Asked { op: Op::Read, offset, length, fua: false }, 1000);
        assert_eq!(ask(0, 512), (Lba(0), 1));
        assert_eq!(ask(1, 512), (Lba(0), 2));
        assert_eq!(ask(1000 * 512, 512), (Lba(0), 1));
        assert_eq!(ask(999 * 512, 1024), (Lba(998), 2));
        assert_eq!(ask(0, u64::MAX), (Lba(0), 1000));
    }
}
