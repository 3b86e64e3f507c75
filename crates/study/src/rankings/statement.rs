//! Statements of reviews on the order of drives, and on ratios between them, as a table has them.

use std::collections::BTreeSet;

use lab::{Error, Kind};
use results::published::Metric;
use results::{ConfidenceInterval, Step, Summary};
use serde::{Deserialize, Serialize};

/// Columns that say how a statement is run; [`parse`] needs each of them.
const COLUMNS: [&str; 14] = [
    "id",
    "relation",
    "better",
    "order",
    "numerator",
    "denominator",
    "ratio_low",
    "ratio_high",
    "protocol",
    "suite",
    "workload",
    "step_load",
    "window",
    "step_metric",
];
/// Workload of a statement about the preconditioning of a suite.
const PRECONDITIONING: &str = "precondition";

/// Statement of a review.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Name of the row.
    pub id: String,
    /// Review that it is from.
    pub review: String,
    /// The sentence; may be empty.
    pub text: String,
    /// The figures that it is about; the reason why it cannot be run where it is a sentence alone.
    pub claim: Result<Claim, String>,
}

impl Statement {
    /// The drives that it is about, each once; none where it cannot be run.
    pub fn setups(&self) -> BTreeSet<&SetupName> {
        self.claim.as_ref().map(|claim| claim.relation.setups()).unwrap_or_default()
    }
}

/// A relation between figures of drives.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The relation.
    pub relation: Relation,
    /// The figure of each drive.
    pub figure: ClaimedFigure,
}

/// Relation between the figures of drives.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// Each drive is ahead of those of all later groups.
    Order {
        /// True if more is better.
        is_high_better: bool,
        /// Groups, the best one first; drives of one group are not compared.
        groups: Vec<Vec<SetupName>>,
    },
    /// The figure of one drive over that of another lies within bounds.
    Ratio {
        /// Drive above the line.
        numerator: SetupName,
        /// Drive below it.
        denominator: SetupName,
        /// Least ratio; absent: any.
        low: Option<f64>,
        /// Largest ratio; absent: any.
        high: Option<f64>,
    },
}

impl Relation {
    /// The drives that it is about, each once.
    pub fn setups(&self) -> BTreeSet<&SetupName> {
        match self {
            Self::Order { groups, .. } => groups.iter().flatten().collect(),
            Self::Ratio { numerator, denominator, .. } => [numerator, denominator].into(),
        }
    }
}

/// A drive in a format on a host: `iodrive-duo/stock/windows`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SetupName {
    /// Name of the drive.
    pub drive: String,
    /// Name of its format.
    pub format: String,
    /// Name of its host.
    pub host: String,
}

impl std::fmt::Display for SetupName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.drive, self.format, self.host)
    }
}

/// Figure of a drive that a statement is about.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedFigure {
    /// Name of the protocol.
    pub protocol: String,
    /// Name of its suite.
    pub suite: String,
    /// Workload that is measured; absent: the preconditioning, or the only one of the suite.
    pub workload: Option<String>,
    /// True if it is about the preconditioning.
    pub is_preconditioning: bool,
    /// Loads, at least one.
    pub loads: Vec<StatedLoad>,
    /// Part of each load.
    pub window: Window,
    /// Reduction of the values of several loads or intervals; absent where there is one.
    pub reduction: Option<Reduction>,
    /// Metric.
    pub metric: Metric,
}

impl ClaimedFigure {
    /// Its value in the steps of its loads; absent where nothing was completed.
    pub(super) fn value(&self, steps: &[&Step]) -> Option<f64> {
        let of = |summary: &Summary| self.metric.of(summary, 1_000_000);
        let mut values = Vec::new();
        for step in steps {
            match self.window {
                Window::Step => values.push(of(step.summary.as_ref()?)?),
                Window::Settled => values.push(of(step.settled.as_ref()?)?),
                Window::Intervals | Window::FirstIntervals(_) | Window::LastThird => {
                    let samples = &step.samples;
                    let part = match self.window {
                        Window::FirstIntervals(count) => &samples[..count.min(samples.len())],
                        Window::LastThird => &samples[samples.len() - samples.len() / 3..],
                        _ => &samples[..],
                    };
                    values.extend(part.iter().filter_map(|sample| of(&sample.summary)));
                }
            }
        }
        values.sort_by(f64::total_cmp);
        match self.reduction {
            None => values.first().copied(),
            Some(Reduction::Max) => values.last().copied(),
            Some(Reduction::Median) => values.get(values.len() / 2).copied(),
        }
    }

