//! The verdict in three sentences: what the drive does, what it is for, what it is not for.
//!
//! The rules are those of [`results::suitability`]; of several drives it says who wins.

use results::Run;
use results::compare::{Winner, common, compare, rankings, winner};
use results::repeats::groups;
use results::suitability::Suitability;

use crate::comparison::of_run;
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
            "These figures do not show what the drive sustains under continuous writes.".into(),
            "Precondition for longer, until the steady-state rule is met.".into(),
        ];
    }
    vec![format!("Steady state: {}.", does(it)), is_for(it, "it"), is_not_for(it, "it")]
}

/// Its rates before steady state: reads apart, which need none.
fn unsettled(it: &Suitability) -> String {
    let reads = it.read_iops.map(|iops| format!("Reads: {} IOPS 4K random read.", short(iops)));
    let reads = reads.unwrap_or_default();
    if it.write_iops.or(it.mixed_iops).is_none() {
        return reads;
    }
    let writing = Suitability { read_iops: None, ..*it };
    let after = it.written.map_or_else(String::new, |it| format!(" after {}", written_times(&it)));
    let said = format!("Steady state not reached: {}{after}. {reads}", does(&writing));
    said.trim_end().to_owned()
}

/// Its rates and the tail of its writes.
fn does(it: &Suitability) -> String {
    let rates = [
        (it.write_iops, "4K random write"),
        (it.read_iops, "4K random read"),
        (it.mixed_iops, "8K 70/30 mix"),
    ];
    let rates: Vec<String> = rates
        .into_iter()
        .filter_map(|(iops, what)| Some(format!("{} IOPS {what}", short(iops?))))
        .collect();
    let tail = it.write_latency_ns_p999.filter(|tail| *tail > 0.0).map(|tail| {
        let (origin, tail) = (origin(it), number::trimmed(millis(tail)));
        format!("; {origin} p99.9 write latency {tail} ms")
    });
    format!("{}{}", listed(&rates), tail.unwrap_or_default())
}

/// Returns the word that tells figures of a model from those of a real drive.
const fn origin(it: &Suitability) -> &'static str {
    if it.is_model { "modelled" } else { "measured" }
}

/// Returns a sentence on the use that a drive is suited for; `who` names the drive.
fn is_for(it: &Suitability, who: &str) -> String {
    let place = it.write_place.map_or(String::new(), |(place, of)| {
        format!(
            "; place {place} of {of} by 4K random writes, among this drive and those of the \
             baseline table"
        )
    });
    if let Some(ratio) = it.mostly_reads() {
        let reads = number::trimmed(ratio);
        let of = named("of", who);
        return format!(
            "For work that mostly reads: 4K random reads{of} reach {reads} times the IOPS of \
             steady-state 4K random writes{place}."
        );
    }
    if let Some(ratio) = it.keeps() {
        let kept = number::percent(1.0 / ratio);
        return format!(
            "For sustained writes: {who} keeps {kept} of its burst IOPS in steady state{place}."
        );
    }
    match (it.write_iops, it.read_iops) {
        (Some(write), Some(read)) if read > 0.0 => {
            let share = number::percent(write / read);
            let of = named("of", who);
            format!(
                "For mixed work: steady-state 4K random writes{of} reach {share} of the IOPS of \
                 4K random reads{place}."
            )
        }
        (write, read) => {
            let loads = [
                (write, "4K random writes"),
                (read, "4K random reads"),
                (it.mixed_iops, "8K requests, 70 % of them reads,"),
            ];
            let rate = loads.into_iter().find_map(|(iops, load)| Some((iops?, load)));
            let (iops, load) = rate.expect("a drive without a rate gets no such sentence");
            format!("For {load} up to {} IOPS{}{place}.", short(iops), named("with", who))
        }
    }
}

/// Returns a sentence on the uses that a drive is not suited for; `who` names the drive.
fn is_not_for(it: &Suitability, who: &str) -> String {
    let mut against = Vec::new();
    if let (Some(ratio), Some(burst), Some(write)) = (it.falls(), it.burst_iops, it.write_iops) {
        against.push(format!(
            "for sustained 4K random writes above {} IOPS, which is {} of the burst of {}",
            short(write),
            number::percent(1.0 / ratio),
            short(burst),
        ));
    }
    if let (Some(ratio), Some(tail)) = (it.slow_tail(), it.write_latency_ns_p999) {
        against.push(format!(
            "for work that needs a p99.9 write latency below the {} {} ms, which is {} times the \
             average",
            origin(it),
            number::trimmed(millis(tail)),
            number::trimmed(ratio),
        ));
    }
    match against.as_slice() {
        [] => format!(
            "Steady-state 4K random writes{} and their p99.9 latency show no weakness.",
            named("of", who),
        ),
        _ => format!("{} is not {}.", capitalized(who), against.join(", nor ")),
    }
}

/// Returns the name of the drive after `preposition`; nothing for the pronoun `it`.
fn named(preposition: &str, who: &str) -> String {
    if who == "it" { String::new() } else { format!(" {preposition} {who}") }
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
        return format!("No winner is named: {label} was not in steady state, others were.");
    }
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let groups = groups(&runs);
    let rankings = rankings(&common(&compare(&runs)), &groups);
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
            of_run(subjects, &groups, best),
            number::percent(widest),
        ),
    }
}

#[cfg(test)]
mod tests;
