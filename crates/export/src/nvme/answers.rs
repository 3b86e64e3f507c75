//! Answers: completions and data for a host, over any transport.
//!
//! ```text
//!   begin_read ──► buffers ──► the device fills them ──► finish_reads ──► data, completion
//!   complete, deliver ──────────────────────────────────────────────────────► completion
//! ```
//!
//! The transport decides where data goes (a PDU, pages of a virtual machine) and how completions
//! are written.

use super::command::Command;
use super::status::Status;

/// Completions, and data for the host before them, of one queue.
pub(crate) trait Answers {
    /// Completes a command; `value` is dwords 0 and 1. No read may be under way.
    fn complete(&mut self, id: u16, status: Status, value: u64);

    /// Copies data to where a command wants it, and completes the command; with the transport's own
    /// error status if the command has no valid place for it.
    fn deliver(&mut self, command: &Command, data: &[u8], value: u64);

    /// Makes room for the `bytes` of a read, after those of earlier reads.
    ///
    /// # Errors
    /// Fails with the status of a read that has no valid place for them; no room is made then.
    fn begin_read(&mut self, command: &Command, bytes: usize) -> Result<(), Status>;

    /// The buffers of the reads that have begun, in their order, for the device to fill.
    fn buffers(&mut self) -> Vec<&mut [u8]>;

    /// Completes the first `good` of the reads that have begun with success and the data in their
    /// buffers, and forgets the others as if they had not begun.
    fn finish_reads(&mut self, good: usize);
}
