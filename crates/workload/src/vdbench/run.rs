//! Runs of a parameter file: each combination of a run with its workload, and its lists.

use super::Refusal;
use super::definition::{Definition, Parameter};
use crate::fio::{free, slug};
use crate::{Access, Gaps, Measure, SizeShare, Workload, catalogue};

/// Threads of a storage definition where nothing is said.
const THREADS_DEFAULT: f64 = 8.0;
/// Seconds of a run where nothing is said.
const ELAPSED_DEFAULT_S: f64 = 30.0;
/// Shares of the highest rate that a curve measures where nothing is said, in percent.
const CURVE_DEFAULT: [f64; 6] = [10.0, 50.0, 70.0, 80.0, 90.0, 100.0];

/// Parameters that change nothing of the requests of a load.
const WITHOUT_EFFECT: &[&str] = &[
    "abort_failed_skew",
    "concatenatesds",
    "create_anchors",
    "data_errors",
    "debug",
    "endcmd",
    "force_error_after",
    "hd",
    "histogram",
    "host",
    "jvms",
    "lun",
    "messagescan",
    "monitor",
    "pattern",
    "report",
    "report_run_totals",
    "shell",
    "showlba",
    "startcmd",
    "swat",
    "system",
    "timeout",
    "unix2windows",
    "user",
    "vdbench",
];

/// Parameters that are carried out.
const CARRIED_OUT: &[&str] = &[
    "align",
    "compratio",
    "curve",
    "distribution",
    "elapsed",
    "forrdpct",
    "forseekpct",
    "forthreads",
    "forxfersize",
    "interval",
    "iorate",
    "openflags",
    "range",
    "rdpct",
    "sd",
    "seekpct",
    "size",
    "skew",
    "threads",
    "warmup",
    "wd",
    "xfersize",
];

/// Definitions of a file that load no drive.
const FILE_SYSTEMS: &[&str] = &["fsd", "fwd", "fsds", "operations", "anchor"];

/// The definitions of a file, sorted.
#[derive(Debug)]
pub(super) struct Settings {
    storages: Vec<Definition>,
    workloads: Vec<Definition>,
    runs: Vec<Definition>,
    compressible_percent: f64,
}

impl Settings {
    /// Sorts `definitions`; parameters without effect are added to `notes`.
    pub(super) fn of(definitions: &[Definition], notes: &mut Vec<String>) -> Result<Self, Refusal> {
        let of = |kind: &str| definitions.iter().filter(|it| it.kind == kind).cloned().collect();
        let mut settings = Self {
            storages: of("sd"),
            workloads: of("wd"),
            runs: of("rd"),
            compressible_percent: 0.0,
        };
        let mut unused = Vec::new();
        for parameter in definitions.iter().flat_map(|it| &it.parameters) {
            let key = parameter.key.as_str();
            if key == "compratio" {
                settings.compressible_percent = compressible(parameter)?;
            } else if WITHOUT_EFFECT.contains(&key) {
                unused.push(key);
            } else if !CARRIED_OUT.contains(&key) && !is_neutral(parameter) {
                let why = if FILE_SYSTEMS.contains(&key) {
                    "loads of file systems are not supported, only those of sd, wd and rd"
                } else {
                    "is not supported here; leave it out if it changes nothing"
                };
                return Err(parameter.refused(why));
            }
        }
        unused.sort_unstable();
        unused.dedup();
        if !unused.is_empty() {
            notes.push(format!("without effect on the load: {}", unused.join(", ")));
        }
        Ok(settings)
    }

    /// The runs, one for each combination of their lists.
    pub(super) fn runs(&self, notes: &mut Vec<String>) -> Result<Vec<Run>, Refusal> {
        let mut runs = Vec::new();
        for rd in &self.runs {
            runs.extend(self.sources(rd, notes)?.runs(self.compressible_percent)?);
        }
        Ok(runs)
    }

