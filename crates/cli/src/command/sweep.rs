//! `floatgate sweep`: one drive under one kind of load, at every point of a grid.

mod ray;

use std::fs;

use anyhow::Result;
use lab::library::Library;
use lab::results::ConfidenceInterval;
use lab::results::sweep::{
    Dimension, LifetimeBasis, Point, PointOutcome, SettledDrive, Sweep, Value,
};
use lab::ssd::EnduranceSpec;
use lab::subject::{Subject, find_drive_text};
use lab::workload::Workload;
use lab::{Error, Kind, repeats, ssd};
use study::sweep::{
    COMPRESSIBLE, QUEUE, READ_PERCENT, Store, SweepOrder, THREADS, USER_CAPACITY, dimension, load,
};

use crate::args;
use crate::progress::TerminalProgress;
use crate::setup::MadeFolder;
use crate::{Ending, output, quantity, setup, table};

/// Load of a sweep that sweeps neither threads nor queue.
const LOAD_DEFAULT: u16 = 16;
/// Meaning of a column of the table.
const OP: &str = "OP is over-provisioning, (raw - user) / user capacity.";
/// Meaning of the intervals: those of a point in one measurement say nothing of another seed.
const SPREAD: &str = "\nIn brackets: intervals of 95 %, over --repeat N seeds, else from the parts \
                      of the measurement. Points whose intervals overlap are not told apart.";
/// Meaning of a rated lifetime, which does not follow from the write amplification.
const RATED: &str = "\nrated PB is the manufacturer's rating, which does not depend on WA.";
/// Meaning of a lifetime that follows from the write amplification.
const WORN_OUT: &str = "\nwear-out PB is what the host can write until the cycles are used up: \
                        P/E cycles x raw capacity / WA.";
/// Note where nothing is known of the endurance of a drive.
const NO_LIFETIME: &str = "\nNo lifetime: the drive's file states no endurance.";

/// Sweeps, or goes on with an interrupted sweep, and prints every point.
pub(crate) fn sweep(args: &args::Sweep) -> Result<Ending> {
    let made = MadeFolder::look(&args.out);
    let store = match &args.resume {
        Some(asked) => Store::open(&args.out, asked)?,
        None => begin(args).inspect_err(|_| made.remove_empty())?,
    };
    let progress = TerminalProgress::new()?;
    let sweep = match &args.ray {
        Some(address) => ray::sweep(&store, address),
        None => here(&store, args, &progress),
    };
    progress.clear();
    let sweep = sweep.inspect_err(|_| output::talk(&how_to_go_on(&store, args)))?;
    if args.resume.is_none()
        && is_whole(&sweep)
        && let Err(error) = infeasible(&sweep)
    {
        // What cannot be measured leaves nothing; what cannot be removed does no harm.
        let _ = fs::remove_dir_all(store.path());
        made.remove_empty();
        return Err(error);
    }
    let sweep = match &args.price {
        Some(price) => sweep.with_price(price.clone()),
        None => sweep,
    };
    let page = store.finish(&sweep, &report::sweep(&sweep))?;
    if args.json {
        output::json(&sweep)?;
    } else {
        let endurance = store.order().drive_spec()?.endurance;
        output::data(&format!("{}\n\n{}", shown(&sweep, endurance.as_ref()), page.display()))?;
    }
    ending(&sweep, &store, args)
}

/// Measures the remaining points of the sweep on this machine.
fn here(store: &Store, args: &args::Sweep, progress: &TerminalProgress) -> Result<Sweep> {
    let keep = |index: usize, point: &Point| store.keep(index, point);
    let jobs = setup::jobs(args.jobs);
    Ok(store.order().carry_out(&store.finished()?, jobs, progress, &keep)?)
}

fn begin(args: &args::Sweep) -> Result<Store> {
    if args.ray.is_some() {
        // Before the folder is made: without the driver no sweep could be continued in it.
        ray::check()?;
    }
    let order = order(args)?;
    order.check()?;
    for why in order.without_effect()? {
        output::talk(&format!("warning: {why}"));
    }
    if args.load_gb_per_day.is_some() {
        let drive = order.drive_spec()?;
        if drive.endurance.is_none() {
            let name = drive.name;
            let text =
                format!("--load-gb-per-day has no effect: the file of {name} has no endurance");
            output::talk(&format!("warning: {text}"));
        }
    }
    Ok(Store::create(&args.out, order)?)
}

