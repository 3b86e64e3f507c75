//! Order of runs: who is first at low, middle and full load, by each metric, and every place.

use std::fmt::Write as _;

use results::Run;
use results::compare::compare;
use results::order::{LoadLevel, LoadOrder, MetricOrder, OrderMetric, Standing, orders};
use results::repeats::groups;

use crate::chart::Look;
use crate::comparison::named;
use crate::number::{self, millis};
use crate::subject::Subject;
use crate::text::{Text, listed};

/// The tables of runs that differ in no condition; empty where no two of them measured one load.
pub(crate) fn section(subjects: &[Subject<'_>]) -> String {
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let groups = groups(&runs);
    let orders = orders(&compare(&runs), &groups);
    if orders.is_empty() {
        return String::new();
    }
    let page = OrderPage { subjects, groups: &groups };
    format!(
        "<h3>Order</h3>{}<details><summary>Every place, with its figure</summary>{}</details>\
         <p class=\"small\">Each workload at its least load, the one in the middle and the \
         greatest. The first is named with its lead over the second: how much more it does, or \
         how much lower its latency is. Runs are even where they are less than 5 % apart, or \
         where their intervals or repeats overlap. A figure that a warning puts in doubt has no \
         place, and the first is that of the others.</p>",
        page.leaders(&orders),
        page.places(&orders),
    )
}

/// Name of the group whose first run is the one at this index.
pub(crate) fn of_run(subjects: &[Subject<'_>], groups: &[Vec<usize>], run: usize) -> String {
    let group = groups.iter().find(|group| group[0] == run);
    group.map_or_else(|| subjects[run].label.clone(), |group| named(subjects, group))
}

/// Subjects of the tables.
struct OrderPage<'a> {
    subjects: &'a [Subject<'a>],
    groups: &'a [Vec<usize>],
}

impl OrderPage<'_> {
    /// The first under each load by each metric.
    fn leaders(&self, orders: &[LoadOrder]) -> String {
        let mut html = format!(
            "<div class=\"scroll\"><table class=\"places\"><thead><tr><th scope=\"col\">Workload\
             </th><th scope=\"col\">Load</th>{}</tr></thead><tbody>",
            heads(),
        );
        for order in orders {
            let _ = write!(
                html,
                "<tr><th scope=\"row\">{}</th><td>{}</td>",
                Text(&order.workload),
                load(order),
            );
            order.metrics.iter().for_each(|it| html.push_str(&self.leader(it)));
            html.push_str("</tr>");
        }
        html + "</tbody></table></div>"
    }

    fn leader(&self, order: &MetricOrder) -> String {
        let first: Vec<&Standing> = order.standings.iter().filter(|it| it.rank == 1).collect();
        if order.standings.len() < 2 {
            return "<td class=\"absent\">–</td>".into();
        }
        if first.len() == order.standings.len() {
            return "<td class=\"absent\">even</td>".into();
        }
        let Some(leader) = order.leader() else {
            let names: Vec<String> = first.iter().map(|it| self.name(it.run)).collect();
            return format!("<td>{}</td>", Text(&listed(&names)));
        };
        let lead = lead(order.metric, leader.factor);
        let of = match order.withheld.len() {
            0 => String::new(),
            _ => format!(", of {}", order.standings.len()),
        };
        format!(
            "<td class=\"t{}\"><i class=\"key\"></i>{} <span class=\"interval\">{lead}{of}</span>\
             </td>",
            self.tone(leader.run),
            Text(&self.name(leader.run)),
        )
    }

    /// Every subject under each load, with its figures and their ranks.
    fn places(&self, orders: &[LoadOrder]) -> String {
        let mut html = format!(
            "<div class=\"scroll\"><table class=\"places\"><thead><tr><th scope=\"col\">Run</th>{}\
             </tr></thead><tbody>",
            heads(),
        );
        for order in orders {
            let _ = write!(
                html,
                "<tr class=\"load\"><th scope=\"rowgroup\" colspan=\"6\">{} <span>{}</span></th>\
                 </tr>",
                Text(&order.workload),
                load(order),
            );
            for group in self.groups {
                let _ = write!(
                    html,
                    "<tr><th scope=\"row\" class=\"t{}\"><i class=\"key\"></i>{}</th>",
                    self.tone(group[0]),
                    Text(&self.name(group[0])),
                );
                order.metrics.iter().for_each(|it| html.push_str(&place(it, group[0])));
                html.push_str("</tr>");
            }
        }
        html + "</tbody></table></div>"
    }

    fn name(&self, run: usize) -> String {
        of_run(self.subjects, self.groups, run)
    }

    fn tone(&self, run: usize) -> usize {
        Look::of_run(self.subjects[run].index).tone
    }
}

/// Lead over the second, whose figure is `factor` times worse; empty beside one that did nothing.
fn lead(metric: OrderMetric, factor: f64) -> String {
    match metric {
        OrderMetric::Iops if factor.is_infinite() => String::new(),
        OrderMetric::Iops => format!("+{}", number::percent(factor - 1.0)),
        _ => format!("−{}", number::percent(1.0 - 1.0 / factor)),
    }
}

/// Figure and rank of one subject by one metric.
fn place(order: &MetricOrder, run: usize) -> String {
    if order.withheld.contains(&run) {
        return "<td class=\"absent\">in doubt</td>".into();
    }
    let Some(standing) = order.standings.iter().find(|it| it.run == run) else {
        return "<td class=\"absent\">–</td>".into();
    };
    let figure = match order.metric {
        OrderMetric::Iops => number::whole(standing.figure),
        _ => number::trimmed(millis(standing.figure)),
    };
    let rank = match standing.rank {
        1 => "<b>1.</b>".into(),
        rank => format!("{rank}."),
    };
    format!("<td>{figure} <span class=\"interval\">{rank}</span></td>")
}

fn heads() -> String {
    let head = |metric: OrderMetric| {
        let name = match metric {
            OrderMetric::Iops => "IOPS",
            OrderMetric::LatencyAvg => "average, ms",
            OrderMetric::LatencyP999 => "p99.9, ms",
            OrderMetric::LatencyMax => "longest, ms",
            OrderMetric::LatencyStdev => "deviation, ms",
        };
        format!("<th scope=\"col\">{name}</th>")
    };
    OrderMetric::ALL.map(head).concat()
}

fn load(order: &LoadOrder) -> String {
    let level = match order.level {
        LoadLevel::Low => "low",
        LoadLevel::Middle => "middle",
        LoadLevel::Full => "full",
    };
    format!("T{}Q{}, {level}", order.threads, order.queue_per_thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_over_nothing_is_no_number_that_does_not_exist() {
        assert_eq!(lead(OrderMetric::Iops, 1.5), "+50 %");
        assert_eq!(lead(OrderMetric::LatencyStdev, 2.0), "−50 %");
        assert_eq!(lead(OrderMetric::LatencyStdev, f64::INFINITY), "−100 %", "no deviation");
        assert_eq!(lead(OrderMetric::Iops, f64::INFINITY), "");
    }
}
