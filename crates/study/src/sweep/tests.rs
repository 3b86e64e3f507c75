//! Tests of the dimensions of a sweep, and of the orders that are refused.

use proptest::prelude::*;

use super::dimension::{dimension, plain};
use super::*;

fn numbers(text: &str) -> Vec<f64> {
    let dimension = dimension("x", text, plain).unwrap();
    dimension.values.iter().map(|value| value.number().unwrap()).collect()
}

fn refused(key: &str, text: &str) -> String {
    dimension(key, text, plain).unwrap_err().to_string()
}

fn order(dimensions: &[(&str, &str)]) -> SweepOrder {
    let drive = ssd::catalogue::text("iodrive-duo").unwrap();
    let dimensions = dimensions.iter().map(|(key, text)| dimension(key, text, plain).unwrap());
    SweepOrder {
        schema: SCHEMA,
        model_version: ssd::MODEL_VERSION,
        id: String::new(),
        started_at: String::new(),
        drive: drive.into(),
        format: "stock".into(),
        host: "linux".into(),
        time_lapse: None,
        seed: 1,
        workload: workload::catalogue::find_workload("4k-rand-write").unwrap(),
        threads: 16,
        queue_per_thread: 16,
        repeat: 1,
        load_gb_per_day: None,
        dimensions: dimensions.collect(),
    }
}

/// The drive at the first point of a sweep over one key.
fn drive(key: &str, values: &str) -> DriveSpec {
    let order = order(&[(key, values)]);
    let first = grid(&order.dimensions).unwrap().remove(0);
    order.setting(&first).unwrap().unwrap().drive
}

#[test]
fn a_range_has_a_step_or_a_number_of_points() {
    assert_eq!(numbers("400..720"), [400.0, 480.0, 560.0, 640.0, 720.0]);
    assert_eq!(numbers("400..720:100"), [400.0, 500.0, 600.0, 700.0]);
    assert_eq!(numbers("0..1/3"), [0.0, 0.5, 1.0]);
    assert_eq!(numbers("0..0.3:0.1"), [0.0, 0.1, 0.2, 0.3]);
    assert_eq!(numbers("7,5"), [7.0, 5.0]);
}

#[test]
fn a_range_of_jobs_is_whole_numbers_each_once() {
    let values = dimension(THREADS, "1..3/5", plain).unwrap().values;
    assert_eq!(values, [1.0, 2.0, 3.0].map(Value::Number));
}

#[test]
fn what_is_no_list_and_no_range_is_told_why() {
    assert_eq!(
        refused("x", "9..3"),
        "sweeping x over `9..3`: the range is empty: 9 is not below 3"
    );
    assert_eq!(
        refused("x", "1..9/1"),
        "sweeping x over `1..9/1`: `1` points, must be from 2 to 1000"
    );
    assert_eq!(
        refused("x", "1..9:0"),
        "sweeping x over `1..9:0`: a step of 0, must be above 0 and make at most 1000"
    );
    assert_eq!(refused("x", "1,,2"), "sweeping x over `1,,2`: a value is missing");
    assert_eq!(refused("x", "1,1"), "sweeping x over `1,1`: 1 is given twice");
    assert_eq!(refused("x", "1GB..2"), "sweeping x over `1GB..2`: `1GB` is not a number");
}

#[test]
fn in_the_grid_the_last_dimension_changes_fastest() {
    let order = order(&[(THREADS, "1,2"), ("relocation.victim", "greedy,fifo")]);
    let points = grid(&order.dimensions).unwrap();
    let shown: Vec<String> = points.iter().map(|at| format!("{} {}", at[0], at[1])).collect();
    assert_eq!(shown, ["1 greedy", "1 fifo", "2 greedy", "2 fifo"]);
}

#[test]
fn a_key_reaches_into_lists_by_place_and_by_name() {
    assert_eq!(drive("nand.t_program_us.1", "1800").nand.t_program_us, [500.0, 1800.0]);
    assert!((drive("host.windows.serial_us", "0.7").hosts[1].serial_us - 0.7).abs() < 1e-9);
    assert_eq!(drive("relocation.victim", "fifo").relocation.victim, ssd::VictimSpec::Fifo);
    assert!((drive(USER_CAPACITY, "600").formats[0].user_gb - 600.0).abs() < 1e-9);
}

