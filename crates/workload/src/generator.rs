//! The requests of one job, one after another.
//!
//! For every request: its direction from the mix, its size from the shares, its address uniformly
//! over the aligned places where that size fits, as fio draws them with `norandommap`; a load with
//! `random_map` meets each place once before any a second time.
//!
//! Each of the three draws from a stream of its own (`mix`, `size`, `address`), split from the
//! seed by job, and draws only where there is a choice. So one workload differs from another only
//! where it means to: adding a size shifts no direction.
//!
//! This is on the hot path of a simulation: thresholds are integers made beforehand, and neither
//! a division nor a float is met while addresses are uniform or sequential.

use blockio::{Lba, Op, Rng};
use thiserror::Error;

use crate::stream::Streams;
use crate::zipf::{Scramble, Zipf};
use crate::{Access, Workload};

/// Address space of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Sectors of the whole drive.
    pub sectors: u64,
}

impl Span {
    /// The part of the drive that a trace of `workload` addresses, from its start.
    #[must_use]
    pub fn footprint(self, workload: &Workload) -> Self {
        Self { sectors: share(self.sectors, workload.footprint_percent, 1) }
    }
}

/// One of the jobs that share a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index of the job, from zero.
    pub index: u16,
    /// Jobs in all, at least one.
    pub count: u16,
}

/// One request as asked: what, where and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratedRequest {
    /// Read or write.
    pub op: Op,
    /// Placement handle of a write; 0 is the default one.
    pub handle: u8,
    /// First sector.
    pub lba: Lba,
    /// Sectors of 512 bytes, at least one.
    pub sectors: u32,
}

/// A drive that is too small for a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "workload `{workload}` has {sectors} sectors to address in each of {slices} slices, but its \
     largest request needs {needed}"
)]
pub struct SpanError {
    /// Name of the workload.
    pub workload: String,
    /// Sectors that can be addressed in a slice.
    pub sectors: u64,
    /// Slices of the footprint: one, or one a job where access is sequential.
    pub slices: u16,
    /// Sectors of the largest request.
    pub needed: u32,
}

/// Draws the requests of one job.
#[derive(Clone, Debug)]
pub struct Generator {
    mix: Mix,
    mix_rng: Rng,
    sizes: Vec<Size>,
    size_rng: Rng,
    pattern: Pattern,
    align_sectors: u64,
    /// First sector that is addressed.
    first: u64,
    address_rng: Rng,
}

