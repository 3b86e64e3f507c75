//! Tests of drives that are made from data sheets.

use lab::plan::Plan;
use lab::progress::SilentProgress;
use results::published::{DATASHEETS_FILE, FigureRow, Phase, datasheets, figures_for};

use super::*;
use crate::validate::{Bench, Row, Verdict, plans, plans_of_figures, validate};

/// Greatest deviation of a model from its sheet.
const WITHIN: f64 = 0.15;
/// The drive whose settled rate is simulated, which takes long.
const SETTLED: (&str, Option<f64>) = ("Samsung PM9A3", Some(3840.0));
/// Factor by which this test's time lapse exceeds that of the drives.
const FASTER: u32 = 2;

/// The drives of the catalogue that were made from data sheets, and their classes.
fn made() -> Vec<(DriveSpec, String)> {
    let class = |name: &str| {
        let line = catalogue::text(name)?.lines().find(|line| line.starts_with("like = "))?;
        let class = line.trim_start_matches("like = ").trim_matches('"');
        class.starts_with("generic-").then(|| class.to_owned())
    };
    let drives = catalogue::drives().into_iter();
    drives.filter_map(|drive| class(&drive.name).map(|class| (drive, class))).collect()
}

fn rows_of(drive: &DriveSpec) -> Vec<FigureRow> {
    let (device, capacity_gb) = drive.published_as().unwrap();
    figures_for(datasheets(), device, capacity_gb).cloned().collect()
}

fn pm9a3() -> Vec<FigureRow> {
    rows_of(&catalogue::find("samsung-pm9a3-7680").unwrap())
}

fn derived(rows: &[FigureRow]) -> DriveSpec {
    let file = DerivedFile::new(rows, "sheet.csv", "generic-tlc-gen4").unwrap();
    DriveSpec::parse(&file.text, "made.toml").unwrap()
}

fn refused(change: impl Fn(&mut Vec<FigureRow>)) -> String {
    let mut rows = pm9a3();
    change(&mut rows);
    let error = DerivedFile::new(&rows, "sheet.csv", "generic-tlc-gen4").unwrap_err();
    format!("{error}; {}", error.remedy())
}

#[test]
fn drives_of_data_sheets_are_those_that_the_command_makes() {
    let mut rows = 0;
    for (drive, class) in &made() {
        let its = rows_of(drive);
        rows += its.len();
        let file = DerivedFile::new(&its, DATASHEETS_FILE, class).unwrap();
        assert_eq!(Some(file.text.as_str()), catalogue::text(&drive.name), "{}", drive.name);
        assert!(!drive.is_validated(), "{}: its sheet confirms no rate", drive.name);
    }
    assert_eq!(rows, datasheets().len(), "each sheet is that of a drive");
}

/// A row at one load, where the sheet does not say at which.
fn at_one_load(row: &FigureRow) -> FigureRow {
    let mut row = row.clone();
    if row.threads.is_empty() {
        let queue = if row.workload == "4k-rand-read" { "64" } else { "16" };
        (row.threads, row.queue_per_thread) = ("16".into(), queue.into());
    }
    row
}

/// Deviations of `drives` from those of their sheets' `rows` that are carried out, beyond
/// [`WITHIN`].
fn misses(drives: &[DriveSpec], rows: &[FigureRow], plans: &[Plan]) -> Vec<String> {
    let is_settled = |row: &FigureRow| (row.device.as_str(), row.capacity_gb) == SETTLED;
    let is_wanted = |row: &&FigureRow| {
        row.measured_metric().is_some() && (row.phase == Phase::Datasheet || is_settled(row))
    };
    let rows: Vec<&FigureRow> = rows.iter().filter(is_wanted).collect();
    let mut plans = plans.to_vec();
    plans.extend(plans_of_figures(&rows, &plans));
    let bench = Bench { drives, plans: &plans, threads: 2 };
    let compared = validate(&rows, bench, &SilentProgress).unwrap();
    assert!(compared.len() >= 3 * drives.len(), "{}", compared.len());
    let miss = |row: &Row| {
        let Row { device, value_high, workload, metric, .. } = row;
        let ratio = match &row.verdict {
            Verdict::In(it) | Verdict::Out(it) => Some(it.ratio),
            _ => None,
        };
        let is_in = ratio.is_some_and(|ratio| (ratio - 1.0).abs() <= WITHIN);
        (!is_in).then(|| format!("{device}: {workload} {metric} {value_high:?}: {ratio:?}"))
    };
    compared.iter().filter_map(miss).collect()
}

