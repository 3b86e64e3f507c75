//! The top of the page in one picture: the figures of the drive in steady state, beside what was
//! published of it and beside the nearest drives of the baseline table, and its preconditioning.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use results::baseline::{self, BaselineRow, Headline, is_comparable};
use results::headlines::contradiction;
use results::{Figure, Run, StepKind, TargetKind, published};

use crate::chart::{Chart, Look};
use crate::explain;
use crate::number::{self, millis};
use crate::subject::{Subject, Suite};
use crate::suite::first_preconditioning;
use crate::text::{Text, loads};

/// Other drives that are shown beside the runs, those of their reviewers first.
const OTHERS: usize = 5;
/// Of these, drives of the baseline table at least.
const NEAREST_MIN: usize = 2;
/// Runs beyond which the baseline table is left out: they are compared with each other.
const RUNS_MAX: usize = 4;
/// Phases of published figures that are of a settled drive, the nearest to a review's first.
const PHASES: [&str; 3] = ["primary", "steady", "precondition-end"];

/// Bars of the headlines and the strip of the first preconditioning; empty without either.
pub(crate) fn section(subjects: &[Subject<'_>], suites: &[Suite<'_>]) -> String {
    let bars = bars(subjects);
    let strip = strip(suites).map_or(String::new(), |chart| chart.figure(subjects.len() == 1));
    if bars.is_empty() && strip.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"glance\" aria-label=\"At a glance\">{bars}<div class=\"charts\">{strip}\
         </div></section>\n"
    )
}

/// The first preconditioning of the runs, over the width of the page.
fn strip(suites: &[Suite<'_>]) -> Option<Chart> {
    let chart = first_preconditioning(suites)?;
    Some(Chart { id: "glance-strip".into(), explain: explain::STRIP, is_wide: true, ..chart })
}

/// A headline of a run, and the state of the drive.
pub(crate) struct RunHeadline {
    /// Its value: requests a second, or nanoseconds.
    pub(crate) value: f64,
    /// True if it was in steady state; absent where that is not known.
    settled: Option<bool>,
    is_comparable: bool,
    /// True if the host was the limit, or a warning puts the value in doubt.
    is_doubted: bool,
    /// True if a published figure of the load contradicts it.
    is_contradicted: bool,
}

impl RunHeadline {
    /// Reasons not to rest a comparison on it, in a few words each; empty without any.
    pub(crate) fn notes(&self, headline: Headline) -> Vec<&'static str> {
        let is_of_writes = headline != Headline::Read;
        let notes = [
            (is_of_writes && self.settled == Some(false), "not steady"),
            (is_of_writes && self.settled.is_none(), "not judged"),
            (self.is_doubted, "in doubt"),
            (self.is_contradicted, "contradicted"),
        ];
        notes.into_iter().filter(|it| it.0).map(|it| it.1).collect()
    }
}

/// The headline of `run`; absent where it was not measured.
pub(crate) fn shown(run: &Run, headline: Headline) -> Option<RunHeadline> {
    let step = headline.step(run)?;
    Some(RunHeadline {
        value: headline.of_step(run, step)?,
        settled: run.is_settled(step),
        is_comparable: is_comparable(run, step),
        is_doubted: run.distrusted(step).is_some(),
        is_contradicted: contradiction(run, headline).is_some(),
    })
}

/// One row of the picture: a name and a value for each headline.
struct Row {
    class: String,
    name: String,
    cells: Vec<Option<(f64, String)>>,
}

