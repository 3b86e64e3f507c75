//! `floatgate trace`: traces to replay, synthetic or given.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use blockio::{Bytes, Nanos, SECTOR_BYTES};
use lab::library::Library;
use lab::runs::write_text;
use lab::workload::Workload;
use lab::workload::recording::{
    Benchmark, DeviceTrace, FioLogs, Head, RecordingWriter, Tail, read_blkparse, read_fio,
};
use lab::workload::trace::{Beneath, Iolog, SYNTHETIC, Statistics, Trace, TraceShape, synthesise};
use lab::{Error, Kind, replay};
use serde::Serialize;
use tier::{HitRates, Replacement};

use crate::args::{Recording, TraceCommand, TraceImport, TraceMake, TraceShow};
use crate::{Ending, output, setup, table};

/// Complaint about the output of a benchmark.
const NO_RESULT: &str = "no result of sysbench, pgbench or db_bench is in the output";
/// Sectors of a block of a cache.
const BLOCK_SECTORS: u64 = tier::BLOCK_BYTES / SECTOR_BYTES;
/// Transfer sizes that are shown at most.
const SIZES_MAX: usize = 8;

/// Makes a trace, or shows one.
pub(crate) fn trace(command: &TraceCommand) -> Result<Ending> {
    match command {
        TraceCommand::Make(args) => make(args),
        TraceCommand::Import(args) => import(args),
        TraceCommand::Show(args) => show(args),
        TraceCommand::Recording(command) => recording(command),
    }
}

/// Records or replays an application.
pub(crate) fn recording(command: &Recording) -> Result<Ending> {
    match command {
        Recording::Record(args) => super::record::record(args),
        Recording::Replay(args) => super::replay::replay(args),
    }
}

/// Writes the trace of a workload as a fio iolog that is marked as synthetic.
fn make(args: &TraceMake) -> Result<Ending> {
    setup::check_output(&args.file, args.overwrite)?;
    setup::check_writable(&args.file)?;
    let workload = Library::of_user().find::<Workload>(&args.workload)?.value;
    let shape = workload.trace.clone().ok_or_else(|| {
        Error::new(Kind::Input, format!("no trace can be made of `{}`", workload.name))
            .hint("its file lacks [trace]: `floatgate workloads show mail-server --toml` has one")
    })?;
    let shape = TraceShape { requests: args.requests.unwrap_or(shape.requests), ..shape };
    let trace = synthesise(&workload, &shape, args.seed).map_err(|source| {
        Error::new(Kind::Input, "making a trace").source(source).hint("increase its space_gb")
    })?;
    let requests = trace.requests().iter().map(|it| (it.at, it.op, it.lba, it.sectors));
    write_text(&args.file, &Iolog { file: SYNTHETIC, is_timed: true }.text(requests))?;
    output::talk(&shown(&trace));
    output::data(&args.file.display().to_string())?;
    Ok(Ending::Done)
}

/// Writes what blktrace or fio logged of a device as a recording.
fn import(args: &TraceImport) -> Result<Ending> {
    setup::check_new(&args.out)?;
    setup::check_writable(&args.out)?;
    let trace = device_trace(args)?;
    let used = Bytes(trace.end_lba() * SECTOR_BYTES);
    let size = args.size.unwrap_or(used);
    if size < used {
        let text = format!("the trace reaches {used}, beyond a device of {size}");
        return Err(Error::new(Kind::Input, text)
            .hint("give --size the size of the device")
            .into());
    }
    let benchmark = args.output.as_deref().map(setup::read_text).transpose()?;
    let benchmark = benchmark.map(|text| Benchmark::parse(&text).context(NO_RESULT)).transpose()?;
    let end = trace.requests.iter().map(|it| it.completed_at).max().unwrap_or_default();
    let counted = benchmark.as_ref().map_or(end, Benchmark::span);
    let tail = Tail {
        command: format!("{}, imported", names(&args.files)),
        measured_from: end.saturating_sub(counted),
        measured_to: end,
        benchmark,
    };
    let head = Head {
        schema: Head::SCHEMA,
        device: format!("device {}", trace.device),
        size_bytes: size.0,
        model: None,
        machine: args.machine.clone(),
        began_unix_ns: 0,
        front_end_ns: None,
        emulation_slowdown: None,
    };
    let mut writer = RecordingWriter::new(Vec::new(), &head)?;
    writer.put(&trace.requests)?;
    if trace.incomplete > 0 {
        writer.put_lost(trace.incomplete)?;
    }
    let bytes = writer.finish(&tail)?;
    fs::write(&args.out, bytes).with_context(|| format!("writing {}", args.out.display()))?;
    output::talk(&format!(
        "{} requests of device {}, {} without a completion",
        trace.requests.len(),
        trace.device,
        trace.incomplete
    ));
    output::data(&args.out.display().to_string())?;
    Ok(Ending::Done)
}

