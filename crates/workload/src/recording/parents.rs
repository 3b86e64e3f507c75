//! Parents of requests: the completions that they waited for.

use blockio::Nanos;

use super::{RecordedRequest, chains};

/// Dependency of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Index of the request whose completion this one waited for; none if nothing had completed
    /// yet.
    pub index: Option<u32>,
    /// Time from that completion to the issue; without one, from the start to the issue.
    pub think_time: Nanos,
    /// True if a timer ended the think time, which passes as the clock does, and not work.
    pub is_timer: bool,
}

/// Completions of requests, in order.
pub(super) struct Completions {
    in_order: Vec<(Nanos, u32)>,
    /// By request, the completions that came no later than its issue and of earlier requests.
    before: Vec<usize>,
}

impl Completions {
    /// The completions of requests that are in order of issue.
    fn of(requests: &[RecordedRequest]) -> Self {
        let index = |at: usize| u32::try_from(at).expect("fewer requests than 2^32");
        let mut in_order: Vec<(Nanos, u32)> =
            requests.iter().enumerate().map(|(at, it)| (it.completed_at, index(at))).collect();
        in_order.sort_unstable();
        let mut completed = 0;
        let before = |(at, request): (usize, &RecordedRequest)| {
            while in_order
                .get(completed)
                .is_some_and(|(time, child)| *time <= request.issued_at && *child < index(at))
            {
                completed += 1;
            }
            completed
        };
        let before = requests.iter().enumerate().map(before).collect();
        Self { in_order, before }
    }

    /// The completions before the issue of a request, the latest first, with the time since.
    pub(super) fn before(
        &self,
        requests: &[RecordedRequest],
        at: usize,
    ) -> impl Iterator<Item = (u32, u64)> {
        let issued_at = requests[at].issued_at;
        let known = &self.in_order[..self.before[at]];
        let near = known[known.len().saturating_sub(chains::WINDOW)..].iter().rev();
        near.map(move |(time, request)| (*request, (issued_at - *time).0))
            .take_while(|(_, distance_ns)| *distance_ns < chains::DISTANCE_MAX_NS)
    }
}

/// Returns the parent of each of `requests`, which are in order of issue; time starts at the first
/// issue.
///
/// It is the completion that came last before the issue, as in //TRACE and hfplayer, except for
/// kinds of requests that wait for another one, as those of independent clients that think do.
/// Among completions at the same time, that of the later request came last.
pub fn parents(requests: &[RecordedRequest]) -> Vec<Parent> {
    let start = requests.first().map_or(Nanos::ZERO, |it| it.issued_at);
    let completions = Completions::of(requests);
    let last = |(before, request): (&usize, &RecordedRequest)| {
        let last = before.checked_sub(1).map(|last| completions.in_order[last]);
        let (since, index) = last.map_or((start, None), |(time, index)| (time, Some(index)));
        Parent { index, think_time: request.issued_at - since, is_timer: false }
    };
    let mut parents: Vec<Parent> = completions.before.iter().zip(requests).map(last).collect();
    chains::follow(requests, &completions, &mut parents);
    debug_assert!(
        parents.iter().zip(0..).all(|(it, at)| it.index.is_none_or(|parent| parent < at)),
        "a parent was issued before its child"
    );
    parents
}
