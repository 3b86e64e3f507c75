//! Published figures beside what was measured.

use std::fmt::Write as _;

use blockio::text::stated_load;
use results::Figure;
use results::conditions::representative;
use results::published::ANY;

use crate::chart::Look;
use crate::number;
use crate::subject::Subject;
use crate::text::Text;

/// The section; empty where no run has published figures.
pub(crate) fn section(subjects: &[Subject<'_>]) -> String {
    let published = || subjects.iter().filter(|subject| !subject.run.published.is_empty());
    let elsewhere = elsewhere(subjects);
    if published().next().is_none() {
        if elsewhere.is_empty() {
            return elsewhere;
        }
        return format!(
            "<section id=\"published\"><h2>Published figures</h2>{elsewhere}</section>\n"
        );
    }
    let mut html = format!(
        "<section id=\"published\"><h2>Against published figures</h2><p>{}{}</p>",
        Text(&tally(subjects)),
        fitted(subjects),
    );
    let is_out = |figure: &Figure| figure.is_in_tolerance() == Some(false);
    if published().any(|subject| subject.run.published.iter().any(is_out)) {
        let _ = write!(html, "<h3>Out of tolerance</h3>{}", table(subjects, is_out));
    }
    let _ = writeln!(
        html,
        "<details><summary>Every figure</summary>{}</details><p class=\"small\">The ratio is \
         {} ÷ published, to the nearest end of a published range. In tolerance are rates \
         within 15 %, average latencies within 20 %, and standard deviations, maxima and \
         percentiles within a factor of two. Here the deviation of a mixed load is the mean of \
         those of reads and of writes, as reviews chart it.</p>{elsewhere}</section>",
        table(subjects, |_| true),
        own_heading(subjects).to_lowercase(),
    );
    html
}

/// Figures of workloads that were measured here which another protocol measured, with what else
/// differs; empty without any.
fn elsewhere(subjects: &[Subject<'_>]) -> String {
    let mut rows = String::new();
    for subject in subjects {
        for figure in &subject.run.published_elsewhere {
            let steps = subject.run.steps.iter();
            let of = steps.filter(|it| it.is_primary() && it.workload == figure.workload);
            let Some(step) = representative(of) else { continue };
            let protocol = format!("protocol ({})", figure.document);
            let host = (figure.host != ANY && figure.host != subject.run.target.host)
                .then(|| format!("{} host", figure.host));
            let phase = (figure.phase != "primary").then(|| figure.phase.replace('-', " "));
            let apart = std::iter::once(protocol).chain(host).chain(phase);
            let apart = apart.chain(figure.apart_from(step));
            let _ = write!(
                rows,
                "<tr><th scope=\"row\">{}</th><td class=\"prose\">{}</td>\
                 <td class=\"prose\">{}</td><td>{}</td><td class=\"prose\">{}</td></tr>",
                Text(&figure.id),
                Text(&match subjects {
                    [_] => figure.workload.clone(),
                    _ => format!("{}, {}", figure.workload, subject.label),
                }),
                Text(&figure.metric.replace('_', " ")),
                published_value(figure),
                Text(&apart.collect::<Vec<_>>().join(", ")),
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<h3>Published under other conditions</h3><p>Another protocol measured these workloads; \
         the figures are not comparable with those of this page, so no ratio is given.</p>\
         <div class=\"scroll\"><table class=\"elsewhere\"><thead><tr><th scope=\"col\">Figure</th>\
         <th scope=\"col\">Workload</th><th scope=\"col\">Metric</th>\
         <th scope=\"col\">Published</th><th scope=\"col\">What differs</th></tr></thead>\
         <tbody>{rows}</tbody></table></div>"
    )
}

/// Returns the heading of the runs' own figures: `Modelled` where all are of models.
fn own_heading(subjects: &[Subject<'_>]) -> &'static str {
    if subjects.iter().all(|it| it.run.target.kind.is_model()) { "Modelled" } else { "Measured" }
}

/// The figures of each run that are asked for.
fn table(subjects: &[Subject<'_>], is_asked: fn(&Figure) -> bool) -> String {
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"published\"><thead><tr><th scope=\"col\">Figure</th>\
         <th scope=\"col\">Conditions</th><th scope=\"col\">Metric</th><th scope=\"col\">Published\
         </th><th scope=\"col\">{}</th><th scope=\"col\">Ratio</th><th scope=\"col\">\
         Tolerance</th></tr></thead>",
        own_heading(subjects),
    );
    for subject in subjects {
        let figures = subject.run.published.iter().filter(|figure| is_asked(figure));
        let rows: String = figures.map(row).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(
            html,
            "<tbody><tr class=\"load\"><th scope=\"rowgroup\" colspan=\"7\" class=\"t{}\"><i \
             class=\"key\"></i>{}</th></tr>{rows}</tbody>",
            Look::of_run(subject.index).tone,
            Text(&subject.label),
        );
    }
    html + "</table></div>"
}

/// Returns a sentence on what the agreement of a model shows; empty without a model.
pub(crate) fn fitted(subjects: &[Subject<'_>]) -> &'static str {
    let is_fitted = |subject: &Subject<'_>| {
        subject.run.target.kind.is_model() && !subject.run.published.is_empty()
    };
    if subjects.iter().any(is_fitted) {
        " Models are fitted to published figures: agreement shows how good the fit is, and not how \
         good a prediction would be."
    } else {
        ""
    }
}

/// Returns a sentence on the number of comparable figures that were reproduced.
pub(crate) fn tally(subjects: &[Subject<'_>]) -> String {
    let figures = || subjects.iter().flat_map(|subject| &subject.run.published);
    let judged: Vec<bool> = figures().filter_map(Figure::is_in_tolerance).collect();
    let within = judged.iter().filter(|within| **within).count();
    let missing = figures().count() - judged.len();
    let listed = subjects.iter().flat_map(|subject| {
        let within = |it: &&Figure| it.is_in_tolerance() == Some(true);
        let of_run = subject.run.published.iter().filter(within);
        of_run.filter(|figure| subject.run.is_from_listed_stalls(figure))
    });
    let listed = match listed.count() {
        0 => String::new(),
        count => format!(", {count} of these from listed stalls"),
    };
    let mut said = format!(
        "{within} of {} published figures that these runs can be compared with are in \
         tolerance{listed}.",
        judged.len(),
    );
    if missing > 0 {
        let _ = write!(said, " {missing} more were not measured by these runs.");
    }
    said
}

/// The value or the range that was published.
fn published_value(figure: &Figure) -> String {
    let range = figure.value_high - figure.value_low > figure.value_high.abs() * 1e-9;
    if range && figure.value_low == 0.0 {
        format!("at most {}", number::plain(figure.value_high))
    } else if range {
        format!("{} to {}", number::plain(figure.value_low), number::plain(figure.value_high))
    } else {
        number::plain(figure.value_high)
    }
}

fn row(figure: &Figure) -> String {
    let load = match stated_load(&figure.threads, &figure.queue_per_thread) {
        stated if stated.is_empty() => stated,
        stated => format!(", {stated}"),
    };
    let conditions = format!(
        "{}{load}, {}, {} format, {} host",
        figure.workload, figure.phase, figure.mode, figure.host
    );
    let published = published_value(figure);
    let (class, within) = match figure.is_in_tolerance() {
        Some(true) => ("good", "in"),
        Some(false) => ("bad", "out"),
        None => ("absent", "not measured"),
    };
    let note = if figure.note.is_empty() { &figure.document } else { &figure.note };
    format!(
        "<tr><th scope=\"row\" title=\"{}\">{}</th><td class=\"prose\">{}</td>\
         <td class=\"prose\">{}\
         </td><td>{published}</td><td>{}</td><td>{}</td><td class=\"{class}\">{within}</td></tr>",
        Text(note),
        Text(&figure.id),
        Text(&conditions),
        Text(&figure.metric.replace('_', " ")),
        figure.measured.map_or("–".into(), number::plain),
        figure.ratio().map_or("–".into(), number::plain),
    )
}
