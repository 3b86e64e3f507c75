//! The verdict in three sentences: what the drive does, what it is for, what it is not for.
//!
//! The rules are those of [`results::suitability`]; of several drives it says who wins.

use results::Run;
use results::compare::{Winner, common, compare, rankings, winner};
use results::suitability::Suitability;

use crate::number::written_times;
use crate::number::{self, millis, short};
use crate::settled::settles;
use crate::subject::Subject;
use crate::text::listed;

/// The sentences about `subjects`, which are one drive or several.
pub(crate) fn sentences(subjects: &[Subject<'_>]) -> Vec<String> {
    let [first, others @ ..] = subjects else { return vec![settles(subjects)] };
    let it = Suitability::of(first.run);
    if it.write_iops.or(it.read_iops).or(it.mixed_iops).is_none() {
        return vec![settles(subjects)];
    }
    if others.is_empty() {
        return of_one(&it);
    }
    let is_one_drive = others.iter().all(|other| other.run.target.name == first.run.target.name);
    let mut said = vec![settles(subjects)];
    if !is_one_drive {
        said.push(winners(subjects));
    } else if it.is_settled {
        said.extend([is_for(&it, &first.label), is_not_for(&it, &first.label)]);
    }
    said
}

fn of_one(it: &Suitability) -> Vec<String> {
    if !it.is_settled {
        return vec![
            unsettled(it),
            "Good for a first look: these numbers do not show what the drive sustains under \
             lasting writes."
                .into(),
            "Not for a decision: precondition for longer, until the steady-state rule is met."
                .into(),
        ];
    }
    vec![format!("Once settled it does {}.", does(it)), is_for(it, "it"), is_not_for(it, "it")]
}

/// Its rates before it has settled: reads apart, which have nothing to settle.
fn unsettled(it: &Suitability) -> String {
    let reads = it.read_iops.map(|iops| format!("{} random reads of 4K a second", short(iops)));
    let writing = Suitability { read_iops: None, ..*it };
    if it.write_iops.or(it.mixed_iops).is_none() {
        return format!("It does {}.", reads.unwrap_or_default());
    }
    let after = it.written.map_or_else(String::new, |it| format!(" after {}", written_times(&it)));
    let reads = reads.map_or_else(String::new, |reads| format!(" It does {reads}."));
    format!("Not settled: {}{after}.{reads}", does(&writing))
}

/// Its rates and the tail of its writes.
fn does(it: &Suitability) -> String {
    let rates = [
        (it.write_iops, "random writes of 4K"),
        (it.read_iops, "random reads of 4K"),
        (it.mixed_iops, "requests of 8K 70/30"),
    ];
    let rates: Vec<String> = rates
        .into_iter()
        .filter_map(|(iops, what)| Some(format!("{} {what}", short(iops?))))
        .collect();
    let tail = it.write_latency_ns_p999.filter(|tail| *tail > 0.0).map(|tail| {
        format!("; 99.9 % of the writes are answered within {} ms", number::trimmed(millis(tail)))
    });
    format!("{} a second{}", listed(&rates), tail.unwrap_or_default())
}

/// Returns a sentence on the use that a drive is suited for; `who` names the drive.
fn is_for(it: &Suitability, who: &str) -> String {
    let place = it.write_place.map_or(String::new(), |(place, of)| {
        format!(", number {place} of {of} modelled drives by settled 4K writes")
    });
    if let Some(ratio) = it.mostly_reads() {
        let reads = number::trimmed(ratio);
        return format!(
            "For work that mostly reads: {who} reads {reads} times as fast as it writes{place}."
        );
    }
    if let Some(ratio) = it.keeps() {
        let kept = number::percent(1.0 / ratio);
        return format!("For lasting writes: {who} keeps {kept} of its burst once settled{place}.");
    }
    match (it.write_iops, it.read_iops) {
        (Some(write), Some(read)) if read > 0.0 => {
            let share = number::percent(write / read);
            format!("For mixed work: settled writes of {who} reach {share} of the reads{place}.")
        }
        (write, read) => {
            let iops = short(write.or(read).or(it.mixed_iops).unwrap_or_default());
            format!("For loads up to {iops} IOPS with {who}{place}.")
        }
    }
}

/// Returns a sentence on the uses that a drive is not suited for; `who` names the drive.
fn is_not_for(it: &Suitability, who: &str) -> String {
    let mut against = Vec::new();
    if let (Some(ratio), Some(burst), Some(write)) = (it.falls(), it.burst_iops, it.write_iops) {
        against.push(format!(
            "for lasting 4K writes above {} IOPS, which is {} of the {} before it settles",
            short(write),
            number::percent(1.0 / ratio),
            short(burst),
        ));
    }
    if let (Some(ratio), Some(tail)) = (it.slow_tail(), it.write_latency_ns_p999) {
        against.push(format!(
            "for work that needs 99.9 % of writes faster than {} ms, which is {} times the average",
            number::trimmed(millis(tail)),
            number::trimmed(ratio),
        ));
    }
    match against.as_slice() {
        [] => format!("Settled 4K writes of {who} and their 99.9th percentile show no weakness."),
        _ => format!("{} is not {}.", capitalized(who), against.join(", nor ")),
    }
}

/// Returns the pronoun `it` as it begins a sentence; a name stays as it is.
fn capitalized(who: &str) -> &str {
    if who == "it" { "It" } else { who }
}

/// Returns a sentence that names the winner by the rule of [`winner`], over the loads that all runs
/// measured.
fn winners(subjects: &[Subject<'_>]) -> String {
    let is_settled = |subject: &&Subject<'_>| Suitability::of(subject.run).is_settled;
    if let Some(unsettled) = subjects.iter().find(|it| !is_settled(it))
        && subjects.iter().any(|it| is_settled(&it))
    {
        let label = &unsettled.label;
        return format!("No winner is named: {label} had not settled, others had.");
    }
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let rankings = rankings(&common(&compare(&runs)));
    let winners: Vec<Option<Winner>> = rankings.iter().map(winner).collect();
    let of = rankings.len();
    let won = |index: usize| winners.iter().flatten().filter(move |it| it.run == index);
    let most = (0..subjects.len()).max_by_key(|index| won(*index).count());
    let Some(best) = most.filter(|_| of > 0) else {
        return "No winner is named: no load was measured by all of them.".into();
    };
    let widest = won(best).map(|it| it.lead).fold(0.0, f64::max);
    match won(best).count() {
        0 => format!("They are level: none leads by 5 % or more in any of {of} workloads."),
        count => format!(
            "{} wins {count} of {of} workloads by 5 % or more, at most by {}.",
            subjects[best].label,
            number::percent(widest),
        ),
    }
}

#[cfg(test)]
mod tests;
