//! A controller with registers, whose queues lie in the memory of its host: an NVMe drive on PCI
//! Express.
//!
//! ```text
//!   registers: CC.EN ──► admin queue ──► Create I/O Completion Queue, then Submission Queue
//!   doorbell 0 ──► Controller, here          doorbell n ──► thread of the queue
//! ```
//!
//! Its owner passes on accesses to registers, the memory of the host, and events for interrupts,
//! from one thread.
//!
//! **Invariants**
//! - Every address of the host is checked against its memory.
//! - A reset returns only once nothing of the host's memory is in use.

mod pages;
mod queue;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use self::pages::{PAGE_BYTES, Pages, fetch};
use self::queue::{CompletionQueue, Doorbells, Machine, QueuePlace, SubmissionQueue};
use super::admin::{admin_data_bytes, complete, complete_held, execute};
use super::command::{AdminCommand, COMMAND_BYTES, Command};
use super::context::{CommandCompletion, Context, Outcome};
use super::controller::Controller;
use super::event::DoorbellError;
use super::host::{Host, Purpose};
use super::io_queue::IoQueue;
use super::lock::locked;
use super::property::{
    ENABLE, FATAL, QUEUE_ENTRIES_MAX, QUEUES_MAX, READY_TIMEOUTS, VECTORS, VERSION, capabilities,
    offset,
};
use super::status::Status;
use super::subsystem::Subsystem;
use super::transport::{TRANSFER_BYTES_MAX, Transport};
use super::wire::{low16, u64_at};
use crate::Recorder;
use crate::connection::elapsed;
use crate::descriptor_socket::Signal;
use crate::guest_memory::{GuestMemory, GuestMemoryError};

/// Offset of the doorbells, each of four bytes.
pub(crate) const DOORBELLS_AT: u64 = 0x1000;
/// The admin queue.
struct AdminQueue {
    base: u64,
    entries: u32,
    head: u32,
    completion: CompletionQueue,
    answers: Pages,
}

/// A controller with registers.
pub(crate) struct PcieController {
    subsystem: Arc<Subsystem>,
    controller: Arc<Mutex<Controller>>,
    id: u16,
    begun: Instant,
    machine: Arc<Machine>,
    /// AQA, ASQ and ACQ.
    admin_sizes: u32,
    admin_places: [u64; 2],
    admin: Option<AdminQueue>,
    completions: BTreeMap<u16, Arc<Mutex<CompletionQueue>>>,
    submissions: BTreeMap<u16, SubmissionQueue>,
}

impl PcieController {
    /// A controller that is disabled, of a host without memory. Its commands are recorded by
    /// `recorder`, if there is one, under the number of the client. `cut` ends the connection to
    /// the host, once it has truncated its memory.
    ///
    /// # Errors
    /// Fails if the subsystem has the largest number of controllers.
    pub(crate) fn new(
        subsystem: &Arc<Subsystem>,
        recorder: Option<(Arc<dyn Recorder>, u64)>,
        cut: Box<dyn Fn() + Send + Sync>,
    ) -> io::Result<Self> {
        let host = Host {
            name: String::new(),
            id: [0; 16],
            transport: Transport::Pcie,
            is_authenticated: false,
            is_encrypted: false,
        };
        let begun = Instant::now();
        let admitted = subsystem.admit(Purpose::Io, host, (0, elapsed(begun)));
        let controller = admitted
            .map_err(|_| io::Error::other("the drive has 256 controllers, which is the limit"))?;
        let id = locked(&controller).id();
        let machine = Arc::new(Machine {
            memory: Mutex::default(),
            doorbells: Doorbells::new(usize::from(QUEUES_MAX) + 1),
            interrupts: Mutex::new((0..VECTORS).map(|_| None).collect()),
            is_fatal: AtomicBool::new(false),
            recorder,
            cut,
        });
        Ok(Self {
            subsystem: Arc::clone(subsystem),
            controller,
            id,
            begun,
            machine,
            admin_sizes: 0,
            admin_places: [0; 2],
            admin: None,
            completions: BTreeMap::new(),
            submissions: BTreeMap::new(),
        })
    }

