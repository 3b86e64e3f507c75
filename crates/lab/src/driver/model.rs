//! The model driver: a load on a modelled drive, in virtual time.
//!
//! Time lapse k: the drive holds 1/k of its capacity and every span of the protocol lasts 1/k of
//! its length on the drive's own clock. What is reported as protocol time is multiplied back;
//! latencies and rates are what the drive did.
//!
//! The state of the drive survives from one load to the next; only a purge resets it. At the end of
//! a load everything outstanding is awaited and not counted, as fio does.
//!
//! ```text
//! |<- ramp ->|<- interval ->|<- interval ->|    rest     |<- drain ->|
//!  discarded      counted        counted    in the totals  discarded
//! ```

mod climate;
mod closed;
mod die_failure;
mod feed;
mod fill;
mod looped_replay;
mod meter;
mod open;
mod owed;
mod pressure;
pub mod quick_measure;
mod recorded;
mod sampled;
mod space;

use blockio::Nanos;
use results::published::{data_sheet, price, property};
use results::{
    Environment, HostLimits, Interval, PlatformRow, Sampling, SheetRow, Target, TargetKind,
};
use ssd::{Drive, DriveSpec, Fact, Setup};
use workload::{Span, Workload};

use self::closed::ClosedLoop;
use self::feed::Feed;
pub use self::feed::issued;
use self::meter::Meter;
use self::open::Open;
use self::pressure::Pressure;
pub(crate) use self::pressure::failed;
pub use self::recorded::{ReplayModel, ReplayState};
use self::space::Space;
use super::{Driver, Drivers, Fill, Load, LoadResult, RecordedLoad, ReplayedApplication, Watch};
use crate::progress::Glimpse;
use crate::schedule::Schedule;
use crate::wanted::{Precision, TargetSetup};
use crate::{Error, Gaps, Kind, Rate};

/// A modelled drive with a load generator before it.
#[derive(Debug)]
pub struct Model {
    spec: DriveSpec,
    setup: Setup,
    drive: Drive,
    space: Space,
    /// The drive's own time: end of the last load.
    now: Nanos,
    /// Precision to which loads are sampled; absent: all is simulated in detail.
    precision: Option<Precision>,
}

/// Makes the drivers of a modelled drive in one of its setups.
///
/// # Errors
/// Fails if the setup does not fit the drive.
pub fn drivers<'a>(
    spec: &DriveSpec,
    setup: &'a TargetSetup,
    seed: u64,
) -> Result<Box<Drivers<'a>>, Error> {
    let spec = spec.clone().surrounded_by(&setup.surroundings);
    let spec =
        spec.map_err(|source| Error::new(Kind::Input, "placing the drive").source(source))?;
    let make = move || -> Result<Box<dyn Driver>, Error> {
        let model = Model::new(spec.clone(), setup.with_seed(seed))?;
        Ok(Box::new(model.sampled(setup.precision)))
    };
    // A setup that does not fit is refused here, not when all else is under way.
    make()?;
    Ok(Box::new(make))
}

/// The spans of one load on the drive's own clock, after time lapse.
#[derive(Clone, Copy, Debug)]
struct Timetable {
    counted_from: Nanos,
    end: Nanos,
    interval_protocol: Nanos,
    intervals: u64,
    duration_protocol_s: f64,
    time_lapse: u64,
}

/// Intervals of a load.
#[derive(Debug, Default)]
struct LoadIntervals {
    /// Every whole interval.
    intervals: Vec<Interval>,
    /// Partial interval after the last whole one; absent where nothing is left of the load.
    rest: Option<Interval>,
}

impl LoadIntervals {
    /// Whole intervals and the rest; empty where there is no rest.
    fn counted(&self) -> Vec<Interval> {
        let Some(rest) = &self.rest else { return Vec::new() };
        self.intervals.iter().chain([rest]).cloned().collect()
    }
}

