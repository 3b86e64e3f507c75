//! Queues in the memory of a host: completions that are posted, and the thread of a submission
//! queue.
//!
//! ```text
//!   rung ──► take entries ──► IoQueue ──► completions ──► posted, or held until the model is done
//!     ▲           │ nothing there for some microseconds
//!     └── sleep ◄─┘ the event index says from which entry on to ring
//! ```
//!
//! A host that gave a doorbell buffer writes its doorbells into it, and rings only one that passes
//! the event index: while there is work nobody makes a call for a doorbell.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::super::command::{COMMAND_BYTES, COMPLETION_BYTES, Command, completion};
use super::super::submission::IoQueue;
use super::super::subsystem::{Subsystem, locked};
use super::pages::{Completion, Pages, fetch};
use crate::descriptor_socket::Signal;
use crate::guest_memory::{GuestMemory, Outside};
use crate::pace::Holder;
use crate::{Asked, Lane, Recorder, Served};

/// Most commands that are carried out together.
const BATCH: u32 = 64;
/// Looks for more work before the thread sleeps, some 10 us in all; between two of them others may
/// have this processor.
const LOOKS: u32 = 24;

/// Parts that the queues of a controller share with its registers.
pub(super) struct Machine {
    pub(super) memory: Mutex<Arc<GuestMemory>>,
    pub(super) doorbells: Doorbells,
    /// Events of the interrupt vectors.
    pub(super) interrupts: Mutex<Vec<Option<Signal>>>,
    /// True if the host broke a rule that a controller does not survive.
    pub(super) is_fatal: AtomicBool,
    /// The recorder of commands, if somebody records, and the number of this client.
    pub(super) recorder: Option<(Arc<dyn Recorder>, u64)>,
}

impl Machine {
    pub(super) fn memory(&self) -> Arc<GuestMemory> {
        Arc::clone(&locked(&self.memory))
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
    /// Pages of the doorbells and of the event indexes in the memory of the host.
    buffer: Mutex<Option<(u64, u64)>>,
}

impl Doorbells {
    pub(super) fn new(queues: usize) -> Self {
        Self {
            rung: (0..2 * queues).map(|_| AtomicU32::new(0)).collect(),
            buffer: Mutex::default(),
        }
    }

    /// Takes note of a doorbell that was rung.
    pub(super) fn ring(&self, index: usize, value: u32) {
        if let Some(rung) = self.rung.get(index) {
            rung.store(value, Ordering::Release);
        }
    }

    /// Has the host write doorbells of I/O queues into its memory, where they are as they were
    /// rung.
    pub(super) fn use_buffer(
        &self,
        memory: &GuestMemory,
        (doorbells, events): (u64, u64),
    ) -> Result<(), Outside> {
        for (offset, rung) in (0..).step_by(4).zip(&self.rung).skip(2) {
            let value = rung.load(Ordering::Acquire);
            memory.store_u32(doorbells.wrapping_add(offset), value)?;
            memory.store_u32(events.wrapping_add(offset), value)?;
        }
        *locked(&self.buffer) = Some((doorbells, events));
        Ok(())
    }

    /// Has all doorbells be 0, and the host ring them.
    pub(super) fn reset(&self) {
        *locked(&self.buffer) = None;
        self.rung.iter().for_each(|rung| rung.store(0, Ordering::Release));
    }

    /// Value of a doorbell.
    fn value(&self, memory: &GuestMemory, index: usize) -> Result<u32, Outside> {
        match self.place(index) {
            Some((doorbell, _)) => memory.load_u32(doorbell),
            None => Ok(self.rung[index].load(Ordering::Acquire)),
        }
    }

