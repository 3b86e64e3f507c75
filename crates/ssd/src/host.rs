//! The host's driver: processor time for every request, a section that only one may be in, and
//! what makes it stumble: stalls, and a limit of what it hands to the drive at a time.

mod processors;
mod thread_queue;

use blockio::Nanos;

use self::processors::Processors;
use self::thread_queue::ThreadQueues;
use crate::server::Server;
use crate::spec::{HostSpec, StallDuring};
use crate::stall::{Stalls, Wait};

/// A host driver at work.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    submit: Nanos,
    complete: Nanos,
    interrupt: Nanos,
    serial: Nanos,
    copy_sector_ps: u64,
    /// One for each device.
    locks: Vec<Server>,
    wake: Nanos,
    threads: Vec<Thread>,
    stalls: Stalls,
    /// Most requests that the drive may have; 0: no limit.
    outstanding_max: u32,
    /// Requests that the drive has, counted where there is a limit.
    outstanding: u32,
    /// Processors that the threads share; absent if there are enough.
    processors: Option<Processors>,
    /// Queues of the threads, if each carries out one request at a time.
    queues: Option<ThreadQueues>,
    /// Processor time that requests took so far.
    busy: Nanos,
}

/// A thread of the host's program, on a processor of its own.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    processor: Server,
    /// Time at which its processor has woken up, or did so last.
    woken_at: Nanos,
}

impl Host {
    /// An idle host of `devices` devices, at 1/`time_lapse`.
    pub(crate) fn new(spec: &HostSpec, devices: u32, time_lapse: u32) -> Self {
        Self {
            submit: Nanos::from_micros_f64(spec.submit_us),
            complete: Nanos::from_micros_f64(spec.complete_us),
            interrupt: Nanos::from_micros_f64(spec.interrupt_us),
            serial: Nanos::from_micros_f64(spec.serial_us),
            copy_sector_ps: Nanos::from_micros_f64(spec.copy_us_per_kib * 1000.0 / 2.0).0,
            locks: vec![Server::default(); devices as usize],
            wake: Nanos::from_micros_f64(spec.wake_us),
            threads: Vec::new(),
            stalls: Stalls::new(&spec.stalls, time_lapse),
            outstanding_max: spec.outstanding_max,
            outstanding: 0,
            processors: (spec.processors > 0).then(|| Processors::new(spec.processors)),
            queues: spec.one_at_a_time.then(ThreadQueues::default),
            busy: Nanos::ZERO,
        }
    }

    /// True if the drive may have one request more, which is then counted as outstanding.
    #[inline]
    pub(crate) const fn admit(&mut self) -> bool {
        if self.outstanding_max == 0 {
            return true;
        }
        let admitted = self.outstanding < self.outstanding_max;
        if admitted {
            self.outstanding += 1;
        }
        assert!(self.outstanding <= self.outstanding_max, "the drive has no more than its limit");
        admitted
    }

