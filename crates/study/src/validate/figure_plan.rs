//! Plans of figures that no protocol has: each states its load and its phase itself.
//!
//! A workload is named as in the catalogue, or by its parts: `16k-rand-write`, `4m-seq-read`,
//! `8k-75-25` for reads and writes at random. The state of the drive follows from the phase:
//!
//! | phase | the drive |
//! |---|---|
//! | `burst` | purged; for reads, written once in order |
//! | `primary` | written once in order, no more: other reviews do not say how they settle |
//! | `precondition-end`, `steady` | settled for six hours under the load; reads as `primary` |
//! | `datasheet` | as `burst`, at the stated load or the best of several |
//! | `datasheet-sustained` | settled under T16Q16 of the workload, then the same loads |
//!
//! Threads alone have one request outstanding each; a queue alone is that of one thread. Other
//! phases than a data sheet's need a load.

use lab::expression::express;
use lab::plan::Plan;
use results::published::{FigureRow, Loads, Phase, compressible};
use workload::{
    Gaps, Measure, Precondition, Protocol, PublishedMapping, PublishedPhase, Suite, Workload,
    catalogue,
};

use super::SEED;

/// Workload that fills a drive in order.
const FILL: &str = "128k-seq-write";
/// Threads and queues of a data sheet that states no load.
const RATED_LOADS: ([u16; 2], [u16; 4]) = ([1, 16], [1, 4, 16, 64]);
/// Length of a preconditioning, of its intervals and of a round, in seconds.
const PRECONDITION_S: (u64, u64, u64) = (21_600, 60, 1_800);
/// Length of a measurement, of the load before it and of an interval, in seconds.
const MEASURE_S: (u64, u64, u64) = (120, 30, 30);

/// Plans of those of `rows` that none of `plans` expresses, each once; rows that name no load or
/// workload that can be carried out have none.
pub fn plans_of_figures(rows: &[&FigureRow], plans: &[Plan]) -> Vec<Plan> {
    let mut own: Vec<Plan> = Vec::new();
    for row in rows.iter().filter(|row| row.obstacle().is_none()) {
        if express(row, plans).is_ok() || express(row, &own).is_ok() {
            continue;
        }
        let Some(protocol) = protocol(row) else { continue };
        let mut known = catalogue::workloads();
        known.extend(protocol.workloads.iter().cloned());
        own.push(Plan::new(&protocol, &known, SEED).expect("it names what is there"));
    }
    own
}

/// The protocol of one figure.
fn protocol(row: &FigureRow) -> Option<Protocol> {
    let workload = workload(&row.workload)?;
    let (threads, queue_per_thread) = loads(row)?;
    let measured = Measure {
        workload: workload.name.clone(),
        published_as: vec![row.workload.clone()],
        threads,
        queue_per_thread,
        duration_s: MEASURE_S.0,
        ramp_s: MEASURE_S.1,
        interval_s: MEASURE_S.2,
        rate_iops: None,
        gaps: Gaps::default(),
        matrix: None,
        replay: None,
    };
    let is_settled = matches!(row.phase, Phase::PreconditionEnd | Phase::Steady | Phase::Sustained);
    let settles = is_settled && !workload.only_reads();
    let is_burst = matches!(row.phase, Phase::Burst | Phase::Datasheet) && workload.only_writes();
    let load = match row.phase {
        Phase::Sustained => (16, 16),
        _ => (measured.threads[0], measured.queue_per_thread[0]),
    };
    let precondition = settles.then(|| Precondition {
        workload: workload.name.clone(),
        threads: load.0,
        queue_per_thread: load.1,
        duration_s: PRECONDITION_S.0,
        interval_s: PRECONDITION_S.1,
        round_s: PRECONDITION_S.2,
        real: None,
    });
    let name = format!("{} {}", row.workload, row.phase);
    let suite = Suite {
        name: name.clone(),
        title: name.clone(),
        compressible_percent: compressible(&row.mode),
        footprint_percent: None,
        fill: (!is_burst).then(|| FILL.to_owned()),
        fill_passes: 1,
        fill_random_passes: 0,
        rounds: None,
        precondition,
        application: None,
        nodes: None,
        curve: None,
        measure: vec![measured],
    };
    Some(Protocol {
        schema: Protocol::SCHEMA,
        title: format!(
            "{name} at {}",
            blockio::text::stated_load(&row.threads, &row.queue_per_thread)
        ),
        name,
        description: "One figure, as its row states it.".into(),
        source: row.document.clone(),
        published: Some(PublishedMapping {
            documents: Vec::new(),
            phase: mapped(row.phase),
            mb_bytes: 1_000_000,
            precondition_by_drive: false,
            host: String::new(),
        }),
        time_lapse_max: None,
        start_purged: is_burst,
        workloads: vec![workload],
        suites: vec![suite],
    })
}

/// Name of a phase in protocols.
const fn mapped(phase: Phase) -> PublishedPhase {
    match phase {
        Phase::Burst => PublishedPhase::Burst,
        Phase::PreconditionEnd | Phase::Steady | Phase::Primary => PublishedPhase::Primary,
        Phase::Datasheet => PublishedPhase::Datasheet,
        Phase::Sustained => PublishedPhase::DatasheetSustained,
    }
}

/// Threads and queues of a row; absent where it states a range, or none and needs one.
fn loads(row: &FigureRow) -> Option<(Vec<u16>, Vec<u16>)> {
    let one = |number: u32| u16::try_from(number).ok().filter(|number| *number > 0);
    let (threads, queue) = match row.loads()? {
        Loads::Grid(threads, queue) => (one(threads.one()?)?, one(queue.one()?)?),
        Loads::Threads(threads) => (one(threads.one()?)?, 1),
        Loads::Outstanding(outstanding) => (1, one(outstanding.one()?)?),
        Loads::Unstated if row.phase.is_stated() => {
            return Some((RATED_LOADS.0.to_vec(), RATED_LOADS.1.to_vec()));
        }
        Loads::Unstated => return None,
    };
    Some((vec![threads], vec![queue]))
}

