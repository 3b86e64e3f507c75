//! A trace made from the shape of a workload.
//!
//! Directions, sizes and addresses are those of the workload's [`Generator`]; a share of the
//! requests goes on where the last one of its direction ended. Spans between requests are
//! hyperexponential with balanced means: with the squared coefficient of variation c, a span is of
//! mean `1 / (2 p rate)` with the probability `p = (1 + sqrt((c - 1) / (c + 1))) / 2`, else of mean
//! `1 / (2 (1 - p) rate)`; c = 1 is a Poisson process.
//!
//! ```text
//! |  cycle 1                |  cycle 2                | ...
//! |  phase A  |  phase B    |  phase A  |  phase B    |
//! ```
//!
//! Each phase draws from a generator of its own, which goes on in the next cycle. Runs go on from
//! one phase to the next: where the last request of a direction ended is kept.

use blockio::{Lba, Nanos, Op, Rng, SECTOR_BYTES};

use super::shape::Spacing;
use super::{Format, SkippedLines, Trace, TracePhase, TraceRequest, TraceShape};
use crate::{Access, GeneratedRequest, Generator, Job, Span, SpanError, Workload};

/// The trace of `workload`, whose shape is `shape`; the same seed makes the same one.
///
/// It addresses the whole space: a `footprint_percent` says which part of a drive the space is
/// placed on.
///
/// # Errors
/// Fails if the space is too small for the largest request.
pub fn synthesise(workload: &Workload, shape: &TraceShape, seed: u64) -> Result<Trace, SpanError> {
    let space = Span { sectors: sectors(shape.space_gb) };
    let mut phases = phases(workload, shape, space, seed)?;
    let root = Rng::new(seed).split("trace");
    let mut clock = Clock { rng: root.split("gap"), now: Nanos::ZERO, next: Nanos::ZERO };
    let mut order =
        Order { rng: root.split("sequence"), space_sectors: space.sectors, ends: [None; 2] };
    let mut requests = Vec::with_capacity(usize::try_from(shape.requests).unwrap_or_default());
    for cycle in 0..u64::from(shape.cycles) {
        let [start, end] =
            [cycle, cycle + 1].map(|it| shape.requests * it / u64::from(shape.cycles));
        let mut begin = start;
        for phase in &mut phases {
            let until = start + part(end - start, phase.until_percent);
            requests.extend((begin..until).map(|_| {
                let drawn = phase.generator.next();
                let GeneratedRequest { op, handle, lba, sectors } =
                    order.follow(drawn, phase.share);
                TraceRequest { at: clock.next(&phase.gaps), lba: lba.0, sectors, op, handle }
            }));
            begin = until;
        }
        assert_eq!(begin, end, "the phases of a cycle are all of it");
    }
    Ok(Trace {
        name: workload.name.clone(),
        format: Format::Shape,
        requests,
        space_sectors: space.sectors,
        synthetic: true,
        skipped: SkippedLines::default(),
    })
}

/// Sectors of so many decimal GB, whole MiB.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked on reading")]
fn sectors(gb: f64) -> u64 {
    let mib = (gb * 1e9 / (1024.0 * 1024.0)) as u64;
    mib.max(1) * (1024 * 1024 / SECTOR_BYTES)
}

/// `percent` of `count` requests, to the nearest one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `count`")]
fn part(count: u64, percent: f64) -> u64 {
    ((count as f64 * percent / 100.0).round() as u64).min(count)
}

/// A phase in the making.
struct Phase {
    generator: Generator,
    /// Share of a cycle at which it ends, in percent.
    until_percent: f64,
    /// Probability that a request goes on where the last one of its direction ended.
    share: f64,
    gaps: Gaps,
}

