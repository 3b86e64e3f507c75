//! Rows in which a read found damage that parity hides: written again soon after, some at a time,
//! so that the next die that fails finds nothing missing.

use device::DeviceError;
use status::{Damage, FoundBy};

use super::ScrubResult;
use crate::engine::drive::Drive;

/// Rows that are written again at a time.
const ROWS_AT_ONCE: usize = 16;

impl Drive {
    /// Writes again what is damaged of a few of the rows in which reads found damage. Nothing is
    /// read where they found none, and nothing is written while a die does not respond: what it
    /// does not give out is no damage, and a die that fails every read is to be replaced, not
    /// written to.
    ///
    /// # Errors
    /// As [`Drive::scrub`]; the rows are tried again then.
    pub fn mend_suspects(&self) -> Result<(), DeviceError> {
        let rows = self.store().suspects.rows(ROWS_AT_ONCE);
        if rows.is_empty() || !self.all_dies_respond() {
            return Ok(());
        }
        let mut found = ScrubResult::default();
        for row in &rows {
            self.scrub_row(*row, true, &mut found)?;
            self.store().suspects.forget(*row);
        }
        self.maintenance().units_mended += found.units_restored;
        let by_read = |damage: Damage| Damage { found_by: FoundBy::Read, ..damage };
        let damage: Vec<Damage> = found.damage.into_iter().map(by_read).collect();
        self.store().suspects.tell(&damage);
        if found.units_restored > 0 {
            self.sync_healthy()?;
        }
        if found.units_vacated > 0 {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Takes the damage that was found since this was asked last.
    pub(crate) fn take_damage(&self) -> Vec<Damage> {
        self.store().suspects.take_told()
    }

    /// Sets how many damaged places of a die in an hour are no problem; 20 unless it is set.
    pub fn limit_damage(&self, places_an_hour: u64) {
        self.store().dies.limit_damage(places_an_hour);
    }

    /// The first die of which reads found more damage in the last hour than is no problem: there is
    /// more that no read sees, of parity for example.
    pub(crate) fn die_over_damage_limit(&self) -> Option<usize> {
        self.store().dies.over_damage_limit()
    }

    /// Attends to what should not wait for a client: makes durable which pages are known to be
    /// lost, has the folder prove what is in the journal after half a second of rest, writes rows
    /// again in which reads found damage, looks whether dies that did not respond do so again, and
    /// empties superblocks with bad places. To be called about twice a second.
    ///
    /// # Errors
    /// As [`Drive::keep_losses`] and [`Drive::mend_suspects`].
    pub fn attend(&self) -> Result<(), DeviceError> {
        self.keep_losses()?;
        self.store().witness_batches_at_rest();
        self.store().dies.look_for_silent();
        let mended = self.mend_suspects();
        self.spare_bad_places()?;
        mended
    }
}
