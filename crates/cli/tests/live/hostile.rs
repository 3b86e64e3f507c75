//! A server among clients and viewers that want it no good: a client that asks properly is served
//! meanwhile, and the server ends when it is told to.

#![expect(clippy::unwrap_used, reason = "what the server does not do fails the test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::served::Served;
use super::web::body;

/// Viewers that come: more than may look on, and more than there may be connections.
const VIEWERS: usize = 100;
/// Clients and browsers each that connect and say nothing; this process has one end of each.
const SILENT: usize = 1000;
/// Clients that ask for much and take nothing, and how often each asks for the most.
const GREEDY: usize = 100;
const REQUESTS: usize = 4;
const REQUEST_BYTES: u32 = 32 << 20;
/// Limit to the memory of a server with default options, in KiB.
const MEMORY_KIB_MAX: u64 = 1 << 20;
/// Time limit for the answer to a well-behaved client, on a machine that runs other tests too.
const PROMPT: Duration = Duration::from_mins(1);

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
    let told = served.beside(&["status", "volume", "--json"]);
    assert!(told.status.success(), "the management socket answers as well");
    assert_stops_promptly(&mut served);
}

/// An NBD client that has shaken hands, by the shortest way.
fn nbd_client(served: &Served) -> UnixStream {
    let mut client = UnixStream::connect(served.path("s")).unwrap();
    client.set_read_timeout(Some(PROMPT)).unwrap();
    client.read_exact(&mut [0; 18]).unwrap();
    // No padding; the export without a name.
    client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    client.read_exact(&mut [0; 10]).unwrap();
    client
}

fn nbd_read(length: u32) -> Vec<u8> {
    let header = [&0x2560_9513_u32.to_be_bytes()[..], &[0; 20]].concat();
    [header, length.to_be_bytes().to_vec()].concat()
}

/// Has a new client read this much.
fn assert_read_promptly(served: &Served, length: u32) {
    let begun = Instant::now();
    let mut client = nbd_client(served);
    client.write_all(&nbd_read(length)).unwrap();
    client.read_exact(&mut vec![0; 16 + length as usize]).unwrap();
    assert!(begun.elapsed() < PROMPT, "{length} bytes took {:?}", begun.elapsed());
}

#[test]
fn connections_that_say_nothing_shut_no_client_out() {
    let mut served = Served::start_watched();
    let mut first = nbd_client(&served);
    let clients: Vec<_> =
        (0..SILENT).map(|_| UnixStream::connect(served.path("s")).unwrap()).collect();
    let browsers: Vec<_> = (0..SILENT).map(|_| send(&served, "GET /metrics HTTP/1.1")).collect();
    assert_read_promptly(&served, 4096);
    assert_scraped_promptly(&served);
    first.write_all(&nbd_read(512)).unwrap();
    first.read_exact(&mut [0; 16 + 512]).unwrap();
    assert_stops_promptly(&mut served);
    drop((clients, browsers));
}

/// The most memory that a server had so far, in KiB.
fn memory_kib_max(served: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn clients_that_ask_for_much_and_take_nothing_are_kept_within_the_memory_of_the_server() {
    let mut served = Served::start(&["--memory", "64MiB"]);
    let greedy: Vec<_> = (0..GREEDY)
        .map(|_| {
            let mut client = nbd_client(&served);
            client.write_all(&nbd_read(REQUEST_BYTES).repeat(REQUESTS)).unwrap();
            client
        })
        .collect();
    for _ in 0..10 {
        assert_read_promptly(&served, 4096);
        assert_read_promptly(&served, 256 << 10);
    }
    let kib = memory_kib_max(&served);
    assert!(kib < MEMORY_KIB_MAX, "{kib} KiB");
    assert_stops_promptly(&mut served);
    drop(greedy);
}

#[test]
fn limits_are_options_and_those_that_cannot_hold_are_refused() {
    let served = Served::start(&["--memory", "64MiB", "--max-connections", "1"]);
    let mut first = nbd_client(&served);
    first.write_all(&nbd_read(512)).unwrap();
    first.read_exact(&mut [0; 16 + 512]).unwrap();
    let mut second = UnixStream::connect(served.path("s")).unwrap();
    second.set_read_timeout(Some(PROMPT)).unwrap();
    assert_eq!(second.read(&mut [0]).unwrap_or_default(), 0, "it is turned away at once");
    drop(first);
    let little = ["serve", "--memory", "64MiB", "--nbd", "unix:t", "--max-memory", "100MiB"];
    let refused = served.beside(&little);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    let expected = "error: 100 MiB of memory for 256 clients, must be at least ";
    assert!(said.starts_with(expected) && said.lines().count() == 1, "{said}");
}
