//! Small charts, drawn out.

use super::*;

fn chart(x: Axis, y: Axis, body: Body) -> Chart {
    Chart {
        id: "it".into(),
        title: "It".into(),
        explain: "Look.",
        provenance: vec!["a: run r, seed 1, interval 60 s.".into()],
        cautions: Vec::new(),
        x,
        y,
        ends: Ends::Last,
        is_wide: false,
        body,
    }
}

fn series(name: &str, points: &[Point]) -> Series {
    let look = Look::of_run(0);
    Series {
        name: name.into(),
        look,
        points: points.to_vec(),
        errors: Vec::new(),
        labels: Vec::new(),
    }
}

/// One element a line, so that a difference is seen.
fn lines(svg: &str) -> String {
    svg.replace('>', ">\n").replace("\n</", "</").replace("</", "\n</").replace("\n\n", "\n")
}

#[test]
fn a_line_has_axes_a_window_and_its_last_value() {
    let window = Window { tone: 0, from: 1.0, to: 2.0, achieved: true };
    let points = [(0.0, 257_000.0), (1.0, 60_000.0), (2.0, 42_600.0)];
    let body = Body::Lines(vec![series("a", &points)], vec![window]);
    let time = Axis::linear("protocol time", Unit::Hours);
    let svg = chart(time, Axis::linear("Throughput", Unit::Iops), body).svg();
    insta::assert_snapshot!(lines(&svg));
}

#[test]
fn bars_begin_at_zero_and_say_their_values() {
    let bar = |name: &str, tone, value| Bar { name: name.into(), tone, value };
    let bars = vec![bar("stock", 0, 42_644.0), bar("fast", 1, 91_000.0)];
    let body = Body::Bars(vec![Bars { label: "4k-rand-write, T16Q16".into(), bars }]);
    let svg = chart(Axis::loads(Vec::new()), Axis::linear("Throughput", Unit::Iops), body).svg();
    insta::assert_snapshot!(lines(&svg));
}

#[test]
fn bars_of_plain_numbers_begin_at_zero_too() {
    let bar = |name: &str, tone, value| Bar { name: name.into(), tone, value };
    let bars = vec![bar("stock", 0, 1000.0), bar("fast", 1, 1050.0)];
    let body = Body::Bars(vec![Bars { label: "8 clients".into(), bars }]);
    let axis = Axis::linear("Transactions per second", Unit::Plain);
    let svg = chart(Axis::loads(Vec::new()), axis, body).svg();
    let widths: Vec<f64> = svg
        .split("<rect")
        .skip(1)
        .filter_map(|rect| rect.split_once(" width=\"")?.1.split_once('"')?.0.parse().ok())
        .collect();
    let [first, second] = widths[..] else { panic!("two bars: {svg}") };
    assert!((second / first - 1.05).abs() < 0.01, "{widths:?}");
}

#[test]
fn layers_of_an_area_lie_upon_each_other() {
    let layers = vec![
        series("host", &[(1.0, 1.0), (2.0, 1.0)]),
        series("relocation", &[(1.0, 0.0), (2.0, 2.0)]),
    ];
    let time = Axis::linear("protocol time", Unit::Minutes);
    let axis = Axis::linear("Write amplification", Unit::Times);
    insta::assert_snapshot!(lines(&chart(time, axis, Body::Area(layers)).svg()));
}

#[test]
fn a_spike_among_many_samples_is_in_the_picture_and_in_the_data() {
    let mut points: Vec<Point> = (0..100_000_u32).map(|at| (f64::from(at), 2.0)).collect();
    points[77_777].1 = 1208.0;
    let time = Axis::linear("protocol time", Unit::Seconds);
    let body = Body::Lines(vec![series("a", &points)], Vec::new());
    let chart = chart(time, Axis::log("Maximum latency", Unit::Millis), body);
    let figure = chart.figure(false);
    assert!(figure.contains(",1208,"), "the data keep it");
    let scale = chart.y.scale([2.0, 1208.0].into_iter()).onto(234.0, 16.0);
    let top = (scale.at(1208.0) * 10.0).round() / 10.0;
    assert!(figure.contains(&format!(" {top}L")), "the line reaches {top}");
    assert!(figure.len() < 60_000, "{}", figure.len());
}

#[test]
fn a_number_at_the_end_of_a_line_says_what_it_is() {
    let points = [(0.0, 9.0), (1.0, 3.0), (2.0, 6.0)];
    let of = |ends| {
        let time = Axis::linear("protocol time", Unit::Hours);
        let body = Body::Lines(vec![series("a", &points)], Vec::new());
        let value = Axis::linear("Latency", Unit::Millis);
        Chart { ends, ..chart(time, value, body) }.svg()
    };
    for (ends, name, value) in
        [(Ends::Last, "last", 6), (Ends::Mean, "mean", 6), (Ends::Maximum, "max", 9)]
    {
        let svg = of(ends);
        assert!(svg.contains(&format!(">{name}</text>")), "{svg}");
        assert!(svg.contains(&format!("dy=\".32em\">{value}</text>")), "{svg}");
    }
}

#[test]
fn a_logarithmic_axis_gives_way_to_values_without_a_logarithm() {
    let points = [(0.0, 0.0), (1.0, 3.0), (2.0, 6.0)];
    let time = Axis::linear("protocol time", Unit::Hours);
    let body = Body::Lines(vec![series("a", &points)], Vec::new());
    let figure = chart(time, Axis::log("Deviation", Unit::Millis), body).figure(false);
    assert!(!figure.contains("log scale"), "{figure}");
}

