//! A sampled load: windows in detail, and between them requests that only change the state of the
//! drive.
//!
//! ```text
//!  |<----------- stratum ----------->|<----------- stratum ----------->|
//!  ░░░░░░░░░░ ▒▒▒ ███ ░░░░░░░░░░░░░░░ ░░░ ▒▒▒ ███ ░░░░░░░░░░░░░░░░░░░░░░
//!  functional │   │   functional
//!         warming in detail, then the window, which is measured
//! ```
//!
//! Strata are numbers of requests. The window lies at a random place of each, so that no period of
//! the drive can keep step with it, and tells the time that a request takes there; the stratum
//! takes as often that. A stratum ends early where relocation for each page written is no longer
//! that which the window saw, and the next one then begins with its window: the cliff is no
//! surprise to the translation layer, which is advanced request by request.
//!
//! Times are those of the load, of which the drive's own clock sees only what is in detail.
//!
//! Sources: SMARTS [wunderlich-2003]; stratified sampling [cochran-1977].

mod estimate;
mod intervals;
mod pool;
mod precision;
mod spread;

use blockio::{ClimateReading, Nanos, Rng};
use results::{Interval, Sampling, Spread, Warning, WarningKind};
use ssd::{Drive, WarmedRequests};

use self::estimate::{Estimate, PARTS, ProgrammedPages};
pub(super) use self::intervals::SampledIntervals;
use self::pool::Pool;
use super::closed::ClosedLoop;
use super::meter::{Meter, climate_between};
use super::pressure::Pressure as _;
use super::{Load, Watch};
use crate::Error;
use crate::progress::Glimpse;
use crate::wanted::Precision;

/// Requests of a window, at least.
const WINDOW_MIN: u64 = 4096;
/// Requests of a window for each that is outstanding, at least.
const WINDOW_PER_OUTSTANDING: u64 = 8;
/// Times that the write buffer is written over in detail before a window, and in it. Functional
/// warming goes on at another die than that which the last window came to, so that the programs
/// that are under way no longer end in the order of the buffer: it admits nothing for up to the
/// time of a program, and then too much.
const TURNOVERS: u64 = 4;
/// Requests for each page of the buffer after which a window begins even so: where there are few
/// writes, dies do not wait for each other.
const REQUESTS_PER_PAGE_MAX: u64 = 16;
/// Superblocks that are written between two looks at how much is relocated.
const LOOK_SUPERBLOCKS: u64 = 4;
/// Requests between two looks, at least.
const LOOK_MIN: u64 = 16_384;
/// Change of programmed pages for each page written at which a stratum ends.
const CHANGE_MAX: f64 = 0.1;

/// One stratum.
#[derive(Debug)]
pub(super) struct Stratum {
    /// Beginning and end on the time scale of the drive, since the load began, in nanoseconds.
    pub(super) begins_ns: f64,
    pub(super) ends_ns: f64,
    /// Beginning and end of its window, likewise.
    pub(super) window_ns: [f64; 2],
    /// Measurements of its window.
    pub(super) window: Interval,
    /// Counts over all of its requests.
    pub(super) counted: RequestCounts,
    /// NAND writes, power and placement of all of it.
    pub(super) whole: Interval,
    /// True if relocation had changed when it began.
    pub(super) is_changed: bool,
    /// Pages relocated for each request, in the window and in all of it.
    pub(super) relocated_window: f64,
    pub(super) relocated_all: f64,
    /// Latencies of its window and those around it; absent where the window alone tells.
    pub(super) pool: Option<Pool>,
}

/// Requests that were counted, in detail or not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestCounts {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_bytes: u64,
    pub(super) write_bytes: u64,
    pub(super) media_errors: u64,
}

impl RequestCounts {
    fn add(&mut self, interval: &Interval) {
        self.reads += interval.read.count();
        self.writes += interval.write.count();
        self.read_bytes += interval.read_bytes;
        self.write_bytes += interval.write_bytes;
        self.media_errors += interval.media_errors;
    }

