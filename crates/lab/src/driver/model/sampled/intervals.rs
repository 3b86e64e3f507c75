//! Intervals of a sampled load, made of the strata that they overlap.
//!
//! ```text
//!  strata     |----- A -----|------- B -------|--- C ---|
//!  intervals  |---- 1 ----|---- 2 ----|---- 3 ----|
//!             A: a part    A, B        B, C
//! ```

use results::{HandleWrites, Interval, Latencies, NandWrites, PagesRead};

use super::pool::Pool;
use super::{Scale, Stratum};

/// Intervals of a sampled load.
#[derive(Debug)]
pub(in super::super) struct SampledIntervals {
    /// Whole intervals.
    pub(in super::super) whole: Vec<Interval>,
    /// Rest of the load after the last of them; absent where nothing is left.
    pub(in super::super) rest: Option<Interval>,
    /// Whole intervals that no window lies in.
    pub(in super::super) unmeasured: u64,
}

impl SampledIntervals {
    /// Whole intervals and the rest; empty where there is no rest.
    pub(in super::super) fn counted(&self) -> Vec<Interval> {
        let Some(rest) = &self.rest else { return Vec::new() };
        self.whole.iter().chain([rest]).cloned().collect()
    }

    /// The intervals that `strata` cover after the ramp.
    pub(super) fn of(strata: &[Stratum], scale: &Scale) -> Self {
        let end_ns = strata.last().map_or(0.0, |it| it.ends_ns).min(scale.end_ns);
        let end_of = |index: u64| scale.ramp_ns + scale.interval_ns * (index + 1) as f64;
        let (mut whole, mut unmeasured) = (Vec::new(), 0);
        let mut from_ns = scale.ramp_ns;
        // A nanosecond is rounding.
        while end_of(whole.len() as u64) <= end_ns + 1.0 {
            let to_ns = end_of(whole.len() as u64);
            let at_s = (whole.len() + 1) as f64 * scale.interval_s;
            whole.push(between(strata, [from_ns, to_ns], at_s));
            let is_in = |it: &Stratum| it.window_ns[0] < to_ns && it.window_ns[1] > from_ns;
            unmeasured += u64::from(!strata.iter().any(is_in));
            from_ns = to_ns;
        }
        let is_rest = !whole.is_empty() && end_ns > from_ns + 1.0;
        let at_s = (end_ns - scale.ramp_ns) / 1e9 * scale.time_lapse;
        let rest = is_rest.then(|| between(strata, [from_ns, end_ns], at_s));
        Self { whole, rest, unmeasured }
    }
}

/// Sum of the parts of strata from one time to another.
fn between(strata: &[Stratum], [from_ns, to_ns]: [f64; 2], at_s: f64) -> Interval {
    let first = strata.partition_point(|it| it.ends_ns <= from_ns);
    let overlapping = strata[first..].iter().take_while(|it| it.begins_ns < to_ns);
    let mut sum = Interval::default();
    for stratum in overlapping {
        let overlap_ns = stratum.ends_ns.min(to_ns) - stratum.begins_ns.max(from_ns);
        let length_ns = (stratum.ends_ns - stratum.begins_ns).max(f64::MIN_POSITIVE);
        add(&mut sum, stratum.interval((overlap_ns / length_ns).clamp(0.0, 1.0)));
    }
    sum.close();
    Interval { at_s, ..sum }
}

