//! Failure of a die of a drive that is at work, at the time that was asked for.

use blockio::Nanos;
use ftl::DieId;

use super::Drive;
use crate::die_failure::{DieFailure, FailedDie};
use crate::spec::SpecError;

impl Drive {
    /// Lets time begin for what is to happen under load, if it has not begun since the purge.
    pub fn begin_loads(&mut self, at: Nanos) {
        for module in &mut self.modules {
            if let Some(retry) = &mut module.backend.retry {
                retry.rest(at, &module.ftl);
            }
        }
        if let Some(failure) = self.die_failure
            && self.die_fails_at == Nanos::MAX
        {
            let after_ns =
                u128::from(failure.after_s) * 1_000_000_000 / u128::from(self.time_lapse);
            self.die_fails_at = at + Nanos(u64::try_from(after_ns).unwrap_or(u64::MAX / 2));
            self.look_at = self.look_at.min(self.die_fails_at);
        }
    }

    /// The die that has failed, if any.
    pub const fn failed_die(&self) -> Option<FailedDie> {
        self.failed_die
    }

    /// The die fails that was to.
    #[cold]
    pub(super) fn fail_die(&mut self, at: Nanos) {
        self.die_fails_at = Nanos::MAX;
        let Some(DieFailure { die, .. }) = self.die_failure.take() else { return };
        let Some((module, within)) = self.die_of_module(die) else { return };
        let failed = self.modules[module].fail_die(at, within, &mut self.events);
        let pages_lost = failed.expect("checked when the drive was made");
        let is_whole = !self.modules[module].ftl.is_rebuilding();
        let rebuilt_at = (is_whole && pages_lost == 0).then_some(at);
        self.failed_die = Some(FailedDie { die, failed_at: at, pages_lost, rebuilt_at });
    }

    /// Module of a die that is counted over all modules, and the die there.
    fn die_of_module(&self, die: u32) -> Option<(usize, DieId)> {
        let dies = self.modules.first()?.ftl.config().geometry.dies();
        let module = (die / dies) as usize;
        (module < self.modules.len()).then_some((module, DieId(die % dies)))
    }

    /// Notes the time at which nothing is left to be rebuilt.
    pub(super) fn note_rebuilt(&mut self, at: Nanos) {
        let is_rebuilding = self.modules.iter().any(|module| module.ftl.is_rebuilding());
        if let Some(failed) = &mut self.failed_die
            && failed.pages_lost == 0
            && !is_rebuilding
        {
            failed.rebuilt_at.get_or_insert(at);
        }
    }

    /// Checks that the drive has the die that is to fail, and can do without it.
    pub(super) fn check_die_failure(&self, name: &str) -> Result<(), SpecError> {
        let Some(DieFailure { die, .. }) = self.die_failure else { return Ok(()) };
        let fault = |text| SpecError { place: name.to_owned(), text };
        if self.modules.is_empty() {
            return Err(fault(format!("there is no die {die} to fail: the drive has no dies")));
        }
        let Some((module, within)) = self.die_of_module(die) else {
            let dies = self.modules.iter().map(|module| module.ftl.config().geometry.dies());
            let dies: u32 = dies.sum();
            return Err(fault(format!(
                "there is no die {die} to fail: the drive has dies 0 to {}",
                dies.saturating_sub(1)
            )));
        };
        self.modules[module]
            .ftl
            .config()
            .check_without(within)
            .map_err(|error| fault(format!("without die {die} it becomes read-only: {error}")))
    }
}