fn order(args: &args::Sweep) -> Result<SweepOrder> {
    let name = args.target.as_deref().unwrap_or_default();
    let drive = find_drive_text(name)?;
    let choice = setup::choice(args.format.as_deref(), &args.model);
    let wanted = Subject::find(name)?.setup(&choice)?;
    let swept = dimensions(args)?;
    let fixed = |key: &str| {
        let one =
            swept.iter().find(|dimension| dimension.key == key && dimension.values.len() == 1);
        one.map_or(Ok(LOAD_DEFAULT), |dimension| load(key, &dimension.values[0]))
    };
    let is_load = |dimension: &Dimension| [THREADS, QUEUE].contains(&dimension.key.as_str());
    let (threads, queue_per_thread) = (fixed(THREADS)?, fixed(QUEUE)?);
    let dimensions: Vec<Dimension> =
        swept.into_iter().filter(|it| !is_load(it) || it.values.len() > 1).collect();
    if dimensions.is_empty() {
        return Err(Error::new(Kind::Input, "no parameter to sweep was given")
            .hint("give a range, such as --user-capacity 400G..720G")
            .into());
    }
    let order = SweepOrder {
        schema: SweepOrder::SCHEMA,
        model_version: ssd::MODEL_VERSION,
        id: String::new(),
        started_at: String::new(),
        drive,
        format: wanted.format,
        host: wanted.host,
        time_lapse: choice.time_lapse,
        seed: args.model.seed,
        workload: Library::of_user().find::<Workload>(&args.workload)?.value,
        threads,
        queue_per_thread,
        repeat: 1,
        load_gb_per_day: args.load_gb_per_day,
        dimensions,
    };
    let repeat = match args.repeat {
        Some(repeat) => repeat,
        None => repeats::of_work(order.work()?),
    };
    Ok(SweepOrder { repeat, ..order })
}

/// Returns the dimensions that are swept: capacity, load, data, then keys of the drive's file in
/// the order given.
fn dimensions(args: &args::Sweep) -> Result<Vec<Dimension>> {
    let plain = dimension::plain as fn(&str) -> Result<f64, String>;
    let options = [
        (USER_CAPACITY, &args.user_capacity, quantity::capacity as fn(&str) -> _),
        (THREADS, &args.threads, plain),
        (QUEUE, &args.queue, plain),
        (READ_PERCENT, &args.read_percent, plain),
        (COMPRESSIBLE, &args.compressible, plain),
    ];
    let given =
        options.into_iter().filter_map(|(key, text, number)| Some((key, text.as_deref()?, number)));
    let mut swept = given
        .map(|(key, text, number)| {
            let dimension = dimension::dimension(key, text, number)?;
            check_numbers(&dimension, text, number)?;
            Ok(dimension)
        })
        .collect::<Result<Vec<_>>>()?;
    for text in &args.set {
        let Some((key, values)) = text.split_once('=') else {
            let error = Error::new(Kind::Input, format!("--set {text}: no `=`"));
            return Err(error.hint("write `--set nand.t_erase_us=2000..5000`").into());
        };
        swept.push(dimension::dimension(key.trim(), values, plain)?);
    }
    Ok(swept)
}

/// Refuses a word where numbers alone make sense: with `--queue abc` another depth would be swept.
fn check_numbers(
    dimension: &Dimension,
    text: &str,
    number: fn(&str) -> Result<f64, String>,
) -> Result<()> {
    let mut words = dimension.values.iter().filter_map(|value| match value {
        Value::Word(word) => Some(word),
        Value::Number(_) => None,
    });
    let Some(why) = words.find_map(|word| number(word).err()) else { return Ok(()) };
    let text = format!("sweeping {} over `{text}`: {why}", dimension.key);
    Err(Error::new(Kind::Input, text).hint("give numbers, such as `1,8,32` or `1..32`").into())
}

