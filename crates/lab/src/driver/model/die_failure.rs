//! Dies that failed under a load: the load in each state of the drive, and what a reader of its
//! figures must know.

use blockio::{Bytes, Nanos};
use results::{DieFailures, FailedDie, FailureState, Interval, Warning, WarningKind};
use ssd::Drive;

/// The dies of `drive` that failed in a load, or whose loss was not made good when it began: it was
/// counted from `began` on and `ended`, and `intervals` were measured of it. Times are told in
/// protocol time, those before it below zero. Absent without such a die.
pub(super) fn failures(
    drive: &Drive,
    (began, ended): (Nanos, Nanos),
    intervals: &[Interval],
) -> Option<DieFailures> {
    let time_lapse = u64::from(drive.time_lapse());
    let has_parity = drive.has_parity();
    let is_of_step = |failed: &&ssd::FailedDie| {
        let is_open = has_parity && failed.redundant_at.is_none_or(|at| at > began);
        failed.failed_at >= began || is_open || failed.is_read_only
    };
    let in_step = drive.failed_dies().iter().filter(is_of_step);
    let protocol_s =
        |at: Nanos| (at.as_secs_f64() - began.as_secs_f64()) * f64::from(drive.time_lapse());
    // What was outstanding at the end is awaited: a rebuild may go on in that time.
    let by_end = |at: Option<Nanos>| at.filter(|at| *at <= ended).map(protocol_s);
    let of = |failed: &ssd::FailedDie| FailedDie {
        die: failed.die,
        failed_s: protocol_s(failed.failed_at),
        rebuilt_s: by_end(failed.rebuilt_at),
        redundant_s: by_end(failed.redundant_at),
        lost_bytes: failed.pages_lost * 4096 * time_lapse,
        is_read_only: failed.is_read_only,
        spare_percent: failed.spare_share * 100.0,
    };
    let failed: Vec<FailedDie> = in_step.map(of).collect();
    (!failed.is_empty()).then(|| DieFailures::of(failed, has_parity, intervals))
}

/// One warning for each die that failed in the step named `step`.
pub(super) fn warnings(failures: &DieFailures, step: &str, time_lapse: u32) -> Vec<Warning> {
    let of = |failed: &FailedDie| Warning {
        kind: WarningKind::DieFailure,
        step: step.into(),
        text: sentence(failed, failures.has_parity, time_lapse) + &rates(failed, failures),
        remedy: "leave out --fail-die for the figures of an intact drive".into(),
    };
    failures.failed.iter().map(of).collect()
}

fn sentence(failed: &FailedDie, has_parity: bool, time_lapse: u32) -> String {
    let span = |from_s: f64, to_s: f64| Nanos::from_secs_f64(to_s - from_s).to_string();
    // Data is 1/k as much and buffers are not: they hold a larger share of it.
    let scale = if time_lapse > 1 {
        format!(" (at 1/{time_lapse} scale; the time of a rebuild depends on the scale)")
    } else {
        String::new()
    };
    let FailedDie { die, failed_s, rebuilt_s, redundant_s, lost_bytes, .. } = *failed;
    let lost = match Bytes(lost_bytes) {
        Bytes(0) => String::new(),
        lost => format!("{lost} could not be rebuilt and were lost, reads of them fail; "),
    };
    let spare = format!("spare space {:.1} %", failed.spare_percent);
    let end = match (rebuilt_s, redundant_s) {
        _ if failed.is_read_only => {
            "too little spare space to do without it: the drive takes no more writes".to_owned()
        }
        (Some(rebuilt_s), Some(redundant_s)) => format!(
            "its data was rebuilt from parity within {}, and redundancy was restored within \
             {}{scale}; {spare} left",
            span(failed_s, rebuilt_s),
            span(failed_s, redundant_s),
        ),
        (Some(rebuilt_s), None) => format!(
            "its data was rebuilt from parity within {}{scale}, and redundancy was not restored \
             when the load ended",
            span(failed_s, rebuilt_s),
        ),
        (None, _) if !has_parity => format!("{spare} left"),
        (None, _) => {
            format!("its data was not all rebuilt from parity when the load ended{scale}")
        }
    };
    let when = if failed_s < 0.0 {
        format!("had failed {} before the load", span(failed_s, 0.0))
    } else {
        format!("failed {} into the load", span(0.0, failed_s))
    };
    format!("die {die} {when}; {lost}{end}")
}

/// Rates of the load before the failure and until the next one, state by state.
fn rates(failed: &FailedDie, failures: &DieFailures) -> String {
    let later = failures.failed.iter().map(|it| it.failed_s).filter(|at| *at > failed.failed_s);
    let next_s = later.fold(f64::INFINITY, f64::min);
    let before = failures.phases.iter().rfind(|it| it.to_s <= failed.failed_s);
    let after = failures.phases.iter().filter(|it| {
        it.to_s > failed.failed_s && it.from_s < next_s && it.state != FailureState::Intact
    });
    let rate = |state: &str, iops: f64| format!("{iops:.0} IOPS {state}");
    let before = before.map(|it| rate("before", it.summary.iops));
    let after = after.map(|it| rate(it.state.clause(), it.summary.iops));
    let rates: Vec<String> = before.into_iter().chain(after).collect();
    if rates.is_empty() { String::new() } else { format!(": {}", rates.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(rebuilt_s: Option<f64>, redundant_s: Option<f64>) -> FailedDie {
        FailedDie {
            die: 3,
            failed_s: 1.0,
            rebuilt_s,
            redundant_s,
            lost_bytes: 0,
            is_read_only: false,
            spare_percent: 21.25,
        }
    }

    #[test]
    fn what_was_made_good_when_the_load_ended_is_told_with_its_time() {
        let text = |rebuilt_s, redundant_s, k| sentence(&failed(rebuilt_s, redundant_s), true, k);
        let within = "die 3 failed 1.00 s into the load; its data was rebuilt from parity within ";
        assert_eq!(
            text(Some(7.0), Some(61.0), 1),
            format!(
                "{within}6.00 s, and redundancy was restored within 1.00 min; spare space 21.2 % \
                 left"
            )
        );
        assert!(text(Some(13.0), Some(61.0), 2).contains("1.00 min (at 1/2 scale; the time"));
        let open = text(Some(7.0), None, 1);
        assert!(open.starts_with(within) && open.ends_with("not restored when the load ended"));
        assert!(
            text(None, None, 1).ends_with("was not all rebuilt from parity when the load ended")
        );
    }

    #[test]
    fn what_could_not_be_made_good_is_told() {
        let earlier = FailedDie { failed_s: -60.0, ..failed(Some(-30.0), None) };
        let text = sentence(&earlier, true, 1);
        assert!(text.starts_with("die 3 had failed 1.00 min before the load; its data"), "{text}");
        let lost = FailedDie { lost_bytes: 4096, ..failed(None, None) };
        let text = sentence(&lost, false, 1);
        assert!(
            text.contains("4 KiB could not be rebuilt") && text.ends_with("21.2 % left"),
            "{text}"
        );
        let last = FailedDie { is_read_only: true, ..failed(None, None) };
        assert!(sentence(&last, true, 1).ends_with("the drive takes no more writes"));
    }
}
