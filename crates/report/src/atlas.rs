//! Every drive in one table, which a reader sorts and filters, and comparisons of up to five that
//! the page draws from the figures of their runs.

use std::fmt::Write as _;

use results::baseline::{BaselineRow, Headline};
use results::compare::{MEANINGFUL_MIN, measured, run_conditions};
use results::conditions::load_conditions;
use results::{ConfidenceInterval, Run, Step, StepKind};
use serde_json::{Value, json};

use crate::first_screen::{heading, shown};
use crate::number::{self, millis};
use crate::subject::{Subject, subjects, workload_of};
use crate::text::Text;

/// Drives that one comparison has at most: as many colours as are told apart at a glance.
const COMPARED_MAX: usize = 5;
/// Characters of text that is not broken into lines.
const SHORT_MAX: usize = 10;
/// Heading and unit of the column of figures besides the headlines.
const DEVIATION: (&str, &str) = ("4K write std. dev.", "ms");

/// Value of a property that no run measures.
#[derive(Clone, Debug, PartialEq)]
pub enum AtlasFact {
    /// Words.
    Text(String),
    /// Number in the unit of its column.
    Number(f64),
    /// Stated nowhere.
    Unknown,
}

/// Column of such properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtlasColumn {
    /// Heading.
    pub name: String,
    /// Unit of its numbers; empty for words.
    pub unit: String,
}

/// Run in an atlas.
#[derive(Clone, Debug, PartialEq)]
pub struct AtlasRun {
    /// Address of its review, relative to the atlas.
    pub page: String,
    /// One value for each column.
    pub facts: Vec<AtlasFact>,
}

/// Drive of the catalogue that no run of an atlas is of.
#[derive(Clone, Debug, PartialEq)]
pub struct AtlasModel {
    /// Heading on a report.
    pub title: String,
    /// True if no published rate confirms the model.
    pub unvalidated: bool,
    /// Its row of the baseline table; absent where it has none.
    pub row: Option<BaselineRow>,
    /// One value for each column.
    pub facts: Vec<AtlasFact>,
}

/// Page of all drives.
#[derive(Clone, Debug)]
pub struct Atlas<'a> {
    /// The runs.
    pub runs: &'a [Run],
    /// Page and properties of each of `runs`, in their order.
    pub of_runs: Vec<AtlasRun>,
    /// Drives without a run.
    pub models: Vec<AtlasModel>,
    /// Columns of properties.
    pub columns: Vec<AtlasColumn>,
}

/// Row of the table.
struct Row {
    /// Order of rows at first: those whose 4K random writes are sound by their rate, then those in
    /// doubt by theirs, then the unknown.
    order: (Certainty, f64),
    html: String,
}

/// Certainty of a figure, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    Unknown,
    Doubted,
    Sound,
}

/// Figure of a row.
#[derive(Clone, Debug, Default)]
struct RowFigure {
    value: Option<f64>,
    /// Reasons not to rest a comparison on it; empty without any.
    notes: String,
}

impl RowFigure {
    const fn sound(value: Option<f64>) -> Self {
        Self { value, notes: String::new() }
    }

    const fn certainty(&self) -> Certainty {
        match (self.value, self.notes.is_empty()) {
            (None, _) => Certainty::Unknown,
            (Some(_), false) => Certainty::Doubted,
            (Some(_), true) => Certainty::Sound,
        }
    }
}

