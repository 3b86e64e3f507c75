//! Job of a fio file: the options that it knows, and the workload and load that they make.
//!
//! Options are taken in their order, the later ones win; what several of them say together is
//! decided once all are taken, so that their order does not matter.

use super::option::{self, Effect};
use super::{INTERVAL_S, RUNTIME_DEFAULT_S, Refusal, Section, engine, value};
use crate::error::Fault;
use crate::{Access, ByteRange, Gaps, Measure, SizeShare, Workload};

/// Sizes that a range may be made of.
const RANGE_SIZES_MAX: u32 = 256;

/// Directions that are known.
const DIRECTIONS: [&str; 7] =
    ["read", "write", "randread", "randwrite", "rw", "readwrite", "randrw"];

/// Settings of a job as read so far, with fio's defaults for the rest.
#[derive(Clone, Debug)]
pub(super) struct FioJob {
    rw: String,
    read_percent: Option<f64>,
    /// Sizes of reads and of writes with their shares.
    sizes: [Vec<SizeShare>; 2],
    distribution: Option<Access>,
    align_bytes: u32,
    data: Data,
    place: Place,
    threads: u16,
    depth: Depth,
    runtime_s: u64,
    is_time_based: bool,
    /// Times that fio carries the job out.
    loops: u16,
    ramp_s: u64,
    /// Requests a second of each job, reads and writes.
    rate_iops: Option<[f64; 2]>,
    /// Bytes a second of each job, reads and writes.
    rate_bytes: Option<[f64; 2]>,
    gaps: Gaps,
    /// Share of requests of a random load that are random, in percent.
    random_percent: f64,
    /// True if blocks may be addressed twice before all were addressed once.
    norandommap: bool,
    /// True if it begins when the one before has ended.
    pub(super) waits: bool,
    /// The job that it waits for.
    pub(super) waits_for: Option<String>,
    /// Options that were noted as without effect, in their order.
    pub(super) unused: Vec<String>,
}

/// Data that is written.
#[derive(Clone, Copy, Debug, Default)]
struct Data {
    /// Share by which it is compressible, in percent; absent where nothing is said.
    compressible_percent: Option<f64>,
    /// True if every buffer is zeroes.
    zeroes: bool,
    /// True if every buffer repeats a pattern.
    pattern: bool,
}

impl Data {
    /// Compressible share: fio prefers a percentage to a pattern, and that to zeroes.
    fn compressible_percent(self) -> f64 {
        let share = self.compressible_percent.filter(|share| *share > 0.0);
        share.unwrap_or(if self.zeroes || self.pattern { 100.0 } else { 0.0 })
    }
}

/// Requests outstanding.
#[derive(Clone, Debug)]
struct Depth {
    asked: u16,
    engine: String,
    /// True if threads of fio submit the requests, so that a synchronous engine has several.
    offloaded: bool,
    is_direct: Option<bool>,
    low: Option<u16>,
}

/// Files of a job, and where in them it begins.
#[derive(Clone, Debug, Default)]
struct Place {
    /// Targets that `filename` names; 0 where each job has a file of its own.
    named: usize,
    /// True if they are devices.
    is_device: bool,
    /// Files of each job that has its own.
    files: u16,
    size: Option<Extent>,
    offset: Extent,
    offset_increment: Option<Extent>,
    fill_device: bool,
}

/// Part of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Extent {
    Percent(f64),
    Bytes(u64),
}

