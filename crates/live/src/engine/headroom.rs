//! Space of the host beneath sparse dies: writes are refused before it runs out, and go on once
//! there is some again.
//!
//! A die that finds the host full in the middle of a program cannot go on before the drive is
//! opened again. So what is free is asked for ahead of that, each few rows that clients write.
//!
//! Invariants:
//! - Nothing has changed where a write is refused here.
//! - Dies that have all of their space are not asked for it again before some of it is given back.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::DeviceError;
use crate::engine::store::Store;

/// Rows that must be free on the host: what is written between two looks, relocation included, and
/// what others take meanwhile.
const ROWS_MIN: u64 = 16;
/// Share of those that clients write between two looks.
const LOOKS: u64 = 8;

/// Bytes that clients may write before the host is asked again.
#[derive(Debug, Default)]
pub(crate) struct Headroom(AtomicU64);

impl Headroom {
    /// Takes note that so many bytes are to be written.
    ///
    /// # Errors
    /// [`DeviceError::HostFull`] where the host has too little space for what follows.
    pub(crate) fn take(&self, store: &Store, bytes: u64) -> Result<(), DeviceError> {
        let take = |left: u64| left.checked_sub(bytes);
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return Ok(());
        }
        let left = match store.dies.host_lacking(wanted(store, bytes)) {
            None => u64::MAX / 2,
            Some((needed, free)) if free < needed => {
                return Err(DeviceError::HostFull { needed, free });
            }
            Some(_) => rows_min(store) / LOOKS,
        };
        self.0.store(left, Ordering::Relaxed);
        Ok(())
    }

    /// Has the host be asked at the next write: space was given back to it.
    pub(crate) fn ask_again(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

fn rows_min(store: &Store) -> u64 {
    let layout = &store.layout;
    ROWS_MIN * layout.unit_bytes as u64 * u64::from(layout.shape.dies)
}

/// Bytes that must be free for a write of so many: besides the rows what is to be written now, with
/// parity, and as much again that relocation moves for it.
pub(crate) fn wanted(store: &Store, bytes: u64) -> u64 {
    let shape = &store.layout.shape;
    let (dies, data_units) = (u64::from(shape.dies), u64::from(shape.data_units()));
    rows_min(store) + (2 * bytes * dies).div_ceil(data_units)
}
