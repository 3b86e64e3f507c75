//! The cross-validated errors in the documents: headline in the README and on both pages, and the
//! section of the page.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};
use lab::results::published::figures;
use lab::ssd::{DriveSpec, MODEL_VERSION, catalogue};
use study::fit::cross::{
    CrossNumber, CrossRow, CrossTally, CrossValidation, is_space_chosen, loads, tally,
    tally_estimated,
};
use study::validate::{is_about, is_typical, number_text};

use super::{GALLERY, PAGE};
use xtask::root;

const README: &str = "README.md";
/// Marks of what is written here, in Markdown.
const BEGIN: &str = "<!-- written by cargo xtask cross-validate -->";
const END: &str = "<!-- end -->";
/// Marks of the same in the gallery.
const VERDICT: (&str, &str) = ("<p class=\"verdict\">", "</p>");
/// Beginning of the verdict on the drives' files in the gallery, which follows the headline.
const FITTED: &str = "With the figures in view, as the files of the drives are, ";

/// Writes what `crossed` says into the documents.
///
/// # Errors
/// Fails if a document cannot be read or written, or lacks the place.
pub(super) fn write(crossed: &[CrossValidation]) -> Result<()> {
    let section = section(crossed);
    let bullet = bullet(crossed);
    for (page, text) in [(PAGE, &section), (README, &bullet)] {
        edit(page, |old| between(old, (BEGIN, END), &format!("\n{text}")))?;
    }
    edit(GALLERY, |old| {
        let (from, to) = VERDICT;
        let verdict = old.split_once(from)?.1.split_once(to)?.0;
        let fitted = verdict.split_once(FITTED).map_or(verdict, |(_, fitted)| fitted);
        between(old, VERDICT, &verdict_text(crossed, fitted))
    })
}

fn edit(page: &str, change: impl Fn(&str) -> Option<String>) -> Result<()> {
    let path = root().join(page);
    let old = fs::read_to_string(&path).with_context(|| format!("reading {page}"))?;
    let new = change(&old).with_context(|| format!("{page} lacks the place of the headline"))?;
    fs::write(path, new).with_context(|| format!("writing {page}"))
}

/// `old` with `text` between the marks, which stay.
fn between(old: &str, (from, to): (&str, &str), text: &str) -> Option<String> {
    let (before, rest) = old.split_once(from)?;
    let (_, after) = rest.split_once(to)?;
    Some(format!("{before}{from}{text}{to}{after}"))
}

/// The verdict of the gallery: predictions first, then what is `fitted`.
pub(super) fn verdict_text(crossed: &[CrossValidation], fitted: &str) -> String {
    headline(crossed)
        .map_or_else(|| fitted.to_owned(), |headline| format!("{headline} {FITTED}{fitted}"))
}

/// The section of the page, marks and all.
pub(super) fn marked_section(crossed: &[CrossValidation]) -> String {
    format!("{BEGIN}\n{}{END}\n", section(crossed))
}

/// Predictions of all drives in a few sentences; absent without any.
fn headline(crossed: &[CrossValidation]) -> Option<String> {
    let rows = || crossed.iter().flat_map(|it| &it.rows);
    let CrossTally { rows: count, predicted, fitted } = tally(rows())?;
    let estimated = tally_estimated(rows()).map_or_else(String::new, |it| {
        format!(
            " {} further figures are of workloads whose mix is estimated (median error {}).",
            it.rows,
            percent(it.predicted.0)
        )
    });
    Some(format!(
        "For {} drives, {count} rates and average latencies under {} loads were predicted by \
         models refitted without any figure of the same family of loads. Half of the predictions \
         are within {}, 90 % within {}; {}. {}The drives' own files, fitted to these figures, \
         reproduce them within {} (median) and {} (p90).{estimated}",
        crossed.len(),
        loads(crossed),
        percent(predicted.0),
        percent(predicted.1),
        extremes(crossed),
        chosen(crossed, predicted.0),
        percent(fitted.0),
        percent(fitted.1),
    ))
}