impl Timetable {
    fn new(load: &Load<'_>, start: Nanos, time_lapse: u32) -> Self {
        let time_lapse = u64::from(time_lapse);
        let interval_protocol = Nanos::from_secs_f64(load.interval_s);
        let duration = Nanos::from_secs_f64(load.duration_s);
        let counted_from = start + Nanos::from_secs_f64(load.ramp_s) / time_lapse;
        Self {
            counted_from,
            end: counted_from + duration / time_lapse,
            interval_protocol,
            intervals: duration.0 / interval_protocol.0.max(1),
            duration_protocol_s: load.duration_s,
            time_lapse,
        }
    }

    /// End of the interval numbered `index` from zero. Computed from the start of the load, so
    /// that the division by k never adds up.
    fn interval_end(&self, index: u64) -> Nanos {
        self.counted_from + self.interval_protocol * (index + 1) / self.time_lapse
    }

    /// End of the last interval that was measured.
    fn counted_to(&self, measured: &Result<LoadIntervals, Error>) -> Nanos {
        let count = measured.as_ref().map_or(0, |it| it.intervals.len()) as u64;
        count.checked_sub(1).map_or(Nanos::ZERO, |last| self.interval_end(last))
    }

    /// End of interval `index` in protocol seconds since the end of the ramp.
    fn interval_end_protocol_s(&self, index: u64) -> f64 {
        (self.interval_protocol * (index + 1)).as_secs_f64()
    }
}

/// A time lapse below that of `setup`, which leaves too little of the drive, that leaves enough:
/// usually the largest. None where something else is wrong.
fn largest_time_lapse(spec: &DriveSpec, setup: &Setup) -> Option<u32> {
    let format = spec.format(&setup.format).ok()?;
    let can_be = |time_lapse: u32| spec.ftl_config(format, time_lapse).is_ok();
    if !spec.is_nand() || setup.time_lapse <= 1 || can_be(setup.time_lapse) || !can_be(1) {
        return None;
    }
    let (mut largest, mut too_large) = (1, setup.time_lapse);
    while too_large - largest > 1 {
        let middle = largest + (too_large - largest) / 2;
        *(if can_be(middle) { &mut largest } else { &mut too_large }) = middle;
    }
    let with_it = Setup { time_lapse: largest, ..setup.clone() };
    Drive::new(spec, &with_it).is_ok().then_some(largest)
}

impl Model {
    /// A purged drive of `spec`, set up as `setup` says.
    ///
    /// # Errors
    /// Names the format, host or time lapse that the drive does not have.
    pub fn new(spec: DriveSpec, setup: Setup) -> Result<Self, Error> {
        let drive = Drive::new(&spec, &setup).map_err(|source| {
            let error = Error::new(Kind::Input, "setting up the drive").source(source);
            // Dies are as many at every scale: without the one that fails, would it fit?
            let intact = DriveSpec { die_failures: Vec::new(), ..spec.clone() };
            if !spec.die_failures.is_empty() && Drive::new(&intact, &setup).is_ok() {
                let hint = if spec.is_nand() {
                    "name dies that the drive has, each once"
                } else {
                    "leave out --fail-die"
                };
                return error.hint(hint);
            }
            match (largest_time_lapse(&spec, &setup), setup.time_lapse) {
                (Some(largest), _) => {
                    error.hint(format!("a time lapse of {largest} leaves enough"))
                }
                (None, 0 | 1) => error,
                (None, k) => error.hint(format!("a time lapse below {k} leaves more of the drive")),
            }
        })?;
        let space = Space::new(&spec);
        Ok(Self { spec, setup, drive, space, now: Nanos::ZERO, precision: None })
    }

    /// A model whose drive, of `spec` and set up as `setup` says, is in the state of `drive`.
    pub fn in_state(spec: DriveSpec, setup: Setup, drive: Drive) -> Self {
        let space = Space::new(&spec);
        Self { spec, setup, drive, space, now: Nanos::ZERO, precision: None }
    }

    /// The model with its loads sampled to `precision`, where that is possible.
    #[must_use]
    pub fn sampled(self, precision: Option<Precision>) -> Self {
        Self { precision, ..self }
    }

