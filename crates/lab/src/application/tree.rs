//! Requests of a replay, each with the request that it waits for.

use std::borrow::Cow;
use std::num::NonZeroU32;

use blockio::Nanos;
use workload::recording::{Parent, Recorded, Recording, parents};

/// Requests of a replay with their parents: those of one copy of the recording after those of
/// another, each copy on addresses of its own.
#[derive(Clone, Debug)]
pub(crate) struct RequestTree<'a> {
    /// All requests.
    pub(crate) requests: Cow<'a, [Recorded]>,
    /// The parent of each, which is of the same copy.
    pub(crate) parents: Vec<Parent>,
    /// Copies, each with as many requests.
    pub(crate) copies: NonZeroU32,
}

impl<'a> RequestTree<'a> {
    /// So many copies of what a benchmark did while it counted.
    pub(crate) fn new(recording: &'a Recording, copies: NonZeroU32) -> Self {
        let one = recording.measured();
        let of_one = parents(one);
        if copies.get() == 1 {
            return Self { requests: Cow::Borrowed(one), parents: of_one, copies };
        }
        let count = one.len() * copies.get() as usize;
        let (mut requests, mut parents) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for copy in 0..copies.get() {
            let before = u32::try_from(requests.len()).expect("fewer requests than 2^32");
            let moved_by = u64::from(copy) * recording.space_sectors();
            requests.extend(one.iter().map(|it| Recorded { lba: it.lba + moved_by, ..*it }));
            let moved = |parent: &Parent| Parent {
                index: parent.index.map(|index| index + before),
                ..*parent
            };
            parents.extend(of_one.iter().map(moved));
        }
        assert_eq!(requests.len(), count, "every copy has all requests");
        Self { requests: Cow::Owned(requests), parents, copies }
    }

    /// The requests of one copy from the one numbered `from` on. What waited for an earlier one
    /// waits for nothing.
    pub(crate) fn after(&self, from: usize) -> RequestTree<'_> {
        let (requests, of_all) = (&self.requests[..self.of_one()], &self.parents[..self.of_one()]);
        let start = requests[from].issued_at;
        let first = u32::try_from(from).expect("fewer requests than 2^32");
        let parents = (from..).zip(&of_all[from..]).map(|(at, parent)| {
            match parent.index.and_then(|index| index.checked_sub(first)) {
                Some(index) => Parent { index: Some(index), ..*parent },
                None => Parent { index: None, think_time: requests[at].issued_at - start },
            }
        });
        RequestTree {
            requests: Cow::Borrowed(&requests[from..]),
            parents: parents.collect(),
            copies: NonZeroU32::MIN,
        }
    }

    /// Requests of one copy.
    pub(crate) fn of_one(&self) -> usize {
        self.requests.len() / self.copies.get() as usize
    }

    /// Parts of `of_all`, which has an element for each request, by copy.
    pub(crate) fn by_copy<'b, T>(&self, of_all: &'b [T]) -> std::slice::Chunks<'b, T> {
        assert_eq!(of_all.len(), self.requests.len(), "one for each request");
        of_all.chunks(self.of_one().max(1))
    }

    /// Time of the last completion of the recording.
    pub(crate) fn recorded_end(&self) -> Nanos {
        let one = &self.requests[..self.of_one()];
        one.iter().map(|it| it.completed_at).max().unwrap_or_default()
    }
}
