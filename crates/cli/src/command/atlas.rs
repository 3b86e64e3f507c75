//! `floatgate atlas`: pages of all drives, which work offline.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use lab::results::Run;
use lab::results::baseline;
use lab::results::headlines::settled_write_iops;
use lab::results::price::Price;
use lab::results::published;
use lab::runs::{Runs, write_text};
use lab::ssd::{DriveSpec, catalogue};
use lab::{Error, Kind};
use report::{AtlasColumn, AtlasFact, AtlasModel, AtlasRun};

use crate::args::Atlas;
use crate::drive_query::{Cell, cell_of};
use crate::{Ending, output, setup};

/// Folder of the reviews within that of the pages.
const REVIEWS: &str = "reviews";

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
    setup::check_output(&args.out, args.overwrite)?;
    let reviews = reviews(args)?;
    let drives = catalogue::drives();
    let prices = Prices::new(&args.prices, &drives, &reviews)?;
    let folder = args.out.join(REVIEWS);
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let (mut runs, mut of_runs) = (Vec::new(), Vec::new());
    for Review { runs: reviewed, .. } in reviews {
        let name = format!("{}.html", reviewed[0].id);
        let title = &reviewed[0].target.title;
        write_text(&folder.join(&name), &report::brief(&reviewed, title))?;
        for run in &reviewed {
            let page = format!("{REVIEWS}/{name}");
            of_runs.push(AtlasRun { page, facts: prices.facts_of_run(run, &drives) });
        }
        runs.extend(reviewed);
    }
    let models = if args.runs_only { Vec::new() } else { prices.models(&runs, &drives) };
    let atlas = report::Atlas { runs: &runs, of_runs, models, columns: prices.columns() };
    let index = args.out.join("index.html");
    write_text(&index, &report::atlas(&atlas))?;
    output::data(&index.display().to_string())?;
    Ok(Ending::Done)
}

