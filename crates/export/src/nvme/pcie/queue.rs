//! Queues in the memory of a host: completions that are posted, and the thread of a submission
//! queue.
//!
//! ```text
//!   rung ──► take entries ──► IoQueue ──► completions ──► posted, or held until the model is done
//!     ▲           │ no entry for some microseconds
//!     └── sleep ◄─┘ event index: the entry from which on the host rings
//! ```
//!
//! A host with a doorbell buffer writes its doorbells into memory, and rings only one that passes
//! the event index: under load a command needs no system call.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::super::command::{COMMAND_BYTES, COMPLETION_BYTES, Command, completion};
use super::super::io_queue::IoQueue;
use super::super::lock::locked;
use super::super::subsystem::Subsystem;
use super::pages::{Completion, Pages, fetch};
use crate::batch_parts::BatchParts;
use crate::descriptor_socket::Signal;
use crate::guest_memory::{GuestMemory, GuestMemoryError};
use crate::pace::Holder;
use crate::polls::Polls;
use crate::{Lane, PacedCommand, RecordedCommand, Recorder};

/// Most commands that are carried out together.
const BATCH: u32 = 64;

/// Parts that the queues of a controller share with its registers.
pub(super) struct Machine {
    pub(super) memory: Mutex<Arc<GuestMemory>>,
    pub(super) doorbells: Doorbells,
    /// Events of the interrupt vectors.
    pub(super) interrupts: Mutex<Vec<Option<Signal>>>,
    /// True if the host broke a rule whose violation is fatal to a controller.
    pub(super) is_fatal: AtomicBool,
    /// The recorder of commands, if there is one, and the number of this client.
    pub(super) recorder: Option<(Arc<dyn Recorder>, u64)>,
    /// Ends the connection to the host.
    pub(super) cut: Box<dyn Fn() + Send + Sync>,
}

impl Machine {
    pub(super) fn memory(&self) -> Arc<GuestMemory> {
        Arc::clone(&locked(&self.memory))
    }

    /// Fails until the host resets the controller; a host that has truncated its memory loses its
    /// connection.
    pub(super) fn fail(&self) {
        self.is_fatal.store(true, Ordering::Release);
        if self.memory().is_truncated() {
            (self.cut)();
        }
    }

    fn interrupt(&self, vector: u16) {
        if let Some(Some(signal)) = locked(&self.interrupts).get(usize::from(vector)) {
            signal.raise();
        }
    }
}

/// Doorbells: of each queue that of submissions, then that of completions.
pub(super) struct Doorbells {
    rung: Vec<AtomicU32>,
    /// Event indexes as they are in the buffer.
    events: Vec<AtomicU32>,
    /// Pages of the doorbells and of the event indexes in the memory of the host.
    buffer: Mutex<Option<(u64, u64)>>,
}

impl Doorbells {
    pub(super) fn new(queues: usize) -> Self {
        let zeroes = || (0..2 * queues).map(|_| AtomicU32::new(0)).collect();
        Self { rung: zeroes(), events: zeroes(), buffer: Mutex::default() }
    }

    /// Notes that a doorbell was rung.
    pub(super) fn ring(&self, index: usize, value: u32) {
        if let Some(rung) = self.rung.get(index) {
            rung.store(value, Ordering::Release);
        }
    }

    /// Begins to use a doorbell buffer in the memory of the host for I/O queues, with the values
    /// that doorbells have now.
    pub(super) fn use_buffer(
        &self,
        memory: &GuestMemory,
        (doorbells, events): (u64, u64),
    ) -> Result<(), GuestMemoryError> {
        let places = (0..).step_by(4).zip(self.rung.iter().zip(&self.events));
        for (offset, (rung, event)) in places.skip(2) {
            let value = rung.load(Ordering::Acquire);
            event.store(value, Ordering::Relaxed);
            memory.store_u32(doorbells.wrapping_add(offset), value)?;
            memory.store_u32(events.wrapping_add(offset), value)?;
        }
        *locked(&self.buffer) = Some((doorbells, events));
        Ok(())
    }

    /// Sets all doorbells to 0, and uses no doorbell buffer any more.
    pub(super) fn reset(&self) {
        *locked(&self.buffer) = None;
        self.rung.iter().for_each(|rung| rung.store(0, Ordering::Release));
    }

