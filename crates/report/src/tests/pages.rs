//! Pages beside reviews: sweeps, and models beside published figures.

use results::LatencySummary;
use results::sweep::{
    Dimension, Lifetime, LifetimeBasis, Point, PointOutcome, SettledDrive, Sweep, Value,
};

use super::markup::{bare, part, rows, section};
use crate::{Discussion, JudgedFigure, Tally, TallyLine, Validation, example, sweep, validation};

fn settled(iops: f64) -> SettledDrive {
    SettledDrive {
        user_capacity_gb: 640.0,
        raw_capacity_gb: 800.0,
        over_provisioning_percent: Some(25.0),
        steady: true,
        host_limited: false,
        precondition_s: 9000.0,
        iops,
        throughput_mb_s: 175.0,
        latency: LatencySummary { latency_ns_avg: 6e6, ..LatencySummary::default() },
        spread: None,
        write_amplification: Some(3.0),
        tier: None,
        lifetime: None,
        unit_prices: None,
    }
}

/// A sweep over `threads` and `queues`, of which every point settles at threads times queue.
fn swept(threads: &[u32], queues: &[u32]) -> Sweep {
    let numbers = |values: &[u32]| values.iter().map(|it| Value::Number(f64::from(*it))).collect();
    let dimension = |key: &str, values| Dimension { key: key.into(), values };
    let at = |thread: u32, queue: u32| {
        vec![Value::Number(f64::from(thread)), Value::Number(f64::from(queue))]
    };
    let points = threads.iter().flat_map(|thread| {
        queues.iter().map(move |queue| Point {
            at: at(*thread, *queue),
            outcome: PointOutcome::Measured(Box::new(settled(f64::from(thread * queue)))),
        })
    });
    let dimensions = vec![
        dimension("threads", numbers(threads)),
        dimension("queue_per_thread", numbers(queues)),
    ];
    Sweep {
        model_version: 3,
        seed: 9,
        title: "Duo <640>".into(),
        ..example::sweep(dimensions, points.collect())
    }
}

#[test]
fn a_priced_sweep_divides_the_price_by_what_each_point_gives() {
    let unsteady = |point: &mut Point| {
        if let PointOutcome::Measured(settled) = &mut point.outcome {
            settled.steady = false;
        }
    };
    let mut of = swept(&[1000, 2000, 4000], &[1]);
    assert!(!sweep(&of).contains("Price of each"), "no price is invented");
    unsteady(&mut of.points[2]);
    let of = of.with_price("6400USD@2014-06".parse().unwrap());
    let prices: Vec<[Option<f64>; 3]> = (of.points.iter())
        .filter_map(|it| it.settled()?.unit_prices)
        .map(|it| [it.per_gb, it.per_thousand_iops, it.per_tb_written])
        .collect();
    let expected = [Some(6400.0), Some(3200.0), None].map(|iops| [Some(10.0), iops, None]);
    assert_eq!(prices, expected, "an unsettled rate has no price, nor has an unknown endurance");
    let page = sweep(&of);
    assert!(page.contains("price 6,400 USD (2014-06, as stated)"), "{page:.3000}");
}

#[test]
fn a_sweep_says_under_which_conditions_it_was_measured() {
    let mut of = swept(&[1, 2, 4], &[1]);
    let said = |of: &Sweep| bare(part(&sweep(of), "<header id=\"top\">", "</header>"));
    let header = said(&of);
    assert!(header.contains("Duo &lt;640&gt;"), "{header}");
    assert!(header.contains("4k-rand-write at swept threads and queue depth, modelled"));
    assert!(header.contains("format stock, host linux; each point purged"), "{header}");
    assert!(header.contains("for the figures; time lapse: 1/32 of the capacity"), "{header}");
    assert!(header.ends_with("seed 9, model version 3."), "{header}");
    of.time_lapse = 1;
    assert!(said(&of).contains("at full scale"));
}

