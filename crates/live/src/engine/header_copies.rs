//! The two copies of a header on each die: written in turn, so that one is whole at any moment.

use std::io;

use crate::engine::dies::{Dies, die_number, medium_error};
use crate::format::die_set::DieSet;
use crate::format::header::{Header, Unfit};
use crate::format::layout::{HEADER_BYTES, PAGE_BYTES};
use crate::mutants::{self, Mutant};
use crate::{DeviceError, Medium};

impl Header {
    /// Makes a medium no die of any drive, durably.
    pub(crate) fn erase(medium: &dyn Medium) -> io::Result<()> {
        medium.write_at(0, &[0; 2 * PAGE_BYTES])?;
        medium.sync()
    }

    /// As [`Header::write`], going on without dies that fail, as far as that is possible.
    pub(crate) fn write_to_all(&mut self, dies: &Dies) -> Result<(), DeviceError> {
        loop {
            match self.write(dies) {
                Err((die, error)) if dies.lose_for(die, &error) => {}
                Err((die, error)) => {
                    return Err(medium_error(format!("writing the header of die {die}"))(error));
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Writes this header to both copies of every die that has not failed, as its newest, and makes
    /// it durable.
    ///
    /// Dies that were lost come first: one that has just been replaced may have no header yet, and
    /// must not be missing when the others say that it is there. Their first copy says that they
    /// shared what was everywhere when they were lost, and nothing since: should the others never
    /// get theirs, that header proves nothing about data.
    ///
    /// # Errors
    /// The first die that cannot be written.
    pub(crate) fn write(&mut self, dies: &Dies) -> Result<(), (usize, io::Error)> {
        assert_eq!(dies.count(), self.shape.dies as usize, "a header knows its dies");
        let (were_lost, lost_since) = (self.lost, self.lost_since);
        self.note_lost(dies.incomplete());
        self.removed = dies.removed();
        self.left_out = DieSet(self.left_out.0 | self.lost.0);
        let (first, others): (Vec<usize>, Vec<usize>) =
            dies.healthy().partition(|die| were_lost.has(*die));
        let order: Vec<usize> = first.into_iter().chain(others).collect();
        let copies = if mutants::is(Mutant::OneHeaderCopy) { 1 } else { 2 };
        for copy in 0..copies {
            self.version += 1;
            assert!(self.version_everywhere < self.version, "versions rise");
            let is_joining = |die| copy == 0 && were_lost.has(die);
            self.write_copy(dies, &order, |die| is_joining(die).then(|| lost_since[die]))?;
            // The second copy can say that every die has the first one.
            self.version_everywhere = self.version;
        }
        // Before anything is written that relies on it.
        if let Some(witness) = dies.witness() {
            witness.note_header(self, &dies.written_at());
        }
        Ok(())
    }

    /// Writes one copy of each of these dies, the one that is torn or older. `shared` is the last
    /// version that was everywhere with a die, where it is not that of the others.
    fn write_copy(
        &mut self,
        dies: &Dies,
        order: &[usize],
        shared: impl Fn(usize) -> Option<u64>,
    ) -> Result<(), (usize, io::Error)> {
        let everywhere = self.version_everywhere;
        for die in order.iter().copied() {
            self.die = die_number(die);
            let version_everywhere = shared(die).unwrap_or(everywhere).min(everywhere);
            let own = Self { version_everywhere, ..*self };
            assert!(self.die < self.shape.dies, "a header is written to a die of the drive");
            assert!(own.check().is_ok(), "a header that is written can be read back");
            let place = self.stale_copy(dies, die) * HEADER_BYTES;
            // The other copy may have been read, and yet not be durable.
            dies.sync(die)
                .and_then(|()| dies.write(die, place, &own.encode()))
                .and_then(|()| dies.sync(die))
                .map_err(|error| (die, error))?;
        }
        Ok(())
    }

    /// The copy on a die that is written over: one that is torn, or of another drive, or else the
    /// older one. So a die keeps the newest that it has, however often the power goes.
    fn stale_copy(&self, dies: &Dies, die: usize) -> u64 {
        let version = |copy: u64| {
            let header = header_copy(|bytes| dies.peek(die, copy * HEADER_BYTES, bytes));
            let is_own = |it: &Self| (it.drive, it.die) == (self.drive, self.die);
            header.ok().flatten().filter(is_own).map(|it| it.version)
        };
        u64::from(version(0) > version(1))
    }
}

/// Reads and decodes one copy of a header; none if the bytes are no header or cannot be read.
pub(crate) fn header_copy(
    read: impl FnOnce(&mut [u8]) -> io::Result<()>,
) -> Result<Option<Header>, Unfit> {
    let mut bytes = vec![0; usize::try_from(HEADER_BYTES).expect("a page")];
    if read(&mut bytes).is_err() { Ok(None) } else { Header::parse(&bytes) }
}
