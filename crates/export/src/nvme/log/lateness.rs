//! Vendor-specific log of lateness: how late completions were for the model whose times they keep
//! to (docs/internals/nvme.md, "Lateness").
//!
//! Its readers are other programs, the lab of this project among them. So its form stays as it is,
//! or its version rises.

use super::super::wire::Structure;
use crate::Pace;
use crate::pace::PEAKS_MAX;

/// Bytes of the page.
const PAGE_BYTES: usize = 512;
/// First byte of the peaks, and bytes of each.
const PEAKS_AT: usize = 48;
const PEAK_BYTES: usize = 16;
/// Version of the page, which ends with its identifier as the logs of OCP do.
const VERSION: u16 = 1;
const VERSION_AT: usize = 494;
const GUID_AT: usize = 496;
/// Identifier of the page, as bytes in memory.
const GUID: [u8; 16] = [
    0x7D, 0x1E, 0x5B, 0xC4, 0x0F, 0x92, 0x4A, 0x63, 0xB8, 0x2C, 0x46, 0x4C, 0x54, 0x47, 0x41, 0x54,
];

const _: () = assert!(PEAKS_AT + PEAKS_MAX * PEAK_BYTES <= VERSION_AT, "peaks fit the page");

/// The page now: counts since the server began, and the peaks.
pub(super) fn page(pace: &Pace) -> Vec<u8> {
    let (lateness, peaks) = pace.lateness_and_peaks();
    let mut it = Structure::new(PAGE_BYTES);
    let times = [lateness.modelled, lateness.late_by, lateness.late_by_max].map(|time| time.0);
    let numbers = [lateness.replies, lateness.late].into_iter().chain(times);
    for (index, number) in numbers.enumerate() {
        it.put_u64(8 * index, number);
    }
    it.put_u16(40, u16::try_from(peaks.iter().len()).expect("there are few"));
    for (index, peak) in peaks.iter().enumerate() {
        let at = PEAKS_AT + index * PEAK_BYTES;
        it.put_u64(at, peak.reply);
        it.put_u64(at + 8, peak.late_by.0);
    }
    it.put_u16(VERSION_AT, VERSION);
    it.put(GUID_AT, &GUID);
    it.into_bytes()
}