impl Default for Extent {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl Extent {
    const fn is_none(self) -> bool {
        matches!(self, Self::Bytes(0)) || matches!(self, Self::Percent(percent) if percent <= 0.0)
    }
}

/// `10g`, or `10%`.
fn extent(text: &str) -> Result<Extent, String> {
    if text.ends_with('%') {
        return value::percent(text).map(Extent::Percent);
    }
    value::bytes(text).map(Extent::Bytes)
}

impl Default for FioJob {
    /// Returns the defaults of fio.
    fn default() -> Self {
        let one = vec![SizeShare { bytes: 4096, percent: 100.0 }];
        let engine = engine::DEFAULT.to_owned();
        Self {
            rw: "read".into(),
            read_percent: None,
            sizes: [one.clone(), one],
            distribution: None,
            align_bytes: 0,
            data: Data::default(),
            place: Place { files: 1, ..Place::default() },
            threads: 1,
            depth: Depth { asked: 1, engine, offloaded: false, is_direct: None, low: None },
            runtime_s: 0,
            is_time_based: false,
            loops: 1,
            ramp_s: 0,
            rate_iops: None,
            rate_bytes: None,
            gaps: Gaps::Constant,
            random_percent: 100.0,
            norandommap: false,
            waits: false,
            waits_for: None,
            unused: Vec::new(),
        }
    }
}

impl FioJob {
    /// Reads the job of `section`; differences from fio are added to `notes`.
    pub(super) fn read(section: &Section, notes: &mut Vec<String>) -> Result<Self, Refusal> {
        let mut job = Self::default();
        for setting in &section.settings {
            let (key, value) = (setting.key.as_str(), setting.value.as_str());
            let taken = job.take(key, value);
            taken.map_err(|text| (setting.line, format!("{key}: {text}")))?;
        }
        let checked = job.check().and_then(|()| job.check_map());
        checked.map_err(|(key, text)| refusal(section, key, &text))?;
        notes.extend(job.notes(&section.name));
        Ok(job)
    }

    /// The workload, named `name`.
    pub(super) fn workload(&self, name: &str, file: &str) -> Workload {
        let read_percent = self.read_share();
        let of_writes = read_percent <= 0.0;
        let access = self.access();
        let sizes = self.sizes[usize::from(of_writes)].clone();
        let is_mapped = access == Access::Random && !self.norandommap && sizes.len() == 1;
        let (offset_percent, footprint_percent, range) = self.addressed();
        Workload {
            schema: Workload::SCHEMA,
            name: name.to_owned(),
            title: name.to_owned(),
            description: format!("As the job file {file} asks for it."),
            source: format!("imported from {file}, a job file of fio"),
            read_percent,
            access,
            sizes,
            align_bytes: self.align_bytes,
            footprint_percent,
            offset_percent,
            range,
            compressible_percent: self.data.compressible_percent(),
            random_map: is_mapped,
            shared_start: self.has_shared_start(),
            streams: Vec::new(),
            trace: None,
        }
    }

    /// The measurement of the workload named `workload`.
    pub(super) fn measure(&self, workload: &str) -> Measure {
        Measure {
            workload: workload.to_owned(),
            published_as: Vec::new(),
            threads: vec![self.threads],
            queue_per_thread: vec![self.outstanding()],
            duration_s: if self.runtime_s == 0 { RUNTIME_DEFAULT_S } else { self.runtime_s },
            ramp_s: self.ramp_s,
            interval_s: INTERVAL_S,
            rate_iops: self.rate(),
            gaps: self.gaps,
            matrix: None,
            replay: None,
        }
    }

    /// Passes over the whole target, in order, of a job that only fills it; absent for other jobs.
    pub(super) fn fill_passes(&self) -> Option<u32> {
        let is_fill = self.runtime_s == 0
            && self.read_share() <= 0.0
            && self.access() == Access::Sequential
            && self.addressed() == (0.0, 100.0, None)
            && self.rate().is_none();
        let jobs = if self.has_shared_start() { u32::from(self.threads) } else { 1 };
        is_fill.then(|| jobs * u32::from(self.loops.max(1)))
    }

