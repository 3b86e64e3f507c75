//! Chains of clients: requests that waited for a completion other than the last one.
//!
//! Where clients are independent and think, the completion before an issue is one of any client,
//! and the time since is chance. The completion that the client did wait for stands out: over the
//! whole recording the issues of a kind come at one distance from it more often than chance has
//! it. So the distances of all issues of a kind from the completions of each kind before them are
//! counted, as neuroscience counts spikes in cross-correlograms [perkel-1967], and compared with
//! what completions at their mean rate would give. A distance that is several times more frequent
//! is one that something caused.
//!
//! A kind of request is taken from the rule of the last completion only where its distances from
//! that one are chance, those from the likeliest causes are not, and most of these are the same:
//! the clients wait for timers. Clients that think for times of their own, or work, stay tied to
//! the last completion.

use std::collections::BTreeMap;

use blockio::{Nanos, Op};

use super::RecordedRequest;
use super::parents::{Completions, Parent};

/// Completions before an issue among which its cause is looked for.
pub(super) const WINDOW: usize = 128;
/// Longest time between a cause and an issue.
pub(super) const DISTANCE_MAX_NS: u64 = 10_000_000_000;
/// Issues of which distances are counted, at most; of more, stretches spread over the recording.
const COUNTED_MAX: usize = 1 << 14;
/// Length of such a stretch.
const STRETCH: usize = 1 << 10;
/// Fewest issues of a kind for a judgement.
const ISSUES_MIN: usize = 50;
/// Kinds that are told apart; the rarest share the last one.
const KINDS_MAX: usize = 24;
/// Excess over chance, in its standard deviations, from which a distance counts as caused.
const DEVIATIONS_MIN: f64 = 4.0;
/// Times as frequent as by chance that the distances from the last completion are at most, and
/// those from the likeliest cause at least, for a kind to be taken from the rule.
const CHANCE_MAX: f64 = 1.5;
/// Share of the issues of a kind whose last completion is there by chance: with two clients every
/// other one is the client's own.
const CHANCE_SHARE: f64 = 0.2;
const CAUSED_MIN: f64 = 2.5;
/// Of causes the latest one is taken that is no less likely than the likeliest by this factor: an
/// earlier one may be the cause of the cause.
const LIKELIHOOD_FACTOR: f64 = 3.0;
/// Distance from their median, as a share of it, within which at least two thirds of the think
/// times of a kind lie where a timer ends them. The work of clients that share processors varies
/// more.
const SPREAD_MAX: f64 = 0.05;

/// Kinds of requests as indexes, and how many of each there are.
struct Kinds {
    of: Vec<u8>,
    counts: Vec<usize>,
}

/// Counts of distances between issues and the completions before them, by kind of both.
struct Correlogram {
    kinds: usize,
    counts: Vec<u32>,
    /// Completions of each kind in a nanosecond.
    rates: Vec<f64>,
    /// Issues of each kind that were counted.
    issues: Vec<usize>,
}

/// A completion that may have caused an issue.
#[derive(Clone, Copy)]
struct Cause {
    request: u32,
    distance_ns: u64,
    /// Times as frequent as by chance.
    ratio: f64,
    /// Ratio where it is significantly above chance; else 0.
    likelihood: f64,
}

/// Replaces the parents of requests that waited for another completion than the last one before
/// them, as far as that can be told.
pub(super) fn follow(
    requests: &[RecordedRequest],
    completions: &Completions,
    parents: &mut [Parent],
) {
    assert_eq!(requests.len(), parents.len(), "every request has its parent or none");
    let kinds = Kinds::of(requests);
    let correlogram = Correlogram::of(requests, completions, &kinds);
    let independent = correlogram.independent(requests, completions, &kinds);
    if independent.iter().all(|it| !it) {
        return;
    }
    let mut has_child = vec![false; requests.len()];
    let mut followed = vec![Vec::new(); kinds.counts.len()];
    for at in (0..requests.len()).filter(|at| independent[usize::from(kinds.of[*at])]) {
        let causes = correlogram.causes(requests, completions, (&kinds, at));
        let Some(cause) = likely(&causes, &has_child) else { continue };
        has_child[cause.request as usize] = true;
        followed[usize::from(kinds.of[at])].push((at, cause));
    }
    for of_kind in &followed {
        take_if_steady(of_kind, parents);
    }
}

