//! The thread of one virtqueue.
//!
//! ```text
//!   kicked ──► take a batch ──► half by half: carry out ──► used, or held for the model ──► call
//!      ▲            │ no chain for some microseconds
//!      └── sleep ◄──┘
//! ```
//!
//! While there is work the driver is asked not to kick: under load a request needs no system call.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::block::{Block, CompletedRequest, Workspace};
use super::inflight::Inflight;
use super::ring::{Chain, Descriptor, Ring, RingError};
use crate::batch_parts::BatchParts;
use crate::descriptor_socket::Signal;
use crate::guest_memory::GuestMemory;
use crate::pace::Holder;
use crate::polls::Polls;
use crate::{Lane, PacedCommand, RecordedCommand, Recorder};

/// Most chains that are carried out together.
const BATCH: usize = 64;

/// Parts that the queues of one client share.
pub(super) struct Common {
    pub(super) block: Block,
    pub(super) memory: Mutex<Arc<GuestMemory>>,
    /// The recorder of commands, if there is one, and the number of this client.
    pub(super) recorder: Option<(Arc<dyn Recorder>, u64)>,
    /// Reason why the client is to be dropped, once there is one.
    pub(super) failure: Mutex<Option<String>>,
    /// Ends the connection, so that the client's own thread drops the client.
    pub(super) fail: Box<dyn Fn() + Send + Sync>,
}

/// A ring with its events and its memory for descriptors in flight.
pub(super) struct Parts {
    pub(super) ring: Ring,
    pub(super) inflight: Option<Inflight>,
    pub(super) kick: Arc<Signal>,
    pub(super) call: Option<Signal>,
}

/// A virtqueue that is served.
pub(super) struct Queue {
    shared: Arc<QueueState>,
    thread: JoinHandle<()>,
}

struct QueueState {
    common: Arc<Common>,
    kick: Arc<Signal>,
    /// Raised at the end.
    stop: Signal,
    is_stopping: AtomicBool,
    /// Entries of the ring.
    size: u16,
    state: Mutex<State>,
    /// Signalled when chains are no longer as many as the ring has entries, and when there are
    /// none.
    is_less: Condvar,
}

struct State {
    ring: Ring,
    inflight: Option<Inflight>,
    call: Option<Signal>,
    /// Chains that wait for the model, by ticket: as many at most as the ring has entries, also if
    /// a driver makes more than that available without waiting for any.
    held: BTreeMap<u32, PendingChain>,
    /// True if chains were left undone at the end of the server: they stay in flight.
    is_left: bool,
}

/// A chain that was carried out and waits for the model.
struct PendingChain {
    id: u16,
    slots: u16,
    written_bytes: u32,
    /// The command, if it is to be recorded.
    asked: Option<PacedCommand>,
    issued_at: Instant,
}

