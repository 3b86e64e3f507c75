//! Promise about acknowledged writes, by the way in which the drive was opened, and after a fault
//! of its power-loss protection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use status::Promise;

use super::Drive;
use crate::lock::lock;

/// The promise of a drive.
#[derive(Debug, Default)]
pub(super) struct WritePromise {
    /// Promise of its opening; none: nothing survives before a flush.
    opened: OnceLock<Promise>,
    /// True if writes are acknowledged once they are durable, whatever was promised, and why.
    is_through: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Drive {
    /// Returns what every acknowledged write survives.
    pub fn promise(&self) -> Promise {
        if self.promised.is_through.load(Ordering::Acquire) {
            return Promise::PowerLoss;
        }
        self.promised.opened.get().copied().unwrap_or(Promise::Nothing)
    }

    /// Returns the reason why writes are acknowledged once they are durable, where that was not
    /// asked for.
    pub fn write_through_reason(&self) -> Option<String> {
        lock(&self.promised.reason).clone()
    }

    /// Makes a promise for this opening.
    pub(crate) fn make_promise(&self, promise: Promise) {
        let _ = self.promised.opened.set(promise);
    }

    /// Acknowledges writes once they are durable from now on, for a reason; none: as was promised.
    pub fn write_through(&self, reason: Option<String>) {
        let mut told = lock(&self.promised.reason);
        self.promised.is_through.store(reason.is_some(), Ordering::Release);
        *told = reason;
    }
}
