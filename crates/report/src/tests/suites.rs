//! The section of one suite: which charts there are, what their tables hold, where they come from.

use results::points::ChartPoint;
use results::{
    ClassWrites, Climate, ConfidenceInterval, IntervalKind, LatencySpread, LatencySummary, Run,
    Sample, Spread, Step, StepKind, Summary, TierWork,
};

use super::TITLE;
use super::markup::{bare, part, rows, section};
use crate::chart::{Body, Chart};
use crate::example::{FAST, STOCK, Shape, rated, review_of_two, run};
use crate::subject::{Suite, subjects, suites};
use crate::{data, review, suite};

/// The charts of the suite `name`.
fn charts(runs: &[Run], name: &str) -> Vec<Chart> {
    let subjects = subjects(runs);
    let suites = suites(&subjects);
    suite::charts(suites.iter().find(|suite| suite.name == name).expect("it was measured"))
}

fn chart(runs: &[Run], suite: &str, id: &str) -> Chart {
    let charts = charts(runs, suite);
    let ids: Vec<&str> = charts.iter().map(|chart| &*chart.id).collect();
    charts.iter().find(|chart| chart.id == id).unwrap_or_else(|| panic!("{id} of {ids:?}")).clone()
}

/// Names of the series of a chart, and their numbers of points.
fn series(chart: &Chart) -> Vec<(String, usize)> {
    let (Body::Lines(all, _) | Body::Bands(all, _) | Body::Curve(all) | Body::Area(all)) =
        &chart.body
    else {
        panic!("{} has no lines", chart.id)
    };
    all.iter().map(|it| (it.name.clone(), it.points.len())).collect()
}

fn heard(page: &str, suite: &str) -> String {
    section(page, &format!("suite-{suite}")).to_owned()
}

#[test]
fn one_load_is_drawn_as_bars_and_a_grid_of_loads_as_a_sweep() {
    let page = review(&[run(STOCK)], TITLE);
    assert!(heard(&page, "4k").contains("<h3>Primary test</h3>"));
    let swept = heard(&page, "8k-70-30");
    assert!(swept.contains("<h3>Primary test with 8k-70-30, T2Q2 to T16Q16</h3>"));
    assert!(!swept.contains("<h3>Primary test</h3>"));
}

#[test]
fn a_run_alone_has_a_line_of_queue_depth_for_each_number_of_threads() {
    let depth = chart(&[run(STOCK)], "8k-70-30", "8k-70-30-8k-70-30-depth");
    let named: Vec<String> = series(&depth).into_iter().map(|it| it.0).collect();
    assert_eq!(named, ["2 threads", "4 threads", "8 threads", "16 threads"]);
    assert!(series(&depth).iter().all(|(_, points)| *points == 4));
    let two = chart(&review_of_two(), "8k-70-30", "8k-70-30-8k-70-30-depth");
    let named: Vec<String> = series(&two).into_iter().map(|it| it.0).collect();
    assert_eq!(named, ["stock", "high-performance"], "of several, each one line");
}

