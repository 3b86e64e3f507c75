//! What drives do, second by second, for whoever looks on (server-sent events).
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

use serde::Serialize;

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
    pub(super) fn serve<T: Serialize>(
        &self,
        mut connection: &TcpStream,
        look: impl Fn() -> Option<T>,
    ) -> io::Result<()> {
        let Some(_seat) = self.seat() else {
            return Reply::text(503, "too many look on already").send(connection, false);
        };
        connection.write_all(reply::head(200, "text/event-stream", reply::OWN).as_bytes())?;
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
    fn after<T: Serialize>(
        &self,
        seen: u64,
        look: &impl Fn() -> Option<T>,
    ) -> Option<(u64, Arc<str>)> {
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

fn message(seen: &impl Serialize) -> Option<Arc<str>> {
    let json = serde_json::to_string(seen).ok()?;
    Some(format!("data: {json}\n\n").into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    /// More than all buffers between a server and a viewer that takes nothing hold.
    const MESSAGE_BYTES: usize = 16 << 20;
    const READERS: usize = 10;
    const PATIENCE: Duration = Duration::from_mins(1);

    /// Both ends of a connection, the server's first.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let viewer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        viewer.set_read_timeout(Some(PATIENCE)).unwrap();
        (listener.accept().unwrap().0, viewer)
    }

    /// Takes what two messages are at least.
    fn read_two(mut viewer: &TcpStream) {
        let mut chunk = vec![0; 1 << 20];
        let mut taken = 0;
        while taken < 2 * MESSAGE_BYTES {
            taken += viewer.read(&mut chunk).unwrap();
        }
    }

    #[test]
    fn a_viewer_that_takes_nothing_is_let_go_while_ten_others_are_told_each_second() {
        let (stream, looks) = (Stream::default(), AtomicU64::new(0));
        let look = || {
            looks.fetch_add(1, Ordering::Relaxed);
            Some("x".repeat(MESSAGE_BYTES))
        };
        let (own_end, _stuck) = connection();
        own_end.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let begun = Instant::now();
        thread::scope(|scope| {
            let stuck = scope.spawn(|| stream.serve(&own_end, look));
            let readers: Vec<_> = (0..READERS).map(|_| connection()).collect();
            for (own_end, viewer) in readers {
                scope.spawn({
                    let stream = &stream;
                    move || stream.serve(&own_end, look)
                });
                scope.spawn(move || read_two(&viewer));
            }
            stuck.join().unwrap().unwrap_err();
        });
        let (told, seconds) = (looks.load(Ordering::Relaxed), begun.elapsed().as_secs());
        assert!((2..=seconds + 2).contains(&told), "{told} looks in {seconds} s");
        let latest = stream.lock();
        assert_eq!(latest.viewers, 0, "somebody kept a place");
        assert_eq!(Arc::strong_count(&latest.message), 1, "something is queued");
    }
}
