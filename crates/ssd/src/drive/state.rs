//! State of a drive apart from its timing: what is mapped where.
//!
//! Where data lies depends on the flash translation layer and on what was written, hardly on time.
//! So a drive can be brought into its settled state once, without time passing, and that state can
//! be put behind any timing: a search tries thousands of them.
//!
//! Two things do depend on timing, and are left to the first moments under load: how much room
//! relocation in the background has made, and what is in the buffer.

use blockio::Lba;
use ftl::{Config, Watermarks};

use super::{Drive, Setup};
use crate::module::Extent;
use crate::spec::{DriveSpec, ModulesSpec, SpecError};

/// Everything that decides where data is put. Drives with equal placement can take over each
/// other's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    devices: u32,
    modules: ModulesSpec,
    /// None where media is written in place: an address is a place.
    config: Option<Config>,
}

impl Placement {
    /// Returns the placement of `spec` set up as `setup` says.
    ///
    /// # Errors
    /// Names the format or time lapse that the drive does not have; refuses a drive made of two.
    pub fn new(spec: &DriveSpec, setup: &Setup) -> Result<Self, SpecError> {
        if spec.tier.is_some() {
            let text = "has tier: where its data lies is the state of two drives, which no other \
                        drive takes over";
            return Err(SpecError { place: spec.name.clone(), text: text.to_owned() });
        }
        let config = spec.nand_config(&setup.format, setup.time_lapse)?;
        let config = config.as_ref().map(placing);
        Ok(Self { devices: spec.device_count(), modules: spec.modules.clone(), config })
    }

    /// Mapping units of all modules, those to spare included; none where media is written in place.
    pub fn pages(&self) -> Option<u64> {
        let modules = u64::from(self.devices * self.modules.count);
        self.config.map(|config| config.geometry.pages() * modules)
    }
}

/// `config` without what only says when garbage collection works.
fn placing(config: &Config) -> Config {
    let watermarks = Watermarks { burst: 1.0, price_max: 0.0, batch_pages: 1, ..config.watermarks };
    Config { watermarks, seed: 0, ..*config }
}

impl Drive {
    /// An idle drive of `spec` that holds what this one holds.
    ///
    /// # Errors
    /// Fails if `spec` puts data elsewhere (see [`Placement`]), or does not have the setup.
    pub fn retimed(&self, spec: &DriveSpec, setup: &Setup) -> Result<Self, SpecError> {
        let config = spec.nand_config(&setup.format, setup.time_lapse)?;
        let count = (spec.device_count() * spec.modules.count) as usize;
        let same = self.classes.is_none()
            && spec.tier.is_none()
            && self.modules.len() + self.in_place.len() + self.disks.len() == count
            && self.modules.is_empty() == config.is_none()
            && self.disks.is_empty() == spec.disk.is_none()
            && self.modules.iter().all(|held| {
                config.is_some_and(|config| placing(held.ftl.config()) == placing(&config))
            });
        if !same {
            let text = "places data otherwise than the drive whose state it is to take".to_owned();
            return Err(SpecError { place: spec.name.clone(), text });
        }
        let modules = config.into_iter().flat_map(|config| {
            self.modules.iter().map(move |held| {
                let mut ftl = held.ftl.clone();
                ftl.set_watermarks(config.watermarks);
                Ok(ftl)
            })
        });
        Self::around(spec, setup, modules)
    }

    /// Writes `sectors` from `lba` on through placement handle 0, in no time: only what is mapped
    /// changes. Nothing may be outstanding.
    ///
    /// Returns false, and writes nothing, where a drive that offers more than it holds has no flash
    /// left for it, or one takes no writes any more.
    pub fn age(&mut self, lba: Lba, sectors: u32) -> bool {
        self.age_through(0, lba, sectors)
    }

    /// As [`Drive::age`], through a placement handle.
    pub fn age_through(&mut self, handle: u8, lba: Lba, sectors: u32) -> bool {
        if let Some(classes) = &mut self.classes {
            return classes.age(lba, sectors);
        }
        if self.modules.is_empty() {
            return true;
        }
        if let Some(climate) = &mut self.climate {
            climate.leave_out_next();
        }
        let extent = Extent { first: lba.0, sectors, handle };
        if self.is_read_only || self.can_run_out && !self.has_space_for(extent) {
            return false;
        }
        let modules = &mut self.modules;
        self.stripe.split(extent, |module, extent| modules[module].age(extent));
        true
    }
}
