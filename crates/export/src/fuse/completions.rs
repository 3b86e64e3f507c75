//! Completions: replies that are held back until a model is done, by one thread for all of them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockio::Nanos;

use super::CLIENT;
use crate::{Asked, Lane, Pace, Recorder, Served};

/// Threads of the host that the model is told of; each request is of the one with the fewest.
const LANES: usize = 16;
/// Shortest wait for which the thread sleeps: sleeping and waking takes about as long. Shorter ones
/// are spent polling.
const NEAR: Nanos = Nanos::from_micros(60);

/// The reply to a command that was carried out.
pub(super) struct Reply {
    asked: Asked,
    issued_at: Instant,
    send: Box<dyn FnOnce() + Send>,
}

impl Reply {
    pub(super) fn new(
        asked: Asked,
        issued_at: Instant,
        send: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self { asked, issued_at, send: Box::new(send) }
    }

    /// Sends it, and tells the recorder.
    pub(super) fn send(self, recorder: Option<&dyn Recorder>) {
        let Self { asked, issued_at, send } = self;
        let completed_at = Instant::now();
        send();
        if let Some(recorder) = recorder {
            recorder.keep(CLIENT, &[Served { asked, issued_at, completed_at }]);
        }
    }
}

/// Replies that wait for a model, and the thread that sends them.
pub(super) struct Completions {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    begun: Instant,
    recorder: Option<Arc<dyn Recorder>>,
    held: Mutex<Held>,
    /// Signalled when something is held that was not, and at the end.
    wake: Condvar,
}

struct Held {
    lanes: Vec<Lane>,
    /// Number of replies that each lane waits for.
    outstanding: Vec<usize>,
    /// By the model's ticket, with the index of the lane.
    replies: BTreeMap<u32, (usize, Reply)>,
    is_over: bool,
}

impl Completions {
    /// Starts the thread for replies at the pace of a model whose time began at `begun`.
    ///
    /// # Errors
    /// Fails if the system has no thread, or the model no room for more clients.
    pub(super) fn start(
        pace: &Arc<Pace>,
        begun: Instant,
        recorder: Option<Arc<dyn Recorder>>,
    ) -> io::Result<Self> {
        let lanes: Vec<Lane> = (0..LANES).map_while(|_| Lane::new(pace)).collect();
        if lanes.len() < LANES {
            return Err(io::Error::other("the model has no room for more clients"));
        }
        let held = Held {
            outstanding: vec![0; lanes.len()],
            lanes,
            replies: BTreeMap::new(),
            is_over: false,
        };
        let shared = Shared { begun, recorder, held: Mutex::new(held), wake: Condvar::new() };
        let shared = Arc::new(shared);
        let sender = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("fuse-completions".to_owned())
            .spawn(move || sender.send_all())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Passes a command that was carried out to the model, and holds its reply until it is due.
    pub(super) fn hold(&self, reply: Reply) {
        let mut held = self.shared.held();
        // No earlier than what the model was told by others.
        let issued_at = self.shared.at(reply.issued_at);
        let lane = (0..held.lanes.len()).min_by_key(|index| held.outstanding[*index]);
        let lane = lane.expect("there are some");
        let ticket = held.lanes[lane].submit(issued_at, reply.asked);
        held.outstanding[lane] += 1;
        let replaced = held.replies.insert(ticket, (lane, reply));
        assert!(replaced.is_none(), "tickets wrap around after 2^32 commands");
        drop(held);
        self.shared.wake.notify_one();
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        self.shared.held().is_over = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Completions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Completions").finish_non_exhaustive()
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, time: Instant) -> Nanos {
        let since = time.saturating_duration_since(self.begun);
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sends replies as they become due, until all is over and none is held.
    fn send_all(&self) {
        // The system would otherwise sleep some 50 us longer than it is told to; where it refuses,
        // it does.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut held = self.held();
        loop {
            let (due, next) = held.due(self.at(Instant::now()));
            if !due.is_empty() {
                drop(held);
                for reply in due {
                    reply.send(self.recorder.as_deref());
                }
                held = self.held();
            } else if held.replies.is_empty() {
                if held.is_over {
                    return;
                }
                held = self.wake.wait(held).unwrap_or_else(PoisonError::into_inner);
            } else {
                held = self.wait(held, next);
            }
        }
    }

    /// Waits until a little before `next`, or until more is held.
    fn wait<'a>(&'a self, held: MutexGuard<'a, Held>, next: Option<Nanos>) -> MutexGuard<'a, Held> {
        let soon = self.at(Instant::now()) + NEAR;
        let left = next.map_or(NEAR, |next| next.saturating_sub(soon));
        if left > Nanos::ZERO {
            let left = Duration::from_nanos(left.0);
            return self.wake.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(held);
        thread::yield_now();
        self.held()
    }
}

impl Held {
    /// Takes out the replies that are due at `now`, in the order of their lanes, and when the next
    /// may be.
    fn due(&mut self, now: Nanos) -> (Vec<Reply>, Option<Nanos>) {
        let (mut due, mut next) = (Vec::new(), None::<Nanos>);
        let mut tickets = Vec::new();
        for (index, lane) in self.lanes.iter().enumerate() {
            if self.outstanding[index] == 0 {
                continue;
            }
            let at = lane.due(now, &mut tickets);
            next = next.into_iter().chain(at).min();
            for (of, reply) in tickets.drain(..).filter_map(|it| self.replies.remove(&it)) {
                assert_eq!(of, index, "a lane is told of its own commands");
                self.outstanding[index] -= 1;
                due.push(reply);
            }
        }
        (due, next)
    }
}