/// Takes the causes of a kind of requests for their parents, where most think times are steady.
fn take_if_steady(causes: &[(usize, Cause)], parents: &mut [Parent]) {
    let mut distances: Vec<f64> = causes.iter().map(|(_, it)| it.distance_ns as f64).collect();
    if distances.is_empty() {
        return;
    }
    let median = quantile(&mut distances, 0.5);
    let is_steady = |distance: f64| (distance - median).abs() <= SPREAD_MAX * median;
    let steady = distances.iter().filter(|it| is_steady(**it)).count();
    if steady * 3 < distances.len() * 2 {
        return;
    }
    for (at, Cause { request, distance_ns, .. }) in causes {
        let is_timer = is_steady(*distance_ns as f64);
        let (index, think_time) = (Some(*request), Nanos(*distance_ns));
        parents[*at] = Parent { index, think_time, is_timer };
    }
}

/// The latest of the likely causes, if it can be one that no other request waited for.
fn likely(causes: &[Cause], has_child: &[bool]) -> Option<Cause> {
    let best = causes.iter().map(|it| it.likelihood).fold(0.0, f64::max);
    let mut likely =
        causes.iter().filter(|it| best > 0.0 && it.likelihood * LIKELIHOOD_FACTOR >= best);
    let first = likely.clone().next();
    likely.find(|it| !has_child[it.request as usize]).or(first).copied()
}

impl Kinds {
    /// Kinds by operation, durability and size within a factor of four.
    fn of(requests: &[RecordedRequest]) -> Self {
        let kind = |it: &RecordedRequest| {
            let op = match it.op {
                Op::Read => 0,
                Op::Write => 1,
                Op::Trim => 2,
                Op::Flush => 3,
            };
            (op, it.fua, it.sectors.checked_ilog2().map_or(0, |log| 1 + log / 2))
        };
        let mut counted: BTreeMap<_, usize> = BTreeMap::new();
        for request in requests {
            *counted.entry(kind(request)).or_default() += 1;
        }
        let mut by_count: Vec<_> = counted.into_iter().collect();
        by_count.sort_unstable_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
        let mut counts = vec![0; by_count.len().min(KINDS_MAX)];
        let mut indexes = BTreeMap::new();
        for (place, (kind, count)) in by_count.into_iter().enumerate() {
            let index = place.min(KINDS_MAX - 1);
            counts[index] += count;
            indexes.insert(kind, u8::try_from(index).expect("few kinds"));
        }
        Self { of: requests.iter().map(|it| indexes[&kind(it)]).collect(), counts }
    }
}

impl Correlogram {
    fn of(requests: &[RecordedRequest], completions: &Completions, kinds: &Kinds) -> Self {
        let count = kinds.counts.len();
        let ends = requests.iter().map(|it| it.issued_at.0);
        let span_ns = ends.clone().max().unwrap_or(0) - ends.min().unwrap_or(0);
        let rates = kinds.counts.iter().map(|it| *it as f64 / (span_ns.max(1)) as f64).collect();
        let mut it = Self {
            kinds: count,
            counts: vec![0; count * count * bin(DISTANCE_MAX_NS) + count * count],
            rates,
            issues: vec![0; count],
        };
        for at in counted(requests.len()) {
            it.issues[usize::from(kinds.of[at])] += 1;
            for (cause, distance_ns) in completions.before(requests, at) {
                let index = it.index(kinds, (cause as usize, at), distance_ns);
                it.counts[index] += 1;
            }
        }
        it
    }

    fn index(&self, kinds: &Kinds, (cause, at): (usize, usize), distance_ns: u64) -> usize {
        let (cause, kind) = (usize::from(kinds.of[cause]), usize::from(kinds.of[at]));
        (cause * self.kinds + kind) * (bin(DISTANCE_MAX_NS) + 1) + bin(distance_ns)
    }

