//! Figures of each device, where several real ones were measured as one target.

use std::fmt::Write as _;

use results::{DeviceFigures, Step, StepKind};

use crate::chart::Look;
use crate::number;
use crate::subject::{Subject, workload_of};
use crate::text::Text;

/// The tables, one for each run of several devices: its preconditionings, and each workload at its
/// greatest load; empty without any.
pub(super) fn part(subjects: &[Subject<'_>]) -> String {
    subjects.iter().map(of_run).collect()
}

fn of_run(subject: &Subject<'_>) -> String {
    let steps = shown(subject.run.steps.iter().filter(|step| !step.devices.is_empty()));
    if steps.is_empty() {
        return String::new();
    }
    let tone = Look::of_run(subject.index).tone;
    let mut html = format!(
        "<h3>Each device of <span class=\"t{tone}\"><i class=\"key\"></i>{}</span></h3>\
         <div class=\"scroll\"><table class=\"summary\"><thead><tr><th scope=\"col\">Device</th>",
        Text(&subject.label),
    );
    for head in ["IOPS", "MB/s", "Average", "p99.9", "Maximum"] {
        let _ = write!(html, "<th scope=\"col\">{head}</th>");
    }
    html.push_str("</tr></thead>");
    for step in steps {
        let whole =
            if step.kind == StepKind::Precondition { ", whole preconditioning" } else { "" };
        let _ = write!(
            html,
            "<tbody><tr class=\"load\"><th scope=\"rowgroup\" colspan=\"6\">{}{whole} \
             <span>T{}Q{} each</span></th></tr>",
            Text(&workload_of(subject.run, &step.suite, &step.workload)),
            step.threads,
            step.queue_per_thread,
        );
        for device in &step.devices {
            html.push_str(&row(device));
        }
        html.push_str("</tbody>");
    }
    html + "</table></div><p class=\"small\">Latencies in ms. Rates of the target are the sums of \
            its devices, its latencies those of the requests of all devices.</p>"
}

/// Preconditionings, and of each workload of each suite the measurement with most outstanding.
fn shown<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<&'a Step> {
    let mut shown: Vec<&Step> = Vec::new();
    for step in steps.filter(|step| step.kind == StepKind::Precondition || step.is_primary()) {
        let same = |other: &&mut &Step| {
            (other.kind, &other.suite, &other.workload) == (step.kind, &step.suite, &step.workload)
        };
        match shown.iter_mut().find(same) {
            Some(other) if other.outstanding() < step.outstanding() => *other = step,
            Some(_) => {}
            None => shown.push(step),
        }
    }
    shown
}

fn row(device: &DeviceFigures) -> String {
    let summary = &device.summary;
    let latency = &summary.latency;
    let cells = [
        number::whole(summary.iops),
        number::whole(summary.throughput_mb_s()),
        number::plain_ns(latency.mean_ns()),
        number::plain_millis(latency.p999_ns()),
        number::plain_millis(latency.max_ns()),
    ];
    let name = Text(&device.name);
    format!("<tr><th scope=\"row\">{name}</th><td>{}</td></tr>", cells.join("</td><td>"))
}

#[cfg(test)]
mod tests {
    use results::DeviceFigures;

    use crate::example::{STOCK, run};
    use crate::review;

    #[test]
    fn devices_of_a_group_are_told_apart() {
        let mut of_two = run(STOCK);
        of_two.target.devices = 2;
        for step in &mut of_two.steps {
            let Some(summary) = step.summary.clone() else { continue };
            step.devices = ["/dev/nvme1n1", "/dev/nvme2n1"]
                .map(|name| DeviceFigures { name: name.into(), summary: summary.clone() })
                .to_vec();
        }
        let page = review(&[of_two], "Two");
        // Four preconditionings; writes and reads of 4K, three workloads at their greatest load.
        assert_eq!(page.matches("<th scope=\"row\">/dev/nvme2n1</th>").count(), 4 + 5);
        assert!(page.contains("<span>T16Q16 each</span>"));
        assert!(!review(&[run(STOCK)], "One").contains("Each device of"));
    }
}
