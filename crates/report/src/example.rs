//! Made-up runs for tests, shaped like an ioDrive Duo: burst, cliff, settled rate, late spikes.

use std::sync::LazyLock;

use blockio::Rng;
use results::sweep::{Dimension, Point, Sweep};
use results::{
    AskedRate, Environment, Figure, Interval, Latencies, NandWrites, PlatformRow, RateLimit, Run,
    Sample, SheetRow, Steady, Step, StepKind, Summary, Target, TargetKind, Warning, WarningKind,
};

/// Parameters in which made-up runs differ.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Shape<'a> {
    pub(crate) format: &'a str,
    pub(crate) settled_iops: f64,
    pub(crate) cliff_minute: u32,
    pub(crate) amplification: f64,
    pub(crate) seed: u64,
}

pub(crate) const STOCK: Shape<'static> = Shape {
    format: "stock",
    settled_iops: 42_600.0,
    cliff_minute: 18,
    amplification: 4.1,
    seed: 1,
};
pub(crate) const FAST: Shape<'static> = Shape {
    format: "high-performance",
    settled_iops: 91_000.0,
    cliff_minute: 31,
    amplification: 1.9,
    seed: 1,
};

/// Threads and queue of every load of a sweep.
const GRID: [(u16, u16); 16] = {
    let powers = [2, 4, 8, 16];
    let mut grid = [(0, 0); 16];
    let mut at = 0;
    while at < 16 {
        grid[at] = (powers[at / 4], powers[at % 4]);
        at += 1;
    }
    grid
};

/// A sweep of a modelled Duo over `dimensions`.
pub(crate) fn sweep(dimensions: Vec<Dimension>, points: Vec<Point>) -> Sweep {
    Sweep {
        schema: Sweep::SCHEMA,
        id: "2026-duo-sweep".into(),
        started_at: String::new(),
        model_version: 1,
        seed: 1,
        drive: "duo".into(),
        title: "Duo".into(),
        unvalidated: false,
        format: "stock".into(),
        host: "linux".into(),
        time_lapse: 32,
        workload: "4k-rand-write".into(),
        threads: 16,
        queue_per_thread: 16,
        repeat: 1,
        load_gb_per_day: None,
        price: None,
        dimensions,
        points,
    }
}

/// A whole review: both formats, four suites.
pub(crate) fn review_of_two() -> Vec<Run> {
    [STOCK, FAST].map(run).to_vec()
}

/// `runs` as those of drives that go by the names of their formats.
pub(crate) fn as_drives(mut runs: Vec<Run>) -> Vec<Run> {
    for run in &mut runs {
        let format = std::mem::take(&mut run.target.format);
        run.target.name.clone_from(&format);
        run.target.title = format;
    }
    runs
}

/// One run through four suites; those of the usual shapes are made once.
pub(crate) fn run(shape: Shape<'_>) -> Run {
    static MADE: LazyLock<[Run; 2]> = LazyLock::new(|| [STOCK, FAST].map(made));
    let known = [STOCK, FAST].iter().position(|it| *it == shape);
    known.map_or_else(|| made(shape), |index| MADE[index].clone())
}

fn made(shape: Shape<'_>) -> Run {
    let suites = [
        ("4k", "4K random", "4k-rand-write", 0, 1.0),
        ("8k-70-30", "8K 70/30", "8k-70-30", 70, 1.3),
        ("file-server", "File server", "file-server", 80, 0.9),
        ("web-server", "Web server", "web-server-precondition-100w", 0, 0.3),
    ];
    let mut steps = Vec::new();
    for (index, (name, title, workload, read, factor)) in suites.into_iter().enumerate() {
        let rng = Rng::new(shape.seed).split(shape.format).split_index(index as u64);
        let mut suite = Making {
            name,
            title,
            shape: Shape { settled_iops: shape.settled_iops * factor, ..shape },
            rng,
        };
        steps.push(suite.purge());
        steps.push(suite.precondition(workload, read));
        if index == 0 {
            steps.push(suite.measure("4k-rand-write", (16, 16), 0));
            steps.push(suite.measure("4k-rand-read", (16, 16), 100));
            continue;
        }
        let (workload, read) = if index == 3 { ("web-server", 100) } else { (workload, read) };
        for (threads, queue) in GRID {
            steps.push(suite.measure(workload, (threads, queue), read));
        }
    }
    Run {
        schema: Run::SCHEMA,
        id: format!("2026-11-21T101503Z-iodrive-duo-{}", shape.format),
        started_at: "2026-11-21T10:15:03Z".into(),
        floatgate_version: "0.1.0".into(),
        model_version: Some(1),
        seed: shape.seed,
        protocol: "enterprise".into(),
        protocol_title: "Enterprise steady state".into(),
        target: target(shape),
        environment: Environment {
            sheet: [
                ("Host driver", "VSL 3.1.1 on CentOS 6.2 (modelled)"),
                ("Processor", "2 x Xeon X5650, 2.66 GHz"),
            ]
            .map(|(name, value)| PlatformRow { name: name.into(), value: value.into() })
            .to_vec(),
            imported_from: None,
        },
        steps_planned: u32::try_from(steps.len()).unwrap(),
        steps,
        warnings: vec![Warning {
            kind: WarningKind::Scale,
            step: String::new(),
            text: "ran at 1/32 of its capacity for 1/32 of the time".into(),
            remedy: "use --full-scale for the whole drive".into(),
        }],
        published: figures(shape),
        published_elsewhere: Vec::new(),
    }
}

