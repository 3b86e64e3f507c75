//! Order and ratios that reviews state, beside those of the models.
//!
//! ```text
//! rankings.csv ──► statements ──► every step that some needs, simulated once ──► holds, tie, fails
//! ```
//!
//! An order holds where each drive is ahead of all drives of later groups by 2 % or more; where one
//! is not, and none is behind by 2 %, it is a tie. A ratio holds within its bounds, and is a tie
//! where it misses them by less than 2 %.

mod statement;

use std::collections::{BTreeMap, BTreeSet};

use lab::Error;
use lab::plan::{Plan, PlannedStep};
use lab::progress::Progress;
use lab::wanted::ModelSetup;
use results::{Run, Step, StepKind};
use serde::{Deserialize, Serialize};
use ssd::{DriveSpec, Surroundings};

use crate::validate::{SEED, Simulation, carry_out_all};

pub use self::statement::{
    Claim, ClaimedFigure, Reduction, Relation, SetupName, StatedLoad, Statement, Window, parse,
};

/// The project's own table.
pub const TEXT: &str = include_str!("../../../published/rankings.csv");
/// Path of it in the project.
pub const FILE: &str = "published/rankings.csv";
/// Difference below which two figures are alike, as a share.
pub const TIE_SHARE: f64 = 0.02;
/// Width of an interval, as a share of its figure, from which on a tie is no finding.
const NARROW_SHARE: f64 = 0.1;

/// Verdict on a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum RankingVerdict {
    /// The models say so too.
    Holds,
    /// The models differ by less than [`TIE_SHARE`].
    Tie {
        /// True if every figure has an interval narrower than a tenth of it.
        is_narrow: bool,
    },
    /// The models say otherwise.
    Fails,
    /// Not to be run.
    NotRun {
        /// Reason why.
        reason: String,
    },
}

/// A statement with what the models made of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedStatement {
    /// Name of the row.
    pub id: String,
    /// Review that it is from.
    pub review: String,
    /// The sentence; may be empty.
    pub text: String,
    /// Verdict on it.
    #[serde(flatten)]
    pub verdict: RankingVerdict,
    /// Figures of the drives; empty where it was not run.
    pub figures: Vec<SetupFigure>,
    /// Least factor by which a drive is ahead of one of a later group, or by which a ratio keeps
    /// its bounds; below 1: it does not. Absent where it was not run.
    pub margin: Option<f64>,
}

/// Figure of a drive, as a model has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetupFigure {
    /// Drive, format and host.
    pub setup: SetupName,
    /// Value, in the unit of the metric.
    pub value: f64,
    /// Width of its interval as a share of it; absent where no interval is known.
    pub interval_share: Option<f64>,
}

/// The statements of the project's own table.
///
/// # Panics
/// Panics if the table cannot be read; a test reads it.
pub fn statements() -> Vec<Statement> {
    parse(TEXT, FILE).expect("a test reads the embedded table")
}

/// Judges `statements` by `drives`; each step that some needs is simulated once, and no statement
/// is left out.
///
/// # Errors
/// Fails if a simulation failed or was stopped.
pub fn judge(
    statements: &[Statement],
    drives: &[DriveSpec],
    threads: usize,
    progress: &dyn Progress,
) -> Result<Vec<JudgedStatement>, Error> {
    let bench = Bench::new(statements, drives);
    let runs = carry_out_all(&bench.simulations, drives, threads, progress)?;
    Ok(statements.iter().zip(&bench.needs).map(|(it, need)| judged(it, need, &runs)).collect())
}

/// Steps from which the figure of one drive is read.
#[derive(Clone, Debug, PartialEq)]
struct FigureSteps {
    simulation: usize,
    ids: Vec<String>,
}

/// Simulations that statements need, and where the figure of each drive is read.
#[derive(Debug)]
struct Bench {
    simulations: Vec<Simulation>,
    needs: Vec<Result<BTreeMap<SetupName, FigureSteps>, String>>,
}

