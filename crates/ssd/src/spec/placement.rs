//! Placement by the host: reclaim unit handles of a drive.

use ftl::{Isolation, ReclaimUnitHandles};
use serde::Deserialize;

use crate::spec::DriveSpec;

/// Flexible Data Placement: the host names a handle with each write.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// Reclaim unit handles, 1 to 128; placement handle 0 is the default one.
    pub handles: u8,
    /// Isolation of what the host writes through one handle from what it writes through others.
    pub isolation: IsolationSpec,
    /// Source.
    pub source: String,
}

/// Isolation of the data of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationSpec {
    /// Until garbage collection moves it: what is relocated of all handles is put together.
    InitiallyIsolated,
    /// For good: what is relocated of a handle stays apart too.
    PersistentlyIsolated,
}

impl DriveSpec {
    /// Reclaim unit handles of each module.
    pub(super) fn reclaim_unit_handles(&self) -> ReclaimUnitHandles {
        self.placement.as_ref().map_or(ReclaimUnitHandles::ONE, |placement| ReclaimUnitHandles {
            count: placement.handles,
            isolation: match placement.isolation {
                IsolationSpec::InitiallyIsolated => Isolation::Initial,
                IsolationSpec::PersistentlyIsolated => Isolation::Persistent,
            },
        })
    }

    /// Placement handles that a host may name; absent where the drive has no placement, and ignores
    /// what the host names.
    pub fn placement_handles(&self) -> Option<u8> {
        self.placement.as_ref().map(|placement| placement.handles)
    }
}

impl PlacementSpec {
    /// Description for the specification sheet.
    pub(super) fn shown(&self) -> String {
        let isolation = match self.isolation {
            IsolationSpec::InitiallyIsolated => "initially isolated",
            IsolationSpec::PersistentlyIsolated => "persistently isolated",
        };
        format!("{}, {isolation}", self.handles)
    }
}
