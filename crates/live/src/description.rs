//! Descriptions of a drive's parts, as its status has them.

use ftl::{Counters, Debt, Ftl, Occupancy, SuperblockId, SuperblockState};
use status::{
    Compression, Die, Format, SPARE_THRESHOLD_PERCENT, Smart, Space, State, Status, Supply, Wear,
    Writes,
};

use crate::format::header::Header;
use crate::format::layout::{PAGE_BYTES, Shape};
use crate::format::row::Rows;

/// Bytes since a drive was opened that no counter of the translation layer has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionCounts {
    /// Pages found lost, ever.
    pub(crate) pages_lost: u64,
    /// Bytes of units that a rebuild or a scrub restored.
    pub(crate) rebuild_bytes: u64,
    /// Bytes that clients wrote.
    pub(crate) host_sent_bytes: u64,
}

/// Adds what only an open drive knows; `reason` after a failure.
pub(crate) fn opened(
    mut status: Status,
    ftl: &Ftl<Debt>,
    counts: SessionCounts,
    reason: Option<String>,
) -> Status {
    let sum = |of: fn(&Die) -> u64| status.dies.iter().map(of).sum();
    let (written, read) = (sum(|die| die.written_bytes), sum(|die| die.read_bytes));
    let reconstructed = sum(|die| die.reconstructed_reads);
    status.state = if reason.is_some() { State::Failed } else { State::Open };
    status.smart.media_errors = Some(counts.pages_lost);
    status.smart.xor_recovery_count = Some(reconstructed);
    status.smart.physical_media_units_read = Some(read);
    status.smart.physical_media_units_written = Some(written);
    status.writes = Some(writes(&ftl.counters(), written, counts));
    status.reason = reason;
    status
}

/// The format of a drive whose rows leave out dies that failed: `left` of `all` data units of a row
/// remain.
pub(crate) fn format(header: &Header, (left, all): (u32, u32)) -> Format {
    let shape = &header.shape;
    assert!(left <= all, "rows have no more data units than they were created with");
    let page_bytes = PAGE_BYTES as u64;
    let geometry = shape.geometry();
    let data_bytes = geometry.pages() * page_bytes / u64::from(all) * u64::from(left);
    let physical_bytes = u64::from(shape.pages_stored_max) * page_bytes;
    Format {
        capacity_bytes: u64::from(shape.pages_logical) * page_bytes,
        data_bytes,
        raw_bytes: geometry.raw_capacity().0,
        physical_bytes,
        // Negative where data may take more than there is.
        over_provisioning_percent: 100.0 * (data_bytes as f64 / physical_bytes as f64 - 1.0),
        dies: shape.dies,
        is_protected: shape.is_protected,
        is_compressed: shape.compression != Compression::None,
        compression: shape.compression,
        is_encrypted: header.is_encrypted(),
        superblocks: shape.superblocks,
        superblock_bytes: u64::from(shape.superblock_pages()) * page_bytes,
        journal_bytes: shape.journal_bytes,
        mapping_bytes: mapping_bytes(shape),
    }
}

/// Four bytes for each page, and the size of its extent; a bit for each place, and the life of each
/// row. What lies where is left to the media.
fn mapping_bytes(shape: &Shape) -> u64 {
    let places = shape.geometry().pages() * u64::from(shape.extents_per_page);
    let sizes = u64::from(shape.extents_per_page > 1);
    u64::from(shape.pages_logical) * (4 + sizes)
        + places.div_ceil(8)
        + u64::from(shape.rows_total()) * Rows::BYTES
}

/// Health of a drive whose map is known if `ftl` is.
pub(crate) fn smart(header: &Header, ftl: Option<&Ftl<Debt>>) -> Smart {
    Smart {
        available_spare: ftl.map(|ftl| spare_left(&header.shape, ftl)),
        available_spare_threshold: SPARE_THRESHOLD_PERCENT,
        power_cycles: header.session - 1,
        unsafe_shutdowns: header.unsafe_shutdowns,
        ..Smart::default()
    }
}