fn bars(subjects: &[Subject<'_>]) -> String {
    let has = |headline: &Headline| subjects.iter().any(|it| shown(it.run, *headline).is_some());
    let headlines: Vec<Headline> = Headline::ALL.into_iter().filter(has).collect();
    if headlines.is_empty() {
        return String::new();
    }
    let mut rows: Vec<Row> = Vec::new();
    for subject in subjects {
        rows.push(own(subject, &headlines));
        rows.extend(published(subject, &headlines));
        rows.extend(published_elsewhere(subject, &headlines));
    }
    let peers = peers(subjects, &headlines);
    let others = Others::of(subjects, &peers);
    rows.extend(peers.into_iter().map(|(_, row)| row));
    rows.extend(others.rows.iter().map(|row| Row {
        class: "other".into(),
        name: row.heading(),
        cells: headlines.iter().map(|it| Some((it.of_row(row), String::new()))).collect(),
    }));
    let mut html =
        String::from("<figure class=\"glance\"><div class=\"scroll\"><table><thead><tr><td></td>");
    for headline in &headlines {
        let (what, unit) = heading(*headline);
        let _ = write!(html, "<th scope=\"col\">{what}<span class=\"unit\">{unit}</span></th>");
    }
    html.push_str("</tr></thead><tbody>");
    for row in &rows {
        html.push_str(&drawn(row, &headlines, &rows));
    }
    let _ = write!(
        html,
        "</tbody></table></div><figcaption><p>{}</p></figcaption></figure>",
        Text(&caption(subjects, &others)),
    );
    html
}

/// Returns the name and the unit of a headline.
pub(crate) const fn heading(headline: Headline) -> (&'static str, &'static str) {
    match headline {
        Headline::Write => ("4K random writes", "IOPS"),
        Headline::Read => ("4K random reads", "IOPS"),
        Headline::Mixed => ("8K, 70 % reads", "IOPS"),
        Headline::WriteTail => ("4K write p99.9", "ms"),
    }
}

fn own(subject: &Subject<'_>, headlines: &[Headline]) -> Row {
    let cell = |headline: &Headline| {
        let shown = shown(subject.run, *headline)?;
        let notes = shown.notes(*headline);
        Some((shown.value, notes.join(", ")))
    };
    Row {
        class: format!("own t{}", Look::of_run(subject.index).tone),
        name: subject.label.clone(),
        cells: headlines.iter().map(cell).collect(),
    }
}

/// Returns the row of published figures of the drive; none without any of the headlines.
fn published(subject: &Subject<'_>, headlines: &[Headline]) -> Option<Row> {
    let cell = |headline: &Headline| {
        Some((published_of(&subject.run.published, *headline)?, String::new()))
    };
    let cells: Vec<_> = headlines.iter().map(cell).collect();
    cells.iter().any(Option::is_some).then(|| Row {
        class: format!("published t{}", Look::of_run(subject.index).tone),
        name: "published".into(),
        cells,
    })
}

/// Returns the row of figures of the drive that another protocol measured, for headlines without a
/// figure of the run's own; none without any.
fn published_elsewhere(subject: &Subject<'_>, headlines: &[Headline]) -> Option<Row> {
    let run = subject.run;
    let cell = |headline: &Headline| {
        let step = headline.step(run)?;
        let is_of = |it: &&Figure| {
            it.workload == headline.workload()
                && it.metric == headline.metric()
                && it.phase != "burst"
        };
        let figures = run.published_elsewhere.iter().filter(is_of);
        // Of several the one that differs in least.
        let figure = figures.min_by_key(|it| it.apart_from(step).len())?;
        let is_known = published_of(&run.published, *headline).is_some();
        (!is_known).then(|| (middle(*headline, figure), figure.apart_from(step).join(", ")))
    };
    let cells: Vec<_> = headlines.iter().map(cell).collect();
    cells.iter().any(Option::is_some).then(|| Row {
        class: format!("published t{}", Look::of_run(subject.index).tone),
        name: "published, another protocol".into(),
        cells,
    })
}

/// The drives that reviewers set beside those of the runs, each with its document and the row of
/// its published figures.
fn peers(subjects: &[Subject<'_>], headlines: &[Headline]) -> Vec<(String, Row)> {
    if subjects.len() > RUNS_MAX {
        return Vec::new();
    }
    let mut rows: Vec<(String, Row)> = Vec::new();
    for subject in subjects {
        let run = subject.run;
        for peer in published::peers(run.published.iter().chain(&run.published_elsewhere)) {
            let cell = |headline: &Headline| {
                let (own, others): (Vec<Figure>, Vec<Figure>) =
                    peer.figures.iter().cloned().partition(|it| it.host == run.target.host);
                if let Some(value) = published_of(&own, *headline) {
                    return Some((value, String::new()));
                }
                let value = published_of(&others, *headline)?;
                let host = &others.iter().find(|it| it.workload == headline.workload())?.host;
                let host = if host == published::ANY { "" } else { host };
                Some((value, host.to_owned()))
            };
            let cells: Vec<_> = headlines.iter().map(cell).collect();
            let is_new = rows.iter().all(|(_, row)| !row.name.starts_with(&peer.device));
            if is_new && cells.iter().any(Option::is_some) {
                let name = format!("{}, published", peer.device);
                rows.push((peer.document, Row { class: "other".into(), name, cells }));
            }
        }
    }
    rows.truncate(OTHERS - NEAREST_MIN);
    rows
}

/// The middle of what was published, in the unit of the headline.
const fn middle(headline: Headline, figure: &Figure) -> f64 {
    let published = f64::midpoint(figure.value_low, figure.value_high);
    match headline {
        Headline::WriteTail => published * 1e6,
        Headline::Write | Headline::Read | Headline::Mixed => published,
    }
}

/// The published figure of a headline at its load.
fn published_of(figures: &[Figure], headline: Headline) -> Option<f64> {
    let is_of = |figure: &&Figure| {
        let load = (figure.threads.as_str(), figure.queue_per_thread.as_str());
        figure.workload == headline.workload()
            && figure.metric == headline.metric()
            && matches!(load, ("16", "16") | ("", ""))
    };
    let of_phase =
        |phase: &&str| figures.iter().filter(is_of).find(|figure| figure.phase == **phase);
    PHASES.iter().find_map(of_phase).map(|figure| middle(headline, figure))
}

/// The drives of the baseline table that are shown beside the runs.
struct Others {
    rows: Vec<&'static BaselineRow>,
    /// Documents of the drives that reviewers set beside those of the runs.
    documents: BTreeSet<String>,
    /// Headline that they are the nearest by.
    by: Headline,
}

impl Others {
    /// The nearest drives by 4K random writes in steady state; by 4K random reads where no run has
    /// such writes; none where no load of the runs is theirs.
    fn of(subjects: &[Subject<'_>], peers: &[(String, Row)]) -> Self {
        let documents = peers.iter().map(|(document, _)| document.clone()).collect();
        let known: Vec<&str> = subjects.iter().map(|it| it.run.target.name.as_str()).collect();
        let comparable = |by: Headline| {
            let mut all = subjects.iter().filter_map(|subject| shown(subject.run, by));
            Some((by, all.find(|shown| shown.is_comparable)?.value))
        };
        let found = [Headline::Write, Headline::Read].into_iter().find_map(comparable);
        match found {
            Some((by, value)) if subjects.len() <= RUNS_MAX => {
                let nearest = baseline::nearest(by, value, &known, OTHERS - peers.len());
                Self { rows: nearest, documents, by }
            }
            _ => Self { rows: Vec::new(), documents, by: Headline::Write },
        }
    }

    /// Words for the figure that they were picked by.
    fn picked_by(&self, subjects: &[Subject<'_>]) -> &'static str {
        let has_writes = subjects.iter().any(|it| shown(it.run, Headline::Write).is_some());
        match self.by {
            Headline::Read if has_writes => {
                "4K random reads are nearest, since no writes of the runs at T16Q16 were in steady \
                 state"
            }
            Headline::Read => "4K random reads are nearest",
            Headline::Write | Headline::Mixed | Headline::WriteTail => {
                "4K random writes in steady state are nearest"
            }
        }
    }
}

/// A row with a bar in each cell, on the scale of all `rows`.
fn drawn(row: &Row, headlines: &[Headline], rows: &[Row]) -> String {
    let mut html = format!(
        "<tr class=\"{}\"><th scope=\"row\"><i class=\"key\"></i>{}</th>",
        row.class,
        Text(&row.name),
    );
    for (column, headline) in headlines.iter().enumerate() {
        let Some((value, note)) = row.cells[column].as_ref() else {
            html.push_str("<td class=\"absent\">–</td>");
            continue;
        };
        let all = rows.iter().filter_map(|row| row.cells[column].as_ref()).map(|it| it.0);
        let width = value / all.fold(f64::MIN_POSITIVE, f64::max) * 100.0;
        let said = match headline {
            Headline::WriteTail => number::plain(millis(*value)),
            Headline::Write | Headline::Read | Headline::Mixed => number::short(*value),
        };
        let mut notes = String::new();
        for note in note.split(", ").filter(|note| !note.is_empty()) {
            let _ = write!(notes, " <i>{}</i>", Text(note));
        }
        let _ = write!(
            html,
            "<td><svg class=\"gauge\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\"><rect class=\"fill\" width=\"{}\" height=\"10\"/></svg>\
             <span>{said}</span>{notes}</td>",
            number::round(width.max(0.5), 3),
        );
    }
    html + "</tr>"
}

/// Returns the caption of the table: the load and state of the measured rows, and the origin of
/// other drives' rows.
fn caption(subjects: &[Subject<'_>], others: &Others) -> String {
    let steps = subjects.iter().flat_map(|it| Headline::ALL.map(|headline| headline.step(it.run)));
    let loads = loads(steps.flatten());
    let is_model = |subject: &Subject<'_>| subject.run.target.kind == TargetKind::Model;
    let done = match (subjects.iter().any(is_model), subjects.iter().all(is_model)) {
        (_, true) => "Modelled",
        (true, false) => "Measured or modelled",
        (false, false) => "Measured",
    };
    let mut steps = subjects.iter().flat_map(|subject| &subject.run.steps);
    let prepared = if steps.any(|step| step.kind == StepKind::Precondition) {
        "after the preconditioning of each suite"
    } else {
        "without preconditioning"
    };
    let programs: BTreeSet<&str> =
        subjects.iter().filter_map(|subject| subject.run.imported_from()).collect();
    let programs = programs.into_iter().collect::<Vec<_>>().join(" and ");
    let mut said = match subjects.iter().filter(|it| it.run.imported_from().is_some()).count() {
        0 => format!("{done} at {loads} {prepared}."),
        all if all == subjects.len() => {
            format!("Imported from {programs}, at {loads}; how the drive was prepared is unknown.")
        }
        _ => format!(
            "{done} at {loads} {prepared}, but for what was imported from {programs}: how that \
             drive was prepared is unknown."
        ),
    };
    let is_doubted = |subject: &Subject<'_>| {
        let mut shown = Headline::ALL.iter().filter_map(|it| shown(subject.run, *it));
        shown.any(|shown| shown.is_doubted)
    };
    if subjects.iter().any(is_doubted) {
        said.push_str(
            " In doubt: the host was the limit, or a warning says why the value may not be the \
             drive's own.",
        );
    }
    said.push_str(&apart(subjects));
    for document in &others.documents {
        let _ = write!(
            said,
            " The drives named as published stood beside it in the {document}, with these figures."
        );
    }
    if others.rows.is_empty() {
        return said;
    }
    let versions: BTreeSet<u32> = others.rows.iter().map(|other| other.model_version).collect();
    let own = subjects.iter().filter_map(|subject| subject.run.model_version);
    let _ = write!(
        said,
        " In grey the drives of the baseline table whose {}; modelled at T16Q16 after the \
         preconditioning of the enterprise protocol, with {}",
        others.picked_by(subjects),
        named_versions(&versions, own)
    );
    said
}

/// Sentences on headlines that published figures contradict, and on those that a listed stall
/// makes, which are not shown.
fn apart(subjects: &[Subject<'_>]) -> String {
    let mut said = String::new();
    for subject in subjects {
        let of = if subjects.len() > 1 { format!(" of {}", subject.label) } else { String::new() };
        for headline in Headline::ALL {
            let name = heading(headline).0;
            if let Some(text) = contradiction(subject.run, headline) {
                let _ = write!(said, " Contradicted: {name}{of}, {text}.");
            }
            let step = headline.step(subject.run);
            if step.is_some_and(|step| headline.is_of_listed_stall(subject.run, step)) {
                let _ = write!(
                    said,
                    " Not shown: {name}{of}, as long as a stall of the host that the model's file \
                     lists."
                );
            }
        }
    }
    said
}

/// Names the model versions of other drives; and of the runs the first that differs from any.
fn named_versions(others: &BTreeSet<u32>, mut own: impl Iterator<Item = u32>) -> String {
    let (first, last) = (others.first().copied(), others.last().copied());
    let (first, last) = first.zip(last).expect("there is another drive");
    let mut said = if first == last {
        format!("model version {first}.")
    } else {
        format!("model versions {first} to {last}.")
    };
    if let Some(own) = own.find(|own| first != last || *own != first) {
        let _ = write!(said, " This run has model version {own}; models change between versions.");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{STOCK, run};
    use crate::subject::subjects;

    #[test]
    fn the_nearest_drives_of_a_burst_are_those_that_read_as_it_does() {
        let mut runs = [run(STOCK)];
        assert_eq!(Others::of(&subjects(&runs), &[]).by, Headline::Write);
        for steady in runs[0].steps.iter_mut().filter_map(|step| step.steady.as_mut()) {
            steady.achieved = false;
        }
        let subjects = subjects(&runs);
        let others = Others::of(&subjects, &[]);
        assert_eq!((others.by, others.rows.len()), (Headline::Read, OTHERS));
        let said = caption(&subjects, &others);
        let reads = "whose 4K random reads are nearest, since no writes of the runs at T16Q16";
        assert!(said.contains(reads), "{said}");
    }

    #[test]
    fn a_run_names_its_model_version_unless_all_drives_have_it() {
        let named = |others: &[u32], own: u32| {
            named_versions(&others.iter().copied().collect(), std::iter::once(own))
        };
        assert_eq!(named(&[6, 6], 6), "model version 6.");
        let apart = " This run has model version 6; models change between versions.";
        assert_eq!(named(&[5], 6), format!("model version 5.{apart}"));
        assert_eq!(named(&[6, 4], 6), format!("model versions 4 to 6.{apart}"));
    }
}
