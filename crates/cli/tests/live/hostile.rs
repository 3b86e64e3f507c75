//! A server among clients and viewers that want it no good: whoever asks properly is served
//! meanwhile, and the server ends when it is told to.

#![expect(clippy::unwrap_used, reason = "what the server does not do fails the test")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::served::Served;
use super::web::body;

/// Viewers that come: more than may look on.
const VIEWERS: usize = 40;
/// Within what time whoever asks properly is answered, on a machine that runs other tests too.
const PROMPT: Duration = Duration::from_secs(10);

/// Connects to a server's pages and sends this, if it is still taken.
fn send(served: &Served, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&served.http).unwrap();
    stream.set_read_timeout(Some(PROMPT)).unwrap();
    // One that was let go at once takes nothing.
    let _ = stream.write_all(request.as_bytes());
    stream
}

/// A viewer that asks for the status each second and reads nothing of it.
fn look_on(served: &Served) -> TcpStream {
    send(served, &format!("GET /stream HTTP/1.1\r\nHost: {}\r\n\r\n", served.http))
}

fn assert_scraped_promptly(served: &Served) {
    let begun = Instant::now();
    body(&served.get("/metrics"));
    assert!(begun.elapsed() < PROMPT, "/metrics took {:?}", begun.elapsed());
}

fn assert_stops_promptly(served: &mut Served) {
    let begun = Instant::now();
    let ended = served.stop();
    assert!(ended.success(), "{ended}");
    assert!(begun.elapsed() < PROMPT, "SIGTERM took {:?}", begun.elapsed());
}

#[test]
fn viewers_beyond_every_limit_hang_neither_the_metrics_nor_the_end() {
    let mut served = Served::start_watched();
    let mut viewers: Vec<TcpStream> = (0..VIEWERS).map(|_| look_on(&served)).collect();
    // Until the last one was answered, one way or the other.
    let _ = viewers.last_mut().unwrap().read(&mut [0]);
    assert_scraped_promptly(&served);
    let told = served.beside(&["status", "vault", "--json"]);
    assert!(told.status.success(), "the management socket answers as well");
    assert_stops_promptly(&mut served);
}
