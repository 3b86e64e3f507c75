//! Latencies of the commands of clients, from receipt to reply, for the status.

use std::sync::Arc;

use export::{RecordedCommand, Recorder};
use live::Meter;

use super::DriveService;

/// A recorder that counts the latencies of commands, and passes the commands on.
#[derive(Debug)]
struct Latencies {
    meter: Arc<Meter>,
    next: Option<Arc<dyn Recorder>>,
}

impl Recorder for Latencies {
    fn keep(&self, client: u64, served: &[RecordedCommand]) {
        for RecordedCommand { asked, issued_at, completed_at } in served {
            let latency = completed_at.saturating_duration_since(*issued_at);
            self.meter.note_latency(asked.op, latency);
        }
        if let Some(next) = &self.next {
            next.keep(client, served);
        }
    }
}

impl DriveService {
    /// The recorder that front ends pass the commands of clients to, so that the status has their
    /// latencies. It passes them on to `next`.
    pub fn recorder(&self, next: Option<Arc<dyn Recorder>>) -> Arc<dyn Recorder> {
        Arc::new(Latencies { meter: Arc::clone(&self.meter), next })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    use blockio::Op;
    use export::PacedCommand;

    use super::*;

    #[derive(Debug, Default)]
    struct All(Mutex<Vec<(u64, Op)>>);

    impl Recorder for All {
        fn keep(&self, client: u64, served: &[RecordedCommand]) {
            self.0.lock().unwrap().extend(served.iter().map(|it| (client, it.asked.op)));
        }
    }

    #[test]
    fn the_status_has_the_time_from_receipt_to_reply_and_a_recording_all_commands() {
        let service = DriveService::in_memory(1 << 20, None).unwrap();
        let all = Arc::<All>::default();
        let recorder = service.recorder(Some(Arc::<All>::clone(&all)));
        let issued_at = Instant::now();
        let served = |op, us| RecordedCommand {
            asked: PacedCommand { op, offset: 0, length: 4096, fua: false },
            issued_at,
            completed_at: issued_at + Duration::from_micros(us),
        };
        recorder.keep(3, &[served(Op::Read, 100), served(Op::Read, 300), served(Op::Trim, 7)]);
        let traffic = service.status().server.unwrap().traffic;
        assert_eq!((traffic.reads.latency_ns_sum, traffic.trims.latency_ns_sum), (400_000, 7_000));
        assert_eq!(traffic.reads.latency_histogram.total(), 2);
        assert_eq!(*all.0.lock().unwrap(), [(3, Op::Read), (3, Op::Read), (3, Op::Trim)]);
    }
}