    fn warm(&mut self, warmed: &WarmedRequests) {
        self.reads += warmed.reads;
        self.writes += warmed.writes;
        self.read_bytes += warmed.sectors_read * blockio::SECTOR_BYTES;
        self.write_bytes += warmed.sectors_written * blockio::SECTOR_BYTES;
    }

    pub(super) const fn requests(&self) -> u64 {
        self.reads + self.writes
    }
}

impl Stratum {
    /// Length in nanoseconds.
    pub(super) fn length_ns(&self) -> f64 {
        self.ends_ns - self.begins_ns
    }

    /// True if not all of its requests were measured.
    fn is_sampled(&self) -> bool {
        self.counted.requests() > self.window.read.count() + self.window.write.count()
    }

    /// Adds requests that follow, of whose NAND writes, power and placement `whole` tells.
    fn extend(&mut self, counted: &RequestCounts, whole: Interval) {
        self.counted.reads += counted.reads;
        self.counted.writes += counted.writes;
        self.counted.read_bytes += counted.read_bytes;
        self.counted.write_bytes += counted.write_bytes;
        intervals::add(&mut self.whole, whole);
    }
}

/// Outcome of a sampled load.
#[derive(Debug)]
pub(super) struct SampledLoad {
    pub(super) intervals: SampledIntervals,
    pub(super) sampling: Sampling,
    pub(super) spread: Option<Spread>,
    /// The drive's own time at its end.
    pub(super) now: Nanos,
}

/// Time scale of a sampled load, in nanoseconds of the drive after time lapse, from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) ramp_ns: f64,
    pub(super) end_ns: f64,
    pub(super) interval_ns: f64,
    pub(super) interval_s: f64,
    pub(super) time_lapse: f64,
}

impl Scale {
    pub(super) fn of(load: &Load<'_>, time_lapse: u32) -> Self {
        let time_lapse = f64::from(time_lapse);
        let ns = |seconds: f64| seconds * 1e9 / time_lapse;
        Self {
            ramp_ns: ns(load.ramp_s),
            end_ns: ns(load.ramp_s + load.duration_s),
            interval_ns: ns(load.interval_s),
            interval_s: load.interval_s,
            time_lapse,
        }
    }
}

/// Reason for which `load` on `drive` is simulated in detail; absent where it can be sampled.
pub(super) fn reason_for_detail(load: &Load<'_>, drive: &Drive) -> Option<&'static str> {
    if load.replay.is_some() {
        Some("it replays a trace, whose requests are not alike")
    } else if load.rate.is_some() {
        Some("requests come at a rate, and wait for each other by the time")
    } else {
        drive.unwarmable()
    }
}

/// Warning of a load whose windows tell its rate less precisely than was asked for.
pub(super) fn imprecise(step: &str, sampling: &Sampling) -> Option<Warning> {
    let asked = sampling.precision;
    if !sampling.is_sampled() || sampling.precision_reached.is_some_and(|it| it <= asked) {
        return None;
    }
    let reached = sampling.precision_reached.map_or_else(
        || "too few windows tell how precise the rate is".to_owned(),
        |it| {
            let percent = it * 100.0;
            format!("the rate of the least certain quarter of the load is known to ±{percent:.1} %")
        },
    );
    Some(Warning {
        kind: WarningKind::Scale,
        step: step.into(),
        text: format!("sampled: {reached} (95 %), ±{} % was asked for", sampling.percent()),
        remedy: "leave out --precision to simulate every request in detail".into(),
    })
}

/// A load that is being sampled.
struct Sampler<'a, 'd> {
    closed: ClosedLoop<'d>,
    watch: &'a mut dyn Watch,
    scale: Scale,
    estimate: Estimate,
    places: Rng,
    /// Requests of a window at least, and as many in detail before it.
    part: u64,
    /// Requests of the last window, and in detail before it.
    window: u64,
    /// Requests between two looks at relocation.
    look: u64,
    /// The drive's own time.
    now: Nanos,
    /// Time of the load.
    at_ns: f64,
    strata: Vec<Stratum>,
    requests_detailed: u64,
    reason: Option<&'static str>,
}

/// A stratum under way.
struct OpenStratum {
    begins_ns: f64,
    window_ns: [f64; 2],
    meter: Meter,
    reading: Option<ClimateReading>,
    counted: RequestCounts,
    window: Option<Interval>,
    planned: u64,
    is_changed: bool,
}

/// Keeps up the load of `closed`, which has begun at `at`, for its whole length.
///
/// # Errors
/// Fails if a request failed.
pub(super) fn measure<'d>(
    closed: ClosedLoop<'d>,
    load: &Load<'_>,
    (at, precision): (Nanos, Precision),
    watch: &mut dyn Watch,
) -> Result<(SampledLoad, ClosedLoop<'d>), Error> {
    let drive = closed.drive();
    let devices = drive.devices() as u64;
    let outstanding = u64::from(load.threads) * u64::from(load.queue_per_thread) * devices;
    let scale = Scale::of(load, drive.time_lapse());
    let superblocks = drive.superblock_pages() * LOOK_SUPERBLOCKS;
    let part = WINDOW_MIN.max(outstanding * WINDOW_PER_OUTSTANDING);
    let mut sampler = Sampler {
        scale,
        estimate: Estimate::new(
            precision.share(),
            2 * part,
            LOOK_MIN.max(superblocks),
            drive.thread_stall_every_max(),
        ),
        places: Rng::new(load.seed).split("window"),
        part,
        window: part,
        look: LOOK_MIN,
        now: at,
        at_ns: 0.0,
        strata: Vec::new(),
        requests_detailed: 0,
        reason: None,
        closed,
        watch,
    };
    sampler.run()?;
    // What follows may be a load in detail, whose stalls last for their whole length.
    sampler.closed.pass(Nanos::ZERO, 1.0, &WarmedRequests::default());
    Ok(sampler.finish(precision))
}

