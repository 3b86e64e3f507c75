//! Resources that serve one thing after another, as time lines.
//!
//! A server is no queue of requests but the time at which it will be free: booking work answers at
//! once when it will be done. Urgent work (reads) overtakes what is booked but not begun; the
//! overtaken work keeps the end it was promised and later work pays, so that throughput is exact
//! and only a latency already promised is a little short.

use blockio::Nanos;

/// One server, first come first served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Server {
    free_at: Nanos,
}

impl Server {
    /// Books `span` from `at` on; returns its end.
    #[inline]
    pub(crate) fn book(&mut self, at: Nanos, span: Nanos) -> Nanos {
        self.free_at = self.free_at.max(at) + span;
        self.free_at
    }

    /// Time at which the server has done everything that is booked.
    #[inline]
    pub(crate) const fn free_at(self) -> Nanos {
        self.free_at
    }
}

/// One server where urgent work overtakes the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PriorityServer {
    free_at: Nanos,
    urgent_free_at: Nanos,
}

impl PriorityServer {
    /// Books work that waits for everything booked before.
    #[inline]
    pub(crate) fn book(&mut self, at: Nanos, span: Nanos) -> Nanos {
        self.free_at = self.free_at.max(at) + span;
        self.free_at
    }

    /// Books work that waits for urgent work only.
    #[inline]
    pub(crate) fn book_urgent(&mut self, at: Nanos, span: Nanos) -> Nanos {
        self.urgent_free_at = self.urgent_free_at.max(at) + span;
        self.free_at = (self.free_at.max(at) + span).max(self.urgent_free_at);
        debug_assert!(self.urgent_free_at <= self.free_at, "urgent work is part of all work");
        self.urgent_free_at
    }

    /// Books work that will be ready at `ready`, later than `now`: it takes its share of the
    /// server, but nothing that is ready sooner waits for it to arrive.
    #[inline]
    pub(crate) fn book_ahead(&mut self, now: Nanos, ready: Nanos, span: Nanos) -> Nanos {
        self.book(now, span).max(ready + span)
    }

    /// Asserts that urgent work is part of all that is booked.
    pub(crate) fn check_invariants(self) {
        assert!(self.urgent_free_at <= self.free_at, "a server is free after its urgent work");
    }
}

/// Several equal servers behind one queue.
#[derive(Clone, Debug)]
pub(crate) struct ServerPool {
    servers: Vec<PriorityServer>,
    /// Work that was booked so far.
    work: Nanos,
}

impl ServerPool {
    /// `count` idle servers, at least one.
    pub(crate) fn new(count: u32) -> Self {
        let servers = vec![PriorityServer::default(); count.max(1) as usize];
        Self { servers, work: Nanos::ZERO }
    }

    /// Books on the server that is free first.
    #[inline]
    pub(crate) fn book(&mut self, at: Nanos, span: Nanos) -> Nanos {
        self.work += span;
        self.first(|server| server.free_at).book(at, span)
    }

    /// Books work in so many equal parts, at most one on each server; returns the end of the last.
    pub(crate) fn book_in_parts(&mut self, at: Nanos, span: Nanos, parts: u64) -> Nanos {
        let parts = parts.clamp(1, self.servers.len() as u64);
        let part = Nanos(span.0.div_ceil(parts));
        let end = (0..parts).map(|_| self.book(at, part)).max().expect("at least one part");
        assert!(end >= at + part, "no part ends before it was done");
        end
    }

    /// Books urgent work on the server that is free for it first.
    #[inline]
    pub(crate) fn book_urgent(&mut self, at: Nanos, span: Nanos) -> Nanos {
        self.work += span;
        self.first(|server| server.urgent_free_at).book_urgent(at, span)
    }

    /// Work that was booked so far, on all servers.
    pub(crate) const fn work(&self) -> Nanos {
        self.work
    }

    /// Time at which the first of the servers becomes free.
    pub(crate) fn free_at(&mut self) -> Nanos {
        self.first(|server| server.free_at).free_at
    }

    /// Time at which all servers have done everything that is booked.
    pub(crate) fn idle_at(&self) -> Nanos {
        self.servers.iter().map(|server| server.free_at).max().expect("at least one server")
    }

    /// Asserts what holds of each server.
    pub(crate) fn check_invariants(&self) {
        self.servers.iter().for_each(|server| server.check_invariants());
    }

    #[inline]
    fn first(&mut self, key: impl Fn(&PriorityServer) -> Nanos) -> &mut PriorityServer {
        if self.servers.len() == 1 {
            return &mut self.servers[0];
        }
        self.servers.iter_mut().min_by_key(|server| key(server)).expect("at least one server")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_work() {
        let mut server = Server::default();
        assert_eq!(server.book(Nanos(10), Nanos(5)), Nanos(15));
        assert_eq!(server.book(Nanos(11), Nanos(5)), Nanos(20));
        assert_eq!(server.book(Nanos(90), Nanos(5)), Nanos(95));
    }

    #[test]
    fn urgent_work_overtakes_and_later_work_pays() {
        let mut server = PriorityServer::default();
        assert_eq!(server.book(Nanos(0), Nanos(100)), Nanos(100));
        assert_eq!(server.book_urgent(Nanos(10), Nanos(5)), Nanos(15));
        assert_eq!(server.book(Nanos(10), Nanos(10)), Nanos(115));
    }

    #[test]
    fn a_pool_works_in_parallel() {
        let mut pool = ServerPool::new(2);
        let ends: Vec<u64> = (0..4).map(|_| pool.book(Nanos(0), Nanos(10)).0).collect();
        assert_eq!(ends, [10, 10, 20, 20]);
        assert_eq!(pool.work(), Nanos(40));
        let mut pool = ServerPool::new(4);
        assert_eq!(pool.book_in_parts(Nanos(0), Nanos(40), 1), Nanos(40));
        assert_eq!(pool.book_in_parts(Nanos(0), Nanos(40), 2), Nanos(20), "on two that are idle");
        assert_eq!(pool.book_in_parts(Nanos(40), Nanos(40), 16), Nanos(50), "on all of them");
    }
}
