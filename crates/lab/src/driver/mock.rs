//! A driver that does nothing and remembers what it was told, for tests of the protocol's order.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use results::{Environment, Interval, Target, TargetKind};

use super::{Driver, Fill, LatenessCounts, Load, LoadResult, Watch};
use crate::progress::Glimpse;
use crate::{Error, Kind};

/// Commands given to the drivers that share it, in order: `purge`, or the name of a step.
#[derive(Clone, Debug, Default)]
pub struct CommandLog(Arc<Mutex<Vec<String>>>);

impl CommandLog {
    /// Returns all commands so far.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, what: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
    }
}

/// A driver under which every request takes 100 us, or longer from load to load.
#[derive(Clone, Debug)]
pub struct Mock {
    told: CommandLog,
    kind: TargetKind,
    fails_at: Option<String>,
    latency_ns: u64,
    slows_by_ns: u64,
    lateness: Option<LatenessCounts>,
}

impl Mock {
    /// A mock that stands for a target of `kind` and writes down what it is told in `told`.
    pub fn new(kind: TargetKind, told: &CommandLog) -> Self {
        Self {
            told: told.clone(),
            kind,
            fails_at: None,
            latency_ns: 100_000,
            slows_by_ns: 0,
            lateness: None,
        }
    }

    /// Fails when told to carry out `step`.
    #[must_use]
    pub fn failing_at(mut self, step: &str) -> Self {
        self.fails_at = Some(step.to_owned());
        self
    }

    /// Takes `latency_ns` for every request.
    #[must_use]
    pub fn with_latency_ns(mut self, latency_ns: u64) -> Self {
        self.latency_ns = latency_ns;
        self
    }

    /// Tells, for each load, that a server was late by `lateness`.
    #[must_use]
    pub fn late_by(mut self, lateness: LatenessCounts) -> Self {
        self.lateness = Some(lateness);
        self
    }

    /// Takes `more_ns` longer for every request with each load, and so never holds still.
    #[must_use]
    pub fn slowing_by(mut self, more_ns: u64) -> Self {
        self.slows_by_ns = more_ns;
        self
    }
}

impl Driver for Mock {
    fn target(&self) -> Target {
        Target {
            name: "mock".into(),
            title: "Mock".into(),
            host: "linux".into(),
            user_capacity_bytes: 1_000_000_000,
            ..Target::of_kind(self.kind)
        }
    }

    fn environment(&self) -> Environment {
        Environment::default()
    }

    fn purge(&mut self) -> Result<String, Error> {
        self.told.push("purge");
        Ok("nothing was purged".into())
    }

    fn fill(&mut self, fill: &Fill<'_>, _: &mut dyn Watch) -> Result<String, Error> {
        self.told.push(fill.step);
        Ok("nothing was written".into())
    }

    fn load(&mut self, load: &Load<'_>, watch: &mut dyn Watch) -> Result<LoadResult, Error> {
        self.told.push(load.step);
        if self.fails_at.as_deref() == Some(load.step) {
            return Err(Error::new(Kind::Program, "the mock was set up to fail"));
        }
        let mut intervals = Vec::new();
        let mut at_s = load.interval_s;
        while at_s <= load.duration_s && !watch.stop() {
            let interval = interval(load, at_s, self.latency_ns);
            watch.saw(Glimpse::of(&interval));
            intervals.push(interval);
            watch.progress(at_s / load.duration_s, "");
            at_s += load.interval_s;
        }
        self.latency_ns += self.slows_by_ns;
        let (how, lateness) = ("nothing was done".into(), self.lateness);
        Ok(LoadResult { intervals, how, lateness, ..LoadResult::default() })
    }
}

/// A mock for the test of the contract.
pub fn specimen() -> Box<dyn Driver> {
    Box::new(Mock::new(TargetKind::Model, &CommandLog::default()))
}

/// Interval at `at_s` in which every request of the load takes `latency_ns`.
fn interval(load: &Load<'_>, at_s: f64, latency_ns: u64) -> Interval {
    let outstanding = u64::from(load.threads) * u64::from(load.queue_per_thread);
    let a_second = outstanding * 1_000_000_000 / latency_ns;
    let mut interval = Interval { at_s, span_s: load.interval_s, ..Interval::default() };
    let (latencies, bytes) = if load.workload.only_reads() {
        (&mut interval.read, &mut interval.read_bytes)
    } else {
        (&mut interval.write, &mut interval.write_bytes)
    };
    let length_ms = Duration::from_secs_f64(load.interval_s).as_millis();
    let requests = a_second * u64::try_from(length_ms).expect("a short interval") / 1000;
    latencies.record_many(latency_ns, requests);
    *bytes += requests * 4096;
    interval
}

/// The file of an ioDrive Duo with a thousandth of its NAND, at full scale; faster NAND, so that a
/// tenth of the dies does not stand in the controller's way.
///
/// # Panics
/// If the file of the drive in the catalogue has other values than these changes are for.
pub fn tiny_drive_text() -> String {
    let duo = ssd::catalogue::text("iodrive-duo").expect("it is in the catalogue");
    let changes = [
        ("time_lapse = 32", "time_lapse = 1"),
        ("user_gb = 640", "user_gb = 0.33"),
        ("user_gb = 512", "user_gb = 0.27"),
        ("banks = 4", "banks = 2"),
        ("dies_per_bank = 25", "dies_per_bank = 5"),
        ("stripe_dies = 25", "stripe_dies = 5"),
        ("\nerase_blocks_per_plane = 2048", "\nerase_blocks_per_plane = 110"),
        ("spare_erase_blocks_per_plane = 84", "spare_erase_blocks_per_plane = 10"),
        ("pages_per_erase_block = 256", "pages_per_erase_block = 32"),
        ("t_read_us = 50", "t_read_us = 20"),
        ("t_program_us = [500, 2400]", "t_program_us = [30, 140]"),
        ("t_erase_us = 3000", "t_erase_us = 300"),
        ("watermark_low = 10", "watermark_low = 6"),
        ("watermark_high = 12", "watermark_high = 8"),
        ("price_max = 1.0", "price_max = 1000"),
        ("kib = 2048", "kib = 512"),
    ];
    changes.iter().fold(duo.to_owned(), |text, (from, to)| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from} is not there");
        changed
    })
}
