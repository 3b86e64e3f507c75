//! Folding of the SLC cache in idle time.

use blockio::Nanos;

use super::Module;
use crate::event::{Event, EventQueue};
use crate::spec::DriveSpec;

/// Idle time of a module with an SLC cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folding {
    /// Time without a write after which the cache is folded.
    idle: Nanos,
    /// Time of the last write.
    written_at: Nanos,
    /// True if a step is in the event queue.
    pub(super) scheduled: bool,
}

impl Folding {
    /// The folding of a drive at 1/`time_lapse`; none where there is no cache.
    pub(super) fn new(spec: &DriveSpec, time_lapse: u32) -> Option<Self> {
        let cache = spec.slc_cache.as_ref()?;
        let idle = Nanos::from_micros_f64(cache.idle_ms * 1e3 / f64::from(time_lapse));
        Some(Self { idle, written_at: Nanos::ZERO, scheduled: false })
    }
}

impl Module {
    /// Records a write at `at`, after which the cache may have data to fold.
    pub(super) fn note_write(&mut self, at: Nanos, events: &mut EventQueue) {
        if let Some(folding) = &mut self.folding {
            folding.written_at = folding.written_at.max(at);
            self.schedule_folding(at, events);
        }
    }

    /// Folds a unit of the cache at `now`, if the last write is long enough ago and the controller
    /// is idle.
    pub(crate) fn fold(&mut self, now: Nanos, events: &mut EventQueue) {
        let Some(folding) = &mut self.folding else { return };
        assert!(folding.scheduled, "a step is taken that was scheduled");
        folding.scheduled = false;
        let is_idle = now >= folding.written_at + folding.idle;
        if is_idle && !self.ftl.needs_room() && self.relocates_at() <= now {
            self.backend.now = now;
            self.ftl.fold_unit(&mut self.backend);
        }
        self.schedule_folding(now, events);
    }

    /// Schedules [`Module::fold`] for when folding may continue, if there is anything to fold.
    fn schedule_folding(&mut self, now: Nanos, events: &mut EventQueue) {
        let free_at = self.relocates_at();
        let Some(folding) = &mut self.folding else { return };
        if folding.scheduled || !self.ftl.wants_folding() {
            return;
        }
        folding.scheduled = true;
        let at = (folding.written_at + folding.idle).max(free_at).max(now + Nanos(1));
        events.push(at, Event::Fold { module: self.index });
    }
}