    /// The completions that may have caused an issue, the latest first.
    fn causes(
        &self,
        requests: &[RecordedRequest],
        completions: &Completions,
        (kinds, at): (&Kinds, usize),
    ) -> Vec<Cause> {
        let cause = |(request, distance_ns): (u32, u64)| {
            let found =
                f64::from(self.counts[self.index(kinds, (request as usize, at), distance_ns)]);
            let rate = self.rates[usize::from(kinds.of[request as usize])];
            let issues = self.issues[usize::from(kinds.of[at])] as f64;
            let expected = rate * issues * bin_width_ns(bin(distance_ns));
            let is_caused = found - expected > DEVIATIONS_MIN * (expected + 1.0).sqrt();
            // One more of each, so that what is rare is not taken for frequent.
            let ratio = (found + 1.0) / (expected + 1.0);
            let likelihood = if is_caused { ratio } else { 0.0 };
            Cause { request, distance_ns, ratio, likelihood }
        };
        completions.before(requests, at).map(cause).collect()
    }

    /// By kind, true if the last completion before its issues is there by chance, and another one
    /// is not.
    fn independent(
        &self,
        requests: &[RecordedRequest],
        completions: &Completions,
        kinds: &Kinds,
    ) -> Vec<bool> {
        let mut last = vec![Vec::new(); self.kinds];
        let mut best = last.clone();
        for at in counted(requests.len()) {
            let kind = usize::from(kinds.of[at]);
            let causes = self.causes(requests, completions, (kinds, at));
            let Some(nearest) = causes.first() else { continue };
            last[kind].push(nearest.ratio);
            best[kind].push(causes.iter().map(|it| it.likelihood).fold(0.0, f64::max));
        }
        let judge = |(last, best): (&mut Vec<f64>, &mut Vec<f64>)| {
            last.len() >= ISSUES_MIN
                && quantile(last, CHANCE_SHARE) < CHANCE_MAX
                && quantile(best, 0.5) > CAUSED_MIN
        };
        last.iter_mut().zip(&mut best).map(judge).collect()
    }
}

/// Indexes of the issues that are counted: all, or stretches spread over the recording.
fn counted(requests: usize) -> impl Iterator<Item = usize> {
    let stride = STRETCH * requests.div_ceil(COUNTED_MAX).max(1);
    (0..requests).step_by(stride).flat_map(move |from| from..requests.min(from + STRETCH))
}

/// The value that a share of all do not exceed.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index of one of them"
)]
fn quantile(of: &mut [f64], share: f64) -> f64 {
    let index = (of.len() as f64 * share) as usize;
    *of.select_nth_unstable_by(index, f64::total_cmp).1
}

/// Distances below this have bins of equal width, those above of equal ratio.
const LINEAR_NS: u64 = 2_000_000;
const LINEAR_BINS: usize = 80;
const BINS_PER_E: f64 = 80.0;

/// The bin of a distance.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bin of a distance up to the longest is a small number"
)]
fn bin(distance_ns: u64) -> usize {
    if distance_ns < LINEAR_NS {
        return (distance_ns / (LINEAR_NS / LINEAR_BINS as u64)) as usize;
    }
    let ratio = distance_ns as f64 / LINEAR_NS as f64;
    LINEAR_BINS + (BINS_PER_E * ratio.ln()) as usize
}

