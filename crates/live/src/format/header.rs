//! The header of a die: which drive it belongs to, and how that is arranged.
//!
//! Each die holds two copies. A change is written to the one copy of every die and made durable,
//! then to the other, so that one is whole at any moment, and damage to either never brings an
//! earlier state back. A header says which version every die had before it was written; a die that
//! has only older ones is **stale**: it holds an earlier state of the drive, and counts as missing.

use ftl::ConfigError;

use crate::format::checkpoint_header::{CheckpointHeader, NUMBER_MAX};
use crate::format::die_set::DieSet;
use crate::format::encoding::{is_sealed, put, seal, u32_at, u64_at};
use crate::format::layout::HEADER_BYTES;
use crate::format::position::Position;
use crate::{Compression, Shape};

const MAGIC: &[u8; 16] = b"floatgate die\0\0\0";
/// Version of everything on a die.
pub(crate) const FORMAT_VERSION: u32 = 4;

/// Header of a die: the drive that it belongs to, and the state of that drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
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
    /// Dies that the drive does without.
    pub(crate) lost: DieSet,
    /// Dies among `lost` that no row in use has a unit on.
    pub(crate) removed: DieSet,
    /// Dies that some row may leave out.
    pub(crate) left_out: DieSet,
    /// Openings of a drive that had not been closed.
    pub(crate) unsafe_shutdowns: u64,
    /// Checkpoint and end of the journal when the drive was last closed; zero if it was recovered
    /// since.
    pub(crate) closing: Closing,
}

/// Most openings of a drive: orders of events begin with the number of the opening.
pub(crate) const SESSION_MAX: u64 = (1 << 24) - 2;
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
    #[error("{name} is {value}, which cannot be")]
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
        let mut bytes = vec![0; usize::try_from(HEADER_BYTES).expect("a page")];
        let shape = &self.shape;
        bytes[..16].copy_from_slice(MAGIC);
        let numbers = [
            (16, FORMAT_VERSION),
            (20, self.die),
            (24, shape.dies),
            (28, u32::from(shape.is_protected)),
            (32, shape.unit_pages),
            (36, shape.rows),
            (40, shape.superblocks),
            (44, shape.extents_per_page),
            (48, shape.pages_logical),
            (52, shape.pages_stored_max),
            (56, shape.compression.number()),
            (60, u32::from(self.is_open)),
        ];
        for (at, number) in numbers {
            put(&mut bytes, at, number.to_le_bytes());
        }
        let numbers = [
            (64, shape.journal_bytes),
            (72, self.drive),
            (80, self.version),
            (88, self.session),
            (96, self.lost.0),
            (104, self.unsafe_shutdowns),
            (112, self.removed.0),
            (120, self.left_out.0),
            (128, u64::from(shape.pages_mappable)),
            (136, self.closing.checkpoint),
            (144, self.closing.journal.at),
            (152, self.closing.journal.number),
            (160, self.closing.journal.link.into()),
            (168, self.version_everywhere),
        ];
        for (at, number) in numbers {
            put(&mut bytes, at, number.to_le_bytes());
        }
        seal(&mut bytes);
        bytes
    }

    /// Decodes one copy; none if the bytes are no header, or an incomplete one.
    ///
    /// # Errors
    /// Fails if it is one of another format, or says what cannot be.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, Unfit> {
        let is_whole = bytes.len() as u64 == HEADER_BYTES && is_sealed(bytes);
        if !is_whole || !bytes.starts_with(MAGIC) {
            return Ok(None);
        }
        let version = u32_at(bytes, 16);
        if version != FORMAT_VERSION {
            return Err(Unfit::Version(version));
        }
        let header = Self {
            drive: u64_at(bytes, 72),
            die: u32_at(bytes, 20),
            shape: parse_shape(bytes)?,
            version: u64_at(bytes, 80),
            version_everywhere: u64_at(bytes, 168),
            session: u64_at(bytes, 88),
            is_open: u32_at(bytes, 60) != 0,
            lost: DieSet(u64_at(bytes, 96)),
            unsafe_shutdowns: u64_at(bytes, 104),
            removed: DieSet(u64_at(bytes, 112)),
            left_out: DieSet(u64_at(bytes, 120)),
            closing: Closing {
                checkpoint: u64_at(bytes, 136),
                journal: Position {
                    at: u64_at(bytes, 144),
                    number: u64_at(bytes, 152),
                    link: u32_at(bytes, 160),
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
        let claims = [
            ("die", u64::from(self.die), self.die < shape.dies),
            ("session", self.session, (1..=SESSION_MAX).contains(&self.session)),
            ("version", self.version, self.version <= VERSION_MAX),
            ("version_everywhere", everywhere, everywhere < self.version),
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

    /// True if a die that has `own` as its newest header missed a change that had reached every die
    /// before this one, the newest of the drive, was begun.
    pub(crate) const fn is_stale(&self, own: &Self) -> bool {
        own.version < self.version_everywhere
    }
}

/// The arrangement that a header says.
fn parse_shape(bytes: &[u8]) -> Result<Shape, Unfit> {
    let impossible = |name, value| Unfit::Claim { name, value };
    let compression = u32_at(bytes, 56);
    let mappable = u64_at(bytes, 128);
    let shape = Shape {
        dies: u32_at(bytes, 24),
        is_protected: u32_at(bytes, 28) != 0,
        unit_pages: u32_at(bytes, 32),
        rows: u32_at(bytes, 36),
        superblocks: u32_at(bytes, 40),
        extents_per_page: u32_at(bytes, 44),
        compression: Compression::of_number(compression)
            .ok_or_else(|| impossible("compression", compression.into()))?,
        pages_logical: u32_at(bytes, 48),
        pages_stored_max: u32_at(bytes, 52),
        pages_mappable: u32::try_from(mappable)
            .map_err(|_| impossible("pages_mappable", mappable))?,
        journal_bytes: u64_at(bytes, 64),
    };
    shape.check()?;
    Ok(shape)
}