    /// The drive has one request less.
    #[inline]
    pub(crate) const fn release(&mut self) {
        let is_counted = self.outstanding_max == 0 || self.outstanding > 0;
        assert!(is_counted, "a request that is given back was outstanding");
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// True if the request in `slot` may begin; else it waits for [`Host::next_turn`].
    #[inline]
    pub(crate) fn begins(&mut self, thread: u16, slot: u32) -> bool {
        self.queues.as_mut().is_none_or(|queues| queues.take(thread, slot))
    }

    /// The request that begins now that one of its thread has completed.
    #[inline]
    pub(crate) fn next_turn(&mut self, thread: u16) -> Option<u32> {
        self.queues.as_mut()?.pass_on(thread)
    }

    /// The drive has no requests.
    pub(crate) fn release_all(&mut self) {
        self.outstanding = 0;
        self.queues.iter_mut().for_each(ThreadQueues::forget);
        self.processors.iter_mut().for_each(Processors::forget);
    }

    /// Returns the reason that a completion which is due for `thread` at `at` has to wait: a stall,
    /// or the wake-up of the thread's processor. `None` if it need not wait. `is_during` tells the
    /// state of the drive.
    #[inline]
    pub(crate) fn wait(
        &mut self,
        thread: u16,
        at: Nanos,
        is_during: impl Fn(StallDuring) -> bool,
    ) -> Option<Wait> {
        let stalled = self.stalls.wait(thread, at, is_during);
        if self.wake == Nanos::ZERO {
            return stalled;
        }
        let Some(woken_at) = self.woken_at(thread, at) else { return stalled };
        match stalled {
            Some(stalled) if stalled.until >= woken_at => Some(stalled),
            _ => Some(Wait { until: woken_at, alone: Nanos::ZERO }),
        }
    }

    /// Time at which the processor of a thread will have woken up, if it is asleep at `at`. It
    /// falls asleep when it has nothing to do.
    fn woken_at(&mut self, thread: u16, at: Nanos) -> Option<Nanos> {
        let wake = self.wake;
        let thread = self.thread(thread);
        let busy_until = thread.processor.free_at().max(thread.woken_at);
        if busy_until < at {
            thread.woken_at = at + wake;
        }
        (at < thread.woken_at).then_some(thread.woken_at)
    }

    /// Lets `span` pass in which no request completes, see [`Stalls::pass`].
    pub(crate) fn pass(&mut self, span: Nanos, share: f64) {
        self.stalls.pass(span, share);
    }

    /// Longest time between two stalls of a thread; absent without any.
    pub(crate) fn thread_stall_every_max(&self) -> Option<Nanos> {
        self.stalls.thread_every_max()
    }

    /// Books the submission of a thread's request of so many sectors to `device`; returns when the
    /// drive sees it.
    #[inline]
    pub(crate) fn submit(&mut self, of: (u16, u32), at: Nanos, device: usize) -> Nanos {
        let (thread, sectors) = of;
        let mut span = self.submit + self.copying(sectors);
        self.busy += span + self.serial;
        if let Some(processors) = &mut self.processors {
            processors.began(thread);
            span = processors.stretched(span);
        }
        let at = self.thread(thread).processor.book(at, span);
        self.locks[device].book(at, self.serial)
    }

    /// Time in which a processor copies so many sectors; 0 where it copies nothing.
    #[inline]
    pub(crate) const fn copying(&self, sectors: u32) -> Nanos {
        Nanos(sectors as u64 * self.copy_sector_ps / 1000)
    }

    /// Books the completion of a request; returns when the host's program knows.
    ///
    /// An idle processor is interrupted. A busy one finds what completed meanwhile when it next
    /// looks at the queue, without a further interrupt: so one interrupt serves many completions
    /// where many are outstanding.
    #[inline]
    pub(crate) fn complete(&mut self, thread: u16, at: Nanos) -> Nanos {
        let mut span = self.complete;
        if self.interrupt > Nanos::ZERO && self.thread(thread).processor.free_at() < at {
            span += self.interrupt;
        }
        self.busy += span;
        if let Some(processors) = &mut self.processors {
            span = processors.stretched(span);
            processors.ended(thread);
        }
        self.thread(thread).processor.book(at, span)
    }

    /// Processor time that requests took so far: submissions, copies, the serialised section and
    /// completions, without waiting for a processor or for it to wake up.
    pub(crate) const fn busy(&self) -> Nanos {
        self.busy
    }

    /// Requests that wait for the turn of their thread.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u32> {
        self.queues.iter().flat_map(ThreadQueues::waiting)
    }

    /// Asserts that the host counts those `outstanding` where there is a limit, and that none of
    /// those `kept_back` could go to the drive.
    pub(crate) fn check_invariants(&self, outstanding: usize, kept_back: usize) {
        if self.outstanding_max > 0 {
            let counted = self.outstanding as usize;
            assert_eq!(counted, outstanding, "the host counts the requests of the drive");
        }
        let is_full = self.outstanding == self.outstanding_max;
        assert!(kept_back == 0 || is_full, "a request is kept back only from a full drive");
    }

    #[inline]
    fn thread(&mut self, thread: u16) -> &mut Thread {
        entry(&mut self.threads, thread)
    }
}

/// Returns the entry of `thread`; adds default ones up to it if it is missing.
#[inline]
fn entry<T: Clone + Default>(of: &mut Vec<T>, thread: u16) -> &mut T {
    let thread = usize::from(thread);
    if thread >= of.len() {
        of.resize(thread + 1, T::default());
    }
    &mut of[thread]
}
