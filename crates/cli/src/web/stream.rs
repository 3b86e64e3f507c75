//! What a drive does, second by second, for whoever looks on (server-sent events).
//!
//! ```text
//!   drive ──► one look a second, if anybody looks on ──► latest ──┬──► viewer
//!                                                                 └──► slow viewer: skips some
//! ```
//!
//! The viewer that waits longest looks for all of them, so the drive is asked once a second however
//! many there are, and not at all for nobody. Nothing is queued: a viewer that is slow is given
//! what is latest when it is ready again.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use live::status::Status;

use super::reply::{self, Reply};

/// Time from one look to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// Viewers at once; fewer than there may be connections, so that other questions find room.
const VIEWERS_MAX: usize = 32;
/// Tells a browser to come back after a second when the server was gone.
const GREETING: &[u8] = b"retry: 1000\n\n";

/// What viewers are shown.
#[derive(Debug, Default)]
pub(super) struct Stream {
    latest: Mutex<Latest>,
    changed: Condvar,
}

/// The last look.
#[derive(Debug, Default)]
struct Latest {
    /// From 1 on; 0 before the first.
    number: u64,
    message: Arc<str>,
    taken_at: Option<Instant>,
    viewers: usize,
    has_ended: bool,
}

/// A place among the viewers, given back when dropped.
struct Seat<'a>(&'a Stream);

impl Stream {
    /// Shows one viewer what `look` sees, until it goes, the stream ends, or there is nothing to
    /// see any more.
    ///
    /// # Errors
    /// When the viewer is gone.
    pub(super) fn serve(
        &self,
        mut connection: &TcpStream,
        look: impl Fn() -> Option<Status>,
    ) -> io::Result<()> {
        let Some(_seat) = self.seat() else {
            return Reply::text(503, "too many look on already").send(connection, false);
        };
        connection.write_all(reply::head(200, "text/event-stream", "").as_bytes())?;
        connection.write_all(GREETING)?;
        let mut seen = 0;
        while let Some((number, message)) = self.after(seen, &look) {
            connection.write_all(message.as_bytes())?;
            seen = number;
        }
        Ok(())
    }

    /// Lets every viewer go.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// The next look after `seen`, as soon as there is one; none once nothing can be seen.
    fn after(&self, seen: u64, look: &impl Fn() -> Option<Status>) -> Option<(u64, Arc<str>)> {
        let mut latest = self.lock();
        loop {
            if latest.has_ended {
                return None;
            }
            let age = latest.taken_at.map_or(PERIOD, |at| at.elapsed());
            if age >= PERIOD {
                latest.message = message(&look()?)?;
                latest.number += 1;
                latest.taken_at = Some(Instant::now());
                self.changed.notify_all();
            }
            if latest.number > seen {
                return Some((latest.number, Arc::clone(&latest.message)));
            }
            let waited = self.changed.wait_timeout(latest, PERIOD.saturating_sub(age));
            latest = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn seat(&self) -> Option<Seat<'_>> {
        let mut latest = self.lock();
        let is_free = latest.viewers < VIEWERS_MAX;
        latest.viewers += usize::from(is_free);
        is_free.then_some(Seat(self))
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.lock().viewers -= 1;
    }
}

fn message(status: &Status) -> Option<Arc<str>> {
    let json = serde_json::to_string(status).ok()?;
    Some(format!("data: {json}\n\n").into())
}
