//! Media that were dies once: of another drive by now, something else, or erased in part.

use blockio::Rng;

use super::disk::Disks;
use super::exhaustive::{lose_fronts, subsets};
use crate::engine::dies::header_copies::{self, newest_header};
use crate::engine::drive::creation::format_as;
use crate::format::header::{FORMAT_VERSION, FORMAT_VERSION_MIN, Header};
use crate::format::layout::{HEADER_BYTES, PAGE_BYTES};
use crate::{Drive, OpenError, Shape};

/// Makes a die of one drive into one of another drive, as a program does that knows no header at
/// the end, and into something else: neither counts as the former die, nor is written to.
pub(crate) fn reuse_die(shape: &Shape) -> Result<(), String> {
    let told = |error: OpenError| error.to_string();
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let disks = Disks::new(1, bytes, Rng::new(0));
    format_as(FORMAT_VERSION, disks.media(), shape, 1).map_err(told)?;
    let other = Disks::new(1, bytes, Rng::new(0));
    format_as(FORMAT_VERSION_MIN, other.media(), shape, 2).map_err(told)?;
    let taken = disks.fork();
    taken.media()[0].write_at(0, &other.contents()[0]).map_err(|error| error.to_string())?;
    taken.restore_by(|_| true);
    let header = newest_header(&*taken.media()[0]);
    if header.as_ref().map(|it| it.map(|it| it.drive)) != Ok(Some(2)) {
        return Err(format!("a die of another drive is taken for {header:?}"));
    }
    lose_fronts(&disks);
    // An ext4 file system.
    disks.damage(0, 1080..1081, |_| 0x53);
    disks.damage(0, 1081..1082, |_| 0xef);
    disks.damage(0, 1120..1121, |_| 0x40);
    let before = disks.contents();
    let opened = Drive::open_media(disks.media()).map(drop);
    if disks.contents() != before {
        return Err("a file system was written to".to_owned());
    }
    match opened {
        Err(error) if error.to_string().contains("holds an ext4 file system") => Ok(()),
        other => Err(format!("a file system is opened: {other:?}")),
    }
}

/// Cuts the power after each command that makes a medium no die: it is one only as long as it has a
/// header at its beginning.
pub(crate) fn erase_each(shape: &Shape) -> Result<(), String> {
    let bytes = usize::try_from(shape.die_bytes().0).expect("a small drive");
    let whole = Disks::new(1, bytes, Rng::new(0));
    format_as(FORMAT_VERSION, whole.media(), shape, 1).map_err(|error| error.to_string())?;
    for cut in 0.. {
        let disks = whole.fork();
        disks.cut_after(cut);
        let _ = header_copies::erase(&*disks.media()[0]);
        let is_over = !disks.is_cut();
        for subset in subsets(disks.sectors_pending()) {
            let left = disks.fork();
            left.restore_by(subset);
            let medium = left.media().remove(0);
            let is_whole = |at: u64| {
                let mut page = [0; PAGE_BYTES];
                let read = medium.read_at(at, &mut page);
                read.is_ok() && matches!(Header::parse(&page), Ok(Some(_)))
            };
            let is_die = matches!(newest_header(&*medium), Ok(Some(_)));
            if is_die && ![0, HEADER_BYTES].into_iter().any(is_whole) {
                return Err(format!("cut after {cut}: its end makes it a die"));
            }
        }
        if is_over {
            return Ok(());
        }
    }
    Ok(())
}
