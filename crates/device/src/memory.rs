//! A device in memory, which a crash empties: for trying clients, and to test exports with.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Allocation, Device, DeviceError, Durability};

const BLOCK_BYTES: usize = 4096;

type Blocks = BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>;

/// A device whose blocks of 4 KiB take memory once they are written.
#[derive(Debug)]
pub struct MemoryDevice {
    size: u64,
    blocks: RwLock<Blocks>,
}

/// The part of one block that a range covers.
struct Part {
    block: u64,
    /// First byte within the block.
    from: usize,
    length: usize,
}

impl MemoryDevice {
    /// A device of `size` bytes, all zeroes.
    pub const fn new(size: u64) -> Self {
        Self { size, blocks: RwLock::new(BTreeMap::new()) }
    }

    /// Bytes of the blocks that take memory.
    pub fn stored_bytes(&self) -> u64 {
        self.shared().len() as u64 * BLOCK_BYTES as u64
    }

    fn shared(&self) -> RwLockReadGuard<'_, Blocks> {
        self.blocks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Blocks> {
        self.blocks.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The blocks that `length` bytes from `offset` on lie in.
fn parts(offset: u64, length: u64) -> impl Iterator<Item = Part> {
    let mut at = offset;
    let end = offset + length;
    std::iter::from_fn(move || {
        let block = at / BLOCK_BYTES as u64;
        let until = end.min((block + 1) * BLOCK_BYTES as u64);
        let from = usize::try_from(at % BLOCK_BYTES as u64).ok()?;
        let length = usize::try_from(until.checked_sub(at)?).ok().filter(|length| *length > 0)?;
        at = until;
        Some(Part { block, from, length })
    })
}

impl Device for MemoryDevice {
    fn size(&self) -> u64 {
        self.size
    }

    /// Nothing survives a crash, in parts or whole; and no other command sees a write in parts.
    fn atomic_bytes(&self) -> u64 {
        BLOCK_BYTES as u64
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.check_range(offset, buffer.len() as u64)?;
        let blocks = self.shared();
        let mut rest = &mut *buffer;
        for Part { block, from, length } in parts(offset, rest.len() as u64) {
            let (here, after) = rest.split_at_mut(length);
            match blocks.get(&block) {
                Some(stored) => here.copy_from_slice(&stored[from..from + length]),
                None => here.fill(0),
            }
            rest = after;
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8], _: Durability) -> Result<(), DeviceError> {
        self.check_range(offset, bytes.len() as u64)?;
        let mut blocks = self.exclusive();
        let mut rest = bytes;
        for Part { block, from, length } in parts(offset, bytes.len() as u64) {
            let (here, after) = rest.split_at(length);
            let stored = blocks.entry(block).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            stored[from..from + length].copy_from_slice(here);
            rest = after;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn trim(&self, offset: u64, length: u64, _: Durability) -> Result<(), DeviceError> {
        self.check_range(offset, length)?;
        let (first, end) =
            (offset.div_ceil(BLOCK_BYTES as u64), (offset + length) / BLOCK_BYTES as u64);
        let mut blocks = self.exclusive();
        if first < end {
            let mut after = blocks.split_off(&first);
            blocks.append(&mut after.split_off(&end));
        }
        for Part { block, from, length } in
            parts(offset, length).filter(|it| it.length < BLOCK_BYTES)
        {
            if let Some(stored) = blocks.get_mut(&block) {
                stored[from..from + length].fill(0);
            }
        }
        Ok(())
    }

    fn allocations(&self, offset: u64, length: u64) -> Result<Vec<Allocation>, DeviceError> {
        self.check_range(offset, length)?;
        let blocks = self.shared();
        let mut runs: Vec<Allocation> = Vec::new();
        for Part { block, length, .. } in parts(offset, length) {
            let (length, is_stored) = (length as u64, blocks.contains_key(&block));
            match runs.last_mut().filter(|run| run.is_stored == is_stored) {
                Some(run) => run.length += length,
                None => runs.push(Allocation { length, is_stored }),
            }
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_trimmed_reads_as_zeroes_and_is_not_stored() {
        let device = MemoryDevice::new(1 << 16);
        device.write(1000, &vec![7; 20_000], Durability::Volatile).unwrap();
        device.trim(5000, 10_000, Durability::Volatile).unwrap();
        let mut back = vec![1; 1 << 16];
        device.read(0, &mut back).unwrap();
        let is_written = |at: usize| (1000..5000).contains(&at) || (15_000..21_000).contains(&at);
        for (at, byte) in back.iter().enumerate() {
            assert_eq!(*byte, if is_written(at) { 7 } else { 0 }, "byte {at}");
        }
        let runs: Vec<_> = device.allocations(0, 1 << 16).unwrap();
        let lengths: Vec<_> = runs.iter().map(|run| (run.length, run.is_stored)).collect();
        assert_eq!(lengths, [(8192, true), (4096, false), (12_288, true), (40_960, false)]);
    }

    #[test]
    fn a_range_beyond_the_end_is_refused() {
        let device = MemoryDevice::new(4096);
        let refused = device.write(4000, &[1; 97], Durability::Volatile);
        assert!(matches!(refused, Err(DeviceError::OutOfRange { size: 4096, .. })));
        assert!(device.check_range(u64::MAX, 2).is_err());
    }
}
