//! Verdict and sheet on one page of A4, beside the long report.

use std::fmt::Write as _;

use results::{Run, SheetRow};

use crate::subject::{Subject, Suite, shared};
use crate::text::Text;
use crate::{conclusion, conditions, first_screen, overview, summary};

/// Runs that fit on the page at most.
pub const ONE_PAGE_RUNS_MAX: usize = 5;
/// Runs from which on the type is smaller, so that five still fit.
pub(crate) const CROWDED_MIN: usize = 4;
/// Groups of a sheet that are of the model, and not what a buyer looks for.
const GROUPS_OF_MODEL: [&str; 4] = ["NAND", "Controller", "Disk", "Power"];

/// True of rows that a buyer looks for.
fn is_shown(row: &SheetRow) -> bool {
    !GROUPS_OF_MODEL.contains(&row.group.as_str())
}

/// The body of the page.
pub(crate) fn body(
    subjects: &[Subject<'_>],
    suites: &[Suite<'_>],
    runs: &[Run],
    title: &str,
) -> String {
    let is_one_drive =
        subjects.iter().all(|subject| subject.run.target.name == subjects[0].run.target.name);
    let mut html = overview::header(subjects, title);
    // Of several drives, bars and points of each take a page; the table of loads has their figures.
    if is_one_drive {
        html.push_str(&first_screen::section(subjects, suites));
        html.push_str(&conclusion::section(subjects, runs));
    } else {
        html.push_str(&conditions::section(subjects));
        html.push_str(&summary::primary(subjects));
        html.push_str(&conclusion::of_whom(subjects));
    }
    html.push_str(&sheet(subjects));
    html + &remarks(subjects)
}

/// The properties that all sheets have in common, in one line; empty without any.
fn common(sheets: &[(String, &Vec<SheetRow>)]) -> String {
    let Some(((_, first), others)) = sheets.split_first() else { return String::new() };
    let is_common = |row: &&SheetRow| {
        let has = |sheet: &Vec<SheetRow>| {
            sheet.iter().any(|it| (&it.name, &it.value) == (&row.name, &row.value))
        };
        is_shown(row) && others.iter().all(|(_, sheet)| has(sheet))
    };
    let told: Vec<String> =
        first.iter().filter(is_common).map(|row| format!("{} {}", row.name, row.value)).collect();
    if told.is_empty() {
        return String::new();
    }
    format!("<p class=\"small\">In common: {}.</p>", Text(&told.join("; ")))
}

/// The sheets side by side: a line for each property in which they differ, a column for each
/// drive, and one line of all others.
fn sheet(subjects: &[Subject<'_>]) -> String {
    let sheets = shared(subjects, |subject| &subject.run.target.sheet);
    let mut keys: Vec<&str> = Vec::new();
    for row in sheets.iter().flat_map(|(_, sheet)| sheet.iter()).filter(|row| is_shown(row)) {
        if !keys.contains(&row.name.as_str()) {
            keys.push(&row.name);
        }
    }
    if keys.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=\"sheet\"><h2>Sheet</h2>");
    if let [(_, sheet)] = sheets.as_slice() {
        html.push_str("<dl>");
        for row in sheet.iter().filter(|row| is_shown(row)) {
            let (name, value) = (Text(&row.name), Text(&row.value));
            let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
        return html + "</dl></section>\n";
    }
    html.push_str("<table class=\"conditions\"><thead><tr><td></td>");
    for (names, _) in &sheets {
        let _ = write!(html, "<th scope=\"col\">{}</th>", Text(names));
    }
    html.push_str("</tr></thead><tbody>");
    for name in keys {
        let values: Vec<&str> = sheets
            .iter()
            .map(|(_, sheet)| {
                let its = sheet.iter().find(|row| row.name == name && is_shown(row));
                its.map_or("–", |row| row.value.as_str())
            })
            .collect();
        if values.iter().all(|value| *value == values[0]) {
            continue;
        }
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", Text(name));
        for value in values {
            let _ = write!(html, "<td class=\"prose\">{}</td>", Text(value));
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table>" + &common(&sheets) + "</section>\n"
}

/// The line below everything: warnings that only the report has.
fn remarks(subjects: &[Subject<'_>]) -> String {
    let count: usize = subjects.iter().map(|subject| subject.run.warnings.len()).sum();
    let warned = match count {
        0 => String::new(),
        1 => "One warning about these figures is in the report. ".to_owned(),
        _ => format!("{count} warnings about these figures are in the report. "),
    };
    let ids: Vec<&str> = subjects.iter().map(|subject| subject.run.id.as_str()).collect();
    format!("<p class=\"provenance\">{warned}Runs: {}.</p>", Text(&ids.join(", ")))
}