/// Percent of the superblocks beyond those that the capacity fills that are not bad.
fn spare_left(shape: &Shape, ftl: &Ftl<Debt>) -> u8 {
    let filled = shape.pages_stored_max.div_ceil(shape.superblock_pages());
    let spare = shape.superblocks.saturating_sub(filled).max(1);
    let is_bad = |id: &SuperblockId| ftl.superblock(*id).state == SuperblockState::Bad;
    let bad = (0..shape.superblocks).map(SuperblockId).filter(is_bad).count() as u64;
    let left = u64::from(spare).saturating_sub(bad) * 100 / u64::from(spare);
    u8::try_from(left).expect("a percentage")
}

/// Space of a drive, and the data in it.
pub(crate) fn space(ftl: &Ftl<Debt>) -> Space {
    let letter = |id| match ftl.superblock(SuperblockId(id)).state {
        SuperblockState::Free => 'f',
        SuperblockState::Open => 'o',
        SuperblockState::Closed => 'c',
        SuperblockState::Victim => 'v',
        SuperblockState::Bad => 'b',
    };
    let occupancy = ftl.occupancy();
    let (logical, stored) = (occupancy.pages_stored * PAGE_BYTES as u64, occupancy.stored.0);
    Space {
        logical_bytes: logical,
        stored_bytes: stored,
        stored_bytes_max: occupancy.stored_max.0,
        compression_ratio: (stored > 0).then(|| logical as f64 / stored as f64),
        supply: supply(ftl),
        superblocks_free: occupancy.superblocks_free,
        superblocks: (0..ftl.config().geometry.superblocks()).map(letter).collect(),
        host_shortage: None,
    }
}

/// Level of free space that data may still take.
fn supply(ftl: &Ftl<Debt>) -> Supply {
    let Occupancy { stored, stored_max, .. } = ftl.occupancy();
    let (most, left) = (stored_max.0, stored_max.0.saturating_sub(stored.0));
    match left {
        _ if most == ftl.config().user_capacity().0 => Supply::Ample,
        0..4096 => Supply::Gone,
        _ if left < most / 20 => Supply::Short,
        _ if left < most / 5 => Supply::Low,
        _ => Supply::Ample,
    }
}

/// Erases of superblocks.
pub(crate) fn wear(ftl: &Ftl<Debt>) -> Wear {
    let count = |id| ftl.superblock(SuperblockId(id)).erase_count;
    let counts = || (0..ftl.config().geometry.superblocks()).map(count);
    let sum: u64 = counts().map(u64::from).sum();
    Wear {
        erase_count_min: counts().min().unwrap_or_default(),
        erase_count_mean: sum as f64 / f64::from(ftl.config().geometry.superblocks()),
        erase_count_max: counts().max().unwrap_or_default(),
    }
}

/// Bytes written to the dies by cause; `written_bytes` are all of them.
fn writes(counters: &Counters, written_bytes: u64, counts: SessionCounts) -> Writes {
    let SessionCounts { rebuild_bytes, host_sent_bytes, .. } = counts;
    let page_bytes = PAGE_BYTES as u64;
    let pages_sent = counters.pages_host * page_bytes;
    let [host_bytes, relocation_bytes, wear_bytes, parity_bytes] = [
        pages_sent - counters.host_saved_bytes,
        counters.pages_relocation * page_bytes - counters.relocation_saved_bytes,
        counters.pages_wear * page_bytes - counters.wear_saved_bytes,
        counters.pages_parity * page_bytes,
    ];
    let pages_bytes = host_bytes + relocation_bytes + wear_bytes + parity_bytes;
    // Pages that still wait in memory for their unit to be full were not written yet.
    let metadata_bytes = written_bytes.saturating_sub(pages_bytes + rebuild_bytes);
    let ratio = |above: u64, below: u64| (below > 0).then(|| above as f64 / below as f64);
    Writes {
        host_bytes,
        relocation_bytes,
        wear_bytes,
        parity_bytes,
        metadata_bytes,
        rebuild_bytes,
        host_sent_bytes,
        write_amplification: ratio(pages_bytes + metadata_bytes, host_sent_bytes),
        compression_ratio: ratio(pages_sent, host_bytes),
        superblocks_erased: counters.superblocks_erased,
        trimmed_bytes: counters.pages_trimmed * page_bytes,
    }
}
