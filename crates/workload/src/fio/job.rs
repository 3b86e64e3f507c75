//! Job of a fio file: the options that it knows, and the workload and load that they make.

use super::{INTERVAL_S, RUNTIME_DEFAULT_S, Refusal, Section, value};
use crate::{Access, Gaps, Measure, SizeShare, Workload};

/// Sizes that a range may be made of.
const RANGE_SIZES_MAX: u32 = 256;

/// Settings that change nothing of what a drive is asked, or that the driver decides.
const PASSED_OVER: &[&str] = &[
    "allow_file_create",
    "allow_mounted_write",
    "bwavgtime",
    "clocksource",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_on_open",
    "create_only",
    "create_serialize",
    "description",
    "direct",
    "directory",
    "disable_bw",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "error_dump",
    "eta",
    "eta-newline",
    "fallocate",
    "filename",
    "fixedbufs",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "hipri",
    "invalidate",
    "ioengine",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iopsavgtime",
    "lat_percentiles",
    "clat_percentiles",
    "slat_percentiles",
    "log_avg_msec",
    "log_compression",
    "log_hist_msec",
    "log_hist_coarseness",
    "log_max_value",
    "log_offset",
    "log_unix_epoch",
    "loops",
    "minimal",
    "name",
    "nice",
    "norandommap",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "output",
    "output-format",
    "overwrite",
    "percentile_list",
    "per_job_logs",
    "prio",
    "prioclass",
    "random_generator",
    "randrepeat",
    "refill_buffers",
    "registerfiles",
    "runstatus",
    "scramble_buffers",
    "significant_figures",
    "softrandommap",
    "sqthread_poll",
    "status-interval",
    "terse-version",
    "thread",
    "time_based",
    "unified_rw_reporting",
    "unit_base",
    "unlink",
    "write_bw_log",
    "write_hist_log",
    "write_iops_log",
    "write_lat_log",
    "zero_buffers",
    "randseed",
    "allrandrepeat",
];

/// Settings that change what a drive is asked in a way that is not supported here, and why.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["fsync", "fdatasync", "sync", "sync_file_range", "end_fsync", "write_barrier"],
        "workloads have no flushes",
    ),
    (
        &["thinktime", "thinktime_spin", "thinktime_blocks", "flow", "startdelay"],
        "pauses of a job are not supported; rate_iops with rate_process=poisson is",
    ),
    (
        &["verify", "do_verify", "verify_pattern", "verify_backlog"],
        "contents are not checked; `floatgate check` checks those of served drives",
    ),
    (
        &["latency_target", "latency_window", "latency_percentile", "latency_run"],
        "a load that looks for its own depth; a protocol's curve finds latency against load",
    ),
    (&["read_iolog", "replay_redirect"], "traces are replayed with `floatgate run --trace FILE`"),
    (&["zonemode", "zonesize", "zonerange", "zoneskip"], "zones are not supported"),
    (&["io_size", "number_ios", "io_limit"], "a load ends after its time: give runtime"),
    (&["rate_min", "rate_iops_min", "rate_cycle"], "minimum rates are not supported"),
    (&["nrfiles", "filesize", "file_service_type", "opendir"], "there is one target"),
    (&["buffered"], "the page cache is not measured: requests bypass it"),
];

/// Settings of a job as read so far, with fio's defaults for the rest.
#[derive(Clone, Debug)]
pub(super) struct FioJob {
    rw: String,
    read_percent: Option<f64>,
    /// Sizes of reads and of writes with their shares.
    sizes: [Vec<SizeShare>; 2],
    distribution: Option<Access>,
    align_bytes: u32,
    footprint_percent: f64,
    compressible_percent: f64,
    threads: u16,
    queue_per_thread: u16,
    runtime_s: u64,
    ramp_s: u64,
    /// Requests a second of each job, reads and writes.
    rate_iops: Option<[f64; 2]>,
    /// Bytes a second of each job, reads and writes.
    rate_bytes: Option<[f64; 2]>,
    gaps: Gaps,
    /// True if it begins when the one before has ended.
    pub(super) waits: bool,
}

