//! A trace made from the shape of a workload.
//!
//! Directions, sizes and addresses are those of the workload's [`Generator`]; a share of the
//! requests goes on where the last one of its direction ended. Spans between requests are
//! hyperexponential with balanced means: with the squared coefficient of variation c, a span is of
//! mean `1 / (2 p rate)` with the probability `p = (1 + sqrt((c - 1) / (c + 1))) / 2`, else of mean
//! `1 / (2 (1 - p) rate)`; c = 1 is a Poisson process.

use blockio::{Lba, Nanos, Op, Rng, SECTOR_BYTES};

use super::{Format, Skipped, Trace, TraceShape, Traced};
use crate::{Demand, Generator, Job, Span, SpanError, Workload};

/// The trace of `workload`, whose shape is `shape`; the same seed makes the same one.
///
/// # Errors
/// Fails if the space is too small for the largest request.
pub fn synthesise(workload: &Workload, shape: &TraceShape, seed: u64) -> Result<Trace, SpanError> {
    let space_sectors = sectors(shape.space_gb);
    let alone = Job { index: 0, count: 1 };
    let mut generator = Generator::new(workload, Span { sectors: space_sectors }, alone, seed)?;
    let root = Rng::new(seed).split("trace");
    let mut clock = Clock::new(shape, root.split("gap"));
    let mut order = Order::new(shape, space_sectors, root.split("sequence"));
    let requests = (0..shape.requests).map(|_| {
        let Demand { op, handle, lba, sectors } = order.follow(generator.next());
        Traced { at: clock.next(), lba: lba.0, sectors, op, handle }
    });
    Ok(Trace {
        name: workload.name.clone(),
        format: Format::Shape,
        requests: requests.collect(),
        space_sectors,
        synthetic: true,
        skipped: Skipped::default(),
    })
}

/// Sectors of so many decimal GB, whole MiB.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked on reading")]
fn sectors(gb: f64) -> u64 {
    let mib = (gb * 1e9 / (1024.0 * 1024.0)) as u64;
    mib.max(1) * (1024 * 1024 / SECTOR_BYTES)
}

/// Arrival times of requests, with hyperexponential spans between them.
struct Clock {
    rng: Rng,
    now: Nanos,
    next: Nanos,
    /// Probability of a span of the first mean.
    first: f64,
    means_s: [f64; 2],
}

impl Clock {
    fn new(shape: &TraceShape, rng: Rng) -> Self {
        let c = shape.burstiness;
        let first = f64::midpoint(1.0, libm::sqrt((c - 1.0) / (c + 1.0)));
        let mean = |share: f64| 1.0 / (2.0 * share * shape.iops);
        let means_s = [mean(first), mean(1.0 - first)];
        Self { rng, now: Nanos::ZERO, next: Nanos::ZERO, first, means_s }
    }

    fn next(&mut self) -> Nanos {
        self.now = self.next;
        let mean_s = self.means_s[usize::from(self.rng.unit_f64() >= self.first)];
        self.next += Nanos::from_secs_f64(self.rng.exponential(mean_s));
        self.now
    }
}

/// Sequential order of a share of the requests, which begin where the last one of their direction
/// ended.
struct Order {
    rng: Rng,
    share: f64,
    space_sectors: u64,
    /// Sectors at which the last read and the last write ended.
    ends: [Option<u64>; 2],
}

impl Order {
    fn new(shape: &TraceShape, space_sectors: u64, rng: Rng) -> Self {
        Self { rng, share: shape.sequential_percent / 100.0, space_sectors, ends: [None; 2] }
    }

    fn follow(&mut self, drawn: Demand) -> Demand {
        let end = &mut self.ends[usize::from(drawn.op == Op::Write)];
        let goes_on = self.rng.unit_f64() < self.share;
        let fits = |lba: &u64| lba + u64::from(drawn.sectors) <= self.space_sectors;
        let lba = end.filter(fits).filter(|_| goes_on).map_or(drawn.lba, Lba);
        *end = Some(lba.0 + u64::from(drawn.sectors));
        Demand { lba, ..drawn }
    }
}