    /// Asks for a doorbell to be rung once it passes `value`.
    fn ask(&self, memory: &GuestMemory, index: usize, value: u32) -> Result<(), Outside> {
        if let Some((_, event)) = self.place(index) {
            memory.store_u32(event, value)?;
            // The wish is seen before it is looked whether it came too late.
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    /// Places of a doorbell and its event index; those of the admin queue are always rung.
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
    /// Phase tag of the round that it is in.
    phase: bool,
    vector: Option<u16>,
    /// Entries for which there was no room.
    waiting: VecDeque<[u8; COMPLETION_BYTES]>,
}

impl CompletionQueue {
    pub(super) fn new(number: u16, base: u64, entries: u32, vector: Option<u16>) -> Self {
        let (tail, phase, waiting) = (0, true, VecDeque::new());
        Self { number, base, entries, tail, phase, vector, waiting }
    }

    /// Posts completions of a submission queue whose head is `head`, as far as there is room.
    pub(super) fn post(
        &mut self,
        machine: &Machine,
        (submission, head): (u16, u32),
        completions: &[Completion],
    ) -> Result<(), Outside> {
        for it in completions {
            let head = u16::try_from(head).expect("queues have at most 65536 entries");
            let mut entry = completion(it.id, head, it.status, it.value);
            entry[10..12].copy_from_slice(&submission.to_le_bytes());
            self.waiting.push_back(entry);
        }
        self.post_waiting(machine)
    }

    /// Posts what there was no room for.
    pub(super) fn post_waiting(&mut self, machine: &Machine) -> Result<(), Outside> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let memory = machine.memory();
        let index = 2 * usize::from(self.number) + 1;
        let (mut has_posted, mut has_looked) = (false, false);
        loop {
            let head = machine.doorbells.value(&memory, index)?;
            let is_full = (self.tail + 1) % self.entries == head;
            if is_full {
                // A doorbell may have come meanwhile: it is looked for once more.
                if has_looked {
                    break;
                }
                machine.doorbells.ask(&memory, index, head)?;
                has_looked = true;
                continue;
            }
            let Some(entry) = self.waiting.pop_front() else { break };
            let place = self.base.wrapping_add(u64::from(self.tail) * COMPLETION_BYTES as u64);
            memory.write(place, &entry[..14])?;
            let status = u16::from_le_bytes([entry[14], entry[15]]) | u16::from(self.phase);
            memory.store_u16(place.wrapping_add(14), status)?;
            self.tail = (self.tail + 1) % self.entries;
            self.phase ^= self.tail == 0;
            (has_posted, has_looked) = (true, false);
        }
        if let Some(vector) = self.vector.filter(|_| has_posted) {
            machine.interrupt(vector);
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Place of a submission queue, and the queue of its completions.
pub(super) struct Place {
    pub(super) number: u16,
    pub(super) base: u64,
    pub(super) entries: u32,
    pub(super) completion_number: u16,
    pub(super) completion: Arc<Mutex<CompletionQueue>>,
}

/// A submission queue for I/O, with its thread.
pub(super) struct SubmissionQueue {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    machine: Arc<Machine>,
    subsystem: Arc<Subsystem>,
    place: Place,
    wake: Signal,
    stop: Signal,
    is_stopping: AtomicBool,
    held: Mutex<BTreeMap<u32, Held>>,
    /// Signalled when nothing is held any more.
    is_empty: Condvar,
}

/// Completions that wait for the model.
struct Held {
    completions: Vec<Completion>,
    head: u32,
    /// Commands to be recorded.
    answered: Vec<Asked>,
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
        place: Place,
        io: IoQueue,
    ) -> io::Result<Self> {
        let pace = subsystem.pace().cloned();
        let shared = Arc::new(Shared {
            machine: Arc::clone(machine),
            subsystem: Arc::clone(subsystem),
            place,
            wake: Signal::new()?,
            stop: Signal::new()?,
            is_stopping: AtomicBool::new(false),
            held: Mutex::default(),
            is_empty: Condvar::new(),
        });
        let holder = Arc::clone(&shared);
        let lane = pace.map(|pace| Lane::new(&pace, holder)).transpose()?;
        let own = Arc::clone(&shared);
        let builder = thread::Builder::new().name("vfio-user-queue".to_owned());
        let thread = builder.spawn(move || own.run(io, lane.as_ref()))?;
        Ok(Self { shared, thread: Some(thread) })
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

/// Takes nothing more, and completes what was taken.
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
    answered: Option<Vec<Asked>>,
    data: Vec<u8>,
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, BTreeMap<u32, Held>> {
        locked(&self.held)
    }

    fn run(&self, io: IoQueue, lane: Option<&Lane>) {
        let answered = self.machine.recorder.is_some().then(Vec::new);
        let mut work = Work { io, head: 0, answers: Pages::default(), answered, data: Vec::new() };
        if self.serve(&mut work, lane).is_err() {
            self.machine.is_fatal.store(true, Ordering::Release);
        }
        let mut held = self.held();
        while !held.is_empty() {
            held = self.is_empty.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn serve(&self, work: &mut Work, lane: Option<&Lane>) -> io::Result<()> {
        let index = 2 * usize::from(self.place.number);
        let doorbells = &self.machine.doorbells;
        let mut looks = 0;
        while !self.is_stopping.load(Ordering::Acquire) {
            let memory = self.machine.memory();
            let tail = doorbells.value(&memory, index).map_err(io::Error::other)?;
            let is_blocked = locked(&self.place.completion).is_full();
            // A doorbell beyond the queue is a mistake of the host, and means nothing.
            if tail != work.head && tail < self.place.entries && !is_blocked {
                looks = 0;
                self.carry_out(&memory, tail, (work, lane)).map_err(io::Error::other)?;
                continue;
            }
            looks += 1;
            if looks < LOOKS {
                thread::yield_now();
                continue;
            }
            looks = 0;
            doorbells.ask(&memory, index, tail).map_err(io::Error::other)?;
            if doorbells.value(&memory, index).map_err(io::Error::other)? == tail {
                self.wake.wait_with(&self.stop)?;
            }
        }
        Ok(())
    }

    /// Carries out commands up to `tail`, as many as are carried out together.
    fn carry_out(
        &self,
        memory: &GuestMemory,
        tail: u32,
        (work, lane): (&mut Work, Option<&Lane>),
    ) -> Result<(), Outside> {
        let issued_at = Instant::now();
        work.answers.use_memory(memory);
        for _ in 0..BATCH {
            if work.head == tail {
                break;
            }
            let mut entry = [0; COMMAND_BYTES];
            let offset = u64::from(work.head) * COMMAND_BYTES as u64;
            memory.read(self.place.base.wrapping_add(offset), &mut entry)?;
            work.head = (work.head + 1) % self.place.entries;
            let asked = self.execute(memory, &Command::of(&entry), work);
            if let Some(lane) = lane {
                self.finish(work);
                self.hold(work, (lane, asked), issued_at)?;
            }
        }
        self.finish(work);
        let completions = std::mem::take(&mut work.answers.completions);
        let answered = work.answered.as_mut().map(std::mem::take).unwrap_or_default();
        self.post(work.head, &completions)?;
        self.record(&answered, issued_at);
        Ok(())
    }

    /// Carries out a command, or completes it with an error. Returns the command for the modelled
    /// drive.
    fn execute(&self, memory: &GuestMemory, command: &Command, work: &mut Work) -> Option<Asked> {
        let Work { io, answers, answered, data, .. } = work;
        // What cannot be parsed is refused by the queue itself.
        let parsed = io.parse(command, &self.subsystem).ok();
        let length = parsed.map_or(0, |io| *io.host_bytes().start());
        if data.len() < length {
            data.resize(length, 0);
        }
        let fetched = fetch(memory, command, &mut data[..length]).map(|()| &data[..length]);
        io.execute(command, fetched, &self.subsystem, (answers, answered)).0
    }

    /// Completes what waits for reads and flushes.
    fn finish(&self, work: &mut Work) {
        let Work { io, answers, answered, .. } = work;
        io.finish_reads(&self.subsystem, answers, answered);
        io.settle(&self.subsystem, answers, answered);
    }

    /// Holds the completions of a command until the model is done with it; what no drive was asked
    /// for is posted at once.
    fn hold(
        &self,
        work: &mut Work,
        (lane, asked): (&Lane, Option<Asked>),
        issued_at: Instant,
    ) -> Result<(), Outside> {
        let completions = std::mem::take(&mut work.answers.completions);
        let answered = work.answered.as_mut().map(std::mem::take).unwrap_or_default();
        let Some(asked) = asked else {
            self.post(work.head, &completions)?;
            self.record(&answered, issued_at);
            return Ok(());
        };
        let held = Held { completions, head: work.head, answered, issued_at };
        let mut all = self.held();
        let ticket = lane.submit(issued_at, asked);
        all.insert(ticket, held);
        Ok(())
    }

    fn post(&self, head: u32, completions: &[Completion]) -> Result<(), Outside> {
        let of = (self.place.number, head);
        locked(&self.place.completion).post(&self.machine, of, completions)
    }

    fn record(&self, answered: &[Asked], issued_at: Instant) {
        if let Some((recorder, client)) = &self.machine.recorder
            && !answered.is_empty()
        {
            let completed_at = Instant::now();
            let served = |asked: &Asked| Served { asked: *asked, issued_at, completed_at };
            recorder.keep(*client, &answered.iter().map(served).collect::<Vec<_>>());
        }
    }
}

impl Holder for Shared {
    fn send_due(&self, tickets: &[u32]) {
        for ticket in tickets {
            let Some(due) = self.held().remove(ticket) else { continue };
            if self.post(due.head, &due.completions).is_err() {
                self.machine.is_fatal.store(true, Ordering::Release);
            }
            self.record(&due.answered, due.issued_at);
        }
        if self.held().is_empty() {
            self.is_empty.notify_all();
        }
    }
}
