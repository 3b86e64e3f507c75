//! A small run for tests: a drive with a burst, a cliff and a settled rate.

use crate::{
    Environment, Interval, Latencies, NandWrites, PlatformRow, Run, Sample, Sampling, SheetRow,
    Steady, Step, StepKind, Summary, Target, TargetKind, Warning, WarningKind,
};

/// One minute at `iops` writes (or reads) of 4 KiB, 256 outstanding.
pub(crate) fn minute(at_s: f64, iops: u64, read_percent: u64) -> Interval {
    let mut interval = Interval { at_s, span_s: 60.0, ..Interval::default() };
    let latency_ns = 256_000_000_000 / iops.max(1);
    let reads = iops * 60 * read_percent / 100;
    let writes = iops * 60 - reads;
    // Half of them quicker and half slower: a deviation of half the average.
    for (latencies, count) in [(&mut interval.read, reads), (&mut interval.write, writes)] {
        latencies.record_many(latency_ns / 2, count / 2);
        latencies.record_many(latency_ns / 2 * 3, count - count / 2);
    }
    interval.read_bytes = reads * 4096;
    interval.write_bytes = writes * 4096;
    interval.nand = Some(NandWrites {
        host_sent_bytes: writes * 4096,
        host_bytes: writes * 4096,
        relocation_bytes: writes * 4096 * 2,
        ..NandWrites::default()
    });
    interval.superblocks_free_share = Some(0.07);
    interval
}

/// A step that measured `intervals`; its suite and what it did follow from `id`.
pub(crate) fn step(id: &str, workload: &str, load: (u16, u16), intervals: &[Interval]) -> Step {
    let kind = match id.split('/').nth(1) {
        Some("purge") => StepKind::Purge,
        Some("precondition") => StepKind::Precondition,
        _ => StepKind::Measure,
    };
    let suite = id.split('/').next().unwrap_or_default();
    let samples: Vec<Sample> = intervals.iter().map(Sample::of).collect();
    let judged = kind == StepKind::Precondition;
    let bins = |of: fn(&Interval) -> &Latencies| {
        let mut all = Latencies::default();
        for interval in intervals {
            all.merge(of(interval));
        }
        all.bins()
    };
    Step {
        application: None,
        id: id.into(),
        kind,
        suite: suite.into(),
        suite_title: suite.to_uppercase(),
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
        duration_s: intervals.len() as f64 * 60.0,
        interval_s: 60.0,
        written: None,
        counted_s: None,
        spread: None,
        submission: None,
        lateness: None,
        completion: None,
        how: "made up".into(),
        summary: (!intervals.is_empty()).then(|| Summary::of(intervals)),
        devices: Vec::new(),
        die_failures: None,
        sampling: None,
        settled: judged.then(|| crate::steady::last_window(intervals, 120.0)).flatten(),
        steady: judged.then(|| Steady::judge(&samples, 120.0)),
        samples,
        read_bins: bins(|interval| &interval.read),
        write_bins: bins(|interval| &interval.write),
    }
}

/// Has each load of `run` look like one of which 40 windows of 4,096 requests were simulated.
pub(crate) fn sample(run: &mut Run) {
    for step in &mut run.steps {
        let requests = step.summary.as_ref().map_or(0, |summary| summary.latency.count);
        step.sampling = Some(Sampling {
            precision: 0.01,
            windows: 40,
            requests_measured: 40 * 4096,
            requests_detailed: 80 * 4096,
            requests,
            ..Sampling::default()
        });
    }
}

/// Minutes at each rate of `rates`, `read_percent` of them reads.
pub(crate) fn minutes(rates: &[u64], read_percent: u64) -> Vec<Interval> {
    let rates = rates.iter().zip(1_u32..);
    rates.map(|(rate, n)| minute(f64::from(n) * 60.0, *rate, read_percent)).collect()
}

/// [`run`] with every measurement at another rate.
pub(crate) fn at_rate(iops: u64) -> Run {
    let mut run = run();
    for measured in run.steps.iter_mut().filter(|step| step.kind == StepKind::Measure) {
        let load = (measured.threads, measured.queue_per_thread);
        *measured = step(&measured.id, &measured.workload, load, &minutes(&[iops], 70));
    }
    run
}

/// A drive of 640 GB that bursts at 257K IOPS, settles at 42K, and reads at 140K.
pub(crate) fn run() -> Run {
    let burst_and_settled = [[257_000; 4].as_slice(), &[90_000, 60_000], &[42_000; 34]].concat();
    let mixed = [[120_000, 116_000, 110_000].as_slice(), &[52_000; 37]].concat();
    Run {
        schema: Run::SCHEMA,
        id: "2026-11-21T101503Z-iodrive-duo-stock".into(),
        started_at: "2026-11-21T10:15:03Z".into(),
        floatgate_version: "0.1.0".into(),
        model_version: Some(1),
        seed: 7,
        protocol: "enterprise".into(),
        protocol_title: "Enterprise steady state".into(),
        target: Target {
            name: "iodrive-duo".into(),
            title: "Fusion-io ioDrive Duo 640 GB (MLC)".into(),
            format: "stock".into(),
            host: "linux".into(),
            user_capacity_bytes: 640_000_000_000,
            raw_capacity_bytes: Some(800_000_000_000),
            time_lapse: 32,
            sheet: vec![SheetRow {
                group: "NAND".into(),
                name: "Program time".into(),
                value: "1.3 ms".into(),
                source: "estimated: made up".into(),
            }],
            ..Target::of_kind(TargetKind::Model)
        },
        environment: Environment {
            sheet: vec![PlatformRow { name: "Driver".into(), value: "linux".into() }],
            imported_from: None,
        },
        steps: vec![
            step("4k/purge", "", (0, 0), &[]),
            step("4k/precondition", "4k-rand-write", (16, 16), &minutes(&burst_and_settled, 0)),
            step("4k/measure/write", "4k-rand-write", (16, 16), &minutes(&[42_600; 5], 0)),
            step("4k/measure/read", "4k-rand-read", (16, 16), &minutes(&[140_000; 5], 100)),
            step("8k-70-30/purge", "", (0, 0), &[]),
            step("8k-70-30/precondition", "8k-70-30", (16, 16), &minutes(&mixed, 70)),
            step("8k-70-30/measure/T2Q2", "8k-70-30", (2, 2), &minutes(&[13_000; 5], 70)),
            step("8k-70-30/measure/T16Q16", "8k-70-30", (16, 16), &minutes(&[52_000; 5], 70)),
        ],
        steps_planned: 8,
        warnings: vec![Warning {
            kind: WarningKind::Scale,
            step: String::new(),
            text: "time lapse of 32".into(),
            remedy: "run with --full-scale".into(),
        }],
        published: Vec::new(),
        published_elsewhere: Vec::new(),
    }
}
