//! Clients of one pace, in real time.

use std::collections::BTreeMap;
use std::sync::mpsc;

use ssd::Drive;

use super::*;

const PATIENCE: Duration = Duration::from_mins(2);

/// A modelled drive, for tests of all front ends.
pub(crate) fn drive() -> Drive {
    let spec = ssd::catalogue::find("iodrive-duo").unwrap();
    let (format, host) = (spec.formats()[0].clone(), spec.hosts()[0].clone());
    Drive::new(&spec, &ssd::Setup { format, host, time_lapse: 64, seed: 1 }).unwrap()
}

/// Standstill of a pace: nothing is due, for any client, until it is dropped.
pub(crate) struct Standstill {
    _lane: Lane,
    _go_on: mpsc::Sender<()>,
}

/// A client in which the thread of all clients waits.
struct Obstacle {
    reached: mpsc::Sender<()>,
    awaited: Mutex<mpsc::Receiver<()>>,
}

impl Holder for Obstacle {
    fn send_due(&self, _tickets: &[u32]) {
        self.reached.send(()).unwrap();
        // Nothing is ever sent: it goes on once the sender is gone.
        let _ = self.awaited.lock().unwrap().recv();
    }
}

impl Standstill {
    pub(crate) fn of(pace: &Arc<Pace>) -> Self {
        let ((reached, arrival), (go_on, awaited)) = (mpsc::channel(), mpsc::channel());
        let obstacle = Obstacle { reached, awaited: Mutex::new(awaited) };
        let lane = Lane::new(pace, Arc::new(obstacle)).unwrap();
        let asked = PacedCommand { op: Op::Read, offset: 0, length: 4096, fua: false };
        lane.submit(Instant::now(), asked);
        arrival.recv_timeout(PATIENCE).unwrap();
        Self { _lane: lane, _go_on: go_on }
    }
}

/// A client that measures the time from the issue of each command until its reply is due.
struct Client {
    issued: Mutex<BTreeMap<u32, Instant>>,
    told: mpsc::Sender<Duration>,
}

impl Holder for Client {
    fn send_due(&self, tickets: &[u32]) {
        let mut issued = self.issued.lock().unwrap();
        for ticket in tickets {
            let issued_at = issued.remove(ticket).expect("each ticket is due once");
            // The receiver is gone once a test is over.
            let _ = self.told.send(issued_at.elapsed());
        }
    }
}

impl Client {
    fn new() -> (Arc<Self>, mpsc::Receiver<Duration>) {
        let (told, due) = mpsc::channel();
        (Arc::new(Self { issued: Mutex::default(), told }), due)
    }

    fn read(&self, lane: &Lane, page: u64) {
        let mut issued = self.issued.lock().unwrap();
        let now = Instant::now();
        let asked = PacedCommand { op: Op::Read, offset: page << 12, length: 4096, fua: false };
        issued.insert(lane.submit(now, asked), now);
    }
}

#[test]
fn clients_of_one_model_are_each_told_of_their_own_commands_and_not_too_early() {
    let pace = Arc::new(Pace::new(drive()));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (client, due) = Client::new();
            let lane = Lane::new(&pace, Arc::<Client>::clone(&client)).unwrap();
            (client, lane, due)
        })
        .collect();
    for round in 0..50 {
        for (number, (client, lane, _)) in (0..).zip(&clients) {
            client.read(lane, round * 4 + number);
        }
        for (_, _, due) in &clients {
            let took = due.recv_timeout(PATIENCE).expect("what was asked is due at last");
            // The host and the controller of that card take as long, though nothing is stored.
            assert!(took >= Duration::from_micros(15), "{took:?}");
        }
    }
    // It is noted once the client was told.
    let lateness = std::iter::repeat_with(|| pace.lateness()).find(|it| it.replies == 200);
    let lateness = lateness.expect("they are noted without end");
    assert!(lateness.late <= 200 && lateness.late_by_max >= lateness.late_by_mean());
}

#[test]
fn a_client_that_left_is_told_nothing_and_others_go_on() {
    let pace = Arc::new(Pace::new(drive()));
    let (left, left_due) = Client::new();
    let lane = Lane::new(&pace, Arc::<Client>::clone(&left)).unwrap();
    left.issued.lock().unwrap().clear();
    let asked = PacedCommand { op: Op::Flush, offset: 0, length: 0, fua: false };
    // Not held by this thread: a client that is gone may not be told of it.
    lane.submit(Instant::now() + Duration::from_secs(1), asked);
    drop(lane);
    let (stays, due) = Client::new();
    let lane = Lane::new(&pace, Arc::<Client>::clone(&stays)).unwrap();
    stays.read(&lane, 0);
    due.recv_timeout(PATIENCE).unwrap();
    assert!(left_due.try_recv().is_err());
}

#[test]
fn a_pace_that_no_client_asks_for_anything_takes_no_processor_time() {
    let pace = Arc::new(Pace::new(drive()));
    let (client, due) = Client::new();
    let lane = Lane::new(&pace, Arc::<Client>::clone(&client)).unwrap();
    client.read(&lane, 0);
    due.recv_timeout(PATIENCE).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while pace.shared.lock().sleeps_until != NEVER {
        assert!(Instant::now() < deadline, "it waits for nothing, and awake");
        thread::yield_now();
    }
    // And wakes again.
    client.read(&lane, 1);
    due.recv_timeout(PATIENCE).unwrap();
}
