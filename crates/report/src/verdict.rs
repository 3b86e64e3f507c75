//! The verdict: what the drive does, and the ratios that a choice of a drive rests on.
//!
//! It states the figures of [`results::headlines`]; of several drives it says who wins.

use results::baseline::Headline;
use results::compare::{Comparison, compare};
use results::headlines::Headlines;
use results::order::{LoadOrder, Margin, orders};
use results::repeats::groups;
use results::{Run, Step, StepKind};

use crate::conditions;
use crate::number::written_times;
use crate::number::{self, millis, short};
use crate::order::of_run;
use crate::settled::settles;
use crate::subject::Subject;
use crate::text::listed;

/// Sentences of a verdict at most.
const SENTENCES_MAX: usize = 3;

/// The sentences about `subjects`, which are one drive or several.
pub(crate) fn sentences(subjects: &[Subject<'_>]) -> Vec<String> {
    let [first, others @ ..] = subjects else { return vec![settles(subjects)] };
    let it = Headlines::of(first.run);
    if it.write_iops.or(it.read_iops).or(it.mixed_iops).is_none() {
        return vec![settles(subjects)];
    }
    if others.is_empty() {
        return of_one(&it);
    }
    let is_one_drive = others.iter().all(|other| other.run.target.name == first.run.target.name);
    let mut said = vec![rates(subjects)];
    if !is_one_drive {
        said.push(winners(subjects));
    } else if it.is_settled {
        said.extend(doubt(&it));
        said.extend(ratios(&it, Some(&first.label)));
    }
    said.truncate(SENTENCES_MAX);
    said
}

/// Returns a sentence on the rates of several drives or formats: those of the first headline that
/// any of them has, as the bars below show them.
fn rates(subjects: &[Subject<'_>]) -> String {
    let named = [
        (Headline::Write, "4K random writes"),
        (Headline::Read, "4K random reads"),
        (Headline::Mixed, "the 8K 70/30 mix"),
    ];
    let is_measured = |it: &(Headline, &str)| subjects.iter().any(|of| rate(of, it.0).is_some());
    let Some((headline, what)) = named.into_iter().find(is_measured) else {
        return settles(subjects);
    };
    let all = || subjects.iter().filter_map(|subject| Some((subject, rate(subject, headline)?)));
    let mut loads: Vec<String> = all()
        .map(|(_, (step, _))| format!("T{}Q{}", step.threads, step.queue_per_thread))
        .collect();
    loads.dedup();
    let is_one_load = loads.len() == 1;
    let is_imported = subjects.iter().all(|subject| subject.run.imported_from().is_some());
    let states = [
        (Some(true), "steady state"),
        (Some(false), "steady state not reached"),
        (None, if is_imported { "steady state unknown" } else { "steady state not judged" }),
    ];
    let of_state = |(state, heading): (Option<bool>, &str)| {
        let of_it = all().filter(|(subject, (step, _))| subject.run.is_settled(step) == state);
        let at = |step: &Step| format!(" at T{}Q{}", step.threads, step.queue_per_thread);
        let told = of_it.map(|(_, (step, told))| if is_one_load { told } else { told + &at(step) });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("{heading}: {}", listed(&told)))
    };
    let said = states.into_iter().filter_map(of_state).collect::<Vec<_>>().join("; ");
    let models = subjects.iter().filter(|subject| subject.run.target.kind.is_model()).count();
    let said = match models {
        0 if is_imported => format!("Imported, {said}"),
        0 => said.replacen('s', "S", 1),
        all if all == subjects.len() => format!("Modelled, {said}"),
        _ => format!("Partly modelled, {said}"),
    };
    let load = if is_one_load { format!(" at {}", loads.concat()) } else { String::new() };
    format!("{said}, under {what}{load}.")
}

/// The measurement that `headline` is read from, and its rate in words.
fn rate<'a>(subject: &Subject<'a>, headline: Headline) -> Option<(&'a Step, String)> {
    let step = headline.step(subject.run)?;
    let iops = short(headline.of_step(subject.run, step)?);
    let mark = contradicted(&Headlines::of(subject.run), headline);
    let doubt = if subject.run.distrusted(step).is_some() { " (in doubt)" } else { "" };
    Some((step, format!("{} {iops} IOPS{doubt}{mark}", subject.label)))
}

