//! End of a server that no client uses any more.

use std::time::{Duration, Instant};

use crate::drive_service::DriveService;
use blockio::Nanos;

/// Time without a client after which a server ends.
#[derive(Debug)]
pub(crate) struct Idle {
    limit: Duration,
    /// Clients that had connected at the latest look.
    accepted: u64,
    /// Time since which no client is connected.
    since: Instant,
}

impl Idle {
    /// Ends a server after `limit` without a client, from now on.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, accepted: 0, since: Instant::now() }
    }

    /// Time until the server may end.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.since.elapsed())
    }

    /// Looks at the clients. Returns whether there was none for long enough, which is logged.
    pub(crate) fn ends(&mut self, service: &DriveService) -> bool {
        let (connected, accepted) = service.client_counts();
        let is_used = connected > 0 || accepted > self.accepted;
        self.accepted = accepted;
        if is_used {
            self.since = Instant::now();
            return false;
        }
        if !self.left().is_zero() {
            return false;
        }
        let limit = Nanos(u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX));
        service.tell(&format!("No client was connected for {limit}: the server ends."));
        true
    }
}
