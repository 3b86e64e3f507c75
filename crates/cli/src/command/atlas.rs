//! `floatgate atlas`: pages of all drives, which work offline.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use lab::results::headlines::settled_write_iops;
use lab::results::price::Price;
use lab::results::{Run, baseline, published};
use lab::runs::{RunEntry, Runs, SWEEP, write_text};
use lab::ssd::{DriveSpec, catalogue};
use lab::{Error, Kind};
use report::{AtlasColumn, AtlasFact, AtlasModel, AtlasRun};

use crate::args::Atlas;
use crate::command::runs::check_folder;
use crate::drive_prices::{self, DrivePrices};
use crate::drive_query::{Cell, cell_of};
use crate::{Ending, output};

/// Page of all drives.
const INDEX: &str = "index.html";
/// Folder of the reviews within that of the pages.
const REVIEWS: &str = "reviews";
/// Mark of a page that this command wrote.
const MARK: &str = "id=\"atlas-data\"";

/// Columns of the catalogue that the table shows: name, heading, unit.
const COLUMNS: [(&str, &str, &str); 8] = [
    ("year", "Year", ""),
    ("interface", "Interface", ""),
    ("media", "Flash or other media", ""),
    ("user_gb", "Capacity", "GB"),
    ("over_provisioning_percent", "Over-provisioning", "% of user"),
    ("endurance_pbw", "Endurance", "PB written"),
    ("endurance_dwpd", "Endurance", "drive writes a day"),
    ("warranty_years", "Warranty", "years"),
];

/// One page: runs that are reviewed together.
struct Review {
    /// Path of the page that shows them; that of the run's folder where there is none.
    known_by: PathBuf,
    runs: Vec<Run>,
}

/// Writes the pages, and prints the path of the first.
pub(crate) fn atlas(args: &Atlas) -> Result<Ending> {
    check_place(args)?;
    drive_prices::check(&args.price.prices)?;
    let mut reviews = reviews(args)?;
    let drives = catalogue::drives();
    check_prices(&args.price.prices, &drives, &reviews)?;
    for review in &mut reviews {
        drive_prices::apply(&args.price.prices, &mut review.runs);
    }
    let folder = args.out.join(REVIEWS);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let sheets = Sheets::new(&args.price.prices, &drives, &reviews);
    let (mut runs, mut of_runs): (Vec<Run>, Vec<AtlasRun>) = (Vec::new(), Vec::new());
    for (number, Review { runs: reviewed, .. }) in reviews.into_iter().enumerate() {
        let first = &reviewed[0];
        let is_known = runs.iter().any(|run| run.id == first.id);
        let name = if is_known {
            format!("{}-{number}.html", first.id)
        } else {
            format!("{}.html", first.id)
        };
        write_text(&folder.join(&name), &report::brief(&reviewed, &first.target.heading()))?;
        for run in &reviewed {
            let page = format!("{REVIEWS}/{name}");
            of_runs.push(AtlasRun { page, facts: sheets.of_run(run) });
        }
        runs.extend(reviewed);
    }
    let models = if args.runs_only { Vec::new() } else { sheets.models(&runs) };
    let atlas = report::Atlas { runs: &runs, of_runs, models, columns: sheets.columns() };
    let index = args.out.join(INDEX);
    write_text(&index, &report::atlas(&atlas))?;
    output::data(&index.display().to_string())?;
    Ok(Ending::Done)
}

/// Refuses a folder that exists, unless it holds an atlas, which may be replaced.
fn check_place(args: &Atlas) -> Result<()> {
    let Atlas { out, .. } = args;
    let is_free = fs::read_dir(out).map(|mut entries| entries.next().is_none());
    if !out.exists() || is_free.unwrap_or(false) {
        return Ok(());
    }
    let refused = |text: String, hint: &str| Err(Error::new(Kind::Refused, text).hint(hint).into());
    if !is_atlas(out) {
        let text = format!("{} is no atlas, and would be mixed with one", out.display());
        return refused(text, "name a folder that does not exist with --out");
    }
    if args.overwrite {
        return Ok(());
    }
    let text = format!("{} is there already", out.display());
    refused(text, "name another folder with --out, or replace it with --overwrite")
}

