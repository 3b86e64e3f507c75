//! `cargo xtask baseline`: the drives of the catalogue under the loads that every review opens
//! with, into the table that reviews set beside their own drive.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use anyhow::{Context, Result};
use lab::plan::Plan;
use lab::progress::SilentProgress;
use lab::results::baseline::{self, BaselineRow, Headline};
use lab::runner::{Assignment, Drivers, NoStepStore, carry_out};
use lab::ssd::{DriveSpec, catalogue};
use lab::subject::{Choice, Subject};
use lab::target::access::Access;
use lab::wanted::TargetSetup;
use real::drivers::drivers;

use xtask::root;

/// Name of the protocol that all drives go through.
const PROTOCOL: &str = "enterprise";
/// Seed of the table: it must come out the same.
const SEED: u64 = 1;

/// Simulates the drives that are named, or all of the catalogue, where the table lacks them or has
/// them of another model version, and writes the table after each, so that an interruption loses
/// one drive at most.
///
/// # Errors
/// Fails if a drive is not in the catalogue, a simulation failed, or the table cannot be written.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let drives = match names {
        [] => catalogue::drives(),
        names => {
            let found = |name: &String| {
                catalogue::find(name).with_context(|| format!("no drive {name} in the catalogue"))
            };
            names.iter().map(found).collect::<Result<_>>()?
        }
    };
    let plan = plan()?;
    let path = root().join(baseline::FILE);
    // Not what is embedded: that is older where this program has written the table already.
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut rows = baseline::parse(&text).with_context(|| format!("reading {}", path.display()))?;
    for spec in &drives {
        let current = |row: &BaselineRow| {
            row.drive == spec.name && row.model_version == lab::ssd::MODEL_VERSION
        };
        if rows.iter().any(current) {
            continue;
        }
        let row = measured(&One::new(spec, &plan)?)?;
        println!("{}: {} IOPS of settled 4K writes", row.drive, row.write_iops);
        rows.retain(|other| other.drive != row.drive);
        rows.push(row);
        rows.sort_by(|a, b| a.drive.cmp(&b.drive));
        fs::write(&path, baseline::to_csv(&rows)?)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// The row of one drive.
fn measured(one: &One) -> Result<BaselineRow> {
    let drivers = one.drivers()?;
    let assignment = Assignment {
        label: &one.wanted.target,
        plan: &one.plan,
        drivers: drivers.as_ref(),
        step_store: &NoStepStore,
        finished: Vec::new(),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let outcome = carry_out(&[assignment], threads, &SilentProgress)?.into_iter().next();
    let outcome = outcome.with_context(|| format!("{}: no outcome", one.wanted.target))?;
    let run = outcome.into_run(&one.plan, one.wanted.target.clone(), String::new());
    BaselineRow::of_run(&run).with_context(|| format!("{}: a load is missing", run.id))
}

/// The protocol as far as the table needs it.
fn plan() -> Result<Plan> {
    let workloads = lab::workload::catalogue::workloads();
    let protocol = lab::workload::catalogue::find_protocol(PROTOCOL);
    let protocol = protocol.with_context(|| format!("no protocol {PROTOCOL} in the catalogue"))?;
    let plan = Plan::new(&protocol, &workloads, SEED)?;
    let is_asked = |workload: &str| Headline::ALL.iter().any(|it| it.workload() == workload);
    let ids: BTreeSet<String> = plan
        .steps
        .iter()
        .filter(|step| is_asked(step.workload_name()))
        .filter(|step| {
            (step.threads, step.queue_per_thread) == (baseline::THREADS, baseline::QUEUE_PER_THREAD)
        })
        .map(|step| step.id.clone())
        .collect();
    Ok(plan.with_steps(&ids))
}

/// One drive in its first format and behind its first host.
struct One {
    subject: Subject,
    wanted: TargetSetup,
    plan: Plan,
}

impl One {
    fn new(spec: &DriveSpec, plan: &Plan) -> Result<Self> {
        let subject = Subject::find(&spec.name)?;
        let mut setups = subject.setups(&Choice::default())?;
        let wanted = if setups.is_empty() { None } else { Some(setups.remove(0)) };
        let wanted = wanted.with_context(|| format!("{} has no format", spec.name))?;
        Ok(Self { plan: subject.plan(plan.clone(), &wanted), subject, wanted })
    }

    fn drivers(&self) -> Result<Box<Drivers<'_>>> {
        Ok(drivers(&self.subject, &self.wanted, self.plan.seed, &Access::default())?)
    }
}