/// The runs by the page that shows them, in the order in which they were made.
fn reviews(args: &Atlas) -> Result<Vec<Review>> {
    let runs = Runs::new(&args.dir);
    let is_asked = !args.runs.is_empty();
    let names = if is_asked {
        args.runs.clone()
    } else {
        let finished = runs.listed().into_iter().filter(|it| it.planned > 0 && it.is_complete());
        finished.map(|it| it.name).collect()
    };
    let mut reviews: Vec<Review> = Vec::new();
    for name in names {
        let path = runs.find(&name)?;
        let run = match runs.load(&name) {
            Ok(run) => run,
            // Sweeps, for one, are no runs; what was asked for by name is.
            Err(error) if is_asked => return Err(error.into()),
            Err(_) => continue,
        };
        let known_by = runs.page_of(&path).unwrap_or(path);
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

/// Prices of drives by name, all in one currency.
struct Prices {
    of_drives: Vec<(String, Price)>,
    /// Absent without any price.
    currency: Option<String>,
}

impl Prices {
    /// Prices that are `given`, and published ones of other drives.
    ///
    /// # Errors
    /// Fails if a price is of no drive of the atlas, or currencies differ.
    fn new(given: &[(String, Price)], drives: &[DriveSpec], reviews: &[Review]) -> Result<Self> {
        let is_known = |name: &str| {
            let mut runs = reviews.iter().flat_map(|review| &review.runs);
            drives.iter().any(|drive| drive.name == name) || runs.any(|run| run.target.name == name)
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| !is_known(name)) {
            let text = format!("--price {name}: neither the catalogue nor a run has this drive");
            return Err(Error::new(Kind::Input, text).hint("`floatgate drives` lists them").into());
        }
        let of_published = drives.iter().filter_map(|drive| {
            let (device, gb) = drive.published_as()?;
            Some((drive.name.clone(), published::price(device, gb)?))
        });
        let currency = given.first().map(|(_, price)| price.currency.clone());
        if let Some((name, price)) =
            given.iter().find(|(_, price)| Some(&price.currency) != currency.as_ref())
        {
            let text = format!(
                "--price {name}: {} is not {}, the currency of the first price",
                price.currency,
                currency.as_deref().unwrap_or_default()
            );
            return Err(Error::new(Kind::Input, text).hint("state all in one currency").into());
        }
        let currency = currency.unwrap_or_else(|| "USD".to_owned());
        let of_published = of_published.filter(|(_, price)| price.currency == currency);
        let of_drives: Vec<_> = given.iter().cloned().chain(of_published).collect();
        let currency = (!of_drives.is_empty()).then_some(currency);
        Ok(Self { of_drives, currency })
    }

    fn columns(&self) -> Vec<AtlasColumn> {
        let column = |name: &str, unit: &str| AtlasColumn { name: name.into(), unit: unit.into() };
        let mut columns: Vec<AtlasColumn> =
            COLUMNS.into_iter().map(|(_, name, unit)| column(name, unit)).collect();
        if let Some(currency) = &self.currency {
            columns.push(column("Price", currency));
            columns.push(column("Date of the price", ""));
            columns.push(column("Price", &format!("{currency}/GB")));
            columns.push(column("Price", &format!("{currency} per 1,000 4K writes/s")));
            columns.push(column("Price", &format!("{currency}/TB written")));
        }
        columns
    }

    fn facts_of_run(&self, run: &Run, drives: &[DriveSpec]) -> Vec<AtlasFact> {
        let is_its =
            |drive: &&DriveSpec| run.target.kind.is_model() && drive.name == run.target.name;
        let drive = drives.iter().find(is_its);
        let user_gb = run.target.user_capacity_all_bytes() as f64 / 1e9;
        let user_gb = (user_gb > 0.0).then_some(user_gb);
        let writes = settled_write_iops(run);
        self.facts(&run.target.name, drive, user_gb, writes)
    }

    fn models(&self, runs: &[Run], drives: &[DriveSpec]) -> Vec<AtlasModel> {
        let has_run = |drive: &DriveSpec| {
            runs.iter().any(|run| run.target.kind.is_model() && run.target.name == drive.name)
        };
        let of = |drive: &DriveSpec| {
            let row = baseline::rows().iter().find(|it| it.drive == drive.name);
            let facts = self.facts(&drive.name, Some(drive), None, row.map(|it| it.write_iops));
            AtlasModel {
                title: drive.title.clone(),
                unvalidated: !drive.is_validated(),
                row: row.cloned(),
                facts,
            }
        };
        drives.iter().filter(|drive| !has_run(drive)).map(of).collect()
    }

    /// One value for each column; `user_gb` where the drive's file does not tell it.
    fn facts(
        &self,
        name: &str,
        drive: Option<&DriveSpec>,
        user_gb: Option<f64>,
        write_iops: Option<f64>,
    ) -> Vec<AtlasFact> {
        let cell = |column: &str| match drive.map_or(Cell::Unknown, |it| cell_of(it, column)) {
            Cell::Unknown if column == "user_gb" => user_gb.map_or(Cell::Unknown, Cell::Number),
            cell => cell,
        };
        let mut facts: Vec<AtlasFact> =
            COLUMNS.into_iter().map(|(column, _, _)| fact(column, cell(column))).collect();
        if self.currency.is_none() {
            return facts;
        }
        let price = self.of_drives.iter().find(|(of, _)| of == name).map(|(_, price)| price);
        let number = |value: Option<f64>| value.map_or(AtlasFact::Unknown, AtlasFact::Number);
        let known = |column: &str| match cell(column) {
            Cell::Number(number) => Some(number),
            Cell::Text(_) | Cell::Unknown => None,
        };
        facts.push(number(price.map(|it| it.amount)));
        facts.push(price.map_or(AtlasFact::Unknown, |it| AtlasFact::Text(it.date.clone())));
        facts.push(number(price.zip(known("user_gb")).and_then(|(it, gb)| it.per_gb(gb))));
        let per_iops = price.zip(write_iops).and_then(|(it, iops)| it.per_thousand_iops(iops));
        facts.push(number(per_iops));
        let written = price.zip(known("endurance_pbw"));
        facts.push(number(written.and_then(|(it, pb)| it.per_tb_written(pb))));
        facts
    }
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
