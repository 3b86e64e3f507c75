//! Applications in short: of each, the greatest rate that is told of every run.

use std::fmt::Write as _;

use results::{ApplicationFigures, Step, StepKind};

use crate::chart::Look;
use crate::number;
use crate::overview::listed;
use crate::subject::Subject;
use crate::text::Text;

/// True if nothing but applications was measured: what is said of requests would be of none.
pub(crate) fn are_all(subjects: &[Subject<'_>]) -> bool {
    let steps = || subjects.iter().flat_map(|subject| &subject.run.steps);
    let measures = |step: &Step| matches!(step.kind, StepKind::Precondition | StepKind::Measure);
    steps().any(|step| step.application.is_some()) && !steps().any(measures)
}

/// Sentence on the greatest rate of each application, for each run.
pub(crate) fn sentence(subjects: &[Subject<'_>]) -> String {
    let of_subject = |subject: &Subject<'_>| {
        let rates: Vec<String> = names(subjects)
            .into_iter()
            .filter_map(|(name, title)| {
                let (clients, tps, _) = greatest(subject, name)?;
                Some(format!("{} a second of {title} at {clients} clients", number::whole(tps)))
            })
            .collect();
        let who = if subjects.len() > 1 { &subject.label } else { "it" };
        match rates.as_slice() {
            [] => format!("{who}: no rate, the host decides"),
            _ if subjects.len() == 1 => listed(&rates),
            _ => format!("{who}: {}", listed(&rates)),
        }
    };
    let all: Vec<String> = subjects.iter().map(of_subject).collect();
    format!("Most transactions, predicted by replaying recordings: {}.", all.join("; "))
}

/// The table; empty where no application was replayed.
pub(super) fn part(subjects: &[Subject<'_>]) -> String {
    let names = names(subjects);
    if names.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<h3>Applications: the most transactions a second, predicted</h3>\
         <div class=\"scroll\"><table><thead><tr><th scope=\"col\">Application</th>",
    );
    for subject in subjects {
        let tone = Look::of_run(subject.index).tone;
        let label = Text(&subject.label);
        let _ =
            write!(html, "<th scope=\"col\" class=\"t{tone}\"><i class=\"key\"></i>{label}</th>");
        html.push_str("<th scope=\"col\">clients</th><th scope=\"col\">average, ms</th>");
        html.push_str("<th scope=\"col\">p99, ms</th>");
    }
    html.push_str("</tr></thead><tbody>");
    for (name, title) in names {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", Text(title));
        for subject in subjects {
            let cells = match greatest(subject, name) {
                None => ["no rate: the host decides", "", "", ""].map(str::to_owned),
                Some((clients, tps, it)) => {
                    let mark = if it.exceeds_processors { " †" } else { "" };
                    let shown = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), number::plain);
                    [
                        number::whole(tps) + mark,
                        clients.to_string(),
                        shown(it.latency_ms_mean),
                        shown(it.latency_ms_p99),
                    ]
                }
            };
            for cell in cells {
                let _ = write!(html, "<td>{}</td>", Text(&cell));
            }
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>\n"
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
