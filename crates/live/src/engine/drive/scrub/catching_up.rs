//! Catching up: a die that was away for some sessions and is back gets the units of rows that were
//! begun meanwhile, and keeps the others.
//!
//! ```text
//!   a die goes away ─► witness: fingerprint of the last header that it had
//!   it is back      ─► it has that header ─► units of rows begun before are there
//! ```
//!
//! No record of what was written is needed: each row says when it was begun.
//!
//! **Invariant**: what a medium holds counts only where the folder proves that it went away in a
//! state which the others were in, too. A die that went on without them has rows of the same
//! numbers that hold something else.

use device::DeviceError;

use crate::Medium;
use crate::engine::dies::header_copies::newest_header;
use crate::engine::drive::Drive;
use crate::engine::store::Store;
use crate::format::header::{Header, first_event};
use crate::format::row::{Member, RowEpoch};
use crate::mutants::{self, Mutant};

/// Units that a medium has which was the die before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldUnits {
    /// Count of events: units of rows that were begun before are there.
    rows_before: u64,
    /// True if all of them were durable when it went away.
    was_closed: bool,
}

/// A medium that is to take the place of a die, and the units that it has; none where it is empty.
pub(crate) type MediumAndUnits = (Box<dyn Medium>, Option<HeldUnits>);

impl Drive {
    /// The units that a medium has which is to take the place of a die; none where it is another
    /// medium, or not proven to be in a state that the drive was in.
    pub(crate) fn held_units(&self, die: usize, medium: &dyn Medium) -> Option<HeldUnits> {
        let store = self.store();
        let proof = store.dies.witness()?.proof()?;
        let departure = proof.departures.iter().find(|it| it.die == die)?;
        let own = newest_header(medium).ok().flatten()?;
        let has_left = own.drive == store.drive
            && own.die as usize == die
            && own.fingerprint() == departure.header_crc
            && own.version == proof.header.lost_since[die];
        let Header { session, is_open, .. } = own;
        let held = HeldUnits { rows_before: first_event(session + 1), was_closed: !is_open };
        has_left.then_some(held)
    }

    /// The rows of which a die that was away has its unit, in order.
    pub(super) fn rows_held(&self, die: usize, held: HeldUnits) -> Result<Vec<u32>, DeviceError> {
        let (core, layout) = (self.core()?, &self.store().layout);
        let has_unit = |row: u32, life: RowEpoch| {
            let position = layout.position(row, die, life.out);
            position.is_some() && life.seq < held.rows_before
        };
        let rows = core.rows.held().filter(|(row, life)| has_unit(*row, *life));
        Ok(rows.map(|(row, _)| row).collect())
    }
}

impl HeldUnits {
    /// True if the die has a unit as it should be: by its unit header, or where what was not
    /// durable may be gone, in every byte.
    pub(super) fn have(&self, store: &Store, member: Member, die: usize) -> bool {
        mutants::is(Mutant::AbsenceForgotten)
            || member.life.seq < self.rows_before && store.has_unit(member, die, !self.was_closed)
    }
}
