//! The drivers that there are, and what each subject is measured by.

use crate::Error;
use crate::driver::model::ModelKind;
use crate::driver::{DriverKind, Drivers};
use crate::plan::Plan;
use crate::real::access::Access;
use crate::real::fio::FioKind;
use crate::subject::Subject;
use crate::wanted::OrderedTarget;

/// Every kind of driver: the first that takes a subject measures it. A new one is a line here.
const KINDS: &[&dyn DriverKind] = &[&ModelKind, &FioKind];

impl Subject {
    fn kind(&self) -> &'static dyn DriverKind {
        let found = KINDS.iter().find(|kind| kind.takes(self));
        *found.expect("tested: models and real targets are taken")
    }

    /// `plan` as it is carried out on `wanted`, a setup of this drive: every step, in order. See
    /// [`Plan::for_drive`] and [`Plan::for_real`].
    pub fn plan(&self, plan: Plan, wanted: &OrderedTarget) -> Plan {
        self.kind().plan(plan, self, wanted)
    }

    /// The drivers of one setup, one for each suite. A real target is taken hold of here, once: a
    /// file that is made for the first suite needs no leave to be destroyed by the second.
    ///
    /// # Errors
    /// Fails if the setup does not fit, or the guard refuses the target.
    pub fn drivers<'a>(
        &'a self,
        wanted: &'a OrderedTarget,
        seed: u64,
        access: &Access,
    ) -> Result<Box<Drivers<'a>>, Error> {
        self.kind().open(self, wanted, seed, access)
    }

    /// True if its suites may run at the same time.
    pub fn runs_in_parallel(&self) -> bool {
        self.kind().runs_in_parallel()
    }
}

#[cfg(test)]
mod tests {
    use ssd::Surroundings;
    use tempfile::TempDir;

    use super::*;
    use crate::Kind;
    use crate::driver::{contract, mock};
    use crate::subject::Choice;

    #[test]
    fn every_driver_keeps_the_contract() {
        contract::check("mock", mock::specimen().as_mut());
        for kind in KINDS {
            let folder = TempDir::new().unwrap();
            if let Some(mut driver) = kind.specimen(folder.path()) {
                contract::check(kind.name(), driver.as_mut());
            }
        }
    }

    #[test]
    fn models_and_real_targets_have_a_driver() {
        for (name, driver, parallel) in [
            ("iodrive-duo", "model", true),
            ("./disk.img", "fio", false),
            ("nbd+unix:///?socket=/run/it.sock", "fio", false),
        ] {
            let subject = Subject::find(name).unwrap();
            assert_eq!((subject.kind().name(), subject.runs_in_parallel()), (driver, parallel));
        }
    }

    #[test]
    fn a_drive_that_takes_no_heat_from_its_surroundings_is_refused_in_others() {
        let surroundings = Surroundings { ambient_c: Some(45), ..Surroundings::default() };
        let choice = Choice { surroundings, ..Choice::default() };
        let subject = Subject::find("p5510").unwrap();
        let wanted = subject.setups(&choice).unwrap().remove(0);
        let error = subject.drivers(&wanted, 1, &Access::default()).err().unwrap();
        assert_eq!(error.kind(), Kind::Input);
        let duo = Subject::find("iodrive-duo").unwrap();
        let wanted = duo.setups(&choice).unwrap().remove(0);
        assert!(duo.drivers(&wanted, 1, &Access::default()).is_ok());
    }
}