/// The body of the page.
pub(crate) fn body(of: &Atlas<'_>) -> String {
    assert_eq!(of.runs.len(), of.of_runs.len(), "a page and facts for each run");
    let subjects = subjects(of.runs);
    let mut rows: Vec<Row> =
        subjects.iter().zip(&of.of_runs).map(|(subject, entry)| run_row(subject, entry)).collect();
    rows.extend(of.models.iter().map(model_row));
    rows.sort_by(|a, b| b.order.0.cmp(&a.order.0).then(b.order.1.total_cmp(&a.order.1)));
    let mut html = format!(
        "<header id=\"top\"><h1>Atlas of solid-state drives</h1><p class=\"verdict\">{}</p>\
         <p class=\"small\">Figures are of 4 and 8 KiB random requests after the preconditioning, \
         at T16Q16 where the protocol has it. A name leads to its review; a drive without one \
         shows what its model reached under the enterprise protocol. Figures with a note were not \
         taken in steady state, or may not be the drive's own: they are sorted behind the others. \
         An empty cell is unknown, or withheld for a reason that the review tells.</p>\
         </header>\n<section id=\"drives\" aria-label=\"Drives\">{}",
        Text(&counted(&subjects, of.models.len())),
        controls(),
    );
    html.push_str("<div class=\"scroll\"><table class=\"atlas\"><thead><tr>");
    html.push_str(&heads(of));
    html.push_str("</tr></thead><tbody>");
    html.extend(rows.into_iter().map(|row| row.html));
    html.push_str("</tbody></table></div></section>\n");
    let data = data(of, &subjects).to_string().replace('<', "\\u003c");
    let _ = write!(
        html,
        "<section id=\"comparison\" hidden><h2>Comparison</h2><div></div></section>\n\
         <script type=\"application/json\" id=\"atlas-data\">{data}</script>",
    );
    html
}

