//! Verdict and sheet on one page.

use results::{Run, SheetRow};

use super::TITLE;
use super::browser::sheets_of_paper;
use crate::example::{STOCK, Shape, review_of_two, run};
use crate::one_page;

/// Five drives with long names, of which each has a sheet of its own.
fn five() -> Vec<Run> {
    let drive = |number: u64| {
        let mut run = run(Shape { seed: number, ..STOCK });
        run.target.name = format!("drive-{number}");
        run.target.title = format!("Some Maker EnterpriseDrive {number}000 Ultra 7.68 TB (TLC)");
        let row = |at: usize| SheetRow {
            group: "Data sheet".into(),
            name: format!("Property {at}"),
            value: format!("{number} of many"),
            source: String::new(),
        };
        run.target.sheet.extend((0..16).map(row));
        run
    };
    (1..=5).map(drive).collect()
}

#[test]
fn one_run_two_formats_and_five_drives_take_a_sheet_of_paper_each() {
    for runs in [vec![run(STOCK)], review_of_two(), five()] {
        let Some(sheets) = sheets_of_paper(&one_page(&runs, TITLE)) else { return };
        assert_eq!(sheets, 1, "{} runs", runs.len());
    }
}

#[test]
fn a_drive_has_verdict_points_and_what_its_sheet_says_of_the_drive_itself() {
    let mut runs = review_of_two();
    let row = |group: &str, name: &str| SheetRow {
        group: group.into(),
        name: name.into(),
        value: "<1>".into(),
        source: String::new(),
    };
    for run in &mut runs {
        run.target.sheet = vec![row("Data sheet", "Weight"), row("NAND", "Program time")];
    }
    let page = one_page(&runs, TITLE);
    assert!(page.contains("<p class=\"verdict\">") && page.contains("<h3>Pros</h3>"));
    assert!(page.contains("<dt>Weight</dt><dd>&lt;1&gt;</dd>"), "one sheet for both formats");
    assert!(!page.contains("Program time"), "a number of the model");
    assert!(page.contains("<body class=\"one-page modelled\">"));
    assert!(!page.contains("<script>"), "it has nothing to click");
}

#[test]
fn several_drives_have_their_loads_and_the_properties_in_which_they_differ() {
    let page = one_page(&five(), "Five");
    assert!(page.contains("Primary test") && !page.contains("<h3>Pros</h3>"));
    assert_eq!(page.matches("<th scope=\"row\">Property 3</th>").count(), 1);
    assert!(page.contains("In common: "), "what all of them have is said once");
    assert!(page.contains(" crowded\">"));
}
