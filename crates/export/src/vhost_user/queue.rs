//! The thread of one virtqueue.
//!
//! ```text
//!   kicked ──► take a batch ──► carry out ──► give back, or hold until the model is done ──► call
//!      ▲            │ nothing there for some microseconds
//!      └── sleep ◄──┘
//! ```
//!
//! While there is work the driver is asked not to kick, so that under load neither side makes a
//! call to the system for a request.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::block::{Block, Done};
use super::inflight::Inflight;
use super::ring::{Chain, Ring, RingError};
use crate::descriptor_socket::Signal;
use crate::guest_memory::GuestMemory;
use crate::pace::Holder;
use crate::{Asked, Lane, Recorder, Served};

/// Most chains that are carried out together.
const BATCH: usize = 64;
/// Looks for more work before the thread sleeps, some 10 us in all; between two of them others may
/// have this processor.
const LOOKS: u32 = 24;

/// Parts that the queues of one client share.
pub(super) struct Common {
    pub(super) block: Block,
    pub(super) memory: Mutex<Arc<GuestMemory>>,
    /// The recorder of commands, if somebody records, and the number of this client.
    pub(super) recorder: Option<(Arc<dyn Recorder>, u64)>,
    /// Reason why the client is to be dropped, once there is one.
    pub(super) failure: Mutex<Option<String>>,
    /// Has the client's own thread look at that.
    pub(super) fail: Box<dyn Fn() + Send + Sync>,
}

/// A ring with what goes with it.
pub(super) struct Parts {
    pub(super) ring: Ring,
    pub(super) inflight: Option<Inflight>,
    pub(super) kick: Arc<Signal>,
    pub(super) call: Option<Signal>,
}

/// A virtqueue that is served.
pub(super) struct Queue {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    common: Arc<Common>,
    kick: Arc<Signal>,
    /// Raised at the end.
    stop: Signal,
    is_stopping: AtomicBool,
    state: Mutex<State>,
    /// Signalled when nothing is held any more.
    is_empty: Condvar,
}

struct State {
    ring: Ring,
    inflight: Option<Inflight>,
    call: Option<Signal>,
    /// Chains that wait for the model, by ticket.
    held: BTreeMap<u32, Held>,
}

