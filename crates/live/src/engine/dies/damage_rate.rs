//! Rate of the damaged places that reads find on a die.

/// Damaged places that were found, by the minute of the last hour.
#[derive(Debug)]
pub(super) struct DamageRate {
    pub(super) total: u64,
    minutes: [u64; 60],
    /// Minutes since 1970 of the last one.
    last: u64,
}

impl Default for DamageRate {
    fn default() -> Self {
        Self { total: 0, minutes: [0; 60], last: 0 }
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
    }

    pub(super) fn add(&mut self, minute: u64) {
        self.age(minute);
        self.total += 1;
        self.minutes[usize::try_from(self.last % 60).expect("below 60")] += 1;
    }

    pub(super) fn of_hour(&mut self, minute: u64) -> u64 {
        self.age(minute);
        self.minutes.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_for_an_hour_and_in_the_total_for_good() {
        let mut rate = DamageRate::default();
        (0..3).for_each(|_| rate.add(1000));
        rate.add(1030);
        assert_eq!((rate.total, rate.of_hour(1030)), (4, 4));
        assert_eq!(rate.of_hour(1059), 4);
        assert_eq!(rate.of_hour(1060), 1, "those of minute 1000 are an hour old");
        assert_eq!(rate.of_hour(9000), 0);
        assert_eq!(rate.total, 4);
    }
}