    /// Interval of its value; absent where none is known: of several loads, of a preconditioning,
    /// of deviations and maxima.
    pub(super) fn interval(&self, steps: &[&Step]) -> Option<ConfidenceInterval> {
        let [step] = steps else { return None };
        let spread = step.spread.as_ref().filter(|_| self.window == Window::Step)?;
        match self.metric {
            Metric::Iops => spread.iops,
            Metric::AvgLatency => {
                let ns = spread.latency.latency_ns_avg?;
                Some(ConfidenceInterval { low: ns.low / 1e6, high: ns.high / 1e6, ..ns })
            }
            _ => None,
        }
    }
}

/// Load that a statement names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatedLoad {
    /// `T4Q8`: threads, and requests that each keeps outstanding.
    Grid(u16, u16),
    /// `Q8`: requests outstanding in all.
    Outstanding(u32),
}

/// Part of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// All of it, as one.
    Step,
    /// Its last steady-state window, as one.
    Settled,
    /// Each of its intervals.
    Intervals,
    /// Each of its first intervals, so many.
    FirstIntervals(usize),
    /// Each interval of its last third.
    LastThird,
}

/// Reduction of several values to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The largest.
    Max,
    /// The median.
    Median,
}

/// Row of the table.
#[derive(Debug, Deserialize)]
struct StatementRow {
    id: String,
    #[serde(default, alias = "seed")]
    review: String,
    #[serde(default)]
    statement: String,
    #[serde(default)]
    readable: String,
    relation: String,
    better: String,
    order: String,
    numerator: String,
    denominator: String,
    ratio_low: String,
    ratio_high: String,
    protocol: String,
    suite: String,
    workload: String,
    step_load: String,
    window: String,
    #[serde(default)]
    reduce: String,
    step_metric: String,
}

/// Reads a table of statements; `file` names it in errors. A row with `no` in a column `readable`
/// is a sentence alone.
///
/// # Errors
/// Names file, line and column of what is wrong, and what would be right.
pub fn parse(text: &str, file: &str) -> Result<Vec<Statement>, Error> {
    let refused = |line: u64, text: &str| Error::new(Kind::Input, format!("{file}:{line}: {text}"));
    let mut reader = csv::Reader::from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let head = reader.headers().map_err(|error| refused(1, &error.to_string()))?.clone();
    if let Some(lacking) = COLUMNS.iter().find(|name| !head.iter().any(|it| it == **name)) {
        let hint = format!("give a table in CSV with the columns {}", COLUMNS.join(", "));
        return Err(refused(1, &format!("no column `{lacking}`")).hint(hint));
    }
    let mut statements: Vec<Statement> = Vec::new();
    let mut record = csv::StringRecord::new();
    let mut line = 2;
    while reader.read_record(&mut record).map_err(|error| refused(line, &error.to_string()))? {
        line = record.position().map_or(line, csv::Position::line);
        let row: StatementRow =
            record.deserialize(Some(&head)).map_err(|error| refused(line, &error.to_string()))?;
        let statement = row.statement().map_err(|fault| {
            refused(line, &format!("{} has `{}`", fault.column, fault.value)).hint(fault.hint)
        })?;
        if statements.iter().any(|it| it.id == statement.id) {
            return Err(refused(line, &format!("a second row is named {}", statement.id)));
        }
        statements.push(statement);
    }
    Ok(statements)
}

/// Value of a column that is none.
#[derive(Debug)]
struct Fault {
    column: &'static str,
    value: String,
    hint: &'static str,
}

fn fault(column: &'static str, value: &str, hint: &'static str) -> Fault {
    Fault { column, value: value.to_owned(), hint }
}

impl StatementRow {
    fn statement(self) -> Result<Statement, Fault> {
        let claim = match self.readable.as_str() {
            "no" => Err("a sentence, with no figures that a protocol has".to_owned()),
            "" | "yes" => Ok(Claim { relation: self.relation()?, figure: self.figure()? }),
            other => return Err(fault("readable", other, "write yes or no")),
        };
        Ok(Statement { id: self.id, review: self.review, text: self.statement, claim })
    }