    /// The workload and the storage of `rd`.
    fn sources<'a>(
        &'a self,
        rd: &'a Definition,
        notes: &mut Vec<String>,
    ) -> Result<Sources<'a>, Refusal> {
        let named = rd.get("wd").map_or_else(|| vec!["*".to_owned()], |it| it.values.clone());
        let found = matching(&self.workloads, &named);
        let [wd] = found.as_slice() else {
            let text = format!(
                "rd={} has {} workloads at the same time, and a protocol has one",
                rd.name,
                found.len()
            );
            return Err((rd.line, text));
        };
        let named = wd.get("sd").map_or_else(|| vec!["*".to_owned()], |it| it.values.clone());
        let storages = matching(&self.storages, &named);
        let Some(sd) = storages.first() else {
            return Err((wd.line, format!("wd={}: it has no sd", wd.name)));
        };
        if storages.len() > 1 {
            notes.push(format!(
                "wd={} has {} storage definitions: here one target gets what each of them gets, \
                 and all of a rate",
                wd.name,
                storages.len()
            ));
        }
        if sd.get("size").is_some() {
            notes.push(format!(
                "the size of sd={} is ignored: all of the target is addressed; give a file that \
                 size with --size",
                sd.name
            ));
        }
        Ok(Sources { sd, wd, rd })
    }
}

/// Share by which data of a ratio such as 2 are compressible, in percent.
fn compressible(parameter: &Parameter) -> Result<f64, Refusal> {
    let ratio = parameter.number()?;
    if ratio < 1.0 {
        return Err(parameter.refused("a ratio is at least 1"));
    }
    Ok(100.0 - 100.0 / ratio)
}

/// True if a parameter that is not supported asks for nothing.
fn is_neutral(parameter: &Parameter) -> bool {
    let value = parameter.values.join(",");
    match parameter.key.as_str() {
        "dedupratio" => value == "1",
        "hitarea" => true,
        _ => matches!(value.as_str(), "0" | "no" | "off" | "none"),
    }
}

/// Definitions whose name is one of `names`, which may end with a star.
fn matching<'a>(all: &'a [Definition], names: &[String]) -> Vec<&'a Definition> {
    let is_named = |it: &&Definition| {
        names.iter().any(|name| match name.strip_suffix('*') {
            Some(begin) => it.name.starts_with(begin),
            None => it.name == *name,
        })
    };
    all.iter().filter(is_named).collect()
}

/// Definitions that a run is made of; a parameter of the run counts before one of the workload, and
/// that before one of the storage.
#[derive(Clone, Copy, Debug)]
struct Sources<'a> {
    sd: &'a Definition,
    wd: &'a Definition,
    rd: &'a Definition,
}