/// The requests of the files that were named.
fn device_trace(args: &TraceImport) -> Result<DeviceTrace> {
    let refused = |text: String, hint: &str| {
        Error::new(Kind::Input, format!("{}: {text}", names(&args.files))).hint(hint.to_owned())
    };
    if args.latency_log.is_empty() {
        let hint = "give the default output of blkparse for one device; or iologs of fio, with \
                    --latency-log";
        let [file] = &args.files[..] else {
            return Err(refused(format!("{} files", args.files.len()), hint).into());
        };
        return Ok(read_blkparse(&setup::read_text(file)?).map_err(|text| refused(text, hint))?);
    }
    let hint = "let fio log with write_iolog, write_lat_log and log_offset=1, and give both logs \
                of each job, in the same order";
    if args.files.len() != args.latency_log.len() {
        let text = format!(
            "iologs of {} jobs, and {} latency logs",
            args.files.len(),
            args.latency_log.len()
        );
        return Err(refused(text, hint).into());
    }
    let texts = |paths: &[PathBuf]| {
        paths.iter().map(|it| setup::read_text(it)).collect::<Result<Vec<_>, Error>>()
    };
    let (iologs, logs) = (texts(&args.files)?, texts(&args.latency_log)?);
    let jobs: Vec<FioLogs<'_>> = iologs
        .iter()
        .zip(&logs)
        .map(|(iolog, latency_log)| FioLogs { iolog, latency_log })
        .collect();
    Ok(read_fio(&jobs).map_err(|text| refused(text, hint))?)
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// Reads a trace and says what it asks for.
fn show(args: &TraceShow) -> Result<Ending> {
    let trace = replay::read(&args.file)?;
    let caches = hit_rates(&trace, &args.cache)?;
    if args.json {
        output::json(&ShownTrace { statistics: trace.statistics(), caches })?;
    } else if caches.is_empty() {
        output::data(&shown(&trace))?;
    } else {
        output::data(&format!("{}\n\n{}", shown(&trace), shown_caches(&caches)))?;
    }
    Ok(Ending::Done)
}

/// A trace in JSON.
#[derive(Serialize)]
struct ShownTrace {
    #[serde(flatten)]
    statistics: Statistics,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    caches: Vec<CacheHits>,
}

/// Hit rates of read caches of one size, as shares of the blocks of 4 KiB accessed.
#[derive(Serialize)]
struct CacheHits {
    cache_bytes: u64,
    hit_rates: BTreeMap<&'static str, f64>,
    /// Belady's: no cache that takes in what it misses has more hits.
    bound: f64,
}

/// Hit rates over the blocks of a trace, reads and writes, of caches of these sizes.
fn hit_rates(trace: &Trace, sizes: &[Bytes]) -> Result<Vec<CacheHits>> {
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    // Numbers in the order of first access: a trace may reach further than 32 bits count.
    let mut numbers = BTreeMap::new();
    let mut accesses = Vec::new();
    for request in trace.requests() {
        let end = (request.lba + u64::from(request.sectors)).div_ceil(BLOCK_SECTORS);
        for block in request.lba / BLOCK_SECTORS..end {
            let next = u32::try_from(numbers.len()).context("more than 2^32 blocks")?;
            accesses.push(*numbers.entry(block).or_insert(next));
        }
    }
    let of_size = |size: &Bytes| {
        let blocks = u32::try_from(size.0 / tier::BLOCK_BYTES).map_err(|_| {
            Error::new(Kind::Input, format!("a cache of {size} has 2^32 blocks of 4 KiB or more"))
                .hint("give a size below 16 TiB")
        })?;
        let HitRates { of, bound, .. } = HitRates::new(&accesses, blocks);
        let hit_rates = of.into_iter().map(|(it, rate)| (it.name(), rate)).collect();
        Ok(CacheHits { cache_bytes: size.0, hit_rates, bound })
    };
    sizes.iter().map(of_size).collect()
}

/// One row for each size: the hit rate of each policy, and the bound.
fn shown_caches(caches: &[CacheHits]) -> String {
    let names = Replacement::ALL.map(Replacement::name);
    let head = ["hits in a cache of"].into_iter().chain(names).chain(["bound"]);
    let mut rows = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    let percent = |rate: f64| format!("{:.1} %", rate * 100.0);
    rows.extend(caches.iter().map(|cache| {
        // Some policies need more than one block.
        let rate = |name| cache.hit_rates.get(name).map_or("-".into(), |rate| percent(*rate));
        let size = Bytes(cache.cache_bytes).to_string();
        [size].into_iter().chain(names.map(rate)).chain([percent(cache.bound)]).collect()
    }));
    table::columns(&rows)
}

fn shown(trace: &Trace) -> String {
    let statistics = trace.statistics();
    let rows: Vec<[String; 2]> = rows(trace, &statistics)
        .into_iter()
        .map(|(name, value)| [name.to_owned(), value])
        .collect();
    let sizes = statistics.sizes.iter().take(SIZES_MAX);
    let sizes: Vec<[String; 2]> = sizes
        .map(|size| [Bytes(size.bytes).to_string(), format!("{:.1} %", size.percent)])
        .collect();
    let more = match statistics.sizes.len().saturating_sub(SIZES_MAX) {
        0 => String::new(),
        more => format!("\nand {more} more sizes"),
    };
    format!("{}\n\n{}{more}", table::columns(&rows), table::columns(&sizes))
}

fn rows(trace: &Trace, statistics: &Statistics) -> Vec<(&'static str, String)> {
    let source = if trace.is_synthetic() { "synthetic" } else { "recorded" };
    let skipped = trace.skipped();
    let broken = match &skipped.first_broken {
        Some(first) => {
            format!("{}, the first is line {}: {}", skipped.broken, first.line, first.text)
        }
        None => "none".into(),
    };
    let times = match (statistics.iops, statistics.burstiness) {
        (Some(iops), Some(burstiness)) => format!(
            "{}, {iops:.1} requests a second, burstiness {burstiness:.2}",
            Nanos::from_secs_f64(statistics.span_s)
        ),
        _ => "none: it has an order only".into(),
    };
    let mut rows = vec![
        ("format", format!("{}, {source}", trace.format())),
        ("requests", statistics.requests.to_string()),
        ("times", times),
        ("reads", format!("{:.1} %", statistics.read_percent)),
        ("mean size", format!("{:.0} bytes", statistics.mean_bytes)),
        ("sequential", format!("{:.1} %", statistics.sequential_percent)),
        ("address space", Bytes(statistics.space_bytes).to_string()),
        (
            "regions accessed",
            format!(
                "{} of 1 MiB; the most accessed tenth of them takes {:.1} % of the requests",
                statistics.touched_bytes >> 20,
                statistics.hottest_tenth_percent
            ),
        ),
        ("invalid lines", broken),
        ("other requests", skipped.other.to_string()),
        ("out of order", skipped.disordered.to_string()),
        ("widened to whole sectors", skipped.widened.to_string()),
    ];
    rows.extend(skipped.beneath.iter().map(|it| {
        let Beneath { upper, lower } = it;
        let text = format!(
            "{lower} lies beneath {upper}: each request is there twice, trace one of them \
             (blktrace -d)"
        );
        ("counted twice", text)
    }));
    rows
}