    /// Takes the option `key`.
    ///
    /// # Errors
    /// Says why it cannot be carried out.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        let key = option::name_of(key);
        match option::effect(key, value) {
            Some(Effect::None) => {
                self.unused.push(key.to_owned());
                return Ok(());
            }
            Some(Effect::Refused(why)) => return Err(why.to_owned()),
            None => {}
        }
        if self.take_requests(key, value)? || self.take_files(key, value)? {
            return Ok(());
        }
        match key {
            "iodepth" => self.depth.asked = value::count(value)?,
            "iodepth_low" => self.depth.low = Some(value::count(value)?),
            "ioengine" => {
                engine::is_asynchronous(value)?;
                value.clone_into(&mut self.depth.engine);
            }
            "io_submit_mode" => self.depth.offloaded = value == "offload",
            "direct" => self.depth.is_direct = Some(value::is_on(value)),
            "buffered" => self.depth.is_direct = Some(!value::is_on(value)),
            "numjobs" => self.threads = value::count(value)?,
            "runtime" => self.runtime_s = value::seconds(value)?,
            "time_based" => self.is_time_based = value::is_on(value),
            "loops" => self.loops = value::count(value)?,
            "ramp_time" => self.ramp_s = value::seconds(value)?,
            "rate_iops" => self.rate_iops = Some(pair(value, rate)?),
            "rate" => self.rate_bytes = Some(pair(value, rate)?),
            "rate_process" => self.gaps = gaps(value)?,
            "stonewall" => self.waits = value::is_on(value),
            "wait_for" => self.waits_for = Some(value.to_owned()),
            _ => return Err("is not known here; leave it out if it changes nothing".into()),
        }
        Ok(())
    }

