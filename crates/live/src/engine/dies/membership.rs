//! Dies as members of their drive: the witness of what they must hold, and the part of each.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use status::StaleStart;

use super::Dies;
use crate::engine::dies::witness::{Proof, Witness};
use crate::format::header::Header;

impl Dies {
    /// Has changes of the headers noted by `witness` from now on.
    pub(crate) fn attach_witness(&self, witness: Arc<dyn Witness>) {
        assert!(self.witness.set(witness).is_ok(), "a drive has one witness");
    }

    /// As [`Dies::witness`], to outlive the dies.
    pub(crate) fn witness_shared(&self) -> Option<Arc<dyn Witness>> {
        self.witness.get().map(Arc::clone)
    }

    /// Proof, outside of the dies, of what they must hold, if there is any.
    pub(crate) fn witness(&self) -> Option<&dyn Witness> {
        self.witness.get().map(|witness| &**witness)
    }

    /// By die the time of the last write since the drive was opened, in seconds since 1970; 0:
    /// none.
    pub(crate) fn written_at(&self) -> Vec<u64> {
        self.traffic.iter().map(|it| it.written_at.load(Ordering::Relaxed)).collect()
    }

    /// As [`Dies::traffic`], with the part that each die has in the drive of this header.
    pub(crate) fn members(&self, header: &Header) -> Vec<status::Die> {
        let proof = self.witness().and_then(Witness::proof);
        let proof = proof.filter(|it| it.header.drive == header.drive);
        let mut proof = proof.unwrap_or_else(|| Proof::of(header));
        proof.note(&Header { lost: self.incomplete(), ..*header }, &self.written_at());
        let mut dies = self.traffic();
        for (die, member) in dies.iter_mut().zip(proof.members) {
            die.member = Some(member);
        }
        dies
    }

    /// The start from an earlier state that is still to be told, if there was one.
    pub(crate) fn stale_start(&self) -> Option<StaleStart> {
        self.witness()?.proof()?.stale_start
    }
}