/// Returns a sentence on the reason why a figure may not be the drive's own; absent without any.
fn doubt(it: &Headlines) -> Option<String> {
    Some(format!("Some of these figures may not be the drive's own: {}.", it.doubt()?))
}

fn of_one(it: &Headlines) -> Vec<String> {
    if it.is_imported {
        let mut said = vec![
            format!("Imported: {}.", does(it)),
            "Whether the drive was in steady state is unknown.".into(),
        ];
        said.extend(doubt(it));
        return said;
    }
    if !it.is_settled {
        let mut said = vec![
            unsettled(it),
            "These figures do not show what the drive sustains under continuous writes: \
             precondition for longer, until the steady-state rule is met."
                .into(),
        ];
        said.extend(doubt(it));
        return said;
    }
    let origin = if it.is_model { "Modelled" } else { "Measured" };
    let conditions = match it.conditions.as_slice() {
        [] => String::new(),
        several => format!(", {}", listed(several)),
    };
    let mut said = vec![format!("{origin} in steady state{conditions}: {}.", does(it))];
    said.extend(doubt(it));
    said.extend(ratios(it, None));
    said.truncate(SENTENCES_MAX);
    said
}

/// Its rates before steady state: reads apart, which need none.
fn unsettled(it: &Headlines) -> String {
    let reads = it.read_iops.map(|iops| format!("{} IOPS 4K random read", short(iops)));
    let begun = if it.is_model { "Modelled, steady state" } else { "Steady state" };
    if it.write_iops.or(it.mixed_iops).is_none() {
        return format!("Reads: {}.", reads.unwrap_or_default());
    }
    let writing = Headlines { read_iops: None, ..it.clone() };
    let after = it.written.map_or_else(String::new, |it| format!(" after {}", written_times(&it)));
    let reads = reads.map_or_else(String::new, |reads| {
        format!("; {reads}, for which no steady state is needed")
    });
    format!("{begun} not reached: {}{after}{reads}.", does(&writing))
}

/// Its rates and the tail of its writes.
fn does(it: &Headlines) -> String {
    let rates = [
        (Headline::Write, it.write_iops, "4K random write"),
        (Headline::Read, it.read_iops, "4K random read"),
        (Headline::Mixed, it.mixed_iops, "8K 70/30 mix"),
    ];
    let rates: Vec<String> = rates
        .into_iter()
        .filter_map(|(of, iops, what)| {
            Some(format!("{} IOPS {what}{}", short(iops?), contradicted(it, of)))
        })
        .collect();
    let tail = it.write_latency_ns_p999.filter(|tail| *tail > 0.0).map(|tail| {
        let (origin, tail) = (origin(it), number::trimmed(millis(tail)));
        let marked = contradicted(it, Headline::WriteTail);
        format!("; {origin} p99.9 write latency {tail} ms{marked}")
    });
    format!("{}{}", listed(&rates), tail.unwrap_or_default())
}

/// Returns the mark of a headline that a published figure contradicts, in brackets.
fn contradicted(it: &Headlines, headline: Headline) -> String {
    it.contradiction(headline).map_or_else(String::new, |text| format!(" ({text})"))
}

/// Returns the word that tells figures of a model from those of a real drive.
const fn origin(it: &Headlines) -> &'static str {
    match (it.is_model, it.is_imported) {
        (true, _) => "modelled",
        (false, true) => "imported",
        (false, false) => "measured",
    }
}

/// Returns the sentences on reads against writes, and on burst and tail of the writes; `of` names
/// the drive where several are told of.
fn ratios(it: &Headlines, of: Option<&str>) -> Vec<String> {
    let of = of.map_or_else(String::new, |name| format!(" of {name}"));
    [reads_against_writes(it, &of), burst_and_tail(it, &of)].into_iter().flatten().collect()
}

