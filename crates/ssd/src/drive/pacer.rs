//! The drive as the model that sets the pace of a served device.

use blockio::{ClimateReading, Completion, Lba, Nanos, Pacer, Request};

use super::Drive;

impl Pacer for Drive {
    fn user_sectors(&self) -> u64 {
        Self::user_sectors(self)
    }

    fn age(&mut self, lba: Lba, sectors: u32) {
        // A drive that offers more than it holds paces what fits.
        let _ = Self::age(self, lba, sectors);
    }

    fn submit(&mut self, at: Nanos, request: Request) {
        Self::submit(self, at, request);
    }

    fn next_completion(&mut self, until: Nanos) -> Option<Completion> {
        Self::next_completion(self, until)
    }

    fn next_event(&self) -> Option<Nanos> {
        Self::next_event(self)
    }

    fn climate(&self, at: Nanos) -> Option<ClimateReading> {
        Self::climate(self, at)
    }
}