    fn relation(&self) -> Result<Relation, Fault> {
        match self.relation.as_str() {
            "order" => {
                let is_high_better = match self.better.as_str() {
                    "high" => true,
                    "low" => false,
                    other => return Err(fault("better", other, "write high or low")),
                };
                let group = |text: &str| text.split_whitespace().map(setup_name).collect();
                let groups = self.order.split(" > ").map(group);
                let groups: Option<Vec<Vec<SetupName>>> = groups.collect();
                let groups = groups.filter(|it| it.len() > 1 && it.iter().all(|it| !it.is_empty()));
                let hint = "write `a/stock/linux > b/stock/linux c/stock/linux`, best first";
                let groups = groups.ok_or_else(|| fault("order", &self.order, hint))?;
                Ok(Relation::Order { is_high_better, groups })
            }
            "ratio" => {
                let setup = |column, text: &str| {
                    setup_name(text).ok_or_else(|| fault(column, text, "write drive/format/host"))
                };
                let bound = |column, text: &str| match text.trim() {
                    "" => Ok(None),
                    number => {
                        let bound = number.parse().ok().filter(|it: &f64| it.is_finite());
                        bound.map(Some).ok_or_else(|| fault(column, text, "write a number"))
                    }
                };
                let (low, high) =
                    (bound("ratio_low", &self.ratio_low)?, bound("ratio_high", &self.ratio_high)?);
                if low.is_none() && high.is_none() || low > high && high.is_some() {
                    let hint = "give a bound, and a lower one that is no larger than the upper";
                    return Err(fault("ratio_low", &self.ratio_low, hint));
                }
                Ok(Relation::Ratio {
                    numerator: setup("numerator", &self.numerator)?,
                    denominator: setup("denominator", &self.denominator)?,
                    low,
                    high,
                })
            }
            other => Err(fault("relation", other, "write order or ratio")),
        }
    }

    fn figure(&self) -> Result<ClaimedFigure, Fault> {
        let loads: Option<Vec<StatedLoad>> =
            self.step_load.split_whitespace().map(stated_load).collect();
        let loads = loads.filter(|it| !it.is_empty());
        let hint = "write T16Q16, several apart by spaces, or Q8 for 8 requests in all";
        let is_preconditioning = self.workload == PRECONDITIONING;
        let workload = Some(self.workload.clone());
        let figure = ClaimedFigure {
            protocol: self.protocol.clone(),
            suite: self.suite.clone(),
            workload: workload.filter(|it| !it.is_empty() && !is_preconditioning),
            is_preconditioning,
            loads: loads.ok_or_else(|| fault("step_load", &self.step_load, hint))?,
            window: window(&self.window)?,
            reduction: match self.reduce.as_str() {
                "" => None,
                "max" => Some(Reduction::Max),
                "median" => Some(Reduction::Median),
                other => return Err(fault("reduce", other, "write max, median or nothing")),
            },
            metric: metric(&self.step_metric)?,
        };
        let is_one =
            figure.loads.len() == 1 && matches!(figure.window, Window::Step | Window::Settled);
        if !is_one && figure.reduction.is_none() {
            let hint = "say max or median: there are several loads or intervals";
            return Err(fault("reduce", "", hint));
        }
        Ok(figure)
    }
}

fn setup_name(text: &str) -> Option<SetupName> {
    let mut parts = text.split('/').map(str::to_owned);
    let (drive, format, host) = (parts.next()?, parts.next()?, parts.next()?);
    let is_whole =
        parts.next().is_none() && ![&drive, &format, &host].iter().any(|it| it.is_empty());
    is_whole.then_some(SetupName { drive, format, host })
}

fn stated_load(text: &str) -> Option<StatedLoad> {
    if let Some(outstanding) = text.strip_prefix('Q') {
        return outstanding.parse().ok().filter(|it| *it > 0).map(StatedLoad::Outstanding);
    }
    let (threads, queue) = text.strip_prefix('T')?.split_once('Q')?;
    let number = |text: &str| text.parse().ok().filter(|it: &u16| *it > 0);
    Some(StatedLoad::Grid(number(threads)?, number(queue)?))
}

fn window(text: &str) -> Result<Window, Fault> {
    const HINT: &str = "write step, settled, all intervals, first N intervals or last third of \
                        intervals";
    match text {
        "step" => Ok(Window::Step),
        "settled" => Ok(Window::Settled),
        "all intervals" => Ok(Window::Intervals),
        "last third of intervals" => Ok(Window::LastThird),
        other => {
            let count = other.strip_prefix("first ").and_then(|it| it.strip_suffix(" intervals"));
            let count = count.and_then(|it| it.parse().ok()).filter(|it| *it > 0);
            count.map(Window::FirstIntervals).ok_or_else(|| fault("window", other, HINT))
        }
    }
}

