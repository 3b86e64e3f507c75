//! Transfers of blocks from and to a class.

use crate::policy::Class;
use crate::queues::Block;

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the class.
    Read,
    /// To the class.
    Write,
    /// Neither: the class forgets the blocks.
    Trim,
}

/// Consecutive blocks of a class that are read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Class of the blocks.
    pub class: Class,
    /// Direction.
    pub direction: Direction,
    /// First block, by its place on the class.
    pub first: Block,
    /// Blocks of 4 KiB, at least one.
    pub blocks: u32,
}

/// Adds one block, to the last transfer where it follows.
pub(crate) fn push(
    transfers: &mut Vec<Transfer>,
    class: Class,
    direction: Direction,
    place: Block,
) {
    if let Some(last) = transfers.last_mut()
        && (last.class, last.direction) == (class, direction)
        && u64::from(last.first) + u64::from(last.blocks) == u64::from(place)
    {
        last.blocks += 1;
        return;
    }
    transfers.push(Transfer { class, direction, first: place, blocks: 1 });
}