    /// Memory of the host.
    pub(crate) fn memory(&self) -> GuestMemory {
        GuestMemory::clone(&self.machine.memory())
    }

    /// Replaces the memory of the host. A mapping that a queue is copying from stays until then.
    pub(crate) fn use_memory(&self, memory: GuestMemory) {
        *locked(&self.machine.memory) = Arc::new(memory);
    }

    /// Sets the event that an interrupt vector raises; none: nothing.
    pub(crate) fn set_interrupt(&self, vector: usize, signal: Option<Signal>) {
        if let Some(place) = locked(&self.machine.interrupts).get_mut(vector) {
            *place = signal;
        }
    }

    /// Fills `bytes` from the registers at an offset; reserved registers read as zeroes.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (at, byte) in (offset..).zip(bytes) {
            let (register, part) = (at & !7, at & 7);
            *byte = self.register(register).to_le_bytes()[usize::try_from(part).unwrap_or(0)];
        }
    }

    /// Eight bytes of the registers at a multiple of eight.
    fn register(&self, offset: u64) -> u64 {
        // Registers of four bytes that are the upper half.
        const CONFIGURATION: u32 = offset::CONFIGURATION - 4;
        const STATUS: u32 = offset::STATUS - 4;
        const ADMIN_SIZES: u32 = offset::ADMIN_SIZES - 4;
        let controller = locked(&self.controller);
        let fatal = if self.machine.is_fatal.load(Ordering::Acquire) { FATAL } else { 0 };
        match u32::try_from(offset).unwrap_or(u32::MAX) {
            offset::CAPABILITIES => capabilities(),
            offset::VERSION => VERSION.into(),
            CONFIGURATION => u64::from(controller.configuration()) << 32,
            STATUS => u64::from(controller.status() | fatal) << 32,
            ADMIN_SIZES => u64::from(self.admin_sizes) << 32,
            offset::ADMIN_SUBMISSION => self.admin_places[0],
            offset::ADMIN_COMPLETION => self.admin_places[1],
            offset::READY_TIMEOUTS => READY_TIMEOUTS.into(),
            _ => 0,
        }
    }

    /// Writes registers or doorbells, 32 bits at a time.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let (numbers, _) = bytes.as_chunks();
        for (at, number) in (offset..).step_by(4).zip(numbers) {
            self.write_number(at, u32::from_le_bytes(*number));
        }
    }

    fn write_number(&mut self, offset: u64, number: u32) {
        const SUBMISSION_HIGH: u32 = offset::ADMIN_SUBMISSION + 4;
        const COMPLETION_HIGH: u32 = offset::ADMIN_COMPLETION + 4;
        if let Some(at) = offset.checked_sub(DOORBELLS_AT) {
            if at.is_multiple_of(4) {
                self.ring(usize::try_from(at / 4).unwrap_or(usize::MAX), number);
            }
            return;
        }
        let [submission, completion] = &mut self.admin_places;
        match u32::try_from(offset).expect("below the doorbells") {
            offset::CONFIGURATION => self.configure(number),
            offset::ADMIN_SIZES => self.admin_sizes = number & 0x0FFF_0FFF,
            offset::ADMIN_SUBMISSION => put_half(submission, 0, number & !0xFFF),
            SUBMISSION_HIGH => put_half(submission, 32, number),
            offset::ADMIN_COMPLETION => put_half(completion, 0, number & !0xFFF),
            COMPLETION_HIGH => put_half(completion, 32, number),
            _ => {}
        }
    }

    fn configure(&mut self, configuration: u32) {
        let before = locked(&self.controller).configuration();
        if before & ENABLE != 0 && configuration & ENABLE == 0 {
            self.end_queues();
        }
        let context = context(&self.subsystem, self.begun);
        locked(&self.controller).configure(&context, configuration);
        if before & ENABLE == 0 && configuration & ENABLE != 0 {
            let [submission, completion] = [self.admin_sizes & 0xFFF, self.admin_sizes >> 16];
            if submission == 0 || completion == 0 {
                self.machine.fail();
                return;
            }
            let [base, completion_base] = self.admin_places;
            let completion = CompletionQueue::new(0, completion_base, completion + 1, Some(0));
            let (entries, head, answers) = (submission + 1, 0, Pages::default());
            // What was rung before is no command of this queue, and no room in it.
            (0..2).for_each(|index| self.machine.doorbells.ring(index, 0));
            self.admin = Some(AdminQueue { base, entries, head, completion, answers });
        }
    }

    /// Ends all queues: none uses the host's memory afterwards.
    fn end_queues(&mut self) {
        self.submissions.clear();
        self.completions.clear();
        self.admin = None;
        self.machine.doorbells.reset();
        self.machine.is_fatal.store(false, Ordering::Release);
    }

    /// Resets the controller, as if its power had been switched off and on.
    pub(crate) fn reset(&mut self) {
        self.configure(0);
        self.end_queues();
        (self.admin_sizes, self.admin_places) = (0, [0; 2]);
    }

    /// Entries of a queue; none if there is no such queue.
    fn entries(&self, number: u16, is_completion: bool) -> Option<u32> {
        match (number, is_completion) {
            (0, false) => self.admin.as_ref().map(|queue| queue.entries),
            (0, true) => self.admin.as_ref().map(|queue| queue.completion.entries()),
            (_, false) => self.submissions.get(&number).map(SubmissionQueue::entries),
            (_, true) => self.completions.get(&number).map(|queue| locked(queue).entries()),
        }
    }

    /// Rings a doorbell, or reports to the host that it is none, or the value none of its queue.
    fn ring(&mut self, index: usize, value: u32) {
        if self.admin.is_none() {
            return;
        }
        let (number, is_completion) =
            (u16::try_from(index / 2).unwrap_or(u16::MAX), index % 2 == 1);
        let error = match self.entries(number, is_completion) {
            None => Some(DoorbellError::Register),
            Some(entries) => (value >= entries).then_some(DoorbellError::Value),
        };
        if error.is_none() {
            self.machine.doorbells.ring(index, value);
        }
        let done = match (number, is_completion) {
            _ if let Some(error) = error => {
                locked(&self.controller).events().note_doorbell(error);
                self.post_held()
            }
            (0, false) => self.serve_admin(),
            (0, true) => self.post_admin(),
            (_, false) => {
                self.submissions.get(&number).into_iter().for_each(SubmissionQueue::wake);
                Ok(())
            }
            (_, true) => self.post_waiting(number),
        };
        if done.is_err() {
            self.machine.fail();
        }
    }

    /// Posts what the admin completion queue had no room for, and goes on with the commands that
    /// waited for that.
    fn post_admin(&mut self) -> Result<(), GuestMemoryError> {
        let Some(admin) = &mut self.admin else { return Ok(()) };
        admin.completion.post_waiting(&self.machine)?;
        self.serve_admin()
    }

    /// Posts what a completion queue had no room for, and wakes its submission queues.
    fn post_waiting(&self, number: u16) -> Result<(), GuestMemoryError> {
        let Some(queue) = self.completions.get(&number) else { return Ok(()) };
        locked(queue).post_waiting(&self.machine)?;
        let of_it = self.submissions.values().filter(|it| it.completion_number() == number);
        of_it.for_each(SubmissionQueue::wake);
        Ok(())
    }

    /// Carries out the commands of the admin queue up to its doorbell, while there is room for
    /// completions: those of a host that makes none would be kept here without a limit.
    fn serve_admin(&mut self) -> Result<(), GuestMemoryError> {
        let memory = self.machine.memory();
        let tail = self.machine.doorbells.value(&memory, 0)?;
        loop {
            let Some(queue) = &mut self.admin else { return Ok(()) };
            if queue.head == tail || tail >= queue.entries || queue.completion.is_full() {
                return Ok(());
            }
            let mut entry = [0; COMMAND_BYTES];
            let place = queue.base.wrapping_add(u64::from(queue.head) * COMMAND_BYTES as u64);
            memory.read(place, &mut entry)?;
            queue.head = (queue.head + 1) % queue.entries;
            let command = Command::of(&entry);
            let outcome = self.execute(&memory, &command);
            if let Some(queue) = &mut self.admin {
                queue.answers.use_memory(&memory);
                complete(&command, outcome, &mut queue.answers);
            }
            self.post_held()?;
        }
    }

    /// Advances time: completions that were held may be due. Returns the time after which it must
    /// be called again; none if only a command changes anything.
    pub(crate) fn advance(&mut self) -> Option<Duration> {
        let context = context(&self.subsystem, self.begun);
        // An expired Keep Alive Timeout is in the status of the controller.
        let next = locked(&self.controller).advance(&context).unwrap_or(None);
        if self.post_held().is_err() {
            self.machine.fail();
        }
        next.map(|at| Duration::from_nanos(at.saturating_sub(elapsed(self.begun)).0))
    }

    /// Posts completions of the admin queue, with those that were held and are due.
    fn post_held(&mut self) -> Result<(), GuestMemoryError> {
        let Some(queue) = &mut self.admin else { return Ok(()) };
        complete_held(&mut locked(&self.controller), &mut queue.answers);
        let completions = std::mem::take(&mut queue.answers.completions);
        queue.completion.post(&self.machine, 0, queue.head, &completions)
    }

    /// Carries out a command of the admin queue: here if it is about queues, else in the
    /// controller.
    fn execute(&mut self, memory: &GuestMemory, command: &Command) -> Outcome {
        let repertoire = locked(&self.controller).repertoire();
        let done = match repertoire.admin_command(command.opcode()) {
            None => Err(Status::INVALID_OPCODE),
            Some(_) if command.fuse() != 0 => Err(Status::INVALID_FIELD),
            Some(AdminCommand::CreateCompletionQueue) => self.create_completion(command),
            Some(AdminCommand::CreateSubmissionQueue) => self.create_submission(command),
            Some(AdminCommand::DeleteCompletionQueue) => self.delete_completion(command),
            Some(AdminCommand::DeleteSubmissionQueue) => self.delete_submission(command),
            Some(AdminCommand::DoorbellBuffer) => self.use_doorbell_buffer(memory, command),
            _ => {
                let mut data = vec![0; admin_data_bytes(command).min(TRANSFER_BYTES_MAX)];
                if let Err(status) = fetch(memory, command, &mut data) {
                    return Outcome::Completed(status.into());
                }
                let context = context(&self.subsystem, self.begun);
                return execute(&mut locked(&self.controller), &context, command, &data);
            }
        };
        Outcome::Completed(
            done.map_or_else(CommandCompletion::from, |()| CommandCompletion::value(0_u32)),
        )
    }

    /// Number, place and entries of a queue to be created.
    fn wanted_queue(&self, command: &Command) -> Result<(u16, u64, u32), Status> {
        let (number, entries) = (low16(command.dword(10)), (command.dword(10) >> 16) + 1);
        if number == 0 || number > locked(&self.controller).features().queues() {
            return Err(Status::QUEUE_IDENTIFIER);
        }
        if !(2..=QUEUE_ENTRIES_MAX).contains(&entries) {
            return Err(Status::QUEUE_SIZE);
        }
        let base = u64_at(command.bytes(), 24);
        // CAP.CQR: queues are contiguous.
        if command.dword(11) & 1 == 0 {
            return Err(Status::INVALID_FIELD);
        }
        if !base.is_multiple_of(PAGE_BYTES) {
            return Err(Status::PRP_OFFSET);
        }
        Ok((number, base, entries))
    }

    fn create_completion(&mut self, command: &Command) -> Result<(), Status> {
        let (number, base, entries) = self.wanted_queue(command)?;
        if self.completions.contains_key(&number) {
            return Err(Status::QUEUE_IDENTIFIER);
        }
        let vector = low16(command.dword(11) >> 16);
        if vector >= VECTORS {
            return Err(Status::INTERRUPT_VECTOR);
        }
        let vector = (command.dword(11) & 2 != 0).then_some(vector);
        let queue = CompletionQueue::new(number, base, entries, vector);
        self.machine.doorbells.ring(2 * usize::from(number) + 1, 0);
        self.completions.insert(number, Arc::new(Mutex::new(queue)));
        Ok(())
    }

    fn create_submission(&mut self, command: &Command) -> Result<(), Status> {
        let (number, base, entries) = self.wanted_queue(command)?;
        let completion_number = low16(command.dword(11) >> 16);
        let queues = locked(&self.controller).features().queues();
        if !(1..=queues).contains(&completion_number) {
            return Err(Status::QUEUE_IDENTIFIER);
        }
        let completion = self.completions.get(&completion_number);
        let completion = Arc::clone(completion.ok_or(Status::NO_COMPLETION_QUEUE)?);
        if self.submissions.contains_key(&number) {
            return Err(Status::QUEUE_IDENTIFIER);
        }
        locked(&self.controller).add_queue(number);
        let io = IoQueue::new(number, Arc::clone(&self.controller));
        let place = QueuePlace { number, base, entries, completion_number, completion };
        self.machine.doorbells.ring(2 * usize::from(number), 0);
        let started = SubmissionQueue::start(&self.machine, &self.subsystem, place, io);
        // The machine has no thread left; the host may try again later.
        self.submissions.insert(number, started.map_err(|_| Status::QUEUE_IDENTIFIER)?);
        Ok(())
    }

    fn delete_completion(&mut self, command: &Command) -> Result<(), Status> {
        let number = low16(command.dword(10));
        if self.submissions.values().any(|it| it.completion_number() == number) {
            return Err(Status::QUEUE_DELETION);
        }
        self.completions.remove(&number).map(drop).ok_or(Status::QUEUE_IDENTIFIER)
    }

    fn delete_submission(&mut self, command: &Command) -> Result<(), Status> {
        let number = low16(command.dword(10));
        let queue = self.submissions.remove(&number).ok_or(Status::QUEUE_IDENTIFIER)?;
        drop(queue);
        locked(&self.controller).remove_queue(number);
        Ok(())
    }

    fn use_doorbell_buffer(&self, memory: &GuestMemory, command: &Command) -> Result<(), Status> {
        let entry = command.bytes();
        let (doorbells, events) = (u64_at(entry, 24), u64_at(entry, 32));
        if doorbells % PAGE_BYTES != 0 || events % PAGE_BYTES != 0 {
            return Err(Status::INVALID_FIELD);
        }
        self.machine.doorbells.use_buffer(memory, (doorbells, events))?;
        // Queues that sleep look there from now on.
        self.submissions.values().for_each(SubmissionQueue::wake);
        Ok(())
    }
}

impl Drop for PcieController {
    fn drop(&mut self) {
        self.end_queues();
        self.subsystem.leave(self.id);
    }
}

/// Replaces the 32 bits of a number from `shift` on.
fn put_half(number: &mut u64, shift: u32, half: u32) {
    *number = *number & !(0xFFFF_FFFF << shift) | u64::from(half) << shift;
}

fn context(subsystem: &Subsystem, begun: Instant) -> Context<'_> {
    subsystem.context(elapsed(begun), None)
}
