//! Error Injection ([ocp-nvme-2021], "Error Injection"; offsets in bytes): errors that a host has
//! the drive show, each once.

use device::{InjectedError, InjectedErrorKind, Operations};

use super::super::context::CommandCompletion;
use super::super::status::{Status, refusal};
use super::super::wire::{Structure, u16_at};

/// Bytes of an entry, and most entries.
const ENTRY_BYTES: usize = 32;
const ENTRIES_MAX: u32 = 127;
/// Flags of an entry: enabled, and for one instance.
const ENABLED: u8 = 1;
const SINGLE: u8 = 1 << 1;

/// Kinds of errors that may be injected.
const KINDS: [InjectedErrorKind; 14] = [
    InjectedErrorKind::ControllerHang,
    InjectedErrorKind::NandHang,
    InjectedErrorKind::PlpDefect,
    InjectedErrorKind::FirmwareError,
    InjectedErrorKind::CriticalMemoryCorruption,
    InjectedErrorKind::MemoryCorruption,
    InjectedErrorKind::NandCorruption,
    InjectedErrorKind::SramCorruption,
    InjectedErrorKind::HardwareMalfunction,
    InjectedErrorKind::NoSpares,
    InjectedErrorKind::LatencySpike,
    InjectedErrorKind::CommandFailure,
    InjectedErrorKind::CriticalTemperature,
    InjectedErrorKind::DieOffline,
];

/// Bytes that a host sends with a Set Features command of this dword 11, which has their number.
pub(super) fn bytes(dword: u32) -> usize {
    (dword & ENTRIES_MAX) as usize * ENTRY_BYTES
}

/// Completes Get Features: the errors that are still to come, and their number.
pub(super) fn get(operations: &dyn Operations) -> CommandCompletion {
    let errors = operations.injected_errors();
    let mut it = Structure::new(bytes(ENTRIES_MAX));
    for (at, error) in (0..).step_by(ENTRY_BYTES).zip(&errors) {
        it.put_u8(at, SINGLE | ENABLED);
        it.put_u16(at + 2, error.kind as u16);
        it.put_u16(at + 4, error.after_reads);
    }
    let value = u64::try_from(errors.len()).expect("at most 127");
    CommandCompletion { value, ..CommandCompletion::data(it.into_bytes()) }
}

/// Replaces the errors that are to come by those of the entries that are enabled.
pub(super) fn set(operations: &dyn Operations, entries: &[u8]) -> Result<(), Status> {
    let enabled = entries.chunks_exact(ENTRY_BYTES).filter(|entry| entry[0] & ENABLED != 0);
    let errors: Result<Vec<InjectedError>, Status> = enabled
        .map(|entry| {
            let kind = KINDS.into_iter().find(|kind| *kind as u16 == u16_at(entry, 2));
            // One that lasts until it is disabled is not offered.
            let kind = kind.filter(|_| entry[0] == SINGLE | ENABLED);
            let after_reads = u16_at(entry, 4);
            Ok(InjectedError { kind: kind.ok_or(Status::INVALID_FIELD)?, after_reads })
        })
        .collect();
    operations.inject_errors(&errors?).map_err(|error| refusal(&error))
}