    /// Checks that the drive has the placement handles of `workload`, where it has any.
    fn check_handles(&self, workload: &Workload) -> Result<(), Error> {
        let Some(handles) = self.spec.placement_handles() else { return Ok(()) };
        let beyond = workload.streams.iter().find(|stream| stream.handle >= handles);
        let Some(stream) = beyond else { return Ok(()) };
        let text = format!(
            "workload {}: stream {} names placement handle {}, {} has handles 0 to {}",
            workload.name,
            stream.name,
            stream.handle,
            self.spec.name,
            handles - 1
        );
        let hint = "name a handle that the drive has, or give its [placement] more handles";
        Err(Error::new(Kind::Input, text).hint(hint))
    }

    /// Carries out a load of which only windows are simulated in detail.
    fn load_sampled(
        &mut self,
        load: &Load<'_>,
        feeds: Vec<Feed>,
        precision: Precision,
        watch: &mut dyn Watch,
    ) -> Result<LoadResult, Error> {
        let at = self.now;
        let closed = ClosedLoop::start(&mut self.drive, feeds, load, at);
        let measured = sampled::measure(closed, load, (at, precision), watch);
        let (sampled, closed) =
            measured.map_err(|error| Error::new(error.kind(), load.step).source(error))?;
        let rest = closed.drain(sampled.now);
        self.now = rest.completed_at.max(sampled.now);
        let counted = sampled.intervals.counted();
        let intervals = sampled.intervals.whole;
        let how = format!("{}; {}", self.how(load, &intervals), sampled.sampling.text());
        let space = self.space.passed(&self.drive, load.step);
        let owed = owed::warning(&self.drive, load.step, load.workload, &intervals);
        let climate = climate::warnings(&self.spec, load.step, &intervals);
        let unfinished = rest.unfinished(&intervals);
        let imprecise = sampled::imprecise(load.step, &sampled.sampling);
        Ok(LoadResult {
            counted,
            how,
            unfinished,
            warnings: space.into_iter().chain(owed).chain(climate).chain(imprecise).collect(),
            sampling: Some(sampled.sampling),
            spread: sampled.spread,
            intervals,
            ..LoadResult::default()
        })
    }

    /// Description of `load` for the report, with the coverage of a trace by the requests in
    /// `intervals`.
    fn how(&self, load: &Load<'_>, intervals: &[Interval]) -> String {
        let devices = self.spec.device_count();
        let how = how(load, devices, self.setup.time_lapse);
        let Some(replay) = &load.replay else { return how };
        let requests = intervals.iter().map(|it| it.read.count() + it.write.count()).sum::<u64>();
        let span = Span { sectors: self.drive.user_sectors_full_scale() / u64::from(devices) };
        let span = span.footprint(load.workload);
        format!("{how}; {}", replay.how(span, load.rate, requests / u64::from(devices)))
    }
}

/// Specification sheet of a drive in a format: what its model is made of, then what else was
/// published of it.
pub fn sheet(spec: &DriveSpec, format: &str) -> Vec<SheetRow> {
    let row = |Fact { group, name, value, source }| SheetRow { group, name, value, source };
    let mut sheet: Vec<SheetRow> = spec.sheet(format).into_iter().map(row).collect();
    for row in spec.published_as().iter().flat_map(|(device, gb)| data_sheet(device, *gb)) {
        // The file of the drive may have it already, with the same source.
        if sheet.iter().all(|known| known.name != row.name) {
            sheet.push(row);
        }
    }
    sheet
}

/// Metric of rated endurance in published rows and in drive files.
const ENDURANCE: &str = "endurance_pbw";

impl Driver for Model {
    fn target(&self) -> Target {
        let published = self.spec.published_as();
        Target {
            kind: TargetKind::Model,
            name: self.spec.name.clone(),
            title: self.spec.title.clone(),
            format: self.setup.format.clone(),
            host: self.setup.host.clone(),
            user_capacity_bytes: self.drive.user_sectors_full_scale() * blockio::SECTOR_BYTES,
            raw_capacity_bytes: Some(self.drive.raw_capacity_full_scale().0),
            time_lapse: self.setup.time_lapse,
            devices: self.spec.device_count(),
            unvalidated: !self.spec.is_validated(),
            limits: climate::limits(&self.spec),
            host_map_bytes: self.drive.host_map().map(|bytes| bytes.0),
            host_stall_ms_max: self.spec.host_stall_ms_max(&self.setup.host),
            host_limits: host_limits(&self.spec, &self.setup.host),
            price: published.and_then(|(device, gb)| price(device, gb)),
            endurance_pb: self
                .spec
                .stated(ENDURANCE, &self.setup.format, false)
                .or_else(|| published.and_then(|(device, gb)| property(device, gb, ENDURANCE))),
            sheet: sheet(&self.spec, &self.setup.format),
        }
    }

