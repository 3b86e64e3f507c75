//! A device in memory, which a crash empties: for trying clients, and to test exports with.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Allocation, Device, DeviceError, Durability, ReadPart};

const BLOCK_BYTES: usize = 4096;
/// Blocks of a chunk, 2 MiB.
const CHUNK_BLOCKS: usize = 512;

type Block = [u8; BLOCK_BYTES];

/// A device whose blocks of 4 KiB take memory once they are written.
#[derive(Debug)]
pub struct MemoryDevice {
    size: u64,
    blocks: RwLock<Blocks>,
}

/// Blocks that were written, by chunks: a search among few chunks stays in the processor's cache,
/// where one among all blocks would miss it at each step.
#[derive(Debug, Default)]
struct Blocks {
    chunks: BTreeMap<u64, Vec<Option<Box<Block>>>>,
    /// Blocks that take memory.
    stored: u64,
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
        Self { size, blocks: RwLock::new(Blocks::new()) }
    }

    /// Bytes of the blocks that take memory.
    pub fn stored_bytes(&self) -> u64 {
        self.shared().stored * BLOCK_BYTES as u64
    }

    fn shared(&self) -> RwLockReadGuard<'_, Blocks> {
        self.blocks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Blocks> {
        self.blocks.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blocks {
    const fn new() -> Self {
        Self { chunks: BTreeMap::new(), stored: 0 }
    }

    fn get(&self, block: u64) -> Option<&Block> {
        let (chunk, index) = place(block);
        self.chunks.get(&chunk)?[index].as_deref()
    }

    fn get_mut(&mut self, block: u64) -> Option<&mut Block> {
        let (chunk, index) = place(block);
        self.chunks.get_mut(&chunk)?[index].as_deref_mut()
    }

    /// The block, of zeroes if it took no memory.
    fn get_or_insert(&mut self, block: u64) -> &mut Block {
        let (chunk, index) = place(block);
        let chunk = self.chunks.entry(chunk).or_insert_with(|| vec![None; CHUNK_BLOCKS]);
        chunk[index].get_or_insert_with(|| {
            self.stored += 1;
            Box::new([0; BLOCK_BYTES])
        })
    }

    /// Forgets the blocks from `first` to the one before `end`.
    fn forget(&mut self, first: u64, end: u64) {
        let mut empty = Vec::new();
        let chunks = first / CHUNK_BLOCKS as u64..end.div_ceil(CHUNK_BLOCKS as u64);
        for (number, chunk) in self.chunks.range_mut(chunks) {
            let start = number * CHUNK_BLOCKS as u64;
            let within = |block: u64| {
                let index = block.saturating_sub(start).min(CHUNK_BLOCKS as u64);
                usize::try_from(index).expect("within the chunk")
            };
            for block in &mut chunk[within(first)..within(end)] {
                self.stored -= u64::from(block.take().is_some());
            }
            if chunk.iter().all(Option::is_none) {
                empty.push(*number);
            }
        }
        for number in empty {
            self.chunks.remove(&number);
        }
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) {
        let mut rest = &mut *buffer;
        for Part { block, from, length } in parts(offset, rest.len() as u64) {
            let (here, after) = rest.split_at_mut(length);
            match self.get(block) {
                Some(stored) => here.copy_from_slice(&stored[from..from + length]),
                None => here.fill(0),
            }
            rest = after;
        }
    }
}

/// The chunk of a block, and its index there.
fn place(block: u64) -> (u64, usize) {
    let index = usize::try_from(block % CHUNK_BLOCKS as u64).expect("within the chunk");
    (block / CHUNK_BLOCKS as u64, index)
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
        self.shared().read(offset, buffer);
        Ok(())
    }

    fn read_many(&self, reads: &mut [ReadPart<'_>]) -> Vec<Result<(), DeviceError>> {
        let blocks = self.shared();
        let answers = reads.iter_mut().map(|ReadPart { offset, buffer }| {
            self.check_range(*offset, buffer.len() as u64)?;
            blocks.read(*offset, buffer);
            Ok(())
        });
        answers.collect()
    }

    fn write(&self, offset: u64, bytes: &[u8], _: Durability) -> Result<(), DeviceError> {
        self.check_range(offset, bytes.len() as u64)?;
        let mut blocks = self.exclusive();
        let mut rest = bytes;
        for Part { block, from, length } in parts(offset, bytes.len() as u64) {
            let (here, after) = rest.split_at(length);
            let stored = blocks.get_or_insert(block);
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
        // What lies before the whole blocks and behind them; all of a range within one block.
        let (head, tail) = if first <= end {
            let (head, tail) = (first * BLOCK_BYTES as u64, end * BLOCK_BYTES as u64);
            blocks.forget(first, end);
            (head - offset, offset + length - tail)
        } else {
            (length, 0)
        };
        for Part { block, from, length } in
            parts(offset, head).chain(parts(offset + length - tail, tail))
        {
            if let Some(stored) = blocks.get_mut(block) {
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
            let (length, is_stored) = (length as u64, blocks.get(block).is_some());
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
    fn only_blocks_with_data_take_memory_wherever_they_lie() {
        let chunk = (CHUNK_BLOCKS * BLOCK_BYTES) as u64;
        let device = MemoryDevice::new(1 << 60);
        for offset in [0, chunk - 6000, chunk * 7, (1 << 60) - 4096] {
            device.write(offset, &[9; 4096], Durability::Volatile).unwrap();
        }
        assert_eq!(device.stored_bytes(), 5 * 4096);
        let (mut across, mut hole) = ([0; 8192], [1; 10]);
        let reads = &mut [
            ReadPart { offset: chunk - 8192, buffer: &mut across },
            ReadPart { offset: chunk * 3, buffer: &mut hole },
            ReadPart { offset: 1 << 60, buffer: &mut [0] },
        ];
        let answers = device.read_many(reads);
        assert!(answers[0].is_ok() && answers[1].is_ok());
        assert!(matches!(answers[2], Err(DeviceError::OutOfRange { .. })));
        let nines = across.iter().position(|byte| *byte == 9).unwrap();
        assert!(across[nines..][..4096].iter().all(|byte| *byte == 9));
        assert_eq!(nines, 2192);
        assert_eq!(across[nines + 4096..], [0; 8192 - 2192 - 4096]);
        assert_eq!(hole, [0; 10]);
        device.trim(chunk - 4096, chunk * 6 + 4096, Durability::Volatile).unwrap();
        assert_eq!(device.stored_bytes(), 4 * 4096);
        device.trim(0, 1 << 60, Durability::Volatile).unwrap();
        assert_eq!(device.stored_bytes(), 0);
        assert!(device.shared().chunks.is_empty());
    }

    #[test]
    fn a_range_beyond_the_end_is_refused() {
        let device = MemoryDevice::new(4096);
        let refused = device.write(4000, &[1; 97], Durability::Volatile);
        assert!(matches!(refused, Err(DeviceError::OutOfRange { size: 4096, .. })));
        assert!(device.check_range(u64::MAX, 2).is_err());
    }
}
