//! A die that failed under a load: what a reader of its figures must know.

use blockio::{Bytes, Nanos};
use results::{Warning, WarningKind};
use ssd::{Drive, FailedDie};

/// Warning where the die of `drive` that was to fail did so from `began` on, in the step named
/// `step`, which `ended`; times are told in protocol time.
pub(super) fn warning(
    drive: &Drive,
    step: &str,
    (began, ended): (Nanos, Nanos),
    time_lapse: u32,
) -> Option<Warning> {
    let failed = drive.failed_die().filter(|failed| failed.failed_at >= began)?;
    Some(of(&failed, step, (began, ended), time_lapse))
}

fn of(failed: &FailedDie, step: &str, (began, ended): (Nanos, Nanos), time_lapse: u32) -> Warning {
    let FailedDie { die, failed_at, pages_lost, rebuilt_at } = *failed;
    let protocol = |span: Nanos| span * u64::from(time_lapse);
    let after = protocol(failed_at - began);
    // Data is 1/k as much and buffers are not: they hold a larger share of it.
    let scale = if time_lapse > 1 {
        format!(" (at 1/{time_lapse} scale; the time of a rebuild depends on the scale)")
    } else {
        String::new()
    };
    // What was outstanding at the end is awaited: a rebuild may go on in that time.
    let end = match (pages_lost, rebuilt_at.filter(|rebuilt_at| *rebuilt_at <= ended)) {
        (0, Some(rebuilt_at)) => {
            let took = protocol(rebuilt_at - failed_at);
            format!("its data was rebuilt from parity within {took}{scale}")
        }
        (0, None) => {
            format!("its data was not all rebuilt from parity when the load ended{scale}")
        }
        (pages, _) => {
            let lost = Bytes(pages * 4096 * u64::from(time_lapse));
            format!("without parity, {lost} were lost, and reads of them fail")
        }
    };
    Warning {
        kind: WarningKind::DieFailure,
        step: step.into(),
        text: format!("die {die} failed {after} into the load; {end}"),
        remedy: "leave out --fail-die for the figures of an intact drive".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebuild_that_goes_on_after_the_load_was_not_done_when_it_ended() {
        let failed = |rebuilt_at| FailedDie {
            die: 3,
            failed_at: Nanos(2_000_000_000),
            pages_lost: 0,
            rebuilt_at,
        };
        let (began, ended) = (Nanos(1_000_000_000), Nanos(9_000_000_000));
        let text = |rebuilt_s: u64, k| {
            of(&failed(Some(Nanos(rebuilt_s * 1_000_000_000))), "s", (began, ended), k).text
        };
        let within = "die 3 failed 1.00 s into the load; its data was rebuilt from parity within ";
        assert_eq!(text(8, 1), format!("{within}6.00 s"));
        assert!(text(8, 2).contains("within 12.0 s (at 1/2 scale; the time"), "{}", text(8, 2));
        assert!(text(10, 1).ends_with("was not all rebuilt from parity when the load ended"));
    }
}
