//! Tables and sentences of a page: ratios, places, figures, method, marks.

use results::{AskedRate, Climate, Figure, Limits, Run, StepKind, TargetKind};

use super::TITLE;
use super::markup::{bare, part, rows, section};
use crate::example::{FAST, STOCK, Shape, as_drives, rated, review_of_two, run};
use crate::review;

#[test]
fn one_run_is_not_compared() {
    assert!(!review(&[run(STOCK)], TITLE).contains("id=\"comparison\""));
    assert!(review(&review_of_two(), TITLE).contains("id=\"comparison\""));
}

/// Three runs on one real device.
fn repeats(shape: Shape<'static>) -> impl Iterator<Item = Run> {
    (1..=3).map(move |seed| {
        let mut run = run(Shape { seed, ..shape });
        run.target.kind = TargetKind::BlockDevice;
        (run.seed, run.model_version) = (1, None);
        run.id = format!("{}-{seed}", run.id);
        run
    })
}

#[test]
fn repeats_of_one_target_say_how_far_they_lie_apart_and_no_ratio() {
    let repeats: Vec<Run> = repeats(STOCK).collect();
    let page = review(&repeats, TITLE);
    let comparison = section(&page, "comparison");
    assert!(comparison.contains("spread of the repeats") && comparison.contains(", 3 runs"));
    assert!(!comparison.contains("class=\"ratios\""));
    for row in rows(comparison, "spread of the repeats") {
        let number = |text: &str| text.replace([',', ' ', '\u{202f}'], "").parse::<f64>().ok();
        let (low, high) = (number(&row[2]), number(&row[3]));
        assert!(low <= high && low.is_some(), "{row:?}");
        assert!(row[4].ends_with('%'), "{row:?}");
    }
}

#[test]
fn repeats_on_both_sides_give_a_ratio_its_interval() {
    let runs: Vec<Run> = repeats(STOCK).chain(repeats(FAST)).collect();
    let page = review(&runs, TITLE);
    let ratios = part(section(&page, "comparison"), "class=\"ratios\"", "</table>");
    assert!(ratios.contains(" to ") && ratios.contains("class=\"interval\">("), "{ratios}");
    let page = review(&review_of_two(), TITLE);
    let ratios = part(section(&page, "comparison"), "class=\"ratios\"", "</table>");
    assert!(!ratios.contains("class=\"interval\">("), "one run each says nothing about chance");
}

#[test]
fn a_model_beside_a_measurement_says_by_how_much_it_misses() {
    let mut measured = run(Shape { settled_iops: 50_000.0, ..STOCK });
    measured.target.kind = TargetKind::BlockDevice;
    let page = review(&[run(STOCK), measured.clone()], TITLE);
    let comparison = section(&page, "comparison");
    assert!(comparison.contains("Median error of the model: "));
    let missed = rows(comparison, "Model against measurement");
    let is_write = |row: &&Vec<String>| row[0] == "4k-rand-write T16Q16";
    let row = missed.iter().find(is_write).unwrap_or_else(|| panic!("{missed:?}"));
    assert!(row[3].starts_with('−') && row[4].starts_with('+'), "slower and later: {row:?}");
    let page = review(&[measured.clone(), measured], TITLE);
    assert!(!page.contains("Model against measurement"), "two measurements");
}

#[test]
fn published_figures_are_in_out_or_not_measured() {
    let mut one = run(STOCK);
    let of = |id: &str, measured: Option<f64>, range: (f64, f64)| Figure {
        id: id.into(),
        value_low: range.0,
        value_high: range.1,
        measured,
        ..one.published[0].clone()
    };
    let edge = 100.0 * 1.15;
    let figures = vec![
        of("X1", Some(edge - 0.01), (100.0, 100.0)),
        of("X2", Some(edge + 0.01), (100.0, 100.0)),
        of("X3", None, (100.0, 100.0)),
        of("X4", Some(250.0), (200.0, 300.0)),
        of("X5", Some(100.0), (200.0, 300.0)),
    ];
    one.published = figures;
    let page = review(&[one], TITLE);
    let published = section(&page, "published");
    assert!(published.contains("2 of 4 published figures"), "{published}");
    assert!(published.contains("1 more were not measured"));
    let all = part(published, "Every figure", "</details>");
    let said = |id: &str| {
        let row = part(all, &format!(">{id}</th>"), "</tr>");
        bare(row.rsplit("<td").next().and_then(|it| it.split_once('>')).unwrap().1)
    };
    assert_eq!(
        ["X1", "X2", "X3", "X4", "X5"].map(said),
        ["in", "out", "not measured", "in", "out"]
    );
    let out = part(published, "Out of tolerance", "</table>");
    assert!(out.contains(">X2<") && out.contains(">X5<") && !out.contains(">X1<"));
    assert!(part(all, ">X4</th>", "</tr>").contains("200 to 300"), "a range is told as one");
}

