//! Failure of dies of a drive that is at work, at the times that were asked for.

use std::collections::BTreeSet;

use blockio::{Nanos, Status};
use ftl::{DieId, Redundancy};

use super::Drive;
use crate::die_failure::{DieFailure, FailedDie};
use crate::event::Lane;
use crate::spec::SpecError;

/// Failures that are to come, and those that have.
#[derive(Clone, Debug, Default)]
pub(super) struct DieFailures {
    /// In the order of their times.
    to_come: Vec<DieFailure>,
    /// Beginning of the first load since the purge; absent before.
    loads_began_at: Option<Nanos>,
    failed: Vec<FailedDie>,
    /// Logical pages that the failed dies had room for.
    pages_held: u64,
}

impl DieFailures {
    pub(super) fn new(failures: &[DieFailure]) -> Self {
        let mut to_come = failures.to_vec();
        to_come.sort_by_key(|failure| failure.after_s);
        Self { to_come, loads_began_at: None, failed: Vec::new(), pages_held: 0 }
    }

    /// True if the loss of a die may still have to be made good.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        !self.failed.is_empty()
    }

    /// True if a die has failed, or will.
    pub(super) fn is_any_known(&self) -> bool {
        !self.to_come.is_empty() || self.has_any()
    }

    /// Time of the next failure; the end of time while no load has begun, or none is to come.
    fn next_at(&self, time_lapse: u32) -> Nanos {
        let next = self.loads_began_at.zip(self.to_come.first());
        next.map_or(Nanos::MAX, |(began_at, failure)| {
            let after_ns = u128::from(failure.after_s) * 1_000_000_000 / u128::from(time_lapse);
            began_at + Nanos(u64::try_from(after_ns).unwrap_or(u64::MAX / 2))
        })
    }
}

impl Drive {
    /// Lets time begin for what is to happen under load, if it has not begun since the purge.
    pub fn begin_loads(&mut self, at: Nanos) {
        if let Some(classes) = &mut self.classes {
            classes.drives_mut().iter_mut().for_each(|class| class.begin_loads(at));
        }
        for module in &mut self.modules {
            if let Some(retry) = &mut module.backend.retry {
                retry.rest(at, &module.ftl);
            }
        }
        self.die_failures.loads_began_at.get_or_insert(at);
        self.die_fails_at = self.die_failures.next_at(self.time_lapse);
        self.look_at = self.look_at.min(self.die_fails_at);
    }

    /// Time of what is to happen under load begins anew with the next load.
    pub(super) fn forget_loads(&mut self) {
        (self.die_failures.loads_began_at, self.die_fails_at) = (None, Nanos::MAX);
    }

    /// Dies that have failed, in order.
    pub fn failed_dies(&self) -> &[FailedDie] {
        &self.die_failures.failed
    }

    /// True if its stripes of dies have parity, in every module.
    pub fn has_parity(&self) -> bool {
        self.modules.iter().all(|module| module.ftl.config().geometry.stripe_dies > 0)
    }

    /// The dies fail that were to by `at`.
    #[cold]
    pub(super) fn fail_dies(&mut self, at: Nanos) {
        while at >= self.die_fails_at {
            let DieFailure { die, .. } = self.die_failures.to_come.remove(0);
            self.die_fails_at = self.die_failures.next_at(self.time_lapse);
            self.fail_die(at, die);
        }
    }

    fn fail_die(&mut self, at: Nanos, die: u32) {
        let (index, within) = self.die_of_module(die).expect("checked when the drive was made");
        let failed = self.modules[index].fail_die(at, within, &mut self.events);
        let (loss, given_up) = failed.expect("checked when the drive was made");
        let is_read_only = self.is_read_only || !loss.is_writable;
        let module = self.modules[index].index;
        for slot in given_up {
            let flight = &mut self.in_flight[slot as usize];
            flight.status = Status::ReadOnly;
            flight.part_done(Lane::Acknowledged(module), slot, at, &mut self.events);
        }
        (self.is_read_only, self.may_refuse_writes) =
            (is_read_only, self.may_refuse_writes || is_read_only);
        self.die_failures.pages_held += loss.pages_held;
        let spare_share = self.spare_share();
        let (pages_lost, rebuilt_at, redundant_at) = (loss.pages_lost, None, None);
        self.die_failures.failed.push(FailedDie {
            die,
            failed_at: at,
            pages_lost,
            rebuilt_at,
            redundant_at,
            is_read_only: !loss.is_writable,
            spare_share,
        });
        self.note_rebuilt(at);
    }

    /// Flash for data beyond the user capacity, as a share of it, without the dies that are lost.
    fn spare_share(&self) -> f64 {
        let configs = || self.modules.iter().map(|module| module.ftl.config());
        let pages: u64 = configs().map(|it| it.geometry.pages()).sum();
        let user: u64 = configs().map(|it| u64::from(it.pages_stored_max)).sum();
        let lost = self.die_failures.pages_held;
        (pages as f64 - lost as f64) / user as f64 - 1.0
    }

    /// Module of a die that is counted over all modules, and the die there.
    fn die_of_module(&self, die: u32) -> Option<(usize, DieId)> {
        let dies = self.modules.first()?.ftl.config().geometry.dies();
        let module = (die / dies) as usize;
        (module < self.modules.len()).then_some((module, DieId(die % dies)))
    }

    /// Notes the times at which nothing is left to be rebuilt, and at which redundancy is back.
    pub(super) fn note_rebuilt(&mut self, at: Nanos) {
        let Some(first) = self.modules.first().filter(|_| self.has_parity()) else { return };
        let dies = first.ftl.config().geometry.dies();
        for failed in &mut self.die_failures.failed {
            let module = &self.modules[(failed.die / dies) as usize];
            match module.ftl.redundancy() {
                Redundancy::Rebuilding | Redundancy::Exhausted => {}
                Redundancy::Restoring => _ = failed.rebuilt_at.get_or_insert(at),
                Redundancy::Whole => {
                    failed.rebuilt_at.get_or_insert(at);
                    failed.redundant_at.get_or_insert(at);
                }
            }
            debug_assert!(failed.rebuilt_at <= Some(at), "it is rebuilt before it is redundant");
        }
    }

    /// Checks that the drive has the dies that are to fail, each once.
    pub(super) fn check_die_failures(&self, name: &str) -> Result<(), SpecError> {
        let fault = |text| Err(SpecError { place: name.to_owned(), text });
        let mut seen = BTreeSet::new();
        for &DieFailure { die, .. } in &self.die_failures.to_come {
            if self.modules.is_empty() {
                return fault(format!("there is no die {die} to fail: the drive has no dies"));
            }
            if self.die_of_module(die).is_none() {
                let dies = self.modules.iter().map(|module| module.ftl.config().geometry.dies());
                let last = dies.sum::<u32>().saturating_sub(1);
                return fault(format!(
                    "there is no die {die} to fail: the drive has dies 0 to {last}"
                ));
            }
            if !seen.insert(die) {
                return fault(format!("die {die} is to fail twice: name each die once"));
            }
        }
        Ok(())
    }
}