    /// Takes an option of directions, sizes, addresses and data; false if `key` is another.
    fn take_requests(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "rw" => value.clone_into(&mut self.rw),
            "rwmixread" => self.read_percent = Some(value::percent(value)?),
            "rwmixwrite" => self.read_percent = Some(100.0 - value::percent(value)?),
            "bs" => self.sizes = both(value, one_size)?,
            "bsrange" => self.sizes = both(value, range)?,
            "bssplit" => self.sizes = both(value, split)?,
            "bs_unaligned" if !value::is_on(value) => {}
            "bs_unaligned" => return Err("requests are whole sectors".into()),
            "ba" => self.align_bytes = value::transfer(first(value))?,
            "random_distribution" => self.distribution = Some(distribution(value)?),
            "percentage_random" => self.random_percent = value::percent(first(value))?,
            "norandommap" => self.norandommap = value::is_on(value),
            "buffer_compress_percentage" => {
                self.data.compressible_percent = Some(value::percent(value)?);
            }
            "zero_buffers" => self.data.zeroes = value::is_on(value),
            "buffer_pattern" if value.starts_with('\'') => {
                return Err("the contents of files are not written; a pattern is".into());
            }
            "buffer_pattern" => self.data.pattern = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes an option of the target and of the part that is addressed; false if `key` is another.
    fn take_files(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "filename" => {
                self.place.named = targets(value);
                self.place.is_device = value.starts_with("/dev/");
            }
            "nrfiles" => self.place.files = value::count(value)?,
            "file_service_type" => self.unused.push(key.to_owned()),
            "size" => self.place.size = Some(extent(value)?),
            "offset" => self.place.offset = extent(value)?,
            "offset_increment" => self.place.offset_increment = Some(extent(value)?),
            "fill_device" => self.place.fill_device = value::is_on(value),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Share of requests that read, in percent.
    fn read_share(&self) -> f64 {
        match self.rw.as_str() {
            "read" | "randread" => 100.0,
            "write" | "randwrite" => 0.0,
            _ => self.read_percent.unwrap_or(50.0),
        }
    }

    fn is_random(&self) -> bool {
        self.rw.starts_with("rand") && self.random_percent > 0.0
    }

    fn access(&self) -> Access {
        if !self.is_random() {
            return Access::Sequential;
        }
        self.distribution.unwrap_or(Access::Random)
    }

    /// Part that all jobs address together: shares of the target before it and of it, or a range.
    fn addressed(&self) -> (f64, f64, Option<ByteRange>) {
        let Place { size, offset, .. } = self.place;
        let each_has_its_own = !self.shares_target();
        let parts = |is_of_each: bool| if is_of_each { self.threads } else { 1 };
        match (offset, size) {
            (Extent::Percent(offset), None) => (offset, 100.0 - offset, None),
            (offset, Some(Extent::Percent(size))) => {
                let offset = if let Extent::Percent(percent) = offset { percent } else { 0.0 };
                let size = size * f64::from(parts(self.place.is_sliced()));
                // As fio has it: up to the end at most.
                let rest = if offset > 0.0 { 100.0 - offset } else { f64::INFINITY };
                (offset, size.min(rest), None)
            }
            (Extent::Bytes(0), None) => (0.0, 100.0, None),
            (Extent::Bytes(offset_bytes), None) => {
                (0.0, 100.0, Some(ByteRange { offset_bytes, size_bytes: None }))
            }
            (offset, Some(Extent::Bytes(size))) => {
                let offset_bytes = if let Extent::Bytes(bytes) = offset { bytes } else { 0 };
                let parts = parts(self.place.is_sliced() || each_has_its_own);
                let size_bytes = Some(size.saturating_mul(parts.into()));
                (0.0, 100.0, Some(ByteRange { offset_bytes, size_bytes }))
            }
        }
    }

    /// True if all jobs have one target; else each has a file of its own.
    fn shares_target(&self) -> bool {
        self.place.named > 0 || self.depth.engine == "nbd"
    }

    /// Returns the job on a target that is as large as the file that it made; as it is on others.
    pub(super) fn on_its_target(&self) -> Self {
        let is_whole = !self.place.is_device && self.depth.engine != "nbd";
        let size = self.place.size.filter(|size| {
            !(is_whole && self.place.offset.is_none() && matches!(size, Extent::Bytes(_)))
        });
        Self { place: Place { size, ..self.place.clone() }, ..self.clone() }
    }

    /// True if all jobs begin at the same address: several of them in order on one target, without
    /// an offset of their own.
    fn has_shared_start(&self) -> bool {
        self.access() == Access::Sequential
            && self.threads > 1
            && self.shares_target()
            && !self.place.is_sliced()
    }

    /// Requests that each job keeps outstanding.
    fn outstanding(&self) -> u16 {
        if self.keeps_depth() { self.depth.asked } else { 1 }
    }

    fn keeps_depth(&self) -> bool {
        self.depth.offloaded || engine::is_asynchronous(&self.depth.engine).unwrap_or(true)
    }

    /// True if requests go through the page cache of the host.
    pub(super) fn is_cached(&self) -> bool {
        self.depth.is_direct != Some(true) && engine::has_page_cache(&self.depth.engine)
    }

    /// Returns the job with requests that bypass the page cache.
    pub(super) fn bypassing_cache(&self) -> Self {
        let depth = Depth { is_direct: Some(true), ..self.depth.clone() };
        Self { depth, ..self.clone() }
    }

    /// Refuses options that together cannot be said; the key is that of the option to point at.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if !DIRECTIONS.contains(&self.rw.as_str()) {
            let known = DIRECTIONS.join(", ");
            return Err(("rw", format!("rw={} is not supported, only {known}", self.rw)));
        }
        if self.rw.starts_with("rand") && self.random_percent > 0.0 && self.random_percent < 100.0 {
            let text = "a load is random or sequential: only 0 and 100 are supported";
            return Err(("percentage_random", text.into()));
        }
        self.check_mix()?;
        self.check_place()?;
        if self.threads == 0 || self.depth.asked == 0 {
            let key = if self.threads == 0 { "numjobs" } else { "iodepth" };
            return Err((key, "numjobs and iodepth are at least 1".into()));
        }
        if self.depth.is_direct == Some(false) {
            let text = "the page cache is not measured: requests bypass it";
            return Err(("direct", text.into()));
        }
        if self.depth.low.is_some_and(|low| low > 0 && low != self.depth.asked) {
            let text = "each completion is answered by the next request";
            return Err(("iodepth_low", text.into()));
        }
        Ok(())
    }

