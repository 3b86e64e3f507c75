//! Points of each drive against the others, and the sentences that say for whom each is: both
//! from the order of runs that differ in no condition.

use std::fmt::Write as _;

use results::Run;
use results::compare::compare;
use results::headlines::Headlines;
use results::order::{LoadLevel, LoadOrder, Margin, MetricOrder, OrderMetric, orders};
use results::repeats::groups;

use crate::conditions;
use crate::number::{self, millis, short};
use crate::order::of_run;
use crate::subject::Subject;
use crate::text::{Text, listed};

/// Points of a drive by one metric at most, on each side.
const POINTS_MAX: usize = 2;
/// Metrics that points are about: the average mirrors the rate where as much is outstanding, and
/// one longest request is chance.
const METRICS: [OrderMetric; 3] =
    [OrderMetric::Iops, OrderMetric::LatencyP999, OrderMetric::LatencyStdev];

/// Runs that differ in no condition, in order.
pub(super) struct RankedRuns<'a> {
    subjects: Vec<Subject<'a>>,
    groups: Vec<Vec<usize>>,
    orders: Vec<LoadOrder>,
}

/// Sentence about one drive under one load, and by how much the drives differ.
struct Point {
    sentence: String,
    workload: String,
    /// By how much the drive is better than the other; below 1 where it is worse.
    factor: f64,
}

impl<'a> RankedRuns<'a> {
    /// The groups of `subjects` in which two or more meet, all of them settled or none.
    pub(super) fn all(subjects: &[Subject<'a>]) -> Vec<Self> {
        let ranked = |subjects: Vec<Subject<'a>>| {
            let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
            let groups = groups(&runs);
            let orders = orders(&compare(&runs), &groups);
            Self { subjects, groups, orders }
        };
        let is_settled = |it: &Subject<'_>| Headlines::of(it.run).is_settled;
        let is_fair =
            |of: &Vec<Subject<'_>>| of.iter().all(|it| is_settled(it) == is_settled(&of[0]));
        let groups = conditions::alike(subjects).into_iter().filter(is_fair).map(ranked);
        groups.filter(|it| !it.orders.is_empty()).collect()
    }

    /// The points of each drive, ahead of the others and behind them.
    pub(super) fn points(&self) -> String {
        let mut html = String::new();
        for group in &self.groups {
            let name = self.name(group[0]);
            let _ = write!(
                html,
                "<h3>{} against the others</h3><div class=\"verdict-lists\">\
                 <div class=\"pros\"><ul>{}</ul></div><div class=\"cons\"><ul>{}</ul></div></div>",
                Text(&name),
                list(&self.ahead(group[0]), "It leads under no load."),
                list(&self.behind(group[0]), "It is last under no load."),
            );
        }
        html
    }

    /// Loads under which the subject leads.
    fn ahead(&self, run: usize) -> Vec<Point> {
        self.points_of(run, MetricOrder::leader)
    }

    /// Loads under which the subject alone is last.
    fn behind(&self, run: usize) -> Vec<Point> {
        self.points_of(run, MetricOrder::last)
    }

    /// The points of the widest differences by each metric, one for each workload, where the margin
    /// that `of` finds is that of the subject.
    fn points_of(&self, run: usize, of: fn(&MetricOrder) -> Option<Margin>) -> Vec<Point> {
        let by_metric = |metric| {
            let of_load = |order: &LoadOrder| {
                let by = order.metrics.iter().find(|it| it.metric == metric)?;
                let margin = of(by).filter(|it| it.run == run)?;
                // Beside nothing, there is no factor to tell.
                let is_told = margin.factor.is_finite() && margin.factor > 0.0;
                is_told.then(|| point(order, metric, margin, &self.name(margin.than)))
            };
            let mut points: Vec<Point> = self.orders.iter().filter_map(of_load).collect();
            let width = |it: &Point| it.factor.ln().abs();
            points.sort_by(|a, b| width(b).total_cmp(&width(a)));
            let mut workloads: Vec<String> = Vec::new();
            points.retain(|it| {
                let is_new = !workloads.contains(&it.workload);
                workloads.push(it.workload.clone());
                is_new
            });
            points.truncate(POINTS_MAX);
            points
        };
        METRICS.into_iter().flat_map(by_metric).collect()
    }

    /// The sentences that say for which load each drive is.
    pub(super) fn bottom_line(&self) -> String {
        let sentences = [
            ("For throughput at full load", LoadLevel::Full, OrderMetric::Iops),
            ("For even latency at full load (p99.9)", LoadLevel::Full, OrderMetric::LatencyP999),
            ("For short answers at low load", LoadLevel::Low, OrderMetric::LatencyAvg),
        ];
        sentences
            .into_iter()
            .filter_map(|(purpose, level, metric)| self.purpose(purpose, level, metric))
            .collect()
    }

    /// The leaders by `metric` at `level`, each with its workloads; absent where none leads.
    fn purpose(&self, purpose: &str, level: LoadLevel, metric: OrderMetric) -> Option<String> {
        let mut leaders: Vec<(usize, Vec<String>)> = Vec::new();
        for order in self.orders.iter().filter(|order| order.level == level) {
            let by = order.metrics.iter().find(|it| it.metric == metric)?;
            let Some(leader) = by.leader() else { continue };
            match leaders.iter_mut().find(|(run, _)| *run == leader.run) {
                Some((_, workloads)) => workloads.push(order.workload.clone()),
                None => leaders.push((leader.run, vec![order.workload.clone()])),
            }
        }
        let said = |(run, workloads): &(usize, Vec<String>)| {
            format!("{} under {}", self.name(*run), listed(workloads))
        };
        let said: Vec<String> = leaders.iter().map(said).collect();
        (!said.is_empty()).then(|| format!(" {purpose}: {}.", said.join("; ")))
    }

    fn name(&self, run: usize) -> String {
        of_run(&self.subjects, &self.groups, run)
    }
}

/// The point of a drive beside the one called `than`.
fn point(order: &LoadOrder, metric: OrderMetric, margin: Margin, than: &str) -> Point {
    let Margin { figure, factor, .. } = margin;
    let (threads, queue) = (order.threads, order.queue_per_thread);
    let load = format!("{} at T{threads}Q{queue}", order.workload);
    let of_latency = |name: &str| {
        let figure = number::trimmed(millis(figure));
        let against = if factor > 1.0 {
            format!("{} below that of {than}", number::percent(1.0 - 1.0 / factor))
        } else {
            format!("{} times that of {than}", number::trimmed(1.0 / factor))
        };
        format!("{name} of {figure} ms under {load}, {against}.")
    };
    let sentence = match metric {
        OrderMetric::Iops => {
            let more = if factor > 1.0 { "more" } else { "fewer" };
            let by = number::percent((factor - 1.0).abs());
            format!("{} IOPS under {load}, {by} {more} than {than}.", short(figure))
        }
        OrderMetric::LatencyStdev => of_latency("Standard deviation of the latency"),
        OrderMetric::LatencyAvg => of_latency("Average latency"),
        OrderMetric::LatencyP999 => of_latency("p99.9 latency"),
        OrderMetric::LatencyMax => of_latency("Longest latency"),
    };
    Point { sentence, workload: order.workload.clone(), factor }
}

fn list(points: &[Point], none: &str) -> String {
    let mut html = String::new();
    for point in points {
        let _ = write!(html, "<li>{}</li>", Text(&point.sentence));
    }
    if html.is_empty() { format!("<li class=\"none\">{none}</li>") } else { html }
}
