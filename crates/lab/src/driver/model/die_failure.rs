//! A die that failed under a load: what a reader of its figures must know.

use blockio::{Bytes, Nanos};
use results::{Warning, WarningKind};
use ssd::{Drive, FailedDie};

/// Warning where the die of `drive` that was to fail did so from `began` on, in the step named
/// `step`; times are told in protocol time.
pub(super) fn warning(drive: &Drive, step: &str, began: Nanos, time_lapse: u32) -> Option<Warning> {
    let FailedDie { die, failed_at, pages_lost, rebuilt_at } =
        drive.failed_die().filter(|failed| failed.failed_at >= began)?;
    let protocol = |span: Nanos| span * u64::from(time_lapse);
    let after = protocol(failed_at - began);
    let end = match (pages_lost, rebuilt_at) {
        (0, Some(rebuilt_at)) => {
            let took = protocol(rebuilt_at - failed_at);
            format!("its data was rebuilt from parity within {took}")
        }
        (0, None) => "its data was not all rebuilt from parity when the load ended".into(),
        (pages, _) => {
            let lost = Bytes(pages * 4096);
            format!("without parity, {lost} were lost, and reads of them fail")
        }
    };
    Some(Warning {
        kind: WarningKind::DieFailure,
        step: step.into(),
        text: format!("die {die} failed {after} into the load; {end}"),
        remedy: "leave out --fail-die for the figures of an intact drive".into(),
    })
}
