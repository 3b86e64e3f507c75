//! The host's driver: processor time for every request, and a section that only one may be in.

use blockio::Nanos;

use crate::server::Server;
use crate::spec::HostSpec;

/// A host driver at work.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    submit: Nanos,
    complete: Nanos,
    serial: Nanos,
    lock: Server,
    threads: Vec<Server>,
}

impl Host {
    /// An idle host.
    pub(crate) fn new(spec: &HostSpec) -> Self {
        Self {
            submit: Nanos::from_micros_f64(spec.submit_us),
            complete: Nanos::from_micros_f64(spec.complete_us),
            serial: Nanos::from_micros_f64(spec.serial_us),
            lock: Server::default(),
            threads: Vec::new(),
        }
    }

    /// Books the submission of a request; returns when the drive sees it.
    #[inline]
    pub(crate) fn submit(&mut self, thread: u16, at: Nanos) -> Nanos {
        let submit = self.submit;
        let at = self.thread(thread).book(at, submit);
        self.lock.book(at, self.serial)
    }

    /// Books the completion of a request; returns when the host's program knows.
    #[inline]
    pub(crate) fn complete(&mut self, thread: u16, at: Nanos) -> Nanos {
        let complete = self.complete;
        self.thread(thread).book(at, complete)
    }

    #[inline]
    fn thread(&mut self, thread: u16) -> &mut Server {
        let thread = usize::from(thread);
        if thread >= self.threads.len() {
            self.threads.resize(thread + 1, Server::default());
        }
        &mut self.threads[thread]
    }
}
