//! Interface between the flash translation layer and the media.

use blockio::Bytes;

use crate::{DieId, Lpn, Ppn, SuperblockId};

/// Cause of a program operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The host wrote it.
    Host,
    /// Garbage collection saved it from a victim.
    Relocation,
    /// Wear levelling moved it off a little-worn superblock.
    Wear,
    /// Parity of a stripe.
    Parity,
}

/// Operation on the media.
///
/// Operations are handed out in an order in which they may be carried out one by one. An owner that
/// overlaps them must keep: a program after the relocations into its unit; an erase after every
/// program handed out before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaOp {
    /// Read the page at `from` into the program unit that holds `to`.
    Relocate {
        /// Physical page to read.
        from: Ppn,
        /// Superblock that holds it.
        superblock: SuperblockId,
        /// Die that holds it.
        die: DieId,
        /// Physical page to program.
        to: Ppn,
        /// Logical page that it belongs to.
        lpn: Lpn,
        /// Bytes that are moved: a page, or less if it is compressed.
        extent: Bytes,
        /// Garbage collection or wear levelling.
        cause: Cause,
    },
    /// Program one unit (one NAND page on every plane of a die); its data has all arrived.
    Program {
        /// Superblock that it belongs to.
        superblock: SuperblockId,
        /// Die that programs.
        die: DieId,
        /// NAND page within the erase block.
        row: u32,
        /// Stream that filled it, or parity.
        cause: Cause,
        /// True if it programs one bit per cell ([`crate::SlcCache`]).
        is_slc: bool,
    },
    /// Erase one superblock: an erase block on every plane of every die of its bank.
    Erase {
        /// Superblock to erase.
        superblock: SuperblockId,
        /// First die of its bank; the others follow.
        die_first: DieId,
    },
}

/// Receiver of media operations, which carries them out.
///
/// This one counts the programs of each die, parity included:
///
/// ```
/// use ftl::{Config, Ftl, Geometry, Lpn, Media, MediaOp};
/// # let geometry = Geometry {
/// #     banks: 1, dies_per_bank: 4, planes_per_die: 1, erase_blocks_per_plane: 16,
/// #     pages_per_erase_block: 8, page_kib: 4, indirection_kib: 4, stripe_dies: 4,
/// # };
/// # let config = Config {
/// #     geometry, pages_logical: 192, pages_stored_max: 192, extents_per_page: 1,
/// #     victim: ftl::VictimPolicy::Greedy,
/// #     watermarks: ftl::Watermarks {
/// #         low: 3, high: 4, burst: 0.1, price_max: 0.0, batch_pages: 1,
/// #     },
/// #     wear_spread_max: 0, handles: ftl::ReclaimUnitHandles::ONE,
/// #     slc_cache: None, seed: 1,
/// # };
/// #[derive(Default)]
/// struct ProgramsByDie([u32; 4]);
///
/// impl Media for ProgramsByDie {
///     fn submit(&mut self, op: MediaOp) {
///         if let MediaOp::Program { die, .. } = op {
///             self.0[die.0 as usize] += 1;
///         }
///     }
/// }
///
/// let mut ftl = Ftl::format(&config)?;
/// let mut media = ProgramsByDie::default();
/// // Eight rows of three units of data and one of parity, whose die rotates.
/// for lpn in 0..24 {
///     ftl.write(0, Lpn(lpn), &mut media);
/// }
/// assert_eq!(media.0, [8; 4]);
/// # Ok::<(), ftl::ConfigError>(())
/// ```
pub trait Media {
    /// Takes one operation.
    fn submit(&mut self, op: MediaOp);

    /// Fills in which pages were written to places that follow each other from `first` on, all in
    /// one program unit, as far as the media tell. An owner of [`crate::Debt`] alone is asked;
    /// operations taken before may be waiting still.
    ///
    /// What is left open, or wrong, costs the time to look through the map, and nothing else.
    fn contents(&mut self, first: Ppn, pages: &mut [Option<Lpn>]) {
        let _ = (first, pages);
    }
}

/// Media that carry out nothing, for questions about mapping alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMedia;

impl Media for NoMedia {
    #[inline]
    fn submit(&mut self, _op: MediaOp) {}
}

impl Media for Vec<MediaOp> {
    fn submit(&mut self, op: MediaOp) {
        self.push(op);
    }
}
