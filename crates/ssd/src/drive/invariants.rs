//! Invariants of a drive between any two calls, checked by counting what is on its way anew.
//!
//! ```text
//!  a request in flight ─┬─ waits for the turn of its thread
//!                       ├─ has parts: reads of dies, answers, writes that wait for relocation
//!                       └─ is done: one event says so
//! ```
//!
//! Each is in one of these states, and each of its parts in one place.

use super::Drive;
use crate::disk::Disk;
use crate::event::Event;
use crate::module::Module;

/// Places where a request in flight was found.
#[derive(Clone, Copy, Debug, Default)]
struct RequestPlaces {
    is_free: bool,
    turns: u32,
    parts: u32,
    completions: u32,
}

impl Drive {
    /// Asserts what holds between any two calls, whatever the host has asked for. It reads the
    /// whole map of every module.
    ///
    /// # Panics
    /// When it does not hold, which no request can bring about.
    pub fn check_invariants(&self) {
        self.check_requests();
        if let Some(classes) = &self.classes {
            classes.drives().iter().for_each(Self::check_invariants);
        }
        self.modules.iter().for_each(|module| module.ftl.check_invariants());
        if let Some(share) = self.superblocks_free_share() {
            assert!((0.0..=1.0).contains(&share), "no more superblocks are free than there are");
        }
    }

    /// Asserts that nothing which is on its way is lost or counted twice.
    pub(super) fn check_requests(&self) {
        self.events.check_invariants();
        let found = self.find_requests();
        for (slot, (found, flight)) in found.iter().zip(&self.in_flight).enumerate() {
            assert_eq!(found.parts, flight.parts, "parts of request {slot} are awaited");
            let states = [found.is_free, found.turns > 0, found.parts > 0, found.completions > 0];
            let count = states.iter().filter(|is_so| **is_so).count();
            assert_eq!(count, 1, "request {slot} is free, waits, is under way or done: {found:?}");
            assert!(found.turns <= 1, "request {slot} waits for one turn");
            assert!(found.completions <= 1, "request {slot} completes once");
        }
        let outstanding = self.in_flight.len() - self.slots_free.len();
        self.host.check_invariants(outstanding, self.kept_back.len());
        self.check_modules();
        let (completed, carried) = (self.completed, self.carried);
        assert!(completed.read <= carried.read, "what was read was carried to the host");
        assert!(completed.written <= carried.written, "what was written was carried to the drive");
    }

    /// Looks for every request in flight where it can be.
    fn find_requests(&self) -> Vec<RequestPlaces> {
        let mut found = vec![RequestPlaces::default(); self.in_flight.len()];
        for slot in &self.slots_free {
            let is_free = &mut found[*slot as usize].is_free;
            assert!(!std::mem::replace(is_free, true), "slot {slot} is free once");
        }
        self.host.waiting().for_each(|slot| found[slot as usize].turns += 1);
        let waiting = self.modules.iter().flat_map(Module::waiting);
        waiting.for_each(|slot| found[slot as usize].parts += 1);
        let waiting = self.disks.iter().flat_map(Disk::waiting);
        waiting.for_each(|slot| found[slot as usize].parts += 1);
        let waiting = self.classes.iter().flat_map(|classes| classes.waiting());
        waiting.for_each(|slot| found[slot as usize].parts += 1);
        for event in self.events.pending() {
            match event {
                Event::Sensed { slot, .. } | Event::Answered { slot, .. } => {
                    found[slot as usize].parts += 1;
                }
                Event::Done { slot } | Event::Noticed { slot } => {
                    found[slot as usize].completions += 1;
                }
                Event::Relocate { .. }
                | Event::Fold { .. }
                | Event::Arm { .. }
                | Event::Classes => {}
            }
        }
        found
    }

    /// Modules have the steps to come that they scheduled.
    fn check_modules(&self) {
        let mut steps = vec![(0, 0); self.modules.len()];
        let mut turns = vec![0; self.disks.len()];
        for event in self.events.pending() {
            match event {
                Event::Relocate { module } => steps[usize::from(module)].0 += 1,
                Event::Fold { module } => steps[usize::from(module)].1 += 1,
                Event::Arm { disk } => turns[usize::from(disk)] += 1,
                _ => {}
            }
        }
        for (disk, turns) in self.disks.iter().zip(turns) {
            disk.check_invariants(turns);
        }
        for (module, steps) in self.modules.iter().zip(steps) {
            module.check_invariants(steps);
        }
    }
}