/// The phases of a trace of `workload`; one, where its `shape` has none.
fn phases(
    workload: &Workload,
    shape: &TraceShape,
    space: Span,
    seed: u64,
) -> Result<Vec<Phase>, SpanError> {
    let workload = Workload { footprint_percent: 100.0, ..workload.clone() };
    let of_shape = Spacing {
        sequential_percent: shape.sequential_percent,
        iops: shape.iops,
        burstiness: shape.burstiness,
    };
    let named = shape.phases.iter().map(|it| {
        let (requests, spacing) = (of_phase(it, &workload), it.spacing(shape));
        (requests, spacing, it.percent)
    });
    let mut stated: Vec<_> = named.collect();
    if stated.is_empty() {
        stated.push((workload, of_shape, 100.0));
    }
    let count = u16::try_from(stated.len()).unwrap_or(u16::MAX);
    let (mut until_percent, mut phases) = (0.0, Vec::new());
    for (index, (requests, spacing, percent)) in (0..count).zip(stated) {
        until_percent += percent;
        // The last phase ends with its cycle, however its shares were rounded.
        let ends_cycle = index + 1 == count;
        phases.push(Phase {
            generator: generator(&requests, Job { index, count }, space, seed)?,
            until_percent: if ends_cycle { 100.0 } else { until_percent },
            share: spacing.sequential_percent / 100.0,
            gaps: Gaps::new(spacing),
        });
    }
    Ok(phases)
}

/// The workload whose requests are those of `phase` of `workload`.
fn of_phase(phase: &TracePhase, workload: &Workload) -> Workload {
    Workload {
        read_percent: phase.read_percent.unwrap_or(workload.read_percent),
        access: phase.access.unwrap_or(workload.access),
        sizes: phase.sizes.clone().unwrap_or_else(|| workload.sizes.clone()),
        random_map: false,
        shared_start: false,
        ..workload.clone()
    }
}

/// The requests of one phase, as `job` of all phases: so they share what is hot, and nothing else.
fn generator(
    requests: &Workload,
    job: Job,
    space: Span,
    seed: u64,
) -> Result<Generator, SpanError> {
    if !matches!(requests.access, Access::Sequential | Access::Streams) {
        return Generator::new(requests, space, job, seed);
    }
    // Several jobs would go through a slice of the space each.
    let alone = Job { index: 0, count: 1 };
    let seed_of_phase = || Rng::new(seed).split("phase").split_index(job.index.into()).next_u64();
    let seed = if job.index == 0 { seed } else { seed_of_phase() };
    Generator::new(requests, space, alone, seed)
}

/// Spans between the requests of a phase.
struct Gaps {
    /// Probability of a span of the first mean.
    first: f64,
    means_s: [f64; 2],
}

impl Gaps {
    fn new(spacing: Spacing) -> Self {
        let c = spacing.burstiness;
        let first = f64::midpoint(1.0, libm::sqrt((c - 1.0) / (c + 1.0)));
        let mean = |share: f64| 1.0 / (2.0 * share * spacing.iops);
        Self { first, means_s: [mean(first), mean(1.0 - first)] }
    }
}

/// Arrival times of requests.
struct Clock {
    rng: Rng,
    now: Nanos,
    next: Nanos,
}

impl Clock {
    /// Time of a request, which `gaps` part from the next one.
    fn next(&mut self, gaps: &Gaps) -> Nanos {
        self.now = self.next;
        let mean_s = gaps.means_s[usize::from(self.rng.unit_f64() >= gaps.first)];
        self.next += Nanos::from_secs_f64(self.rng.exponential(mean_s));
        self.now
    }
}

/// Sequential order of a share of the requests, which begin where the last one of their direction
/// ended.
struct Order {
    rng: Rng,
    space_sectors: u64,
    /// Sectors at which the last read and the last write ended.
    ends: [Option<u64>; 2],
}

impl Order {
    /// `drawn`, or with the probability `share` the request that goes on in its place.
    fn follow(&mut self, drawn: GeneratedRequest, share: f64) -> GeneratedRequest {
        let end = &mut self.ends[usize::from(drawn.op == Op::Write)];
        let goes_on = self.rng.unit_f64() < share;
        let fits = |lba: &u64| lba + u64::from(drawn.sectors) <= self.space_sectors;
        let lba = end.filter(fits).filter(|_| goes_on).map_or(drawn.lba, Lba);
        *end = Some(lba.0 + u64::from(drawn.sectors));
        GeneratedRequest { lba, ..drawn }
    }
}
