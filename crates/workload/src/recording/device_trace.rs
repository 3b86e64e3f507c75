//! Requests of a device with their completions, traced by another program.

use super::RecordedRequest;

/// Requests of a device whose issue and completion another program traced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceTrace {
    /// Name of the device, such as `259,0` or the file of a fio job.
    pub device: String,
    /// Requests in order of issue, the first at zero.
    pub requests: Vec<RecordedRequest>,
    /// Requests whose completion is not in the trace.
    pub incomplete: u64,
}

impl DeviceTrace {
    /// First sector after all requests.
    pub fn end_lba(&self) -> u64 {
        self.requests.iter().map(|it| it.lba + u64::from(it.sectors)).max().unwrap_or_default()
    }

    /// Sorts the requests by issue, and sets the first to zero.
    pub(super) fn ordered(mut self) -> Self {
        self.requests.sort_by_key(|it| (it.issued_at, it.completed_at));
        let start = self.requests.first().map(|it| it.issued_at).unwrap_or_default();
        for request in &mut self.requests {
            request.issued_at = request.issued_at - start;
            request.completed_at = request.completed_at - start;
        }
        self
    }
}
