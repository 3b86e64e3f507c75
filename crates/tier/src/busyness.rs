//! Busyness of the classes: the latency of reads at each number of outstanding blocks, as it was
//! measured.
//!
//! Reads that either class can serve go to the one that is expected to answer sooner. In a closed
//! loop both then settle at one latency, no longer than that of either class with all requests
//! alone, if latencies rise with the load. Orthus [wu-2021] finds its share of load by steps of
//! feedback instead, and stops admission while the cache is the busier class, as here.

use blockio::Nanos;

use crate::policy::Class;

/// Ranges of outstanding blocks: each below 16, then four in each octave up to 2³².
const BINS: usize = 16 + 4 * 28;
/// Weight of a new latency in the mean of its range.
const WEIGHT: f64 = 1.0 / 16.0;
/// Choices after which a mean is out of date: the class may be less busy with other work by then.
const FRESH_CHOICES: u64 = 1 << 16;

/// Reads outstanding on both classes, and their latencies.
#[derive(Clone, Debug)]
pub(crate) struct Busyness {
    classes: [Load; 2],
    /// Choices so far, from 1 on.
    choices: u64,
}

#[derive(Clone, Debug)]
struct Load {
    /// Blocks that are being transferred.
    outstanding: u32,
    latencies: Vec<Mean>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    latency_ns: f64,
    /// Number of choices when it was measured last; 0: never.
    measured_at: u64,
}

impl Busyness {
    pub(crate) fn new() -> Self {
        let idle = Load { outstanding: 0, latencies: vec![Mean::default(); BINS] };
        Self { classes: [idle.clone(), idle], choices: 1 }
    }

    /// The class that is expected to answer a read of `blocks` sooner.
    pub(crate) fn choose(&mut self, blocks: u32) -> Class {
        self.choices += 1;
        let [fast, slow] = [Class::Fast, Class::Slow].map(|class| self.expected_ns(class, blocks));
        if slow < fast { Class::Slow } else { Class::Fast }
    }

    /// A transfer of `blocks` begins; returns what is outstanding with it.
    pub(crate) fn begin(&mut self, class: Class, blocks: u32) -> u32 {
        let outstanding = &mut self.classes[class as usize].outstanding;
        *outstanding = outstanding.saturating_add(blocks);
        *outstanding
    }

    /// A transfer ended that began with `outstanding` blocks; `latency` if it was a read.
    pub(crate) fn end(&mut self, class: Class, (blocks, outstanding): (u32, u32), latency: Nanos) {
        let load = &mut self.classes[class as usize];
        assert!(load.outstanding >= blocks, "what ends has begun");
        load.outstanding -= blocks;
        if latency == Nanos::ZERO {
            return;
        }
        let mean = &mut load.latencies[bin(outstanding)];
        let is_fresh = mean.measured_at > 0 && self.choices - mean.measured_at < FRESH_CHOICES;
        let weight = if is_fresh { WEIGHT } else { 1.0 };
        mean.latency_ns += (latency.0 as f64 - mean.latency_ns) * weight;
        mean.measured_at = self.choices;
    }

    /// Latency of one more read: as measured with as many blocks outstanding, or else with the next
    /// fewer.
    fn expected_ns(&self, class: Class, blocks: u32) -> f64 {
        let load = &self.classes[class as usize];
        let at = bin(load.outstanding.saturating_add(blocks));
        let is_fresh =
            |mean: &&Mean| mean.measured_at > 0 && self.choices - mean.measured_at < FRESH_CHOICES;
        let measured = load.latencies[..=at].iter().rev().find(is_fresh);
        // A class of which nothing is known is tried, by one request at a time.
        let unknown_ns = if load.outstanding == 0 { 0.0 } else { f64::MAX };
        measured.map_or(unknown_ns, |mean| mean.latency_ns)
    }
}

/// The range that holds a number of blocks.
const fn bin(blocks: u32) -> usize {
    if blocks < 16 {
        return blocks as usize;
    }
    let octave = blocks.ilog2();
    let quarter = (blocks >> (octave - 2)) & 3;
    16 + (octave as usize - 4) * 4 + quarter as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_each_other_without_a_gap() {
        assert_eq!((bin(0), bin(15), bin(16), bin(19), bin(20)), (0, 15, 16, 16, 17));
        assert_eq!(bin(u32::MAX), BINS - 1);
        assert!((1..100_000).all(|blocks| bin(blocks + 1) - bin(blocks) <= 1));
    }

    #[test]
    fn a_class_is_left_alone_while_the_other_answers_sooner() {
        let mut busyness = Busyness::new();
        for (class, latency) in [(Class::Fast, 10_000), (Class::Slow, 80_000)] {
            let outstanding = busyness.begin(class, 1);
            busyness.end(class, (1, outstanding), Nanos(latency));
        }
        assert_eq!(busyness.choose(1), Class::Fast);
        let outstanding = busyness.begin(Class::Fast, 40);
        busyness.end(Class::Fast, (40, outstanding), Nanos(200_000));
        busyness.begin(Class::Fast, 40);
        assert_eq!(busyness.choose(1), Class::Slow, "the fast class is the busier one");
    }
}
