//! Room of the dies: the length of their media, and the space of the hosts beneath.

use std::collections::BTreeMap;

use super::{Dies, medium};

impl Dies {
    /// Bytes that must be free on a host for `wanted` more to be written, and those that are, where
    /// that is scarcest; none where all dies have all of their space.
    pub(crate) fn host_lacking(&self, wanted: u64) -> Option<(u64, u64)> {
        let mut systems: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for die in 0..self.count() {
            let Some(space) = medium(&self.shared(die)).host_space() else { continue };
            let (lacking, free) = systems.entry(space.system).or_default();
            *lacking += space.lacking;
            *free = space.free;
        }
        let lacking = systems.into_values().filter(|(lacking, _)| *lacking > 0);
        let needed = lacking.map(|(lacking, free)| (lacking.min(wanted), free));
        needed.min_by_key(|(needed, free)| (free.saturating_sub(*needed), *free))
    }

    /// Makes the medium of a die longer where it has not `size` bytes; says whether it has then.
    pub(crate) fn lengthen(&self, die: usize, size: u64) -> bool {
        let bay = self.shared(die);
        let medium = medium(&bay);
        // It does without what would lie there.
        medium.size() >= size || medium.lengthen(size).is_ok() && medium.size() >= size
    }

    /// True if the medium of a die has so many bytes.
    pub(crate) fn has_bytes(&self, die: usize, size: u64) -> bool {
        medium(&self.shared(die)).size() >= size
    }
}
