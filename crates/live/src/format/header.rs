//! The header of a die: which drive it belongs to, and how that is arranged.
//!
//! Each die holds two copies at its beginning, and one at its end. A change is written to the one
//! copy of every die and made durable, then to the other and to the one at the end, so that one is
//! whole at any moment, and damage to any never brings an earlier state back. A header says which
//! version every die had before it was written; a die that has only older ones is **stale**: it
//! holds an earlier state of the drive, and counts as missing.

use ftl::ConfigError;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Shape;
use crate::format::checkpoint_header::{CheckpointHeader, NUMBER_MAX};
use crate::format::compress;
use crate::format::die_set::DieSet;
use crate::format::encoding::{U32, U64, is_sealed, prefix, seal};
use crate::format::key_area::{KeyArea, KeyAreaBytes};
use crate::format::layout::{DIES_MAX, HEADER_BYTES};
use crate::format::position::Position;
use crate::mutants::{self, Mutant};

const MAGIC: &[u8; 16] = b"floatgate die\0\0\0";
/// Version of everything on a die.
pub(crate) const FORMAT_VERSION: u32 = 5;
/// Version of an encrypted drive, which is the same but for its payloads and the keys in headers.
pub(crate) const FORMAT_VERSION_ENCRYPTED: u32 = 6;
/// The oldest version that is read, and becomes the newest one when a header is written.
pub(crate) const FORMAT_VERSION_MIN: u32 = 4;
/// The first version with a header at the end of each die.
const FORMAT_VERSION_WITH_END: u32 = 5;

/// Header of a die as bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct DieHeaderBytes {
    magic: [u8; 16],
    format: U32,
    die: U32,
    dies: U32,
    is_protected: U32,
    unit_pages: U32,
    rows: U32,
    superblocks: U32,
    extents_per_page: U32,
    pages_logical: U32,
    pages_stored_max: U32,
    compression: U32,
    is_open: U32,
    journal_bytes: U64,
    drive: U64,
    version: U64,
    session: U64,
    lost: U64,
    unsafe_shutdowns: U64,
    removed: U64,
    left_out: U64,
    pages_mappable: U64,
    closing_checkpoint: U64,
    closing_at: U64,
    closing_number: U64,
    closing_link: U32,
    after_link: U32,
    version_everywhere: U64,
    lost_since: [U64; DIES_MAX as usize],
    keys: KeyAreaBytes,
    zeroes: [u8; 2956],
    crc: U32,
}

const _: () = assert!(size_of::<DieHeaderBytes>() as u64 == HEADER_BYTES, "as long as it is");

/// Header of a die: the drive that it belongs to, and the state of that drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Version of everything on the dies.
    pub(crate) format: u32,
    /// Drawn when the drive was created.
    pub(crate) drive: u64,
    pub(crate) die: u32,
    pub(crate) shape: Shape,
    /// Number of this change of the header, counted up.
    pub(crate) version: u64,
    /// Number of the last change that had reached every die before this one was begun.
    pub(crate) version_everywhere: u64,
    /// Number of openings; 1 is that of creating it.
    pub(crate) session: u64,
    /// True if a process has the drive open, or had when it crashed.
    pub(crate) is_open: bool,
    /// Dies that are offline or missing.
    pub(crate) lost: DieSet,
    /// By die, of those in `lost` the last version in which it took part; 0: it is not known. A die
    /// whose own header is newer was in use without the others.
    pub(crate) lost_since: [u64; DIES_MAX as usize],
    /// Dies among `lost` that no row in use has a unit on.
    pub(crate) removed: DieSet,
    /// Dies that some row may leave out.
    pub(crate) left_out: DieSet,
    /// Openings of a drive that had not been closed.
    pub(crate) unsafe_shutdowns: u64,
    /// Checkpoint and end of the journal when the drive was last closed; zero if it was recovered
    /// since.
    pub(crate) closing: Closing,
    /// Wrapped keys of an encrypted drive.
    pub(crate) keys: KeyArea,
}

/// Most openings of a drive: orders of events begin with the number of the opening.
pub(crate) const SESSION_MAX: u64 = (1 << 24) - 2;

/// Distance between the first sequence numbers of two sessions that follow each other.
pub(crate) const SESSION_EVENTS: u64 = 1 << 40;

/// The number of the session that follows `session`, whose last checkpoint was taken at `seq`. A
/// session of more than [`SESSION_EVENTS`] uses sequence numbers of later ones: these are skipped.
/// Since that checkpoint there were far fewer events than half of that.
pub(crate) fn next_session(session: u64, seq: u64) -> u64 {
    (session + 1).max((seq + SESSION_EVENTS / 2) / SESSION_EVENTS + 1)
}

/// The first sequence number of a session.
pub(crate) const fn first_event(session: u64) -> u64 {
    session * SESSION_EVENTS + 1
}
/// Most changes of headers.
const VERSION_MAX: u64 = 1 << 62;

