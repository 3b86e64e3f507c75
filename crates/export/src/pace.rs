//! Pace: delays replies until a modelled drive would have completed their commands.
//!
//! ```text
//!   command ──► device: carried out at once ──► Holder: the reply, held back ──► sent
//!          └──► Lane ──► Model: when would it have completed? ──► the one thread ──┘
//! ```
//!
//! Clients share one model, as they share the drive, so the load of one client slows the others,
//! and bursts, cliffs and stalls are those of the model. They share one thread, too, which calls
//! each [`Holder`] when replies are due. Only that thread polls the clock: waiting takes one
//! processor at most, however many clients there are, and none while nothing is outstanding.
//!
//! **Invariants**
//! - No reply is due before the model is done with its command.
//! - The lock of the model is never held while a [`Holder`] is called, nor while a thread waits.

mod lateness;
mod model;

use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockio::{ClimateReading, Nanos, Op, Pacer};
use device::{Device, DeviceError};

pub(crate) use self::lateness::PEAKS_MAX;
pub use self::lateness::{Lateness, Peak, Peaks};
use self::model::{Due, Model};

/// Longest time before something is due for which the thread stays awake: falling asleep and waking
/// takes about as long.
const NEAR: Nanos = Nanos::from_micros(60);
/// Polls of the clock between two looks at whether others want this processor.
const POLLS: u32 = 16;
/// The time of nothing.
const NEVER: u64 = u64::MAX;

/// A modelled drive that clients share, and the thread that has due replies sent.
pub struct Pace {
    shared: Arc<PacerState>,
    /// Begun for the first client.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Submission of one client's commands to the model, on a modelled host thread of its own until it
/// is dropped.
#[derive(Debug)]
pub struct Lane {
    pace: Arc<Pace>,
    number: u16,
}

/// Command of a client, as the model needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacedCommand {
    /// Kind of command.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// True if it is answered only once it is durable (force unit access).
    pub fua: bool,
}

/// Holder of replies that are not due yet.
pub trait Holder: Send + Sync {
    /// Sends the replies of these tickets in this order; they are due now. It must not block: one
    /// thread calls it for all clients.
    fn send_due(&self, tickets: &[u32]);
}

struct PacerState {
    /// Time at which modelled time is zero.
    begun: Instant,
    state: Mutex<PaceState>,
    /// Next time at which something may be due, in nanoseconds; [`NEVER`] if nothing is
    /// outstanding. Written under the lock, read without.
    next: AtomicU64,
    /// Signalled when something is outstanding earlier than the thread sleeps, and at the end.
    wake: Condvar,
}

struct PaceState {
    model: Model,
    /// By number of the lane.
    holders: Vec<Option<Arc<dyn Holder>>>,
    lateness: Lateness,
    peaks: Peaks,
    /// Time until which the thread sleeps; [`NEVER`] if nothing but a signal wakes it, 0 while it
    /// is awake.
    sleeps_until: u64,
    is_over: bool,
}

impl Pace {
    /// The pace of a drive whose time begins now.
    pub fn new(drive: impl Pacer + 'static) -> Self {
        let state = PaceState {
            model: Model::new(Box::new(drive)),
            holders: Vec::new(),
            lateness: Lateness::default(),
            peaks: Peaks::default(),
            sleeps_until: 0,
            is_over: false,
        };
        let shared = PacerState {
            begun: Instant::now(),
            state: Mutex::new(state),
            next: AtomicU64::new(NEVER),
            wake: Condvar::new(),
        };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// Fills the model with what `device` stores already, as if it had been written long ago: reads
    /// of it go to the flash. Called before the first client comes.
    ///
    /// # Errors
    /// Fails if the device does not report its allocations.
    pub fn hold(&self, device: &dyn Device) -> Result<(), DeviceError> {
        self.shared.lock().model.hold(device)
    }

    /// Power and heat of the model now; none where the drive file does not describe them.
    pub fn climate(&self) -> Option<ClimateReading> {
        self.shared.lock().model.climate(self.shared.at(Instant::now()))
    }

    /// Replies so far, and those of them that were late.
    pub fn lateness(&self) -> Lateness {
        self.shared.lock().lateness
    }

    /// Replies so far and those of them that were late, with the largest delays after each reply.
    pub fn lateness_and_peaks(&self) -> (Lateness, Peaks) {
        let state = self.shared.lock();
        (state.lateness, state.peaks.clone())
    }

    /// Starts the thread, unless it runs.
    fn run(&self) -> io::Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let builder = thread::Builder::new().name("completions".to_owned());
            *thread = Some(builder.spawn(move || shared.send_all())?);
        }
        Ok(())
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.wake.notify_one();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of it was printed.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pace").finish_non_exhaustive()
    }
}

