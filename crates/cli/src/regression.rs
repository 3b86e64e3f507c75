//! Limits for jobs that guard a drive or a firmware: how far a figure of a later run may lie from
//! that of the first run.

use std::str::FromStr;

use blockio::Nanos;
use lab::results::{ConfidenceInterval, Run, Spread, Step, StepKind, Summary};

/// Name of the figure that no sampled load has.
const MAXIMUM: &str = "max";

/// Figures by name; true of latencies.
const FIGURES: [(&str, bool, FigureReader, Chance); 9] = [
    ("iops", false, |it| Some(it.iops), |it| it.iops),
    // All of a load's requests are alike: what is by chance in the rate is so in the throughput.
    ("mb_s", false, |it| Some(it.throughput_mb_s()), |it| it.iops),
    ("mean", true, |it| it.latency.mean_ns(), |it| it.latency.latency_ns_avg),
    ("p50", true, |it| it.latency.p50_ns().map(|ns| ns as f64), |it| it.latency.latency_ns_p50),
    ("p90", true, |it| it.latency.p90_ns().map(|ns| ns as f64), |it| it.latency.latency_ns_p90),
    ("p99", true, |it| it.latency.p99_ns().map(|ns| ns as f64), |it| it.latency.latency_ns_p99),
    ("p99.9", true, |it| it.latency.p999_ns().map(|ns| ns as f64), |it| it.latency.latency_ns_p999),
    (
        "p99.99",
        true,
        |it| it.latency.p9999_ns().map(|ns| ns as f64),
        |it| it.latency.latency_ns_p9999,
    ),
    (MAXIMUM, true, |it| it.latency.max_ns().map(|ns| ns as f64), |_| None),
];

/// Reads a figure of a load; none where it was not measured, or too few requests lie beyond it.
type FigureReader = fn(&Summary) -> Option<f64>;
/// Reads the interval in which such a figure lies by chance.
type Chance = fn(&Spread) -> Option<ConfidenceInterval>;
/// Figures of a load, and how far they may lie off by chance, where that is known.
type Figures<'a> = (&'a Summary, Option<&'a Spread>);

/// Limit of the change of one figure from the first run, such as `p99>+10%`.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    name: &'static str,
    is_latency: bool,
    read: FigureReader,
    chance: Chance,
    /// True if the figure must not be above the limit, false if not below.
    is_upper: bool,
    /// Change in percent of the first run's figure, at which the limit lies.
    percent: f64,
}

/// Judgement of one figure of one load.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// The figure is within the limit.
    Within,
    /// The figure is beyond the limit: the change in words.
    Beyond(String),
    /// The figure is, but the intervals of both runs overlap: chance may have done it.
    Chance(String),
}

/// Later runs, judged by limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitVerdict {
    /// Figures that were compared.
    pub(crate) compared: u64,
    /// A sentence for each figure beyond its limit.
    pub(crate) beyond: Vec<String>,
    /// A sentence for each figure that is beyond its limit and may be so by chance.
    pub(crate) by_chance: Vec<String>,
    /// Limits for which no load of a later run has the figure of the first.
    pub(crate) unjudged: Vec<String>,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a limit, such as `p99>+10%` or `iops<-5%`");
        let at = text.find(['<', '>']).ok_or_else(wrong)?;
        let (name, change) = (text[..at].trim(), text[at + 1..].trim());
        let percent = change.strip_suffix('%').and_then(|it| it.trim().parse::<f64>().ok());
        let percent = percent.filter(|it| it.is_finite() && *it > -100.0).ok_or_else(wrong)?;
        let found = FIGURES.iter().find(|(known, ..)| *known == name);
        let (name, is_latency, read, chance) = *found.ok_or_else(|| {
            let known = FIGURES.map(|(known, ..)| known).join(", ");
            format!("`{name}` is not a figure: use {known}")
        })?;
        Ok(Self { name, is_latency, read, chance, is_upper: text[at..].starts_with('>'), percent })
    }
}

impl Limit {
    /// The limit as it is typed.
    fn text(&self) -> String {
        format!("{}{}{:+}%", self.name, if self.is_upper { '>' } else { '<' }, self.percent)
    }

    /// Compares a load of a later run; none if one of both lacks the figure.
    fn judge(&self, first: Figures<'_>, later: Figures<'_>) -> Option<Verdict> {
        let (before, now) = ((self.read)(first.0).filter(|it| *it > 0.0)?, (self.read)(later.0)?);
        let limit = before * (1.0 + self.percent / 100.0);
        let is_beyond = if self.is_upper { now > limit } else { now < limit };
        let shown = |value: f64| {
            if self.is_latency {
                return Nanos::from_micros_f64(value / 1e3).to_string();
            }
            format!("{value:.1}")
        };
        let (name, change) = (self.name, (now / before - 1.0) * 100.0);
        // A limit such as `iops>-50%` asks for a change: that there is none is no chance.
        let is_worse = if self.is_upper { now > before } else { now < before };
        let (now, before, limit) = (shown(now), shown(before), self.percent);
        if !is_beyond {
            return Some(Verdict::Within);
        }
        let text =
            format!("{name} {now}, {before} in the first run: {change:+.1} %, limit {limit:+} %");
        let chance = |of: Figures<'_>| (self.chance)(of.1?);
        let overlap = chance(first).zip(chance(later)).is_some_and(|(a, b)| a.overlaps(&b));
        Some(if overlap && is_worse {
            Verdict::Chance(format!("{text}; no finding, since the 95 % intervals overlap"))
        } else {
            Verdict::Beyond(text)
        })
    }
}