#[test]
fn a_drive_like_another_has_its_keys() {
    let like = ssd::catalogue::text("p5800x-pair").unwrap();
    let order = SweepOrder { drive: like.into(), ..order(&[("host.windows.submit_us", "1,2")]) };
    let settings = grid(&order.dimensions).unwrap().into_iter().map(|at| order.setting(&at));
    assert!(settings.into_iter().all(|setting| setting.unwrap().is_ok()));
}

#[test]
fn the_classes_of_a_tier_and_its_policy_are_swept_by_their_keys() {
    let drive = "schema = 1\nname = \"both\"\ntitle = \"Both\"\n[tier]\nfast = \"p5800x\"\n\
                 fast_gb = 400\nslow = \"p5510\"\nwrite = \"back\"\nread_cache = \"lru\"\n\
                 source = \"estimated: a test\"\n";
    let keys = [("tier.fast_gb", "100,900"), ("tier.read_cache", "lru,two-q,lur")];
    let order = SweepOrder { drive: drive.into(), ..order(&keys) };
    let settings = grid(&order.dimensions).unwrap().into_iter().map(|at| order.setting(&at));
    let settings: Vec<_> = settings.map(Result::unwrap).collect();
    let tiers = settings.iter().flatten().map(|setting| setting.drive.tier.clone().unwrap());
    let caches: Vec<_> = tiers.map(|tier| tier.policy.read_cache.unwrap().name()).collect();
    assert_eq!(caches, ["lru", "two-q"]);
    let faults: Vec<String> = settings.into_iter().filter_map(Result::err).collect();
    assert!(faults[0].contains("unknown variant `lur`"), "{faults:?}");
    assert!(faults[1].contains("tier.fast_gb is 900, must be above 0 and at most"), "{faults:?}");
    assert_eq!(faults.len(), 4);
}

#[test]
fn a_slip_in_a_key_gets_the_nearest_one() {
    let error = order(&[("nand.t_raed_us", "40,50")]).check().unwrap_err();
    assert_eq!(error.to_string(), "the drive's file has no `nand.t_raed_us`");
    assert_eq!(error.remedy(), "did you mean `nand.t_read_us`?");
}

#[test]
fn a_load_that_cannot_be_is_refused() {
    let refused = |key, values| order(&[(key, values)]).check().unwrap_err().to_string();
    assert_eq!(refused(THREADS, "0,1"), "threads is 0, not a whole number from 1 to 1024");
    assert_eq!(refused(READ_PERCENT, "50,101"), "read_percent is 101, not a number from 0 to 100");
    assert_eq!(
        order(&[(THREADS, "1,2"), (THREADS, "3,4")]).check().unwrap_err().to_string(),
        "threads is swept twice"
    );
}

#[test]
fn a_grid_without_a_feasible_point_is_refused_with_the_reason() {
    let error = order(&[(USER_CAPACITY, "900,1000")]).check().unwrap_err().to_string();
    assert!(error.starts_with("no point of the sweep is feasible: "), "{error}");
    assert!(error.contains("below the raw capacity of 859 GB"), "{error}");
}

#[test]
fn a_lifetime_is_cycles_times_raw_capacity_over_write_amplification() {
    let settled = results::sweep::SettledDrive {
        user_capacity_gb: 640.0,
        raw_capacity_gb: 800.0,
        over_provisioning_percent: Some(25.0),
        steady: true,
        host_limited: false,
        precondition_s: 0.0,
        iops: 1.0,
        throughput_mb_s: 1.0,
        latency: results::LatencySummary::default(),
        spread: None,
        write_amplification: Some(4.0),
        tier: None,
        lifetime: None,
        unit_prices: None,
    };
    let mut drive = ssd::catalogue::find("iodrive-duo").unwrap();
    let endurance = ssd::EnduranceSpec {
        pe_cycles: Some(5000),
        rated_pb: Some(7.0),
        warranty_years: Some(5.0),
        source: "estimated: a test".into(),
    };
    drive.endurance = Some(endurance.clone());
    let by_cycles = lifetime::lifetime(&drive, &settled, Some(2000.0)).unwrap();
    assert!((by_cycles.host_writes_pb - 1.0).abs() < 1e-9);
    assert!((by_cycles.years.unwrap() - 500.0 / 365.25).abs() < 1e-9);
    let per_day = by_cycles.drive_writes_per_day.unwrap();
    assert!((per_day - 1e6 / (5.0 * 365.25) / 640.0).abs() < 1e-9);
    let unsteady = results::sweep::SettledDrive { steady: false, ..settled.clone() };
    assert_eq!(lifetime::lifetime(&drive, &unsteady, None), None, "its amplification still grows");
    drive.endurance = Some(ssd::EnduranceSpec { rated_pb: Some(0.5), ..endurance.clone() });
    let warranted = lifetime::lifetime(&drive, &settled, None).unwrap();
    assert!((warranted.host_writes_pb - 1.0).abs() < 1e-9, "what the flash lasts for");
    let half = warranted.drive_writes_per_day.unwrap() / per_day;
    assert!((half - 0.5).abs() < 1e-9, "the warranty ends before");
    drive.endurance = Some(ssd::EnduranceSpec { pe_cycles: None, ..endurance });
    let rated = lifetime::lifetime(&drive, &settled, None).unwrap();
    assert_eq!((rated.host_writes_pb, rated.years), (7.0, None));
    drive.endurance = None;
    assert_eq!(lifetime::lifetime(&drive, &settled, None), None);
}

