//! Logs of work in the background: Device Self-test and Sanitize Status ([nvme-base-2021]).

use device::{
    OperationStatus, SanitizeState, SanitizeStatus, SelfTest, SelfTestEnd, SelfTestResult,
};

use super::super::wire::Structure;

/// Results of self-tests in their log.
const RESULTS: usize = 20;
/// Bytes of a result.
const RESULT_BYTES: usize = 28;
/// Estimated time that is not reported.
const NOT_REPORTED: u32 = u32::MAX;

/// Code of a self-test, as the command has it.
const fn code(test: SelfTest) -> u8 {
    match test {
        SelfTest::Short => 1,
        SelfTest::Extended => 2,
    }
}

/// Device Self-test log.
pub(super) fn self_tests(status: &OperationStatus) -> Vec<u8> {
    let mut it = Structure::new(4 + RESULTS * RESULT_BYTES);
    if let Some((test, percent)) = status.self_test {
        it.put_u8(0, code(test));
        it.put_u8(1, percent);
    }
    for index in 0..RESULTS {
        let at = 4 + index * RESULT_BYTES;
        match status.self_tests.get(index) {
            Some(result) => put_result(&mut it, at, result),
            // An entry that is not used.
            None => it.put_u8(at, 0xF),
        }
    }
    it.into_bytes()
}

fn put_result(it: &mut Structure, at: usize, result: &SelfTestResult) {
    let end = match result.end {
        SelfTestEnd::Passed => 0,
        SelfTestEnd::Aborted => 1,
        SelfTestEnd::Formatted => 4,
        // A segment failed, and which one is known.
        SelfTestEnd::Failed { .. } => 7,
        SelfTestEnd::Sanitized => 9,
    };
    it.put_u8(at, code(result.test) << 4 | end);
    it.put_u64(at + 4, result.power_on_hours);
    if let SelfTestEnd::Failed { namespace, lba } = result.end {
        // The only segment: what is stored. Valid: namespace and LBA, and the status.
        it.put_u8(at + 1, 1);
        let is_known = namespace > 0;
        it.put_u8(at + 2, if is_known { 0xF } else { 0xC });
        it.put_u32(at + 12, if is_known { namespace } else { u32::MAX });
        it.put_u64(at + 16, lba);
        it.put_u8(at + 24, 2);
        it.put_u8(at + 25, 0x81);
    } else if let Some(namespace) = result.namespace {
        it.put_u8(at + 2, 1);
        it.put_u32(at + 12, namespace);
    }
}

/// Dword 10 of a Sanitize command that asks for a block erase or a crypto erase; bit 3 where the
/// exit is free, bit 9 where blocks were to stay allocated.
const fn sanitize_dword(status: &SanitizeStatus) -> u32 {
    let action = if status.is_crypto { 4 } else { 2 };
    action | (status.exit_is_free as u32) << 3 | (status.keeps_blocks as u32) << 9
}

/// Sanitize Status log.
pub(super) fn sanitize(status: &SanitizeStatus) -> Vec<u8> {
    let mut it = Structure::new(512);
    let (state, is_known) = match status.state {
        SanitizeState::Never => (0, false),
        // All blocks were deallocated, though they were to stay allocated.
        SanitizeState::Done if status.keeps_blocks => (4, true),
        SanitizeState::Done => (1, true),
        SanitizeState::Running => (2, true),
        SanitizeState::Failed => (3, true),
    };
    it.put_u16(0, status.progress);
    it.put_u16(2, state | u16::from(status.is_erased) << 8);
    it.put_u32(4, if is_known { sanitize_dword(status) } else { 0 });
    for at in (8..32).step_by(4) {
        it.put_u32(at, NOT_REPORTED);
    }
    it.into_bytes()
}