    /// Refuses several sizes of random requests of which each block comes once: fio shortens those
    /// that would address a block again. Of a report, the sizes tell enough.
    fn check_map(&self) -> Result<(), (&'static str, String)> {
        let sizes = &self.sizes[usize::from(self.read_share() <= 0.0)];
        if self.norandommap || self.access() != Access::Random || sizes.len() < 2 {
            return Ok(());
        }
        let text = "fio shortens requests of several sizes at blocks that it addressed before: add \
                    norandommap, by which blocks are drawn independently";
        Err(("bssplit", text.into()))
    }

    fn check_mix(&self) -> Result<(), (&'static str, String)> {
        let read = self.read_share();
        if read <= 0.0 || read >= 100.0 {
            return Ok(());
        }
        if self.sizes[0] != self.sizes[1] {
            return Err(("bs", "reads and writes of different sizes are not supported".into()));
        }
        let Some([reads, writes]) = self.rate_iops.or(self.rate_bytes) else { return Ok(()) };
        let share = 100.0 * reads / (reads + writes);
        if (share - read).abs() > 1.0 {
            let text = format!(
                "the rates make {share:.0} % reads, the mix {read} %: fio limits each direction to \
                 its own rate, which is not supported"
            );
            return Err(("rate_iops", text));
        }
        Ok(())
    }

    fn check_place(&self) -> Result<(), (&'static str, String)> {
        let Place { size, offset, offset_increment, .. } = self.place;
        if let (false, Some(Extent::Percent(_)), Extent::Bytes(_))
        | (false, Some(Extent::Bytes(_)), Extent::Percent(_)) = (offset.is_none(), size, offset)
        {
            let text = "offset and size are both shares of the target, or both bytes";
            return Err(("offset", text.into()));
        }
        if offset_increment.is_some_and(|increment| !increment.is_none()) {
            let is_slice = self.access() == Access::Sequential && self.place.is_sliced();
            if !is_slice {
                let text = "jobs begin at the start of the drive, or with a slice of `size` each \
                            where they are sequential";
                return Err(("offset_increment", text.into()));
            }
        }
        if self.place.count() > 1 && self.access() == Access::Sequential {
            let text = "several files that are read or written in order, in turn, are not \
                        supported: there is one target";
            let key = if self.place.named > 1 { "filename" } else { "nrfiles" };
            return Err((key, text.into()));
        }
        let is_fill = self.read_share() <= 0.0 && self.access() == Access::Sequential;
        if self.place.fill_device && !is_fill {
            return Err(("fill_device", "only sequential writes fill a device".into()));
        }
        Ok(())
    }

    /// Differences from what fio would do, a sentence each.
    fn notes(&self, name: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.runtime_s == 0 && self.fill_passes().is_none() {
            notes.push(format!(
                "[{name}] has no runtime: fio ends it after one pass over its size, here it is \
                 measured for {RUNTIME_DEFAULT_S} s"
            ));
        }
        if self.loops > 1 && self.fill_passes().is_none() {
            notes.push(format!("[{name}]: loops={} is ignored: it lasts its time", self.loops));
        }
        if self.runtime_s > 0 && !self.is_time_based && self.place.size.is_some() {
            notes.push(format!(
                "[{name}] lacks time_based: fio ends it after its size, here it lasts for all of \
                 its runtime"
            ));
        }
        if self.depth.asked > 1 && !self.keeps_depth() {
            notes.push(format!(
                "[{name}]: fio's engine {} is synchronous, so that the queue depth is 1 and not {}",
                self.depth.engine, self.depth.asked
            ));
        }
        if self.depth.is_direct.is_none() && self.is_cached() {
            notes.push(format!(
                "[{name}] lacks direct=1: fio measures it through the page cache, here requests \
                 bypass it"
            ));
        }
        notes.extend(self.note_of_files(name));
        let mut unused: Vec<&str> = self.unused.iter().map(String::as_str).collect();
        unused.sort_unstable();
        unused.dedup();
        if !unused.is_empty() {
            notes.push(format!("[{name}]: without effect on the load: {}", unused.join(", ")));
        }
        notes
    }