/// Judges all runs but the first by limits.
pub(crate) fn judge(limits: &[Limit], runs: &[Run]) -> LimitVerdict {
    let mut judged = LimitVerdict::default();
    let Some((first, later)) = runs.split_first() else { return judged };
    for limit in limits {
        let before = judged.compared;
        for run in later {
            for step in &first.steps {
                let later = same(step, run);
                // Windows do not see the longest request of a load.
                let is_unseen = |it: &Step| limit.name == MAXIMUM && it.sampling_note().is_some();
                if is_unseen(step) || later.is_some_and(is_unseen) {
                    continue;
                }
                let later = later.and_then(figures);
                let verdict = figures(step).zip(later).and_then(|(a, b)| limit.judge(a, b));
                judged.compared += u64::from(verdict.is_some());
                let named = |what| format!("{} of {}: {what}", step.id, run.id);
                match verdict {
                    Some(Verdict::Beyond(what)) => judged.beyond.push(named(what)),
                    Some(Verdict::Chance(what)) => judged.by_chance.push(named(what)),
                    Some(Verdict::Within) | None => {}
                }
            }
        }
        if judged.compared == before {
            judged.unjudged.push(limit.text());
        }
    }
    judged
}

/// Figures of a load.
fn figures(step: &Step) -> Option<Figures<'_>> {
    Some((step.summary.as_ref()?, step.spread.as_ref()))
}

/// The measurement of another run of the load of a measurement.
fn same<'a>(step: &Step, run: &'a Run) -> Option<&'a Step> {
    let load = |it: &Step| (it.threads, it.queue_per_thread, it.round);
    let is_same = |it: &&Step| {
        it.kind == StepKind::Measure
            && (&it.suite, &it.workload, load(it)) == (&step.suite, &step.workload, load(step))
    };
    run.steps.iter().filter(|_| step.kind == StepKind::Measure).find(is_same)
}

#[cfg(test)]
mod tests {
    use lab::results::{IntervalKind, LatencySpread, LatencySummary};

    use super::*;

    /// Figures of a load of a thousand requests.
    fn load(iops: f64, latency_ns_p99: u64) -> Summary {
        let latency_ns_p99 = Some(latency_ns_p99);
        let latency = LatencySummary { count: 1000, latency_ns_p99, ..LatencySummary::default() };
        Summary { iops, latency, ..Summary::default() }
    }

    fn judged(text: &str, first: &Summary, later: &Summary) -> Option<Verdict> {
        text.parse::<Limit>().expect("a limit").judge((first, None), (later, None))
    }

    #[test]
    fn a_figure_beyond_its_limit_is_named_with_both_values_and_the_change() {
        let (first, later) = (load(1000.0, 1_000_000), load(940.0, 1_250_000));
        let p99 = "p99 1.25 ms, 1.00 ms in the first run: +25.0 %, limit +10 %";
        assert_eq!(judged("p99>+10%", &first, &later), Some(Verdict::Beyond(p99.to_owned())));
        let iops = "iops 940.0, 1000.0 in the first run: -6.0 %, limit -5 %";
        assert_eq!(judged("iops < -5%", &first, &later), Some(Verdict::Beyond(iops.to_owned())));
        for within in ["p99>+30%", "p99>25%", "iops<-10%", "iops>0%"] {
            assert_eq!(judged(within, &first, &later), Some(Verdict::Within), "{within}");
        }
    }

    #[test]
    fn a_difference_within_the_intervals_of_both_is_no_finding() {
        let (first, later) = (load(1000.0, 1_000_000), load(1000.0, 1_250_000));
        let spread = |low, high| Spread {
            latency: LatencySpread {
                latency_ns_p99: Some(ConfidenceInterval::new(IntervalKind::Repeats, low, high)),
                ..LatencySpread::default()
            },
            ..Spread::default()
        };
        let judged = |text: &str, before: Spread, now: Spread| {
            let limit = text.parse::<Limit>().expect("a limit");
            limit.judge((&first, Some(&before)), (&later, Some(&now))).expect("both have it")
        };
        let (wide, apart) = (spread(0.8e6, 1.2e6), spread(0.9e6, 1.0e6));
        let Verdict::Chance(told) = judged("p99>+10%", wide, spread(1.1e6, 1.4e6)) else {
            panic!("the intervals overlap")
        };
        assert!(told.ends_with("no finding, since the 95 % intervals overlap"), "{told}");
        assert!(matches!(judged("p99>+10%", apart, spread(1.1e6, 1.4e6)), Verdict::Beyond(_)));
        assert!(matches!(judged("p99<+50%", wide, spread(1.1e6, 1.4e6)), Verdict::Beyond(_)));
    }

    #[test]
    fn a_figure_that_was_not_measured_is_not_judged() {
        let few = load(1000.0, 1_000_000);
        assert_eq!(judged("p99.99>+10%", &few, &few), None, "a thousand requests have none");
        assert_eq!(judged("iops<-5%", &Summary::default(), &few), None);
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in ["", "p99", "p99>10", "p99>abc%", "p98>+1%", "p99=+1%", "iops<-100%"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
