//! The thread of one queue of a device.
//!
//! ```text
//!   fetch ──► request of a tag ──► carry out a batch ──► answer and fetch, with one call ──► poll
//!                                        └──► held until the model is done ──┘
//! ```
//!
//! It polls for some microseconds before it sleeps, so that more requests make up a batch.
//!
//! The driver takes commands of a queue from one thread alone, so that replies that the model holds
//! back wake that thread when they are due.
//!
//! **Invariants**
//! - A tag is with the driver, or in the batch, or held: never in two of these.
//! - The thread ends when no tag is left: the driver returns all of them when the device is
//!   stopped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode};

use super::block::{Block, Buffers, CompletedRequest, TaggedRequest};
use super::descriptors::Descriptors;
use super::layout::{COMMIT_AND_FETCH, FETCH, queue_command};
use crate::descriptor_socket::Signal;
use crate::pace::Holder;
use crate::polls::Polls;
use crate::{Export, Lane, PacedCommand, RecordedCommand, Recorder};

/// Most requests that are carried out together.
const BATCH: usize = 64;
/// Token of the wait for the signal; tags have 16 bits.
const WOKEN: u64 = 1 << 16;
/// Bits of a poll for input.
const POLL_IN: u32 = 1;

/// A queue that is to be served.
pub(super) struct Queue {
    pub(super) number: u16,
    pub(super) depth: u16,
    pub(super) file: Arc<File>,
    pub(super) export: Arc<Export>,
    /// The recorder of commands, if there is one, and the number of this client.
    pub(super) recorder: Option<(Arc<dyn Recorder>, u64)>,
    pub(super) shared: Arc<QueueState>,
}

/// The part of a queue that its thread shares with others.
pub(super) struct QueueState {
    /// Raised when replies are due, and at the end.
    signal: Signal,
    is_over: AtomicBool,
    /// Tickets of replies that are due.
    due: Mutex<Vec<u32>>,
}

/// A reply that waits for the model.
struct PendingReply {
    tag: u16,
    result: i32,
    asked: PacedCommand,
    issued_at: Instant,
}

/// A queue that is served.
struct Thread {
    queue: Queue,
    ring: IoUring,
    descriptors: Descriptors,
    /// The driver uses them until the ring is gone, which is dropped first.
    buffers: Buffers,
    block: Block,
    lane: Option<Lane>,
    held: BTreeMap<u32, PendingReply>,
    /// Tags that the driver has.
    with_driver: usize,
    served: Vec<RecordedCommand>,
}

impl QueueState {
    pub(super) fn new() -> io::Result<Self> {
        let (is_over, due) = Default::default();
        Ok(Self { signal: Signal::new()?, is_over, due })
    }

    /// Has the thread end without the driver: what it has of requests is lost to this server.
    pub(super) fn abandon(&self) {
        self.is_over.store(true, Ordering::Release);
        self.signal.raise();
    }
}

impl Holder for QueueState {
    fn send_due(&self, tickets: &[u32]) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.extend_from_slice(tickets);
        drop(due);
        self.signal.raise();
    }
}

impl Queue {
    /// Serves the queue until the device is stopped. Says to `ready` whether it begins.
    pub(super) fn run(self, ready: &Sender<io::Result<()>>) -> io::Result<()> {
        // Memory that this thread needs is not freed by writing to this device. It fails only
        // without the right to say so, which the user of ublk has.
        let _ = rustix::process::configure_io_flusher_behavior(true);
        let mut thread = match self.prepare() {
            Ok(thread) => thread,
            Err(error) => {
                // The send fails only if an earlier queue has failed and the receiver is gone.
                let _ = ready.send(Err(error));
                return Ok(());
            }
        };
        let fetched = thread.fetch_all();
        let is_fetched = fetched.is_ok();
        let _ = ready.send(fetched);
        if is_fetched { thread.serve() } else { Ok(()) }
    }

    fn prepare(self) -> io::Result<Thread> {
        let entries = (u32::from(self.depth) + 1).next_power_of_two();
        let mut builder = IoUring::builder();
        // Completions are looked for by this thread alone; ublk is newer than what knows that.
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        let ring = builder.build(entries)?;
        let descriptors = Descriptors::map(self.file.as_fd(), self.number, self.depth)?;
        let holder = Arc::clone(&self.shared);
        let lane = self.export.pace.as_ref().map(|pace| Lane::new(pace, holder)).transpose()?;
        Ok(Thread {
            ring,
            descriptors,
            buffers: Buffers::new(self.depth),
            block: Block::new(Arc::clone(&self.export)),
            lane,
            held: BTreeMap::new(),
            with_driver: 0,
            served: Vec::new(),
            queue: self,
        })
    }
}

impl Thread {
    fn fetch_all(&mut self) -> io::Result<()> {
        self.await_signal();
        for tag in 0..self.queue.depth {
            self.push(FETCH, tag, 0);
        }
        self.ring.submit().map(drop)
    }