    fn environment(&self) -> Environment {
        let rows = self.spec.host_sheet(&self.setup.host).into_iter();
        let sheet = rows.map(|(name, value)| PlatformRow { name, value }).collect();
        Environment { sheet, imported_from: None }
    }

    fn purge(&mut self) -> Result<String, Error> {
        self.drive.purge();
        self.space = Space::new(&self.spec);
        Ok(format!("purged the model, formatted `{}`", self.setup.format))
    }

    fn fill(&mut self, fill: &Fill<'_>, watch: &mut dyn Watch) -> Result<String, Error> {
        self.drive.set_compressible(fill.workload.compressible_percent);
        for _ in 0..fill.passes {
            let filled = fill::fill(&mut self.drive, fill, self.now, watch);
            self.now = filled.map_err(|error| Error::new(error.kind(), fill.step).source(error))?;
        }
        let times = if fill.passes == 1 { "once".into() } else { format!("{} times", fill.passes) };
        let what = if fill.is_in_order() { "everything" } else { "as much as the capacity" };
        Ok(format!("wrote {what} {times} with {}", fill.workload.name))
    }

    fn load(&mut self, load: &Load<'_>, watch: &mut dyn Watch) -> Result<LoadResult, Error> {
        self.check_handles(load.workload)?;
        let timetable = Timetable::new(load, self.now, self.setup.time_lapse);
        let feeds = Feed::of_all(load, &self.drive)?;
        self.drive.begin_loads(self.now);
        self.drive.set_compressible(load.workload.compressible_percent);
        let asked = self.precision;
        let reason = asked.and_then(|_| sampled::reason_for_detail(load, &self.drive));
        if let (Some(precision), None) = (asked, reason) {
            return self.load_sampled(load, feeds, precision, watch);
        }
        let (drive, at) = (&mut self.drive, self.now);
        let (outcome, responses, rest) = match Schedule::of(load, at) {
            None => {
                let mut closed = ClosedLoop::start(drive, feeds, load, at);
                let outcome = measure(&mut closed, &timetable, watch);
                let rest = closed.drain(timetable.counted_to(&outcome));
                (outcome, None, rest)
            }
            Some(schedule) => {
                let mut open = Open::start(drive, feeds, load, schedule);
                let outcome = measure(&mut open, &timetable, watch);
                let responses = open.take_responses();
                let rest = open.drain(timetable.counted_to(&outcome));
                (outcome, Some(responses), rest)
            }
        };
        self.now = rest.completed_at.max(timetable.end);
        let measured =
            outcome.map_err(|error| Error::new(error.kind(), load.step).source(error))?;
        let counted = measured.counted();
        let intervals = measured.intervals;
        let how = self.how(load, &intervals);
        let space = self.space.passed(&self.drive, load.step);
        let span = (at, timetable.end);
        let counted_span = (timetable.counted_from, timetable.end);
        let die_failures = die_failure::failures(&self.drive, counted_span, &intervals);
        let of_dies = die_failures.iter();
        let failed =
            of_dies.flat_map(|it| die_failure::warnings(it, load.step, self.setup.time_lapse));
        let owed = owed::warning(&self.drive, load.step, load.workload, &intervals);
        let warnings = space.into_iter().chain(failed).chain(owed);
        let late = climate::booked_beyond(&self.spec, load.step, span, rest.completed_at);
        let warnings = warnings.chain(climate::warnings(&self.spec, load.step, &intervals));
        let warnings = warnings.chain(late);
        let warnings = warnings.collect();
        let unfinished = rest.unfinished(&intervals);
        Ok(LoadResult {
            intervals,
            counted,
            how,
            responses,
            unfinished,
            die_failures,
            sampling: asked
                .zip(reason)
                .map(|(asked, reason)| Sampling::in_detail(asked.share(), reason)),
            warnings,
            ..LoadResult::default()
        })
    }