#[test]
fn a_dimension_of_one_value_has_no_section() {
    let html = sweep(&swept(&[1, 2, 4], &[8]));
    assert!(html.contains("id=\"against-threads\"") && html.contains("#against-threads"));
    assert!(!html.contains("against-queue-per-thread"));
    assert!(
        bare(&html)
            .contains("Modelled sweep over threads and queue depth of each thread: 4k-rand-write")
    );
}

#[test]
fn each_value_of_the_other_dimension_is_a_line() {
    let html = sweep(&swept(&[1, 2, 4], &[1, 16, 64]));
    let figure = part(&html, "<figure id=\"threads-iops\"", "</figure>");
    for name in ["queue_per_thread 1", "queue_per_thread 16", "queue_per_thread 64"] {
        assert!(figure.contains(&format!("\"name\":\"{name}\"")), "{name}");
    }
    assert!(figure.contains("\"y\":[16,32,64]"), "a line at queue 16: {figure}");
}

#[test]
fn two_values_are_bars_and_three_are_a_line() {
    let kind = |threads: &[u32]| {
        let html = sweep(&swept(threads, &[1]));
        let figure = part(&html, "<figure id=\"threads-iops\"", "</figure>").to_owned();
        part(&figure, "\"kind\":\"", "\",").trim_start_matches("\"kind\":\"").to_owned()
    };
    assert_eq!(kind(&[1, 2]), "bars");
    assert_eq!(kind(&[1, 2, 4]), "lines");
}

#[test]
fn of_more_combinations_than_colours_the_first_are_drawn_and_all_are_listed() {
    let queues: Vec<u32> = (1..=10).collect();
    let html = sweep(&swept(&[1, 2, 4], &queues));
    let against = section(&html, "against-threads");
    assert!(against.contains("The first 8 of 10 combinations of the others are drawn"));
    assert_eq!(rows(section(&html, "numbers"), "<table").len(), 30);
    assert!(!section(&html, "against-queue-per-thread").contains("The first 8"));
}

#[test]
fn keys_are_told_as_quantities_with_their_units() {
    let of = |key: &str| {
        let mut of = swept(&[1, 2, 4], &[1]);
        of.dimensions[0].key = key.into();
        let html = sweep(&of);
        bare(part(&html, "<h2>Against ", "</h2>")).trim_start_matches("Against ").to_owned()
    };
    assert_eq!(of("user_capacity_gb"), "user capacity, GB");
    assert_eq!(of("nand.t_program_us"), "nand: t program, µs");
    assert_eq!(of("read_percent"), "requests that read, %");
    assert_eq!(of("queue_per_thread"), "queue depth of each thread");
    assert_eq!(of("relocation.victim"), "relocation: victim");
}

#[test]
fn points_say_what_is_odd_about_them() {
    let mut of = swept(&[1, 2, 4, 8], &[1]);
    let change = |point: &mut Point, change: &dyn Fn(&mut SettledDrive)| {
        let PointOutcome::Measured(settled) = &mut point.outcome else { panic!("measured") };
        change(settled);
    };
    let lifetime = |basis| {
        Some(Lifetime {
            basis,
            host_writes_pb: 12.0,
            drive_writes_per_day: Some(2.5),
            years: Some(7.0),
            read_retries_at_end_of_life: None,
        })
    };
    change(&mut of.points[0], &|it| it.steady = false);
    change(&mut of.points[1], &|it| {
        it.steady = false;
        it.lifetime = lifetime(LifetimeBasis::Cycles);
    });
    change(&mut of.points[2], &|it| {
        it.host_limited = true;
        it.lifetime = lifetime(LifetimeBasis::Rating);
    });
    of.points[3].outcome = PointOutcome::Infeasible { reason: "no <room>".into() };
    let html = sweep(&of);
    let table = rows(section(&html, "numbers"), "<table");
    let remarks: Vec<&str> = table.iter().map(|row| &**row.last().unwrap()).collect();
    assert_eq!(remarks[0], "steady state was not reached");
    assert_eq!(
        remarks[1], "steady state was not reached; lifetime by program/erase cycles",
        "both are told"
    );
    assert_eq!(remarks[2], "limited by the host; lifetime by the rating of the maker");
    assert_eq!(remarks[3], "infeasible: no &lt;room&gt;");
    let last = table[3].len() - 1;
    assert!(table[3][2..last].iter().all(|it| it == "–"), "an infeasible point has no numbers");
    assert_eq!(table[2][last - 3..last], ["12.0", "2.50", "7.00"]);
}