    /// Value of a doorbell.
    pub(super) fn value(
        &self,
        memory: &GuestMemory,
        index: usize,
    ) -> Result<u32, GuestMemoryError> {
        match self.place(index) {
            Some((doorbell, _)) => memory.load_u32(doorbell),
            None => Ok(self.rung[index].load(Ordering::Acquire)),
        }
    }

    /// Sets the event index of a doorbell: the host rings it once it passes `value`.
    fn set_event_index(
        &self,
        memory: &GuestMemory,
        index: usize,
        value: u32,
    ) -> Result<(), GuestMemoryError> {
        if let Some((_, event)) = self.place(index) {
            self.events[index].store(value, Ordering::Relaxed);
            memory.store_u32(event, value)?;
            // The host sees it before the doorbell is read once more: it may have passed already.
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    /// Sets the event index of a doorbell that is at `value` as far ahead as its queue allows,
    /// unless it is half a round ahead: one that stays where it is would be passed, and rung, once
    /// in each round.
    fn put_off_event(
        &self,
        memory: &GuestMemory,
        index: usize,
        (value, entries): (u32, u32),
    ) -> Result<(), GuestMemoryError> {
        let event = self.events[index].load(Ordering::Relaxed);
        let ahead = (event % entries + entries - value % entries) % entries;
        if ahead >= entries / 2 {
            return Ok(());
        }
        if let Some((_, place)) = self.place(index) {
            let event = (value % entries + entries - 1) % entries;
            self.events[index].store(event, Ordering::Relaxed);
            memory.store_u32(place, event)?;
        }
        Ok(())
    }

    /// Addresses of a doorbell and its event index in the buffer; the admin queue has none there.
    fn place(&self, index: usize) -> Option<(u64, u64)> {
        let (doorbells, events) = (*locked(&self.buffer)).filter(|_| index >= 2)?;
        let offset = 4 * index as u64;
        Some((doorbells.wrapping_add(offset), events.wrapping_add(offset)))
    }
}

/// A completion queue.
pub(super) struct CompletionQueue {
    number: u16,
    base: u64,
    entries: u32,
    tail: u32,
    /// Head when its doorbell was read last: reading it takes a line of the cache from the host.
    seen_head: u32,
    /// Phase tag of the round that it is in.
    phase: bool,
    vector: Option<u16>,
    /// Entries that wait for room.
    waiting: VecDeque<[u8; COMPLETION_BYTES]>,
}

impl CompletionQueue {
    pub(super) fn new(number: u16, base: u64, entries: u32, vector: Option<u16>) -> Self {
        let (tail, seen_head, phase, waiting) = (0, 0, true, VecDeque::new());
        Self { number, base, entries, tail, seen_head, phase, vector, waiting }
    }

    pub(super) const fn entries(&self) -> u32 {
        self.entries
    }

    /// Posts completions of a submission queue whose head is `head`, as far as there is room.
    pub(super) fn post(
        &mut self,
        machine: &Machine,
        submission: u16,
        head: u32,
        completions: &[Completion],
    ) -> Result<(), GuestMemoryError> {
        for it in completions {
            let head = u16::try_from(head).expect("queues have at most 65536 entries");
            let mut entry = completion(it.id, head, it.status, it.value);
            entry[10..12].copy_from_slice(&submission.to_le_bytes());
            self.waiting.push_back(entry);
        }
        self.post_waiting(machine)
    }

    /// Posts what there was no room for.
    pub(super) fn post_waiting(&mut self, machine: &Machine) -> Result<(), GuestMemoryError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let memory = machine.memory();
        let index = 2 * usize::from(self.number) + 1;
        let (mut has_posted, mut has_looked) = (false, false);
        loop {
            if self.next_tail() == self.seen_head {
                self.seen_head = machine.doorbells.value(&memory, index)?;
                if self.next_tail() != self.seen_head {
                    continue;
                }
                // The host may have made room meanwhile, so its doorbell is read once more.
                if has_looked {
                    break;
                }
                machine.doorbells.set_event_index(&memory, index, self.seen_head)?;
                has_looked = true;
                continue;
            }
            let Some(entry) = self.waiting.pop_front() else { break };
            let place = self.base.wrapping_add(u64::from(self.tail) * COMPLETION_BYTES as u64);
            memory.write(place, &entry[..14])?;
            let status = u16::from_le_bytes([entry[14], entry[15]]) | u16::from(self.phase);
            memory.store_u16(place.wrapping_add(14), status)?;
            self.tail = self.next_tail();
            self.phase ^= self.tail == 0;
            (has_posted, has_looked) = (true, false);
        }
        if self.waiting.is_empty() {
            self.put_off_event(machine, &memory)?;
        }
        if let Some(vector) = self.vector.filter(|_| has_posted) {
            machine.interrupt(vector);
        }
        Ok(())
    }

    const fn next_tail(&self) -> u32 {
        (self.tail + 1) % self.entries
    }

    /// Spares the host most of the doorbells that say how far it has read completions: only one
    /// that makes room for what waits is of use.
    fn put_off_event(
        &mut self,
        machine: &Machine,
        memory: &GuestMemory,
    ) -> Result<(), GuestMemoryError> {
        let index = 2 * usize::from(self.number) + 1;
        let unread = (self.tail + self.entries - self.seen_head % self.entries) % self.entries;
        if unread >= self.entries / 2 {
            self.seen_head = machine.doorbells.value(memory, index)?;
        }
        machine.doorbells.put_off_event(memory, index, (self.seen_head, self.entries))
    }

    /// True if completions wait for room.
    pub(super) fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Place of a submission queue, and the queue of its completions.
pub(super) struct QueuePlace {
    pub(super) number: u16,
    pub(super) base: u64,
    pub(super) entries: u32,
    pub(super) completion_number: u16,
    pub(super) completion: Arc<Mutex<CompletionQueue>>,
}

/// A submission queue for I/O, with its thread.
pub(super) struct SubmissionQueue {
    shared: Arc<QueueState>,
    thread: Option<JoinHandle<()>>,
}

struct QueueState {
    machine: Arc<Machine>,
    subsystem: Arc<Subsystem>,
    place: QueuePlace,
    wake: Signal,
    stop: Signal,
    is_stopping: AtomicBool,
    /// Completions that wait for the model, by ticket: of as many commands at most as the queue
    /// has entries, also if a host submits more than that without waiting for any.
    held: Mutex<BTreeMap<u32, HeldCompletions>>,
    /// Signalled when completions are no longer as many as the queue has entries, and when there
    /// are none.
    is_less: Condvar,
}

/// Completions that are held until the model has completed their command.
struct HeldCompletions {
    completions: Vec<Completion>,
    head: u32,
    /// Commands to be recorded.
    answered: Vec<PacedCommand>,
    issued_at: Instant,
}

impl SubmissionQueue {
    /// Serves a queue.
    ///
    /// # Errors
    /// Fails if the system has no thread or descriptor, or the model no room for a client.
    pub(super) fn start(
        machine: &Arc<Machine>,
        subsystem: &Arc<Subsystem>,
        place: QueuePlace,
        io: IoQueue,
    ) -> io::Result<Self> {
        let pace = subsystem.pace().cloned();
        let shared = Arc::new(QueueState {
            machine: Arc::clone(machine),
            subsystem: Arc::clone(subsystem),
            place,
            wake: Signal::new()?,
            stop: Signal::new()?,
            is_stopping: AtomicBool::new(false),
            held: Mutex::default(),
            is_less: Condvar::new(),
        });
        let holder = Arc::clone(&shared);
        let lane = pace.map(|pace| Lane::new(&pace, holder)).transpose()?;
        let own = Arc::clone(&shared);
        let builder = thread::Builder::new().name("vfio-user-queue".to_owned());
        let thread = builder.spawn(move || own.run(io, lane.as_ref()))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn entries(&self) -> u32 {
        self.shared.place.entries
    }

    /// Number of the queue that its completions go to.
    pub(super) fn completion_number(&self) -> u16 {
        self.shared.place.completion_number
    }

    /// Wakes the thread: a doorbell was rung.
    pub(super) fn wake(&self) {
        self.shared.wake.raise();
    }
}

/// Takes no more commands, and completes those that were taken.
impl Drop for SubmissionQueue {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.stop.raise();
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed.
            let _ = thread.join();
        }
    }
}

/// State of the thread of a queue, from one batch to the next.
struct Work {
    io: IoQueue,
    head: u32,
    answers: Pages,
    answered: Option<Vec<PacedCommand>>,
    data: Vec<u8>,
    batch_parts: BatchParts,
}

impl QueueState {
    fn held(&self) -> MutexGuard<'_, BTreeMap<u32, HeldCompletions>> {
        locked(&self.held)
    }

