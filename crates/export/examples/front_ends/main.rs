//! Processor time that servers take for a request of 4 KiB with 16 outstanding, and requests a
//! second: NBD over a Unix socket and the loopback, NVMe/TCP, vhost-user-blk, vfio-user with a
//! doorbell buffer. On sockets each request is sent by itself, as clients do, unless it says so.
//!
//! Servers and clients run in this process, one front end after the other in each round. The
//! threads of a server are found by their names. Servers have one processor and clients another.
//! Words name the front ends that are measured, and a number the milliseconds that each load of a
//! round takes. With a real-time policy other programs take no time from either; then be brief.
//!
//! ```text
//! cargo run --release -p export --example front_ends
//! chrt -f 10 target/release/examples/front_ends unix vhost 100
//! ```

#![expect(clippy::print_stdout, reason = "an example says what it measured")]

mod machine;
mod streams;
mod vfio;
mod vhost;

use std::env;
use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use device::{Administration, DriveHealth, Durability, Identity, MemoryDevice};
use export::nvme::Subsystem;
use export::{
    Address, Event, Export, Exports, Limits, Listener, Observer, Protocol, Server, VfioUser,
    VhostUser,
};
use rustix::thread::CpuSet;

const OUTSTANDING: usize = 16;
const PAGE: usize = 4096;
/// Pages that are read and written.
const PAGES: u64 = 1 << 16;
/// Time of each load in a round, unless the command says otherwise.
const SPAN: Duration = Duration::from_millis(700);
const ROUNDS: usize = 7;

type Failure = Box<dyn Error>;

/// A client of a front end.
trait Load {
    /// Keeps requests outstanding for a time. Returns how many were answered.
    fn run(&mut self, is_write: bool, span: Duration) -> Result<u64, Failure>;
}

/// A front end that is measured.
struct Measured {
    name: &'static str,
    /// Beginnings of the names of its server's threads.
    threads: &'static [&'static str],
    client: Box<dyn Load>,
}

#[derive(Debug)]
struct Drive;

impl Administration for Drive {
    fn identity(&self) -> Identity {
        Identity { number: 1, model: "Floatgate memory drive".into(), firmware: "1".into() }
    }

    fn health(&self) -> DriveHealth {
        DriveHealth::default()
    }
}

/// The page of a request: scattered over all, each about as often.
const fn page(number: u64) -> u64 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & (PAGES - 1)
}

/// Nanoseconds of processor time that threads with these names took.
fn taken(names: &[&str]) -> Result<f64, Failure> {
    let mut sum = 0.0;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        // The thread of a client that is gone may end meanwhile.
        let Ok(name) = fs::read_to_string(task.join("comm")) else { continue };
        if names.iter().any(|it| name.starts_with(it)) {
            let stat = fs::read_to_string(task.join("schedstat"))?;
            sum += stat.split(' ').next().ok_or("a number")?.parse::<f64>()?;
        }
    }
    Ok(sum)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Keeps this thread, and those that it starts, on a processor.
fn pin(processor: usize) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    set.set(processor);
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}