#[test]
fn drives_of_data_sheets_reach_what_these_state() {
    let drives = made().into_iter().map(|(mut drive, _)| {
        drive.time_lapse *= FASTER;
        drive
    });
    let (clients, others): (Vec<_>, Vec<_>) = drives.partition(|it| it.slc_cache.is_some());
    let rows = |drives: &[DriveSpec]| drives.iter().flat_map(rows_of).collect::<Vec<_>>();
    // Makers measure what has a cache within it, which is as short as the loads of the protocol.
    let missed = misses(&clients, &rows(&clients), &plans().unwrap());
    assert_eq!(missed, Vec::<String>::new());
    // A drive of TLC has a buffer that the same loads, in its time lapse, would measure.
    let rows: Vec<FigureRow> = rows(&others).iter().map(at_one_load).collect();
    let missed = misses(&others, &rows, &[]);
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn a_figure_of_a_sheet_moves_the_number_that_follows_from_it_and_no_other() {
    let whole = derived(&pm9a3());
    let with = |workload: &str, factor: f64| {
        let mut rows = pm9a3();
        let row = rows.iter_mut().find(|row| row.workload == workload).unwrap();
        row.value_high = row.value_high.map(|value| value * factor);
        derived(&rows)
    };
    let reads = with("4k-rand-read", 0.5);
    assert!((reads.controller.read_us / whole.controller.read_us - 2.0).abs() < 1e-3);
    assert_eq!((&reads.nand, &reads.geometry), (&whole.nand, &whole.geometry));
    let writes = with("128k-seq-write", 0.8);
    assert!((writes.nand.t_program_us[0] / whole.nand.t_program_us[0] - 1.25).abs() < 1e-3);
    let settled = with("4k-rand-write", 0.5);
    let spares = |spec: &DriveSpec| spec.geometry.spare_erase_blocks_per_plane;
    assert!(spares(&settled) > spares(&whole), "less to relocate into, and slower");
    assert_eq!(settled.nand, whole.nand);
}

#[test]
fn a_sheet_that_no_drive_can_be_made_of_is_refused_with_a_remedy() {
    let error = refused(|rows| rows[5].metric = "kb_s".into());
    assert!(error.contains("states kb_s of 128k-seq-read in phase datasheet"), "{error}");
    assert!(error.contains("known: 128k-seq-read mb_s"), "{error}");
    let error = refused(|rows| {
        rows.retain(|row| row.metric != "usable_capacity_gb");
        for row in rows {
            row.capacity_gb = None;
        }
    });
    assert!(error.contains("the capacity of Samsung PM9A3 is not stated; fill"), "{error}");
    let error = refused(|rows| rows[6].capacity_gb = Some(3840.0));
    assert!(error.contains("must be one drive of one capacity"), "{error}");
    let error = refused(|rows| {
        let again = FigureRow { id: "Z1".into(), ..rows[6].clone() };
        rows.push(again);
    });
    assert!(error.contains("row Z1 states again what row S007 does"), "{error}");
    let error = refused(|rows| rows[5].value_high = Some(9000.0));
    assert!(error.contains("9000 MB/s: PCIe 4.0 x4 carries at most 7877"), "{error}");
    let error = refused(|rows| rows[8].value_high = Some(1.2e6));
    assert!(error.contains("all dies together program"), "{error}");
    let none = DerivedFile::new(&pm9a3(), "sheet.csv", "p5800x").unwrap_err().to_string();
    assert!(none.contains("must be a NAND drive"), "{none}");
}
