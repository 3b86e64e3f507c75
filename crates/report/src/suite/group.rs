//! Charts that belong together, and the tables behind them.

use std::fmt::Write as _;

use crate::chart::Chart;
use crate::text::{Cell, Text};

/// Charts that belong together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group<'a> {
    /// Its heading.
    pub(super) title: &'a str,
    /// HTML above the charts.
    pub(super) lead: &'a str,
    /// Charts that are always shown.
    pub(super) charts: &'a [Chart],
    /// Further charts, folded until opened.
    pub(super) more: &'a [Chart],
    /// Tables behind the charts, shown on asking.
    pub(super) numbers: &'a str,
}

impl Group<'_> {
    /// The heading, the lead, the charts in a grid, and what is shown on asking; empty without
    /// charts.
    pub(super) fn html(&self) -> String {
        let shown: Vec<&Chart> = self.charts.iter().filter(|chart| !chart.is_empty()).collect();
        let more: Vec<&Chart> = self.more.iter().filter(|chart| !chart.is_empty()).collect();
        if shown.is_empty() && more.is_empty() {
            return String::new();
        }
        let mut html = format!(
            "<div class=\"group\"><h3>{}</h3>\n{}{}",
            Text(self.title),
            self.lead,
            self.cautions()
        );
        let is_common = has_common_legend(&shown);
        if is_common {
            html.push_str(&shown.first().map_or(String::new(), |chart| chart.legend()));
        }
        let figures: String = shown.iter().map(|chart| chart.figure(is_common)).collect();
        if !figures.is_empty() {
            let _ = write!(html, "<div class=\"charts\">{figures}</div>");
        }
        html.push_str(&folded(&more));
        if !self.numbers.is_empty() {
            let _ =
                write!(html, "<details><summary>The numbers</summary>{}</details>", self.numbers);
        }
        html + "</div>"
    }

    /// Returns the cautions of all its charts, each once.
    fn cautions(&self) -> String {
        let mut all: Vec<&String> =
            self.charts.iter().chain(self.more).flat_map(|chart| &chart.cautions).collect();
        all.sort();
        all.dedup();
        let mut html = String::new();
        for text in all {
            let _ = write!(html, "<p class=\"caution\">{}</p>", Text(text));
        }
        html
    }
}

/// True if `charts` all show the same series, so that one legend is enough.
fn has_common_legend(charts: &[&Chart]) -> bool {
    let [first, others @ ..] = charts else { return false };
    let names = |chart: &Chart| -> Vec<(String, usize)> {
        chart.names().into_iter().map(|(name, look)| (name.to_owned(), look.tone)).collect()
    };
    !others.is_empty() && others.iter().all(|chart| names(chart) == names(first))
}

/// Charts behind a line that names them; empty without any.
fn folded(charts: &[&Chart]) -> String {
    if charts.is_empty() {
        return String::new();
    }
    let mut names: Vec<(String, usize)> = Vec::new();
    for chart in charts {
        let name = chart.title.split(',').next().unwrap_or_default();
        // `IOPS` stays as it is.
        let name = if name.starts_with("IOPS") { name.into() } else { name.to_lowercase() };
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    let names = names.into_iter().map(|(name, count)| match count {
        1 => name,
        count => format!("{name} ({count})"),
    });
    let figures: String = charts.iter().map(|chart| chart.figure(false)).collect();
    format!(
        "<details class=\"more\"><summary>{} more chart{}: {}</summary>\
         <div class=\"charts\">{figures}</div></details>",
        charts.len(),
        if charts.len() == 1 { "" } else { "s" },
        Text(&names.collect::<Vec<_>>().join(", ")),
    )
}

/// A table of numbers: heads, then rows of cells of which the first is a name.
pub(super) fn table(heads: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
    for head in heads {
        let _ = write!(html, "<th scope=\"col\">{}</th>", Text(head));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let _ = match index {
                0 => write!(html, "<th scope=\"row\">{}</th>", Text(cell)),
                _ => write!(html, "<td>{}</td>", Cell(cell)),
            };
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}
