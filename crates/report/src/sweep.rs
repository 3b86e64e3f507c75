//! The page of a sweep: each metric against each thing that was swept, and every number.

use std::fmt::Write as _;

use results::mark::marked;
use results::sweep::{
    Dimension, Lifetime, LifetimeBasis, Point, PointOutcome, SettledDrive, Sweep, Value,
};
use results::{ConfidenceInterval, Spread};

use crate::chance::{beside, origin};
use crate::chart::{Axis, Bar, Bars, Body, Chart, Ends, Look, Series, Unit};
use crate::number;
use crate::text::{Cell, Text, anchor};

/// Lines of one chart at most: as many as colours tell apart.
const LINES_MAX: usize = 8;

/// Heading of the over-provisioning of a point.
const OVER_PROVISIONING: &str = "Over-provisioning, % of user";

/// Reads the interval of a metric.
type Chance = fn(&Spread) -> Option<ConfidenceInterval>;

/// One metric of a settled drive.
struct SweepMetric {
    id: &'static str,
    title: &'static str,
    unit: Unit,
    explain: &'static str,
    of: fn(&SettledDrive) -> Option<f64>,
    /// Its interval, in the unit of the spread, and what that is multiplied with for the unit here.
    spread: Option<(Chance, f64)>,
}

const METRICS: [SweepMetric; 18] = [
    SweepMetric {
        id: "iops",
        title: "Throughput",
        unit: Unit::Iops,
        explain: "Reads and writes together, after the preconditioning.",
        of: |settled| Some(settled.iops),
        spread: Some((|it| it.iops, 1.0)),
    },
    SweepMetric {
        id: "wa",
        title: "Write amplification",
        unit: Unit::Times,
        explain: "Bytes programmed for each byte that the host wrote; lower lasts longer.",
        of: |settled| settled.write_amplification,
        spread: None,
    },
    SweepMetric {
        id: "hit-rate",
        title: "Hit rate",
        unit: Unit::Share,
        explain: "Share of what was read that the fast class held.",
        of: |settled| settled.tier?.hit_rate,
        spread: None,
    },
    SweepMetric {
        id: "slow-wa",
        title: "Write amplification of the slow class",
        unit: Unit::Times,
        explain: "Bytes that the slow class programmed for each byte that it was sent.",
        of: |settled| settled.tier?.slow_write_amplification,
        spread: None,
    },
    SweepMetric {
        id: "fast-per-day",
        title: "Drive writes per day of the fast class",
        unit: Unit::Plain,
        explain: "Times that all of the fast class is written in a day at this rate.",
        of: |settled| Some(settled.tier?.fast_drive_writes_per_day),
        spread: None,
    },
    SweepMetric {
        id: "slow-per-day",
        title: "Drive writes per day of the slow class",
        unit: Unit::Plain,
        explain: "Times that all of the slow class is written in a day at this rate.",
        of: |settled| Some(settled.tier?.slow_drive_writes_per_day),
        spread: None,
    },
    SweepMetric {
        id: "average",
        title: "Average latency",
        unit: Unit::Millis,
        explain: "Average over all requests, after the preconditioning.",
        of: |settled| Some(settled.latency.mean_ns()? / 1e6),
        spread: Some((|it| it.latency.latency_ns_avg, 1e-6)),
    },
    SweepMetric {
        id: "p50",
        title: "Median latency",
        unit: Unit::Millis,
        explain: "Half of the requests are faster.",
        of: |settled| Some(number::millis(settled.latency.p50_ns()? as f64)),
        spread: Some((|it| it.latency.latency_ns_p50, 1e-6)),
    },
    SweepMetric {
        id: "p99",
        title: "99th percentile of latency",
        unit: Unit::Millis,
        explain: "One request in a hundred is slower.",
        of: |settled| Some(number::millis(settled.latency.p99_ns()? as f64)),
        spread: Some((|it| it.latency.latency_ns_p99, 1e-6)),
    },
    SweepMetric {
        id: "p999",
        title: "99.9th percentile of latency",
        unit: Unit::Millis,
        explain: "One request in a thousand is slower.",
        of: |settled| Some(number::millis(settled.latency.p999_ns()? as f64)),
        spread: Some((|it| it.latency.latency_ns_p999, 1e-6)),
    },
    SweepMetric {
        id: "p9999",
        title: "99.99th percentile of latency",
        unit: Unit::Millis,
        explain: "One request in ten thousand is slower.",
        of: |settled| Some(number::millis(settled.latency.p9999_ns()? as f64)),
        spread: Some((|it| it.latency.latency_ns_p9999, 1e-6)),
    },
    SweepMetric {
        id: "written",
        title: "Host writes in a lifetime",
        unit: Unit::Petabytes,
        explain: "What the host can write before the drive is worn out, in decimal PB.",
        of: |settled| Some(lifetime(settled)?.host_writes_pb),
        spread: None,
    },
    SweepMetric {
        id: "per-day",
        title: "Drive writes per day",
        unit: Unit::Plain,
        explain: "Times that the whole drive can be written each day until its warranty ends.",
        of: |settled| lifetime(settled)?.drive_writes_per_day,
        spread: None,
    },
    SweepMetric {
        id: "years",
        title: "Years at the given load",
        unit: Unit::Years,
        explain: "Lifetime at the given load per day.",
        of: |settled| lifetime(settled)?.years,
        spread: None,
    },
    SweepMetric {
        id: "read-retries",
        title: "Read retries at the end of its life",
        unit: Unit::Plain,
        explain: "Mean retries per read once the program/erase cycles of the drive's file are used \
                  up, of data that was stored for the longest retention time in that file.",
        of: |settled| settled.lifetime?.read_retries_at_end_of_life,
        spread: None,
    },
    SweepMetric {
        id: "price-gb",
        title: "Price of each GB",
        unit: Unit::Plain,
        explain: "The given price divided by the user capacity.",
        of: |settled| settled.unit_prices?.per_gb,
        spread: None,
    },
    SweepMetric {
        id: "price-iops",
        title: "Price of each 1,000 requests/s",
        unit: Unit::Plain,
        explain: "The given price divided by the rate in steady state.",
        of: |settled| settled.unit_prices?.per_thousand_iops,
        spread: None,
    },
    SweepMetric {
        id: "price-written",
        title: "Price of each TB written",
        unit: Unit::Plain,
        explain: "The given price divided by what the host can write in a lifetime.",
        of: |settled| settled.unit_prices?.per_tb_written,
        spread: None,
    },
];