fn bin_width_ns(bin: usize) -> f64 {
    match bin.checked_sub(LINEAR_BINS) {
        None => LINEAR_NS as f64 / LINEAR_BINS as f64,
        Some(bin) => {
            let edge = |at: usize| LINEAR_NS as f64 * (at as f64 / BINS_PER_E).exp();
            edge(bin + 1) - edge(bin)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use blockio::Rng;

    use super::*;
    use crate::recording::parents;

    const US: u64 = 1000;
    const SPAN_NS: u64 = 8_000_000 * US;

    /// Clients that each read, and write now and then, at a distance of `think_ns`, which a timer
    /// of some accuracy measures.
    fn thinkers(clients: u16, think_ns: u64, latency_ns: u64) -> Vec<RecordedRequest> {
        let mut rng = Rng::new(u64::from(clients) + latency_ns);
        let mut due: BinaryHeap<Reverse<(u64, u16)>> =
            (0..clients).map(|client| Reverse((rng.below(think_ns), client))).collect();
        let mut requests = Vec::new();
        while let Some(Reverse((at, client))) = due.pop().filter(|Reverse((at, _))| *at < SPAN_NS) {
            let is_write = rng.below(3) == 0;
            let op = if is_write { Op::Write } else { Op::Read };
            let base_ns = latency_ns * if is_write { 2 } else { 1 };
            let completed_at = at + base_ns * 9 / 10 + rng.below(base_ns / 5);
            requests.push(RecordedRequest {
                issued_at: Nanos(at),
                completed_at: Nanos(completed_at),
                op,
                fua: false,
                lba: 0,
                sectors: 8,
                client,
            });
            due.push(Reverse((completed_at + think_ns + rng.below(60 * US), client)));
        }
        requests
    }

    /// Requests in a second once each takes `factor` times as long.
    fn replayed(requests: &[RecordedRequest], factor: f64) -> f64 {
        let mut ends: Vec<u64> = Vec::new();
        for (request, parent) in requests.iter().zip(parents(requests)) {
            let from = parent.index.map_or(0, |index| ends[index as usize]);
            let latency = Nanos::from_secs_f64(request.latency().as_secs_f64() * factor);
            ends.push(from + parent.think_time.0 + latency.0);
        }
        requests.len() as f64 / *ends.iter().max().unwrap() as f64 * 1e9
    }

    #[test]
    fn independent_clients_follow_their_own_requests() {
        // Of many some have completions of others at the same distance, as likely as theirs.
        for (clients, percent) in [(2, 95), (4, 95), (16, 85), (64, 60)] {
            let requests = thinkers(clients, 5000 * US, 4000 * US);
            let parents = parents(&requests);
            let own = requests.iter().zip(&parents).skip(usize::from(clients)).filter(|it| {
                let index = it.1.index.unwrap() as usize;
                requests[index].client == it.0.client
            });
            let (own, all) = (own.count(), requests.len() - usize::from(clients));
            assert!(own * 100 >= all * percent, "{clients}: {own} of {all}");
            let timers = parents.iter().filter(|it| it.is_timer).count();
            assert!(timers * 100 > requests.len() * 95, "{clients}: {timers}");
        }
    }

    #[test]
    fn rates_of_independent_clients_are_predicted_on_drives_ten_times_faster_and_slower() {
        for (clients, latency_us) in [(2, 4000), (8, 4000), (64, 4000), (8, 400), (16, 1500)] {
            let requests = thinkers(clients, 5000 * US, latency_us * US);
            for (factor, other_us) in [(0.1, latency_us / 10), (10.0, latency_us * 10)] {
                let other = thinkers(clients, 5000 * US, other_us * US);
                let (found, truth) = (replayed(&requests, factor), other.len() as f64 / 8.0);
                let error = found / truth - 1.0;
                assert!(error.abs() < 0.05, "{clients} at {latency_us} us, {factor}: {error:+.3}");
            }
        }
    }

    /// One request at a time, whichever client makes it, after work of its own length.
    #[test]
    fn clients_that_share_a_lock_stay_tied_to_the_last_completion() {
        let mut rng = Rng::new(1);
        let mut at = 0;
        let requests: Vec<RecordedRequest> = (0..5000)
            .map(|number| {
                let issued_at = Nanos(at);
                at += 4000 * US + rng.below(200 * US);
                let completed_at = Nanos(at);
                at += 20 * US + rng.below(300 * US);
                let op = if number % 3 == 0 { Op::Write } else { Op::Read };
                let client = u16::try_from(rng.below(8)).unwrap();
                RecordedRequest {
                    issued_at,
                    completed_at,
                    op,
                    fua: false,
                    lba: 0,
                    sectors: 8,
                    client,
                }
            })
            .collect();
        let parents = parents(&requests);
        assert!(parents.iter().skip(1).zip(0..).all(|(it, last)| it.index == Some(last)));
        assert!(parents.iter().all(|it| !it.is_timer));
    }
}