impl<'a> Sources<'a> {
    fn get(&self, key: &str) -> Option<&'a Parameter> {
        [self.rd, self.wd, self.sd].into_iter().find_map(|it| it.get(key))
    }

    /// Values of the list `list`, or the one of `key`, or none.
    fn list(&self, list: &str, key: &str) -> Vec<Option<Parameter>> {
        match (self.rd.get(list), self.get(key)) {
            (Some(several), _) => {
                let one = |value: &String| {
                    let values = vec![value.clone()];
                    Some(Parameter { values, ..several.clone() })
                };
                several.values.iter().map(one).collect()
            }
            (None, one) => vec![one.cloned()],
        }
    }

    fn runs(&self, compressible_percent: f64) -> Result<Vec<Run>, Refusal> {
        let mut runs = Vec::new();
        for size in self.list("forxfersize", "xfersize") {
            for read in self.list("forrdpct", "rdpct") {
                for seek in self.list("forseekpct", "seekpct") {
                    for threads in self.list("forthreads", "threads") {
                        let run = self.run((&size, &read, &seek, &threads))?;
                        runs.push(Run { compressible_percent, ..run });
                    }
                }
            }
        }
        Ok(runs)
    }

    fn run(&self, (size, read, seek, threads): Combination<'_>) -> Result<Run, Refusal> {
        let Sources { rd, .. } = *self;
        self.check_flags()?;
        let seconds = |key: &str, default: f64| -> Result<f64, Refusal> {
            self.get(key).map_or(Ok(default), Parameter::number)
        };
        let interval_s = seconds("interval", 1.0)?;
        let elapsed_s = seconds("elapsed", ELAPSED_DEFAULT_S)?;
        let warmup = self.get("warmup").map(Parameter::number).transpose()?;
        let (ramp_s, duration_s) = match warmup {
            Some(warmup_s) => (warmup_s, elapsed_s),
            None => (interval_s, elapsed_s - interval_s),
        };
        let number = |it: &Option<Parameter>, default: f64| {
            it.as_ref().map_or(Ok(default), Parameter::number)
        };
        let (rate_iops, curve) = self.rate()?;
        Ok(Run {
            name: rd.name.clone(),
            line: rd.line,
            sizes: size.as_ref().map_or_else(|| Ok(one_size(4096)), sizes)?,
            read_percent: number(read, 100.0)?,
            access: seek.as_ref().map_or(Ok(Access::Random), access)?,
            threads: whole(number(threads, THREADS_DEFAULT)?),
            align_bytes: self.get("align").map_or(Ok(0), |it| bytes(it, it.value()?))?,
            footprint_percent: self.footprint()?,
            compressible_percent: 0.0,
            interval_s,
            ramp_s,
            duration_s,
            rate_iops,
            curve,
            gaps: self.gaps()?,
        })
    }

    /// Rate in requests a second, and the shares of a curve in percent.
    fn rate(&self) -> Result<(Option<f64>, Option<Vec<f64>>), Refusal> {
        let Some(rate) = self.rd.get("iorate") else {
            return Ok((None, None));
        };
        match rate.value()? {
            "max" => Ok((None, None)),
            "curve" => {
                let percents = self.rd.get("curve").map(Parameter::numbers).transpose()?;
                Ok((None, Some(percents.unwrap_or_else(|| CURVE_DEFAULT.to_vec()))))
            }
            _ => Ok((Some(rate.number()?), None)),
        }
    }

    fn gaps(&self) -> Result<Gaps, Refusal> {
        let Some(given) = self.get("distribution") else { return Ok(Gaps::Exponential) };
        match given.value()?.chars().next() {
            Some('e') => Ok(Gaps::Exponential),
            Some('d') => Ok(Gaps::Constant),
            _ => Err(given.refused("only exponential and deterministic gaps are supported")),
        }
    }

    /// Share of the target that is addressed, which begins at its start.
    fn footprint(&self) -> Result<f64, Refusal> {
        let Some(range) = self.get("range") else { return Ok(100.0) };
        match range.numbers()?.as_slice() {
            [from, to] if *from <= 0.0 => Ok(*to),
            _ => {
                Err(range.refused("a load begins at the start of the drive, as (0,25) in percent"))
            }
        }
    }

    fn check_flags(&self) -> Result<(), Refusal> {
        const DIRECT: [&str; 4] = ["o_direct", "directio", "direct", "none"];
        let flags = self.get("openflags");
        let other = flags.filter(|it| !it.values.iter().all(|it| DIRECT.contains(&it.as_str())));
        let skew = self.wd.get("skew").filter(|it| it.values.join(",") != "100");
        match (other, skew) {
            (Some(flags), _) => Err(flags.refused("workloads have no flushes")),
            (None, Some(skew)) => Err(skew.refused("there is one workload at a time")),
            (None, None) => Ok(()),
        }
    }
}

/// Size, share of reads, order and threads of a run.
type Combination<'a> =
    (&'a Option<Parameter>, &'a Option<Parameter>, &'a Option<Parameter>, &'a Option<Parameter>);

/// One run with one combination.
#[derive(Clone, Debug)]
pub(super) struct Run {
    name: String,
    pub(super) line: u32,
    sizes: Vec<SizeShare>,
    read_percent: f64,
    access: Access,
    threads: u64,
    align_bytes: u32,
    footprint_percent: f64,
    compressible_percent: f64,
    interval_s: f64,
    ramp_s: f64,
    duration_s: f64,
    rate_iops: Option<f64>,
    /// Shares of the highest rate in percent; absent without a curve.
    pub(super) curve: Option<Vec<f64>>,
    gaps: Gaps,
}