/// Reason why a header with a valid checksum cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// The header is of another format version.
    #[error("it has format {0}")]
    Version(u32),
    /// The parameters of the drive are impossible.
    #[error(transparent)]
    Shape(#[from] ConfigError),
    /// A value is impossible.
    #[error("{name} is {value}, which is invalid")]
    Claim {
        /// Name of the value.
        name: &'static str,
        /// Value that was found.
        value: u64,
    },
}

/// State from which opening a closed drive goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closing {
    /// Number of the checkpoint that has everything; 0: there is none.
    pub(crate) checkpoint: u64,
    /// Position of the next batch of the journal.
    pub(crate) journal: Position,
}

impl Closing {
    /// True if `checkpoint` is the one named here, and the journal may have ended here after it.
    pub(crate) const fn follows(&self, checkpoint: &CheckpointHeader, journal_bytes: u64) -> bool {
        let (from, until) = (checkpoint.journal, self.journal);
        checkpoint.number == self.checkpoint
            && from.at <= until.at
            && until.at - from.at <= journal_bytes
            && from.number <= until.number
    }
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (shape, closing) = (&self.shape, &self.closing);
        let header = DieHeaderBytes {
            magic: *MAGIC,
            format: self.format.into(),
            die: self.die.into(),
            dies: shape.dies.into(),
            is_protected: u32::from(shape.is_protected).into(),
            unit_pages: shape.unit_pages.into(),
            rows: shape.rows.into(),
            superblocks: shape.superblocks.into(),
            extents_per_page: shape.extents_per_page.into(),
            pages_logical: shape.pages_logical.into(),
            pages_stored_max: shape.pages_stored_max.into(),
            compression: compress::number(shape.compression).into(),
            is_open: u32::from(self.is_open).into(),
            journal_bytes: shape.journal_bytes.into(),
            drive: self.drive.into(),
            version: self.version.into(),
            session: self.session.into(),
            lost: self.lost.0.into(),
            unsafe_shutdowns: self.unsafe_shutdowns.into(),
            removed: self.removed.0.into(),
            left_out: self.left_out.0.into(),
            pages_mappable: u64::from(shape.pages_mappable).into(),
            closing_checkpoint: closing.checkpoint.into(),
            closing_at: closing.journal.at.into(),
            closing_number: closing.journal.number.into(),
            closing_link: closing.journal.link.into(),
            after_link: U32::ZERO,
            version_everywhere: self.version_everywhere.into(),
            lost_since: self.lost_since.map(U64::from),
            keys: self.keys.encode(),
            zeroes: [0; 2956],
            crc: U32::ZERO,
        };
        let mut bytes = header.as_bytes().to_vec();
        seal(&mut bytes);
        bytes
    }

    /// True if payloads are encrypted.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.format >= FORMAT_VERSION_ENCRYPTED
    }

    /// True if dies of this format have a copy of their header at their end.
    pub(crate) const fn has_end_copy(&self) -> bool {
        self.format >= FORMAT_VERSION_WITH_END
    }

    /// The wrapped keys in the bytes of a copy, whole or not; none of bytes that begin as no
    /// header does, and have nothing in their place.
    pub(crate) fn key_bytes(bytes: &[u8]) -> Option<KeyAreaBytes> {
        let found = prefix::<DieHeaderBytes>(bytes)?;
        let has_keys = found.keys.as_bytes().iter().any(|byte| *byte != 0);
        (Self::is_begun(bytes) || has_keys).then_some(found.keys)
    }

    /// True if bytes begin as a header does, whole or not.
    pub(crate) fn is_begun(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Decodes one copy; none if the bytes are no header, or an incomplete one.
    ///
    /// # Errors
    /// Fails if it is one of another format, or says what cannot be.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, Unfit> {
        let is_whole = bytes.len() as u64 == HEADER_BYTES && is_sealed(bytes);
        let Some(found) =
            prefix::<DieHeaderBytes>(bytes).filter(|it| is_whole && it.magic == *MAGIC)
        else {
            return Ok(None);
        };
        let format = found.format.get();
        if !(FORMAT_VERSION_MIN..=FORMAT_VERSION_ENCRYPTED).contains(&format) {
            return Err(Unfit::Version(format));
        }
        // Earlier formats have nothing there.
        let area = found.keys;
        let keys = if format < FORMAT_VERSION_ENCRYPTED {
            KeyArea::default()
        } else {
            KeyArea::parse(&area).ok_or(Unfit::Claim { name: "keys", value: 0 })?
        };
        let header = Self {
            format,
            keys,
            drive: found.drive.get(),
            die: found.die.get(),
            shape: found.shape()?,
            version: found.version.get(),
            version_everywhere: found.version_everywhere.get(),
            session: found.session.get(),
            is_open: found.is_open != 0,
            lost: DieSet(found.lost.get()),
            lost_since: found.lost_since.map(U64::get),
            unsafe_shutdowns: found.unsafe_shutdowns.get(),
            removed: DieSet(found.removed.get()),
            left_out: DieSet(found.left_out.get()),
            closing: Closing {
                checkpoint: found.closing_checkpoint.get(),
                journal: Position {
                    at: found.closing_at.get(),
                    number: found.closing_number.get(),
                    link: found.closing_link.get(),
                },
            },
        };
        header.check()?;
        Ok(Some(header))
    }

    /// Checks what a header says beside the arrangement.
    pub(crate) fn check(&self) -> Result<(), Unfit> {
        let shape = &self.shape;
        let dies = shape.all_dies();
        let Closing { checkpoint, journal } = self.closing;
        let everywhere = self.version_everywhere;
        let lost_since = self.lost_since.into_iter().max().expect("of each die");
        let claims = [
            ("die", u64::from(self.die), self.die < shape.dies),
            ("session", self.session, (1..=SESSION_MAX).contains(&self.session)),
            ("version", self.version, self.version <= VERSION_MAX),
            ("version_everywhere", everywhere, everywhere < self.version),
            ("lost_since", lost_since, lost_since < self.version),
            ("unsafe_shutdowns", self.unsafe_shutdowns, self.unsafe_shutdowns < self.session),
            ("lost", self.lost.0, dies.has_all(self.lost)),
            ("left_out", self.left_out.0, dies.has_all(self.left_out)),
            ("removed", self.removed.0, self.lost.has_all(self.removed)),
            ("removed", self.removed.0, shape.may_leave_out(self.removed)),
            ("closing.checkpoint", checkpoint, checkpoint <= NUMBER_MAX),
            ("closing.journal", journal.at, journal.is_possible()),
        ];
        match claims.into_iter().find(|(.., is_possible)| !is_possible) {
            Some((name, value, _)) => Err(Unfit::Claim { name, value }),
            None => Ok(()),
        }
    }

    /// True if a die that has `own` as its newest header was in use without the dies of this one,
    /// the newest of the drive, which go on without it: they hold different data. A die that is
    /// being filled says of itself that it is lost.
    pub(crate) fn diverged_from(&self, own: &Self) -> bool {
        let die = own.die as usize;
        if own.die == self.die || !self.lost.has(die) || own.lost.has(die) {
            return false;
        }
        match self.lost_since[die] {
            // An earlier version of this program wrote it, which knows two dies alone.
            0 => self.was_alone() && own.was_alone(),
            // An opening that was cut off after the header of some dies wrote nothing else: it says
            // neither that its header was everywhere, nor that it went on without this die.
            since => {
                let was_used = own.version_everywhere > since
                    || own.lost.has(self.die as usize)
                    || mutants::is(Mutant::HeadersAreData);
                own.version > since && was_used
            }
        }
    }

    /// Checksum that the headers of this version would have on any die were they that of die 0, and
    /// without keys: no other version of any history has it.
    pub(crate) fn fingerprint(&self) -> u32 {
        let bytes = Self { die: 0, keys: KeyArea::default(), ..*self }.encode();
        let crc = bytes.last_chunk().expect("a header ends with its checksum");
        u32::from_le_bytes(*crc)
    }

    /// True if the die was in use without any other.
    fn was_alone(&self) -> bool {
        let mut known = self.lost;
        known.add(self.die as usize);
        known.has_all(self.shape.all_dies())
    }

    /// Notes of the dies that are lost from now on the last version in which each took part.
    pub(crate) fn note_lost(&mut self, lost: DieSet) {
        for die in 0..self.lost_since.len() {
            match (lost.has(die), self.lost.has(die)) {
                (false, _) => self.lost_since[die] = 0,
                // A write that it failed in may have reached one copy of its header.
                (true, false) => self.lost_since[die] = self.version,
                (true, true) => {}
            }
        }
        self.lost = lost;
    }

    /// True if a die that has `own` as its newest header missed a change that had reached every die
    /// before this one, the newest of the drive, was begun.
    pub(crate) const fn is_stale(&self, own: &Self) -> bool {
        own.version < self.version_everywhere
    }
}

impl DieHeaderBytes {
    /// The arrangement that a header says.
    fn shape(&self) -> Result<Shape, Unfit> {
        let impossible = |name, value| Unfit::Claim { name, value };
        let (compression, mappable) = (self.compression.get(), self.pages_mappable.get());
        let shape = Shape {
            dies: self.dies.get(),
            is_protected: self.is_protected != 0,
            unit_pages: self.unit_pages.get(),
            rows: self.rows.get(),
            superblocks: self.superblocks.get(),
            extents_per_page: self.extents_per_page.get(),
            compression: compress::of_number(compression)
                .ok_or_else(|| impossible("compression", compression.into()))?,
            pages_logical: self.pages_logical.get(),
            pages_stored_max: self.pages_stored_max.get(),
            pages_mappable: u32::try_from(mappable)
                .map_err(|_| impossible("pages_mappable", mappable))?,
            journal_bytes: self.journal_bytes.get(),
        };
        shape.check()?;
        Ok(shape)
    }
}

#[cfg(test)]
mod tests;
