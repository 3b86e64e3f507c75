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
//!
//! **Invariants**
//! - Nothing is asked, sent or dropped that may wait while the lock is held: a drive that does not
//!   answer keeps neither the end of the stream nor another viewer waiting for the lock.

use std::io::{self, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::reply::{self, Reply};

/// Time from one look to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// Viewers at once of all streams of a server; connections that ask for anything else have a limit
/// of their own.
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
    /// Whether a viewer asks the drive now.
    is_being_taken: bool,
    has_ended: bool,
}

/// The viewers of all streams of a server.
#[derive(Debug, Default)]
pub(super) struct Viewers(AtomicUsize);

/// A place among the viewers, given back when dropped.
#[derive(Debug)]
struct Seat<'a>(&'a Viewers);

/// Leave to ask the drive, given back when dropped, also by a look that panics.
struct Turn<'a>(&'a Stream);

impl Viewers {
    /// A place for one more; none where all are taken.
    fn seat(&self) -> Option<Seat<'_>> {
        let one_more = |viewers| (viewers < VIEWERS_MAX).then_some(viewers + 1);
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        // Made only where it was taken: dropping it gives a place back.
        taken.ok().map(|_| Seat(self))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Stream {
    /// Shows one of `viewers` what `look` sees, until it goes, the stream ends, or there is nothing
    /// to see any more.
    ///
    /// # Errors
    /// When the viewer is gone.
    pub(super) fn serve<T: Serialize>(
        &self,
        mut connection: &TcpStream,
        viewers: &Viewers,
        look: impl Fn() -> Option<T>,
    ) -> io::Result<()> {
        let Some(_seat) = viewers.seat() else {
            let text = format!("{VIEWERS_MAX} viewers are there already, which is the limit");
            return Reply::text(503, &text).send(connection, false);
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
            if age >= PERIOD && !latest.is_being_taken {
                latest.is_being_taken = true;
                drop(latest);
                self.take(look)?;
                latest = self.lock();
                continue;
            }
            if latest.number > seen {
                return Some((latest.number, Arc::clone(&latest.message)));
            }
            // Whoever looks now tells when it has.
            let patience = PERIOD.checked_sub(age).unwrap_or(PERIOD);
            let waited = self.changed.wait_timeout(latest, patience);
            latest = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Looks, without the lock, and makes what is seen the latest; none where nothing is seen.
    fn take<T: Serialize>(&self, look: &impl Fn() -> Option<T>) -> Option<()> {
        // Given back after the lock below, which it takes itself.
        let _turn = Turn(self);
        let message = message(&look()?)?;
        let mut latest = self.lock();
        latest.message = message;
        latest.number += 1;
        latest.taken_at = Some(Instant::now());
        Some(())
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock().is_being_taken = false;
        self.0.changed.notify_all();
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
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc;
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
        let (stream, viewers) = (Stream::default(), Viewers::default());
        let looks = AtomicU64::new(0);
        let look = || {
            looks.fetch_add(1, Ordering::Relaxed);
            Some("x".repeat(MESSAGE_BYTES))
        };
        let (own_end, _stuck) = connection();
        own_end.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        let begun = Instant::now();
        thread::scope(|scope| {
            let stuck = scope.spawn(|| stream.serve(&own_end, &viewers, look));
            let readers: Vec<_> = (0..READERS).map(|_| connection()).collect();
            for (own_end, viewer) in readers {
                scope.spawn({
                    let (stream, viewers) = (&stream, &viewers);
                    move || stream.serve(&own_end, viewers, look)
                });
                scope.spawn(move || read_two(&viewer));
            }
            stuck.join().unwrap().unwrap_err();
        });
        let (told, seconds) = (looks.load(Ordering::Relaxed), begun.elapsed().as_secs());
        assert!((2..=seconds + 2).contains(&told), "{told} looks in {seconds} s");
        assert_eq!(viewers.0.load(Ordering::Acquire), 0, "somebody kept a place");
        assert_eq!(Arc::strong_count(&stream.lock().message), 1, "something is queued");
    }

    /// What `work` returns, unless it waits for ever.
    fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, is_done) = mpsc::channel();
        // Whoever waited may have given up.
        thread::spawn(move || done.send(work()));
        is_done.recv_timeout(PATIENCE).expect("it waits for ever")
    }

    #[test]
    fn a_viewer_beyond_the_limit_is_refused_and_the_others_are_told_all_the_same() {
        let told = in_time(|| {
            let (stream, viewers) = (Stream::default(), Viewers::default());
            let seats: Vec<_> = (0..VIEWERS_MAX).map(|_| viewers.seat().unwrap()).collect();
            let (own_end, mut viewer) = connection();
            stream.serve(&own_end, &viewers, || Some("seen")).unwrap();
            drop(own_end);
            let mut answer = String::new();
            viewer.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            assert!(viewers.seat().is_none(), "the refused one gave a place back that it had not");
            drop(seats);
            assert!(viewers.seat().is_some());
            stream.after(0, &|| Some("seen")).map(|(number, _)| number)
        });
        assert_eq!(told, Some(1));
    }

    #[test]
    fn a_drive_that_does_not_answer_keeps_neither_the_end_nor_the_other_viewers_waiting() {
        in_time(|| {
            let stream = Stream::default();
            let (answer, answered) = mpsc::channel::<()>();
            let (begin, begun) = mpsc::channel();
            thread::scope(|scope| {
                let stream = &stream;
                let stuck = scope.spawn(move || {
                    stream.after(0, &|| {
                        begin.send(()).ok()?;
                        answered.recv().ok()?;
                        Some("late")
                    })
                });
                begun.recv().unwrap();
                let other = scope.spawn(|| stream.after(0, &|| Some("never asked")));
                stream.end();
                assert_eq!(other.join().unwrap(), None);
                drop(answer);
                assert_eq!(stuck.join().unwrap(), None);
            });
        });
    }
}
