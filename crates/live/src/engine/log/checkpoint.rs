//! Checkpoints: the map as it was at some moment, so that only what came later has to be replayed.
//!
//! Two slots, written in turn, each in two copies: on two dies, or twice on the only one. The map
//! is copied piece by piece while the host goes on, so that pieces are of different moments; that
//! is set right by the replay, which begins where the copying began. The header of a slot is
//! written last, once everything that its pieces refer to is durable on all copies.
//!
//! Reading takes each frame from the first copy that has it whole.
//!
//! ```text
//!  header 4096 | magic | drive | number | session | seq | journal | pages | crc
//!  frame 32+   | number of the checkpoint | index | bytes | crc | seq | saved, up to 1 MiB
//! ```
//!
//! A frame without bytes is all zeroes. The order is that of the header: after a crash the same
//! number is taken again, and a frame of the attempt before must not pass for one of this.

use std::io;

use crate::engine::store::{Replica, Store};
use crate::format::checkpoint_header::{CheckpointHeader, FrameHead, seal_frame};
use crate::format::encoding::{U32, is_sealed, prefix, put_prefix};
use crate::format::layout::{FRAME_BYTES, FRAME_HEAD_BYTES, HEADER_BYTES};

/// Frames, written one after the other.
#[derive(Debug)]
pub(crate) struct Writer {
    number: u64,
    seq: u64,
    index: u32,
    /// Offset of the next frame from the beginning of the slot, in bytes.
    at: u64,
    frame: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(summary: &CheckpointHeader) -> Self {
        let CheckpointHeader { number, seq, .. } = *summary;
        Self { number, seq, index: 0, at: HEADER_BYTES, frame: Vec::new() }
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The next frame holding `bytes`, and where it goes within the slot.
    pub(crate) fn frame(&mut self, bytes: &[u8]) -> (u64, &[u8]) {
        assert!(bytes.len() <= FRAME_BYTES, "a frame holds 1 MiB at most");
        self.frame.clear();
        self.frame.resize(FRAME_HEAD_BYTES, 0);
        if !is_zero(bytes) {
            self.frame.extend_from_slice(bytes);
        }
        let length = u32::try_from(self.frame.len() - FRAME_HEAD_BYTES).expect("1 MiB at most");
        let head = FrameHead {
            number: self.number.into(),
            index: self.index.into(),
            length: length.into(),
            body_crc: U32::ZERO,
            seq: self.seq.into(),
            crc: U32::ZERO,
        };
        put_prefix(&mut self.frame, &head);
        seal_frame(&mut self.frame);
        let at = self.at;
        self.at += (FRAME_HEAD_BYTES + bytes.len()) as u64;
        self.index += 1;
        (at, &self.frame)
    }
}

/// A checkpoint that is being read from its copies.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    store: &'a Store,
    /// Copies whose header names it.
    pub(crate) replicas: Vec<Replica>,
    pub(crate) summary: CheckpointHeader,
    index: u32,
    at: u64,
}

