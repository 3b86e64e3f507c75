//! Parts of a page for assertions: sections, tables, text without markup.

/// The text of a part of a page from `from` on until `to`.
pub(super) fn part<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let begin = page.find(from).unwrap_or_else(|| panic!("no {from}"));
    let rest = &page[begin..];
    &rest[..rest.find(to).unwrap_or_else(|| panic!("no {to} after {from}"))]
}

pub(super) fn section<'a>(page: &'a str, id: &str) -> &'a str {
    part(page, &format!("<section id=\"{id}\""), "</section>")
}

/// The cells of the rows of the first table after `heading`, without markup.
pub(super) fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let table = part(part(page, heading, "</table>"), "<tbody>", "</tbody>");
    let cells = |row: &str| {
        let cells = row.split("<t").skip(1);
        cells.map(|cell| bare(&cell[cell.find('>').map_or(0, |at| at + 1)..])).collect()
    };
    table
        .split("<tr")
        .skip(1)
        .map(|row| cells(&row[row.find('>').map_or(0, |at| at + 1)..]))
        .collect()
}

/// A text without its tags.
pub(super) fn bare(html: &str) -> String {
    let parts = html.split('<').enumerate();
    parts
        .map(
            |(index, part)| {
                if index == 0 { part } else { part.split_once('>').map_or("", |it| it.1) }
            },
        )
        .collect()
}
