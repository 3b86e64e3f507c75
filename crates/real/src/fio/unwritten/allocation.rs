//! Allocation of a target: how much of it its file system, drive or server says holds no data.
//!
//! Files have holes (`SEEK_DATA`, `SEEK_HOLE`); space that was only reserved counts among them. An
//! NVMe drive may list the blocks that it has allocated: Get LBA Status [nvme-nvm-2021] with the
//! action 02h of later revisions. The actions that older drives have list blocks that may be lost,
//! which is another thing, and they refuse this one. An NBD server may tell through
//! `base:allocation`.
//! Nothing here writes: nvme-cli opens the device for reading, as this program does.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lab::target::system::Block;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use serde::Deserialize;

use crate::target::{LocalTarget, Target};
use crate::tools::Tools;

/// Time after which a target is left whose allocation is in very many pieces.
const PATIENCE: Duration = Duration::from_secs(10);
/// `OACS`: the controller has Get LBA Status.
const HAS_LBA_STATUS: u64 = 1 << 9;
/// Bytes that one Get LBA Status returns: every controller takes transfers of 4 KiB.
const ANSWER_BYTES: usize = 4096;
/// Bytes of the header of an answer, and of one descriptor.
const HEADER_BYTES: usize = 8;
const DESCRIPTOR_BYTES: usize = 16;
/// Action type of Get LBA Status: list allocated blocks, in bits 31:24 of dword 13.
const LIST_ALLOCATED: u32 = 0x02 << 24;

/// Stretches that hold data, in order, and the source that tells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allocation {
    /// Source: a file system, a drive or a server.
    pub(super) source: &'static str,
    /// First byte and end of each stretch.
    data: Vec<(u64, u64)>,
}

impl Allocation {
    /// The allocation of the first `capacity_bytes` of `target`; absent where nothing tells it.
    pub(super) fn of(target: &Target, capacity_bytes: u64, tools: &Tools) -> Option<Self> {
        let (source, data) = match target {
            Target::Local(LocalTarget { permit, .. }) if permit.is_file() => {
                ("the file system", of_file(permit.target(), capacity_bytes)?)
            }
            Target::Local(LocalTarget { device: Some(block), .. }) => {
                ("the drive (Get LBA Status)", of_nvme(tools, block, capacity_bytes)?)
            }
            Target::Export { uri, .. } => {
                ("the NBD server (base:allocation)", uri.allocated(PATIENCE)?)
            }
            Target::Local(_) | Target::Fleet { .. } => return None,
        };
        Some(Self::new(source, data))
    }

    /// The allocation that `source` tells.
    pub(super) const fn new(source: &'static str, data: Vec<(u64, u64)>) -> Self {
        Self { source, data }
    }

    /// Bytes that hold data.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data.iter().map(|(from, to)| to - from).sum()
    }

    /// True if the byte `at` holds data.
    pub(super) fn holds(&self, at: u64) -> bool {
        let next = self.data.partition_point(|(from, _)| *from <= at);
        next.checked_sub(1).is_some_and(|index| at < self.data[index].1)
    }
}

/// Stretches of a file that are no holes.
fn of_file(file: &impl AsFd, capacity_bytes: u64) -> Option<Vec<(u64, u64)>> {
    let (mut data, mut at, began) = (Vec::new(), 0, Instant::now());
    while at < capacity_bytes {
        let from = match seek(file, SeekFrom::Data(at)) {
            Ok(from) => from,
            // No data up to the end.
            Err(Errno::NXIO) => break,
            Err(_) => return None,
        };
        let to = seek(file, SeekFrom::Hole(from)).ok()?.min(capacity_bytes);
        if from < to {
            data.push((from, to));
        }
        at = to.max(from);
        if began.elapsed() > PATIENCE {
            return None;
        }
    }
    Some(data)
}

/// Capabilities of a controller.
#[derive(Debug, Deserialize)]
struct Controller {
    oacs: u64,
}

/// Stretches of a whole NVMe namespace that are allocated.
fn of_nvme(tools: &Tools, block: &Block, capacity_bytes: u64) -> Option<Vec<(u64, u64)>> {
    if !block.is_nvme() || block.is_partition() {
        return None;
    }
    let node = block.node();
    let text = tools.ask("nvme", &["id-ctrl", &node, "--output-format=json"]).ok()?;
    let controller: Controller = serde_json::from_slice(&text).ok()?;
    if controller.oacs & HAS_LBA_STATUS == 0 {
        return None;
    }
    let namespace = block.number("nsid")?.to_string();
    let sector_bytes = block.number("queue/logical_block_size")?;
    let sectors = capacity_bytes / sector_bytes;
    let (mut data, mut at, began) = (Vec::new(), 0, Instant::now());
    while at < sectors {
        let words = [
            "admin-passthru".to_owned(),
            node.clone(),
            "--opcode=0x86".to_owned(),
            format!("--namespace-id={namespace}"),
            format!("--data-len={ANSWER_BYTES}"),
            format!("--cdw10={}", at & u64::from(u32::MAX)),
            format!("--cdw11={}", at >> 32),
            format!("--cdw12={}", ANSWER_BYTES / 4 - 1),
            // A range of 0 sectors goes to the end.
            format!("--cdw13={LIST_ALLOCATED}"),
            "--read".to_owned(),
            "--raw-binary".to_owned(),
        ];
        let listed = AllocatedSectors::read(&tools.ask("nvme", &words).ok()?, at, sectors)?;
        data.extend(listed.data.iter().map(|(from, to)| (from * sector_bytes, to * sector_bytes)));
        match listed.data.last() {
            Some((_, end)) if !listed.is_complete => at = *end,
            None if !listed.is_complete => return None,
            _ => break,
        }
        if began.elapsed() > PATIENCE {
            return None;
        }
    }
    Some(data)
}

/// One answer to Get LBA Status.
#[derive(Debug, PartialEq, Eq)]
struct AllocatedSectors {
    /// First sector and end of each stretch.
    data: Vec<(u64, u64)>,
    /// True if the answer goes to the end of the range.
    is_complete: bool,
}

impl AllocatedSectors {
    /// Reads the answer about the sectors from `at` to `sectors`; absent where it makes no sense.
    fn read(answer: &[u8], at: u64, sectors: u64) -> Option<Self> {
        let header = answer.first_chunk::<HEADER_BYTES>()?;
        let count = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        // 1: there was more than fits; 2: all of it was looked at.
        let is_complete = match header[4] & 0b111 {
            1 => false,
            2 => true,
            _ => return None,
        };
        let descriptors = answer[HEADER_BYTES..].chunks_exact(DESCRIPTOR_BYTES);
        if count > descriptors.len() {
            return None;
        }
        let (mut data, mut end) = (Vec::new(), at);
        for descriptor in descriptors.take(count) {
            let first = u64::from_le_bytes(*descriptor.first_chunk::<8>()?);
            let length = u32::from_le_bytes(*descriptor[8..].first_chunk::<4>()?);
            let to = first.checked_add(u64::from(length))?;
            if to > sectors || to <= end {
                return None;
            }
            // A stretch that began before the first sector that was asked for.
            data.push((first.max(end), to));
            end = to;
        }
        Some(Self { data, is_complete })
    }
}

#[cfg(test)]
mod tests;