impl Default for FioJob {
    /// Returns the defaults of fio.
    fn default() -> Self {
        let one = vec![SizeShare { bytes: 4096, percent: 100.0 }];
        Self {
            rw: "read".into(),
            read_percent: None,
            sizes: [one.clone(), one],
            distribution: None,
            align_bytes: 0,
            footprint_percent: 100.0,
            compressible_percent: 0.0,
            threads: 1,
            queue_per_thread: 1,
            runtime_s: RUNTIME_DEFAULT_S,
            ramp_s: 0,
            rate_iops: None,
            rate_bytes: None,
            gaps: Gaps::Constant,
            waits: false,
        }
    }
}

impl FioJob {
    /// Reads the job of `section`; differences from fio are added to `notes`.
    pub(super) fn read(section: &Section, notes: &mut Vec<String>) -> Result<Self, Refusal> {
        let mut job = Self::default();
        for setting in &section.settings {
            let (key, value) = (setting.key.as_str(), setting.value.as_str());
            let told = job.take(key, value, notes);
            told.map_err(|text| (setting.line, format!("{key}: {text}")))?;
        }
        job.check().map_err(|text| (section.line, format!("[{}]: {text}", section.name)))?;
        if !section.settings.iter().any(|setting| setting.key == "runtime") {
            notes.push(format!(
                "[{}] has no runtime: measured for {RUNTIME_DEFAULT_S} s",
                section.name
            ));
        }
        Ok(job)
    }

    /// The workload, named `name`.
    pub(super) fn workload(&self, name: &str, file: &str) -> Workload {
        let read_percent = self.read_share();
        let of_writes = read_percent <= 0.0;
        Workload {
            schema: Workload::SCHEMA,
            name: name.to_owned(),
            title: name.to_owned(),
            description: format!("As the job file {file} asks for it."),
            source: format!("imported from {file}, a job file of fio"),
            read_percent,
            access: self.access(),
            sizes: self.sizes[usize::from(of_writes)].clone(),
            align_bytes: self.align_bytes,
            footprint_percent: self.footprint_percent,
            compressible_percent: self.compressible_percent,
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
            queue_per_thread: vec![self.queue_per_thread],
            duration_s: self.runtime_s.max(INTERVAL_S),
            ramp_s: self.ramp_s,
            interval_s: INTERVAL_S,
            rate_iops: self.rate(),
            gaps: self.gaps,
            matrix: None,
            replay: None,
        }
    }

    pub(super) fn take(
        &mut self,
        key: &str,
        value: &str,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        if PASSED_OVER.contains(&key) {
            return Ok(());
        }
        if let Some((_, why)) = REFUSED.iter().find(|(keys, _)| keys.contains(&key)) {
            return if value::is_on(value) { Err((*why).to_owned()) } else { Ok(()) };
        }
        match key {
            "rw" | "readwrite" => value.clone_into(&mut self.rw),
            "rwmixread" => self.read_percent = Some(value::number(value)?),
            "rwmixwrite" => self.read_percent = Some(100.0 - value::number(value)?),
            "bs" | "blocksize" => self.sizes = both(value, one_size)?,
            "bsrange" | "blocksize_range" => self.sizes = both(value, range)?,
            "bssplit" => self.sizes = both(value, split)?,
            "bs_unaligned" | "blocksize_unaligned" if !value::is_on(value) => {}
            "blockalign" | "ba" => self.align_bytes = value::transfer(first(value))?,
            "random_distribution" => self.distribution = Some(distribution(value)?),
            "percentage_random" => self.check_all_random(value)?,
            "size" => self.footprint(value, notes)?,
            "offset" | "offset_increment" => {
                none(value, "a load begins at the start of the drive")?;
            }
            "buffer_compress_percentage" => self.compressible_percent = value::number(value)?,
            "iodepth" => self.queue_per_thread = value::count(value)?,
            "numjobs" => self.threads = value::count(value)?,
            "runtime" => self.runtime_s = value::seconds(value)?,
            "ramp_time" => self.ramp_s = value::seconds(value)?,
            "rate_iops" => self.rate_iops = Some(pair(value, value::bytes)?),
            "rate" => self.rate_bytes = Some(pair(value, value::bytes)?),
            "rate_process" => self.gaps = gaps(value)?,
            "kb_base" if value == "1024" => {}
            "stonewall" | "wait_for_previous" => self.waits = value::is_on(value),
            _ => return Err("is not known here; leave it out if it changes nothing".into()),
        }
        Ok(())
    }

