//! The page of a validation: each published figure beside what its model does.
//!
//! The figures come here judged and are only shown: in short, as a field of ratios drive by drive,
//! the worst with their discussions, and all of them.

mod field;

use std::fmt::Write as _;

use crate::number;
use crate::text::Text;

/// A validation, judged.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Conditions of the validation: versions, seed, counts; one sentence each.
    pub conditions: Vec<String>,
    /// Share of figures that are reproduced: for all of them, then for each drive.
    pub tallies: Vec<TallyLine>,
    /// Every figure that was compared, in the order of the table that they come from.
    pub figures: Vec<JudgedFigure>,
    /// Names of the figures that are farthest off, the farthest first.
    pub worst: Vec<String>,
    /// Discussions of the worst figures.
    pub discussions: Vec<Discussion>,
}

/// Tallies of the figures of one drive or of another set.
#[derive(Clone, Debug)]
pub struct TallyLine {
    /// The drive, or what else the figures have in common.
    pub name: String,
    /// Rates and average latencies.
    pub typical: Tally,
    /// Standard deviations, maxima and percentiles that do not follow from listed stalls.
    pub spread: Tally,
    /// Spread figures that follow from the stalls listed in a drive's file, which were fitted to
    /// them.
    pub from_listed_stalls: Tally,
}

/// Count of compared figures, and of those in tolerance.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    /// Figures that were compared.
    pub figures: usize,
    /// Figures within the tolerance of their metric.
    pub near: usize,
    /// Median error as a share; absent where there are no figures.
    pub error_median: Option<f64>,
}

/// Published figure beside the modelled one.
#[derive(Clone, Debug)]
pub struct JudgedFigure {
    /// Name of the row.
    pub id: String,
    /// Name of the model.
    pub drive: String,
    /// Name of the model, the format and the host.
    pub model: String,
    /// Workload, load and phase: `4k-rand-write T16Q16, steady`.
    pub load: String,
    /// Metric, with its unit.
    pub metric: String,
    /// Published value, as it is written.
    pub published: String,
    /// Modelled value, in the unit of the metric.
    pub modelled: f64,
    /// Modelled over published, above 0.
    pub ratio: f64,
    /// True if it is within the tolerance of the metric.
    pub within: bool,
    /// True for a rate or an average latency; false for a deviation, a maximum or a percentile.
    pub is_typical: bool,
    /// True if a reviewer measured it; false if a data sheet states it.
    pub is_measured: bool,
    /// True if it follows from the stalls listed in the drive's file, which were fitted to such
    /// figures.
    pub is_from_listed_stall: bool,
}

/// Discussion of some figures.
#[derive(Clone, Debug)]
pub struct Discussion {
    /// Names of their rows.
    pub rows: Vec<String>,
    /// The text.
    pub text: String,
}

/// Sections, by anchor and title.
const SECTIONS: [(&str, &str); 4] = [
    ("summary", "In short"),
    ("field", "Drive by drive"),
    ("worst", "The worst"),
    ("figures", "Every figure"),
];

/// The table of contents.
pub(crate) fn contents() -> String {
    let line = |(anchor, title): &(&str, &str)| {
        format!("<li><a href=\"#{anchor}\">{}</a></li>", Text(title))
    };
    let lines: String = SECTIONS.iter().map(line).collect();
    format!("<nav aria-label=\"Contents\"><p class=\"brand\">Floatgate</p><ol>{lines}</ol></nav>")
}

/// The body of the page.
pub(crate) fn body(of: &Validation) -> String {
    format!(
        "<main><header><h1>Models beside published figures</h1><p class=\"verdict\">{}</p>\
         <p class=\"small\">{}</p></header>{}{}{}{}</main>",
        verdict(of),
        Text(&of.conditions.join(" ")),
        section(0, "", &tallies(of)),
        section(1, FIELD, &field::figures(of)),
        section(2, "", &worst(of)),
        section(3, "", &every_figure(of)),
    )
}

const FIELD: &str = "Each dot is a published figure, at the position modelled ÷ published. Dots \
                     in the band are in tolerance.";

fn section(index: usize, text: &str, inner: &str) -> String {
    let (anchor, title) = SECTIONS[index];
    let text = if text.is_empty() { String::new() } else { format!("<p>{}</p>", Text(text)) };
    format!("<section id=\"{anchor}\"><h2>{}</h2>{text}{inner}</section>", Text(title))
}

/// The first line of the tallies as a sentence.
fn verdict(of: &Validation) -> String {
    let Some(TallyLine { typical, spread, from_listed_stalls, .. }) = of.tallies.first() else {
        return "No figure could be compared.".into();
    };
    format!(
        "Modelled, {} of {} rates and average latencies that reviewers measured are in tolerance \
         (rates 15 %, average latencies 20 %), half of them within {}. Of the standard deviations \
         and maxima that follow from the stalls listed in the drives' files, which were fitted to \
         such figures, {} of {} are within a factor of two, and of the others {} of {}.",
        typical.near,
        typical.figures,
        percent(typical.error_median),
        from_listed_stalls.near,
        from_listed_stalls.figures,
        spread.near,
        spread.figures,
    )
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".into(), |share| format!("{:.1} %", share * 100.0))
}

