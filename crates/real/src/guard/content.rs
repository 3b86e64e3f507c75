//! Test for anything in a file that could be lost: bytes that are allocated and not zero.
//!
//! A file made by `truncate` is as long as it says and has no block at all; one made by
//! `fallocate`, or copied from nothing, has blocks of zeroes. Neither is content.

use std::os::fd::OwnedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread};

/// Allocated bytes that are read to find out whether they are all zero: 4 GiB. Beyond them a file
/// counts as content, unread.
const READ_MAX_BYTES: u64 = 4 << 30;
/// Bytes read at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// True if `file`, of `size_bytes`, holds a byte other than zero, or more than can be looked
/// through, or what cannot be read.
pub(super) fn holds_any(file: &OwnedFd, size_bytes: u64) -> bool {
    let mut left_bytes = READ_MAX_BYTES;
    let mut block = vec![0_u8; BLOCK_BYTES];
    let mut at = 0;
    while at < size_bytes {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            // Nothing but a hole from here to the end.
            Err(Errno::NXIO) => return false,
            Err(_) => return true,
        };
        let end = seek(file, SeekFrom::Hole(start)).unwrap_or(size_bytes).min(size_bytes);
        let extent_bytes = end.saturating_sub(start);
        if extent_bytes > left_bytes || !is_zero(file, start, end, &mut block) {
            return true;
        }
        left_bytes -= extent_bytes;
        at = end.max(start + 1);
    }
    false
}

/// True if every byte of `file` from `start` to `end` is zero.
fn is_zero(file: &OwnedFd, start: u64, end: u64, block: &mut [u8]) -> bool {
    let mut at = start;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(block.len()).min(block.len());
        match pread(file, &mut block[..wanted], at) {
            Ok(0) => return true,
            Ok(read) if block[..read].iter().all(|byte| *byte == 0) => at += read as u64,
            Ok(_) | Err(_) => return false,
        }
    }
    true
}