#[derive(Clone, Copy, Debug)]
enum Mix {
    Reads,
    Writes,
    Both { reads_below: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Size {
    sectors: u32,
    /// Draws below this, and not below that of the size before, choose this size.
    below: u64,
    /// Aligned places of the footprint where this size fits.
    places: u64,
    /// Sectors from one request to the next in sequence, a multiple of the alignment.
    stride: u64,
}

#[derive(Clone, Debug)]
enum Pattern {
    Uniform,
    Mapped(Box<RandomMap>),
    /// With the next address of reads and of writes: each direction goes through all of them.
    Sequential {
        start: u64,
        end: u64,
        next: [u64; 2],
    },
    Zipf(Box<(Zipf, Scramble)>),
    HotCold {
        hot_below: u64,
        hot_places: u64,
        hot_rng: Rng,
    },
    Streams(Box<Streams>),
}

/// Places in a random order, each once, then in another order again.
#[derive(Clone, Debug)]
struct RandomMap {
    order: Scramble,
    /// Places that were addressed in this order.
    passed: u64,
    places: u64,
    rng: Rng,
}

impl RandomMap {
    fn new(places: u64, mut rng: Rng) -> Self {
        Self { order: Scramble::new(places, &mut rng), passed: 0, places, rng }
    }

    fn next(&mut self) -> u64 {
        if self.passed == self.places {
            (self.order, self.passed) = (Scramble::new(self.places, &mut self.rng), 0);
        }
        let place = self.order.at(self.passed);
        self.passed += 1;
        place
    }
}

impl Generator {
    /// The requests of `job` on a drive of `span`; the same seed gives the same requests.
    ///
    /// # Errors
    /// Fails if the largest request does not fit into what the workload addresses.
    pub fn new(workload: &Workload, span: Span, job: Job, seed: u64) -> Result<Self, SpanError> {
        assert!(job.index < job.count, "job {} of {}", job.index, job.count);
        let needed = workload.sizes.iter().map(|size| size.bytes / SECTOR).max().unwrap_or(0);
        let capacity_bytes = span.sectors * u64::from(SECTOR);
        let workload = &workload.placed(capacity_bytes).map_err(|beyond| {
            let sectors = capacity_bytes.saturating_sub(beyond.offset_bytes) / u64::from(SECTOR);
            SpanError { workload: beyond.workload, sectors, slices: 1, needed }
        })?;
        let root = Rng::new(seed).split("workload");
        let rng = root.split_index(u64::from(job.index));
        let align_sectors = u64::from(workload.alignment_bytes() / SECTOR);
        let footprint = share(span.sectors, workload.footprint_percent, align_sectors);
        let slices = workload.slices(job.count);
        let slice = footprint / u64::from(slices) / align_sectors * align_sectors;
        if slice < u64::from(needed).max(1) {
            let workload = workload.name.clone();
            return Err(SpanError { workload, sectors: slice, slices, needed });
        }
        let sizes = sizes(workload, footprint, align_sectors);
        let places = sizes.iter().map(|size| size.places).min().expect("a workload has sizes");
        let pattern = match workload.access {
            Access::Random if workload.random_map => {
                Pattern::Mapped(Box::new(RandomMap::new(places, rng.split("map"))))
            }
            Access::Random => Pattern::Uniform,
            Access::Sequential => {
                let start = if slices == 1 { 0 } else { slice * u64::from(job.index) };
                Pattern::Sequential { start, end: start + slice, next: [start; 2] }
            }
            Access::Zipf { theta } => {
                // One order of the addresses for all jobs: they share what is hot.
                let scramble = Scramble::new(places, &mut root.split("scramble"));
                Pattern::Zipf(Box::new((Zipf::new(places, theta), scramble)))
            }
            Access::HotCold { hot_request_percent, hot_space_percent } => Pattern::HotCold {
                hot_below: threshold(hot_request_percent),
                hot_places: share(places, hot_space_percent, 1).clamp(1, places),
                hot_rng: rng.split("hot"),
            },
            Access::Streams => {
                Pattern::Streams(Box::new(Streams::new(workload, footprint, job, seed)?))
            }
        };
        Ok(Self {
            mix: mix(workload),
            mix_rng: rng.split("mix"),
            sizes,
            size_rng: rng.split("size"),
            pattern,
            align_sectors,
            first: share(span.sectors, workload.offset_percent, align_sectors),
            address_rng: rng.split("address"),
        })
    }

    /// The next request. There is always one.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator may end, this never does")]
    pub fn next(&mut self) -> GeneratedRequest {
        if let Pattern::Streams(streams) = &mut self.pattern {
            return streams.next();
        }
        let op = match self.mix {
            Mix::Reads => Op::Read,
            Mix::Writes => Op::Write,
            Mix::Both { reads_below } => {
                if self.mix_rng.next_u64() < reads_below {
                    Op::Read
                } else {
                    Op::Write
                }
            }
        };
        let size = match self.sizes.as_slice() {
            [only] => *only,
            sizes => {
                let draw = self.size_rng.next_u64();
                // Counting instead of searching: no branch to mispredict.
                let passed: usize = sizes.iter().map(|size| usize::from(draw >= size.below)).sum();
                sizes[passed.min(sizes.len() - 1)]
            }
        };
        GeneratedRequest {
            op,
            handle: 0,
            lba: Lba(self.first + self.address(op, size)),
            sectors: size.sectors,
        }
    }

    #[inline]
    fn address(&mut self, op: Op, size: Size) -> u64 {
        let place = match &mut self.pattern {
            Pattern::Uniform => self.address_rng.below(size.places),
            Pattern::Mapped(map) => map.next(),
            Pattern::Sequential { start, end, next } => {
                let next = &mut next[usize::from(op == Op::Write)];
                if *next + u64::from(size.sectors) > *end {
                    *next = *start;
                }
                let lba = *next;
                *next += size.stride;
                return lba;
            }
            Pattern::Zipf(ranks) => ranks.1.at(ranks.0.draw(&mut self.address_rng)),
            Pattern::HotCold { hot_below, hot_places, hot_rng } => {
                let cold_places = size.places - *hot_places;
                if cold_places == 0 || hot_rng.next_u64() < *hot_below {
                    self.address_rng.below(*hot_places)
                } else {
                    *hot_places + self.address_rng.below(cold_places)
                }
            }
            // Each stream has an address of its own.
            Pattern::Streams(_) => 0,
        };
        place * self.align_sectors
    }
}

const SECTOR: u32 = 512;

fn mix(workload: &Workload) -> Mix {
    if workload.only_reads() {
        Mix::Reads
    } else if workload.only_writes() {
        Mix::Writes
    } else {
        Mix::Both { reads_below: threshold(workload.read_percent) }
    }
}

fn sizes(workload: &Workload, footprint: u64, align_sectors: u64) -> Vec<Size> {
    let mut cumulative_percent = 0.0;
    workload
        .sizes
        .iter()
        .map(|share| {
            cumulative_percent += share.percent;
            let sectors = share.bytes / SECTOR;
            Size {
                sectors,
                below: threshold(cumulative_percent),
                places: (footprint - u64::from(sectors)) / align_sectors + 1,
                stride: u64::from(sectors).next_multiple_of(align_sectors),
            }
        })
        .collect()
}

/// The number below which `percent` of all 64-bit numbers lie.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
pub(crate) fn threshold(percent: f64) -> u64 {
    (percent / 100.0 * 2.0_f64.powi(64)) as u64
}

/// `percent` of `whole`, rounded down to a multiple of `unit`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `whole`")]
pub(crate) fn share(whole: u64, percent: f64, unit: u64) -> u64 {
    let part = if percent >= 100.0 { whole } else { (whole as f64 * percent / 100.0) as u64 };
    part / unit * unit
}

#[cfg(test)]
mod tests;