fn target(shape: Shape<'_>) -> Target {
    let rows = [
        (
            "Capacity",
            "User",
            if shape.format == "stock" { "640 GB" } else { "512 GB" },
            "published: review",
        ),
        ("Capacity", "Raw", "800 GB", "derived: geometry"),
        ("Capacity", "Over-provisioning", "25 %", "derived: (raw − user) ÷ user"),
        ("NAND", "Kind", "MLC, 2 bits a cell", "published: data sheet"),
        ("NAND", "Read time tR", "50 us", "estimated: from its contemporaries"),
        ("NAND", "Program time tPROG", "900 us", "estimated: fitted"),
        ("NAND", "Erase time tBERS", "3 ms", "estimated: fitted"),
        ("Controller", "Modules", "2, one FPGA each", "published: review"),
        ("Controller", "Parity", "7+1 Flashback", "published: review"),
        ("Interface", "PCIe", "2.0 x8", "published: review"),
    ];
    let row = |(group, name, value, source): (&str, &str, &str, &str)| SheetRow {
        group: group.into(),
        name: name.into(),
        value: value.into(),
        source: source.into(),
    };
    Target {
        name: "iodrive-duo".into(),
        title: "Fusion-io ioDrive Duo 640 GB (MLC)".into(),
        format: shape.format.into(),
        host: "linux".into(),
        user_capacity_bytes: 640_000_000_000,
        raw_capacity_bytes: Some(800_000_000_000),
        time_lapse: 32,
        sheet: rows.map(row).to_vec(),
        ..Target::of_kind(TargetKind::Model)
    }
}

fn figures(shape: Shape<'_>) -> Vec<Figure> {
    let figure =
        |id: &str, workload: &str, phase: &str, metric: &str, values: (f64, f64), measured| {
            Figure {
                id: id.into(),
                document: "ioDrive Duo review".into(),
                mode: shape.format.into(),
                host: "linux".into(),
                workload: workload.into(),
                threads: "16".into(),
                queue_per_thread: "16".into(),
                phase: phase.into(),
                metric: metric.into(),
                value_low: values.0,
                value_high: values.1,
                measured,
                note: String::new(),
            }
        };
    let settled = shape.settled_iops;
    vec![
        figure("A083", "4k-rand-read", "primary", "iops", (140_230.0, 140_230.0), Some(139_800.0)),
        figure("A084", "4k-rand-write", "primary", "iops", (42_644.0, 42_644.0), Some(settled)),
        figure("A116", "4k-rand-write", "burst", "iops", (257_000.0, 257_000.0), Some(256_100.0)),
        figure(
            "A117",
            "4k-rand-write",
            "precondition-end",
            "iops",
            (41_000.0, 42_000.0),
            Some(settled),
        ),
        figure("A066", "iometer-4k-rand-write", "burst", "iops", (224_000.0, 224_000.0), None),
    ]
}

/// A suite in the making.
struct Making<'a> {
    name: &'a str,
    title: &'a str,
    shape: Shape<'a>,
    rng: Rng,
}

