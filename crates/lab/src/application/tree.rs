//! Requests of a replay, each with its parent: the request that it waits for.

use std::borrow::Cow;
use std::num::NonZeroU32;

use blockio::Nanos;
use workload::recording::{Parent, RecordedRequest, Recording, parents};

/// Requests of a replay with their parents, copy by copy of the recording; each copy has its own
/// addresses.
#[derive(Clone, Debug)]
pub struct RequestTree<'a> {
    /// All requests.
    pub requests: Cow<'a, [RecordedRequest]>,
    /// Parent of each request, in the same copy; think times but those of timers are processor
    /// time, if processors are known.
    pub parents: Vec<Parent>,
    /// Processors that think times share; absent: they pass as the clock does.
    pub processors: Option<NonZeroU32>,
    /// Number of copies, each with the same number of requests.
    pub copies: NonZeroU32,
}

impl<'a> RequestTree<'a> {
    /// The measured part of `recording`, `copies` times.
    pub fn new(recording: &'a Recording, copies: NonZeroU32) -> Self {
        let one = recording.measured();
        let of_one = parents(one);
        if copies.get() == 1 {
            let requests = Cow::Borrowed(one);
            return Self { requests, parents: of_one, processors: None, copies };
        }
        let count = one.len() * copies.get() as usize;
        let (mut requests, mut parents) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for copy in 0..copies.get() {
            let before = u32::try_from(requests.len()).expect("fewer requests than 2^32");
            let moved_by = u64::from(copy) * recording.space_sectors();
            requests.extend(one.iter().map(|it| RecordedRequest { lba: it.lba + moved_by, ..*it }));
            let moved = |parent: &Parent| Parent {
                index: parent.index.map(|index| index + before),
                ..*parent
            };
            parents.extend(of_one.iter().map(moved));
        }
        assert_eq!(requests.len(), count, "every copy has all requests");
        Self { requests: Cow::Owned(requests), parents, processors: None, copies }
    }

    /// The requests of one copy from index `from` on. Requests whose parents come before `from`
    /// have none.
    pub fn after(&self, from: usize) -> RequestTree<'_> {
        let (requests, of_all) = (&self.requests[..self.of_one()], &self.parents[..self.of_one()]);
        let start = requests[from].issued_at;
        let first = u32::try_from(from).expect("fewer requests than 2^32");
        let parents = (from..).zip(&of_all[from..]).map(|(at, parent)| {
            let think_time = requests[at].issued_at - start;
            let index = parent.index.and_then(|index| index.checked_sub(first));
            index.map_or(Parent { index: None, think_time, is_timer: false }, |index| Parent {
                index: Some(index),
                ..*parent
            })
        });
        RequestTree {
            requests: Cow::Borrowed(&requests[from..]),
            parents: parents.collect(),
            processors: self.processors,
            copies: NonZeroU32::MIN,
        }
    }

    /// Number of requests of one copy.
    pub fn of_one(&self) -> usize {
        self.requests.len() / self.copies.get() as usize
    }

    /// Splits `of_all`, which has an element for each request, by copy.
    pub fn by_copy<'b, T>(&self, of_all: &'b [T]) -> std::slice::Chunks<'b, T> {
        assert_eq!(of_all.len(), self.requests.len(), "one for each request");
        of_all.chunks(self.of_one().max(1))
    }

    /// Time of the last completion of the recording.
    pub fn recorded_end(&self) -> Nanos {
        let one = &self.requests[..self.of_one()];
        one.iter().map(|it| it.completed_at).max().unwrap_or_default()
    }
}
