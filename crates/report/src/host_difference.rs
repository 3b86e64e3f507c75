//! Differences between hosts: how much one drive varies with its host, in a sentence and a table.

use std::fmt::Write as _;

use results::compare::MEANINGFUL_MIN;
use results::host_difference::{
    Distance, HostDifference, HostDifferenceFigure, HostDifferenceRow, Spread, host_differences,
};
use results::mark::marked;
use results::{Run, StepKind};

use crate::number;
use crate::subject::{Subject, workload_of};
use crate::text::Text;
use crate::text::listed;

/// A part for each drive and format that was measured under several hosts; empty without any.
pub(crate) fn sections(subjects: &[Subject<'_>]) -> String {
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let all = host_differences(&runs);
    all.iter().map(|difference| section(subjects, difference, all.len() > 1)).collect()
}

/// Sentences on the rates of the hosts, one for each drive and format, with a space before each.
pub(crate) fn bottom_line(subjects: &[Subject<'_>]) -> String {
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let all = host_differences(&runs);
    let mut said = String::new();
    for difference in &all {
        let Some([Some(rates), ..]) = &difference.overall else { continue };
        let format = &runs[difference.runs[0]].target.format;
        let format = if all.len() > 1 { format!(" ({format})") } else { String::new() };
        let (hosts, extent) = (listed(&difference.hosts), extent(difference, rates));
        let _ = write!(said, " Between {hosts}{format} rates are {extent}.");
    }
    said
}

fn section(
    subjects: &[Subject<'_>],
    difference: &HostDifference,
    is_one_of_several: bool,
) -> String {
    let run = subjects[difference.runs[0]].run;
    let of = if is_one_of_several {
        let name = format!("{} {}", run.target.title, run.target.format);
        format!(", {}", marked(name.trim_end(), run.target.unvalidated))
    } else {
        String::new()
    };
    let mut html = format!("<h3>Differences between hosts{}</h3><p>", Text(&of));
    let _ = write!(html, "{}</p>", Text(&sentences(difference)));
    if difference.overall.is_none() {
        return html;
    }
    html.push_str("<div class=\"scroll\"><table class=\"parity\"><thead><tr>");
    html.push_str("<th scope=\"col\">Workload</th>");
    for host in &difference.hosts {
        let _ = write!(html, "<th scope=\"col\">IOPS, {}</th>", Text(host));
    }
    for figure in HostDifferenceFigure::ALL {
        let _ = write!(html, "<th scope=\"col\">{} difference</th>", heading(figure));
    }
    html.push_str("</tr></thead><tbody>");
    for row in &difference.rows {
        html.push_str(&drawn(run, difference, row));
    }
    let equal = number::percent(MEANINGFUL_MIN);
    let _ = write!(
        html,
        "</tbody></table></div><p class=\"small\">Difference: (largest − smallest) ÷ largest over \
         the hosts under one load; the median over the loads, and in grey the largest, with the \
         slower host. Less than {equal} counts as equal. IOPS are geometric means over the loads \
         that every host measured; a preconditioning counts by its last five rounds.</p>"
    );
    html
}

/// Heading of a figure, lower case but for abbreviations.
const fn heading(figure: HostDifferenceFigure) -> &'static str {
    match figure {
        HostDifferenceFigure::Iops => "IOPS",
        HostDifferenceFigure::Average => "average latency",
        HostDifferenceFigure::P999 => "p99.9 latency",
        HostDifferenceFigure::Maximum => "longest request",
    }
}

/// The figures in a sentence, and the loads that were left out in another.
fn sentences(difference: &HostDifference) -> String {
    let mut said = String::new();
    if let Some(overall) = &difference.overall {
        let hosts = listed(&difference.hosts);
        let whats = [
            &*format!("Rates of {hosts}"),
            "average latencies",
            "p99.9 latencies",
            "longest requests",
        ];
        let each = whats.into_iter().zip(overall);
        let each = each.filter_map(|(what, spread)| Some((what, spread.as_ref()?)));
        let each = each.map(|(what, spread)| format!("{what} are {}", extent(difference, spread)));
        said += &(each.collect::<Vec<_>>().join("; ") + ". ");
    }
    if difference.left_out > 0 {
        let _ = write!(
            said,
            "Not judged: {} loads that write, since the drive was not in steady state under every \
             host.",
            difference.left_out,
        );
    }
    said.trim_end().to_owned()
}

/// `within 5 % of each other under 40 of 53 loads, largest difference 12 % (8k-70-30 T2Q2, windows
/// slower than linux)`.
fn extent(difference: &HostDifference, spread: &Spread) -> String {
    let Spread { loads, equal, widest, .. } = spread;
    let most = format!("{} ({})", number::percent(widest.apart), at(difference, widest));
    let limit = number::percent(MEANINGFUL_MIN);
    let under = match (equal, loads) {
        (equal, loads) if equal == loads => format!("all {loads} loads"),
        (0, loads) => format!("none of {loads} loads"),
        _ => format!("{equal} of {loads} loads"),
    };
    format!("within {limit} of each other under {under}, largest difference {most}")
}

/// The load of a distance, and the hosts that are this far apart.
fn at(difference: &HostDifference, distance: &Distance) -> String {
    let Distance { workload, threads, queue_per_thread, best, worst, .. } = distance;
    let (best, worst) = (&difference.hosts[*best], &difference.hosts[*worst]);
    format!("{workload} T{threads}Q{queue_per_thread}, {worst} slower than {best}")
}

fn drawn(run: &Run, difference: &HostDifference, row: &HostDifferenceRow) -> String {
    let settled = if row.kind == StepKind::Precondition { ", last five rounds" } else { "" };
    let name = workload_of(run, &row.suite, &row.workload);
    let mut html = format!("<tr><th scope=\"row\">{}{settled}</th>", Text(&name));
    for iops in &row.iops {
        let _ = write!(html, "<td>{}</td>", number::whole(*iops));
    }
    for spread in &row.spreads {
        let Some(spread) = spread else {
            html.push_str("<td>–</td>");
            continue;
        };
        let widest = &spread.widest;
        let told = if widest.apart < MEANINGFUL_MIN { "ratio even" } else { "ratio" };
        let worst = Text(&difference.hosts[widest.worst]).to_string();
        let most = match spread.loads {
            1 => worst,
            _ => format!(
                "≤ {} T{}Q{}, {worst}",
                number::percent(widest.apart),
                widest.threads,
                widest.queue_per_thread,
            ),
        };
        let _ = write!(
            html,
            "<td><span class=\"{told}\">{}</span> <span class=\"interval\">{most}</span></td>",
            number::percent(spread.median),
        );
    }
    html + "</tr>"
}

#[cfg(test)]
mod tests {
    use crate::example::{FAST, STOCK, Shape, run};
    use crate::review;

    #[test]
    fn hosts_of_one_drive_get_a_sentence_and_a_table() {
        let (linux, mut windows) = (run(STOCK), run(Shape { settled_iops: 30_000.0, ..STOCK }));
        windows.target.host = "windows".into();
        let page = review(&[linux, windows], "Hosts");
        assert!(page.contains("<h3>Differences between hosts</h3>"));
        assert!(page.contains("windows slower than linux"), "the sentence names the slower one");
        assert!(page.contains("<th scope=\"col\">IOPS, windows</th>"));
        let between = "Between linux and windows rates are within 5 % of each other under";
        assert!(page.contains(between), "the bottom line says it too");
    }

    #[test]
    fn formats_are_no_hosts() {
        let page = review(&[run(STOCK), run(FAST)], "Formats");
        assert!(!page.contains("Differences between hosts"));
    }
}