#[test]
fn two_points_and_zeros_alone_are_no_line() {
    for points in [vec![(0.0, 1.0), (1.0, 2.0)], vec![(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)]] {
        let time = Axis::linear("protocol time", Unit::Hours);
        let body = Body::Lines(vec![series("a", &points)], Vec::new());
        assert_eq!(chart(time, Axis::linear("Throughput", Unit::Iops), body).figure(false), "");
    }
}

#[test]
fn layers_of_a_long_run_keep_their_places() {
    let layer = |swing: f64| -> Vec<Point> {
        (0..5000_u32).map(|at| (f64::from(at), swing * f64::from(at % 7))).collect()
    };
    let layers = vec![series("host", &layer(0.0)), series("relocation", &layer(1.0))];
    let time = Axis::linear("protocol time", Unit::Seconds);
    let axis = Axis::linear("Write amplification", Unit::Times);
    let data = embed::script(&chart(time, axis, Body::Area(layers)));
    let places: Vec<&str> =
        data.split("\"x\":[").skip(1).map(|x| x.split(']').next().unwrap()).collect();
    assert_eq!(places.len(), 1, "both layers have the same places, which are written once");
}

#[test]
fn a_chart_without_data_is_no_figure() {
    let time = || Axis::linear("protocol time", Unit::Hours);
    for body in [Body::Lines(vec![series("a", &[])], Vec::new()), Body::Bars(Vec::new())] {
        assert_eq!(chart(time(), Axis::linear("Throughput", Unit::Iops), body).figure(false), "");
    }
}

#[test]
fn the_data_of_a_chart_are_short_numbers() {
    let points = [(0.016_666_666, 42_644.37), (0.033_333_333, 0.0)];
    let body = Body::Lines(vec![series("</script>", &points)], Vec::new());
    let time = Axis::linear("protocol time", Unit::Hours);
    let data = embed::script(&chart(time, Axis::linear("Throughput", Unit::Iops), body));
    assert!(data.contains(r#""x":[0.0166667,0.0333333],"y":[42640,0]"#), "{data}");
    assert!(data.contains(r#""name":"\u003c/script>""#), "{data}");
}

#[test]
fn a_percentile_that_intervals_lack_is_a_gap_and_has_no_last_value() {
    let median: Vec<Point> = (1..=6).map(|at| (f64::from(at), 2.0)).collect();
    let high = |lacking: &[usize]| -> Vec<Point> {
        let known = median.iter().enumerate().filter(|(at, _)| !lacking.contains(at));
        known.map(|(_, point)| (point.0, 9.0)).collect()
    };
    let of = |lacking: &[usize]| {
        let points = [median.clone(), high(&[]), high(lacking)];
        let names = ["a, median", "a, p99", "a, p99.9"];
        let lines = names.iter().zip(&points).map(|(name, points)| series(name, points));
        let time = Axis::linear("protocol time", Unit::Minutes);
        let body = Body::Bands(lines.collect(), Vec::new());
        chart(time, Axis::log("Latency", Unit::Millis), body).svg()
    };
    let counts = |svg: &str| {
        ["space b0", "space b1", "class=\"line", "dy=\".32em\">9</text>"]
            .map(|it| svg.matches(it).count())
    };
    assert_eq!(counts(&of(&[])), [1, 1, 3, 2]);
    assert_eq!(counts(&of(&[2])), [1, 2, 4, 2], "two stretches");
    assert_eq!(counts(&of(&[4, 5])), [1, 1, 3, 1], "it ends before the median does");
}

#[test]
fn the_lightest_load_of_a_curve_is_named_beside_the_ticks() {
    let of = |first: f64| {
        let points = [(first, 1.0), (90_000.0, 4.0)];
        let labels = ["T2Q2", "T16Q16"].map(String::from).to_vec();
        let body = Body::Curve(vec![Series { labels, ..series("a", &points) }]);
        let x = Axis { domain: Some((0.0, 90_000.0)), ..Axis::linear("throughput", Unit::Iops) };
        let svg = chart(x, Axis::linear("Latency", Unit::Millis), body).svg();
        let text = svg.split("<text").find(|it| it.ends_with(">T2Q2</text>")).unwrap();
        text.contains("text-anchor=\"start\"")
    };
    assert!(of(1.0), "at the left edge");
    assert!(!of(40_000.0));
}

#[test]
fn a_legend_of_bars_has_their_order_and_one_name_where_others_are_on_the_page() {
    let bar = |name: &str, tone| Bar { name: name.into(), tone, value: 1000.0 };
    let group = |bars| Bars { label: "4k".into(), bars };
    let groups = vec![group(vec![bar("b", 1)]), group(vec![bar("a", 0), bar("b", 1)])];
    let legend = |groups| {
        let axis = Axis::linear("Throughput", Unit::Iops);
        chart(Axis::loads(Vec::new()), axis, Body::Bars(groups)).legend()
    };
    let both = legend(groups);
    assert!(both.find(">a<").unwrap() < both.find(">b<").unwrap(), "{both}");
    assert!(legend(vec![group(vec![bar("b", 1)])]).contains(">b<"), "the second of two runs");
    assert_eq!(legend(vec![group(vec![bar("a", 0)])]), "", "one run alone");
}

#[test]
fn the_last_value_is_called_so_over_time_alone() {
    let points = [(1.0, 9.0), (2.0, 3.0), (4.0, 6.0)];
    let body = Body::Lines(vec![series("a", &points)], Vec::new());
    let of_depth = chart(Axis::depths("depth"), Axis::linear("Rate", Unit::Iops), body);
    assert!(!of_depth.svg().contains(">last<") && of_depth.svg().contains(">6</text>"));
    assert!(embed::script(&of_depth).contains("\"ends\":\"\""));
}