/// Medians of the drives that are predicted best and worst, and the row that is farthest off.
fn extremes(crossed: &[CrossValidation]) -> String {
    let medians = crossed.iter().filter_map(|it| Some(tally(&it.rows)?.predicted.0));
    let (least, most) =
        medians.fold((f64::INFINITY, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
    let published = crossed.iter().flat_map(|it| &it.rows).filter(|row| !row.estimated);
    let factor = |row: &CrossRow| {
        (row.predicted / row.high).max(row.low / row.predicted.max(f64::MIN_POSITIVE))
    };
    let worst = published.map(factor).fold(1.0, f64::max);
    format!(
        "medians per drive range from {:.1} to {}, and the worst prediction is off by a factor of \
         {worst:.1}",
        least * 100.0,
        percent(most)
    )
}

/// A sentence on the drives whose fixed numbers were chosen with the figures in view, and on the
/// predictions without those of them that are better than the `median` of all; empty without any.
fn chosen(crossed: &[CrossValidation], median: f64) -> String {
    let chosen = || crossed.iter().filter(|it| is_space_chosen(&it.drive));
    let is_better =
        |it: &CrossValidation| tally(&it.rows).is_some_and(|told| told.predicted.0 < median);
    let better: Vec<&str> =
        chosen().filter(|it| is_better(it)).map(|it| it.drive.as_str()).collect();
    let others = crossed.iter().filter(|it| !better.contains(&it.drive.as_str()));
    let names: Vec<&str> = chosen().map(|it| it.drive.as_str()).collect();
    let Some(told) = tally(others.flat_map(|it| &it.rows)).filter(|_| !names.is_empty()) else {
        return String::new();
    };
    let without = if better.is_empty() {
        String::new()
    } else {
        format!(
            "; without {}, which are predicted better than the median, half of {} figures are \
             within {}, 90 % within {}",
            better.join(" and "),
            told.rows,
            percent(told.predicted.0),
            percent(told.predicted.1)
        )
    };
    format!(
        "The over-provisioning or parity of {} of the drives ({}) was chosen with published \
         steady-state write rates in view{without}. ",
        names.len(),
        names.join(", ")
    )
}

/// The line of the README.
fn bullet(crossed: &[CrossValidation]) -> String {
    let headline = headline(crossed).unwrap_or_default();
    format!(
        "- Cross-validation: {headline} [How](docs/internals/validation.md#cross-validation).\n"
    )
}

fn section(crossed: &[CrossValidation]) -> String {
    let Some(headline) = headline(crossed) else { return String::new() };
    let numbers: Vec<(&str, &CrossNumber)> = crossed
        .iter()
        .flat_map(|it| it.numbers.iter().map(|number| (it.drive.as_str(), number)))
        .collect();
    format!(
        "\n## Cross-validation\n\n{headline}\n\n\
         One family of loads at a time is predicted from the others: \
         [fitting](fit.md#cross-validation) says how, what that approximates and what counts as \
         known. An error is the distance of modelled over published from 1. Written by \
         `cargo xtask cross-validate` from [the data](cross-validation.json) of model version \
         {MODEL_VERSION}.\n\n\
         {}\n{}\n{}\n{}\n",
        errors(crossed),
        families(crossed),
        suspects(&numbers),
        uncovered(crossed),
    )
}

fn errors(crossed: &[CrossValidation]) -> String {
    let mut text = String::from(
        "| drive | rates and averages | predicted: median | p90 | fitted: median | p90 |\n\
         |---|---|---|---|---|---|\n",
    );
    let mut line = |name: &str, told: Option<CrossTally>| {
        let Some(CrossTally { rows, predicted, fitted }) = told else { return };
        let [median, p90, file, file_p90] =
            [predicted.0, predicted.1, fitted.0, fitted.1].map(percent);
        let _ = writeln!(text, "| {name} | {rows} | {median} | {p90} | {file} | {file_p90} |");
    };
    let all = || crossed.iter().flat_map(|it| &it.rows);
    line("**all**", tally(all()));
    line("all, estimated workloads", tally_estimated(all()));
    for of in crossed {
        line(&of.drive, tally(&of.rows));
        line(&format!("{}, estimated workloads", of.drive), tally_estimated(&of.rows));
    }
    text
}

/// A table of the families of each drive.
fn families(crossed: &[CrossValidation]) -> String {
    let mut text = String::from(
        "| drive | family left out | rows | predicted: median | fitted: median | farthest off |\n\
         |---|---|---|---|---|---|\n",
    );
    for of in crossed {
        let mut names: Vec<&str> = of.rows.iter().map(|row| row.family.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let rows: Vec<&CrossRow> = of.rows.iter().filter(|row| row.family == name).collect();
            let published = tally(rows.iter().copied());
            let told = published.or_else(|| tally_estimated(rows.iter().copied()));
            let worst = rows.iter().max_by(|a, b| a.error.total_cmp(&b.error));
            let (Some(told), Some(worst)) = (told, worst) else { continue };
            let mark = if published.is_none() { ", estimated" } else { "" };
            let _ = writeln!(
                text,
                "| {} | {name}{mark} | {} | {} | {} | {} {}: {} for {} |",
                of.drive,
                told.rows,
                percent(told.predicted.0),
                percent(told.fitted.0),
                worst.id,
                worst.metric,
                number_text(worst.predicted),
                number_text(worst.low),
            );
        }
    }
    text
}

/// A table of the parameters that nothing or one family alone determines.
fn suspects(numbers: &[(&str, &CrossNumber)]) -> String {
    let suspect: Vec<_> = numbers.iter().filter(|(_, it)| !it.rests_on.is_empty()).collect();
    let mut text = format!(
        "Of {} free parameters, {} are suspect: a single family (a single row, in brackets) \
         determines them, or nothing does.\n\n\
         | drive | parameter | range | refitted to all | in the file | rests on |\n\
         |---|---|---|---|---|---|\n",
        numbers.len(),
        suspect.len(),
    );
    for (drive, it) in suspect {
        let [low, high, refitted, file] = [it.low, it.high, it.refitted, it.file].map(number_text);
        let rests_on = it.rests_on.join("; ");
        let _ = writeln!(
            text,
            "| {drive} | `{}` | {low} to {high} | {refitted} | {file} | {rests_on} |",
            it.key
        );
    }
    text
}

/// A sentence on the drives of the catalogue that reviewers measured and that are not covered.
fn uncovered(crossed: &[CrossValidation]) -> String {
    let names: Vec<String> = catalogue::drives()
        .into_iter()
        .filter(|drive| is_measured(drive) && !crossed.iter().any(|it| it.drive == drive.name))
        .map(|drive| drive.name)
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "Covered are {} drives; measured by reviewers, not covered, and in no number of this \
         section: {}.\n",
        crossed.len(),
        names.join(", ")
    )
}

/// True if a reviewer measured a rate or an average latency of `drive`.
fn is_measured(drive: &DriveSpec) -> bool {
    let typical = figures().iter().filter(|row| is_typical(&row.metric) && !row.phase.is_stated());
    typical.filter(|row| row.value_low.is_some()).any(|row| is_about(row, drive))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossed() -> CrossValidation {
        let row = |id: &str, estimated, error| CrossRow {
            id: id.into(),
            family: if estimated { "desktops" } else { "4k random" }.into(),
            metric: "iops".into(),
            estimated,
            low: 100.0,
            high: 100.0,
            fitted: 102.0,
            fitted_error: 0.02,
            predicted: 100.0 + error * 100.0,
            error,
        };
        let number = |key: &str, rests_on: &[&str]| CrossNumber {
            key: key.into(),
            low: 1.0,
            high: 9.0,
            start: 3.0,
            refitted: 4.0,
            file: 5.0,
            rests_on: rests_on.iter().map(|it| (*it).to_owned()).collect(),
        };
        CrossValidation {
            drive: "duo".into(),
            model_version: 1,
            numbers: vec![number("a.b", &[]), number("c.d", &["4k random (A1)"])],
            rows: vec![row("A1", false, 0.1), row("A2", true, 0.7)],
            looks: 3,
        }
    }

    #[test]
    fn predictions_come_first_and_estimated_workloads_are_told_apart() {
        let text = section(&[crossed()]);
        assert!(text.contains("For 1 drives, 1 rates and average latencies under 1 loads"));
        assert!(text.contains("predictions are within 10.0 %, 90 % within 10.0 %"), "{text}");
        let estimated =
            "1 further figures are of workloads whose mix is estimated (median error 70.0";
        assert!(text.contains(estimated), "{text}");
        assert!(
            text.contains("| duo, estimated workloads | 1 | 70.0 % | 70.0 % | 2.0 % | 2.0 % |")
        );
        assert!(
            text.contains(
                "| duo | desktops, estimated | 1 | 70.0 % | 2.0 % | A2 iops: 170 for 100 |"
            )
        );
    }

    #[test]
    fn what_one_median_hides_stands_beside_it() {
        let of = |drive: &str, error: f64| {
            let of = crossed();
            let row = CrossRow { error, predicted: 100.0 + error * 100.0, ..of.rows[0].clone() };
            CrossValidation { drive: drive.into(), rows: vec![row], ..of }
        };
        let all = [of("iodrive-duo", 0.02), of("px600-2600", 0.03), of("duo", 0.04)];
        let text = headline(&[&all[..], &[of("z-drive-r4-1600", 1.1)]].concat()).unwrap();
        for said in [
            "medians per drive range from 2.0 to 110.0 %, and the worst prediction is off by a \
             factor of 2.1.",
            "parity of 3 of the drives (iodrive-duo, px600-2600, z-drive-r4-1600) was chosen",
            "; without iodrive-duo and px600-2600, which are predicted better than the median, \
             half of 2 figures are within 57.0 %, 90 % within 110.0 %. The drives' own files",
        ] {
            assert!(text.contains(said), "{text}\nlacks {said}");
        }
        assert!(!headline(&[crossed()]).unwrap().contains("chosen"), "of no such drive");
    }

    #[test]
    fn numbers_that_one_family_determines_are_suspect() {
        let text = section(&[crossed()]);
        assert!(text.contains("Of 2 free parameters, 1 are suspect"), "{text}");
        assert!(text.contains("| duo | `c.d` | 1 to 9 | 4 | 5 | 4k random (A1) |"), "{text}");
    }

    #[test]
    fn the_verdict_of_the_gallery_is_written_once_however_often() {
        let once = verdict_text(&[crossed()], "143 of 155 are near.");
        assert!(once.ends_with("143 of 155 are near."));
        let fitted = once.split_once(FITTED).unwrap().1;
        assert_eq!(verdict_text(&[crossed()], fitted), once);
        assert_eq!(verdict_text(&[], "143 of 155 are near."), "143 of 155 are near.");
    }

    #[test]
    fn what_stands_between_marks_is_replaced() {
        assert_eq!(between("a<b>c", ("<", ">"), "x").as_deref(), Some("a<x>c"));
        assert_eq!(between("a", ("<", ">"), "x"), None);
    }
}
