//! Viewers beside the clients of a drive: what they cost it, those included that take nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;

use serde_json::Value;

use super::served::{Served, client, is_there};

/// Viewers that read what they are told.
const READERS: usize = 10;
/// Measurements with and without viewers, one after the other.
const ROUNDS: usize = 3;
/// Least ratio of the best rate with viewers to the best without. Viewers cost far less, but the
/// machine that tests run on may be under other load.
const SHARE_MIN: f64 = 0.5;
/// Bytes by which the server may grow beside its viewers.
const GROWTH_MAX: u64 = 24 << 20;

fn look_on(served: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(&served.http).expect("it listens");
    let request = format!("GET /stream HTTP/1.1\r\nHost: {}\r\n\r\n", served.http);
    stream.write_all(request.as_bytes()).expect("it receives");
    // It has a place once something comes.
    stream.peek(&mut [0]).expect("it answers");
    stream
}

/// Viewers, which are gone when it is dropped.
struct Viewers(Vec<TcpStream>);

impl Viewers {
    /// Ten that read, and one that takes nothing.
    fn come(served: &Served) -> Self {
        let mut own = vec![look_on(served)];
        for _ in 0..READERS {
            let mut reader = look_on(served);
            own.push(reader.try_clone().expect("a socket has two ends"));
            thread::spawn(move || {
                let mut chunk = vec![0; 1 << 16];
                while reader.read(&mut chunk).is_ok_and(|length| length > 0) {}
            });
        }
        Self(own)
    }
}

impl Drop for Viewers {
    fn drop(&mut self) {
        for viewer in &self.0 {
            // One that the server let go is gone already.
            let _ = viewer.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Requests a second that a client gets done in two seconds.
fn iops(served: &Served) -> f64 {
    let uri = format!("--uri={}", served.uri);
    let args = ["--name=load", "--ioengine=nbd", "--rw=randrw", "--bs=4k", "--iodepth=8"];
    let more = ["--time_based", "--runtime=2", "--size=8m", "--output-format=json", &uri];
    let said = client("fio", &[&args[..], &more].concat());
    // The engine may say something before its report.
    let report = said.find('{').map_or("", |at| &said[at..]);
    let report: Value = serde_json::from_str(report).expect("fio writes JSON");
    let of = |kind| report["jobs"][0][kind]["iops"].as_f64().expect("a number");
    of("read") + of("write")
}

fn memory_bytes(served: &Served) -> u64 {
    let told = served.beside(&["status", "volume", "--json"]);
    let status: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    status["server"]["memory_bytes"].as_u64().expect("a number")
}

#[test]
fn viewers_of_whom_one_takes_nothing_slow_the_drive_little_and_take_no_memory() {
    if !is_there("fio") {
        return;
    }
    let served = Served::start_watched();
    drop(Viewers::come(&served));
    iops(&served);
    let before = memory_bytes(&served);
    let (mut alone, mut watched) = (0.0_f64, 0.0_f64);
    for _ in 0..ROUNDS {
        alone = alone.max(iops(&served));
        let viewers = Viewers::come(&served);
        watched = watched.max(iops(&served));
        drop(viewers);
    }
    assert!(watched > alone * SHARE_MIN, "{watched:.0} IOPS watched, {alone:.0} alone");
    let grown = memory_bytes(&served).saturating_sub(before);
    assert!(grown < GROWTH_MAX, "it grew by {grown} bytes");
}