/// The workload called `name`: one of the catalogue, or one that its name describes.
fn workload(name: &str) -> Option<Workload> {
    let known = catalogue::workloads().into_iter().find(|workload| workload.name == name);
    known.or_else(|| described(name))
}

/// The workload that a name describes: `16k-rand-write`, `4m-seq-read`, `8k-75-25`.
fn described(name: &str) -> Option<Workload> {
    let mut parts = name.split('-');
    let (size, second, third) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = bytes(size)?;
    let (access, read_percent) = match (second, third) {
        ("rand", "read") => ("random", 100.0),
        ("rand", "write") => ("random", 0.0),
        ("seq", "read") => ("sequential", 100.0),
        ("seq", "write") => ("sequential", 0.0),
        (reads, writes) => {
            let (reads, writes): (f64, f64) = (reads.parse().ok()?, writes.parse().ok()?);
            let is_whole = (reads + writes - 100.0).abs() < 1e-9 && reads >= 0.0 && writes >= 0.0;
            is_whole.then_some(("random", reads))?
        }
    };
    let is_all = parts.next().is_none();
    let text = format!(
        "schema = 1\nname = {name:?}\ntitle = {name:?}\ndescription = \"as its name says\"\n\
         source = \"its name\"\nread_percent = {read_percent}\n\
         access = {{ kind = {access:?} }}\nsizes = [{{ bytes = {bytes}, percent = 100 }}]\n"
    );
    Workload::parse(&text, name).ok().filter(|_| is_all)
}

/// Bytes of a size as `512b`, `16k` or `4m`: whole sectors, 64 MiB at most.
fn bytes(text: &str) -> Option<u32> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let factor = match unit {
        "b" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        _ => return None,
    };
    let bytes = number.parse::<u32>().ok()?.checked_mul(factor)?;
    (bytes > 0 && bytes % 512 == 0 && bytes <= 64 << 20).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use workload::Access;

    use super::*;

    #[test]
    fn a_workload_is_what_its_name_says() {
        let of = |name: &str| {
            let it = workload(name)?;
            Some((it.sizes[0].bytes, it.read_percent, it.access == Access::Sequential))
        };
        assert_eq!(of("16k-rand-write"), Some((16 << 10, 0.0, false)));
        assert_eq!(of("4m-seq-read"), Some((4 << 20, 100.0, true)));
        assert_eq!(of("512b-75-25"), Some((512, 75.0, false)));
        assert_eq!(of("4k-rand-write"), Some((4 << 10, 0.0, false)), "of the catalogue");
        for wrong in ["16k-rand", "16q-rand-read", "8k-75-35", "3b-rand-read", "mysql", "8k-1-2-3"]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_row_without_a_load_has_a_plan_only_where_a_data_sheet_states_it() {
        let of = |threads: &str, queue: &str, phase: &str| {
            let text = format!(
                "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,phase,\
                 metric,value_low,value_high,confidence,note\n\
                 X1,a review,Intel P5510,7680,stock,linux,16k-rand-write,{threads},{queue},\
                 {phase},iops,1,1,exact,\n"
            );
            let rows = results::published::parse(&text, "x.csv").unwrap();
            let plans = plans_of_figures(&[&rows[0]], &[]);
            plans.first().map(|plan| {
                let loads = plan.steps.iter().map(|it| (it.threads, it.queue_per_thread));
                loads.filter(|load| load.0 > 0).collect::<Vec<_>>()
            })
        };
        assert_eq!(of("", "", "primary"), None);
        assert_eq!(of("2-16", "8", "primary"), None);
        assert!(of("8", "32", "primary").unwrap().contains(&(8, 32)));
        assert!(of("", "32", "primary").unwrap().contains(&(1, 32)), "one thread");
        assert!(of("8", "", "primary").unwrap().contains(&(8, 1)), "one outstanding each");
        assert_eq!(of("", "", "datasheet").unwrap().len(), 8);
        assert_eq!(of("8", "4", "steady").unwrap(), [(8, 4), (8, 4)], "settles under itself");
    }

    #[test]
    fn rows_of_one_load_share_a_plan_and_are_of_the_platform_that_their_system_means() {
        let row = |id: &str, metric: &str| {
            format!(
                "{id},a review,Intel P5510,7680,stock,linux,16k-rand-write,8,32,primary,{metric},1,\
                 1,exact,\n"
            )
        };
        let head = "id,document,device,capacity_gb,mode,os,workload,threads,queue_per_thread,phase,\
                    metric,value_low,value_high,confidence,note\n";
        let text = format!("{head}{}{}", row("X1", "iops"), row("X2", "avg_latency_ms"));
        let rows = results::published::parse(&text, "x.csv").unwrap();
        let rows: Vec<&FigureRow> = rows.iter().collect();
        let mut plans = crate::validate::plans().unwrap();
        let own = plans_of_figures(&rows, &plans);
        assert_eq!(own.len(), 1);
        plans.extend(own);
        let drives = ssd::catalogue::drives();
        let list = crate::validate::WorkList::new(&rows, &drives, &plans);
        let setups: Vec<String> = list.jobs().iter().map(|it| it.setup.to_string()).collect();
        assert_eq!(setups, ["p5510 stock linux-libaio"], "its own host is that of another review");
        let sources = list.entries().iter().map(|it| it.as_ref().unwrap().protocol.as_str());
        assert_eq!(sources.collect::<Vec<_>>(), ["16k-rand-write primary"; 2]);
    }
}
