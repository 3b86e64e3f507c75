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

use lab::plan::{Plan, PlannedStep};
use lab::progress::Progress;
use lab::wanted::TargetSetup;
use lab::{Error, Kind};
use results::{Run, Step, StepKind};
use serde::{Deserialize, Serialize};
use ssd::{DriveSpec, Surroundings};

use crate::validate::{NeededSteps, SEED, carry_out_all};

pub use self::statement::{
    Claim, ClaimedFigure, Reduction, Relation, SetupName, StatedLoad, Statement, Window, parse,
};

/// The project's own table.
const TEXT: &str = include_str!("../../../published/rankings.csv");
/// Path of it in the project.
const FILE: &str = "published/rankings.csv";
/// Difference below which two figures are alike, as a share.
const TIE_SHARE: f64 = 0.02;
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

/// Statements, and the drives that they are judged by.
#[derive(Debug)]
pub struct RankingQuestion {
    /// The statements.
    pub statements: Vec<Statement>,
    /// Drives, each of another name.
    pub drives: Vec<DriveSpec>,
}

impl RankingQuestion {
    /// The question of the catalogue and of `named` drives, which stand for those of their names:
    /// of `statements` those that can be run and are about one of them; all where none is named.
    ///
    /// # Errors
    /// Fails if no statement is left.
    pub fn new(mut statements: Vec<Statement>, named: Vec<DriveSpec>) -> Result<Self, Error> {
        let mut drives = ssd::catalogue::drives();
        if !named.is_empty() {
            let is_named = |name: &str| named.iter().any(|drive| drive.name == name);
            statements.retain(|statement| statement.setups().iter().any(|it| is_named(&it.drive)));
            drives.retain(|drive| !is_named(&drive.name));
            drives.extend(named);
        }
        if statements.is_empty() {
            let error = Error::new(Kind::Input, "no statement is about any of these drives");
            return Err(error.hint("statements name drives of the catalogue, or a file's `name`"));
        }
        Ok(Self { statements, drives })
    }
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
    let work = StatementWork::new(statements, drives);
    let simulations = work.needed.simulations(drives, &work.plans);
    let runs = carry_out_all(&simulations, drives, threads, progress)?;
    let all = statements.iter().zip(&work.figures);
    Ok(all.map(|(statement, figures)| judged(statement, figures, &work.needed, &runs)).collect())
}

/// Steps that the figure of one drive is read from.
#[derive(Debug)]
struct FigureSteps {
    name: SetupName,
    /// Setup, and number of the plan.
    of: (TargetSetup, usize),
    ids: Vec<String>,
}

/// Steps that statements need, and those of the figures of each, or the reason why it has none.
#[derive(Debug, Default)]
struct StatementWork {
    plans: Vec<Plan>,
    needed: NeededSteps,
    figures: Vec<Result<Vec<FigureSteps>, String>>,
}

impl StatementWork {
    fn new(statements: &[Statement], drives: &[DriveSpec]) -> Self {
        let mut work = Self::default();
        for statement in statements {
            let claim = statement.claim.as_ref().map_err(Clone::clone);
            let figures = claim.and_then(|claim| work.figures(claim, drives));
            for figure in figures.iter().flatten() {
                work.needed.add(&figure.of, &figure.ids);
            }
            work.figures.push(figures);
        }
        work
    }

    /// The figures that a claim is about.
    fn figures(&mut self, claim: &Claim, drives: &[DriveSpec]) -> Result<Vec<FigureSteps>, String> {
        let number = self.plan(&claim.figure.protocol)?;
        let ids = step_ids(&claim.figure, &self.plans[number])?;
        let figure = |name: &SetupName| {
            let of = (setup(name, drives)?, number);
            Ok(FigureSteps { name: name.clone(), of, ids: ids.clone() })
        };
        claim.relation.setups().into_iter().map(figure).collect()
    }

    /// Number of the plan of a protocol.
    fn plan(&mut self, name: &str) -> Result<usize, String> {
        if let Some(number) = self.plans.iter().position(|plan| plan.protocol == name) {
            return Ok(number);
        }
        let protocol = workload::catalogue::find_protocol(name);
        let protocol = protocol.ok_or_else(|| format!("there is no protocol `{name}`"))?;
        let plan = Plan::new(&protocol, &workload::catalogue::workloads(), SEED);
        self.plans.push(plan.expect("a test plans every protocol"));
        Ok(self.plans.len() - 1)
    }
}

/// The setup of this name, at the drive's own time lapse.
fn setup(name: &SetupName, drives: &[DriveSpec]) -> Result<TargetSetup, String> {
    let SetupName { drive, format, host } = name.clone();
    let spec = drives.iter().find(|spec| spec.name == drive);
    let spec = spec.ok_or_else(|| format!("no model is named `{drive}`"))?;
    if !spec.formats().contains(&format) {
        return Err(format!("{drive} has no format `{format}`"));
    }
    spec.host(&host).map_err(|error| error.to_string())?;
    let (time_lapse, surroundings) = (spec.time_lapse_default(), Surroundings::default());
    Ok(TargetSetup { target: drive, format, host, time_lapse, surroundings, precision: None })
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
    figures: &Result<Vec<FigureSteps>, String>,
    needed: &NeededSteps,
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
    let (claim, figures) = match (&statement.claim, figures) {
        (Ok(claim), Ok(figures)) => (claim, figures),
        (Err(reason), _) | (_, Err(reason)) => return not_run(reason),
    };
    let figure = |FigureSteps { name, of, ids }: &FigureSteps| {
        let run = &runs[needed.simulation(of)];
        let found: Option<Vec<&Step>> = ids.iter().map(|id| run.step(id)).collect();
        let found = found?;
        let interval = claim.figure.interval(&found);
        let value = claim.figure.value(&found)?;
        let interval_share = interval.map(|it| (it.high - it.low) / value);
        Some(SetupFigure { setup: name.clone(), value, interval_share })
    };
    let figures: Option<Vec<SetupFigure>> = figures.iter().map(figure).collect();
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
