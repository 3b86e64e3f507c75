//! Programs of units: decided by the core under its lock, carried out without it.

use std::sync::Arc;

use crate::format::layout::UNIT_HEADER_BYTES;
use crate::format::unit::{UnitHeader, exclusive_or};

/// Bytes of a parity unit that are added up before the next ones: of every unit of a row they fit
/// into the nearest cache.
const PARITY_CHUNK_BYTES: usize = 4096;

/// A row that is being filled, as programs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowId {
    pub(crate) row: u32,
    /// Count of events when it was begun.
    pub(crate) seq: u64,
}

/// A unit to be programmed.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) of: RowId,
    pub(crate) die: usize,
    /// Offset of the unit on its die, in bytes.
    pub(crate) offset: u64,
    pub(crate) contents: Contents,
}

/// Contents of a unit to be programmed.
#[derive(Debug)]
pub(crate) enum Contents {
    /// A finished data unit.
    Data(Arc<Vec<u8>>),
    /// The exclusive or of the data units of a row, under a header of its own.
    Parity { header: UnitHeader, units: Vec<Arc<Vec<u8>>> },
}

impl Contents {
    /// The bytes of the unit; those of parity are made in `memory`.
    pub(crate) fn bytes<'a>(&'a self, memory: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Self::Data(bytes) => bytes,
            Self::Parity { header, units } => {
                add_up(units, memory);
                let body_crc = crc32c::crc32c(&memory[UNIT_HEADER_BYTES..]);
                UnitHeader { body_crc, ..*header }.write(memory);
                memory
            }
        }
    }
}

/// Writes the exclusive or of `units` to `sum`, whatever that holds.
fn add_up(units: &[Arc<Vec<u8>>], sum: &mut Vec<u8>) {
    let (first, others) = units.split_first().expect("a row has a data unit");
    sum.resize(first.len(), 0);
    for from in (0..first.len()).step_by(PARITY_CHUNK_BYTES) {
        let range = from..first.len().min(from + PARITY_CHUNK_BYTES);
        sum[range.clone()].copy_from_slice(&first[range.clone()]);
        for other in others {
            assert_eq!(other.len(), first.len(), "units of a row are of one length");
            exclusive_or(&mut sum[range.clone()], &other[range.clone()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_is_the_sum_of_all_units_in_every_chunk() {
        let unit = |factor: usize| {
            let byte = |at: usize| u8::try_from(at * factor % 251).unwrap();
            Arc::new((0..2 * PARITY_CHUNK_BYTES + 100).map(byte).collect::<Vec<u8>>())
        };
        let units = [unit(3), unit(5), unit(7)];
        let mut sum = vec![9; 10];
        add_up(&units, &mut sum);
        assert_eq!(sum.len(), units[0].len());
        for (at, byte) in sum.iter().enumerate() {
            assert_eq!(*byte, units[0][at] ^ units[1][at] ^ units[2][at], "byte {at}");
        }
    }
}
