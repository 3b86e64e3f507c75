//! The host that a replay assumes, relative to the recording's host.

use std::num::NonZeroU32;

use blockio::{Bytes, Nanos};
use workload::recording::Recording;

use super::{RequestTree, processors};
use crate::{Error, Kind};

/// Host on which an application runs in a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayHost {
    /// Speed as a multiple of the recording's host, above 0: think times are divided by it.
    pub speed: f64,
    /// Processors; absent: those of the recording's host, if it is known how many they were.
    pub processors: Option<NonZeroU32>,
    /// Share of the recorded reads that additional host memory answers instead of the drive, and of
    /// the writes of pages that it holds back, 0 to 100 percent.
    pub buffered_percent: f64,
    /// True if the other drive is served through the same front end, so that its time stays in the
    /// think times. False: it is subtracted from them, if it was measured.
    pub keeps_front_end: bool,
    /// Copies of the recording that it runs at once, each on addresses of its own: guests that
    /// share nothing but the drive. All begin together.
    pub copies: NonZeroU32,
}

impl Default for ReplayHost {
    /// The host of the recording, with the drive attached to it directly.
    fn default() -> Self {
        Self {
            speed: 1.0,
            processors: None,
            buffered_percent: 0.0,
            keeps_front_end: false,
            copies: NonZeroU32::MIN,
        }
    }
}

impl ReplayHost {
    /// The error of a recording whose copies need `needed` bytes, more than the `present` ones of
    /// the device named `name`.
    pub fn too_large(&self, needed: u64, name: &str, present: u64) -> Error {
        let need = match self.copies.get() {
            1 => "the recording needs".to_owned(),
            copies => format!("{copies} copies of the recording need"),
        };
        // Both ways: rounded sizes that differ may look the same.
        let shown = |bytes: u64| format!("{} or {bytes} bytes", Bytes(bytes));
        let text = format!("{need} {}; {name} has {}", shown(needed), shown(present));
        Error::new(Kind::Input, text)
            .hint("record on a device that is not larger than the drives to compare")
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Fails if a number is outside its range, and names number and range.
    pub fn checked(self) -> Result<Self, Error> {
        if !(self.speed > 0.0 && self.speed.is_finite()) {
            let text = format!("the speed of the host is {}, must be above 0", self.speed);
            let hint = "1 means the speed of the recording's host";
            return Err(Error::new(Kind::Input, text).hint(hint));
        }
        if !(0.0..=100.0).contains(&self.buffered_percent) {
            let text = format!("buffered reads are {} %, must be 0 to 100", self.buffered_percent);
            return Err(Error::new(Kind::Input, text).hint("with 0 the drive answers all of them"));
        }
        Ok(self)
    }

    /// The requests in the measured part of `recording`, with this host's think times.
    pub fn tree<'a>(&self, recording: &'a Recording) -> RequestTree<'a> {
        let mut tree = RequestTree::new(recording, self.copies);
        let front_end = recording.head.front_end_ns.filter(|_| !self.keeps_front_end);
        let front_end = Nanos(front_end.unwrap_or_default());
        for parent in &mut tree.parents {
            parent.think_time = parent.think_time.saturating_sub(front_end);
        }
        // The time of a front end was measured by a clock, as think times were; what becomes of
        // them here is processor time.
        if let Some(recorded) = Self::shared(recording).filter(|_| self.copies.get() == 1) {
            let work = processors::work(&tree.requests, &tree.parents, recorded);
            for (parent, work) in tree.parents.iter_mut().zip(work) {
                parent.think_time = work;
            }
            tree.processors = self.processors.or(Some(recorded));
        }
        let emulated = recording.head.emulation_slowdown.filter(|it| it.is_normal() && *it > 0.0);
        let speed = self.speed * emulated.unwrap_or(1.0);
        for parent in tree.parents.iter_mut().filter(|it| !it.is_timer) {
            parent.think_time = Nanos::from_secs_f64(parent.think_time.as_secs_f64() / speed);
        }
        tree
    }

    /// Processors that think times of `recording` shared; none if the recording does not say, or if
    /// it is of a guest with an emulated processor of its own.
    fn shared(recording: &Recording) -> Option<NonZeroU32> {
        let known = recording.head.emulation_slowdown.is_none();
        recording.head.processors().filter(|_| known).and_then(NonZeroU32::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_host_has_are_refused() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ReplayHost { speed, ..ReplayHost::default() }.checked().is_err(), "{speed}");
        }
        for buffered_percent in [-0.1, 100.1, f64::NAN] {
            assert!(ReplayHost { buffered_percent, ..ReplayHost::default() }.checked().is_err());
        }
        assert!(ReplayHost::default().checked().is_ok());
    }
}
