//! Event stream of a page (server-sent events): the state of the drives, once a second.
//!
//! ```text
//!   drive ──► one look a second, if a viewer looks on ──► latest ──┬──► viewer
//!                                                                  └──► slow viewer: skips some
//! ```
//!
//! The viewer that waits longest looks for all of them, so the drive is asked once a second however
//! many there are, and never without a viewer. Nothing is queued: a slow viewer is given the latest
//! state when it is ready again.
//!
//! **Invariants**
//! - Nothing is asked, sent or dropped that may wait while the lock is held: a drive that does not
//!   answer keeps neither the end of the stream nor another viewer waiting for the lock.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::connections::VIEWERS_MAX;
use super::reply::{self, Reply};
use super::visit::Visit;

/// Time from one look to the next.
const PERIOD: Duration = Duration::from_secs(1);
/// Tells a browser to come back after a second when the server was gone.
const GREETING: &[u8] = b"retry: 1000\n\n";

/// Stream that all viewers of a page share.
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
    /// True if a viewer asks the drive now.
    is_being_taken: bool,
    has_ended: bool,
}

/// Leave to ask the drive, given back when dropped, also by a look that panics.
struct Turn<'a>(&'a Stream);

impl Stream {
    /// Shows a visitor what `look` sees, until it goes, the stream ends, or there is nothing to see
    /// any more.
    ///
    /// # Errors
    /// Fails if the viewer is gone.
    pub(super) fn serve<T: Serialize>(
        &self,
        visit: &Visit<'_>,
        look: impl Fn() -> Option<T>,
    ) -> io::Result<()> {
        if !visit.entry.begin_to_view() {
            let text = format!("too many viewers: the limit is {VIEWERS_MAX}");
            return visit.send(&Reply::text(503, &text));
        }
        let connection = visit.connection;
        connection.send(reply::head(200, "text/event-stream", reply::OWN).as_bytes())?;
        connection.send(GREETING)?;
        let mut seen = 0;
        while let Some((number, message)) = self.after(seen, &look) {
            connection.send(message.as_bytes())?;
            seen = number;
        }
        Ok(())
    }

    /// Disconnects all viewers.
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
            // The thread that looks now tells when it has.
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
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use super::super::connection::Connection;
    use super::super::connections::{Connections, Entry};
    use super::super::request::Request;
    use super::super::token::Token;
    use super::*;

    /// More than all buffers between a server and a viewer that takes nothing hold.
    const MESSAGE_BYTES: usize = 16 << 20;
    const READERS: usize = 10;
    const PATIENCE: Duration = Duration::from_mins(1);

    /// A server's end of a connection, and the other one.
    fn connection() -> (Arc<TcpStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let viewer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        viewer.set_read_timeout(Some(PATIENCE)).unwrap();
        (Arc::new(listener.accept().unwrap().0), viewer)
    }

    /// Serves the client at the other end, which has `patience` to receive each part.
    fn serve<T: Serialize>(
        stream: &Stream,
        all: &Arc<Connections>,
        socket: &Arc<TcpStream>,
        patience: Duration,
        look: impl Fn() -> Option<T>,
    ) -> io::Result<()> {
        let entry = all.enter(socket);
        let connection = Connection::new(socket, None, patience)?;
        let request = Request::of("GET /stream HTTP/1.1").expect("it is one");
        let token = Token::generate(None)?;
        let visit =
            Visit { request: &request, token: &token, entry: &entry, connection: &connection };
        stream.serve(&visit, look)
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
        let (stream, all) = (Stream::default(), Arc::new(Connections::default()));
        let looks = AtomicU64::new(0);
        let look = || {
            looks.fetch_add(1, Ordering::Relaxed);
            Some("x".repeat(MESSAGE_BYTES))
        };
        let (own_end, _stuck) = connection();
        let impatience = Duration::from_millis(300);
        let begun = Instant::now();
        thread::scope(|scope| {
            let stuck = scope.spawn(|| serve(&stream, &all, &own_end, impatience, look));
            let readers: Vec<_> = (0..READERS).map(|_| connection()).collect();
            for (own_end, viewer) in readers {
                scope.spawn({
                    let (stream, all) = (&stream, &all);
                    move || serve(stream, all, &own_end, PATIENCE, look)
                });
                scope.spawn(move || read_two(&viewer));
            }
            stuck.join().unwrap().unwrap_err();
        });
        let (told, seconds) = (looks.load(Ordering::Relaxed), begun.elapsed().as_secs());
        assert!((2..=seconds + 2).contains(&told), "{told} looks in {seconds} s");
        assert_eq!(Arc::strong_count(&stream.lock().message), 1, "something is queued");
    }

    /// Returns the result of `work`; panics if it takes longer than `PATIENCE`.
    fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, is_done) = mpsc::channel();
        // The thread that waited may have given up.
        thread::spawn(move || done.send(work()));
        is_done.recv_timeout(PATIENCE).expect("it waits for ever")
    }

    #[test]
    fn a_viewer_beyond_the_limit_is_refused_and_the_others_are_told_all_the_same() {
        let told = in_time(|| {
            let (stream, all) = (Stream::default(), Arc::new(Connections::default()));
            let (own_end, mut viewer) = connection();
            let entries: Vec<_> = (0..VIEWERS_MAX).map(|_| all.enter(&own_end)).collect();
            assert!(entries.iter().all(Entry::begin_to_view));
            serve(&stream, &all, &own_end, PATIENCE, || Some("seen")).unwrap();
            drop(own_end);
            drop(entries);
            let mut answer = String::new();
            viewer.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
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
