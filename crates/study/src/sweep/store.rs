//! The folder of a sweep.
//!
//! ```text
//! runs/2026-11-21T101503Z-iodrive-duo-sweep/
//! ├── order.json         what was asked, enough to go on after an interruption
//! ├── points/007.json    one finished point each
//! ├── sweep.json         the result (schema `results::sweep`)
//! ├── sweep.csv          the same as a table
//! └── sweep.html         the same as a page
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use lab::runs::{Runs, SWEEP_POINTS, SWEEP_RESULT, read_json, write_json, write_text};
use lab::{Error, Kind};
use results::sweep::{Point, Sweep};

use super::SweepOrder;

const ORDER: &str = "order.json";
const TABLE: &str = "sweep.csv";
const PAGE: &str = "sweep.html";

/// The folder of one sweep that is under way.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    order: SweepOrder,
}

impl Store {
    /// Makes the folder of a new sweep in `root`.
    ///
    /// # Errors
    /// Fails if it cannot be made.
    pub fn create(root: &Path, order: SweepOrder) -> Result<Self, Error> {
        let slug = format!("{}-sweep", order.name());
        let (path, id, started_at) = Runs::new(root).make_folder(&slug)?;
        let store = Self { path, order: SweepOrder { id, started_at, ..order } };
        write_json(&store.path.join(ORDER), &store.order)?;
        Ok(store)
    }

    /// Opens the folder of a sweep, a path or a name in `root`, to go on with it.
    ///
    /// # Errors
    /// Fails if there is none, or this program cannot go on with it.
    pub fn open(root: &Path, asked: &str) -> Result<Self, Error> {
        let path = [PathBuf::from(asked), root.join(asked)].into_iter().find(|it| it.is_dir());
        let Some(path) = path else {
            let text = format!("no sweep `{asked}` in {}", root.display());
            return Err(Error::new(Kind::Input, text).hint("name the folder of the sweep"));
        };
        if lab::runs::is_order_of_run(&path) {
            let text = format!("resuming {}: it is a run, not a sweep", path.display());
            let hint = format!("`floatgate review --resume {}` continues it", path.display());
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
        let order: SweepOrder = read_json(&path.join(ORDER))?;
        order.check_version(&path)?;
        Ok(Self { path, order })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Order of the sweep.
    pub const fn order(&self) -> &SweepOrder {
        &self.order
    }

    /// Points that are finished, by index in the grid.
    ///
    /// # Errors
    /// Fails if one of them cannot be understood.
    pub fn finished(&self) -> Result<Vec<(usize, Point)>, Error> {
        let count = super::dimension::grid(&self.order.dimensions)?.len();
        let written = (0..count).map(|index| (index, self.point_path(index)));
        let written = written.filter(|(_, path)| path.is_file());
        written.map(|(index, path)| Ok((index, read_json(&path)?))).collect()
    }

    /// Keeps the point numbered `index`.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn keep(&self, index: usize, point: &Point) -> Result<(), Error> {
        let folder = self.path.join(SWEEP_POINTS);
        fs::create_dir_all(&folder).map_err(|source| {
            Error::new(Kind::Io, format!("making {}", folder.display())).source(source)
        })?;
        write_json(&self.point_path(index), point)
    }

    /// Writes the result, its table and its page. Returns the path of the page.
    ///
    /// # Errors
    /// Fails if something cannot be written.
    pub fn finish(&self, sweep: &Sweep, html: &str) -> Result<PathBuf, Error> {
        write_json(&self.path.join(SWEEP_RESULT), sweep)?;
        write_text(&self.path.join(TABLE), &super::table::csv(sweep)?)?;
        let page = self.path.join(PAGE);
        write_text(&page, html)?;
        Ok(page)
    }

    fn point_path(&self, index: usize) -> PathBuf {
        self.path.join(SWEEP_POINTS).join(format!("{index:04}.json"))
    }
}

#[cfg(test)]
mod tests;
