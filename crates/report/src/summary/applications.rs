//! Applications in short: of each, the greatest rate that is told of every run.

use std::fmt::Write as _;

use results::{ApplicationFigures, PREDICTION_ERROR, Step, StepKind};

use crate::chart::Look;
use crate::number;
use crate::subject::Subject;
use crate::text::Text;
use crate::text::listed;

/// True if nothing but applications was measured: what is said of requests would be of none.
pub(crate) fn are_all(subjects: &[Subject<'_>]) -> bool {
    let steps = || subjects.iter().flat_map(|subject| &subject.run.steps);
    let measures = |step: &Step| matches!(step.kind, StepKind::Precondition | StepKind::Measure);
    steps().any(|step| step.application.is_some()) && !steps().any(measures)
}

/// Sentence on the greatest rate of each application, for each run.
pub(crate) fn sentence(subjects: &[Subject<'_>]) -> String {
    let of_run = |subject: &Subject<'_>, name| {
        let who = if subjects.len() > 1 { format!(" on {}", subject.label) } else { String::new() };
        match greatest(subject, name) {
            None => format!("not predicted{who}"),
            Some((clients, tps, _)) => {
                let plural = if clients == 1 { "" } else { "s" };
                format!("{}{who} at {clients} client{plural}", number::whole(tps))
            }
        }
    };
    let of = |(name, title)| {
        let with = subjects.iter().filter(|it| replays(it, name));
        let rates: Vec<String> = with.map(|it| of_run(it, name)).collect();
        format!("{title}: {}", listed(&rates))
    };
    let all: Vec<String> = names(subjects).into_iter().map(of).collect();
    let rates = all.join("; ");
    format!("Maximum transactions per second, predicted. {rates}. {PREDICTION_ERROR}")
}

/// The table; empty where no application was replayed.
pub(super) fn part(subjects: &[Subject<'_>]) -> String {
    let names = names(subjects);
    if names.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<h3>Applications: maximum transactions per second, predicted</h3>\
         <div class=\"scroll\"><table><thead><tr><th scope=\"col\">Application</th>\
         <th scope=\"col\">Run</th><th scope=\"col\">Transactions/s</th>\
         <th scope=\"col\">Clients</th><th scope=\"col\">Average, ms</th>\
         <th scope=\"col\">p99, ms</th></tr></thead><tbody>",
    );
    for (name, title) in names {
        for subject in subjects.iter().filter(|it| replays(it, name)) {
            let cells = match greatest(subject, name) {
                None => ["not predicted: the host is the limit", "–", "–", "–"].map(str::to_owned),
                Some((clients, tps, it)) => {
                    let shown = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), number::plain);
                    [
                        number::whole(tps),
                        clients.to_string(),
                        shown(it.latency_ms_mean),
                        shown(it.latency_ms_p99),
                    ]
                }
            };
            let tone = Look::of_run(subject.index).tone;
            let _ = write!(
                html,
                "<tr><th scope=\"row\">{}</th><td class=\"t{tone}\"><i class=\"key\"></i>{}</td>",
                Text(title),
                Text(&subject.label)
            );
            for cell in cells {
                let _ = write!(html, "<td>{}</td>", Text(&cell));
            }
            html.push_str("</tr>");
        }
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// True if `subject` replayed the application.
fn replays(subject: &Subject<'_>, application: &str) -> bool {
    let mut steps = subject.run.steps.iter().filter_map(|step| step.application.as_ref());
    steps.any(|it| it.application == application)
}

/// Names and headings of the applications, in order of appearance.
fn names<'a>(subjects: &[Subject<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut names = Vec::new();
    for step in subjects.iter().flat_map(|subject| &subject.run.steps) {
        if let Some(it) = &step.application {
            let name = (it.application.as_str(), it.title.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Clients, rate and figures of the replay of `application` with the greatest rate that is told.
fn greatest<'a>(
    subject: &Subject<'a>,
    application: &str,
) -> Option<(u16, f64, &'a ApplicationFigures)> {
    let steps = subject.run.steps.iter();
    let told = steps.filter_map(|step| {
        let it = step.application.as_ref().filter(|it| it.application == application)?;
        Some((step.threads, it.tps?, it))
    });
    told.max_by(|a, b| a.1.total_cmp(&b.1))
}