impl Common {
    fn memory(&self) -> Arc<GuestMemory> {
        Arc::clone(&self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Queue {
    /// Serves a ring.
    ///
    /// # Errors
    /// Fails if the system has no thread or descriptor, or the model no room for a client.
    pub(super) fn start(common: Arc<Common>, parts: Parts) -> io::Result<Self> {
        let Parts { ring, inflight, kick, call } = parts;
        let size = ring.size();
        let state = State { ring, inflight, call, held: BTreeMap::new(), is_left: false };
        let shared = Arc::new(QueueState {
            common,
            kick,
            stop: Signal::new()?,
            is_stopping: AtomicBool::new(false),
            size,
            state: Mutex::new(state),
            is_less: Condvar::new(),
        });
        let pace = shared.common.block.export().pace.clone();
        let holder = Arc::clone(&shared);
        let lane = pace.map(|pace| Lane::new(&pace, holder)).transpose()?;
        let own = Arc::clone(&shared);
        let builder = thread::Builder::new().name("vhost-user-queue".to_owned());
        let thread = builder.spawn(move || own.run(lane.as_ref()))?;
        Ok(Self { shared, thread })
    }

    /// Notifies the driver by `call` from now on, and once now: what was notified before may have
    /// gone nowhere, as QEMU sends the event for its machine's interrupt after it enabled the ring.
    pub(super) fn set_call(&self, call: Option<Signal>) {
        let mut state = self.shared.lock();
        state.call = call;
        state.call_driver();
    }

    /// Takes no more chains, carries out those that were taken, and returns the position of the
    /// ring.
    pub(super) fn stop(self) -> u32 {
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.stop.raise();
        // A panic of it was printed.
        let _ = self.thread.join();
        self.shared.lock().ring.base()
    }
}

impl QueueState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, lane: Option<&Lane>) {
        if let Err(error) = self.serve(lane) {
            self.fail(&error.to_string());
        }
        let state = self.wait_for_held(1);
        if let Some(inflight) = state.inflight.as_ref().filter(|_| !state.is_left) {
            inflight.end();
        }
    }

    /// Waits until fewer chains than `limit` are held.
    fn wait_for_held(&self, limit: usize) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while state.held.len() >= limit {
            state = self.is_less.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn fail(&self, reason: &str) {
        let mut failure = self.common.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| reason.to_owned());
        drop(failure);
        (self.common.fail)();
    }

    fn serve(&self, lane: Option<&Lane>) -> io::Result<()> {
        let (mut workspace, mut own) = (Workspace::default(), Vec::new());
        let mut chains = self.begin().map_err(io::Error::other)?;
        let (mut polls, mut batch_parts) = (Polls::default(), BatchParts::default());
        while !self.is_stopping.load(Ordering::Acquire) && !self.common.block.is_late() {
            let memory = self.common.memory();
            if !chains.is_empty() {
                polls.reset();
                let begun = Instant::now();
                let is_durable = self.common.block.is_durable();
                // A flush is for as many as possible.
                let part = if is_durable { chains.len() } else { batch_parts.of(chains.len()) };
                for chains in chains.chunks(part) {
                    let done = self.carry_out(&memory, chains, &mut workspace, lane);
                    done.map_err(io::Error::other)?;
                }
                batch_parts.note(chains.len(), begun.elapsed());
                chains.clear();
            }
            self.take(&memory, &mut chains, &mut own).map_err(io::Error::other)?;
            if !chains.is_empty() {
                continue;
            }
            if polls.poll_again() {
                continue;
            }
            let came = self.lock().ring.ask_for_kicks(&memory, true).map_err(io::Error::other)?;
            if !came {
                self.kick.wait_with(&self.stop)?;
            }
        }
        // Chains that were taken are carried out before the end, while there is time.
        let memory = self.common.memory();
        self.carry_out(&memory, &chains, &mut workspace, lane).map_err(io::Error::other)
    }

    /// Chains that an earlier server left in flight. It may have been killed after it marked some
    /// as used and before it notified the driver, who would wait for that for ever.
    fn begin(&self) -> Result<Vec<Chain>, RingError> {
        let memory = self.common.memory();
        let state = &mut *self.lock();
        let State { ring, inflight, .. } = state;
        let left = inflight.as_mut().map_or(Ok(Vec::new()), |it| it.begin(ring, &memory))?;
        state.call_driver();
        Ok(left)
    }

    /// Takes chains that the driver made available, up to a batch; waits until some are no longer
    /// held, if as many are as the ring has entries. `own` is memory for the descriptors of one.
    fn take(
        &self,
        memory: &GuestMemory,
        chains: &mut Vec<Chain>,
        own: &mut Vec<Descriptor>,
    ) -> Result<(), RingError> {
        let size = usize::from(self.size);
        let State { ring, inflight, held, .. } = &mut *self.wait_for_held(size);
        let room = size - held.len();
        while chains.len() < BATCH.min(room)
            && let Some(chain) = ring.pop(memory, own)?
        {
            if let Some(inflight) = inflight {
                inflight.note_taken(&chain, own, ring.base())?;
            }
            chains.push(chain);
        }
        inflight.as_ref().map_or(Ok(()), Inflight::check)?;
        if !chains.is_empty() {
            ring.ask_for_kicks(memory, false)?;
        }
        Ok(())
    }

    fn carry_out(
        &self,
        memory: &GuestMemory,
        chains: &[Chain],
        workspace: &mut Workspace,
        lane: Option<&Lane>,
    ) -> Result<(), RingError> {
        if chains.is_empty() {
            return Ok(());
        }
        let issued_at = Instant::now();
        let done = self.common.block.carry_out(memory, chains, workspace);
        let mut served = Vec::new();
        let mut state = self.lock();
        state.is_left |= done.len() < chains.len();
        for (chain, done) in chains.iter().zip(done) {
            let held = self.held(memory, chain, done, issued_at);
            // A request that the model does not have is returned at once.
            match lane.zip(done.asked) {
                Some((lane, asked)) => {
                    let ticket = lane.submit(issued_at, asked);
                    state.held.insert(ticket, held);
                }
                None => state.mark_used(memory, &held, &mut served)?,
            }
        }
        state.notify(memory)?;
        drop(state);
        self.record(&served);
        Ok(())
    }

    fn held(
        &self,
        memory: &GuestMemory,
        chain: &Chain,
        done: &CompletedRequest,
        issued_at: Instant,
    ) -> PendingChain {
        let written_bytes = Block::answer(memory, chain, done);
        let is_recorded = self.common.recorder.is_some() && done.is_ok();
        let asked = done.asked.filter(|_| is_recorded);
        PendingChain { id: chain.id, slots: chain.slots, written_bytes, asked, issued_at }
    }

    fn record(&self, served: &[RecordedCommand]) {
        if let Some((recorder, client)) = &self.common.recorder
            && !served.is_empty()
        {
            recorder.keep(*client, served);
        }
    }
}

impl Holder for QueueState {
    fn send_due(&self, tickets: &[u32]) {
        let memory = self.common.memory();
        let mut served = Vec::new();
        let mut state = self.lock();
        let mut given = Ok(());
        let was_full = state.held.len() >= self.size.into();
        for ticket in tickets {
            let Some(held) = state.held.remove(ticket) else { continue };
            given = given.and_then(|()| state.mark_used(&memory, &held, &mut served));
        }
        let given = given.and_then(|()| state.notify(&memory));
        if was_full || state.held.is_empty() {
            self.is_less.notify_all();
        }
        drop(state);
        self.record(&served);
        if let Err(error) = given {
            self.fail(&error.to_string());
        }
    }
}

impl State {
    /// Returns a chain to the driver: marks it as used.
    fn mark_used(
        &mut self,
        memory: &GuestMemory,
        held: &PendingChain,
        served: &mut Vec<RecordedCommand>,
    ) -> Result<(), RingError> {
        if let Some(inflight) = &self.inflight {
            inflight.note_marking(held.id, self.ring.base());
        }
        if let Some(asked) = held.asked {
            let (issued_at, completed_at) = (held.issued_at, Instant::now());
            served.push(RecordedCommand { asked, issued_at, completed_at });
        }
        self.ring.push(memory, (held.id, held.slots), held.written_bytes)?;
        if let Some(inflight) = &self.inflight {
            // The next server sees by the ring whether this one was.
            self.ring.publish(memory)?;
            inflight.note_used(held.id, self.ring.base());
            inflight.check()?;
        }
        Ok(())
    }

    /// Has the driver see used chains, and notifies it, unless it asked for no notification.
    fn notify(&mut self, memory: &GuestMemory) -> Result<(), RingError> {
        self.ring.publish(memory)?;
        if self.ring.wants_call(memory)? {
            self.call_driver();
        }
        Ok(())
    }

    fn call_driver(&self) {
        if let Some(call) = &self.call {
            call.raise();
        }
    }
}
