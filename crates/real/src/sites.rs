//! Sites of one measurement: one target, or several devices of this machine that are one target.
//!
//! Loads go to every device alike, results are added. What is read of a device is read of each:
//! health, heat, counters, disturbances.
//!
//! Invariants:
//! - There is one site at least; several are devices or files of this machine, of one size.

use std::path::PathBuf;

use lab::Error;
use lab::target::system::{Block, System};
use results::{Environment, Warning};

use crate::environment::{Health, Limit, SensorReadings, Site};
use crate::target::Target;
use crate::tools::Tools;

/// Sites that are measured as one.
#[derive(Debug)]
pub(crate) struct Sites {
    /// Name that was given for all of them.
    name: String,
    all: Vec<Site>,
    /// Paths of the devices of a group; empty for one target.
    group: Vec<PathBuf>,
}

impl From<Site> for Sites {
    fn from(site: Site) -> Self {
        Self { name: site.name().to_owned(), all: vec![site], group: Vec::new() }
    }
}

impl Sites {
    /// The devices that were named together, `name`: two at least, of one size.
    pub(crate) fn of_group(name: &str, all: Vec<Site>) -> Self {
        assert!(all.len() > 1, "a group has several devices");
        let group = all.iter().map(|site| site.target().path().to_owned()).collect();
        Self { name: name.to_owned(), all, group }
    }

    /// Every site, in the order in which they were named.
    pub(crate) fn all(&self) -> &[Site] {
        &self.all
    }

    /// The first site, which tells what all have in common.
    pub(crate) fn first(&self) -> &Site {
        &self.all[0]
    }

    /// Number of devices of this machine that take the load, at least 1.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.all.len()).expect("a command line is shorter")
    }

    /// Paths of the devices of a group, as fio is given them; empty for one target.
    pub(crate) fn group(&self) -> &[PathBuf] {
        &self.group
    }

    /// The target of the first site.
    pub(crate) fn target(&self) -> &Target {
        self.first().target()
    }

    /// The machine.
    pub(crate) fn system(&self) -> &System {
        self.first().system()
    }

    /// Capacity of each in bytes.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.first().capacity_bytes()
    }

    /// The devices that are known, of all sites.
    pub(crate) fn devices(&self) -> Vec<Block> {
        self.all.iter().filter_map(|site| site.target().device().cloned()).collect()
    }

    /// SMART data of each drive; absent where it tells none.
    pub(crate) fn health(&self, tools: &Tools) -> Vec<Option<Health>> {
        self.all.iter().map(|site| site.health(tools)).collect()
    }

    /// From which temperature of any device on no load goes on.
    ///
    /// # Errors
    /// Fails if one was asked for, and no sensor tells how hot one of the drives is.
    pub(crate) fn temperature_limit(&self, asked: Option<i64>) -> Result<Limit, Error> {
        let limits = self.all.iter().map(|site| site.temperature_limit(asked));
        let limits = limits.collect::<Result<Vec<Limit>, _>>()?;
        let max_c = limits.iter().filter_map(|limit| limit.max_c).min();
        Ok(Limit { max_c, is_asked: asked.is_some() })
    }

    /// Temperature of the hottest drive, and mean power of those that tell it.
    pub(crate) fn sensed_under_load(&self, limit: Limit) -> SensorReadings {
        let all: Vec<SensorReadings> =
            self.all.iter().map(|site| site.sensed_under_load(limit)).collect();
        let powers: Vec<f64> = all.iter().filter_map(|sensed| sensed.power_w).collect();
        SensorReadings {
            temperature_c: all.iter().filter_map(|sensed| sensed.temperature_c).max(),
            power_w: (!powers.is_empty()).then(|| powers.iter().sum::<f64>() / powers.len() as f64),
        }
    }

    /// Checks that each is still there and as large as it was.
    ///
    /// # Errors
    /// Fails with the state of the first that is not.
    pub(crate) fn check_still(&self) -> Result<(), Error> {
        self.all.iter().try_for_each(|site| site.target().check_still(site.capacity_bytes()))
    }

    /// Checks that the file systems have room for files with holes.
    ///
    /// # Errors
    /// Fails if one has less.
    pub(crate) fn check_space(&self) -> Result<(), Error> {
        self.all.iter().try_for_each(|site| site.target().check_space(site.capacity_bytes()))
    }

    /// True if one of them is a file with holes below `end_bytes`.
    pub(crate) fn has_holes(&self, end_bytes: u64) -> bool {
        self.all.iter().any(|site| site.target().has_holes(end_bytes))
    }

    /// The target as the result names it: of a group, with the sheets of all devices.
    pub(crate) fn described(&self) -> results::Target {
        let mut first = self.first().described();
        if self.group.is_empty() {
            return first;
        }
        let all: Vec<results::Target> = self.all.iter().map(Site::described).collect();
        let mut titles: Vec<&str> = Vec::new();
        for target in &all {
            if !titles.contains(&target.title.as_str()) {
                titles.push(&target.title);
            }
        }
        first.title = match titles.as_slice() {
            [only] => format!("{} x {only}", all.len()),
            _ => titles.join(" and "),
        };
        first.sheet = all
            .iter()
            .flat_map(|target| {
                target.sheet.iter().map(|row| results::SheetRow {
                    group: format!("{} {}", row.group, target.name),
                    ..row.clone()
                })
            })
            .collect();
        results::Target { name: self.name.clone(), devices: self.count(), ..first }
    }

    /// The machine as the result describes it; `fio` is its version and engine.
    pub(crate) fn environment(&self, fio: &str) -> Environment {
        self.first().environment(fio)
    }

    /// Warnings for the whole run: those that all sites have once, the others with their device.
    pub(crate) fn warnings(&self, direct: bool) -> Vec<Warning> {
        let all: Vec<Vec<Warning>> = self.all.iter().map(|site| site.warnings(direct)).collect();
        let is_common = |warning: &Warning| all.iter().all(|warnings| warnings.contains(warning));
        let of_first = all[0].iter().filter(|warning| is_common(warning)).cloned();
        let of_each = self.all.iter().zip(&all).flat_map(|(site, warnings)| {
            let own = warnings.iter().filter(|warning| !is_common(warning));
            own.map(|warning| Warning {
                text: format!("{}: {}", site.name(), warning.text),
                ..warning.clone()
            })
        });
        of_first.chain(of_each).collect()
    }

    /// Name of the drive at `index` beside the others, such as ` (/dev/nvme1n1)`; empty for one.
    pub(crate) fn beside(&self, index: usize) -> String {
        let site = self.all.get(index).filter(|_| !self.group.is_empty());
        site.map_or_else(String::new, |site| format!(" ({})", site.name()))
    }
}

#[cfg(test)]
mod tests;
