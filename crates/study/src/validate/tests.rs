//! Tests of validation, on a protocol that lasts a moment.

use lab::expression::{Miss, express};
use lab::progress::SilentProgress;
use results::published::{figures, parse};

use super::*;

const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,phase,\
                    metric,value_low,value_high,confidence,note\n";

/// Rows of an ioDrive Duo, given from `capacity_gb` to `value_high`.
pub(super) fn rows(lines: &[&str]) -> Vec<FigureRow> {
    let line =
        |(index, line)| format!("R{index},a review,Fusion-io ioDrive Duo MLC,{line},exact,\n");
    let lines: String = lines.iter().enumerate().map(line).collect();
    parse(&format!("{HEAD}{lines}"), "figures.csv").unwrap()
}

fn validated(lines: &[&str]) -> Vec<Row> {
    let mut plans = plans().unwrap();
    for step in plans.iter_mut().flat_map(|plan| &mut plan.steps) {
        if step.duration_s > 0.0 {
            (step.ramp_s, step.duration_s, step.interval_s, step.round_s) = (0.5, 2.0, 0.5, 0.5);
        }
    }
    let drives = ssd::catalogue::drives();
    let bench = Bench { drives: &drives, plans: &plans, threads: 2 };
    let rows = rows(lines);
    validate(&rows.iter().collect::<Vec<_>>(), bench, &SilentProgress).unwrap()
}