    /// Shares of the whole are the footprint; a size in bytes is that of the target.
    fn footprint(&mut self, text: &str, notes: &mut Vec<String>) -> Result<(), String> {
        if text.ends_with('%') {
            self.footprint_percent = value::number(text)?;
            return Ok(());
        }
        value::bytes(text)?;
        notes.push(format!(
            "size={text} is ignored: all of the target is addressed; give a file that size with \
             --size, or write a share such as size=10%"
        ));
        Ok(())
    }

    fn check_all_random(&self, text: &str) -> Result<(), String> {
        let percent = value::number(first(text))?;
        let is_random = self.rw.starts_with("rand");
        if (percent - if is_random { 100.0 } else { 0.0 }).abs() < f64::EPSILON {
            return Ok(());
        }
        Err("a load is random or sequential: only 0 and 100 are supported".into())
    }

    /// Share of requests that read, in percent.
    fn read_share(&self) -> f64 {
        match self.rw.as_str() {
            "read" | "randread" => 100.0,
            "write" | "randwrite" => 0.0,
            _ => self.read_percent.unwrap_or(50.0),
        }
    }

    fn access(&self) -> Access {
        if !self.rw.starts_with("rand") {
            return Access::Sequential;
        }
        self.distribution.unwrap_or(Access::Random)
    }

    fn check(&self) -> Result<(), String> {
        const KNOWN: [&str; 7] =
            ["read", "write", "randread", "randwrite", "rw", "readwrite", "randrw"];
        if !KNOWN.contains(&self.rw.as_str()) {
            let known = KNOWN.join(", ");
            return Err(format!("rw={} is not supported, only {known}", self.rw));
        }
        let read = self.read_share();
        if read > 0.0 && read < 100.0 {
            if self.sizes[0] != self.sizes[1] {
                return Err("reads and writes of different sizes are not supported".into());
            }
            if let Some([reads, writes]) = self.rate_iops.or(self.rate_bytes) {
                let share = 100.0 * reads / (reads + writes);
                if (share - read).abs() > 1.0 {
                    return Err(format!(
                        "the rates make {share:.0} % reads, the mix {read} %: fio limits each \
                         direction to its own rate, which is not supported"
                    ));
                }
            }
        }
        if self.threads == 0 || self.queue_per_thread == 0 {
            return Err("numjobs and iodepth are at least 1".into());
        }
        Ok(())
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
        let share = if share.is_empty() { None } else { Some(value::number(share)?) };
        shares.push((value::transfer(size)?, share));
    }
    let given: f64 = shares.iter().filter_map(|(_, share)| *share).sum();
    let open = shares.iter().filter(|(_, share)| share.is_none()).count();
    let rest = (100.0 - given) / open.max(1) as f64;
    let sized = shares
        .into_iter()
        .map(|(bytes, share)| SizeShare { bytes, percent: share.unwrap_or(rest) });
    Ok(sized.filter(|size| size.percent > 0.0).collect())
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

/// Refuses what is not zero, with the reason.
fn none(text: &str, why: &str) -> Result<(), String> {
    if text.trim_end_matches('%') == "0" || value::bytes(text) == Ok(0) {
        return Ok(());
    }
    Err(why.to_owned())
}
