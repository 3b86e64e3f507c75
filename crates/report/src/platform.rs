//! Specification sheets of the drives, and what they were tested on.

use std::fmt::Write as _;

use results::{Environment, SheetRow};

use crate::subject::{Subject, shared};
use crate::text::Text;

/// The section: sheets that several runs share are shown once, sources as numbered notes.
pub(crate) fn section(subjects: &[Subject<'_>]) -> String {
    let mut html = String::from("<section id=\"drive\"><h2>The drive</h2>\n");
    let mut notes: Vec<&str> = Vec::new();
    for (names, sheet) in shared(subjects, |subject| &subject.run.target.sheet) {
        if !sheet.is_empty() {
            let sheet = specification(sheet, &mut notes);
            let _ = write!(html, "<h3>Specification: {}</h3>{sheet}", Text(&names));
        }
    }
    html.push_str(&listed(&notes));
    for (names, environment) in shared(subjects, |subject| &subject.run.environment) {
        if !environment.sheet.is_empty() {
            let _ =
                write!(html, "<h3>Test platform: {}</h3>{}", Text(&names), machine(environment));
        }
    }
    html + "</section>\n"
}

/// The sources by their numbers; empty without any.
fn listed(notes: &[&str]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<p class=\"small\">Every value carries its kind: <span class=\"kind published\">P</span> \
         published, <span class=\"kind derived\">D</span> derived from published values, <span \
         class=\"kind estimated\">E</span> estimated; and the number of its source. One source \
         often covers several values. D/E and P/E mark sources of which some values are estimated; \
         the text of the source says which.</p>\
         <ol class=\"notes\">",
    );
    for (index, note) in notes.iter().enumerate() {
        let _ = write!(html, "<li id=\"source-{}\">{}</li>", index + 1, Text(note));
    }
    html + "</ol>"
}

fn specification<'a>(sheet: &'a [SheetRow], notes: &mut Vec<&'a str>) -> String {
    let mut html = String::from("<div class=\"sheet\">");
    let mut groups: Vec<&str> = Vec::new();
    for row in sheet {
        if !groups.contains(&row.group.as_str()) {
            groups.push(&row.group);
        }
    }
    for group in groups {
        let _ = write!(html, "<div class=\"card\"><h4>{}</h4><dl>", Text(group));
        for row in sheet.iter().filter(|row| row.group == group) {
            let _ = write!(
                html,
                "<div><dt>{}</dt><dd>{} {}</dd></div>",
                Text(&row.name),
                Text(&row.value),
                mark(&row.source, notes),
            );
        }
        html.push_str("</dl></div>");
    }
    html + "</div>"
}

/// Kinds of sources, the weakest last.
const KINDS: [(&str, &str); 3] = [("published", "P"), ("derived", "D"), ("estimated", "E")];

/// The kind of a source, by its first word, with the weakest that its text names beside, since a
/// source is that of several values; and its number among `notes`, to which it is added.
fn mark<'a>(source: &'a str, notes: &mut Vec<&'a str>) -> String {
    if source.is_empty() {
        return String::new();
    }
    let number = notes.iter().position(|note| *note == source).unwrap_or_else(|| {
        notes.push(source);
        notes.len() - 1
    }) + 1;
    let first = KINDS.iter().position(|(kind, _)| source.starts_with(kind));
    let kind = first.map_or(String::new(), |first| {
        let weakest = KINDS.iter().rposition(|(kind, _)| source.contains(kind)).unwrap_or(first);
        let (kind, letter) = KINDS[weakest];
        let letters =
            if weakest > first { format!("{}/{letter}", KINDS[first].1) } else { letter.into() };
        format!("<abbr class=\"kind {kind}\" title=\"{}\">{letters}</abbr>", Text(source))
    });
    format!("{kind}<sup><a href=\"#source-{number}\">{number}</a></sup>")
}

fn machine(environment: &Environment) -> String {
    let mut html = String::from("<div class=\"sheet\"><div class=\"card\"><dl>");
    for row in &environment.sheet {
        let (name, value) = (Text(&row.name), Text(&row.value));
        let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    html + "</dl></div></div>"
}

#[cfg(test)]
mod tests;