fn reason(row: &Row) -> &str {
    match &row.verdict {
        Verdict::NotExpressible { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_that_cannot_be_compared_are_listed_with_the_reason() {
    let rows = validated(&[
        "640,stock,any,64k-read,,,datasheet,read_percent,95,95",
        "320,stock,any,4k-rand-write,16,16,primary,iops,1,1",
        "640,turbo,any,4k-rand-write,16,16,primary,iops,1,1",
        "640,stock,plan9,4k-rand-write,16,16,primary,iops,1,1",
        "640,stock,any,mysql-sysbench,2,,steady,avg_latency_ms,5,5",
        "640,stock,any,8k-70-30,,,primary,iops,1,1",
        "640,stock,any,4k-rand-write,3,16,primary,iops,1,1",
    ]);
    let reasons: Vec<&str> = rows.iter().map(reason).collect();
    assert_eq!(
        reasons,
        [
            "not a metric that a run has",
            "the drive is not modelled",
            "the model has no format `turbo`",
            "the model has no host `plan9`",
            "no protocol has this workload",
            "the row states no load, and the protocol has several",
            "no protocol has this workload and load in this phase",
        ]
    );
}

#[test]
fn a_drive_of_the_catalogue_is_validated_if_a_rate_of_it_is_published() {
    let has_rate = |drive: &DriveSpec| {
        let figures = figures().iter();
        let mut rates = figures.filter(|row| matches!(row.metric.as_str(), "iops" | "mb_s"));
        rates.any(|row| is_about(row, drive))
    };
    let drives = ssd::catalogue::drives();
    for drive in drives.iter().filter(|drive| drive.published.is_none()) {
        assert!(!drive.is_validated(), "{}", drive.name);
    }
    let others = drives.iter().filter(|drive| drive.is_validated() && !has_rate(drive));
    let others: Vec<&str> = others.map(|drive| drive.name.as_str()).collect();
    assert_eq!(others, ["p5510", "p5800x"], "rows that groups of them name");
    let unconfirmed = drives.iter().filter(|drive| !drive.is_validated() && has_rate(drive));
    assert_eq!(unconfirmed.count(), 0, "a rate confirms its drive");
    let said = unvalidated(&drives);
    assert!(said.contains("nytro-wlp4-200") && !said.contains("iodrive-duo,"), "{said}");
    assert_eq!(unvalidated(&[]), "");
}

#[test]
fn each_row_is_simulated_with_the_protocol_that_expresses_it() {
    let rows = validated(&[
        "640,stock,linux,iometer-4k-rand-read,4,64+,burst,iops,140000,140000",
        "640,stock,linux,64k-read,,,datasheet,mb_s,1500,1500",
        "640,stock,linux,mail-trace-light,,8,burst,mb_s,969,969",
    ]);
    let protocols: Vec<&str> =
        rows.iter().map(|row| row.compared().unwrap().protocol.as_str()).collect();
    assert_eq!(protocols, ["iometer", "datasheet", "mail-server"]);
}

#[test]
fn the_worst_rows_are_measured_ones_and_twice_is_as_far_as_half() {
    let row = |id: &str, phase: Phase, ratio: f64| {
        let line = "640,stock,linux,4k-rand-read,16,16,primary,iops,1,1";
        let (drive, model, protocol) = (String::new(), String::new(), String::new());
        let (modelled, from_listed_stalls) = (ratio, false);
        let model_version = ssd::MODEL_VERSION;
        let compared = FigureComparison {
            drive,
            model,
            protocol,
            modelled,
            ratio,
            from_listed_stalls,
            model_version,
        };
        let of_table = described(&rows(&[line])[0], Verdict::Out(compared));
        Row { id: id.into(), phase: phase.name().into(), ..of_table }
    };
    let rows = [
        row("near", Phase::Primary, 1.1),
        row("half", Phase::Primary, 0.4),
        row("twice", Phase::Primary, 2.4),
        row("sheet", Phase::Datasheet, 9.0),
    ];
    let ids: Vec<&str> = worst(&rows, 2).iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["half", "twice"]);
    let Share { rows: count, near, error_median } = Tally::of(&rows[..3]).typical;
    assert_eq!((count, near), (3, 1));
    assert!((error_median.unwrap() - 0.6).abs() < 1e-9);
}

#[test]
fn a_row_is_in_or_out_by_its_ratio_to_the_nearest_end_of_its_range() {
    let rows = validated(&[
        "640,stock,linux,4k-rand-read,16,16,primary,iops,1,1e9",
        "640,stock,linux,4k-rand-read,16,16,primary,iops,1e9,1e9",
        "640,any,any,4k-rand-read,16,16,primary,max_latency_ms,0.001,0.001",
    ]);
    let Verdict::In(inside) = &rows[0].verdict else { panic!("{:?}", rows[0]) };
    assert!((inside.ratio - 1.0).abs() < 1e-9);
    assert_eq!(inside.model, "iodrive-duo stock linux");
    assert!(matches!(&rows[1].verdict, Verdict::Out(out) if out.ratio < 0.01));
    assert!(matches!(&rows[2].verdict, Verdict::Out(out) if out.ratio > 2.0));
}

#[test]
fn a_maximum_that_a_stall_makes_is_told_apart_from_one_of_a_mechanism() {
    let duo = ssd::catalogue::find("iodrive-duo").unwrap();
    let host = &duo.host("linux").unwrap();
    assert!(is_from_listed_stall("max_latency_ms", 1140.0, host), "a request is held for a second");
    assert!(!is_from_listed_stall("max_latency_ms", 2500.0, host), "longer than twice the stall");
    assert!(is_from_listed_stall("stdev_latency_ms", 2.7, host));
    assert!(
        !is_from_listed_stall("avg_latency_ms", 2.7, host)
            && !is_from_listed_stall("iops", 1e5, host)
    );
    let quiet = HostSpec { stalls: Vec::new(), ..host.clone() };
    assert!(!is_from_listed_stall("stdev_latency_ms", 2.7, &quiet));
}

#[test]
fn rows_are_read_back_as_they_were_printed() {
    let rows = validated(&[
        "640,stock,linux,64k-read,,,datasheet,mb_s,1500,1500",
        "640,stock,linux,no-such-load,,,datasheet,mb_s,1500,1500",
    ]);
    let text = serde_json::to_string(&rows).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Row>>(&text).unwrap(), rows);
}

#[test]
fn rows_of_the_projects_own_table_are_expressed_by_the_protocols_meant_for_them() {
    let plans = plans().unwrap();
    let protocol = |id: &str| {
        let row = figures().iter().find(|row| row.id == id).unwrap();
        express(row, &plans).map(|(index, _)| plans[index].protocol.as_str())
    };
    assert_eq!(protocol("A084"), Ok("enterprise"));
    assert_eq!(protocol("A013"), Ok("datasheet"));
    assert_eq!(protocol("A053"), Ok("iometer"));
    assert_eq!(protocol("A067"), Ok("iometer"));
    assert_eq!(protocol("A072"), Ok("mail-server"));
    assert_eq!(protocol("A145"), Err(Miss::Workload));
}

/// Figures of data sheets that numbers of drive files are derived from, of drives without published
/// ones of their own: device, capacity, workload, threads, queue, phase, metric, value.
const DERIVED_FROM: &str = "\
    Intel Optane P5800X,800,4k-rand-read,16,64,datasheet,iops,1500000\n\
    Intel Optane P5800X,800,4k-rand-write,16,64,datasheet,iops,1350000\n\
    Intel Optane P5800X,800,512b-rand-read,16,64,datasheet,iops,4600000\n\
    Intel Optane P5800X,800,128k-seq-read,16,16,datasheet,mb_s,7200\n\
    Intel Optane P5800X,800,128k-seq-write,16,16,datasheet,mb_s,6100\n\
    Intel Optane P5800X,800,4k-rand-read,1,1,datasheet,avg_latency_ms,0.005\n\
    Intel Optane P5800X,400,128k-seq-write,16,16,datasheet,mb_s,4800\n\
    Intel P5510,7680,4k-rand-read,16,64,datasheet,iops,930000\n\
    Intel P5510,7680,4k-rand-write,16,16,datasheet-sustained,iops,190000\n\
    Intel P5510,7680,128k-seq-read,16,16,datasheet,mb_s,7000\n\
    Intel P5510,7680,128k-seq-write,16,16,primary,mb_s,4200\n\
    Solidigm D5-P5336,61440,4k-rand-read,16,64,datasheet,iops,1005000\n\
    Solidigm D5-P5336,61440,128k-seq-read,16,16,datasheet,mb_s,7000\n\
    Solidigm D5-P5336,61440,128k-seq-write,16,16,primary,mb_s,3300\n\
    Solidigm D5-P5336,122880,4k-rand-read,16,64,datasheet,iops,930000\n\
    Solidigm D5-P5336,122880,128k-seq-read,16,16,datasheet,mb_s,7400\n\
    Solidigm D5-P5336,122880,128k-seq-write,16,16,primary,mb_s,3200\n";

#[test]
fn every_figure_that_a_number_of_a_file_is_derived_from_comes_out_of_the_model() {
    let line = |(index, line): (usize, &str)| {
        let [device, capacity, workload, threads, queue, phase, metric, value] =
            line.split(',').collect::<Vec<_>>().try_into().unwrap();
        format!(
            "P{index},a data sheet,{device},{capacity},any,any,{workload},{threads},{queue},\
             {phase},{metric},{value},{value},exact,\n"
        )
    };
    let lines: String = DERIVED_FROM.lines().enumerate().map(line).collect();
    let rows = parse(&format!("{HEAD}{lines}"), "figures.csv").unwrap();
    let rows: Vec<&FigureRow> = rows.iter().collect();
    let drives = ssd::catalogue::drives();
    // Each as its row says, whatever a protocol would make of it.
    let plans = plans_of_figures(&rows, &[]);
    let bench = Bench { drives: &drives, plans: &plans, threads: 2 };
    let compared = validate(&rows, bench, &SilentProgress).unwrap();
    assert_eq!(compared.len(), 17);
    for row in &compared {
        let Verdict::In(_) = &row.verdict else { panic!("{row:?}") };
    }
}
