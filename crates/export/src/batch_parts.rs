//! Parts of a batch of requests that a driver put into memory.

use std::time::Duration;

/// Fewest requests of a part.
const PART_REQUESTS_MIN: usize = 4;
/// Longest time for a request of a batch after which the next batch is still returned in parts: a
/// device that takes longer may wait for a medium.
const PART_REQUEST_TIME_MAX: Duration = Duration::from_micros(5);

/// Parts of a batch that are returned to the driver one after the other: it goes on with the
/// first half while the second is carried out, and neither side waits for the other.
#[derive(Debug, Default)]
pub(crate) struct BatchParts {
    /// True if the device took some time for the batch before: it may wait for a medium, which
    /// carries out many requests at once.
    is_slow: bool,
}

impl BatchParts {
    /// Requests of a part of a batch of `requests`.
    pub(crate) fn of(&self, requests: usize) -> usize {
        if self.is_slow { requests } else { requests.div_ceil(2).max(PART_REQUESTS_MIN) }
    }

    /// Notes how long a batch took.
    pub(crate) fn note(&mut self, requests: usize, took: Duration) {
        let requests = u32::try_from(requests).expect("a batch is small");
        self.is_slow = took > PART_REQUEST_TIME_MAX * requests;
    }
}
