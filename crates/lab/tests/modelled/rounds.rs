//! The SNIA protocol on a modelled drive, from its file to the result.

use lab::plan::Plan;
use lab::results::rounds::window_cells;
use lab::results::{Run, Steady, SteadyEvidence, Step};
use lab::workload::catalogue;

use super::carried_out;

/// Cells of the matrices that are measured here: all that are tracked are among them.
const READ_PERCENTS: [f64; 3] = [100.0, 65.0, 0.0];
const SIZES_BYTES: [u32; 4] = [1_048_576, 131_072, 65_536, 4096];

/// The suites of the protocol that are named `names`, on a drive in time lapse.
fn measured(names: &[&str]) -> Run {
    let mut protocol = catalogue::find_protocol("snia-pts").expect("the catalogue has it");
    protocol.suites.retain(|suite| names.contains(&suite.name.as_str()));
    let rounds = protocol.suites.iter_mut().flat_map(|suite| &mut suite.rounds);
    for matrix in rounds.flat_map(|rounds| &mut rounds.measure).flat_map(|it| &mut it.matrix) {
        matrix.read_percents.retain(|percent| READ_PERCENTS.contains(percent));
        matrix.sizes_bytes.retain(|bytes| SIZES_BYTES.contains(bytes));
    }
    let plan = Plan::new(&protocol, &catalogue::workloads(), 1).expect("its workloads are there");
    let run = carried_out(&plan).expect("no model fails");
    Run::from_json(&run.to_json().expect("it can be written")).expect("it can be read")
}

fn in_rounds<'a>(run: &'a Run, suite: &str) -> Vec<&'a Step> {
    run.steps.iter().filter(|step| step.suite == suite && step.round.is_some()).collect()
}

#[test]
fn the_iops_test_settles_and_fills_its_matrix() {
    let run = measured(&["iops"]);
    assert_eq!(run.steps[1].how, "wrote everything 2 times with 128k-seq-write");
    let steps = in_rounds(&run, "iops");
    let steady =
        Steady::of_rounds(steps.iter().copied(), &run.target).expect("rounds were measured");
    assert!(steady.achieved, "{steady:?}");
    assert_eq!(steady.variables.len(), 3);
    let last = steps.last().expect("rounds were measured").round;
    assert_eq!(last, Some(steady.rounds), "no round after those that held still");
    let cells = window_cells(&steps, &steady);
    assert_eq!(cells.len(), 3 * 4);
    let of = |bytes: u32, read: f64| {
        let cell = cells
            .iter()
            .find(|it| it.cell.bytes == bytes && it.cell.read_percent.total_cmp(&read).is_eq());
        cell.expect("it is in the matrix")
    };
    // What any drive of flash does: small requests are many, large ones carry much, writes cost.
    assert!(of(4096, 100.0).iops > 3.0 * of(1_048_576, 100.0).iops);
    assert!(of(1_048_576, 100.0).throughput_mb_s > of(4096, 100.0).throughput_mb_s);
    assert!(of(4096, 100.0).iops > of(4096, 65.0).iops);
    assert!(of(4096, 65.0).iops > of(4096, 0.0).iops);
}

#[test]
fn the_throughput_and_latency_tests_settle_and_are_followed_by_the_histogram() {
    let run = measured(&["tp-128k", "lat"]);
    let steady = |suite| Steady::of_rounds(in_rounds(&run, suite).into_iter(), &run.target);
    let throughput = steady("tp-128k").expect("rounds were measured");
    assert!(throughput.achieved, "{throughput:?}");
    // It holds still as well, but one request at a time writes too little for a steady state to be
    // claimed; that is said.
    let latency = steady("lat").expect("rounds were measured");
    assert_eq!(latency.evidence, Some(SteadyEvidence::TooLittleWritten), "{latency:?}");
    let last = run.steps.last().expect("there are steps");
    assert_eq!((last.id.as_str(), last.round), ("lat/4k-rand-write/T1Q1", None));
    assert!(last.summary.is_some());
    assert_eq!(run.steps_planned as usize, run.steps.len());
}