impl Making<'_> {
    fn step(&self, id: &str, kind: StepKind, workload: &str, load: (u16, u16)) -> Step {
        Step {
            application: None,
            written: None,
            counted_s: None,
            spread: None,
            submission: None,
            lateness: None,
            completion: None,
            id: format!("{}/{id}", self.name),
            kind,
            suite: self.name.into(),
            suite_title: self.title.into(),
            workload: workload.into(),
            compressible_percent: 0.0,
            footprint_percent: None,
            threads: load.0,
            queue_per_thread: load.1,
            rate: None,
            round: None,
            tracked: None,
            cell: None,
            response: None,
            duration_s: 0.0,
            interval_s: 60.0,
            how: format!("{id} in virtual time"),
            summary: None,
            devices: Vec::new(),
            die_failures: None,
            sampling: None,
            settled: None,
            steady: None,
            samples: Vec::new(),
            read_bins: Vec::new(),
            write_bins: Vec::new(),
        }
    }

    fn purge(&self) -> Step {
        self.step("purge", StepKind::Purge, "", (0, 0))
    }

    fn precondition(&mut self, workload: &str, read_percent: u64) -> Step {
        let mut step = self.step("precondition", StepKind::Precondition, workload, (16, 16));
        let intervals: Vec<Interval> = (1..=360).map(|at| self.minute(at, read_percent)).collect();
        step.duration_s = 21_600.0;
        step.settled = results::steady::last_window(&intervals, 1800.0);
        fill(&mut step, &intervals);
        step.steady = Some(Steady::judge(&step.samples, 1800.0));
        step
    }

    fn measure(&mut self, workload: &str, load: (u16, u16), read_percent: u64) -> Step {
        let id = format!("measure/{workload}/T{}Q{}", load.0, load.1);
        let mut step = self.step(&id, StepKind::Measure, workload, load);
        let outstanding = f64::from(load.0) * f64::from(load.1);
        let ceiling = if read_percent == 100 { 140_000.0 } else { self.shape.settled_iops };
        let iops = ceiling * outstanding / (outstanding + 24.0);
        let intervals: Vec<Interval> =
            (1..=5).map(|at| self.interval(at, iops, outstanding, read_percent)).collect();
        step.duration_s = 300.0;
        fill(&mut step, &intervals);
        step
    }

    fn minute(&mut self, at: u32, read_percent: u64) -> Interval {
        let since = f64::from(at) - f64::from(self.shape.cliff_minute);
        let settled = self.shape.settled_iops;
        let fallen = 1.0 / (1.0 + (since / 2.0).exp()) * 0.8 + 0.2 * (-since.max(0.0) / 15.0).exp();
        let iops = settled + (257_000.0 - settled) * fallen;
        self.interval(at, iops, 256.0, read_percent)
    }

    fn interval(&mut self, at: u32, iops: f64, outstanding: f64, read_percent: u64) -> Interval {
        let iops = iops * (0.985 + 0.03 * self.rng.unit_f64());
        let mean_ns = outstanding / iops * 1e9;
        let requests = whole(iops * 60.0);
        let reads = requests * read_percent / 100;
        let writes = requests - reads;
        let mut interval =
            Interval { at_s: f64::from(at) * 60.0, span_s: 60.0, ..Interval::default() };
        self.spread(&mut interval.read, reads, mean_ns * 0.8);
        self.spread(&mut interval.write, writes, mean_ns);
        (interval.read_bytes, interval.write_bytes) = (reads * 4096, writes * 4096);
        let sent = writes * 4096;
        let settled = iops < 200_000.0;
        let relocated = if settled { (self.shape.amplification - 1.14) * sent as f64 } else { 0.0 };
        interval.nand = Some(NandWrites {
            host_sent_bytes: sent,
            host_bytes: sent,
            relocation_bytes: whole(relocated),
            wear_bytes: sent / 100,
            parity_bytes: sent / 7,
            metadata_bytes: sent / 200,
            erase_count: sent / 1_000_000_000,
        });
        interval.superblocks_free_share =
            Some(if settled { 0.03 } else { (0.4 - f64::from(at) * 0.02).max(0.03) });
        interval
    }

    /// A body around `mean_ns` and a long tail with a rare spike.
    fn spread(&mut self, latencies: &mut Latencies, count: u64, mean_ns: f64) {
        if count == 0 {
            return;
        }
        let shares =
            [(0.3, 0.4), (0.75, 0.3), (1.2, 0.2), (2.5, 0.08), (6.0, 0.019), (14.0, 0.0009)];
        for (factor, share) in shares {
            latencies.record_many(whole(mean_ns * factor), whole(count as f64 * share));
        }
        let spike = if self.rng.below(12) == 0 { 150.0 } else { 20.0 + 20.0 * self.rng.unit_f64() };
        latencies.record(whole(mean_ns * spike));
    }
}

fn fill(step: &mut Step, intervals: &[Interval]) {
    step.summary = Some(Summary::of(intervals));
    step.samples = intervals.iter().map(Sample::of).collect();
    let (mut read, mut write) = (Latencies::default(), Latencies::default());
    for interval in intervals {
        read.merge(&interval.read);
        write.merge(&interval.write);
    }
    step.read_bins = read.bins();
    step.write_bins = write.bins();
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up, positive")]
fn whole(value: f64) -> u64 {
    value.round().max(0.0) as u64
}

/// The last load of the 8K suite of `run` at `percent` of its rate.
pub(crate) fn rated(run: &Run, percent: u32, limit: Option<RateLimit>) -> Step {
    let id = "8k-70-30/8k-70-30/T16Q16";
    let free = run.steps.iter().find(|step| step.workload == "8k-70-30" && step.threads == 16);
    let free = free.filter(|free| free.summary.is_some()).expect("it was measured");
    let (summary, share) = (free.summary.clone().expect("it was"), f64::from(percent) / 100.0);
    let asked = summary.iops * share;
    Step {
        id: format!("{id}-{percent}percent"),
        kind: StepKind::Measure,
        rate: Some(AskedRate { iops: asked, percent: Some(percent.into()), limit }),
        response: Some(summary.latency),
        summary: Some(Summary { iops: asked.min(summary.iops), ..summary }),
        devices: Vec::new(),
        settled: None,
        steady: None,
        ..free.clone()
    }
}
