//! From values to places: linear, logarithmic and by nines, with ticks at round numbers.

/// Spacing of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart; nothing at or below zero can be shown.
    Log,
    /// Equal ratios are equally far apart, with ticks at powers of two.
    Doublings,
    /// For shares: 0.9, 0.99, 0.999 are equally far apart.
    Nines,
}

/// Maps a domain of values onto a range of places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    spacing: Spacing,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// A scale that shows all of `low` to `high`, widened to round numbers.
    ///
    /// `low` and `high` come from data: a linear scale begins at zero, a logarithmic one at the
    /// smallest positive value.
    pub(crate) fn fitted(spacing: Spacing, low: f64, high: f64) -> Self {
        let (low, high) = match spacing {
            Spacing::Linear if high <= 0.0 => (0.0, 1.0),
            Spacing::Linear => widened(0.0, high),
            Spacing::Log if low <= 0.0 || high <= 0.0 => (0.1, 1.0),
            Spacing::Log => {
                let (low, high) = (round_below(low), round_above(high));
                if low < high { (low, high) } else { (low, low * 10.0) }
            }
            Spacing::Nines | Spacing::Doublings => (low, high),
        };
        Self { spacing, low, high, start: 0.0, end: 1.0 }
    }

    /// A linear scale over exactly `low` to `high`.
    pub(crate) fn exact(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { spacing: Spacing::Linear, low, high, start: 0.0, end: 1.0 }
    }

    /// A scale of doublings over exactly `low` to `high`, both above 0.
    pub(crate) fn doublings(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low * 2.0 };
        Self { spacing: Spacing::Doublings, low, high, start: 0.0, end: 1.0 }
    }

    /// Maps the scale onto the places `start` to `end`.
    #[must_use]
    pub(crate) fn onto(self, start: f64, end: f64) -> Self {
        Self { start, end, ..self }
    }

    /// The place of `value`; values beyond the domain are held at its ends.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let (low, high) = (self.spread(self.low), self.spread(self.high));
        self.start + (self.spread(value) - low) / (high - low) * (self.end - self.start)
    }

    /// Round values inside the domain, at most about seven.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match self.spacing {
            Spacing::Linear => self.linear_ticks(),
            Spacing::Log => self.log_ticks(),
            Spacing::Doublings => (0..=20_u32)
                .map(|power| f64::from(1_u32 << power))
                .filter(|tick| (self.low..=self.high).contains(tick))
                .collect(),
            Spacing::Nines => [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]
                .into_iter()
                .filter(|share| (self.low..=self.high).contains(share))
                .collect(),
        }
    }

    fn spread(&self, value: f64) -> f64 {
        match self.spacing {
            Spacing::Linear => value,
            Spacing::Log | Spacing::Doublings => value.log10(),
            Spacing::Nines => -(1.0 - value).log10(),
        }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let step = round_step((self.high - self.low) / 5.0);
        (0..=16_u32)
            .map(|index| ((self.low / step).ceil() + f64::from(index)) * step)
            .take_while(|tick| *tick <= self.high + step * 1e-6)
            .collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let digits: &[f64] = if self.high / self.low >= 99.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let decades = self.low.log10().floor()..=self.high.log10().ceil();
        let mut decade = *decades.start();
        let mut ticks = Vec::new();
        while decade <= *decades.end() {
            ticks.extend(digits.iter().map(|digit| digit * 10_f64.powf(decade)));
            decade += 1.0;
        }
        ticks.retain(|tick| (self.low * 0.999..=self.high * 1.001).contains(tick));
        ticks
    }
}

/// `low`, which is not negative, to `high`, widened to multiples of a round step.
pub(crate) fn widened(low: f64, high: f64) -> (f64, f64) {
    let step = round_step((high - low) / 5.0) / 2.0;
    ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
}

/// 1, 2 or 5 times a power of ten, at or just above `step`.
fn round_step(step: f64) -> f64 {
    round_above(step)
}

fn round_above(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * decade)
        .find(|round| *round >= value * 0.9999)
        .unwrap_or(decade * 10.0)
}

fn round_below(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|digit| digit * decade)
        .find(|round| *round <= value * 1.0001)
        .unwrap_or(decade)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        let ticks = |spacing, low, high| Scale::fitted(spacing, low, high).ticks();
        assert_eq!(ticks(Spacing::Linear, 0.0, 257_000.0), [0.0, 1e5, 2e5, 3e5]);
        assert_eq!(ticks(Spacing::Log, 0.8, 950.0), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(ticks(Spacing::Log, 2.2, 8.0), [2.0, 5.0, 10.0]);
        assert_eq!(ticks(Spacing::Nines, 0.5, 0.9999), [0.5, 0.9, 0.99, 0.999, 0.9999]);
    }

    #[test]
    fn nothing_to_show_is_still_a_scale() {
        for spacing in [Spacing::Linear, Spacing::Log] {
            let scale = Scale::fitted(spacing, 0.0, 0.0).onto(0.0, 100.0);
            assert!(scale.at(0.0).is_finite());
            assert!(!scale.ticks().is_empty());
        }
    }

    #[test]
    fn a_span_is_widened_to_round_numbers_on_both_sides() {
        assert_eq!(widened(271_300.0, 332_100.0), (270_000.0, 340_000.0));
        assert_eq!(widened(0.0, 257_000.0), (0.0, 300_000.0));
    }

    proptest! {
        #[test]
        fn every_value_lands_inside_and_in_order(
            a in 1e-6_f64..1e9, b in 1e-6_f64..1e9, log in any::<bool>(),
        ) {
            let spacing = if log { Spacing::Log } else { Spacing::Linear };
            let (low, high) = (a.min(b), a.max(b));
            let scale = Scale::fitted(spacing, low, high).onto(0.0, 100.0);
            prop_assert!((0.0..=100.0).contains(&scale.at(low)));
            prop_assert!((0.0..=100.0).contains(&scale.at(high)));
            prop_assert!(scale.at(low) <= scale.at(high));
            prop_assert!((1..=9).contains(&scale.ticks().len()), "{:?}", scale.ticks());
        }
    }
}
