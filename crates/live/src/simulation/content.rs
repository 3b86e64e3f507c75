//! Contents of a disk in memory, which copies share until one of them is written to.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that are shared or copied together, a multiple of the sector size.
const CHUNK_BYTES: usize = 1 << 14;

type Chunk = [u8; CHUNK_BYTES];

/// Bytes of a disk, in chunks that clones share.
#[derive(Clone, Debug)]
pub(super) struct Content {
    bytes: usize,
    chunks: Vec<Arc<Chunk>>,
}

impl Content {
    /// `bytes` zeroes.
    pub(super) fn zeroes(bytes: usize) -> Self {
        let zeroes = Arc::new([0; CHUNK_BYTES]);
        Self { bytes, chunks: vec![zeroes; bytes.div_ceil(CHUNK_BYTES)] }
    }

    /// The bytes themselves.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut content = Self::zeroes(bytes.len());
        content.write(0, bytes);
        content
    }

    /// Makes it so long: by zeroes, or without what lies behind.
    pub(super) fn resize(&mut self, bytes: usize) {
        if bytes < self.bytes {
            let end = self.bytes.min(bytes.next_multiple_of(CHUNK_BYTES));
            self.write(bytes, &vec![0; end - bytes]);
        }
        self.bytes = bytes;
        self.chunks.resize_with(bytes.div_ceil(CHUNK_BYTES), || Arc::new([0; CHUNK_BYTES]));
    }

    /// Length in bytes.
    pub(super) const fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes of a range; they are copied only if the range lies in several chunks.
    pub(super) fn range(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let at = range.start % CHUNK_BYTES;
        if at + range.len() <= CHUNK_BYTES && !range.is_empty() {
            return Cow::Borrowed(&self.chunks[range.start / CHUNK_BYTES][at..at + range.len()]);
        }
        let mut bytes = vec![0; range.len()];
        self.read(range.start, &mut bytes);
        Cow::Owned(bytes)
    }

    /// Fills a buffer from an offset on.
    pub(super) fn read(&self, at: usize, mut buffer: &mut [u8]) {
        assert!(at + buffer.len() <= self.bytes, "a read lies within the disk");
        for (chunk, range) in pieces(at, buffer.len()) {
            let (piece, rest) = buffer.split_at_mut(range.len());
            piece.copy_from_slice(&self.chunks[chunk][range]);
            buffer = rest;
        }
    }

    /// Writes bytes at an offset.
    pub(super) fn write(&mut self, at: usize, mut bytes: &[u8]) {
        assert!(at + bytes.len() <= self.bytes, "a write lies within the disk");
        for (chunk, range) in pieces(at, bytes.len()) {
            let (piece, rest) = bytes.split_at(range.len());
            Arc::make_mut(&mut self.chunks[chunk])[range].copy_from_slice(piece);
            bytes = rest;
        }
    }
}

/// The chunks that a range lies in, each with the part of it.
fn pieces(mut at: usize, mut bytes: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    std::iter::from_fn(move || {
        let from = at % CHUNK_BYTES;
        let length = bytes.min(CHUNK_BYTES - from);
        let piece = (at / CHUNK_BYTES, from..from + length);
        (at, bytes) = (at + length, bytes - length);
        (length > 0).then_some(piece)
    })
}