#[test]
fn a_metric_that_no_point_has_is_not_drawn() {
    let mut of = swept(&[1, 2, 4], &[1]);
    assert!(sweep(&of).contains("id=\"threads-wa\""));
    assert!(!sweep(&of).contains("id=\"threads-years\""), "no load was given");
    for point in &mut of.points {
        let PointOutcome::Measured(settled) = &mut point.outcome else { panic!("measured") };
        settled.write_amplification = None;
    }
    assert!(!sweep(&of).contains("id=\"threads-wa\""), "nothing was written");
}

#[test]
fn points_that_are_missing_leave_a_page_of_the_others() {
    let mut of = swept(&[1, 2, 4], &[1, 2]);
    of.points.truncate(1);
    let html = sweep(&of);
    assert_eq!(rows(section(&html, "numbers"), "<table").len(), 1);
    assert!(html.ends_with("</html>\n") && !html.contains("NaN"));
}

#[test]
fn an_unvalidated_model_is_marked_on_the_page_of_a_sweep() {
    let mut of = swept(&[1, 2, 4], &[1]);
    let reason = results::mark::UNVALIDATED_REASON;
    assert!(!sweep(&of).contains(reason));
    of.unvalidated = true;
    let html = sweep(&of);
    assert_eq!(html.matches(reason).count(), 2, "at the top and below the numbers");
    assert!(html.contains(results::mark::UNVALIDATED));
}

fn figure(id: &str, drive: &str, ratio: f64) -> JudgedFigure {
    JudgedFigure {
        id: id.into(),
        drive: drive.into(),
        model: format!("{drive} stock linux"),
        load: "4k-rand-write T16Q16, steady".into(),
        metric: "iops".into(),
        published: "42000".into(),
        modelled: 42_000.0 * ratio,
        ratio,
        within: (0.85..=1.15).contains(&ratio),
        is_typical: true,
        is_measured: true,
        is_from_listed_stall: false,
    }
}

fn validated(figures: Vec<JudgedFigure>) -> Validation {
    let tally = Tally { figures: figures.len(), near: 1, error_median: Some(0.0811) };
    let none = Tally { figures: 0, near: 0, error_median: None };
    Validation {
        conditions: vec!["Model version 2.".into(), "Seed 1.".into()],
        tallies: vec![TallyLine {
            name: "all".into(),
            typical: tally,
            spread: none,
            from_listed_stalls: none,
        }],
        worst: Vec::new(),
        discussions: Vec::new(),
        figures,
    }
}

#[test]
fn a_validation_without_figures_says_that_there_were_none() {
    let of = Validation { tallies: Vec::new(), ..validated(Vec::new()) };
    let html = validation(&of);
    assert!(html.contains("No figure could be compared."));
    assert!(!html.contains("<figure class=\"field\">"));
}

#[test]
fn a_tally_of_nothing_has_no_share() {
    let html = validation(&validated(vec![figure("A1", "duo", 1.0), figure("A2", "duo", 2.0)]));
    let row = rows(section(&html, "summary"), "<table").remove(0);
    assert_eq!(row, ["all", "2", "8.1 %", "1 of 2 (50 %)", "0", "–", "0", "–"]);
    assert!(bare(&html).contains("Model version 2. Seed 1."));
}

#[test]
fn each_drive_has_a_lane_of_its_own() {
    let figures =
        vec![figure("B1", "duo", 1.0), figure("A1", "array", 1.1), figure("B2", "duo", 0.9)];
    let html = validation(&validated(figures));
    let field = part(&html, "<figure class=\"field\">", "</figure>");
    let lanes: Vec<&str> = field
        .split("class=\"group\"")
        .skip(1)
        .map(|it| part(it, ">", "<").trim_start_matches('>'))
        .collect();
    assert_eq!(lanes, ["array", "duo"], "in the order of the alphabet");
    assert_eq!(field.matches("class=\"mark\"").count(), 3);
}

