//! Several devices as one target.

use serde::Deserialize;

/// Several identical devices as one target: each has its own jobs, link, controller and media, and
/// results are added.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevicesSpec {
    /// Number of devices, 1 to 64.
    pub count: u32,
    /// Source.
    pub source: String,
}