/// Returns the sentence on reads against writes, and on the place by writes; absent without any.
fn reads_against_writes(it: &Headlines, of: &str) -> Option<String> {
    let ratio = it.reads_over_writes().map(|ratio| {
        let times = number::trimmed(ratio);
        format!("4K random reads{of} reach {times} times the IOPS of steady-state 4K random writes")
    });
    let place = it.write_place.map(|(place, count)| {
        format!(
            "{place} of {count} in 4K random writes, among this drive and those of the \
             baseline table"
        )
    });
    match (ratio, place) {
        (Some(ratio), Some(place)) => Some(format!("{ratio}; rank {place}.")),
        (Some(ratio), None) => Some(format!("{ratio}.")),
        (None, Some(place)) => Some(format!("Rank{of}: {place}.")),
        (None, None) => None,
    }
}

/// Returns the sentence on the burst and the tail latency of the writes; absent without either.
fn burst_and_tail(it: &Headlines, of: &str) -> Option<String> {
    let burst = it.settled_over_burst().zip(it.burst_iops).map(|(share, burst)| {
        let (share, burst) = (number::percent(share), short(burst));
        format!("IOPS of 4K random writes{of} settle at {share} of the burst of {burst}")
    });
    let writes = if burst.is_some() { "these writes" } else { "4K random writes" };
    let of = if burst.is_some() { "" } else { of };
    let tail = it.tail_over_average().filter(|ratio| *ratio > 0.0).map(|ratio| {
        let (origin, times) = (origin(it), number::trimmed(ratio));
        format!("{origin} p99.9 latency of {writes}{of} is {times} times their average")
    });
    match (burst, tail) {
        (Some(burst), Some(tail)) => Some(format!("The {burst}; the {tail}.")),
        (Some(one), None) | (None, Some(one)) => Some(format!("The {one}.")),
        (None, None) => None,
    }
}

/// Returns a sentence that names the run that leads in IOPS under most loads, see [`orders`].
fn winners(subjects: &[Subject<'_>]) -> String {
    let is_settled = |subject: &&Subject<'_>| Headlines::of(subject.run).is_settled;
    if let Some(unsettled) = subjects.iter().find(|it| !is_settled(it))
        && subjects.iter().any(|it| is_settled(&it))
    {
        let label = &unsettled.label;
        return format!("No winner is named: {label} was not in steady state, others were.");
    }
    let alike = conditions::alike(subjects);
    if !alike.iter().any(|members| members.len() == subjects.len()) {
        let unlike = conditions::unlike(subjects);
        let unlike = if unlike.is_empty() { "conditions".to_owned() } else { unlike };
        return format!("No winner is named: the runs differ in {unlike}.");
    }
    let runs: Vec<&Run> = subjects.iter().map(|subject| subject.run).collect();
    let groups = groups(&runs);
    let loads = compare(&runs);
    let orders = orders(&loads, &groups);
    let by_rate =
        |it: &LoadOrder| (it.metrics[0].standings.len() > 1).then(|| it.metrics[0].leader());
    let leaders: Vec<Option<Margin>> = orders.iter().filter_map(by_rate).collect();
    let of = leaders.len();
    let won = |index: usize| leaders.iter().flatten().filter(move |it| it.run == index);
    let most = (0..subjects.len()).max_by_key(|index| won(*index).count());
    let Some(best) = most.filter(|_| of > 0) else {
        let is_of_all = |load: &Comparison| {
            load.kind == StepKind::Measure && load.entries.iter().all(Option::is_some)
        };
        return if loads.iter().any(is_of_all) {
            "No winner is named: warnings put every load that all of them measured in doubt.".into()
        } else {
            "No winner is named: no load was measured by all of them.".into()
        };
    };
    let widest =
        won(best).map(|it| it.factor - 1.0).filter(|it| it.is_finite()).fold(0.0, f64::max);
    // Reads need no steady state.
    let has_writes = |it: &Subject<'_>| {
        let it = Headlines::of(it.run);
        it.write_iops.or(it.mixed_iops).is_some()
    };
    let before = if subjects.iter().any(has_writes) && !subjects.iter().any(|it| is_settled(&it)) {
        "; none of them was in steady state"
    } else {
        ""
    };
    match won(best).count() {
        0 => format!(
            "The runs are even: none leads by 5 % or more in IOPS under any of {of} loads{before}."
        ),
        count => format!(
            "{} leads in IOPS under {count} of {of} loads by 5 % or more, at most by {}{before}.",
            of_run(subjects, &groups, best),
            number::percent(widest),
        ),
    }
}

#[cfg(test)]
mod tests;