    fn run(&self, io: IoQueue, lane: Option<&Lane>) {
        let answered = self.machine.recorder.is_some().then(Vec::new);
        let (answers, data, batch_parts) = Default::default();
        let mut work = Work { io, head: 0, answers, answered, data, batch_parts };
        if self.serve(&mut work, lane).is_err() {
            self.machine.fail();
        }
        self.wait_for_held(1);
    }

    /// Waits until fewer completions than `limit` are held. Returns how many.
    fn wait_for_held(&self, limit: usize) -> usize {
        let mut held = self.held();
        while held.len() >= limit {
            held = self.is_less.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.len()
    }

    fn serve(&self, work: &mut Work, lane: Option<&Lane>) -> io::Result<()> {
        let index = 2 * usize::from(self.place.number);
        let doorbells = &self.machine.doorbells;
        let mut polls = Polls::default();
        while !self.is_stopping.load(Ordering::Acquire) {
            if !work.io.link().is_alive() {
                // The controller failed: it takes no command until the host resets it.
                self.wake.wait_with(&self.stop)?;
                continue;
            }
            let memory = self.machine.memory();
            let tail = doorbells.value(&memory, index).map_err(io::Error::other)?;
            let is_blocked = locked(&self.place.completion).is_full();
            // A doorbell value beyond the queue is invalid and ignored.
            if tail != work.head && tail < self.place.entries && !is_blocked {
                polls.reset();
                self.carry_out(&memory, tail, work, lane).map_err(io::Error::other)?;
                continue;
            }
            if polls.poll_again() {
                continue;
            }
            doorbells.set_event_index(&memory, index, tail).map_err(io::Error::other)?;
            if doorbells.value(&memory, index).map_err(io::Error::other)? == tail {
                self.wake.wait_with(&self.stop)?;
            }
        }
        Ok(())
    }

    /// Carries out commands up to `tail`, as many as are carried out together.
    fn carry_out(
        &self,
        memory: &Arc<GuestMemory>,
        tail: u32,
        work: &mut Work,
        lane: Option<&Lane>,
    ) -> Result<(), GuestMemoryError> {
        let begun = Instant::now();
        work.answers.use_memory(memory);
        let waiting = (tail + self.place.entries - work.head) % self.place.entries;
        let held = lane.map_or(0, |_| self.wait_for_held(self.place.entries as usize));
        let commands = (waiting.min(BATCH) as usize).min(self.place.entries as usize - held);
        let part = work.batch_parts.of(commands);
        let index = 2 * usize::from(self.place.number);
        let taken = u32::try_from(commands).expect("a batch is small");
        let reached = (work.head + taken) % self.place.entries;
        self.machine.doorbells.put_off_event(memory, index, (reached, self.place.entries))?;
        for number in 1..=commands {
            if self.is_stopping.load(Ordering::Acquire) {
                // Of what was not fetched the driver knows that it was not completed.
                break;
            }
            let mut entry = [0; COMMAND_BYTES];
            let offset = u64::from(work.head) * COMMAND_BYTES as u64;
            memory.read(self.place.base.wrapping_add(offset), &mut entry)?;
            work.head = (work.head + 1) % self.place.entries;
            let asked = self.execute(memory, &Command::of(&entry), work);
            if let Some(lane) = lane {
                self.finish(work);
                self.hold(work, lane, asked, begun)?;
            } else if number.is_multiple_of(part) && number < commands {
                // What waits for a flush waits for the end of the batch.
                work.io.finish_reads(&self.subsystem, &mut work.answers, &mut work.answered);
                self.post_completed(work, begun)?;
            }
        }
        self.finish(work);
        self.post_completed(work, begun)?;
        work.batch_parts.note(commands, begun.elapsed());
        Ok(())
    }

    /// Posts what is completed.
    fn post_completed(&self, work: &mut Work, issued_at: Instant) -> Result<(), GuestMemoryError> {
        let completions = std::mem::take(&mut work.answers.completions);
        let answered = work.answered.as_mut().map(std::mem::take).unwrap_or_default();
        self.post(work.head, &completions)?;
        self.record(&answered, issued_at);
        Ok(())
    }

    /// Carries out a command, or completes it with an error. Returns the command for the modelled
    /// drive.
    fn execute(
        &self,
        memory: &GuestMemory,
        command: &Command,
        work: &mut Work,
    ) -> Option<PacedCommand> {
        let Work { io, answers, answered, data, .. } = work;
        let parsed = io.parse(command, &self.subsystem);
        let length = parsed.as_ref().map_or(0, |io| *io.host_bytes().start());
        if data.len() < length {
            data.resize(length, 0);
        }
        let fetched = fetch(memory, command, &mut data[..length]).map(|()| &data[..length]);
        io.execute_parsed((command, parsed), fetched, &self.subsystem, (answers, answered)).0
    }

    /// Completes what waits for reads and flushes.
    fn finish(&self, work: &mut Work) {
        let Work { io, answers, answered, .. } = work;
        io.finish_reads(&self.subsystem, answers, answered);
        io.settle(&self.subsystem, answers, answered);
    }

    /// Holds the completions of a command until the model has completed it; those of a command that
    /// the model does not have are posted at once.
    fn hold(
        &self,
        work: &mut Work,
        lane: &Lane,
        asked: Option<PacedCommand>,
        issued_at: Instant,
    ) -> Result<(), GuestMemoryError> {
        let Some(asked) = asked else { return self.post_completed(work, issued_at) };
        let completions = std::mem::take(&mut work.answers.completions);
        let answered = work.answered.as_mut().map(std::mem::take).unwrap_or_default();
        let held = HeldCompletions { completions, head: work.head, answered, issued_at };
        let mut all = self.held();
        let ticket = lane.submit(issued_at, asked);
        all.insert(ticket, held);
        Ok(())
    }

    /// Takes the completions of a ticket, and has the queue go on if it waits for that.
    fn take_due(&self, ticket: u32) -> Option<HeldCompletions> {
        let mut held = self.held();
        let was_full = held.len() >= self.place.entries as usize;
        let due = held.remove(&ticket);
        if was_full {
            self.is_less.notify_all();
        }
        due
    }

    fn post(&self, head: u32, completions: &[Completion]) -> Result<(), GuestMemoryError> {
        locked(&self.place.completion).post(&self.machine, self.place.number, head, completions)
    }

    fn record(&self, answered: &[PacedCommand], issued_at: Instant) {
        if let Some((recorder, client)) = &self.machine.recorder
            && !answered.is_empty()
        {
            let completed_at = Instant::now();
            let served =
                |asked: &PacedCommand| RecordedCommand { asked: *asked, issued_at, completed_at };
            recorder.keep(*client, &answered.iter().map(served).collect::<Vec<_>>());
        }
    }
}

impl Holder for QueueState {
    fn send_due(&self, tickets: &[u32]) {
        for ticket in tickets {
            let Some(due) = self.take_due(*ticket) else { continue };
            if self.post(due.head, &due.completions).is_err() {
                self.machine.fail();
            }
            self.record(&due.answered, due.issued_at);
        }
        if self.held().is_empty() {
            self.is_less.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_memory::{Place, memory_file};

    const PAGES: (u64, u64) = (0x1000, 0x2000);

    /// True if a host that moves a doorbell has to ring it, by the rule of the NVM Express
    /// specification for a doorbell buffer.
    const fn has_to_ring(event: u32, before: u32, after: u32) -> bool {
        let [event, before, after] = [low(event), low(before), low(after)];
        after.wrapping_sub(event).wrapping_sub(1) < after.wrapping_sub(before)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half of a number")]
    const fn low(number: u32) -> u16 {
        number as u16
    }

    #[test]
    fn a_doorbell_that_is_read_anyway_is_never_rung_and_one_that_is_awaited_always() {
        let mut memory = GuestMemory::default();
        let place = Place { address: PAGES.0, size: 0x2000, offset: 0 };
        memory.add(place, memory_file("host", 0x2000).unwrap()).unwrap();
        for entries in [2, 3, 16, 1024] {
            let doorbells = Doorbells::new(2);
            doorbells.use_buffer(&memory, PAGES).unwrap();
            let mut value = 0;
            for step in 1..5000 {
                doorbells.put_off_event(&memory, 2, (value, entries)).unwrap();
                let event = memory.load_u32(PAGES.1 + 8).unwrap();
                let after = (value + 1 + step % (entries / 2).max(1)) % entries;
                assert!(!has_to_ring(event, value, after), "{event}: {value} to {after}");
                value = after;
                if step % 7 == 0 {
                    doorbells.set_event_index(&memory, 2, value).unwrap();
                    let event = memory.load_u32(PAGES.1 + 8).unwrap();
                    let after = (value + 1) % entries;
                    assert!(has_to_ring(event, value, after), "{event}: {value} to {after}");
                    value = after;
                }
            }
        }
    }
}
