//! Labels of lines: apart from each other, within the plot, and as many as there are lines.

use proptest::prelude::*;

use super::*;
use crate::chart::{Axis, Body, Ends, Look, Unit};

fn chart() -> Chart {
    Chart {
        id: "it".into(),
        title: "It".into(),
        explain: "Look.",
        provenance: Vec::new(),
        cautions: Vec::new(),
        x: Axis::linear("time", Unit::Hours),
        y: Axis::linear("Throughput", Unit::Iops),
        ends: Ends::Last,
        is_wide: false,
        body: Body::Lines(Vec::new(), Vec::new()),
    }
}

fn series(index: usize, points: Vec<Point>) -> Series {
    let labels = Vec::new();
    Series {
        name: format!("run {index}"),
        look: Look::of_run(index),
        points,
        errors: Vec::new(),
        labels,
    }
}

/// The values of an attribute of all elements of a class.
fn attributes(svg: &str, class: &str, name: &str) -> Vec<f64> {
    let elements = svg.split('<').filter(|it| it.contains(&format!("class=\"{class}")));
    let value = |element: &str| {
        let from = element.find(&format!(" {name}=\"")).expect("it has it") + name.len() + 3;
        element[from..].split('"').next().expect("a value").parse().expect("a number")
    };
    elements.map(value).collect()
}

proptest! {
    #[test]
    fn labels_of_lines_lie_apart_within_the_plot(
        ends in proptest::collection::vec(0.0_f64..1e6, 1..12),
    ) {
        let all: Vec<Series> = ends
            .iter()
            .enumerate()
            .map(|(index, end)| series(index, vec![(0.0, 5e5), (1.0, *end)]))
            .collect();
        let chart = chart();
        let frame = framed(&chart, &all);
        let drawn: Vec<(&Series, Vec<Point>)> =
            all.iter().map(|series| (series, series.points.clone())).collect();
        let mut places = attributes(&end_labels(&frame, &chart, &drawn), "end ", "y");
        prop_assert_eq!(places.len(), all.len());
        places.sort_by(f64::total_cmp);
        prop_assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_GAP - 0.2));
        prop_assert!(places.iter().all(|y| (frame.top..=frame.bottom).contains(y)), "{places:?}");
    }

    #[test]
    fn every_point_of_a_line_lies_in_the_plot(
        values in proptest::collection::vec(0.0_f64..1e9, 3..60),
    ) {
        let points: Vec<Point> = (0_u32..).zip(&values).map(|(x, y)| (x.into(), *y)).collect();
        let all = [series(0, points)];
        let frame = framed(&chart(), &all);
        let path = path(&frame, &all[0], &all[0].points, "");
        let d = path.split(" d=\"").nth(1).expect("a path").trim_end_matches("\"/>");
        let places = d.split(['M', 'L']).filter(|it| !it.is_empty());
        for place in places {
            let (x, y) = place.split_once(' ').expect("two numbers");
            let [x, y]: [f64; 2] = [x, y].map(|it| it.parse().expect("a number"));
            prop_assert!((frame.left..=frame.right).contains(&x), "{x}");
            prop_assert!((frame.top..=frame.bottom).contains(&y), "{y}");
        }
    }
}

#[test]
fn only_short_lines_show_their_points() {
    let line = |count: u32| series(0, (0..count).map(|x| (x.into(), 1.0)).collect());
    let dots = |count| svg(&chart(), &[line(count)], &[]).matches("<circle").count();
    assert_eq!(dots(24), 24);
    assert_eq!(dots(25), 0);
}

#[test]
fn a_line_without_points_is_left_out_and_the_others_stay() {
    let drawn =
        svg(&chart(), &[series(0, Vec::new()), series(1, vec![(0.0, 1.0), (1.0, 2.0)])], &[]);
    assert_eq!(drawn.matches("<path class=\"line ").count(), 1, "{drawn}");
    assert_eq!(attributes(&drawn, "end ", "y").len(), 1);
}

#[test]
fn a_window_that_missed_its_rule_has_no_band() {
    let windows = [true, false].map(|achieved| Window { tone: 0, from: 0.2, to: 0.6, achieved });
    let lines = [series(0, vec![(0.0, 1.0), (1.0, 2.0)])];
    let of = |windows: &[Window]| svg(&chart(), &lines, windows);
    assert!(
        of(&windows[..1]).contains("class=\"bar reached")
            && of(&windows[..1]).contains("class=\"band")
    );
    assert!(of(&windows[1..]).contains("class=\"bar missed"));
    assert!(!of(&windows[1..]).contains("class=\"band"));
    let many = vec![windows[0]; 3];
    assert!(!of(&many).contains("class=\"band"), "three bands would lie upon each other");
    let places = attributes(&of(&many), "bar reached", "y");
    assert!(places[0] < places[1] && places[1] < places[2], "one below the other");
}

#[test]
fn loads_at_the_ends_of_curves_do_not_lie_upon_each_other() {
    let labels: Vec<String> = vec!["T2Q2".into(), "T16Q16".into()];
    let curve =
        |index| Series { labels: labels.clone(), ..series(index, vec![(1.0, 1.0), (9.0, 9.0)]) };
    let one = curve_svg(&chart(), &[curve(0)]);
    assert_eq!(one.matches("class=\"end ").count(), 2);
    let alike = curve_svg(&chart(), &[curve(0), curve(2)]);
    assert!(alike.matches("class=\"end ").count() < 4, "labels of equal curves are left out");
}