/// The metric that `run.json` has by this name, or a table of figures.
fn metric(name: &str) -> Result<Metric, Fault> {
    let hint =
        "write iops, mb_s, latency_ms_avg, latency_ms_stdev, latency_ms_max or latency_ms_p99";
    let figure = name.strip_prefix("latency_ms_").map(|it| format!("{it}_latency_ms"));
    Metric::named(figure.as_deref().unwrap_or(name)).ok_or_else(|| fault("step_metric", name, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "id,review,relation,better,order,numerator,denominator,ratio_low,ratio_high,\
                        protocol,suite,workload,step_load,window,reduce,step_metric\n";

    fn parsed(rows: &str) -> Result<Vec<Statement>, String> {
        parse(&format!("{HEAD}{rows}\n"), "mine.csv").map_err(|error| error.to_string())
    }

    #[test]
    fn an_order_has_groups_and_a_ratio_bounds_that_may_be_open() {
        let found = parsed(
            "A,x,order,low,a/s/l > b/s/l c/s/w,,,,,enterprise,4k,precondition,T16Q16,first 10 \
             intervals,max,latency_ms_max\n\
             B,x,ratio,,,a/s/l,b/s/l,1.5,,mail-server,light,,Q8,step,,mb_s",
        );
        let [order, ratio] = &found.unwrap()[..] else { panic!("two rows") };
        let (order, ratio) = (order.claim.as_ref().unwrap(), ratio.claim.as_ref().unwrap());
        let Relation::Order { is_high_better: false, groups } = &order.relation else {
            panic!("{order:?}")
        };
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(groups[1][1].to_string(), "c/s/w");
        assert!(order.figure.is_preconditioning && order.figure.workload.is_none());
        assert_eq!(order.figure.window, Window::FirstIntervals(10));
        assert_eq!(order.figure.metric, Metric::MaxLatency);
        let Relation::Ratio { low: Some(1.5), high: None, .. } = ratio.relation else {
            panic!("{ratio:?}")
        };
        assert_eq!(ratio.figure.loads, [StatedLoad::Outstanding(8)]);
        assert_eq!(ratio.relation.setups().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_column() {
        let rest = ",,,,enterprise,4k,4k-rand-read,T16Q16,step,,iops";
        for (row, told) in [
            (format!("A,x,order,best,a/s/l > b/s/l,{rest}"), "better has `best`"),
            (format!("A,x,order,high,a/s/l,{rest}"), "order has `a/s/l`"),
            (format!("A,x,order,high,a/s > b/s/l,{rest}"), "order has `a/s > b/s/l`"),
            ("A,x,ratio,,,a/s/l,b/s/l,,,e,4k,w,T1Q1,step,,iops".into(), "ratio_low has ``"),
            ("A,x,ratio,,,a/s/l,b/s/l,2,1,e,4k,w,T1Q1,step,,iops".into(), "ratio_low has `2`"),
            ("A,x,ratio,,,a/s/l,b/s/l,1,2,e,4k,w,16,step,,iops".into(), "step_load has `16`"),
            ("A,x,ratio,,,a/s/l,b/s/l,1,2,e,4k,w,T1Q1,all,,iops".into(), "window has `all`"),
            ("A,x,ratio,,,a/s/l,b/s/l,1,2,e,4k,w,T1Q1 T2Q1,step,,iops".into(), "reduce has ``"),
            ("A,x,ratio,,,a/s/l,b/s/l,1,2,e,4k,w,T1Q1,step,,tps".into(), "step_metric has `tps`"),
        ] {
            let error = parsed(&row).unwrap_err();
            assert!(error.starts_with("mine.csv:2: ") && error.contains(told), "{row}: {error}");
        }
        let error = parse("id,relation\n", "mine.csv").unwrap_err().to_string();
        assert!(error.contains("mine.csv:1: no column `better`"), "{error}");
        let row = format!("A,x,order,high,a/s/l > b/s/l,{rest}");
        let error = parsed(&format!("{row}\n{row}")).unwrap_err();
        assert!(error.contains("mine.csv:3: a second row is named A"), "{error}");
    }
}