impl Bench {
    fn new(statements: &[Statement], drives: &[DriveSpec]) -> Self {
        let mut steps: BTreeMap<(ModelSetup, String), BTreeSet<String>> = BTreeMap::new();
        let mut plans: BTreeMap<String, Option<Plan>> = BTreeMap::new();
        let mut needs = Vec::new();
        for statement in statements {
            let wanted = statement.claim.as_ref().map_err(Clone::clone).and_then(|claim| {
                let name = &claim.figure.protocol;
                let plan = plans.entry(name.clone()).or_insert_with(|| plan(name)).as_ref();
                let plan = plan.ok_or_else(|| format!("there is no protocol `{name}`"))?;
                wanted(claim, plan, drives)
            });
            for (setup, (_, ids)) in wanted.iter().flatten() {
                steps.entry(setup.clone()).or_default().extend(ids.iter().cloned());
            }
            needs.push(wanted);
        }
        let keys: Vec<&(ModelSetup, String)> = steps.keys().collect();
        let place = |(key, (name, ids)): WantedFigure| {
            let simulation = keys.binary_search(&&key).expect("every need has its steps");
            (name, FigureSteps { simulation, ids })
        };
        let needs = needs.into_iter().map(|it| Ok(it?.into_iter().map(place).collect())).collect();
        let simulations = steps.iter().map(|((setup, protocol), ids)| {
            let spec = drives.iter().find(|spec| spec.name == setup.drive).expect("found above");
            let plan = plans[protocol].as_ref().expect("found above");
            Simulation { setup: setup.clone(), plan: plan.with_steps(ids).for_drive(spec) }
        });
        Self { simulations: simulations.collect(), needs }
    }
}

/// A setup and a protocol, and the drive whose figure is read from steps of it.
type WantedFigure = ((ModelSetup, String), (SetupName, Vec<String>));

fn plan(protocol: &str) -> Option<Plan> {
    let protocol = workload::catalogue::find_protocol(protocol)?;
    let plan = Plan::new(&protocol, &workload::catalogue::workloads(), SEED);
    Some(plan.expect("a test plans every protocol"))
}

/// The setups and steps that a claim needs of a plan.
fn wanted(claim: &Claim, plan: &Plan, drives: &[DriveSpec]) -> Result<Vec<WantedFigure>, String> {
    let ids = step_ids(&claim.figure, plan)?;
    let setups = claim.relation.setups();
    let of = |name: &SetupName| {
        let spec = drives.iter().find(|spec| spec.name == name.drive);
        let spec = spec.ok_or_else(|| format!("no model is named `{}`", name.drive))?;
        if !spec.formats().contains(&name.format) {
            return Err(format!("{} has no format `{}`", name.drive, name.format));
        }
        spec.host(&name.host).map_err(|error| error.to_string())?;
        let setup = ModelSetup {
            drive: name.drive.clone(),
            format: name.format.clone(),
            host: name.host.clone(),
            time_lapse: spec.time_lapse_default(),
            surroundings: Surroundings::default(),
        };
        Ok(((setup, plan.protocol.clone()), (name.clone(), ids.clone())))
    };
    setups.into_iter().map(of).collect()
}

/// Names of the steps of a plan that a figure is read from, one a load.
fn step_ids(figure: &ClaimedFigure, plan: &Plan) -> Result<Vec<String>, String> {
    let is_of = |step: &&PlannedStep, load: StatedLoad| {
        let kind =
            if figure.is_preconditioning { StepKind::Precondition } else { StepKind::Measure };
        let is_load = match load {
            StatedLoad::Grid(threads, queue) => {
                (step.threads, step.queue_per_thread) == (threads, queue)
            }
            StatedLoad::Outstanding(count) => step.outstanding() == count,
        };
        let is_workload = figure.workload.as_deref().is_none_or(|it| it == step.workload_name());
        step.kind == kind && step.suite == figure.suite && is_workload && is_load
    };
    let find = |load: &StatedLoad| {
        let step = plan.steps.iter().find(|step| is_of(step, *load));
        step.map(|it| it.id.clone()).ok_or_else(|| {
            format!("protocol {} has no such load in suite `{}`", figure.protocol, figure.suite)
        })
    };
    figure.loads.iter().map(find).collect()
}