    /// The difference of several files or targets.
    fn note_of_files(&self, name: &str) -> Option<String> {
        let count = self.place.count();
        let what = if self.place.named > 1 { "targets" } else { "files" };
        let text = format!(
            "[{name}] has {count} {what}, which share its queue depth: here one target gets all of \
             its requests"
        );
        (count > 1).then_some(text)
    }

    /// Requests a second of all jobs together.
    fn rate(&self) -> Option<f64> {
        let read = self.read_share() / 100.0;
        let of = |[reads, writes]: [f64; 2]| match read {
            share if share >= 1.0 => reads,
            share if share <= 0.0 => writes,
            _ => reads + writes,
        };
        let sizes = &self.sizes[usize::from(read <= 0.0)];
        let mean_bytes: f64 =
            sizes.iter().map(|size| f64::from(size.bytes) * size.percent / 100.0).sum();
        let each = self.rate_iops.map(of).or_else(|| Some(of(self.rate_bytes?) / mean_bytes))?;
        Some(each * f64::from(self.threads))
    }
}

impl Place {
    /// Files or targets of a job.
    fn count(&self) -> usize {
        if self.named > 0 { self.named } else { self.files.into() }
    }

    /// True if the jobs follow each other, each with its size.
    fn is_sliced(&self) -> bool {
        self.size.is_some() && self.size == self.offset_increment
    }
}

/// Refusal of what the option `key` of `section` says, or else the section as a whole.
fn refusal(section: &Section, key: &str, text: &str) -> Refusal {
    let is_it = |setting: &&super::Setting| option::name_of(&setting.key) == key;
    match section.settings.iter().rev().find(is_it) {
        Some(setting) => (setting.line, format!("{}: {text}", setting.key)),
        None => (section.line, format!("[{}]: {text}", section.name)),
    }
}

/// Refusal of a value of `section` by the rule of workloads or of protocols that it breaks.
pub(super) fn faulty(section: &Section, fault: &Fault) -> Refusal {
    const KEYS: [(&str, &[&str]); 12] = [
        ("sizes", &["bs", "bsrange", "bssplit"]),
        ("align_bytes", &["ba"]),
        ("footprint_percent", &["size", "offset"]),
        ("offset_percent", &["offset"]),
        ("range", &["size", "offset"]),
        ("compressible_percent", &["buffer_compress_percentage"]),
        ("access", &["random_distribution"]),
        ("threads", &["numjobs"]),
        ("queue_per_thread", &["iodepth"]),
        ("duration_s", &["runtime"]),
        ("ramp_s", &["ramp_time"]),
        ("rate_iops", &["rate_iops", "rate"]),
    ];
    let root = fault.place.split('.').next().unwrap_or_default();
    let keys = KEYS.iter().find(|(place, _)| *place == root).map_or(&[][..], |(_, keys)| keys);
    let given = |key: &&&str| section.settings.iter().any(|it| option::name_of(&it.key) == **key);
    let key = keys.iter().find(given).copied().unwrap_or_default();
    refusal(section, key, &fault.text)
}

/// Values for reads and for writes: the latter after the first comma, or the same.
fn both<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<[T; 2], String> {
    let mut parts = text.split(',').map(str::trim);
    let reads = parts.next().unwrap_or_default();
    let writes = parts.next().filter(|part| !part.is_empty()).unwrap_or(reads);
    Ok([read(reads)?, read(writes)?])
}