    fn serve(&mut self) -> io::Result<()> {
        let (mut batch, mut polls) = (Vec::new(), Polls::default());
        while self.with_driver + self.held.len() > 0 && !self.is_abandoned() {
            // The driver gets the answers before the thread looks for more.
            unless_interrupted(self.ring.submit())?;
            while !self.has_come() && polls.poll_again() {}
            polls.reset();
            unless_interrupted(self.ring.submit_and_wait(1))?;
            self.collect(&mut batch);
            let issued_at = Instant::now();
            for requests in batch.chunks(BATCH) {
                let done = self.block.carry_out(&mut self.buffers, requests);
                self.answer(requests, &done, issued_at);
            }
            batch.clear();
            self.answer_due();
            self.record();
        }
        Ok(())
    }

    /// True if the driver or the signal has something for this thread. The memory that it shares
    /// with the kernel says so, without a call of the system.
    fn has_come(&mut self) -> bool {
        self.ring.submission().taskrun() || !self.ring.completion().is_empty()
    }

    fn is_abandoned(&self) -> bool {
        self.queue.shared.is_over.load(Ordering::Acquire)
    }

    /// Takes completions: requests of tags, and whether the signal was raised.
    fn collect(&mut self, batch: &mut Vec<TaggedRequest>) {
        let mut is_woken = false;
        for completion in self.ring.completion() {
            let Ok(tag) = u16::try_from(completion.user_data()) else {
                is_woken = true;
                continue;
            };
            self.with_driver -= 1;
            // Otherwise the driver returns the tag for good, since the device is stopped.
            if completion.result() == 0 {
                batch.push(TaggedRequest { tag, request: self.descriptors.get(tag) });
            }
        }
        if is_woken {
            self.queue.shared.signal.clear();
            self.await_signal();
        }
    }

    fn answer(
        &mut self,
        requests: &[TaggedRequest],
        done: &[CompletedRequest],
        issued_at: Instant,
    ) {
        for (TaggedRequest { tag, .. }, CompletedRequest { result, asked, .. }) in
            requests.iter().zip(done)
        {
            let (tag, result) = (*tag, *result);
            match (&self.lane, asked) {
                (Some(lane), Some(asked)) => {
                    let ticket = lane.submit(issued_at, *asked);
                    self.held
                        .insert(ticket, PendingReply { tag, result, asked: *asked, issued_at });
                }
                (_, asked) => {
                    self.note(*asked, issued_at);
                    self.push(COMMIT_AND_FETCH, tag, result);
                }
            }
        }
    }

    /// Answers what the model is done with.
    fn answer_due(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let mut due = self.queue.shared.due.lock().unwrap_or_else(PoisonError::into_inner);
        let tickets = std::mem::take(&mut *due);
        drop(due);
        for ticket in tickets {
            let Some(held) = self.held.remove(&ticket) else { continue };
            self.note(Some(held.asked), held.issued_at);
            self.push(COMMIT_AND_FETCH, held.tag, held.result);
        }
    }

    fn note(&mut self, asked: Option<PacedCommand>, issued_at: Instant) {
        if let Some(asked) = asked.filter(|_| self.queue.recorder.is_some()) {
            self.served.push(RecordedCommand { asked, issued_at, completed_at: Instant::now() });
        }
    }

    fn record(&mut self) {
        if let Some((recorder, client)) = &self.queue.recorder
            && !self.served.is_empty()
        {
            recorder.keep(*client, &self.served);
            self.served.clear();
        }
    }

    /// Gives a tag to the driver, with the next call of the system.
    fn push(&mut self, number: u32, tag: u16, result: i32) {
        let address = self.buffers.address(tag);
        let command = queue_command((self.queue.number, tag), result, address);
        let entry = opcode::UringCmd16::new(Fd(self.queue.file.as_raw_fd()), number);
        self.with_driver += 1;
        self.submit(&entry.cmd(command).build().user_data(tag.into()));
    }

    fn await_signal(&mut self) {
        let signal = Fd(self.queue.shared.signal.as_fd().as_raw_fd());
        self.submit(&opcode::PollAdd::new(signal, POLL_IN).build().user_data(WOKEN));
    }

    #[expect(unsafe_code, reason = "the system is given descriptors")]
    fn submit(&mut self, entry: &io_uring::squeue::Entry) {
        // SAFETY: it refers to descriptors and to the memory of tags, which outlive the ring; that
        // of a tag is used by no other thread while the driver has the tag.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("an entry for each tag, and one for the signal");
    }
}

/// A call of the system that a signal may interrupt, after which it is repeated anyway.
fn unless_interrupted(called: io::Result<usize>) -> io::Result<()> {
    match called {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        called => called.map(drop),
    }
}