#[test]
fn a_range_says_how_it_goes_from_one_end_to_the_other_in_one_way() {
    assert_eq!(
        refused("x", "400..720:40/9"),
        "sweeping x over `400..720:40/9`: give a step or a number of points, not both"
    );
    assert_eq!(refused("x", "1..9/4/2"), {
        "sweeping x over `1..9/4/2`: `4/2` points, must be from 2 to 1000"
    });
    assert!(refused("x", "..5").ends_with("`` is not a number"), "an end is missing");
    assert!(refused("x", "5..5").ends_with("the range is empty: 5 is not below 5"));
    assert!(refused("x", "1..9/1001").ends_with("must be from 2 to 1000"));
    let error = dimension("x", "9..3", plain).unwrap_err();
    assert_eq!(error.kind(), Kind::Input);
    assert!(error.remedy().contains("`400..720:40`"), "{}", error.remedy());
}

#[test]
fn numbers_that_are_none_are_refused_wherever_they_stand() {
    for text in ["nan..5", "1..inf", "1..9:nan", "1..9/x", "1..9/-3", "1..9/2.5"] {
        assert!(dimension("x", text, plain).is_err(), "{text}");
    }
    assert_eq!(refused("x", "1..9:-1"), {
        "sweeping x over `1..9:-1`: a step of -1, must be above 0 and make at most 1000"
    });
    assert!(refused("x", "0..1:0.001").contains("a step of 0.001"), "a thousand and one numbers");
    assert_eq!(numbers("0..0.999:0.001").len(), 1000);
}

#[test]
fn a_list_may_have_words_and_white_space_but_no_two_values_alike() {
    let values = |text: &str| dimension("x", text, plain).unwrap().values;
    assert_eq!(values(" greedy , 4 "), [Value::Word("greedy".into()), Value::Number(4.0)]);
    assert_eq!(values("true"), [Value::Word("true".into())]);
    assert_eq!(refused("x", "4,4.0"), "sweeping x over `4,4.0`: 4 is given twice");
    assert_eq!(refused("x", "a,b,a"), "sweeping x over `a,b,a`: a is given twice");
    assert!(refused("x", "").ends_with("a value is missing"));
    assert!(refused("x", "4%").ends_with("`4%` is not a number"), "nor is it a word");
}

