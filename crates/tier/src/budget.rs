//! Budget of what admissions may write to the fast class, so that its endurance lasts.

use blockio::Nanos;

/// Part of a day for which an unused budget is kept: an hour.
const KEPT_PART: f64 = 1.0 / 24.0;

/// Blocks that may be written, gained at a constant rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    blocks_per_day: f64,
    day: Nanos,
    blocks: f64,
    at: Nanos,
}

impl Budget {
    /// The budget of an hour, to begin with.
    pub(crate) fn new(blocks_per_day: f64, day: Nanos) -> Self {
        assert!(day > Nanos::ZERO, "a day lasts");
        Self { blocks_per_day, day, blocks: blocks_per_day * KEPT_PART, at: Nanos::ZERO }
    }

    /// Takes one block at `at`, no earlier than the last one; false if none is left.
    pub(crate) fn take(&mut self, at: Nanos) -> bool {
        let days = at.saturating_sub(self.at).0 as f64 / self.day.0 as f64;
        self.at = self.at.max(at);
        let gained = self.blocks + days * self.blocks_per_day;
        self.blocks = gained.min((self.blocks_per_day * KEPT_PART).max(1.0));
        let is_left = self.blocks >= 1.0;
        if is_left {
            self.blocks -= 1.0;
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_gives_as_many_blocks_as_the_budget_says_and_an_hour_is_kept() {
        let day = Nanos::from_secs_f64(86_400.0);
        let mut budget = Budget::new(2400.0, day);
        let seconds = (0..86_400_u64).map(|second| Nanos::from_secs_f64(second as f64));
        let taken = seconds.filter(|at| budget.take(*at)).count();
        assert!((2400..=2501).contains(&taken), "{taken}");
        let mut rested = Budget::new(2400.0, day);
        let burst = (0..1000).filter(|_| rested.take(day * 3)).count();
        assert_eq!(burst, 100, "what three days did not use is not saved up");
    }
}
