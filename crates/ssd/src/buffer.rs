//! The write buffer: a ring of program units in power-protected memory.
//!
//! A write is acknowledged when its data is in the ring. A unit leaves the ring when it and all
//! before it have been programmed, so a full ring passes the pace of the NAND on to the host.

use std::collections::VecDeque;

use blockio::Nanos;

/// The ring.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    units_max: usize,
    leaves_at: VecDeque<Nanos>,
    admits_at: Nanos,
}

impl Buffer {
    /// An empty ring of `units_max` program units, at least one.
    pub(crate) fn new(units_max: u32) -> Self {
        Self {
            units_max: units_max.max(1) as usize,
            leaves_at: VecDeque::with_capacity(units_max as usize + 1),
            admits_at: Nanos::ZERO,
        }
    }

    /// Notes that a unit has been filled and will have been programmed at `end`.
    #[inline]
    pub(crate) fn fill(&mut self, end: Nanos) {
        let end = self.leaves_at.back().map_or(end, |last| end.max(*last));
        self.leaves_at.push_back(end);
        if self.leaves_at.len() > self.units_max {
            let admits_at = self.leaves_at.pop_front().expect("just pushed");
            assert!(admits_at >= self.admits_at, "units leave the ring in order");
            self.admits_at = admits_at;
        }
        assert!(self.leaves_at.len() <= self.units_max, "the ring holds no more than it can");
    }

    /// Asserts that units are in the order in which they leave, after those that have left.
    pub(crate) fn check_invariants(&self) {
        assert!(self.leaves_at.iter().is_sorted(), "units of the ring leave in order");
        let is_after = self.leaves_at.front().is_none_or(|first| *first >= self.admits_at);
        assert!(is_after, "the ring admits when its oldest unit has left");
    }

    /// Program units that the ring holds.
    pub(crate) const fn units_max(&self) -> u64 {
        self.units_max as u64
    }

    /// Time from which the ring takes the next page.
    #[inline]
    pub(crate) const fn admits_at(&self) -> Nanos {
        self.admits_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_admits_when_its_oldest_unit_has_left() {
        let mut buffer = Buffer::new(2);
        buffer.fill(Nanos(100));
        buffer.fill(Nanos(50));
        assert_eq!(buffer.admits_at(), Nanos(0));
        buffer.fill(Nanos(300));
        assert_eq!(buffer.admits_at(), Nanos(100));
        buffer.fill(Nanos(400));
        assert_eq!(buffer.admits_at(), Nanos(100));
    }
}
