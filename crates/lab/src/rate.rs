//! Rates at which requests come.

use serde::{Deserialize, Serialize};
pub use workload::Gaps;

/// Rate of an open loop: requests come whether or not earlier ones completed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Requests due in each second of the drive's own time, above 0.
    pub iops: f64,
    /// Distribution of the times between requests.
    pub gaps: Gaps,
}