impl<'d> Sampler<'_, 'd> {
    fn run(&mut self) -> Result<(), Error> {
        // The first window comes at once: before it no rate is known.
        let mut begins_with_window = true;
        while self.at_ns < self.scale.end_ns && !self.watch.stop() {
            begins_with_window = self.stratum(begins_with_window)?;
            let Some(stratum) = self.strata.last() else { break };
            let glimpse = Glimpse::of(&stratum.window);
            self.watch.saw(glimpse);
            let done = (self.at_ns / self.scale.end_ns).min(1.0);
            self.watch.progress(done, &super::seen(&glimpse));
        }
        Ok(())
    }

    /// Carries out one stratum. Returns true if the next one is to begin with its window.
    fn stratum(&mut self, begins_with_window: bool) -> Result<bool, Error> {
        if self.reason.is_none() {
            self.reason = self.closed.drive().unwarmable();
        }
        let least = self.estimate.stratum_min();
        let planned = self.estimate.plan(&self.scale, self.at_ns);
        let mut open = OpenStratum { is_changed: begins_with_window, ..self.open(whole(planned)) };
        if self.reason.is_some() || (planned < least && self.estimate.is_begun()) {
            let count = open.planned.max(self.window);
            self.estimate.simulate_all();
            self.closed.pass(Nanos::ZERO, 1.0, &WarmedRequests::default());
            self.simulate(&mut open, count)?;
            self.close(open);
            return Ok(false);
        }
        // Stalls that are met from now on count by the length of this stratum.
        self.closed.pass(Nanos::ZERO, self.estimate.share(&self.scale), &WarmedRequests::default());
        let free = open.planned.saturating_sub(2 * self.window);
        let place = if begins_with_window { 0 } else { self.places.below(free.max(1)) };
        if self.warm(&mut open, place)? {
            // What was before the change was like the last window.
            self.extend_last(open);
            return Ok(true);
        }
        self.window = self.settle(&mut open)?;
        self.estimate.set_detail(2 * self.window + self.part / 2);
        // The drive's own clock stands still between windows: their distance on it varies, so that
        // they keep step with nothing that comes on that clock.
        let apart = self.places.below(self.part);
        self.skip(&mut open, apart)?;
        self.simulate(&mut open, self.window)?;
        // The first stratum of a load knows its length only now.
        if self.estimate.windows() == 1 {
            let planned = self.estimate.plan(&self.scale, self.at_ns);
            open.planned = if planned < self.estimate.stratum_min() { 0 } else { whole(planned) };
        }
        let rest = open.planned.saturating_sub(open.counted.requests());
        let changed = self.warm(&mut open, rest)?;
        self.close(open);
        Ok(changed)
    }

    /// Simulates requests in detail until buffer and dies no longer show what was skipped. Returns
    /// how many.
    fn settle(&mut self, open: &mut OpenStratum) -> Result<u64, Error> {
        let pages = self.closed.drive().buffer_pages();
        let begun = self.closed.drive().counters().pages_host;
        let (mut requests, mut written) = (0, 0);
        loop {
            self.skip(open, self.part)?;
            requests += self.part;
            let before = written;
            written = self.closed.drive().counters().pages_host - begun;
            let is_over = written >= TURNOVERS * pages || written == before;
            if is_over || requests >= REQUESTS_PER_PAGE_MAX * pages {
                break;
            }
        }
        Ok(requests)
    }

    /// Simulates the next `count` requests in detail, which are counted and not measured.
    fn skip(&mut self, open: &mut OpenStratum, count: u64) -> Result<(), Error> {
        let mut meter = self.meter();
        self.now = self.closed.answer_next(count, &mut meter)?.max(self.now);
        open.counted.add(&meter.cut(self.closed.drive(), self.now, 0.0));
        self.requests_detailed += count;
        Ok(())
    }

    fn meter(&self) -> Meter {
        let mut meter = Meter::new(self.closed.drive(), self.now);
        meter.set_stall_scale(self.estimate.stall_scale(&self.scale));
        meter
    }

    fn open(&self, planned: u64) -> OpenStratum {
        let drive = self.closed.drive();
        OpenStratum {
            begins_ns: self.at_ns,
            window_ns: [self.at_ns; 2],
            meter: Meter::new(drive, self.now),
            reading: drive.climate(self.now),
            counted: RequestCounts::default(),
            window: None,
            planned,
            is_changed: false,
        }
    }

    /// Measures the next `count` requests.
    fn simulate(&mut self, open: &mut OpenStratum, count: u64) -> Result<(), Error> {
        let mut meter = self.meter();
        let began = self.now;
        let idle = self.closed.drive().idle_pages();
        self.now = self.closed.answer_next(count, &mut meter)?.max(began + Nanos(1));
        let drive = self.closed.drive();
        let window = meter.cut(drive, self.now, 0.0);
        let idle = drive.idle_pages() - idle;
        open.counted.add(&window);
        self.requests_detailed += window.read.count() + window.write.count();
        self.estimate.saw(&window, idle);
        let begins_ns =
            open.begins_ns + self.estimate.of(open.counted.requests().saturating_sub(count));
        open.window_ns = [begins_ns, begins_ns + window.span_s * 1e9];
        open.window = Some(window);
        Ok(())
    }

    /// Advances the state of the drive by `count` requests. Returns true if it stopped before,
    /// since relocation changed.
    fn warm(&mut self, open: &mut OpenStratum, count: u64) -> Result<bool, Error> {
        let mut left = count;
        while left > 0 && !self.watch.stop() {
            let part = left.min(self.look);
            left -= part;
            let before = self.closed.drive().counters();
            let warmed = self.closed.warm(part, self.estimate.idle_pages())?;
            let after = self.closed.drive().counters();
            open.counted.warm(&warmed);
            let span = Nanos::from_secs_f64(self.estimate.of(part) / 1e9);
            self.closed.pass(span, self.estimate.share(&self.scale), &warmed);
            let pages = ProgrammedPages {
                written: after.pages_host - before.pages_host,
                programmed: after.pages_programmed() - before.pages_programmed(),
            };
            if self.estimate.is_changed(pages, CHANGE_MAX) {
                return Ok(left > 0 || open.window.is_none());
            }
        }
        Ok(false)
    }

    /// Ends a stratum whose window was measured.
    fn close(&mut self, open: OpenStratum) {
        let OpenStratum { window: Some(window), counted, .. } = open else { return };
        let requests = counted.requests();
        let begins_ns = open.begins_ns;
        let nand = open.meter.nand_since(self.closed.drive());
        let figures = self.estimate.close(Some(nand), requests);
        let time_ns = figures.stratum_ns * requests as f64;
        let whole = self.whole(open.meter, open.reading, time_ns);
        self.at_ns = begins_ns + time_ns;
        self.strata.push(Stratum {
            begins_ns,
            ends_ns: self.at_ns,
            window_ns: open.window_ns,
            window,
            counted,
            whole,
            is_changed: open.is_changed,
            relocated_window: figures.relocated,
            relocated_all: figures.relocated_all,
            pool: None,
        });
    }

    /// Adds a stretch without a window to the stratum before it.
    fn extend_last(&mut self, open: OpenStratum) {
        let requests = open.counted.requests();
        let Some(last) = self.strata.last() else { return };
        let each = (last.ends_ns - last.begins_ns) / (last.counted.requests() as f64).max(1.0);
        let time_ns = each * requests as f64;
        let whole = self.whole(open.meter, open.reading, time_ns);
        self.at_ns += time_ns;
        let at_ns = self.at_ns;
        if let Some(last) = self.strata.last_mut() {
            last.ends_ns = at_ns;
            last.extend(&open.counted, whole);
        }
    }

    /// Counts of the meter of a whole stratum of that length.
    fn whole(&self, mut meter: Meter, reading: Option<ClimateReading>, time_ns: f64) -> Interval {
        let drive = self.closed.drive();
        let whole = meter.cut(drive, self.now + Nanos(1), 0.0);
        let span = Nanos::from_secs_f64(time_ns / 1e9);
        let climate = reading.zip(drive.climate(self.now));
        let climate = climate.map(|(before, after)| climate_between(&before, &after, span));
        Interval { climate, span_s: time_ns / 1e9, ..whole }
    }

    fn finish(self, precision: Precision) -> (SampledLoad, ClosedLoop<'d>) {
        let Self { mut strata, scale, closed, now, requests_detailed, reason, .. } = self;
        let pools = pool::pools(&strata);
        strata.iter_mut().zip(pools).for_each(|(stratum, pool)| stratum.pool = pool);
        let sampled = strata.iter().filter(|it| it.is_sampled());
        let windows = sampled.count() as u64;
        let first_detailed = strata.iter().rposition(Stratum::is_sampled).map_or(0, |it| it + 1);
        let from_ns = strata.get(first_detailed).map_or(scale.end_ns, |it| it.begins_ns);
        let detailed_from_s = (from_ns - scale.ramp_ns).max(0.0) / 1e9 * scale.time_lapse;
        let counting = spread::after_ramp(&strata, scale.ramp_ns);
        let spread = spread::spread(counting).filter(|_| windows > 0);
        let iops = spread::rate(counting).filter(|_| windows > 0);
        let precision_reached = precision::reached_in_parts(counting, PARTS);
        let count = |of: fn(&Stratum) -> u64| strata.iter().map(of).sum::<u64>();
        let measured = |it: &Stratum| it.window.read.count() + it.window.write.count();
        let intervals = SampledIntervals::of(&strata, &scale);
        let too_short = windows == 0 && reason.is_none();
        let reason = if too_short {
            Some("the load is too short for windows with requests between them")
        } else {
            reason
        };
        let sampling = Sampling {
            precision: precision.share(),
            detailed: reason.map(str::to_owned),
            detailed_from_s: reason.filter(|_| windows > 0).map(|_| detailed_from_s),
            windows,
            requests_measured: if windows > 0 { count(measured) } else { 0 },
            requests_detailed,
            requests: count(|it| it.counted.requests()),
            intervals_unmeasured: if windows > 0 { intervals.unmeasured } else { 0 },
            precision_reached: precision_reached.filter(|_| windows > 0),
            iops,
        };
        (SampledLoad { intervals, sampling, spread, now }, closed)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count")]
fn whole(count: f64) -> u64 {
    count.max(0.0) as u64
}
