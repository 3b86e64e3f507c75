//! Lateness as a metadata context: how late replies were for the model whose times they keep to,
//! in the name of a context that is listed and cannot be agreed on.
//!
//! ```text
//! x-floatgate:lateness/replies=1000,late=2,modelled_ns=21000000,late_by_ns=310000,
//!     late_by_ns_max=250000,peaks=17:250000+912:60000            (one line)
//! ```
//!
//! So a client is told without a command, before it chooses an export, and `nbdinfo` prints it. A
//! context of the protocol answers for ranges of an export, which have no lateness.

use std::fmt::Write as _;

use crate::Pace;

/// Namespace of what no other server has, as the protocol asks for it [nbd-protocol-2023].
const NAMESPACE: &str = "x-floatgate:";
/// Name of the context, up to its numbers.
const NAME: &str = "x-floatgate:lateness";

/// True if `query` of a client means this context.
pub(super) fn is_meant(query: &str) -> bool {
    query == NAMESPACE || query == NAME
}

/// Name of the context with the counts since the server began, and the peaks.
pub(super) fn name(pace: &Pace) -> String {
    let (lateness, peaks) = pace.lateness_and_peaks();
    let mut name = format!(
        "{NAME}/replies={},late={},modelled_ns={},late_by_ns={},late_by_ns_max={},peaks=",
        lateness.replies,
        lateness.late,
        lateness.modelled.0,
        lateness.late_by.0,
        lateness.late_by_max.0
    );
    for (index, peak) in peaks.iter().enumerate() {
        let separator = if index > 0 { "+" } else { "" };
        let _ = write!(name, "{separator}{}:{}", peak.reply, peak.late_by.0);
    }
    name
}