/// Counts of runs and of drives without one, in a sentence.
fn counted(subjects: &[Subject<'_>], models: usize) -> String {
    let real = subjects.iter().filter(|it| !it.run.target.kind.is_model()).count();
    let several = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    let mut parts = Vec::new();
    if real > 0 {
        parts.push(format!("{} of real drives", several(real, "run")));
    }
    if subjects.len() > real {
        parts.push(format!("{} of models", several(subjects.len() - real, "run")));
    }
    if models > 0 {
        parts.push(format!("{} of the catalogue", several(models, "other drive")));
    }
    format!("{}.", crate::text::listed(&parts))
}

/// Controls of the table, which the script shows.
fn controls() -> String {
    "<form class=\"controls\" hidden><label>Find <input type=\"search\" name=\"find\" \
     placeholder=\"name, interface, flash\"></label><label>Figures <select name=\"origin\">\
     <option value=\"\">all</option><option value=\"real\">measured</option>\
     <option value=\"model\">modelled</option><option value=\"validated\">modelled, validated\
     </option></select></label><span role=\"status\" id=\"listed\"></span>\
     <span id=\"chosen\" role=\"status\"></span><button type=\"reset\">Clear</button></form>"
        .to_owned()
}

fn heads(of: &Atlas<'_>) -> String {
    let mut html = head("Drive", "", "");
    html.push_str(&head("Figures", "", " class=\"words\""));
    html.push_str(&head("Conditions", "", " class=\"words\""));
    for headline in Headline::ALL {
        let (name, unit) = heading(headline);
        let sort = if headline == Headline::Write { " aria-sort=\"descending\"" } else { "" };
        html.push_str(&head(name, unit, sort));
    }
    html.push_str(&head(DEVIATION.0, DEVIATION.1, ""));
    html.extend(of.columns.iter().map(|column| {
        let class = if column.unit.is_empty() { " class=\"words\"" } else { "" };
        head(&column.name, &column.unit, class)
    }));
    html
}

fn head(name: &str, unit: &str, attributes: &str) -> String {
    format!(
        "<th scope=\"col\"{attributes}>{}<span class=\"unit\">{}</span></th>",
        Text(name),
        Text(unit)
    )
}

/// The class of a row by where its figures come from, and the words for it.
fn origin(run: &Run) -> (&'static str, &'static str) {
    match (run.target.kind.is_model(), run.imported_from()) {
        (true, _) => origin_of_model(run.target.unvalidated),
        (false, Some(_)) => ("real", "imported"),
        (false, None) => ("real", "measured"),
    }
}

/// Name of a run among all drives: with the drive, also where all runs are of one.
fn named(subject: &Subject<'_>) -> String {
    let title = &subject.run.target.title;
    if title.is_empty() || subject.label.starts_with(title.as_str()) {
        subject.label.clone()
    } else {
        format!("{title}, {}", subject.label)
    }
}

/// Host, and preconditioning of the 4K random writes.
fn conditions(run: &Run) -> String {
    let step = Headline::Write.step(run).or_else(|| Headline::Read.step(run));
    let told = step.map(|step| load_conditions(run, step)).into_iter().flatten();
    let told = told.filter(|(name, _)| ["host", "preconditioning"].contains(name));
    let told: Vec<String> = told.map(|(_, value)| value).filter(|it| !it.is_empty()).collect();
    told.join(", ")
}

fn run_row(subject: &Subject<'_>, entry: &AtlasRun) -> Row {
    let run = subject.run;
    let figure = |headline: Headline| {
        let Some(shown) = shown(run, headline) else { return RowFigure::default() };
        let notes = shown.notes(headline).join(", ");
        RowFigure { value: Some(in_unit(headline, shown.value)), notes }
    };
    let mut figures: Vec<RowFigure> = Headline::ALL.into_iter().map(figure).collect();
    // What puts the rate of the writes in doubt puts their deviation in doubt.
    let notes = figure(Headline::Write).notes;
    figures.push(RowFigure { value: write_deviation_ms(run), notes });
    let (class, origin) = origin(run);
    let name = format!(
        "<label><input type=\"checkbox\" value=\"{}\" hidden aria-label=\"Compare {label}\">\
         </label><a href=\"{}\">{label}</a>",
        subject.index,
        Text(&entry.page),
        label = Text(&named(subject)),
    );
    row(class, &name, [origin, &conditions(run)], &figures, &entry.facts)
}

fn model_row(model: &AtlasModel) -> Row {
    let AtlasModel { title, unvalidated, row: known, facts } = model;
    let figure = |headline: Headline| Some(in_unit(headline, headline.of_row(known.as_ref()?)));
    let figures = Headline::ALL.into_iter().map(figure).chain([None]);
    let figures: Vec<RowFigure> = figures.map(RowFigure::sound).collect();
    let (class, origin) =
        if known.is_some() { origin_of_model(*unvalidated) } else { ("model", "") };
    let conditions = known.as_ref().map_or(String::new(), |row| {
        format!("{}, model version {}", row.format, row.model_version)
    });
    row(class, &Text(title).to_string(), [origin, &conditions], &figures, facts)
}

const fn origin_of_model(unvalidated: bool) -> (&'static str, &'static str) {
    if unvalidated { ("model", "not validated") } else { ("model validated", "modelled") }
}

/// `value` of a headline in the unit of its column: latencies are kept in nanoseconds.
fn in_unit(headline: Headline, value: f64) -> f64 {
    if headline == Headline::WriteTail { millis(value) } else { value }
}

/// Standard deviation of the latency of the 4K random writes, in milliseconds.
fn write_deviation_ms(run: &Run) -> Option<f64> {
    let step = Headline::Write.step(run)?;
    step.summary.as_ref()?.latency.stdev_ns().map(millis)
}

fn row(
    class: &str,
    name: &str,
    [origin, conditions]: [&str; 2],
    figures: &[RowFigure],
    facts: &[AtlasFact],
) -> Row {
    let mut html = format!(
        "<tr class=\"{class}\"><th scope=\"row\">{name}</th><td class=\"words origin\">\
         <span>{origin}</span></td><td class=\"words\">{}</td>",
        Text(conditions)
    );
    for RowFigure { value, notes } in figures {
        html.push_str(&number_cell(*value, number::short, notes));
    }
    for fact in facts {
        match fact {
            AtlasFact::Text(text) => {
                let short = if text.len() <= SHORT_MAX { " short" } else { "" };
                let _ = write!(html, "<td class=\"words{short}\">{}</td>", Text(text));
            }
            AtlasFact::Number(value) => {
                html.push_str(&number_cell(Some(*value), number::trimmed, ""));
            }
            AtlasFact::Unknown => html.push_str(&number_cell(None, number::trimmed, "")),
        }
    }
    let order = (figures[0].certainty(), figures[0].value.unwrap_or_default());
    Row { order, html: html + "</tr>" }
}

fn number_cell(value: Option<f64>, told: fn(f64) -> String, notes: &str) -> String {
    let Some(value) = value else { return "<td></td>".to_owned() };
    let (rounded, told) = (number::round(value, 6), told(value));
    if notes.is_empty() {
        return format!("<td data-value=\"{rounded}\">{told}</td>");
    }
    format!("<td class=\"doubted\" data-value=\"{rounded}\">{told}<i>{notes}</i></td>")
}

/// Figures and conditions that the script compares.
fn data(of: &Atlas<'_>, subjects: &[Subject<'_>]) -> Value {
    let mut conditions: Vec<Value> = Vec::new();
    let entries: Vec<Value> = subjects
        .iter()
        .zip(&of.of_runs)
        .map(|(subject, entry)| entry_data(subject, entry, &mut conditions))
        .collect();
    let headlines = Headline::ALL.map(|headline| {
        let (name, unit) = heading(headline);
        json!({ "name": name, "unit": unit, "less": headline == Headline::WriteTail })
    });
    json!({
        "most": COMPARED_MAX,
        "meaningful": MEANINGFUL_MIN,
        "headlines": headlines,
        "loadConditions": conditions,
        "entries": entries,
    })
}

