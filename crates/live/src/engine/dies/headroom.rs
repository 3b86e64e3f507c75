//! Space of the host beneath sparse dies: writes are refused before it runs out, and go on once
//! there is some again.
//!
//! A die that finds the host full in the middle of a program cannot go on before the drive is
//! opened again. So what is free is asked for ahead of that, each few rows that clients write.
//!
//! Invariants:
//! - Nothing has changed where a write is refused here.
//! - Dies that have all of their space are not asked for it again before some of it is given back.
//! - What a refused write lacked counts as lacking until the host has it, though smaller writes may
//!   go on meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use device::DeviceError;
use status::HostShortage;

use crate::engine::store::Store;
use crate::format::layout::PAGE_BYTES;

/// Rows that must be free on the host: what is written between two looks, relocation included, and
/// what others take meanwhile.
const ROWS_MIN: u64 = 16;
/// Share of those that clients write between two looks.
const LOOKS: u64 = 8;

/// State of the space of the host, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Headroom {
    /// Bytes that clients may write before the host is asked again.
    left: AtomicU64,
    /// Bytes of the largest write that was refused and that the host still has too little space
    /// for; zero: of none.
    refused: AtomicU64,
}

impl Headroom {
    /// Takes note that so many bytes are to be written.
    ///
    /// # Errors
    /// [`DeviceError::HostFull`] where the host has too little space for what follows.
    pub(crate) fn take(&self, store: &Store, bytes: u64) -> Result<(), DeviceError> {
        let take = |left: u64| left.checked_sub(bytes);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return Ok(());
        }
        let left = match store.dies.host_lacking(wanted(store, bytes)) {
            None => u64::MAX / 2,
            Some((needed, free)) if free < needed => {
                self.refused.fetch_max(bytes, Ordering::Relaxed);
                return Err(DeviceError::HostFull { needed, free });
            }
            Some(_) => rows_min(store) / LOOKS,
        };
        self.left.store(left, Ordering::Relaxed);
        Ok(())
    }

    /// Free space of the host that is too little for a write of one page, or for one that was
    /// refused; none where there is enough.
    pub(crate) fn shortage(&self, store: &Store) -> Option<HostShortage> {
        let refused = self.refused.load(Ordering::Relaxed);
        let lacking = store.dies.host_lacking(wanted(store, refused.max(PAGE_BYTES as u64)));
        if let Some((needed_bytes, free_bytes)) = lacking.filter(|(needed, free)| free < needed) {
            return Some(HostShortage { needed_bytes, free_bytes });
        }
        // A larger write that was refused meanwhile stays.
        let order = Ordering::Relaxed;
        let _ = self.refused.compare_exchange(refused, 0, order, order);
        None
    }

    /// Has the host be asked at the next write: space was given back to it.
    pub(crate) fn ask_again(&self) {
        self.left.store(0, Ordering::Relaxed);
    }
}

fn rows_min(store: &Store) -> u64 {
    let layout = &store.layout;
    ROWS_MIN * layout.unit_bytes as u64 * u64::from(layout.shape.dies)
}

/// Bytes that must be free for a write of so many: besides the rows what is to be written now, with
/// parity, and as much again that relocation moves for it.
fn wanted(store: &Store, bytes: u64) -> u64 {
    let shape = &store.layout.shape;
    let (dies, data_units) = (u64::from(shape.dies), u64::from(shape.data_units()));
    rows_min(store) + (2 * bytes * dies).div_ceil(data_units)
}