impl Run {
    /// The workload, named like no other of `earlier`.
    pub(super) fn workload(&self, protocol: &str, file: &str, earlier: &[Workload]) -> Workload {
        let known = catalogue::workloads();
        let is_built_in = |name: &str| known.iter().any(|it| it.name == name);
        let own = free(&slug(&self.name, "run"), &format!("{protocol}-"), is_built_in);
        let taken = |name: &str| is_built_in(name) || earlier.iter().any(|it| it.name == name);
        let mut names = std::iter::once(own.clone()).chain((2..).map(|it| format!("{own}-{it}")));
        let name = names.find(|name| !taken(name)).expect("some number is free");
        Workload {
            schema: Workload::SCHEMA,
            title: name.clone(),
            name,
            description: format!("As the parameter file {file} asks for it."),
            source: format!("imported from {file}, a parameter file of vdbench"),
            read_percent: self.read_percent,
            access: self.access,
            sizes: self.sizes.clone(),
            align_bytes: self.align_bytes,
            footprint_percent: self.footprint_percent,
            offset_percent: 0.0,
            range: None,
            compressible_percent: self.compressible_percent,
            random_map: false,
            shared_start: false,
            streams: Vec::new(),
            trace: None,
        }
    }

    /// The measurement of the workload named `workload`.
    pub(super) fn measure(&self, workload: &str) -> Measure {
        Measure {
            workload: workload.to_owned(),
            published_as: Vec::new(),
            threads: vec![u16::try_from(self.threads).unwrap_or(u16::MAX)],
            queue_per_thread: vec![1],
            duration_s: whole(self.duration_s),
            ramp_s: whole(self.ramp_s),
            interval_s: whole(self.interval_s),
            rate_iops: self.rate_iops,
            gaps: self.gaps,
            matrix: None,
            replay: None,
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
fn whole(value: f64) -> u64 {
    value.round().max(0.0) as u64
}

fn one_size(bytes: u32) -> Vec<SizeShare> {
    vec![SizeShare { bytes, percent: 100.0 }]
}

/// `4k`, or `(4k,60,8k,40)`: sizes with their shares.
fn sizes(parameter: &Parameter) -> Result<Vec<SizeShare>, Refusal> {
    match parameter.values.as_slice() {
        [one] => Ok(one_size(bytes(parameter, one)?)),
        several if several.len().is_multiple_of(2) => {
            let pair = |pair: &[String]| {
                let percent = pair[1].trim_end_matches('%').parse::<f64>().ok();
                let wrong = || parameter.refused("write sizes with shares, as (4k,60,8k,40)");
                let percent = percent.ok_or_else(wrong)?;
                Ok(SizeShare { bytes: bytes(parameter, &pair[0])?, percent })
            };
            several.chunks(2).map(pair).collect()
        }
        _ => Err(parameter.refused("a range of sizes is not supported, sizes with shares are")),
    }
}

/// A size such as `4k`, in bytes.
fn bytes(parameter: &Parameter, text: &str) -> Result<u32, Refusal> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = ["", "k", "m", "g"].iter().position(|known| *known == unit);
    let found = factor.and_then(|power| {
        let factor = 1024_u32.checked_pow(u32::try_from(power).ok()?)?;
        number.parse::<u32>().ok()?.checked_mul(factor)
    });
    found.ok_or_else(|| parameter.refused(&format!("`{text}` is not a size such as 4k")))
}

/// Order of addresses of a `seekpct`.
fn access(parameter: &Parameter) -> Result<Access, Refusal> {
    match parameter.value()? {
        "random" | "100" => Ok(Access::Random),
        "seq" | "sequential" | "eof" | "0" => Ok(Access::Sequential),
        _ => Err(parameter.refused("a load is random or sequential: only 0 and 100 are supported")),
    }
}
