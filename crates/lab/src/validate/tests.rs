//! Tests of validation, on a protocol that lasts a moment.

use results::StepKind;
use results::published::parse;
use workload::catalogue;

use super::*;
use crate::progress::Unwatched;

const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,phase,\
                    metric,value_low,value_high,confidence,note\n";

/// Rows of an ioDrive Duo, given from `capacity_gb` to `value_high`.
fn rows(lines: &[&str]) -> Vec<FigureRow> {
    let line =
        |(index, line)| format!("R{index},a review,Fusion-io ioDrive Duo MLC,{line},exact,\n");
    let lines: String = lines.iter().enumerate().map(line).collect();
    parse(&format!("{HEAD}{lines}"), "figures.csv").unwrap()
}

fn validated(lines: &[&str]) -> Vec<Row> {
    let protocol = catalogue::find_protocol("enterprise").unwrap();
    let mut plan = Plan::new(&protocol, &catalogue::workloads(), 1).unwrap();
    for step in plan.steps.iter_mut().filter(|step| step.kind != StepKind::Purge) {
        (step.ramp_s, step.duration_s, step.interval_s, step.round_s) = (0.5, 2.0, 0.5, 0.5);
    }
    let drives = ssd::catalogue::drives();
    let bench = Bench { drives: &drives, plan: &plan, threads: 2 };
    let rows = rows(lines);
    validate(&rows.iter().collect::<Vec<_>>(), bench, &Unwatched).unwrap()
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
        "640,stock,any,64k-read,,,datasheet,mb_s,1500,1500",
        "320,stock,any,4k-rand-write,16,16,primary,iops,1,1",
        "640,turbo,any,4k-rand-write,16,16,primary,iops,1,1",
        "640,stock,plan9,4k-rand-write,16,16,primary,iops,1,1",
        "640,stock,any,mail-trace-light,1,8,burst,mb_s,969,969",
        "640,stock,any,4k-rand-write,3,16,primary,iops,1,1",
    ]);
    let reasons: Vec<&str> = rows.iter().map(reason).collect();
    assert_eq!(
        reasons,
        [
            "a data sheet states no load",
            "the drive is not modelled",
            "the model has no format `turbo`",
            "the model has no host `plan9`",
            "protocol enterprise does not have the workload",
            "protocol enterprise does not have the load in this phase",
        ]
    );
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
