//! Cost of the drive on its host: memory of the map, and processors that are busy.

use std::fmt::Write as _;

use results::compare::Comparison;

use crate::chart::Look;
use crate::number;
use crate::subject::Subject;
use crate::text::Text;

/// The table: for each run the memory of the map, and processors busy with each of `loads`; empty
/// where no run tells of either.
pub(super) fn part(subjects: &[Subject<'_>], loads: &[&Comparison]) -> String {
    let processors = |load: &Comparison, index: usize| {
        load.entries.get(index)?.as_ref()?.summary.host_processors()
    };
    let is_told =
        |load: &&&Comparison| (0..subjects.len()).any(|index| processors(load, index).is_some());
    let loads: Vec<&&Comparison> = loads.iter().filter(is_told).collect();
    let maps = || subjects.iter().map(|subject| subject.run.target.host_map_bytes);
    if loads.is_empty() && maps().all(|map| map.is_none()) {
        return String::new();
    }
    let mut html = String::from(
        "<h3>Cost on the host</h3><div class=\"scroll\"><table class=\"host-cost\"><thead><tr>\
         <th scope=\"col\">Run</th><th scope=\"col\">Memory of the map</th>",
    );
    for load in &loads {
        let (threads, queue) = (load.threads, load.queue_per_thread);
        let _ = write!(
            html,
            "<th scope=\"col\">Processors, {} T{threads}Q{queue}</th>",
            Text(&load.workload)
        );
    }
    html.push_str("</tr></thead><tbody>");
    for ((index, subject), map) in subjects.iter().enumerate().zip(maps()) {
        let map = map.map_or_else(|| "–".to_owned(), |it| number::whole(it as f64 / 1e6) + " MB");
        let _ = write!(
            html,
            "<tr><th scope=\"row\" class=\"t{}\"><i class=\"key\"></i>{}</th><td>{map}</td>",
            Look::of_run(subject.index).tone,
            Text(&subject.label),
        );
        for load in &loads {
            let busy = processors(load, index).map_or("–".into(), number::plain);
            let _ = write!(html, "<td>{busy}</td>");
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div><p class=\"small\">Processors is the number of host processors \
            that the requests keep busy: processor time per request × IOPS. For models it is that \
            of the driver, and of the flash translation layer if that runs on the host, where its \
            map then takes memory; for real drives it is the time of fio in user space and in the \
            kernel.</p>"
}

#[cfg(test)]
mod tests {
    use crate::example::{STOCK, run};
    use crate::review;

    #[test]
    fn what_a_drive_costs_its_host_is_told_where_it_is_known() {
        let plain = review(&[run(STOCK)], "Plain");
        assert!(!plain.contains("Cost on the host") && !plain.contains("Host CPU"));
        let mut costly = run(STOCK);
        costly.target.host_map_bytes = Some(1_258_000_000);
        for step in &mut costly.steps {
            step.summary.iter_mut().for_each(|it| it.host_processor_us = Some(12.5));
        }
        let page = review(&[costly, run(STOCK)], "Costly");
        assert!(page.contains("Cost on the host") && page.contains("<td>1,258 MB</td>"));
        assert!(page.contains("<th scope=\"col\">Host CPU</th>") && page.contains("<td>12.5</td>"));
    }
}