fn is_atlas(folder: &Path) -> bool {
    fs::read_to_string(folder.join(INDEX)).is_ok_and(|page| page.contains(MARK))
}

/// The runs by the page that shows them, in the order in which they were made, each once.
fn reviews(args: &Atlas) -> Result<Vec<Review>> {
    check_folder(&args.dir)?;
    let runs = Runs::new(&args.dir);
    let mut reviews: Vec<Review> = Vec::new();
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in named(args, &runs) {
        let path = runs.find(&name)?;
        if paths.contains(&path) {
            continue;
        }
        let run = runs.load(&name)?;
        let known_by = runs.page_of(&path).unwrap_or_else(|| path.clone());
        paths.push(path);
        match reviews.iter_mut().find(|it| it.known_by == known_by) {
            Some(review) => review.runs.push(run),
            None => reviews.push(Review { known_by, runs: vec![run] }),
        }
    }
    if reviews.is_empty() && args.runs_only {
        let text = format!("{} has no finished run", args.dir.display());
        let hint = "`floatgate review DRIVE` makes one; --dir names another folder";
        return Err(Error::new(Kind::Input, text).hint(hint).into());
    }
    Ok(reviews)
}

/// Names of the runs that were asked for, else of every finished one; says which cannot be read.
fn named(args: &Atlas, runs: &Runs) -> Vec<String> {
    if !args.runs.is_empty() {
        return args.runs.clone();
    }
    let mut names = Vec::new();
    for entry in runs.listed().into_iter().filter(|entry| entry.protocol != SWEEP) {
        if !entry.fault.is_empty() {
            output::talk(&format!("warning: {} is left out: {}", entry.name, entry.fault));
        } else if entry.is_complete() {
            names.push(entry.name);
        } else {
            let RunEntry { name, done, planned, .. } = entry;
            output::talk(&format!("{name} is left out: {done} of {planned} steps are done"));
        }
    }
    names
}

/// Refuses a price of a drive that is not in the atlas.
fn check_prices(prices: &DrivePrices, drives: &[DriveSpec], reviews: &[Review]) -> Result<()> {
    let is_known = |name: &str| {
        let mut runs = reviews.iter().flat_map(|review| &review.runs);
        drives.iter().any(|drive| drive.name == name) || runs.any(|run| run.target.name == name)
    };
    match prices.iter().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!("--price {name}: neither the catalogue nor a run has this drive");
            Err(Error::new(Kind::Input, text).hint("`floatgate drives` lists them").into())
        }
    }
}

/// Properties of drives that no run measures.
struct Sheets<'a> {
    stated: &'a DrivePrices,
    drives: &'a [DriveSpec],
    /// Currency of all prices; absent without any.
    currency: Option<String>,
}

/// Drive, or run of one, whose properties are told.
struct DescribedDrive<'a> {
    /// Drive of the catalogue and its format; absent for others.
    drive: Option<(&'a DriveSpec, &'a str)>,
    /// Capacity where it is known better than from the drive's file, in decimal GB.
    user_gb: Option<f64>,
    price: Option<Price>,
    settled_write_iops: Option<f64>,
}

impl<'a> Sheets<'a> {
    fn new(stated: &'a DrivePrices, drives: &'a [DriveSpec], reviews: &[Review]) -> Self {
        let of_runs =
            reviews.iter().flat_map(|it| &it.runs).filter_map(|it| it.target.price.clone());
        let all = stated.iter().map(|(_, price)| price.clone()).chain(of_runs);
        let currency = all.chain(drives.iter().filter_map(published_price)).next();
        Self { stated, drives, currency: currency.map(|price| price.currency) }
    }

    fn columns(&self) -> Vec<AtlasColumn> {
        let column = |name: &str, unit: &str| AtlasColumn { name: name.into(), unit: unit.into() };
        let mut columns: Vec<AtlasColumn> =
            COLUMNS.into_iter().map(|(_, name, unit)| column(name, unit)).collect();
        if let Some(currency) = &self.currency {
            columns.push(column("Price", currency));
            columns.push(column("Date and source of the price", ""));
            columns.push(column("Price", &format!("{currency}/GB")));
            columns.push(column("Price", &format!("{currency} per 1,000 settled 4K writes/s")));
            columns.push(column("Price", &format!("{currency}/TB written")));
        }
        columns
    }