/// Adds a part that follows.
pub(super) fn add(sum: &mut Interval, part: Interval) {
    let merged = sum
        .climate
        .zip(part.climate)
        .map(|(sum_climate, climate)| sum_climate.merged(sum.span_s, climate, part.span_s));
    sum.climate = merged.or(part.climate);
    sum.span_s += part.span_s;
    sum.read.merge(&part.read);
    sum.write.merge(&part.write);
    sum.read_bytes += part.read_bytes;
    sum.write_bytes += part.write_bytes;
    sum.media_errors += part.media_errors;
    sum.nand = part.nand.map(|nand| sum.nand.unwrap_or_default() + nand).or(sum.nand);
    sum.superblocks_free_share = part.superblocks_free_share;
    sum.pages_read = match (sum.pages_read, part.pages_read) {
        (Some(sum), Some(part)) => Some(sum + part),
        (sum, part) => sum.or(part),
    };
    sum.host_busy_ns = part.host_busy_ns.map(|it| it + sum.host_busy_ns.unwrap_or_default());
    if sum.placement.is_empty() {
        sum.placement = part.placement;
    } else {
        for (sum, part) in sum.placement.iter_mut().zip(&part.placement) {
            sum.host_bytes += part.host_bytes;
            sum.relocation_bytes += part.relocation_bytes;
            sum.wear_bytes += part.wear_bytes;
        }
    }
}

impl Stratum {
    /// A `share` of the stratum, 0 to 1, as an interval: what its window measured, and those around
    /// it, weighted by the requests that it stands for.
    pub(super) fn interval(&self, share: f64) -> Interval {
        self.interval_of(self.pool.as_ref(), share)
    }

    /// [`Stratum::interval`], with latencies from `pool` where there is one.
    pub(super) fn interval_of(&self, pool: Option<&Pool>, share: f64) -> Interval {
        let Self { window, counted, whole, .. } = self;
        let part = |amount: u64| scaled(amount, share);
        let weighted = |told: &Latencies, (requests, measured): (u64, u64)| {
            told.weighted(part(requests), part(measured))
        };
        let (read, write) = match pool {
            Some(pool) => (&pool.read, &pool.write),
            None => (&window.read, &window.write),
        };
        let requests = counted.requests() as f64;
        let measured = (window.read.count() + window.write.count()).max(1) as f64;
        let weight = share * requests / measured;
        let nand = if self.is_counted() { whole.nand } else { window.nand };
        let nand_share = if self.is_counted() { share } else { weight };
        Interval {
            at_s: 0.0,
            span_s: (self.ends_ns - self.begins_ns) * share / 1e9,
            read: weighted(read, (counted.reads, window.read.count())),
            write: weighted(write, (counted.writes, window.write.count())),
            read_bytes: part(counted.read_bytes),
            write_bytes: part(counted.write_bytes),
            nand: nand.map(|nand| nand_part(nand, nand_share)),
            superblocks_free_share: whole.superblocks_free_share,
            climate: whole.climate,
            pages_read: window.pages_read.map(|pages| PagesRead {
                count: scaled(pages.count, weight),
                unwritten: scaled(pages.unwritten, weight),
            }),
            host_busy_ns: window.host_busy_ns.map(|busy_ns| scaled(busy_ns, weight)),
            media_errors: part(counted.media_errors),
            placement: whole.placement.iter().map(|it| placement_part(*it, share)).collect(),
            tier: None,
        }
    }

    /// True if the NAND writes of all requests were counted: not of media that are written in
    /// place, which only requests in detail reach.
    fn is_counted(&self) -> bool {
        self.whole.superblocks_free_share.is_some()
    }
}

fn nand_part(nand: NandWrites, share: f64) -> NandWrites {
    let part = |bytes: u64| scaled(bytes, share);
    NandWrites {
        host_sent_bytes: part(nand.host_sent_bytes),
        host_bytes: part(nand.host_bytes),
        relocation_bytes: part(nand.relocation_bytes),
        wear_bytes: part(nand.wear_bytes),
        parity_bytes: part(nand.parity_bytes),
        metadata_bytes: part(nand.metadata_bytes),
        erase_count: part(nand.erase_count),
    }
}

fn placement_part(writes: HandleWrites, share: f64) -> HandleWrites {
    HandleWrites {
        handle: writes.handle,
        host_bytes: scaled(writes.host_bytes, share),
        relocation_bytes: scaled(writes.relocation_bytes, share),
        wear_bytes: scaled(writes.wear_bytes, share),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of a count")]
fn scaled(amount: u64, factor: f64) -> u64 {
    (amount as f64 * factor).round() as u64
}
