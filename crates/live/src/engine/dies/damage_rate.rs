//! Rate of the damaged places that reads find on a die.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use ftl::Ppn;

use super::{Dies, now_unix_s};
use crate::lock::lock;

/// Places that are remembered, so that each counts once an hour.
const PLACES_MAX: usize = 4096;

/// Damaged places that were found, by the minute of the last hour.
#[derive(Debug)]
pub(super) struct DamageRate {
    pub(super) total: u64,
    minutes: [u64; 60],
    /// Minutes since 1970 of the last one.
    last: u64,
    /// Places of the last hour, with their minutes: one that does not hold what is written there
    /// again and again is one place.
    places: BTreeMap<u32, u64>,
}

impl Default for DamageRate {
    fn default() -> Self {
        Self { total: 0, minutes: [0; 60], last: 0, places: BTreeMap::new() }
    }
}

impl DamageRate {
    /// Forgets what is older than an hour at `minute`, in minutes since 1970.
    fn age(&mut self, minute: u64) {
        let passed = minute.saturating_sub(self.last).min(60);
        for past in 1..=passed {
            self.minutes[usize::try_from((self.last + past) % 60).expect("below 60")] = 0;
        }
        if passed == 60 {
            self.minutes = [0; 60];
        }
        self.last = self.last.max(minute);
        if passed > 0 {
            self.places.retain(|_, found| *found + 60 > self.last);
        }
    }

    fn add(&mut self, minute: u64, place: Ppn) {
        self.age(minute);
        if self.places.contains_key(&place.0) {
            return;
        }
        if self.places.len() < PLACES_MAX {
            self.places.insert(place.0, self.last);
        }
        self.total += 1;
        self.minutes[usize::try_from(self.last % 60).expect("below 60")] += 1;
    }

    pub(super) fn of_hour(&mut self, minute: u64) -> u64 {
        self.age(minute);
        self.minutes.iter().sum()
    }
}

impl Dies {
    /// Counts a read that the rest of a row answered for a die, and the place if it is damaged and
    /// was not known to be.
    pub(crate) fn count_reconstructed(&self, die: usize, damaged: Option<Ppn>) {
        let moved = &self.traffic[die];
        moved.reconstructed.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = damaged {
            lock(&moved.damaged).add(now_unix_s() / 60, place);
        }
    }

    /// Sets the most damaged places of a die in an hour that are no problem.
    pub(crate) fn limit_damage(&self, places: u64) {
        self.damage_limit.store(places, Ordering::Relaxed);
    }

    /// The first die in use of which reads found more damaged places in the last hour than are no
    /// problem.
    pub(crate) fn over_damage_limit(&self) -> Option<usize> {
        let limit = self.damage_limit.load(Ordering::Relaxed);
        self.healthy().find(|die| self.traffic[*die].damaged_places().1 > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_for_an_hour_and_in_the_total_for_good() {
        let mut rate = DamageRate::default();
        (0..3).for_each(|place| rate.add(1000, Ppn(place)));
        rate.add(1030, Ppn(3));
        assert_eq!((rate.total, rate.of_hour(1030)), (4, 4));
        assert_eq!(rate.of_hour(1059), 4);
        assert_eq!(rate.of_hour(1060), 1, "those of minute 1000 are an hour old");
        assert_eq!(rate.of_hour(9000), 0);
        assert_eq!(rate.total, 4);
    }

    #[test]
    fn a_place_that_is_damaged_again_and_again_counts_once_an_hour() {
        let mut rate = DamageRate::default();
        (1000..1060).for_each(|minute| rate.add(minute, Ppn(7)));
        assert_eq!((rate.total, rate.of_hour(1059)), (1, 1));
        rate.add(1060, Ppn(7));
        assert_eq!((rate.total, rate.of_hour(1060)), (2, 1));
    }
}
