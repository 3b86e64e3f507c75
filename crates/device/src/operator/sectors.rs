//! Sets of sectors, as runs: what a host marked as unreadable.

use std::collections::BTreeMap;

/// Sectors of 512 bytes, as runs that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sectors(BTreeMap<u64, u64>);

impl Sectors {
    /// Returns the runs, in order, each with its first sector and the one after its last.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(from, until)| (*from, *until))
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the sectors from `from` on, up to `until`.
    pub fn add(&mut self, from: u64, until: u64) {
        if from >= until {
            return;
        }
        let (mut first, mut end) = (from, until);
        // Runs that touch it become part of it.
        while let Some((start, stop)) = self.last_to(end).filter(|(_, stop)| *stop >= first) {
            self.0.remove(&start);
            (first, end) = (first.min(start), end.max(stop));
        }
        self.0.insert(first, end);
    }

    /// Removes the sectors from `from` on, up to `until`. Returns whether any was there.
    pub fn remove(&mut self, from: u64, until: u64) -> bool {
        let mut was_there = false;
        while let Some((start, stop)) = self.first_in(from, until) {
            self.0.remove(&start);
            if start < from {
                self.0.insert(start, from);
            }
            if stop > until {
                self.0.insert(until, stop);
            }
            was_there = true;
        }
        was_there
    }

    /// The first of the sectors from `from` on, up to `until`, that is in the set.
    pub fn first(&self, from: u64, until: u64) -> Option<u64> {
        self.first_in(from, until).map(|(start, _)| start.max(from))
    }

    /// The first run that has sectors from `from` on, up to `until`.
    fn first_in(&self, from: u64, until: u64) -> Option<(u64, u64)> {
        if from >= until {
            return None;
        }
        let before = self.last_to(from).filter(|(_, stop)| *stop > from);
        let within = || self.0.range(from..until).next().map(|(start, stop)| (*start, *stop));
        before.or_else(within)
    }

    /// The last run that begins at a sector or before it.
    fn last_to(&self, sector: u64) -> Option<(u64, u64)> {
        self.0.range(..=sector).next_back().map(|(start, stop)| (*start, *stop))
    }
}

impl FromIterator<(u64, u64)> for Sectors {
    fn from_iter<T: IntoIterator<Item = (u64, u64)>>(runs: T) -> Self {
        let mut sectors = Self::default();
        runs.into_iter().for_each(|(from, until)| sectors.add(from, until));
        sectors
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn runs_say_what_a_plain_set_of_sectors_says() {
        let (mut sectors, mut plain) = (Sectors::default(), BTreeSet::new());
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
            (state >> 33) % below
        };
        for _ in 0..4000 {
            let from = draw(60);
            let until = from + draw(12);
            if draw(2) == 0 {
                sectors.add(from, until);
                plain.extend(from..until);
            } else {
                let was_there = plain.range(from..until).next().is_some();
                assert_eq!(sectors.remove(from, until), was_there);
                plain.retain(|sector| !(from..until).contains(sector));
            }
            let told: BTreeSet<u64> =
                sectors.runs().flat_map(|(from, until)| from..until).collect();
            assert_eq!(told, plain);
            let runs: Vec<_> = sectors.runs().collect();
            assert!(runs.windows(2).all(|it| it[0].1 < it[1].0), "{runs:?} touch");
            let (low, high) = (draw(70), draw(70));
            assert_eq!(
                sectors.first(low, high),
                plain.iter().copied().find(|it| { (low..high).contains(it) })
            );
        }
    }
}
