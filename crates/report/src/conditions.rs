//! Conditions in which runs differ, before anything that they are compared by.

use std::fmt::Write as _;

use results::Run;
use results::compare::{Difference, differences};

use crate::chart::Look;
use crate::subject::Subject;
use crate::text::{Text, listed};

/// The table: a line for each condition, a column for each run; empty where no more differs than
/// the names of the runs say.
pub(crate) fn section(subjects: &[Subject<'_>]) -> String {
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let is_in_names = |difference: &Difference| {
        let mut named = subjects.iter().zip(&difference.values);
        named.all(|(subject, value)| !value.is_empty() && subject.label.contains(value.as_str()))
    };
    let rows: Vec<Difference> =
        differences(&runs).into_iter().filter(|it| !is_in_names(it)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section id=\"conditions\" aria-label=\"Conditions\"><h3>What differs between the runs\
         </h3><div class=\"scroll\"><table class=\"conditions\"><thead><tr>\
         <th scope=\"col\">Condition</th>",
    );
    for subject in subjects {
        let tone = Look::of_run(subject.index).tone;
        let label = Text(&subject.label);
        let _ =
            write!(html, "<th scope=\"col\" class=\"t{tone}\"><i class=\"key\"></i>{label}</th>");
    }
    html.push_str("</tr></thead><tbody>");
    for Difference { what, values } in &rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", Text(what));
        for value in values {
            let _ = write!(html, "<td class=\"prose\">{}</td>", Text(value));
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div></section>\n"
}

/// Names of the conditions of loads in which `subjects` differ: `format and host`.
pub(crate) fn unlike(subjects: &[Subject<'_>]) -> String {
    const OF_LOADS: [&str; 5] =
        ["format", "host", "preconditioning", "compressible data", "sampling"];
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let names = differences(&runs).into_iter().map(|it| it.what);
    let names: Vec<String> = names.filter(|it| OF_LOADS.contains(&it.as_str())).collect();
    listed(&names)
}

/// Subjects that may be drawn side by side: those of one drive that differ in one condition, which
/// is then compared; else each group that differs in none.
pub(crate) fn side_by_side<'a>(subjects: &[Subject<'a>]) -> Vec<Vec<Subject<'a>>> {
    let [first, others @ ..] = subjects else { return Vec::new() };
    let is_one_drive = others.iter().all(|other| other.run.target.name == first.run.target.name);
    if is_one_drive && !unlike(subjects).contains(" and ") {
        return vec![subjects.to_vec()];
    }
    alike(subjects)
}

/// Subjects that differ in no condition of their loads, and may be ranked; groups of several.
pub(crate) fn alike<'a>(subjects: &[Subject<'a>]) -> Vec<Vec<Subject<'a>>> {
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let classes = results::conditions::alike(&runs).into_iter().filter(|class| class.len() > 1);
    classes.map(|class| class.into_iter().map(|index| subjects[index].clone()).collect()).collect()
}