impl Reader<'_> {
    /// A reader of the checkpoint from its beginning, from one of its copies alone.
    pub(crate) fn of_one(&self, replica: Replica) -> Self {
        let (store, summary) = (self.store, self.summary);
        Self { store, replicas: vec![replica], summary, index: 0, at: HEADER_BYTES }
    }

    /// True if every frame of one of its copies is what was written; reads one at a time.
    pub(crate) fn has_whole(&self, replica: Replica) -> bool {
        let mut copy = self.of_one(replica);
        let shape = &self.store.layout.shape;
        let (rows, pages) = (shape.rows_total() as usize, self.summary.pages as usize);
        let sizes = if shape.extents_per_page > 1 { pages } else { 0 };
        let superblocks = shape.superblocks as usize;
        let lost = shape.lost_map_bytes();
        let tables = [rows * 8, rows * 8, superblocks * 4, pages * 4, sizes, lost];
        let mut part = vec![0; FRAME_BYTES];
        tables.into_iter().all(|bytes| {
            (0..bytes).step_by(FRAME_BYTES).all(|from| {
                let length = FRAME_BYTES.min(bytes - from);
                copy.frame(&mut part[..length]).is_ok()
            })
        })
    }

    /// Fills `bytes` with what was saved, frame by frame.
    ///
    /// # Errors
    /// Fails if a frame is not what was written.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        for part in bytes.chunks_mut(FRAME_BYTES) {
            self.frame(part)?;
        }
        Ok(())
    }

    /// Fills `table`, which may be shorter or longer than the one of `saved` bytes that was saved:
    /// the rest stays as it is, or is left.
    ///
    /// # Errors
    /// As [`Reader::fill`].
    pub(crate) fn fill_resized(&mut self, table: &mut [u8], saved: usize) -> io::Result<()> {
        if table.len() == saved {
            return self.fill(table);
        }
        let mut part = vec![0; FRAME_BYTES.min(saved)];
        for from in (0..saved).step_by(FRAME_BYTES) {
            let length = FRAME_BYTES.min(saved - from);
            let part = &mut part[..length];
            self.frame(part)?;
            let kept = table.get_mut(from..).unwrap_or_default();
            let kept_length = kept.len().min(length);
            kept[..kept_length].copy_from_slice(&part[..kept_length]);
        }
        Ok(())
    }

    /// The next frame, from the first copy that has it whole.
    fn frame(&mut self, part: &mut [u8]) -> io::Result<()> {
        let mut failed = Err(io::Error::other("no copy of the checkpoint exists"));
        for replica in &self.replicas {
            failed = self.frame_of(*replica, part);
            if failed.is_ok() {
                break;
            }
        }
        failed?;
        self.index += 1;
        self.at += (FRAME_HEAD_BYTES + part.len()) as u64;
        Ok(())
    }

    fn frame_of(&self, Replica { die, region }: Replica, part: &mut [u8]) -> io::Result<()> {
        let mut head = [0; FRAME_HEAD_BYTES];
        let slot = self.store.layout.checkpoint_from(region, self.summary.number % 2);
        let (dies, from) = (&self.store.dies, slot + self.at);
        dies.read(die, from, &mut head)?;
        let is_whole = is_sealed(&head);
        let head = prefix::<FrameHead>(&head).expect("as long as it is");
        let length = head.length.get() as usize;
        let is_next = is_whole
            && head.number == self.summary.number
            && head.seq == self.summary.seq
            && head.index == self.index
            && (length == part.len() || length == 0);
        if !is_next {
            return Err(io::Error::other("a frame of the checkpoint is missing"));
        }
        if length == 0 {
            // Memory that was never written to costs nothing, and stays so.
            if !is_zero(part) {
                part.fill(0);
            }
            return Ok(());
        }
        dies.read(die, from + FRAME_HEAD_BYTES as u64, part)?;
        if crc32c::crc32c(part) != head.body_crc.get() {
            return Err(io::Error::other("a frame of the checkpoint fails its checksum"));
        }
        Ok(())
    }
}

/// Makes durable what was written to the slots of all copies, and only then says there that it is a
/// checkpoint.
///
/// # Errors
/// The first die that failed and the drive needs.
pub(crate) fn complete(
    store: &Store,
    replicas: &[Replica],
    summary: &CheckpointHeader,
) -> Result<(), (usize, io::Error)> {
    assert!(!replicas.is_empty(), "a checkpoint has a place");
    assert_eq!(summary.drive, store.drive, "a checkpoint is of its drive");
    store.dies.sync_all(replicas.iter().map(|it| it.die).collect())?;
    let slot = |it: &Replica| (it.die, store.layout.checkpoint_from(it.region, summary.number % 2));
    let headers: Vec<(usize, u64)> = replicas.iter().map(slot).collect();
    store.dies.write_durably(&headers, &summary.encode())
}

fn is_zero(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    chunks.iter().all(|chunk| *chunk == [0; 64]) && rest.iter().all(|byte| *byte == 0)
}

/// The checkpoints of this drive that any copy names, the newest first.
pub(crate) fn find(store: &Store) -> Vec<Reader<'_>> {
    let mut found: Vec<Reader<'_>> = Vec::new();
    let mut header = vec![0; usize::try_from(HEADER_BYTES).expect("a page")];
    for replica in store.replicas_all() {
        for slot in 0..2 {
            let from = store.layout.checkpoint_from(replica.region, slot);
            if store.dies.read(replica.die, from, &mut header).is_err() {
                continue;
            }
            let is_own = |it: &CheckpointHeader| it.drive == store.drive && it.number % 2 == slot;
            let Some(summary) = CheckpointHeader::parse(&header).filter(is_own) else { continue };
            match found.iter_mut().find(|reader| reader.summary == summary) {
                Some(reader) => reader.replicas.push(replica),
                None => found.push(Reader {
                    store,
                    replicas: vec![replica],
                    summary,
                    index: 0,
                    at: HEADER_BYTES,
                }),
            }
        }
    }
    found.sort_by_key(|reader| std::cmp::Reverse(reader.summary.number));
    found
}
