//! Headers, exhaustively: a cut of the power after every command of an opening that upgrades a
//! drive, or finds headers at the ends of its dies alone.

use blockio::Rng;

use super::disk::Disks;
use super::exhaustive::{ScriptStep, check, check_headless, lose_fronts, play_as, subsets};
use super::history::SectorHistory;
use crate::engine::dies::header_copies::newest_header;
use crate::engine::drive::creation::format_as;
use crate::format::header::{FORMAT_VERSION, FORMAT_VERSION_MIN};
use crate::{Drive, OpenError, Shape, Upgrade};

/// Headers that a drive has before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadersLeft {
    /// Headers of the oldest format that is read.
    Old {
        /// True where media cannot become longer.
        is_fixed: bool,
    },
    /// Headers at the ends of the dies alone.
    Ends,
}

/// Runs `script` on a new drive, closes it or leaves it as a crash does, cuts the power after each
/// command of the opening that follows, and opens what is left in every way: all is there, in
/// either format, and also where no headers but those at the ends are left. Returns how many states
/// were opened.
///
/// # Errors
/// What promise was not kept, and where.
pub fn exhaust_headers(
    shape: &Shape,
    script: &[ScriptStep],
    left: HeadersLeft,
) -> Result<u64, String> {
    let mut states = 0;
    for is_closed in [false, true] {
        let (disks, history) = prepared(shape, script, left, is_closed)?;
        for cut in 0.. {
            let disks = disks.fork();
            disks.cut_after(cut);
            drop(Drive::open_media(disks.media()));
            let is_over = !disks.is_cut();
            for subset in subsets(disks.sectors_pending()) {
                let crashed = disks.fork();
                crashed.restore_by(subset);
                check_format(&crashed, left)
                    .and_then(|()| check_headless(&crashed, history.clone()))
                    .and_then(|()| check(&crashed, history.clone()))
                    .map_err(|what| format!("{left:?}, opening cut after {cut}: {what}"))?;
                states += 1;
            }
            if is_over {
                break;
            }
        }
    }
    Ok(states)
}

/// A drive after a script, whose headers are lost in part or of an earlier format.
fn prepared(
    shape: &Shape,
    script: &[ScriptStep],
    left: HeadersLeft,
    is_closed: bool,
) -> Result<(Disks, SectorHistory), String> {
    let told = |error: OpenError| error.to_string();
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let disks = Disks::new(shape.dies as usize, bytes, Rng::new(0));
    let version = if left == HeadersLeft::Ends { FORMAT_VERSION } else { FORMAT_VERSION_MIN };
    format_as(version, disks.media(), shape, 1).map_err(told)?;
    let upgrade = Upgrade::Later;
    let history = play_as(&disks, shape, script, upgrade)?;
    disks.restore_by(|_| true);
    if is_closed {
        let drive = Drive::replay_buffer(disks.media(), None, None, upgrade, None).map_err(told)?;
        drive.close().map_err(|error| error.to_string())?;
        disks.restore_by(|_| true);
    }
    match left {
        HeadersLeft::Ends => lose_fronts(&disks),
        HeadersLeft::Old { is_fixed } => {
            assert_eq!(disks.disk_bytes(), bytes, "the old format has nothing at the end");
            if is_fixed {
                disks.fix_length();
            }
        }
    }
    Ok((disks, history))
}

/// Checks that every die has a header, of the old format or of the new one.
fn check_format(disks: &Disks, left: HeadersLeft) -> Result<(), String> {
    for (die, medium) in disks.media().iter().enumerate() {
        match newest_header(&**medium) {
            Ok(Some(header)) if left != HeadersLeft::Ends || header.has_end_copy() => {}
            other => return Err(format!("the header of die {die} is {other:?}")),
        }
    }
    Ok(())
}