impl SweepMetric {
    /// Its interval at `point`, in its unit.
    fn interval(&self, point: &Point) -> Option<ConfidenceInterval> {
        let (of, factor) = self.spread?;
        let it = of(&point.settled()?.spread?)?;
        Some(ConfidenceInterval::new(it.kind, it.low * factor, it.high * factor))
    }
}

/// Lifetime of a settled drive; none before, since it follows from the write amplification.
fn lifetime(settled: &SettledDrive) -> Option<Lifetime> {
    settled.lifetime.filter(|_| settled.steady)
}

/// The points of a chart that are not those of a settled drive; empty where all are.
fn cautions(sweep: &Sweep) -> Vec<String> {
    let caution = |unsteady| format!("{unsteady} when their figures were taken, see the table.");
    sweep.unsteady().map(caution).into_iter().collect()
}

/// The body of the page.
pub(crate) fn body(sweep: &Sweep) -> String {
    let mut html = format!(
        "<main><header id=\"top\"><h1>{}{}</h1><p class=\"verdict\">Modelled sweep over \
         {}: {}.{}</p><p class=\"small\">{}</p>{}</header>",
        Text(&sweep.heading()),
        if sweep.unvalidated { "" } else { ", modelled" },
        Text(&swept(sweep).join(" and ")),
        Text(&sweep.load()),
        Text(&over_provisioning(sweep)),
        Text(&conditions(sweep)),
        validation_note(sweep),
    );
    for (index, dimension) in sweep.dimensions.iter().enumerate() {
        if dimension.values.len() > 1 {
            html.push_str(&section(sweep, index, dimension));
        }
    }
    html + &numbers(sweep) + "</main>"
}