fn pair(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<[f64; 2], String> {
    Ok(both(text, read)?.map(|number| number as f64))
}

fn first(text: &str) -> &str {
    text.split(',').next().unwrap_or_default()
}

/// A rate above 0.
fn rate(text: &str) -> Result<u64, String> {
    match value::bytes(text)? {
        0 => Err("0 is no limit to fio: leave it out".into()),
        rate => Ok(rate),
    }
}

/// Targets of a list, which colons separate that no backslash precedes.
fn targets(text: &str) -> usize {
    text.replace("\\:", "").split(':').filter(|name| !name.is_empty()).count()
}

fn one_size(text: &str) -> Result<Vec<SizeShare>, String> {
    Ok(vec![SizeShare { bytes: value::transfer(text)?, percent: 100.0 }])
}

/// `4k-16k`: every multiple of the smallest, equally often.
fn range(text: &str) -> Result<Vec<SizeShare>, String> {
    let (low, high) = text.split_once('-').ok_or("is not a range such as 4k-16k")?;
    let (low, high) = (value::transfer(low)?, value::transfer(high)?);
    let count = high.checked_div(low).unwrap_or(0);
    if low > high || count == 0 || count > RANGE_SIZES_MAX {
        return Err(format!("{text} is not 1 to {RANGE_SIZES_MAX} multiples of the smaller size"));
    }
    let percent = 100.0 / f64::from(count);
    Ok((1..=count).map(|times| SizeShare { bytes: low * times, percent }).collect())
}

/// `4k/60:8k/30:16k/10`; sizes without a share have what is left in equal parts.
fn split(text: &str) -> Result<Vec<SizeShare>, String> {
    let mut shares: Vec<(u32, Option<f64>)> = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() { None } else { Some(value::percent(share)?) };
        shares.push((value::transfer(size)?, share));
    }
    let given: f64 = shares.iter().filter_map(|(_, share)| *share).sum();
    let open = shares.iter().filter(|(_, share)| share.is_none()).count();
    let rest = (100.0 - given) / open.max(1) as f64;
    let mut merged: Vec<SizeShare> = Vec::new();
    for (bytes, share) in shares {
        let percent = share.unwrap_or(rest);
        match merged.iter_mut().find(|other| other.bytes == bytes) {
            Some(same) => same.percent += percent,
            None => merged.push(SizeShare { bytes, percent }),
        }
    }
    Ok(merged.into_iter().filter(|size| size.percent > 0.0).collect())
}

fn distribution(text: &str) -> Result<Access, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    match kind {
        "random" => Ok(Access::Random),
        "zipf" if !rest.contains(':') => Ok(Access::Zipf { theta: value::number(rest)? }),
        "zoned" => {
            let zones: Vec<&str> = rest.split(':').collect();
            let [hot, cold] = zones.as_slice() else {
                return Err("only two zones are supported".into());
            };
            let zone = |text: &str| -> Result<(f64, f64), String> {
                let (requests, space) = text.split_once('/').ok_or("write a zone as 60/10")?;
                Ok((value::number(requests)?, value::number(space)?))
            };
            let (hot, cold) = (zone(hot)?, zone(cold)?);
            if (hot.0 + cold.0 - 100.0).abs() > 1e-6 || (hot.1 + cold.1 - 100.0).abs() > 1e-6 {
                return Err("the two zones do not add up to 100 %".into());
            }
            Ok(Access::HotCold { hot_request_percent: hot.0, hot_space_percent: hot.1 })
        }
        _ => Err(format!("`{text}` is not supported; random, zipf:THETA and two zones are")),
    }
}

fn gaps(text: &str) -> Result<Gaps, String> {
    match text {
        "linear" => Ok(Gaps::Constant),
        "poisson" => Ok(Gaps::Exponential),
        _ => Err(format!("`{text}` is neither linear nor poisson")),
    }
}