#[test]
fn figures_of_another_protocol_stand_on_the_page_with_what_differs() {
    let mut of = run(STOCK);
    let figure = of.published.iter().find(|it| it.workload == "4k-rand-write").unwrap().clone();
    of.published.clear();
    of.published_elsewhere = vec![Figure {
        document: "CSD 3000 review".into(),
        mode: "compressed-2:1".into(),
        threads: "64".into(),
        queue_per_thread: String::new(),
        measured: None,
        metric: "iops".into(),
        phase: "primary".into(),
        value_low: 735_000.0,
        value_high: 735_000.0,
        ..figure
    }];
    let page = review(&[of.clone()], TITLE);
    let told = rows(section(&page, "published"), "class=\"elsewhere\"");
    assert_eq!(told[0][3], "735,000");
    assert_eq!(told[0][4], "protocol (CSD 3000 review), 64 threads, 2:1 compressible");
    let mut apart = of.clone();
    let figure = &mut apart.published_elsewhere[0];
    (figure.host, figure.phase) = ("windows".into(), "precondition-end".into());
    let page_apart = review(&[apart], TITLE);
    let told = rows(section(&page_apart, "published"), "class=\"elsewhere\"");
    let differs = "protocol (CSD 3000 review), windows host, precondition end, 64 threads, 2:1";
    assert!(told[0][4].starts_with(differs), "{told:?}");
    let glance = section(&page, "glance");
    assert!(glance.contains("published, another protocol"), "{glance}");
    assert!(glance.contains("<span>735K</span> <i>64 threads</i> <i>2:1 compressible</i>"));
}

#[test]
fn a_page_of_models_is_called_modelled_wherever_it_begins() {
    let page = review(&[run(STOCK)], TITLE);
    assert!(page.contains(&format!("<title>{TITLE}, modelled</title>")));
    assert!(page.contains(&format!("<h1>{TITLE}, modelled</h1>")));
    assert!(page.contains("<p class=\"verdict\">Modelled"), "the first line");
    assert!(page.contains(">Modelled</th>") && !page.contains(">Measured</th>"), "headings");
    assert!(page.contains("<body class=\"modelled\">") && page.contains(".modelled { page:"));
    let mut real = run(STOCK);
    real.target.kind = TargetKind::BlockDevice;
    let page = review(&[real], TITLE);
    assert!(page.contains(&format!("<h1>{TITLE}</h1>")) && page.contains(">Measured</th>"));
    assert!(!page.contains("<body class=\"modelled\">"));
}

#[test]
fn a_page_of_models_and_others_says_so_wherever_it_begins() {
    let mut runs = as_drives(review_of_two());
    runs[1].target.kind = TargetKind::BlockDevice;
    let page = review(&runs, TITLE);
    assert!(page.contains(&format!("<h1>{TITLE}, modelled and measured</h1>")));
    assert!(page.contains("<p class=\"verdict\">Partly modelled, steady state: "));
    assert!(page.contains("<body class=\"mixed\">") && page.contains(".mixed { page: mixed; }"));
    runs[1].environment.imported_from = Some("fio-3.33".into());
    let page = review(&runs, TITLE);
    assert!(page.contains(&format!("<title>{TITLE}, modelled and imported</title>")));
}

#[test]
fn only_of_models_is_agreement_said_to_be_that_of_a_fit() {
    let fitted = "Models are fitted to published figures";
    let mut one = run(STOCK);
    assert_eq!(review(&[one.clone()], TITLE).matches(fitted).count(), 2, "section and bottom line");
    one.target.kind = TargetKind::BlockDevice;
    assert!(!review(&[one], TITLE).contains(fitted));
}