    fn replay(
        &mut self,
        load: &RecordedLoad<'_>,
        watch: &mut dyn Watch,
    ) -> Result<ReplayedApplication, Error> {
        watch.progress(0.0, "replaying");
        self.drive.begin_loads(self.now);
        let failed = |error: Error| Error::new(error.kind(), load.step).source(error);
        let name = &self.spec.name;
        if let Some(looped) = &load.looped {
            // Each of several drives begins in the present state of this one.
            let mut drive = self.drive.clone();
            return looped_replay::on(&mut drive, name, load, looped, self.now).map_err(failed);
        }
        let outcome = recorded::on(&mut self.drive, name, load.recording, load.host, self.now);
        let outcome = outcome.map_err(failed)?;
        self.now = outcome.completed_at;
        let recorded::ReplayedRecording { replayed, interval, .. } = outcome;
        Ok(ReplayedApplication { replayed, intervals: vec![interval], transactions: Vec::new() })
    }
}

/// Runs the ramp, every interval, and the rest of the load; stops early when told to.
fn measure(
    pressure: &mut impl Pressure,
    timetable: &Timetable,
    watch: &mut dyn Watch,
) -> Result<LoadIntervals, Error> {
    let mut measured = LoadIntervals::default();
    let mut ramp = Meter::new(pressure.drive(), timetable.counted_from);
    if !pressure.run(timetable.counted_from, &mut ramp, watch)? {
        return Ok(measured);
    }
    pressure.forget();
    let mut meter = Meter::new(pressure.drive(), timetable.counted_from);
    for index in 0..timetable.intervals {
        let end = timetable.interval_end(index);
        if !pressure.run(end, &mut meter, watch)? {
            return Ok(measured);
        }
        let interval = meter.cut(pressure.drive(), end, timetable.interval_end_protocol_s(index));
        let done = (index + 1) as f64 / timetable.intervals as f64;
        let glimpse = Glimpse::of(&interval);
        watch.saw(glimpse);
        watch.progress(done, &seen(&glimpse));
        measured.intervals.push(interval);
    }
    let end = timetable.end;
    let ended = timetable.intervals.checked_sub(1).map(|index| timetable.interval_end(index));
    let whole = pressure.run(end, &mut meter, watch)?;
    if whole && ended.is_some_and(|ended| end > ended) {
        let at_s = timetable.duration_protocol_s;
        measured.rest = Some(meter.cut(pressure.drive(), end, at_s));
    }
    Ok(measured)
}

fn seen(glimpse: &Glimpse) -> String {
    format!("{:.1}k IOPS", glimpse.iops / 1e3)
}

/// The limits of the host named `host`, whatever the drive; absent without any.
fn host_limits(spec: &DriveSpec, host: &str) -> Option<HostLimits> {
    let host = spec.host(host).ok()?;
    let processors = Some(host.processors).filter(|processors| *processors > 0);
    let serial_us = Some(host.serial_us).filter(|serial_us| *serial_us > 0.0);
    let limits = HostLimits { processors, serial_us };
    (limits != HostLimits::default()).then_some(limits)
}

fn how(load: &Load<'_>, devices: u32, time_lapse: u32) -> String {
    let Load { threads, queue_per_thread, workload, rate, .. } = load;
    let rate = match rate {
        None => String::new(),
        Some(Rate { iops, gaps: Gaps::Exponential }) => format!(", {iops} IOPS at random"),
        Some(Rate { iops, gaps: Gaps::Constant }) => format!(", {iops} IOPS evenly"),
    };
    let lapse = match time_lapse {
        1 => "at full scale".to_owned(),
        k => format!("in time lapse, 1/{k} of the capacity for 1/{k} of the time"),
    };
    let each = match devices {
        1 => String::new(),
        _ => format!(
            " on each of {devices} devices, {} outstanding in all",
            u32::from(*threads) * u32::from(*queue_per_thread) * devices
        ),
    };
    let load = format!("{} at T{threads}Q{queue_per_thread}{each}{rate}", workload.name);
    format!("{load} in virtual time, {lapse}")
}

#[cfg(test)]
mod tests;