/// The table of contents of the page.
pub(crate) fn contents(sweep: &Sweep) -> String {
    let mut html = String::from(
        "<nav aria-label=\"Contents\"><p class=\"brand\">Floatgate</p><ol>\
         <li><a href=\"#top\">Sweep</a></li>",
    );
    for dimension in sweep.dimensions.iter().filter(|it| it.values.len() > 1) {
        let _ = write!(
            html,
            "<li><a href=\"#against-{}\">Against {}</a></li>",
            anchor(&dimension.key),
            Text(&quantity(&dimension.key)),
        );
    }
    html + "<li><a href=\"#numbers\">Modelled numbers</a></li></ol></nav>"
}

/// Returns a sentence on the over-provisioning of the points; empty where none has any.
fn over_provisioning(sweep: &Sweep) -> String {
    let settled = sweep.points.iter().filter_map(Point::settled);
    let percents = || settled.clone().filter_map(|settled| settled.over_provisioning_percent);
    let (Some(low), Some(high)) = (percents().reduce(f64::min), percents().reduce(f64::max)) else {
        return String::new();
    };
    let (low, high) = (number::trimmed(low), number::trimmed(high));
    let range = if low == high { low } else { format!("{low} to {high}") };
    format!(" Over-provisioning, (raw − user) ÷ user capacity, is {range} %.")
}

/// Returns the swept quantities, with units.
fn swept(sweep: &Sweep) -> Vec<String> {
    keys(sweep).into_iter().map(quantity).collect()
}

fn keys(sweep: &Sweep) -> Vec<&str> {
    sweep.dimensions.iter().map(|dimension| dimension.key.as_str()).collect()
}

/// The sentence on what published figures do not confirm; empty where there is nothing.
fn validation_note(sweep: &Sweep) -> String {
    let paragraph = |note: String| format!("<p class=\"small\">{}</p>", Text(&note));
    sweep.validation_note().map(paragraph).unwrap_or_default()
}

fn conditions(sweep: &Sweep) -> String {
    let lapse = match sweep.time_lapse {
        1 => "at full scale".to_owned(),
        k => format!("time lapse: 1/{k} of the capacity for 1/{k} of the time"),
    };
    let price = sweep.price.as_ref().map_or(String::new(), |it| {
        format!("; price {} {} ({})", number::money(it.amount), it.currency, it.origin())
    });
    format!(
        "{}, format {}, host {}; each point purged, filled once in order, loaded until steady, for \
         twelve hours at most, and then loaded once more for the figures; {lapse}; seed {}, model \
         version {}{price}.",
        sweep.id, sweep.format, sweep.host, sweep.seed, sweep.model_version,
    )
}

/// All metrics against one dimension, a line for each combination of the others.
fn section(sweep: &Sweep, index: usize, dimension: &Dimension) -> String {
    let lines = lines(sweep, index);
    let mut html = format!(
        "<section id=\"against-{}\"><h2>Against {}</h2>",
        anchor(&dimension.key),
        Text(&quantity(&dimension.key))
    );
    if lines.len() > LINES_MAX {
        let _ = write!(
            html,
            "<p>The first {LINES_MAX} of {} combinations of the others are drawn; the table has \
             all.</p>",
            lines.len()
        );
    }
    let figures: String = METRICS
        .iter()
        .map(|metric| chart(sweep, index, dimension, &lines, metric).figure(false))
        .collect();
    let _ = write!(html, "<div class=\"charts\">{figures}</div></section>");
    html
}