/// Horizontal places of the dots of a field.
fn places(html: &str) -> Vec<(f64, f64)> {
    let field = part(html, "<figure class=\"field\">", "</figure>");
    let value = |dot: &str, name: &str| -> f64 {
        let from = dot.find(&format!(" {name}=\"")).expect("a place") + name.len() + 3;
        dot[from..].split('"').next().unwrap().parse().unwrap()
    };
    let dots = field.split("<circle").skip(1);
    dots.map(|dot| (value(dot, "cx"), value(dot, "cy"))).collect()
}

#[test]
fn ratios_beyond_the_axis_lie_at_its_end_and_1_in_the_middle() {
    let ratios = [0.001, 0.25, 1.0, 4.0, 900.0];
    let figures = ratios.iter().enumerate();
    let figures = figures.map(|(index, ratio)| figure(&format!("A{index}"), "duo", *ratio));
    let x: Vec<f64> =
        places(&validation(&validated(figures.collect()))).iter().map(|it| it.0).collect();
    assert_eq!(x.len(), 5);
    assert!((x[0] - x[1]).abs() < 0.11 && (x[3] - x[4]).abs() < 0.11, "{x:?}");
    assert!((x[2] - f64::midpoint(x[0], x[4])).abs() < 0.11, "{x:?}");
}

#[test]
fn dots_of_equal_ratios_do_not_lie_upon_each_other() {
    let figures = (0..12).map(|index| figure(&format!("A{index}"), "duo", 1.0)).collect();
    let dots = places(&validation(&validated(figures)));
    for (index, a) in dots.iter().enumerate() {
        for b in &dots[..index] {
            assert!((a.0 - b.0).hypot(a.1 - b.1) > 8.0, "{a:?} and {b:?} touch");
        }
    }
}

#[test]
fn figures_of_data_sheets_are_listed_apart_from_measured_ones() {
    let stated = JudgedFigure { is_measured: false, ..figure("S1", "duo", 0.5) };
    let html = validation(&validated(vec![figure("A1", "duo", 1.0), stated]));
    let figures = section(&html, "figures");
    assert!(figures.contains("<h3>Measured by reviewers, 1</h3>"));
    assert!(figures.contains("<h3>Stated by data sheets, 1</h3>"));
    let row = rows(figures, "Stated by data sheets").remove(0);
    assert_eq!(row[0], "S1");
    assert_eq!(row[5..], ["21,000", "0.50", "out"]);
}

#[test]
fn a_worst_figure_that_is_not_in_the_table_is_left_out() {
    let mut of = validated(vec![figure("A1", "duo", 3.0)]);
    of.worst = vec!["A1".into(), "gone".into()];
    of.discussions = vec![Discussion { rows: vec!["A1".into(), "gone".into()], text: "x".into() }];
    let html = validation(&of);
    let worst = section(&html, "worst");
    assert_eq!(rows(worst, "<table").len(), 1);
    assert!(worst.contains("<h3>A1, gone</h3><p>x</p>"));
}

#[test]
fn sweeps_and_validations_look_modelled() {
    let html = sweep(&swept(&[1, 2, 4], &[8]));
    let title = part(&html, "<title>", "</title>");
    assert!(title.ends_with(": sweep, modelled"), "{title}");
    assert!(html.contains("<body class=\"modelled\">"), "which print says on every page");
    let heading = part(&html, "<h1>", "</h1>");
    assert!(heading.ends_with(", modelled"), "{heading}");
    assert!(html.contains("<p class=\"verdict\">Modelled sweep over"));
    assert!(html.contains("<h2>Modelled numbers</h2>"));
    let html = validation(&validated(vec![figure("A1", "duo", 1.01)]));
    assert!(html.contains("<body class=\"validated\">") && html.contains(".validated { page:"));
    assert!(html.contains("<p class=\"verdict\">Modelled, 1 of 1 rates"));
}