    fn of_run(&self, run: &Run) -> Vec<AtlasFact> {
        let is_its =
            |drive: &&DriveSpec| run.target.kind.is_model() && drive.name == run.target.name;
        let drive = self.drives.iter().find(is_its);
        let user_gb = run.target.user_capacity_all_bytes() as f64 / 1e9;
        self.facts(&DescribedDrive {
            drive: drive.map(|drive| (drive, run.target.format.as_str())),
            user_gb: (user_gb > 0.0).then_some(user_gb),
            price: run.target.price.clone(),
            settled_write_iops: settled_write_iops(run),
        })
    }

    fn models(&self, runs: &[Run]) -> Vec<AtlasModel> {
        let has_run = |drive: &DriveSpec| {
            runs.iter().any(|run| run.target.kind.is_model() && run.target.name == drive.name)
        };
        let of = |drive: &DriveSpec| {
            let row = baseline::rows().iter().find(|it| it.drive == drive.name);
            let stated = self.stated.iter().find(|(name, _)| *name == drive.name);
            let price = stated.map(|(_, price)| price.clone()).or_else(|| published_price(drive));
            let formats = drive.formats();
            let facts = self.facts(&DescribedDrive {
                drive: Some((drive, formats.first().map_or("", String::as_str))),
                user_gb: None,
                price: price
                    .filter(|it| drive_prices::is_in(it, self.currency.as_deref(), &drive.title)),
                settled_write_iops: row.map(|it| it.write_iops),
            });
            AtlasModel {
                title: drive.title.clone(),
                unvalidated: !drive.is_validated(),
                row: row.cloned(),
                facts,
            }
        };
        self.drives.iter().filter(|drive| !has_run(drive)).map(of).collect()
    }

    /// One value for each column.
    fn facts(&self, of: &DescribedDrive<'_>) -> Vec<AtlasFact> {
        let cell = |column: &str| match (of.user_gb, of.drive) {
            (Some(user_gb), _) if column == "user_gb" => Cell::Number(user_gb),
            (_, Some((drive, format))) => cell_of(drive, format, column),
            (_, None) => Cell::Unknown,
        };
        let mut facts: Vec<AtlasFact> =
            COLUMNS.into_iter().map(|(column, _, _)| fact(column, cell(column))).collect();
        if self.currency.is_none() {
            return facts;
        }
        let number = |value: Option<f64>| value.map_or(AtlasFact::Unknown, AtlasFact::Number);
        let known = |column: &str| match cell(column) {
            Cell::Number(number) => Some(number),
            Cell::Text(_) | Cell::Unknown => None,
        };
        let price = of.price.as_ref();
        let each = |amount: Option<f64>, of: fn(&Price, f64) -> Option<f64>| {
            number(price.zip(amount).and_then(|(price, amount)| of(price, amount)))
        };
        facts.push(number(price.map(|it| it.amount)));
        facts.push(price.map_or(AtlasFact::Unknown, |it| AtlasFact::Text(it.origin())));
        facts.push(each(known("user_gb"), Price::per_gb));
        facts.push(each(of.settled_write_iops, Price::per_thousand_iops));
        facts.push(each(known("endurance_pbw"), Price::per_tb_written));
        facts
    }
}

fn published_price(drive: &DriveSpec) -> Option<Price> {
    let (device, gb) = drive.published_as()?;
    published::price(device, gb)
}

/// A cell as a fact; a year is no quantity.
fn fact(column: &str, cell: Cell) -> AtlasFact {
    match cell {
        Cell::Unknown => AtlasFact::Unknown,
        Cell::Text(text) => AtlasFact::Text(text),
        Cell::Number(number) if column == "year" => AtlasFact::Text(format!("{number}")),
        Cell::Number(number) => AtlasFact::Number(number),
    }
}