impl Lane {
    /// A lane for one more client, which the model takes for a thread of the host. `holder` is
    /// called when replies are due.
    ///
    /// # Errors
    /// Fails when 65536 are in use, or the system has no thread.
    pub fn new(pace: &Arc<Pace>, holder: Arc<dyn Holder>) -> io::Result<Self> {
        pace.run()?;
        let mut state = pace.shared.lock();
        let number = state.model.take_lane();
        let text = "the model has 65536 clients, which is the limit; serve it without --timing";
        let number = number.ok_or_else(|| io::Error::other(text))?;
        let index = usize::from(number);
        if index >= state.holders.len() {
            state.holders.resize(index + 1, None);
        }
        state.holders[index] = Some(holder);
        drop(state);
        Ok(Self { pace: Arc::clone(pace), number })
    }

    /// Submits a command that its client issued at `issued_at` to the model. Returns the ticket
    /// with which the holder is called when its reply is due: perhaps before this returns, so the
    /// holder must hold its own lock over the call.
    pub fn submit(&self, issued_at: Instant, asked: PacedCommand) -> u32 {
        let shared = &self.pace.shared;
        let mut state = shared.lock();
        let ticket = state.model.submit(self.number, shared.at(issued_at), asked);
        let next = shared.note_next(&state);
        let is_early = next < state.sleeps_until;
        if is_early {
            state.sleeps_until = 0;
        }
        drop(state);
        if is_early {
            shared.wake.notify_one();
        }
        ticket
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut state = self.pace.shared.lock();
        state.model.give_back(self.number);
        let holder = state.holders[usize::from(self.number)].take();
        self.pace.shared.note_next(&state);
        drop(state);
        drop(holder);
    }
}

impl PacerState {
    fn lock(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, time: Instant) -> Nanos {
        let since = time.saturating_duration_since(self.begun);
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Publishes when something may be due next, and returns it.
    fn note_next(&self, state: &PaceState) -> u64 {
        let next = state.model.next().map_or(NEVER, |next| next.0);
        self.next.store(next, Ordering::Release);
        next
    }

    /// Calls holders when replies are due, until the end.
    fn send_all(&self) {
        // Linux may otherwise sleep 50 us longer than asked (timer slack); if it refuses, replies
        // are later by that.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut due = Vec::new();
        let mut state = self.lock();
        while !state.is_over {
            state.model.take_due(self.at(Instant::now()), &mut due);
            let next = self.note_next(&state);
            if due.is_empty() {
                state = self.wait(state, next);
            } else {
                state = self.send(state, &mut due);
            }
        }
    }

    /// Calls each holder with its due replies, without the lock, and notes which were late.
    fn send<'a>(
        &'a self,
        mut state: MutexGuard<'a, PaceState>,
        due: &mut Vec<Due>,
    ) -> MutexGuard<'a, PaceState> {
        // Of one lane in the order of time; between lanes there is none.
        due.sort_by_key(|due| due.lane);
        let mut sent = Vec::new();
        for of_lane in due.chunk_by(|a, b| a.lane == b.lane) {
            let holder = state.holders[usize::from(of_lane[0].lane)].clone();
            drop(state);
            if let Some(holder) = holder {
                let tickets: Vec<u32> = of_lane.iter().map(|due| due.ticket).collect();
                holder.send_due(&tickets);
            }
            let sent_at = self.at(Instant::now());
            sent.extend(of_lane.iter().map(|due| (due.latency, sent_at.saturating_sub(due.at))));
            state = self.lock();
        }
        let PaceState { lateness, peaks, .. } = &mut *state;
        for (latency, late_by) in sent {
            lateness.note(latency, late_by, peaks);
        }
        due.clear();
        state
    }

    /// Waits until `next`, or until something is due earlier.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, PaceState>,
        next: u64,
    ) -> MutexGuard<'a, PaceState> {
        if next == NEVER {
            state.sleeps_until = NEVER;
            let mut state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.sleeps_until = 0;
            return state;
        }
        let left = next.saturating_sub(self.at(Instant::now()).0).saturating_sub(NEAR.0);
        if left > 0 {
            state.sleeps_until = next;
            let waited = self.wake.wait_timeout(state, Duration::from_nanos(left));
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.sleeps_until = 0;
            return state;
        }
        drop(state);
        for poll in 1.. {
            // Others may have submitted something that is due earlier.
            if self.at(Instant::now()).0 >= self.next.load(Ordering::Acquire) {
                break;
            }
            if poll % POLLS == 0 {
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
        self.lock()
    }
}

#[cfg(test)]
pub(crate) mod tests;
