//! Errors of the ublk driver, with what helps.

use export::UblkError;
use lab::{Error, Kind};

/// The failure of what was attempted with the driver.
pub(crate) fn failed(attempted: &str, error: UblkError) -> anyhow::Error {
    let hint = error.remedy().unwrap_or_default();
    Error::new(Kind::Input, attempted).hint(hint).source(error).into()
}
