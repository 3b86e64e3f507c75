//! The host's driver: processor time for every request, a section that only one may be in, and
//! what makes it stumble: stalls, and a limit of what it hands to the drive at a time.

use blockio::Nanos;

use crate::server::Server;
use crate::spec::HostSpec;
use crate::stall::Stalls;

/// A host driver at work.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    submit: Nanos,
    complete: Nanos,
    serial: Nanos,
    lock: Server,
    wake: Nanos,
    threads: Vec<Thread>,
    stalls: Stalls,
    /// Most requests that the drive may have; 0: no limit.
    outstanding_max: u32,
    /// Requests that the drive has, counted where there is a limit.
    outstanding: u32,
}

/// A thread of the host's program, on a processor of its own.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    processor: Server,
    /// When its processor will have woken up, or did so last.
    woken_at: Nanos,
}

impl Host {
    /// An idle host, at 1/`time_lapse`.
    pub(crate) fn new(spec: &HostSpec, time_lapse: u32) -> Self {
        Self {
            submit: Nanos::from_micros_f64(spec.submit_us),
            complete: Nanos::from_micros_f64(spec.complete_us),
            serial: Nanos::from_micros_f64(spec.serial_us),
            lock: Server::default(),
            wake: Nanos::from_micros_f64(spec.wake_us),
            threads: Vec::new(),
            stalls: Stalls::new(&spec.stalls, time_lapse),
            outstanding_max: spec.outstanding_max,
            outstanding: 0,
        }
    }

    /// Whether the drive may have one request more, which is then counted.
    #[inline]
    pub(crate) const fn admit(&mut self) -> bool {
        if self.outstanding_max == 0 {
            return true;
        }
        let admitted = self.outstanding < self.outstanding_max;
        if admitted {
            self.outstanding += 1;
        }
        admitted
    }

    /// The drive has one request less.
    #[inline]
    pub(crate) const fn release(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// The drive has no requests.
    pub(crate) const fn release_all(&mut self) {
        self.outstanding = 0;
    }

    /// Until when a completion that is due for `thread` at `at` has to wait, if it has to: for the
    /// end of a stall, or for the thread's processor to wake up.
    #[inline]
    pub(crate) fn held_until(&mut self, thread: u16, at: Nanos) -> Option<Nanos> {
        let stalled = self.stalls.held_until(thread, at);
        if self.wake == Nanos::ZERO {
            return stalled;
        }
        stalled.max(self.woken_at(thread, at))
    }

    /// When the processor of a thread will have woken up, if it is asleep at `at`: it falls asleep
    /// when it has had nothing to do for as long as waking up takes.
    fn woken_at(&mut self, thread: u16, at: Nanos) -> Option<Nanos> {
        let wake = self.wake;
        let thread = self.thread(thread);
        let busy_until = thread.processor.free_at().max(thread.woken_at);
        if busy_until + wake <= at {
            thread.woken_at = at + wake;
        }
        (at < thread.woken_at).then_some(thread.woken_at)
    }

    /// Books the submission of a request; returns when the drive sees it.
    #[inline]
    pub(crate) fn submit(&mut self, thread: u16, at: Nanos) -> Nanos {
        let submit = self.submit;
        let at = self.thread(thread).processor.book(at, submit);
        self.lock.book(at, self.serial)
    }

    /// Books the completion of a request; returns when the host's program knows.
    #[inline]
    pub(crate) fn complete(&mut self, thread: u16, at: Nanos) -> Nanos {
        let complete = self.complete;
        self.thread(thread).processor.book(at, complete)
    }

    #[inline]
    fn thread(&mut self, thread: u16) -> &mut Thread {
        let thread = usize::from(thread);
        if thread >= self.threads.len() {
            self.threads.resize(thread + 1, Thread::default());
        }
        &mut self.threads[thread]
    }
}