/// The load, a line for each point, and the meaning of the columns, of a drive of that endurance.
fn shown(sweep: &Sweep, endurance: Option<&EnduranceSpec>) -> String {
    let keys: Vec<&str> = sweep.dimensions.iter().map(|dimension| dimension.key.as_str()).collect();
    let is_rated = sweep.points.iter().any(is_rated);
    let life = if is_rated { "rated PB" } else { "wear-out PB" };
    let head = [
        &*keys.join(", "),
        "OP %",
        "IOPS",
        "avg ms",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "p99.99 ms",
        "WA",
        life,
        "DWPD",
        "years",
    ];
    let cells: Vec<[String; 12]> = sweep.points.iter().map(cells).collect();
    // Not the key, nor the rate: a sweep always has these.
    let is_shown = |column: usize| column < 3 || cells.iter().any(|row| !row[column].is_empty());
    let kept: Vec<usize> = (0..head.len()).filter(|column| is_shown(*column)).collect();
    let row = |row: &[String; 12]| kept.iter().map(|&column| row[column].clone()).collect();
    let rows: Vec<Vec<String>> =
        std::iter::once(&head.map(str::to_owned)).chain(&cells).map(row).collect();
    let validation = sweep.validation_note().unwrap_or_default();
    let has_spread = sweep.points.iter().filter_map(Point::settled).any(|it| it.spread.is_some());
    let spread = if has_spread { SPREAD } else { "" };
    let notes: String = sweep.points.iter().filter_map(mean_note).collect();
    let table = table::columns(&rows);
    let has_lifetimes = kept.contains(&9);
    let lifetime = lifetime(endurance, (has_lifetimes, is_rated));
    let text =
        format!("{}\n\n{table}\n\n{OP}{spread}{lifetime}{notes}\n{validation}", sweep.load());
    text.trim_end().to_owned()
}

/// The meaning of the columns of the lifetime, or why there are none.
fn lifetime(endurance: Option<&EnduranceSpec>, (has_lifetimes, is_rated): (bool, bool)) -> String {
    let Some(endurance) = endurance else { return NO_LIFETIME.to_owned() };
    if !has_lifetimes {
        return String::new();
    }
    let basis = if is_rated { RATED } else { WORN_OUT };
    match (endurance.rated_pb, endurance.warranty_years) {
        (Some(rated_pb), Some(years)) => format!(
            "{basis}\nDWPD is over the warranty of {years} years, and at most the manufacturer's \
             rating of {rated_pb} PB."
        ),
        _ => basis.to_owned(),
    }
}

/// True if the lifetime at `point` is the maker's rating.
fn is_rated(point: &Point) -> bool {
    let lifetime = point.settled().and_then(|settled| settled.lifetime);
    lifetime.is_some_and(|lifetime| lifetime.basis == LifetimeBasis::Rating)
}

/// A line on the mean latency of a point that rare requests raise; absent for any other.
fn mean_note(point: &Point) -> Option<String> {
    let note = point.settled()?.latency.mean_note()?;
    Some(format!("\n{}: {note}", at(point)))
}