fn main() -> Result<(), Failure> {
    pin(1)?;
    let folder = tempfile::tempdir()?;
    let place = |name: &str| Address::Unix(folder.path().join(name));
    let device = Arc::new(MemoryDevice::new(PAGES * PAGE as u64));
    let export = Export {
        name: String::new(),
        description: String::new(),
        device,
        is_read_only: false,
        pace: None,
    };
    let exports = Exports::new(vec![export])?;
    let subsystem = Arc::new(Subsystem::new(&exports, Arc::new(Drive), 512)?);
    let observer: Arc<dyn Observer> = Arc::new(|_: &Event| {});
    let listeners = vec![
        (Listener::bind(&place("nbd"))?, Protocol::Nbd),
        (Listener::bind(&"tcp:0".parse()?)?, Protocol::Nbd),
        (Listener::bind(&"tcp:0".parse()?)?, Protocol::Nvme(Arc::clone(&subsystem))),
    ];
    let port = |listener: &Listener| match listener.address() {
        Address::Tcp { port, .. } => *port,
        Address::Unix(_) => 0,
    };
    let (nbd_port, nvme_port) = (port(&listeners[1].0), port(&listeners[2].0));
    let nqn = subsystem.nqn().to_owned();
    let limits = Limits::default().checked()?;
    let vhost = Listener::bind(&place("vhost"))?;
    let _vhost =
        VhostUser::start(&exports, vhost, "1", Arc::clone(&observer), Durability::Durable)?;
    let vfio = Listener::bind(&place("vfio"))?;
    let _vfio = VfioUser::start(&exports, subsystem, vfio, Arc::clone(&observer))?;
    let _server = Server::start_each(exports, listeners, limits, observer)?;
    let (_admin, nvme) = streams::nvme(nvme_port, &nqn)?;
    let path = |name: &str| folder.path().join(name);
    let fronts = [
        Measured {
            name: "NBD, Unix socket",
            threads: &["nbd-1", "nbd-2", "nbd-3", "nbd-4", "nbd-5"],
            client: Box::new(streams::nbd_unix(&path("nbd"))?),
        },
        Measured {
            name: "NBD, Unix socket, requests sent together",
            threads: &["nbd-1", "nbd-2", "nbd-3", "nbd-4", "nbd-5"],
            client: Box::new(streams::nbd_unix(&path("nbd"))?.together()),
        },
        Measured {
            name: "NBD, loopback",
            threads: &["nbd-1", "nbd-2", "nbd-3", "nbd-4", "nbd-5"],
            client: Box::new(streams::nbd_tcp(nbd_port)?),
        },
        Measured { name: "NVMe/TCP, loopback", threads: &["nvme-"], client: Box::new(nvme) },
        Measured {
            name: "vhost-user-blk",
            threads: &["vhost-user"],
            client: Box::new(vhost::Driver::connect(&path("vhost"))?),
        },
        Measured {
            name: "vfio-user",
            threads: &["vfio-user"],
            client: Box::new(vfio::Driver::connect(&path("vfio"))?),
        },
    ];
    pin(0)?;
    select(fronts.into())
}

/// Measures the front ends that the command names.
fn select(mut fronts: Vec<Measured>) -> Result<(), Failure> {
    let words: Vec<String> = env::args().skip(1).map(|it| it.to_lowercase()).collect();
    let span = words.iter().find_map(|it| it.parse().ok()).map_or(SPAN, Duration::from_millis);
    // Every page is there before anything is measured.
    fronts[0].client.run(true, SPAN)?;
    let names: Vec<&String> = words.iter().filter(|it| it.parse::<u64>().is_err()).collect();
    let is_named = |name: &str| names.iter().any(|it| name.to_lowercase().contains(*it));
    fronts.retain(|it| names.is_empty() || is_named(it.name));
    if fronts.is_empty() {
        return Err("no front end has such a name".into());
    }
    measure(fronts, span)
}

fn measure(mut fronts: Vec<Measured>, span: Duration) -> Result<(), Failure> {
    for is_write in [false, true] {
        let mut rows: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); fronts.len()];
        for _ in 0..ROUNDS {
            for (front, row) in fronts.iter_mut().zip(&mut rows) {
                let before = taken(front.threads)?;
                let done = front.client.run(is_write, span)? as f64;
                row.0.push((taken(front.threads)? - before) / done / 1000.0);
                row.1.push(done / span.as_secs_f64() / 1000.0);
            }
        }
        let rows: Vec<(f64, f64)> =
            rows.into_iter().map(|(costs, rates)| (median(costs), median(rates))).collect();
        for (front, (cost, rate)) in fronts.iter().zip(&rows) {
            println!(
                "4K {}, {}: {cost:.2} us of the server, {:.2} times; {rate:.0} thousand a second, \
                 {:.2} times",
                if is_write { "write" } else { "read" },
                front.name,
                cost / rows[0].0,
                rate / rows[0].1
            );
        }
    }
    let idle = ["nbd-", "nvme-", "vhost-user", "vfio-user"];
    let before = taken(&idle)?;
    thread::sleep(SPAN * 4);
    println!(
        "idle: {:.0} us a second of all servers",
        (taken(&idle)? - before) / SPAN.as_secs_f64() / 4e3
    );
    Ok(())
}