#[test]
fn runs_without_published_figures_have_no_section_of_them() {
    let mut one = run(STOCK);
    one.published.clear();
    assert!(!review(&[one], TITLE).contains("id=\"published\""));
}

#[test]
fn figures_that_are_all_met_leave_no_list_of_misses() {
    let mut one = run(STOCK);
    one.published.retain(|figure| figure.is_in_tolerance() == Some(true));
    assert!(!one.published.is_empty());
    let page = review(&[one], TITLE);
    assert!(!page.contains("Out of tolerance") && page.contains("Every figure"));
}

#[test]
fn the_method_tells_what_was_done_for_how_long() {
    let page = review(&[run(STOCK)], TITLE);
    let method = section(&page, "method");
    assert!(method.contains("1/32 of the capacity for 1/32 of the time"));
    let rows = rows(method, "class=\"steps\"");
    let of_4k = rows.iter().find(|row| row[4].contains("4k-rand-write")).unwrap();
    assert!(of_4k[2].ends_with("T16Q16"), "{of_4k:?}");
    assert!(of_4k[3].contains('6') && of_4k[6].contains('5'), "6 h, then 5 min each: {of_4k:?}");
    let mut whole = run(STOCK);
    whole.target.time_lapse = 1;
    assert!(!review(&[whole], TITLE).contains("<b>Time lapse"));
}

#[test]
fn littles_law_is_told_of_loads_that_were_not_held_to_a_rate() {
    let mut one = run(STOCK);
    let page = review(&[one.clone()], TITLE);
    let loads = |page: &str| {
        let said = part(page, "the outstanding requests (Little's law) in ", " loads");
        let number = said.rsplit(' ').next().map(str::to_owned);
        number.and_then(|it| it.parse::<usize>().ok()).unwrap()
    };
    let before = loads(&page);
    let (measured, rest): (Vec<_>, Vec<_>) =
        one.steps.into_iter().partition(|step| step.kind == StepKind::Measure);
    one.steps = rest;
    one.steps.extend(measured.into_iter().enumerate().map(|(index, mut step)| {
        let iops = step.summary.as_ref().map_or(0.0, |summary| summary.iops);
        step.rate = (index < 3).then_some(AskedRate { iops, percent: None, limit: None });
        step
    }));
    assert_eq!(loads(&review(&[one], TITLE)), before - 3);
}

#[test]
fn a_load_held_below_the_most_is_named_with_its_share() {
    let mut one = run(STOCK);
    let held = [25, 50, 75].map(|percent| rated(&one, percent, None));
    one.steps.extend(held);
    let page = review(&[one], TITLE);
    for percent in ["25 %", "50 %", "75 %"] {
        assert!(page.contains(percent), "{percent}");
    }
}

#[test]
fn limits_of_heat_are_drawn_where_they_are_known() {
    let heated = |limits: Option<Limits>| {
        let mut one = run(STOCK);
        one.target.limits = limits;
        for sample in one.steps.iter_mut().flat_map(|step| &mut step.samples) {
            sample.summary.climate =
                Some(Climate { temperature_c: Some(61.0), ..Climate::default() });
        }
        review(&[one], TITLE)
    };
    let limits = Limits { warning_c: Some(77.0), critical_c: Some(85.0), ..Limits::default() };
    let page = heated(Some(limits));
    assert!(page.contains("warning temperature 77") && page.contains("critical temperature 85"));
    assert!(!page.contains("throttles at"), "a limit that the drive did not tell");
    let page = heated(None);
    assert!(page.contains("-temperature") && !page.contains("warning temperature"));
    assert!(!page.contains("-power\""), "power was not told");
}

#[test]
fn a_purge_that_was_not_possible_is_told_in_the_words_of_its_driver() {
    let mut one = run(STOCK);
    one.steps[0].how = "blkdiscard <all> & \"nothing\" else".into();
    let page = review(&[one], TITLE);
    assert!(page.contains("blkdiscard &lt;all&gt; &amp;"));
    assert!(page.contains("Every step, as its driver describes it"));
}
