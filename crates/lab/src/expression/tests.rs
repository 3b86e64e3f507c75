//! Tests of which step expresses which row.

use results::published::parse;
use workload::catalogue;

use super::*;

const HEAD: &str = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,phase,\
                    metric,value_low,value_high,confidence,note\n";

fn plan(protocol: &str) -> Plan {
    let protocol = catalogue::find_protocol(protocol).unwrap();
    Plan::new(&protocol, &catalogue::workloads(), 1).unwrap()
}

fn row(document: &str, load_and_phase: &str) -> FigureRow {
    let line = format!("R1,{document},x,1,any,any,{load_and_phase},iops,1,1,exact,\n");
    parse(&format!("{HEAD}{line}"), "f.csv").unwrap().remove(0)
}

/// Steps and part of a row, from the workload to the phase, in the plan of `protocol`.
fn found(protocol: &str, row_text: &str) -> Result<(Vec<String>, Part), Miss> {
    let reading = reading(&row("d", row_text), &plan(protocol))?;
    Ok((reading.steps, reading.part))
}

#[test]
fn each_phase_has_its_part_of_a_settled_protocol() {
    let cases = [
        ("4k-rand-write,16,16,burst", "4k/precondition", Part::Burst),
        ("4k-rand-write,16,16,precondition-end", "4k/precondition", Part::Settled),
        ("4k-rand-write,16,16,steady", "4k/precondition", Part::Settled),
        ("4k-rand-write,16,16,primary", "4k/4k-rand-write/T16Q16", Part::Whole),
        ("4k-rand-read,16,16,steady", "4k/4k-rand-read/T16Q16", Part::Whole),
        ("8k-70-30,4,8,primary", "8k-70-30/8k-70-30/T4Q8", Part::Whole),
    ];
    for (row, step, part) in cases {
        assert_eq!(found("enterprise", row), Ok((vec![step.to_owned()], part)), "{row}");
    }
}

#[test]
fn a_row_that_states_no_host_has_that_of_the_protocol_if_the_drive_has_it() {
    let known = |names: &[&str]| names.iter().map(|&name| String::from(name)).collect::<Vec<_>>();
    let of = |os: &str, protocol: &str, names: &[&str]| {
        let row = FigureRow { os: os.into(), ..row("d", "4k-rand-read,4,1,burst") };
        host(&row, &plan(protocol), &known(names)).to_owned()
    };
    assert_eq!(of("any", "iometer", &["linux", "windows"]), "windows");
    assert_eq!(of("any", "iometer", &["linux"]), "any");
    assert_eq!(of("linux", "iometer", &["linux", "windows"]), "linux");
    assert_eq!(of("any", "enterprise", &["linux", "windows"]), "any");
}

#[test]
fn a_range_of_loads_is_every_load_in_it() {
    let steps = |protocol, row| found(protocol, row).unwrap().0;
    assert_eq!(steps("enterprise", "8k-70-30,2-16,2-16,primary").len(), 16);
    assert_eq!(
        steps("iometer", "iometer-4k-rand-read,4,64+,burst"),
        ["4k-read/4k-rand-read/T4Q64", "4k-read/4k-rand-read/T4Q128"]
    );
}

#[test]
fn what_is_not_stated_of_a_load_may_be_anything_and_what_is_stated_holds() {
    let steps = |protocol, row| found(protocol, row).map(|(steps, _)| steps);
    let only = Ok(vec!["4k/4k-rand-write/T16Q16".to_owned()]);
    assert_eq!(steps("enterprise", "4k-rand-write,,,primary"), only);
    assert_eq!(steps("enterprise", "4k-rand-write,16,,primary"), only);
    assert_eq!(steps("enterprise", "4k-rand-write,,256,primary"), only);
    for row in ["4k-rand-write,128,,primary", "4k-rand-write,,1,primary"] {
        assert_eq!(steps("enterprise", row), Err(Miss::Load), "another load than T16Q16");
    }
    assert_eq!(steps("enterprise", "8k-70-30,,,primary"), Err(Miss::LoadUnstated));
    assert_eq!(
        steps("enterprise", "8k-70-30,,32,primary"),
        Ok(vec![
            "8k-70-30/8k-70-30/T2Q16".to_owned(),
            "8k-70-30/8k-70-30/T4Q8".to_owned(),
            "8k-70-30/8k-70-30/T8Q4".to_owned(),
            "8k-70-30/8k-70-30/T16Q2".to_owned(),
        ])
    );
}

#[test]
fn what_a_plan_does_not_have_is_missed_by_how_near_it_is() {
    let miss = |protocol, row| found(protocol, row).unwrap_err();
    assert_eq!(miss("quick", "4k-rand-write,16,16,primary"), Miss::Document);
    assert_eq!(miss("enterprise", "mysql-sysbench,2,,steady"), Miss::Workload);
    assert_eq!(miss("enterprise", "4k-rand-write,16,16,datasheet"), Miss::Phase);
    assert_eq!(miss("enterprise", "4k-rand-write,3,16,primary"), Miss::Load);
    assert_eq!(miss("iometer", "4k-rand-read,4,1,burst"), Miss::Workload);
}

#[test]
fn the_protocol_that_names_the_document_comes_first_then_any_in_their_order() {
    let mut plans = vec![plan("datasheet"), plan("enterprise"), plan("iometer")];
    plans[1].published.as_mut().unwrap().documents = vec!["one".into()];
    plans[2].published.as_mut().unwrap().documents = vec!["two".into()];
    let row_of = |document| row(document, "4k-rand-write,16,16,primary");
    assert_eq!(express(&row_of("one"), &plans).map(|found| found.0), Ok(1));
    assert_eq!(express(&row_of("two"), &plans).map(|found| found.0), Err(Miss::Phase));
    assert_eq!(express(&row_of("three"), &plans).map(|found| found.0), Ok(1));
}