fn tallies(of: &Validation) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"summary\"><thead><tr><th scope=\"col\">figures</th>\
         <th scope=\"col\">rates and averages</th><th scope=\"col\">median error</th>\
         <th scope=\"col\">in tolerance</th>\
         <th scope=\"col\">standard deviations and maxima, no listed stall</th>\
         <th scope=\"col\">within a factor of two</th>\
         <th scope=\"col\">from listed stalls</th>\
         <th scope=\"col\">within a factor of two</th></tr></thead><tbody>",
    );
    for TallyLine { name, typical, spread, from_listed_stalls } in &of.tallies {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>",
            Text(name),
            typical.figures,
            percent(typical.error_median),
            near(typical),
            spread.figures,
            near(spread),
            from_listed_stalls.figures,
            near(from_listed_stalls),
        );
    }
    html + "</tbody></table></div>"
}

fn near(tally: &Tally) -> String {
    if tally.figures == 0 {
        return "<span class=\"absent\">–</span>".into();
    }
    let share = tally.near as f64 / tally.figures as f64 * 100.0;
    format!("{} of {} ({share:.0} %)", tally.near, tally.figures)
}

/// The figures that are farthest off, each cause below them.
fn worst(of: &Validation) -> String {
    let rows: Vec<&JudgedFigure> = of
        .worst
        .iter()
        .filter_map(|id| of.figures.iter().find(|figure| figure.id == *id))
        .collect();
    let mut html = table(&rows);
    for Discussion { rows, text } in &of.discussions {
        let _ = write!(html, "<h3>{}</h3><p>{}</p>", Text(&rows.join(", ")), Text(text.trim()));
    }
    html
}

/// All figures, those that were measured first.
fn every_figure(of: &Validation) -> String {
    let part = |title: &str, is_measured: bool| {
        let figures = of.figures.iter().filter(|figure| figure.is_measured == is_measured);
        let figures: Vec<&JudgedFigure> = figures.collect();
        format!("<h3>{}, {}</h3>{}", Text(title), figures.len(), table(&figures))
    };
    part("Measured by reviewers", true) + &part("Stated by data sheets", false)
}

fn table(figures: &[&JudgedFigure]) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"judged\"><thead><tr><th scope=\"col\">row</th>\
         <th scope=\"col\">model</th><th scope=\"col\">load</th><th scope=\"col\">metric</th>\
         <th scope=\"col\">published</th><th scope=\"col\">modelled</th>\
         <th scope=\"col\">ratio</th><th scope=\"col\"></th></tr></thead><tbody>",
    );
    for figure in figures {
        let (class, word) = if figure.within { ("good", "in") } else { ("bad", "out") };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{:.2}</td><td class=\"{class}\">{word}</td></tr>",
            Text(&figure.id),
            Text(&figure.model),
            Text(&figure.load),
            Text(&figure.metric),
            Text(&figure.published),
            number::plain(figure.modelled),
            figure.ratio,
        );
    }
    html + "</tbody></table></div>"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(id: &str, ratio: f64) -> JudgedFigure {
        JudgedFigure {
            id: id.into(),
            drive: "duo".into(),
            model: "duo stock linux".into(),
            load: "4k-rand-write T16Q16, steady".into(),
            metric: "iops".into(),
            published: "41000 to 42000".into(),
            modelled: 42_000.0 * ratio,
            ratio,
            within: (0.85..1.15).contains(&ratio),
            is_typical: true,
            is_measured: true,
            is_from_listed_stall: false,
        }
    }

    fn validation() -> Validation {
        let tally = Tally { figures: 2, near: 1, error_median: Some(0.081) };
        let none = Tally { figures: 0, near: 0, error_median: None };
        let line = |name: &str| TallyLine {
            name: name.into(),
            typical: tally,
            spread: none,
            from_listed_stalls: none,
        };
        Validation {
            conditions: vec!["Model version 2.".into()],
            tallies: vec![line("all measured"), line("duo")],
            figures: vec![
                figure("A1", 1.01),
                figure("A2", 40.0),
                JudgedFigure { is_measured: false, ..figure("A3", 0.9) },
            ],
            worst: vec!["A2".into()],
            discussions: vec![Discussion { rows: vec!["A2".into()], text: "A <stall>.\n".into() }],
        }
    }

    #[test]
    fn every_figure_stands_in_its_table_and_every_measured_one_in_the_field() {
        let html = crate::validation(&validation());
        assert_eq!(html.matches("<th scope=\"row\">A2</th>").count(), 2, "worst and all");
        assert_eq!(html.matches("<th scope=\"row\">A3</th>").count(), 1);
        assert_eq!(html.matches("<title>A2, duo stock linux").count(), 1);
        assert_eq!(html.matches("<title>A3, ").count(), 0, "of a data sheet");
        assert!(html.contains(
            "1 of 2 rates and average latencies that reviewers measured are in tolerance"
        ));
    }

    #[test]
    fn what_is_said_of_the_worst_is_text() {
        assert!(crate::validation(&validation()).contains("<h3>A2</h3><p>A &lt;stall&gt;.</p>"));
    }
}