/// A chain that was carried out.
struct Held {
    id: u16,
    slots: u16,
    written_bytes: u32,
    /// The command, if it is to be recorded.
    asked: Option<Asked>,
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
        let state = State { ring, inflight, call, held: BTreeMap::new() };
        let shared = Arc::new(Shared {
            common,
            kick,
            stop: Signal::new()?,
            is_stopping: AtomicBool::new(false),
            state: Mutex::new(state),
            is_empty: Condvar::new(),
        });
        let pace = shared.common.block.export().pace.clone();
        let holder = Arc::clone(&shared);
        let lane = pace.map(|pace| Lane::new(&pace, holder)).transpose()?;
        let own = Arc::clone(&shared);
        let builder = thread::Builder::new().name("vhost-user-queue".to_owned());
        let thread = builder.spawn(move || own.run(lane.as_ref()))?;
        Ok(Self { shared, thread })
    }

    /// Has the driver told by `call` from now on.
    pub(super) fn set_call(&self, call: Option<Signal>) {
        self.shared.lock().call = call;
    }

    /// Takes nothing more, gives back what was taken, and returns the position of the ring.
    pub(super) fn stop(self) -> u32 {
        self.shared.is_stopping.store(true, Ordering::Release);
        self.shared.stop.raise();
        // A panic of it was printed.
        let _ = self.thread.join();
        self.shared.lock().ring.base()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, lane: Option<&Lane>) {
        if let Err(error) = self.serve(lane) {
            self.fail(&error.to_string());
        }
        let mut state = self.lock();
        while !state.held.is_empty() {
            state = self.is_empty.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(inflight) = &state.inflight {
            inflight.end();
        }
    }

    fn fail(&self, reason: &str) {
        let mut failure = self.common.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| reason.to_owned());
        drop(failure);
        (self.common.fail)();
    }

    fn serve(&self, lane: Option<&Lane>) -> io::Result<()> {
        let mut scratch = Vec::new();
        let mut chains = self.begin().map_err(io::Error::other)?;
        let mut looks = 0;
        while !self.is_stopping.load(Ordering::Acquire) {
            let memory = self.common.memory();
            if !chains.is_empty() {
                looks = 0;
                self.carry_out(&memory, (&chains, &mut scratch), lane).map_err(io::Error::other)?;
                chains.clear();
            }
            self.take(&memory, &mut chains).map_err(io::Error::other)?;
            if !chains.is_empty() {
                continue;
            }
            looks += 1;
            if looks < LOOKS {
                thread::yield_now();
                continue;
            }
            looks = 0;
            let came = self.lock().ring.ask_for_kicks(&memory, true).map_err(io::Error::other)?;
            if !came {
                self.kick.wait_with(&self.stop)?;
            }
        }
        // What was taken is carried out, whatever comes.
        let memory = self.common.memory();
        self.carry_out(&memory, (&chains, &mut scratch), lane).map_err(io::Error::other)
    }

    /// Chains that an earlier server left.
    fn begin(&self) -> Result<Vec<Chain>, RingError> {
        let memory = self.common.memory();
        let State { ring, inflight, .. } = &mut *self.lock();
        inflight.as_mut().map_or(Ok(Vec::new()), |inflight| inflight.begin(ring, &memory))
    }

    /// Takes what the driver made available, as much as is carried out together.
    fn take(&self, memory: &GuestMemory, chains: &mut Vec<Chain>) -> Result<(), RingError> {
        let mut own = Vec::new();
        let State { ring, inflight, .. } = &mut *self.lock();
        while chains.len() < BATCH
            && let Some(chain) = ring.pop(memory, &mut own)?
        {
            if let Some(inflight) = inflight {
                inflight.note_taken(&chain, &own, ring.base())?;
            }
            chains.push(chain);
        }
        if !chains.is_empty() {
            ring.ask_for_kicks(memory, false)?;
        }
        Ok(())
    }

    fn carry_out(
        &self,
        memory: &GuestMemory,
        (chains, scratch): (&[Chain], &mut Vec<u8>),
        lane: Option<&Lane>,
    ) -> Result<(), RingError> {
        if chains.is_empty() {
            return Ok(());
        }
        let issued_at = Instant::now();
        let done = self.common.block.carry_out(memory, chains, scratch);
        let mut served = Vec::new();
        let mut state = self.lock();
        for (chain, done) in chains.iter().zip(&done) {
            let held = self.held(memory, (chain, done), issued_at);
            // What no drive was asked for is answered at once.
            match lane.zip(done.asked) {
                Some((lane, asked)) => {
                    let ticket = lane.submit(issued_at, asked);
                    state.held.insert(ticket, held);
                }
                None => state.give_back(memory, &held, &mut served)?,
            }
        }
        state.tell(memory)?;
        drop(state);
        self.record(&served);
        Ok(())
    }

    fn held(
        &self,
        memory: &GuestMemory,
        (chain, done): (&Chain, &Done),
        issued_at: Instant,
    ) -> Held {
        let written_bytes = Block::answer(memory, chain, done);
        let is_recorded = self.common.recorder.is_some() && done.is_ok();
        let asked = done.asked.filter(|_| is_recorded);
        Held { id: chain.id, slots: chain.slots, written_bytes, asked, issued_at }
    }

    fn record(&self, served: &[Served]) {
        if let Some((recorder, client)) = &self.common.recorder
            && !served.is_empty()
        {
            recorder.keep(*client, served);
        }
    }
}

impl Holder for Shared {
    fn send_due(&self, tickets: &[u32]) {
        let memory = self.common.memory();
        let mut served = Vec::new();
        let mut state = self.lock();
        let mut given = Ok(());
        for ticket in tickets {
            let Some(held) = state.held.remove(ticket) else { continue };
            given = given.and_then(|()| state.give_back(&memory, &held, &mut served));
        }
        let given = given.and_then(|()| state.tell(&memory));
        if state.held.is_empty() {
            self.is_empty.notify_all();
        }
        drop(state);
        self.record(&served);
        if let Err(error) = given {
            self.fail(&error.to_string());
        }
    }
}

impl State {
    /// Gives a chain back to the driver.
    fn give_back(
        &mut self,
        memory: &GuestMemory,
        held: &Held,
        served: &mut Vec<Served>,
    ) -> Result<(), RingError> {
        if let Some(inflight) = &self.inflight {
            inflight.note_giving(held.id, self.ring.base());
        }
        if let Some(asked) = held.asked {
            let (issued_at, completed_at) = (held.issued_at, Instant::now());
            served.push(Served { asked, issued_at, completed_at });
        }
        self.ring.push(memory, (held.id, held.slots), held.written_bytes)?;
        if let Some(inflight) = &self.inflight {
            inflight.note_given(held.id, self.ring.base());
        }
        Ok(())
    }

    /// Tells the driver of what it got back, if it wants to be told.
    fn tell(&mut self, memory: &GuestMemory) -> Result<(), RingError> {
        let wants_call = self.ring.wants_call(memory)?;
        if let Some(call) = self.call.as_ref().filter(|_| wants_call) {
            call.raise();
        }
        Ok(())
    }
}