/// Suffixes of keys that are units, and how a unit is written.
const UNITS: [(&str, &str); 15] = [
    ("_mb_s", "MB/s"),
    ("_gb_s", "GB/s"),
    ("_percent", "%"),
    ("_bytes", "B"),
    ("_kib", "KiB"),
    ("_mib", "MiB"),
    ("_gib", "GiB"),
    ("_gb", "GB"),
    ("_tb", "TB"),
    ("_ns", "ns"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_w", "W"),
    ("_c", "°C"),
];

/// Returns the readable name of a key, with its unit: `user capacity, GB` for `user_capacity_gb`,
/// and `nand: t program, µs` for `nand.t_program_us`.
fn quantity(key: &str) -> String {
    let unit = UNITS.iter().find_map(|(suffix, unit)| Some((key.strip_suffix(suffix)?, unit)));
    let (name, unit) =
        unit.map_or((key, String::new()), |(name, unit)| (name, format!(", {unit}")));
    let name = match name {
        "queue_per_thread" => "queue depth of each thread".to_owned(),
        "read" if !unit.is_empty() => "requests that read".to_owned(),
        _ => name.replace('_', " ").replacen('.', ": ", 1),
    };
    name + &unit
}

/// Points that differ in the dimension numbered `index` only, with what they have in common.
fn lines(sweep: &Sweep, index: usize) -> Vec<(String, Vec<&Point>)> {
    let mut lines: Vec<(String, Vec<&Point>)> = Vec::new();
    for point in &sweep.points {
        let others = keys(sweep).into_iter().zip(&point.at).enumerate();
        let words: Vec<String> = others
            .filter(|(place, _)| *place != index && sweep.dimensions[*place].values.len() > 1)
            .map(|(_, (key, value))| format!("{key} {value}"))
            .collect();
        let name = if words.is_empty() { sweep.drive.clone() } else { words.join(", ") };
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    lines
}

fn chart(
    sweep: &Sweep,
    index: usize,
    dimension: &Dimension,
    lines: &[(String, Vec<&Point>)],
    metric: &SweepMetric,
) -> Chart {
    let drawn = &lines[..lines.len().min(LINES_MAX)];
    // Two numbers make no line: bars say all that there is.
    let is_numeric =
        dimension.values.len() > 2 && dimension.values.iter().all(|value| value.number().is_some());
    let body = if is_numeric {
        Body::Lines(series(drawn, index, metric), Vec::new())
    } else {
        Body::Bars(groups(drawn, index, dimension, metric))
    };
    Chart {
        id: format!("{}-{}", anchor(&dimension.key), metric.id),
        title: metric.title.into(),
        explain: metric.explain,
        provenance: vec![format!(
            "{}, seed {}, against {}: {}.",
            marked(&sweep.id, sweep.unvalidated),
            sweep.seed,
            dimension.key,
            sweep.load(),
        )],
        cautions: cautions(sweep),
        x: Axis::linear(quantity(&dimension.key), Unit::Plain),
        y: Axis::linear(metric.title, metric.unit),
        ends: Ends::Last,
        is_wide: false,
        body,
    }
}

fn series(lines: &[(String, Vec<&Point>)], index: usize, metric: &SweepMetric) -> Vec<Series> {
    let each = lines.iter().enumerate().map(|(line, (name, known))| {
        let found = known.iter().filter_map(|point| {
            Some((point.at.get(index)?.number()?, (metric.of)(point.settled()?)?))
        });
        let mut points: Vec<(f64, f64)> = found.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let errors = errors(index, metric, known);
        Series { name: name.clone(), look: Look::of_run(line), points, errors, labels: Vec::new() }
    });
    each.filter(|series| !series.points.is_empty()).collect()
}

/// The intervals of `metric` at points along the dimension numbered `index`.
fn errors(index: usize, metric: &SweepMetric, points: &[&Point]) -> Vec<(f64, f64, f64)> {
    let of = |point: &&Point| {
        let it = metric.interval(point)?;
        Some((point.at.get(index)?.number()?, it.low, it.high))
    };
    points.iter().filter_map(of).collect()
}

fn groups(
    lines: &[(String, Vec<&Point>)],
    index: usize,
    dimension: &Dimension,
    metric: &SweepMetric,
) -> Vec<Bars> {
    let bars = |value: &Value| {
        let each = lines.iter().enumerate().filter_map(|(line, (name, points))| {
            let point = points.iter().find(|point| point.at.get(index) == Some(value))?;
            let value = (metric.of)(point.settled()?)?;
            Some(Bar { name: name.clone(), tone: Look::of_run(line).tone, value })
        });
        each.collect::<Vec<Bar>>()
    };
    let groups =
        dimension.values.iter().map(|value| Bars { label: value.to_string(), bars: bars(value) });
    groups.filter(|group| !group.bars.is_empty()).collect()
}

/// Every point, with the metrics that any of them has.
fn numbers(sweep: &Sweep) -> String {
    let mut html = String::from(
        "<section id=\"numbers\"><h2>Modelled numbers</h2><div class=\"scroll\">\
         <table class=\"swept\"><thead><tr>",
    );
    let settled = || sweep.points.iter().filter_map(Point::settled);
    let is_known = |metric: &&SweepMetric| settled().any(|it| (metric.of)(it).is_some());
    let metrics: Vec<&SweepMetric> = METRICS.iter().filter(is_known).collect();
    let titles = metrics.iter().map(|metric| match metric.unit.symbol() {
        "" => metric.title.to_owned(),
        symbol => format!("{}, {symbol}", metric.title),
    });
    let heads = keys(sweep).into_iter().map(quantity).chain([OVER_PROVISIONING.to_owned()]);
    let heads = heads.chain(titles);
    for head in heads.chain(["remark".to_owned()]) {
        let _ = write!(html, "<th scope=\"col\">{}</th>", Text(&head));
    }
    html.push_str("</tr></thead><tbody>");
    for point in &sweep.points {
        let _ = write!(html, "<tr>{}</tr>", row(point, &metrics));
    }
    html.push_str("</tbody></table></div>");
    let points = sweep.points.iter();
    let intervals = points.flat_map(|it| metrics.iter().filter_map(move |of| of.interval(it)));
    let origin = origin(&intervals.collect::<Vec<_>>());
    if !origin.is_empty() {
        let _ = write!(html, "<p class=\"small\">{}</p>", origin.trim_start());
    }
    html + &validation_note(sweep) + "</section>"
}

fn row(point: &Point, metrics: &[&SweepMetric]) -> String {
    let mut html = String::new();
    for value in &point.at {
        let _ = write!(html, "<th scope=\"row\">{}</th>", Text(&value.to_string()));
    }
    let shown = |value: Option<f64>| value.map_or("–".into(), number::plain);
    let shares = point.settled().and_then(|settled| settled.over_provisioning_percent);
    let _ = write!(html, "<td>{}</td>", shown(shares));
    for metric in metrics {
        let value = point.settled().and_then(|settled| (metric.of)(settled));
        let _ = write!(html, "<td>{}</td>", Cell(&beside(shown(value), metric.interval(point))));
    }
    let _ = write!(html, "<td class=\"prose\">{}</td>", Text(&remark(point)));
    html
}

fn remark(point: &Point) -> String {
    match &point.outcome {
        PointOutcome::Infeasible { reason } => format!("infeasible: {reason}"),
        PointOutcome::Measured(settled) => {
            let steady = if settled.steady { "" } else { "steady state was not reached" };
            let limited = if settled.host_limited { "limited by the host" } else { "" };
            let basis = match settled.lifetime.map(|lifetime| lifetime.basis) {
                Some(LifetimeBasis::Rating) => "lifetime by the rating of the maker",
                Some(LifetimeBasis::Cycles) => "lifetime by program/erase cycles",
                None => "",
            };
            let mean = settled.latency.mean_note().unwrap_or_default();
            let said: Vec<&str> = [steady, limited, &mean, basis]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect();
            said.join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use results::LatencySummary;

    use super::*;

    fn point(at: Vec<Value>, iops: f64) -> Point {
        let settled = SettledDrive {
            user_capacity_gb: 640.0,
            raw_capacity_gb: 800.0,
            over_provisioning_percent: Some(25.0),
            steady: true,
            host_limited: false,
            precondition_s: 9000.0,
            iops,
            throughput_mb_s: 175.0,
            latency: LatencySummary::default(),
            spread: None,
            write_amplification: Some(3.0),
            tier: None,
            lifetime: None,
            unit_prices: None,
        };
        Point { at, outcome: PointOutcome::Measured(Box::new(settled)) }
    }

    fn sweep() -> Sweep {
        let word = |text: &str| Value::Word(text.into());
        let values = [(400.0, "greedy"), (400.0, "fifo"), (560.0, "greedy"), (720.0, "greedy")];
        let mut points: Vec<Point> = values
            .iter()
            .map(|(gb, policy)| point(vec![Value::Number(*gb), word(policy)], 100.0 * gb))
            .collect();
        let reason = "no <spare>".to_owned();
        let at = vec![Value::Number(720.0), word("fifo")];
        points.push(Point { at, outcome: PointOutcome::Infeasible { reason } });
        let capacities = [400.0, 560.0, 720.0].map(Value::Number).to_vec();
        let dimensions = vec![
            Dimension { key: "user_capacity_gb".into(), values: capacities },
            Dimension { key: "victim".into(), values: vec![word("greedy"), word("fifo")] },
        ];
        crate::example::sweep(dimensions, points)
    }

    #[test]
    fn numbers_are_drawn_as_lines_and_words_as_bars() {
        let html = crate::sweep(&sweep());
        let figure = |id: &str| {
            let from = html.find(&format!("<figure id=\"{id}\"")).unwrap();
            html[from..from + html[from..].find("</figure>").unwrap()].to_owned()
        };
        assert!(figure("user-capacity-gb-iops").contains("\"kind\":\"lines\""));
        assert!(figure("victim-iops").contains("\"kind\":\"bars\""));
        assert!(!html.contains("user-capacity-gb-years"), "no load was given");
    }

    #[test]
    fn the_page_names_load_phase_and_over_provisioning() {
        let html = crate::sweep(&sweep());
        let load = "4k-rand-write at T16Q16, modelled after preconditioning to steady state";
        let head = &html[html.find("class=\"verdict\"").unwrap()..];
        let head = &head[..head.find("</header>").unwrap()];
        assert!(head.contains(load), "{head}");
        assert!(
            head.contains("Over-provisioning, (raw − user) ÷ user capacity, is 25 %."),
            "{head}"
        );
        assert!(html.contains(&format!("<th scope=\"col\">{OVER_PROVISIONING}</th>")));
        assert!(html.contains(&format!("against victim: {load}.")), "below each chart");
    }

    #[test]
    fn a_number_has_its_interval_below_and_its_unit_above_where_it_has_any() {
        let mut one = sweep();
        let plain = crate::sweep(&one);
        assert!(plain.contains("<th scope=\"col\">Throughput, IOPS</th>"));
        assert!(!plain.contains("Drive writes per day"), "no point has any");
        let PointOutcome::Measured(settled) = &mut one.points[0].outcome else { panic!() };
        let kind = results::IntervalKind::Repeats;
        let iops = Some(ConfidenceInterval::new(kind, 39_000.0, 41_000.0));
        settled.spread = Some(Spread { iops, ..Spread::default() });
        let (host_writes_pb, drive_writes_per_day) = (1.0, Some(2.5));
        settled.lifetime = Some(Lifetime {
            basis: LifetimeBasis::Rating,
            host_writes_pb,
            drive_writes_per_day,
            years: None,
            read_retries_at_end_of_life: None,
        });
        let html = crate::sweep(&one);
        let interval = "40,000<span class=\"interval below\">39,000 to 41,000</span>";
        assert!(html.contains(interval), "{html}");
        assert!(html.contains("repeats with other seeds"), "where it comes from");
        assert!(html.contains("<th scope=\"col\">Drive writes per day</th>"), "no unit, no comma");
    }

    #[test]
    fn an_axis_says_the_quantity_and_its_unit() {
        let said =
            ["user_capacity_gb", "threads", "nand.t_program_us", "read_percent"].map(quantity);
        let expect =
            ["user capacity, GB", "threads", "nand: t program, µs", "requests that read, %"];
        assert_eq!(said, expect);
    }

    #[test]
    fn an_unvalidated_model_is_marked_in_title_figures_and_table() {
        let html = crate::sweep(&Sweep { unvalidated: true, ..sweep() });
        let heading = format!("<h1>{}, unvalidated model</h1>", sweep().title);
        assert!(html.contains(&heading), "{html:.400}");
        assert_eq!(
            html.matches(results::mark::UNVALIDATED_REASON).count(),
            2,
            "the head and the table"
        );
        let figures = html.matches("<figure id=").count();
        assert!(html.matches(", unvalidated model, seed").count() >= figures);
        let known = crate::sweep(&sweep());
        assert!(!known.contains("nvalidated"));
        assert_eq!(known.matches("not with a changed user_capacity_gb").count(), 2);
    }

    #[test]
    fn an_infeasible_point_is_in_the_table_with_its_reason() {
        let html = crate::sweep(&sweep());
        assert!(html.contains("infeasible: no &lt;spare&gt;"));
    }
}