#[test]
fn of_loads_with_equally_many_outstanding_the_fastest_is_drawn() {
    let two = chart(&review_of_two(), "8k-70-30", "8k-70-30-8k-70-30-depth");
    let Body::Lines(lines, _) = &two.body else { panic!("no lines") };
    for line in lines {
        let outstanding: Vec<f64> = line.points.iter().map(|point| point.0).collect();
        assert!(outstanding.is_sorted_by(|a, b| a < b), "{outstanding:?}");
        assert_eq!(outstanding, [4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
    }
}

#[test]
fn large_transfers_are_told_in_gigabytes_a_second() {
    let mut large = run(STOCK);
    let enlarge = |it: &mut Summary| {
        it.throughput_read_mb_s *= 32.0;
        it.throughput_write_mb_s *= 32.0;
    };
    for step in large.steps.iter_mut().filter(|step| step.suite == "4k") {
        step.summary.iter_mut().chain(&mut step.settled).for_each(enlarge);
    }
    let bars = charts(std::slice::from_ref(&large), "4k");
    assert!(bars.iter().any(|chart| chart.id == "4k-bars-gb-s"));
    assert!(!bars.iter().any(|chart| chart.id == "4k-bars-iops"));
    let small = charts(&[large, run(FAST)], "4k");
    assert!(small.iter().any(|chart| chart.id == "4k-bars-iops"), "one with small transfers");
}

#[test]
fn reads_and_writes_are_drawn_apart_where_both_happened() {
    let mixed = chart(&[run(STOCK)], "8k-70-30", "8k-70-30-time-apart");
    let named: Vec<String> = series(&mixed).into_iter().map(|it| it.0).collect();
    assert_eq!(named, ["stock, reads", "stock, writes"]);
    let pure = charts(&[run(STOCK)], "4k");
    assert!(!pure.iter().any(|chart| chart.id == "4k-time-apart"));
}

#[test]
fn of_three_runs_tails_are_drawn_in_the_place_of_bands() {
    let runs: Vec<Run> = (1..=3).map(|seed| run(Shape { seed, ..STOCK })).collect();
    let spread = |runs: &[Run]| chart(runs, "4k", "4k-time-spread");
    assert!(matches!(spread(&runs[..2]).body, Body::Bands(..)));
    assert_eq!(series(&spread(&runs[..2])).len(), 6, "three percentiles of each");
    assert!(matches!(spread(&runs).body, Body::Lines(..)));
    assert_eq!(series(&spread(&runs)).len(), 3, "one line of each");
}

#[test]
fn at_most_six_runs_have_a_heat_map() {
    let runs: Vec<Run> = (1..=8).map(|seed| run(Shape { seed, ..STOCK })).collect();
    let maps = |runs: &[Run]| {
        charts(runs, "4k").iter().filter(|chart| chart.id.starts_with("4k-heat-")).count()
    };
    assert_eq!([maps(&runs[..1]), maps(&runs[..6]), maps(&runs)], [1, 6, 6]);
}

#[test]
fn heat_maps_of_one_suite_have_one_scale() {
    let runs = review_of_two();
    let maps: Vec<Chart> =
        charts(&runs, "4k").into_iter().filter(|it| it.id.starts_with("4k-heat-")).collect();
    assert_eq!(maps.len(), 2);
    assert!(maps[0].y.domain.is_some());
    assert_eq!(maps[0].y.domain, maps[1].y.domain);
}

#[test]
fn a_preconditioning_of_one_sample_has_no_heat_map() {
    let mut short = run(STOCK);
    for step in &mut short.steps {
        step.samples.truncate(1);
    }
    let charts = charts(&[short], "4k");
    assert!(!charts.iter().any(|chart| chart.id.starts_with("4k-heat-")));
}

#[test]
fn write_amplification_has_a_layer_for_each_cause_that_wrote() {
    let causes = |run: &Run| -> Vec<String> {
        let chart = chart(std::slice::from_ref(run), "4k", "4k-wa-0");
        series(&chart).into_iter().map(|it| it.0).collect()
    };
    let mut of = run(STOCK);
    assert_eq!(causes(&of), ["host", "relocation", "wear levelling", "parity", "metadata"]);
    let nands = of.steps.iter_mut().flat_map(|step| &mut step.samples);
    for nand in nands.filter_map(|sample| sample.summary.nand.as_mut()) {
        (nand.parity_bytes, nand.wear_bytes) = (0, 0);
    }
    assert_eq!(causes(&of), ["host", "relocation", "metadata"]);
}

#[test]
fn layers_of_write_amplification_add_up_to_it() {
    let of = run(STOCK);
    let chart = chart(std::slice::from_ref(&of), "4k", "4k-wa-0");
    let Body::Area(layers) = &chart.body else { panic!("no layers") };
    let step = of.steps.iter().find(|step| step.kind == StepKind::Precondition).unwrap();
    for (index, sample) in step.samples.iter().enumerate().step_by(37) {
        let stacked: f64 = layers.iter().map(|layer| layer.points[index].1).sum();
        let told = sample.summary.nand.unwrap().write_amplification().unwrap();
        assert!((stacked - told).abs() < 1e-9, "{index}: {stacked} and {told}");
    }
}

#[test]
fn bytes_by_cause_are_in_the_numbers_of_a_preconditioning() {
    let page = review(&[run(STOCK)], TITLE);
    let table = rows(&heard(&page, "4k"), "Run, whole preconditioning");
    assert_eq!(table.len(), 1);
    assert_eq!(table[0].len(), 9, "{:?}", table[0]);
    let number = |at: usize| table[0][at].replace(',', "").parse::<f64>().unwrap();
    let (host, amplification) = (number(1), number(8));
    // 43K writes of 4 KiB a second and more, for six hours, in whatever time lapse.
    assert!(host > 3_000.0, "bytes are those of the whole drive: {:?}", table[0]);
    let programmed: f64 = (2..7).map(number).sum();
    assert!((programmed / host / amplification - 1.0).abs() < 0.02, "{:?}", table[0]);
}

#[test]
fn the_table_of_a_long_preconditioning_holds_every_fifteenth_interval() {
    let page = review(&[run(STOCK)], TITLE);
    let suite = heard(&page, "4k");
    assert!(suite.contains("Every 15th of 360 intervals of 60 s."), "24 rows at most");
    let table = rows(&suite, "Every 15th of 360");
    assert_eq!(table.len(), 24);
    assert_eq!(table[0][0], "15 min");
    assert_eq!(table[23][0], "6 h", "the last interval is in it");
}

#[test]
fn the_table_of_a_short_preconditioning_holds_all_intervals() {
    let mut short = run(STOCK);
    for step in short.steps.iter_mut().filter(|it| it.kind == StepKind::Precondition) {
        step.samples.truncate(20);
    }
    let page = review(&[short], TITLE);
    let suite = heard(&page, "4k");
    assert!(suite.contains("All of 20 intervals of 60 s."));
    assert_eq!(rows(&suite, "All of 20").len(), 20);
}

#[test]
fn percentiles_are_listed_for_reads_and_writes_of_a_mixed_load() {
    let page = review(&[run(STOCK)], TITLE);
    let table = rows(&heard(&page, "8k-70-30"), "p99.999, ms");
    // The heading of the table is that of its columns, so rows follow it at once.
    let kinds: Vec<&str> = table.iter().map(|row| &*row[2]).collect();
    assert_eq!(kinds, ["reads", "writes"]);
    for row in &table {
        let told: Vec<f64> =
            row[4..].iter().filter_map(|it| it.replace(',', "").parse().ok()).collect();
        assert!(told.is_sorted(), "percentiles rise: {row:?}");
    }
}

#[test]
fn the_hundred_thousandth_part_of_few_requests_is_not_told() {
    let mut few = run(STOCK);
    for step in few.steps.iter_mut().filter(|step| step.suite == "4k") {
        step.write_bins.iter_mut().for_each(|bin| bin.count = 1);
    }
    let page = review(&[few], TITLE);
    let told = rows(&heard(&page, "4k"), "p99.999, ms");
    let write = told.iter().find(|row| row[2] == "writes").unwrap();
    assert_eq!(write[9], "–", "fewer than ten lie beyond it: {write:?}");
}

#[test]
fn latency_in_depth_has_a_line_for_reads_and_one_for_writes() {
    let mixed = chart(&[run(STOCK)], "8k-70-30", "8k-70-30-8k-70-30-percentiles");
    let names: Vec<String> = series(&mixed).into_iter().map(|it| it.0).collect();
    assert_eq!(names, ["stock, reads", "stock, writes"]);
    assert!(mixed.title.ends_with("T16Q16, percentiles"), "at the greatest load");
}

#[test]
fn percentiles_never_fall_with_the_share() {
    for chart in charts(&review_of_two(), "4k") {
        if !chart.id.ends_with("-percentiles") {
            continue;
        }
        let Body::Lines(lines, _) = &chart.body else { panic!("no lines") };
        for line in lines {
            assert!(line.points.is_sorted_by(|a, b| a.0 < b.0), "{}", chart.id);
            assert!(line.points.is_sorted_by(|a, b| a.1 <= b.1), "{}", chart.id);
        }
    }
}

#[test]
fn iops_a_watt_are_drawn_where_the_power_is_known() {
    let mut of = run(STOCK);
    assert!(chart(std::slice::from_ref(&of), "4k", "4k-bars-iops-w").is_empty());
    for summary in of.steps.iter_mut().filter_map(|step| step.summary.as_mut()) {
        summary.climate = Some(Climate { power_w: Some(20.0), ..Climate::default() });
    }
    let efficiency = chart(std::slice::from_ref(&of), "4k", "4k-bars-iops-w");
    let Body::Bars(groups) = &efficiency.body else { panic!("no bars") };
    let written = of.steps.iter().find(|step| step.is_primary()).unwrap();
    let expected = written.summary.as_ref().unwrap().iops / 20.0;
    assert!((groups[0].bars[0].value - expected).abs() < 1e-9);
}

#[test]
fn folded_charts_are_counted_and_named() {
    let page = review(&[run(STOCK)], TITLE);
    let suite = heard(&page, "4k");
    let summary = bare(part(&suite, "<details class=\"more\"><summary>", "</summary>"));
    let (count, names) = summary.split_once(" more charts: ").expect("several are folded");
    let count: usize = count.trim().parse().unwrap();
    let folded = part(&suite, "<details class=\"more\">", "</details>");
    assert_eq!(folded.matches("<figure id=").count(), count);
    assert!(names.contains("maximum latency"), "{names}");
    assert!(names.split(", ").all(|name| !name.is_empty()), "{names}");
}

#[test]
fn charts_with_the_same_lines_share_one_legend() {
    let page = review(&review_of_two(), TITLE);
    let suite = heard(&page, "web-server");
    let group = part(&suite, "<div class=\"group\">", "<details");
    assert!(group.matches("<figure id=").count() >= 2);
    assert_eq!(group.matches("<ul class=\"legend\">").count(), 1);
}

#[test]
fn the_sources_of_a_suite_are_told_with_seed_and_interval() {
    let page = review(&review_of_two(), TITLE);
    let sources = bare(part(&heard(&page, "4k"), "Numbers of this section: ", "</p>"));
    let of_first = "stock: run 2026-11-21T101503Z-iodrive-duo-stock, seed 1, interval 60 s.";
    assert!(sources.contains(of_first), "{sources}");
    assert!(sources.contains("high-performance: run "), "{sources}");
}

#[test]
fn a_suite_that_one_run_lacks_shows_the_other_alone() {
    let mut runs = review_of_two();
    runs[1].steps.retain(|step| step.suite != "web-server");
    let page = review(&runs, TITLE);
    let suite = heard(&page, "web-server");
    assert!(suite.contains("stock: run ") && !suite.contains("high-performance: run "));
    let link = "<a href=\"#suite-web-server\">Web server</a>";
    assert_eq!(page.matches(link).count(), 1);
}

#[test]
fn rated_loads_of_two_levels_have_a_curve_each() {
    let mut of = run(STOCK);
    let mut lighter = rated(&of, 50, None);
    lighter.threads = 8;
    lighter.id += "-lighter";
    let held = [25, 50, 75].map(|percent| rated(&of, percent, None));
    of.steps.extend(held);
    of.steps.push(lighter);
    let page = review(&[of], TITLE);
    let suite = heard(&page, "8k-70-30");
    assert!(suite.contains("Latency against load with 8k-70-30, at most T16Q16"));
    assert!(suite.contains("Latency against load with 8k-70-30, at most T8Q16"));
}

#[test]
fn a_rate_without_a_share_is_named_by_its_requests() {
    let mut of = run(STOCK);
    let held = [10, 20, 30].map(|percent| {
        let mut step = rated(&of, percent, None);
        step.rate.as_mut().unwrap().percent = None;
        step
    });
    let asked = held[2].rate.as_ref().unwrap().iops;
    of.steps.extend(held);
    let page = review(&[of], TITLE);
    let table = rows(&heard(&page, "8k-70-30"), "Asked, IOPS");
    assert_eq!(table.len(), 3);
    assert!(table.iter().all(|row| row[1].is_empty()), "no share was asked for: {table:?}");
    let told: f64 = table[2][2].replace(',', "").parse().unwrap();
    assert!((told - asked).abs() < 1.0, "{told} and {asked}");
}

#[test]
fn a_load_without_response_times_leaves_their_cells_empty() {
    let mut of = run(STOCK);
    let mut step = rated(&of, 50, None);
    step.response = None;
    of.steps.push(step);
    let page = review(&[of], TITLE);
    let table = rows(&heard(&page, "8k-70-30"), "Asked, IOPS");
    assert_eq!(table[0].len(), 12, "{table:?}");
    assert_eq!(table[0][8..11], ["", "", ""]);
    assert!(!table[0][5].is_empty(), "its own latency is told");
}

/// A sample at which nothing completed.
fn idle(at_s: f64) -> Sample {
    let nothing = LatencySummary::default();
    let summary = Summary {
        iops: 0.0,
        read: nothing,
        write: nothing,
        latency: nothing,
        ..Summary::default()
    };
    Sample { at_s, summary, ..Sample::default() }
}

#[test]
fn an_interval_in_which_nothing_completed_leaves_a_page_without_odd_numbers() {
    let mut of = run(STOCK);
    let stalled = of.steps.iter_mut().find(|it| it.kind == StepKind::Precondition).unwrap();
    let at_s = stalled.samples[9].at_s;
    stalled.samples[9] = idle(at_s);
    let page = review(std::slice::from_ref(&of), TITLE);
    assert!(!page.contains("NaN") && !page.contains(">inf"));
    let points = data(&[of]);
    let count = |id: &str| points.rows.iter().filter(|row| row.chart == id).count();
    assert_eq!(count("4k-time-max") + 1, count("4k-time-iops"), "no latency is no zero");
}

#[test]
fn the_data_of_all_charts_is_what_the_page_draws_from() {
    let runs = review_of_two();
    let points = data(&runs);
    let of_chart = |id: &str| points.rows.iter().filter(|row| row.chart == id).count();
    assert_eq!(of_chart("4k-time-iops"), 2 * 360, "every sample of both runs");
    let minutes = points.rows.iter().find(|row| row.chart == "4k-time-iops").unwrap();
    assert_eq!(minutes.x_name, "protocol time, h");
    assert!(minutes.y_name.starts_with("Throughput, "), "{}", minutes.y_name);
    let shares = points.rows.iter().filter(|row| row.chart == "4k-free");
    assert!(shares.clone().count() > 0);
    assert!(shares.into_iter().all(|row| (0.0..=1.0).contains(&row.y)));
    let is_cell = |row: &&ChartPoint| row.chart == "4k-heat-stock";
    let cells: Vec<&ChartPoint> = points.rows.iter().filter(is_cell).collect();
    assert!(cells.len() > 100, "{}", cells.len());
    assert!(cells.iter().all(|it| it.x.is_some() && it.label.is_empty()));
    assert_eq!(cells[0].x_name, "protocol time, h, end of the cell");
    assert_eq!(cells[0].y_name, "Latency, ms, upper end of the cell");
    let first = cells.iter().filter(|it| it.x == cells[0].x).filter_map(|it| it.share);
    assert!((first.sum::<f64>() - 1.0).abs() < 0.01, "shares of one time add up to all");
}

#[test]
fn suites_stand_in_the_order_in_which_they_were_measured() {
    let of = [run(STOCK)];
    let subjects = subjects(&of);
    let names: Vec<&str> = suites(&subjects).iter().map(|suite: &Suite<'_>| suite.name).collect();
    assert_eq!(names, ["4k", "8k-70-30", "file-server", "web-server"]);
    let page = review(&of, TITLE);
    let places: Vec<usize> =
        names.iter().map(|name| page.find(&format!("id=\"suite-{name}\"")).unwrap()).collect();
    assert!(places.is_sorted());
}

#[test]
fn a_step_without_figures_is_no_measurement() {
    let mut of = run(STOCK);
    let failed: Vec<&mut Step> =
        of.steps.iter_mut().filter(|step| step.workload == "4k-rand-read").collect();
    assert!(!failed.is_empty());
    for step in failed {
        (step.summary, step.samples) = (None, Vec::new());
        (step.read_bins, step.write_bins) = (Vec::new(), Vec::new());
    }
    let page = review(&[of], TITLE);
    assert!(!heard(&page, "4k").contains("4k-rand-read, T16Q16"));
    assert!(heard(&page, "4k").contains("4k-rand-write, T16Q16"));
}

#[test]
fn maxima_that_listed_stalls_make_are_marks_beside_the_line() {
    let mut of = run(STOCK);
    let figure = |of: &Run| {
        let page = review(std::slice::from_ref(of), TITLE);
        part(&page, "<figure id=\"4k-time-max\"", "</figure>").to_owned()
    };
    let step = of.steps.iter().find(|step| step.kind == StepKind::Precondition).unwrap();
    let maxima = step.samples.iter().filter_map(|it| it.summary.latency.max_ns());
    let longest_ms = maxima.max().unwrap() as f64 / 1e6;
    assert!(!figure(&of).contains("listed stalls"));
    of.target.host_stall_ms_max = Some(longest_ms);
    let drawn = figure(&of);
    let marks = drawn.matches("<circle class=\"dot t0 d4\"").count();
    let step = of.steps.iter().find(|step| step.kind == StepKind::Precondition).unwrap();
    let is_long = |it: &u64| *it as f64 / 1e6 >= longest_ms / 2.0;
    let maxima = step.samples.iter().filter_map(|it| it.summary.latency.max_ns());
    assert_eq!(marks, maxima.filter(is_long).count(), "one for each interval with a stall");
    assert!(drawn.contains("<span>stock, listed stalls</span>"), "the legend names them");
}

/// A run whose 4K random writes have an interval about their p99.9.
fn with_spread(mut of: Run) -> Run {
    let is_write = |step: &&mut Step| step.is_primary() && step.workload == "4k-rand-write";
    for step in of.steps.iter_mut().filter(is_write) {
        let interval = ConfidenceInterval::new(IntervalKind::Batches, 1.5e6, 9e6);
        let tail = LatencySpread { latency_ns_p999: Some(interval), ..LatencySpread::default() };
        step.spread = Some(Spread { latency: tail, write: tail, ..Spread::default() });
    }
    of
}

#[test]
fn intervals_stand_below_the_percentiles_and_their_origin_below_the_table() {
    let count = |page: &str| page.matches("interval below\">1.50 to 9.00</span>").count();
    let page = review(&[with_spread(run(STOCK))], TITLE);
    assert_eq!(count(section(&page, "summary")), 1, "beside p99.9");
    assert_eq!(count(&heard(&page, "4k")), 1, "in the table of percentiles");
    assert_eq!(page.matches("from consecutive parts of the one measurement").count(), 2);
    let alone = review(&[run(STOCK)], TITLE);
    assert!(count(&alone) == 0 && !alone.contains("interval of 95 % confidence"), "none is known");
    let again = Run { id: "again".into(), ..with_spread(run(Shape { seed: 2, ..STOCK })) };
    let page = review(&[with_spread(run(STOCK)), again], TITLE);
    assert!(page.contains("from repeats with other seeds"), "which count more than parts");
    assert_eq!(count(section(&page, "summary")), 0);
}

#[test]
fn percentiles_that_a_listed_stall_makes_are_marks_and_no_headline() {
    let mut of = run(STOCK);
    let percentiles =
        |of: &Run| series(&chart(std::slice::from_ref(of), "4k", "4k-4k-rand-write-percentiles"));
    let step = of.steps.iter().find(|it| it.is_primary() && it.workload == "4k-rand-write");
    let latency = step.unwrap().summary.as_ref().unwrap().latency;
    let (tail_ms, whole) = (latency.latency_ns_p999.unwrap() as f64 / 1e6, percentiles(&of));
    let page = review(std::slice::from_ref(&of), TITLE);
    let shown = "p99.9 write latency";
    assert!(part(&page, "<p class=\"verdict\">", "</p>").contains(shown));
    of.target.host_stall_ms_max = Some(tail_ms);
    let drawn = percentiles(&of);
    assert_eq!(drawn[1].0, "stock, listed stalls");
    assert!(drawn[0].1 < whole[0].1 && drawn[1].1 > 0, "{drawn:?}");
    let page = review(&[of], TITLE);
    assert!(!part(&page, "<p class=\"verdict\">", "</p>").contains(shown));
    assert!(section(&page, "glance").contains("Not shown: 4K write p99.9"));
    assert!(section(&page, "summary").contains("p99.9 is a listed stall"));
}

#[test]
fn the_line_above_folded_charts_counts_those_of_each_name() {
    let page = review(&[run(STOCK)], TITLE);
    let lines: Vec<&str> =
        page.split("<summary>").filter(|it| it.contains(" more chart")).collect();
    for line in &lines {
        let (count, names) = line.split_once(" more chart").unwrap();
        let names = part(names, ": ", "</summary>").split(", ");
        let counts = names.map(|name| match name.rsplit_once(" (") {
            Some((_, count)) => count.trim_end_matches(')').parse().unwrap(),
            None => 1,
        });
        assert_eq!(counts.sum::<usize>(), count.parse::<usize>().unwrap(), "{line:.200}");
    }
    assert!(lines.iter().any(|line| line.contains(" (2)")), "some share a name");
}

#[test]
fn a_drive_made_of_two_shows_hits_over_time_and_what_moved_between_its_classes() {
    let mut runs = vec![run(STOCK)];
    assert!(!review(&runs, TITLE).contains("<h3>Classes</h3>"), "it has none");
    let class = |sent_bytes| ClassWrites {
        capacity_bytes: 1_000_000,
        sent_bytes,
        media_bytes: sent_bytes * 3,
        erase_count: 0,
    };
    let work = TierWork {
        read_bytes: 100,
        held_bytes: 25,
        read_fast_bytes: 10,
        written_bytes: 200,
        destaged_bytes: 100,
        written_share: Some(0.5),
        fast: class(200),
        slow: class(100),
        ..TierWork::default()
    };
    for step in &mut runs[0].steps {
        step.samples.iter_mut().for_each(|sample| sample.summary.tier = Some(work));
        step.summary.iter_mut().for_each(|summary| summary.tier = Some(work));
    }
    let name = runs[0].steps[0].suite.clone();
    let hits = chart(&runs, &name, &format!("{}-tier-hits", crate::text::anchor(&name)));
    assert!(series(&hits)[0].1 > 1, "over time");
    let page = review(&runs, TITLE);
    let page = section(&page, &format!("suite-{}", crate::text::anchor(&name)));
    assert!(page.contains("<h3>Classes</h3>"));
    assert!(page.contains("<td>25.0</td><td>10.0</td><td>50.0</td>"));
}
