//! Specification sheets: groups, sources and hostile text.

use results::PlatformRow;

use super::*;
use crate::example::{FAST, STOCK, run};
use crate::subject::subjects;

fn row(group: &str, name: &str, source: &str) -> SheetRow {
    let [group, name, source] = [group, name, source].map(str::to_owned);
    SheetRow { group, name, value: "1".into(), source }
}

#[test]
fn a_source_has_one_number_wherever_it_is_named() {
    let mut notes = Vec::new();
    let first = mark("published: a sheet", &mut notes);
    let second = mark("estimated: a guess", &mut notes);
    let again = mark("published: a sheet", &mut notes);
    assert_eq!(notes, ["published: a sheet", "estimated: a guess"]);
    assert_eq!(first, again);
    assert!(first.contains(">P</abbr>") && first.contains("#source-1"), "{first}");
    assert!(second.contains(">E</abbr>") && second.contains("#source-2"), "{second}");
    assert_eq!(mark("", &mut notes), "", "no source, no mark");
    let other = mark("asked the maker", &mut notes);
    assert!(!other.contains("abbr") && other.contains("#source-3"), "{other}");
}

#[test]
fn a_source_of_several_values_shows_the_weakest_kind_that_it_names() {
    let letters = |source| {
        let mark = mark(source, &mut Vec::new());
        mark.split_once("\">").unwrap().1.split_once('<').unwrap().0.to_owned()
    };
    assert_eq!(letters("derived: programs from 1045 MB/s; reads and erases are estimated"), "D/E");
    assert_eq!(letters("published: 16 channels; their rate is derived"), "P/D");
    assert_eq!(letters("estimated: as published MLC of the time"), "E");
    assert_eq!(letters("derived: from published latencies"), "D");
}

#[test]
fn rows_stand_under_their_group_in_the_order_of_its_first_row() {
    let sheet = [row("NAND", "tR", ""), row("Link", "PCIe", ""), row("NAND", "tPROG", "")];
    let html = specification(&sheet, &mut Vec::new());
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} in {html}"));
    assert_eq!(html.matches("<h4>").count(), 2, "a group is one card");
    assert!(place("tR") < place("tPROG") && place("tPROG") < place("Link"));
    assert!(place("Link") < place("PCIe"));
}

#[test]
fn names_from_a_drive_file_stay_text() {
    let hostile = "<script>alert(1)</script>";
    let html = specification(&[row(hostile, hostile, "published: \"x\" <b>")], &mut Vec::new());
    assert!(!html.contains("<script>") && !html.contains("<b>"), "{html}");
    assert!(html.contains("&lt;script&gt;") && html.contains("&quot;x&quot;"), "{html}");
}

#[test]
fn one_sheet_of_two_runs_is_shown_once_and_two_are_told_apart() {
    let mut alike = [run(STOCK), run(FAST)];
    alike[1].target.sheet = alike[0].target.sheet.clone();
    let html = section(&subjects(&alike));
    assert_eq!(html.matches("<h3>Specification").count(), 1, "{html}");
    assert!(html.contains("Specification: stock, high-performance"));
    let mut apart = alike;
    apart[1].target.sheet.push(row("NAND", "tR", "derived: from latencies"));
    apart[1].environment.sheet.push(PlatformRow { name: "Kernel".into(), value: "6.1".into() });
    let html = section(&subjects(&apart));
    assert_eq!(html.matches("<h3>Specification").count(), 2);
    assert_eq!(html.matches("<h3>Test platform").count(), 2);
    assert!(html.contains(">D</abbr>"));
}

#[test]
fn a_drive_of_which_nothing_is_known_has_no_empty_table() {
    let mut unknown = [run(STOCK)];
    unknown[0].target.sheet.clear();
    unknown[0].environment.sheet.clear();
    let html = section(&subjects(&unknown));
    assert_eq!(html, "<section id=\"drive\"><h2>The drive</h2>\n</section>\n");
}
