//! The drivers that measure a subject: a model, or fio.

use lab::Error;
use lab::driver::{Drivers, model};
use lab::subject::Subject;
use lab::target::access::Access;
use lab::target::address::Address;
use lab::wanted::TargetSetup;

use crate::fio::Fio;

/// Makes the drivers of one setup, one for each suite. A real target is taken hold of here, once: a
/// file that is made for the first suite needs no leave to be destroyed by the second.
///
/// # Errors
/// Fails if the setup does not fit, or the guard refuses the target.
pub fn drivers<'a>(
    subject: &Subject,
    wanted: &'a TargetSetup,
    seed: u64,
    access: &Access,
) -> Result<Box<Drivers<'a>>, Error> {
    match subject {
        Subject::Model { spec, .. } if wanted.is_model() => model::drivers(spec, wanted, seed),
        Subject::Real { .. } if !wanted.is_model() => {
            let fio = Fio::open(&Address::parse(&wanted.target, &wanted.host)?, access)?;
            Ok(Box::new(move || Ok(Box::new(fio.clone()))))
        }
        _ => Err(wanted.mismatch()),
    }
}

#[cfg(test)]
mod tests {
    use blockio::Bytes;
    use lab::Kind;
    use lab::driver::{Driver, contract, mock};
    use lab::subject::Choice;
    use ssd::Surroundings;
    use tempfile::TempDir;

    use super::*;
    use crate::fio::conformance::is_missing;

    fn driver_of(name: &str, access: &Access) -> Box<dyn Driver> {
        let subject = Subject::find(name).unwrap();
        let wanted = subject.setups(&Choice::default()).unwrap().remove(0);
        drivers(&subject, &wanted, 1, access).unwrap()().unwrap()
    }

    #[test]
    fn every_driver_keeps_the_contract() {
        contract::check("mock", mock::specimen().as_mut());
        contract::check("model", driver_of("iodrive-duo", &Access::default()).as_mut());
        if is_missing() {
            return;
        }
        let folder = TempDir::new().unwrap();
        let (size, raw) = (Some(Bytes(16 << 20)), folder.path().join("raw"));
        let access = Access { size, raw, ..Access::default() };
        let path = folder.path().join("disk.img");
        contract::check("fio", driver_of(&path.display().to_string(), &access).as_mut());
    }

    #[test]
    fn a_drive_that_takes_no_heat_from_its_surroundings_is_refused_in_others() {
        let surroundings = Surroundings { ambient_c: Some(45), ..Surroundings::default() };
        let choice = Choice { surroundings, ..Choice::default() };
        let subject = Subject::find("p5510").unwrap();
        let wanted = subject.setups(&choice).unwrap().remove(0);
        let error = drivers(&subject, &wanted, 1, &Access::default()).err().unwrap();
        assert_eq!(error.kind(), Kind::Input);
        let duo = Subject::find("iodrive-duo").unwrap();
        let wanted = duo.setups(&choice).unwrap().remove(0);
        assert!(drivers(&duo, &wanted, 1, &Access::default()).is_ok());
    }
}