fn judged(
    statement: &Statement,
    need: &Result<BTreeMap<SetupName, FigureSteps>, String>,
    runs: &[Run],
) -> JudgedStatement {
    let described = |verdict, figures, margin| JudgedStatement {
        id: statement.id.clone(),
        review: statement.review.clone(),
        text: statement.text.clone(),
        verdict,
        figures,
        margin,
    };
    let not_run = |reason: &str| {
        described(RankingVerdict::NotRun { reason: reason.to_owned() }, Vec::new(), None)
    };
    let (claim, steps) = match (&statement.claim, need) {
        (Ok(claim), Ok(steps)) => (claim, steps),
        (Err(reason), _) | (_, Err(reason)) => return not_run(reason),
    };
    let figure = |(name, steps): (&SetupName, &FigureSteps)| {
        let run = &runs[steps.simulation];
        let found: Option<Vec<&Step>> = steps.ids.iter().map(|id| run.step(id)).collect();
        let found = found?;
        let interval = claim.figure.interval(&found);
        let value = claim.figure.value(&found)?;
        let interval_share = interval.map(|it| (it.high - it.low) / value);
        Some(SetupFigure { setup: name.clone(), value, interval_share })
    };
    let figures: Option<Vec<SetupFigure>> = steps.iter().map(figure).collect();
    let Some(figures) = figures else { return not_run("a model completed no request") };
    let margin = margin(&claim.relation, &figures);
    let is_narrow =
        figures.iter().all(|it| it.interval_share.is_some_and(|share| share < NARROW_SHARE));
    let holds_from = match claim.relation {
        Relation::Order { .. } => 1.0 + TIE_SHARE,
        Relation::Ratio { .. } => 1.0,
    };
    let verdict = match margin {
        margin if margin >= holds_from => RankingVerdict::Holds,
        margin if margin > 1.0 / (1.0 + TIE_SHARE) => RankingVerdict::Tie { is_narrow },
        _ => RankingVerdict::Fails,
    };
    described(verdict, figures, Some(margin))
}

/// Least factor by which a relation is kept, see [`JudgedStatement::margin`].
fn margin(relation: &Relation, figures: &[SetupFigure]) -> f64 {
    let value = |name: &SetupName| {
        let figure = figures.iter().find(|it| it.setup == *name);
        figure.expect("every drive of the relation has its figure").value
    };
    // Two that are nothing are alike.
    let over = |above: f64, below: f64| if above.max(below) > 0.0 { above / below } else { 1.0 };
    match relation {
        Relation::Order { is_high_better, groups } => {
            let factor = |better: &SetupName, worse: &SetupName| {
                let (better, worse) = (value(better), value(worse));
                if *is_high_better { over(better, worse) } else { over(worse, better) }
            };
            let mut least = f64::INFINITY;
            for (at, ahead) in groups.iter().enumerate() {
                let behind = || groups[at + 1..].iter().flatten();
                for better in ahead {
                    least = behind().map(|worse| factor(better, worse)).fold(least, f64::min);
                }
            }
            least
        }
        Relation::Ratio { numerator, denominator, low, high } => {
            let ratio = over(value(numerator), value(denominator));
            let above = low.map_or(f64::INFINITY, |low| ratio / low);
            above.min(high.map_or(f64::INFINITY, |high| high / ratio))
        }
    }
}

/// Statements of one review, or of all, by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RankingTally {
    /// Statements that hold.
    pub holds: usize,
    /// Ties.
    pub ties: usize,
    /// Ties of figures whose intervals are narrow.
    pub ties_narrow: usize,
    /// Statements that fail.
    pub fails: usize,
    /// Statements that were not run.
    pub not_run: usize,
}

impl RankingTally {
    /// Counts `statements`.
    pub fn of<'a>(statements: impl IntoIterator<Item = &'a JudgedStatement>) -> Self {
        let mut tally = Self::default();
        for statement in statements {
            match statement.verdict {
                RankingVerdict::Holds => tally.holds += 1,
                RankingVerdict::Tie { is_narrow } => {
                    tally.ties += 1;
                    tally.ties_narrow += usize::from(is_narrow);
                }
                RankingVerdict::Fails => tally.fails += 1,
                RankingVerdict::NotRun { .. } => tally.not_run += 1,
            }
        }
        tally
    }

    /// Statements that were run.
    pub const fn run(&self) -> usize {
        self.holds + self.ties + self.fails
    }

    /// Share that holds or ties, in percent; absent where none was run.
    pub fn percent(&self) -> Option<f64> {
        (self.run() > 0).then(|| (self.holds + self.ties) as f64 * 100.0 / self.run() as f64)
    }
}

#[cfg(test)]
mod tests;
