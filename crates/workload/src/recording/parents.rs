//! Parents of requests: the latest completion before each issue.

use blockio::Nanos;

use super::RecordedRequest;

/// Dependency of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Index of the request that completed last before this one was issued; none if nothing had
    /// completed yet.
    pub index: Option<u32>,
    /// Time from that completion to the issue; without one, from the start to the issue.
    pub think_time: Nanos,
}

/// Returns the parent of each of `requests`, which are in order of issue; time starts at the first
/// issue.
///
/// Among completions at the same time, that of the later request is the parent.
pub fn parents(requests: &[RecordedRequest]) -> Vec<Parent> {
    let start = requests.first().map_or(Nanos::ZERO, |it| it.issued_at);
    let index = |at: usize| u32::try_from(at).expect("fewer requests than 2^32");
    let mut completions: Vec<(Nanos, u32)> =
        requests.iter().enumerate().map(|(at, it)| (it.completed_at, index(at))).collect();
    completions.sort_unstable();
    let mut completed = 0;
    let parent = |(at, request): (usize, &RecordedRequest)| {
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