#[test]
fn a_grid_that_would_take_too_long_is_refused() {
    let of = |keys: &[&str]| {
        let dimensions = keys.iter().map(|key| dimension(key, "1..1000/1000", plain).unwrap());
        grid(&dimensions.collect::<Vec<_>>())
    };
    assert_eq!(of(&["a"]).unwrap().len(), 1000);
    let error = of(&["a", "b"]).unwrap_err();
    assert_eq!(error.to_string(), "the grid has more than 10000 points");
    assert_eq!(error.remedy(), "take fewer values, or larger steps");
    let keys: Vec<String> = (0..12).map(|key| format!("k{key}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    assert!(of(&keys).is_err(), "10^36 points are more than any counter holds");
    assert_eq!(grid(&[]).unwrap(), [[]], "no dimension is one point");
}

#[test]
fn a_load_at_its_limits_is_taken_and_one_beyond_them_is_not() {
    let checked = |key, values| order(&[(key, values)]).check().map_err(|it| it.to_string());
    assert!(checked(THREADS, "1,1024").is_ok() && checked(READ_PERCENT, "0,100").is_ok());
    let beyond = "threads is 1025, not a whole number from 1 to 1024";
    assert_eq!(checked(THREADS, "1025").unwrap_err(), beyond);
    let half = checked(QUEUE, "1.5").unwrap_err();
    assert!(half.ends_with("is 1.5, not a whole number from 1 to 1024"), "{half}");
    let word = checked(COMPRESSIBLE, "half").unwrap_err();
    assert!(word.ends_with("is half, not a number from 0 to 100"), "{word}");
}

proptest! {
    #[test]
    fn a_range_of_points_begins_and_ends_where_it_says_in_equal_steps(
        from in -1000_i32..1000,
        length in 1_u32..1000,
        count in 2_usize..50,
    ) {
        let to = f64::from(from) + f64::from(length);
        let numbers = numbers(&format!("{from}..{to}/{count}"));
        prop_assert_eq!(numbers.len(), count);
        prop_assert_eq!((numbers[0], numbers[count - 1]), (f64::from(from), to));
        let step = f64::from(length) / (count - 1) as f64;
        prop_assert!(numbers.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < 1e-8));
    }

    #[test]
    fn a_range_of_steps_goes_as_far_as_whole_steps_go(
        from in 0_u32..1000,
        length in 1_u32..900,
        step_thousandths in 1000_u32..50_000,
    ) {
        let (first, step) = (f64::from(from), f64::from(step_thousandths) / 1000.0);
        let end = first + f64::from(length);
        let numbers = numbers(&format!("{from}..{end}:{step}"));
        let last = *numbers.last().unwrap();
        prop_assert!((numbers[0] - first).abs() < 1e-9);
        prop_assert!(last <= end + 1e-8 && end < last + step - 1e-9, "{} of {}", last, end);
        prop_assert!(numbers.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < 1e-8));
    }

    #[test]
    fn a_grid_has_every_combination_once(sizes in prop::collection::vec(1_usize..6, 1..5)) {
        let of = |(nth, size): (usize, &usize)| {
            let values: Vec<String> = (0..*size).map(|value| value.to_string()).collect();
            dimension(&format!("k{nth}"), &values.join(","), plain).unwrap()
        };
        let dimensions: Vec<Dimension> = sizes.iter().enumerate().map(of).collect();
        let points = grid(&dimensions).unwrap();
        prop_assert_eq!(points.len(), sizes.iter().product::<usize>());
        for (nth, point) in points.iter().enumerate() {
            prop_assert_eq!(point.len(), sizes.len());
            prop_assert!(!points[..nth].contains(point), "{:?} is there twice", point);
        }
    }
}

#[test]
fn the_capacity_of_the_format_is_swept_once_by_whatever_key() {
    for key in ["format.stock.user_gb", "format.0.user_gb"] {
        let twice = order(&[(USER_CAPACITY, "400,640"), (key, "400,640")]);
        let text = twice.check().unwrap_err().to_string();
        assert_eq!(text, format!("user_capacity_gb and {key} are one value, and both are swept"));
    }
    order(&[(USER_CAPACITY, "400,640"), ("format.high-performance.user_gb", "400")])
        .check()
        .unwrap();
}

#[test]
fn keys_of_another_format_or_host_and_compressibility_have_no_effect() {
    let none = |key: &str, values: &str| order(&[(key, values)]).without_effect().unwrap();
    let other = "`format.high-performance.user_gb` has no effect: the format is `stock`";
    assert_eq!(none("format.high-performance.user_gb", "400,500"), [other]);
    assert_eq!(none("format.1.user_gb", "400,500").len(), 1);
    assert_eq!(none("format.stock.user_gb", "400,500"), [""; 0]);
    assert_eq!(none("format.0.user_gb", "400,500"), [""; 0]);
    assert_eq!(none("nand.t_erase_us", "2000,3000"), [""; 0]);
    let compressible = "--compressible has no effect: iodrive-duo does not compress";
    assert_eq!(none(COMPRESSIBLE, "0,50"), [compressible]);
}

#[test]
fn the_hint_for_invalid_values_has_the_form_of_their_key() {
    let hint = |key: &str| dimension(key, "0..90:0", plain).unwrap_err().remedy().to_owned();
    assert!(hint(READ_PERCENT).contains("`0..90:10`"), "{}", hint(READ_PERCENT));
    assert!(hint(THREADS).contains("`1..32`"));
    assert!(hint("nand.t_read_us").contains("`400..720`"));
}