fn entry_data(subject: &Subject<'_>, entry: &AtlasRun, conditions: &mut Vec<Value>) -> Value {
    let run = subject.run;
    let mut condition_of = |step: &Step| {
        let own = json!(load_conditions(run, step));
        conditions.iter().position(|known| *known == own).unwrap_or_else(|| {
            conditions.push(own);
            conditions.len() - 1
        })
    };
    let headlines: Vec<Value> = Headline::ALL
        .into_iter()
        .map(|headline| {
            let (Some(shown), Some(step)) = (shown(run, headline), headline.step(run)) else {
                return Value::Null;
            };
            let load = format!("T{}Q{}", step.threads, step.queue_per_thread);
            let spread = subject.spread(step);
            let interval = match headline {
                Headline::WriteTail => spread.latency.latency_ns_p999,
                Headline::Write | Headline::Read | Headline::Mixed => spread.iops,
            };
            let end = |of: fn(&ConfidenceInterval) -> f64| {
                interval.as_ref().map(|it| number::round(in_unit(headline, of(it)), 4))
            };
            json!([
                number::round(in_unit(headline, shown.value), 4),
                shown.notes(headline).join(", "),
                condition_of(step),
                load,
                end(|it| it.low),
                end(|it| it.high),
            ])
        })
        .collect();
    let loads: Vec<Value> = run
        .steps
        .iter()
        .filter(|step| step.kind == StepKind::Measure && !run.lacks_requests(&step.id))
        .filter_map(|step| {
            let summary = measured(step)?;
            let latency = &summary.latency;
            let rounded = |value: Option<f64>| value.map(|it| number::round(millis(it), 4));
            let tail = latency.p999_ns().filter(|it| !run.target.is_listed_stall(*it));
            Some(json!([
                workload_of(run, &step.suite, &step.workload),
                step.threads,
                step.queue_per_thread,
                condition_of(step),
                number::round(summary.iops, 4),
                rounded(latency.mean_ns()),
                rounded(tail.map(|it| it as f64)),
                run.distrusted(step).is_some(),
            ]))
        })
        .collect();
    json!({
        "id": run.id,
        "name": named(subject),
        "drive": [run.target.name, run.target.title],
        "isModel": run.target.kind.is_model(),
        "page": entry.page,
        "conditions": run_conditions(run),
        "headlines": headlines,
        "loads": loads,
    })
}
