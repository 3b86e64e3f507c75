//! Parents of requests: the completions that they may have waited for.

use blockio::Nanos;

use super::Recorded;

/// Cause of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Index of the request whose completion was the last one before this was issued; none where
    /// nothing had completed yet.
    pub index: Option<u32>,
    /// Time from that completion to the issue; without one, from the start to the issue.
    pub think_time: Nanos,
}

/// The parent of each request, of requests in order of issue; the start is the issue of the first.
///
/// Of completions at the same time the one of the later request counts.
pub fn parents(requests: &[Recorded]) -> Vec<Parent> {
    let start = requests.first().map_or(Nanos::ZERO, |it| it.issued_at);
    let index = |at: usize| u32::try_from(at).expect("fewer requests than 2^32");
    let mut completions: Vec<(Nanos, u32)> =
        requests.iter().enumerate().map(|(at, it)| (it.completed_at, index(at))).collect();
    completions.sort_unstable();
    let mut completed = 0;
    let parent = |(at, request): (usize, &Recorded)| {
        while completions
            .get(completed)
            .is_some_and(|(time, child)| *time <= request.issued_at && *child < index(at))
        {
            completed += 1;
        }
        match completed.checked_sub(1).map(|last| completions[last]) {
            Some((time, parent)) => {
                Parent { index: Some(parent), think_time: request.issued_at - time }
            }
            None => Parent { index: None, think_time: request.issued_at - start },
        }
    };
    let parents: Vec<Parent> = requests.iter().enumerate().map(parent).collect();
    debug_assert!(
        parents.iter().zip(0..).all(|(it, at)| it.index.is_none_or(|parent| parent < at)),
        "a parent was issued before its child"
    );
    parents
}
