//! Telemetry logs ([nvme-base-2021]): the drive's own counters as text, for diagnosis.
//!
//! The host's log holds what was captured when the host asked for it; the controller's holds
//! nothing, since the drive captures nothing by itself.

use super::super::wire::Structure;

/// Bytes of a block of telemetry, and of its header.
pub(super) const BLOCK_BYTES: usize = 512;

/// Counters that a host had captured.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    captured: Vec<u8>,
    /// Number of the capture; 0 before the first.
    generation: u8,
}

impl Telemetry {
    /// Captures the counters.
    pub(super) fn capture(&mut self, counters: Vec<u8>) {
        self.captured = counters;
        self.generation = self.generation.wrapping_add(1);
    }

    /// The log of the host: data area 1 holds everything.
    pub(super) fn of_host(&self) -> Vec<u8> {
        let blocks = self.captured.len().div_ceil(BLOCK_BYTES);
        let last = u16::try_from(blocks).unwrap_or(u16::MAX);
        let mut it = Structure::new(BLOCK_BYTES * (1 + usize::from(last)));
        it.put_u8(0, 0x07);
        for at in [8, 10, 12] {
            it.put_u16(at, last);
        }
        it.put_u32(16, last.into());
        it.put_u8(381, self.generation);
        it.put_padded(384, 128, "asked for by the host");
        let captured = &self.captured[..self.captured.len().min(BLOCK_BYTES * usize::from(last))];
        it.put(BLOCK_BYTES, captured);
        it.into_bytes()
    }

    /// The log of the controller: it has no data.
    pub(super) fn of_controller() -> Vec<u8> {
        let mut it = Structure::new(BLOCK_BYTES);
        it.put_u8(0, 0x08);
        it.into_bytes()
    }
}