/// The place of a point in the grid.
fn at(point: &Point) -> String {
    point.at.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

fn cells(point: &Point) -> [String; 12] {
    let at = at(point);
    match &point.outcome {
        PointOutcome::Infeasible { reason } => {
            let mut cells: [String; 12] = std::array::from_fn(|_| String::new());
            cells[0] = at;
            cells[11] = format!("infeasible: {reason}");
            cells
        }
        PointOutcome::Measured(settled) => measured(at, settled),
    }
}

fn measured(at: String, settled: &SettledDrive) -> [String; 12] {
    let SettledDrive { latency, lifetime, .. } = settled;
    let ms = |latency_ns: f64| format!("{:.3}", latency_ns / 1e6);
    let spread = settled.spread.unwrap_or_default();
    let known = |latency_ns: Option<u64>, interval: Option<ConfidenceInterval>| {
        let value = latency_ns.map_or_else(|| "-".into(), |it| ms(it as f64));
        let ends = interval.map(|it| format!(" ({} to {})", ms(it.low), ms(it.high)));
        value + &ends.unwrap_or_default()
    };
    let number = |value: Option<f64>| value.map_or_else(String::new, |it| format!("{it:.2}"));
    let unsteady = if settled.steady { "" } else { " (not steady)" };
    let limited = if settled.host_limited { " (limited by the host)" } else { "" };
    [
        at,
        settled.over_provisioning_percent.map_or_else(String::new, |it| format!("{it:.1}")),
        format!("{:.0}{unsteady}{limited}", settled.iops),
        latency.mean_ns().map_or_else(|| "-".into(), ms),
        known(latency.p50_ns(), None),
        known(latency.p99_ns(), spread.latency.latency_ns_p99),
        known(latency.p999_ns(), spread.latency.latency_ns_p999),
        known(latency.p9999_ns(), None),
        number(settled.write_amplification),
        number(lifetime.map(|lifetime| lifetime.host_writes_pb)),
        number(lifetime.and_then(|lifetime| lifetime.drive_writes_per_day)),
        number(lifetime.and_then(|lifetime| lifetime.years)),
    ]
}

fn how_to_go_on(store: &Store, args: &args::Sweep) -> String {
    let name = store.path().file_name().unwrap_or_default().to_string_lossy();
    let (name, out) = (setup::shell_word(&name), args.out.display().to_string());
    format!("continue with `floatgate sweep --resume {name} --out {}`", setup::shell_word(&out))
}

/// Fails if no point of a whole sweep could be measured, with the reason of the first.
fn infeasible(sweep: &Sweep) -> Result<()> {
    let reasons = sweep.points.iter().map(|point| match &point.outcome {
        PointOutcome::Infeasible { reason } => Some(reason),
        PointOutcome::Measured(_) => None,
    });
    let reasons: Option<Vec<&String>> = reasons.collect();
    let Some([first, ..]) = reasons.as_deref() else { return Ok(()) };
    let text = format!("none of {} points of the sweep is feasible: {first}", sweep.points.len());
    let hint = "sweep other values, or a smaller --time-lapse, which leaves more of the drive";
    Err(Error::new(Kind::Input, text).hint(hint).into())
}

/// Points of the grid of a sweep.
fn planned(sweep: &Sweep) -> usize {
    sweep.dimensions.iter().map(|dimension| dimension.values.len()).product()
}

/// True if every point was tried.
fn is_whole(sweep: &Sweep) -> bool {
    sweep.points.len() >= planned(sweep)
}

fn ending(sweep: &Sweep, store: &Store, args: &args::Sweep) -> Result<Ending> {
    let planned = planned(sweep);
    if !is_whole(sweep) {
        let text = format!("interrupted after {} of {planned} points", sweep.points.len());
        return Err(Error::new(Kind::Program, text).hint(how_to_go_on(store, args)).into());
    }
    infeasible(sweep)?;
    let steady = sweep.points.iter().filter_map(Point::settled).all(|settled| settled.steady);
    Ok(if steady || !args.require_steady { Ending::Done } else { Ending::NotSteady })
}

#[cfg(test)]
mod tests {
    use lab::results::LatencySummary;

    use super::*;

    #[test]
    fn the_table_names_load_phase_and_over_provisioning_and_explains_a_raised_mean() {
        let latency = LatencySummary {
            latency_ns_avg: 5e6,
            latency_ns_p99: Some(1_000_000),
            latency_ns_p999: Some(6_000_000),
            latency_ns_p9999: Some(7_000_000),
            latency_ns_max: 20_000_000_000,
            ..LatencySummary::default()
        };
        let settled = SettledDrive {
            over_provisioning_percent: Some(25.0),
            latency,
            steady: true,
            ..SettledDrive::default()
        };
        let outcome = PointOutcome::Measured(Box::new(settled));
        let at = vec![Value::Number(640.0)];
        let sweep = Sweep {
            workload: "4k-rand-write".into(),
            threads: 16,
            queue_per_thread: 16,
            dimensions: vec![Dimension { key: USER_CAPACITY.into(), values: at.clone() }],
            points: vec![Point { at, outcome }],
            ..Sweep::default()
        };
        let text = shown(&sweep, None);
        let lines: Vec<&str> = text.lines().collect();
        let load = "4k-rand-write at T16Q16, modelled after preconditioning to steady state";
        assert_eq!(lines[0], load);
        assert!(lines[2].starts_with("user_capacity_gb  OP %"), "{text}");
        assert!(lines[3].starts_with("640               25.0"), "{text}");
        assert_eq!(lines[5], OP);
        assert_eq!(lines[6], NO_LIFETIME.trim_start());
        assert!(!lines[2].contains("PB") && !lines[2].contains("years"), "{text}");
        assert_eq!(lines[7], "640: mean above p99: rare requests of up to 20.0 s raise it");
    }
    #[test]
    fn lifetimes_are_named_by_what_they_follow_from_and_the_rating_that_bounds_them() {
        let endurance = EnduranceSpec {
            pe_cycles: Some(3000),
            rated_pb: Some(12.0),
            warranty_years: Some(5.0),
            source: "a test".into(),
        };
        let told = lifetime(Some(&endurance), (true, false));
        assert!(told.starts_with(WORN_OUT), "{told}");
        assert!(told.ends_with("at most the manufacturer's rating of 12 PB."), "{told}");
        let rated = EnduranceSpec { warranty_years: None, ..endurance };
        assert_eq!(lifetime(Some(&rated), (true, true)), RATED);
        assert_eq!(lifetime(Some(&rated), (false, false)), "", "no point was steady");
        assert_eq!(lifetime(None, (false, false)), NO_LIFETIME);
    }
}
