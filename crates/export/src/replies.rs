//! Buffer of replies that wait to be sent to a client, in one piece.
//!
//! Data is read straight into it, behind the header that goes before it, so that one call to the
//! system sends many replies. The bytes behind the filled part are those of earlier replies to the
//! same client: making room costs nothing once the buffer has grown.

use std::ops::Range;

use crate::limits::OWN_BUFFER_BYTES;

/// Bytes for a client, from the first reply to the last.
#[derive(Debug)]
pub struct Replies {
    bytes: Vec<u8>,
    filled: usize,
    /// Most bytes that data may fill it to.
    limit: usize,
}

impl Default for Replies {
    fn default() -> Self {
        Self { bytes: Vec::new(), filled: 0, limit: usize::MAX }
    }
}

impl Replies {
    /// No reply yet, and room for any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes to be sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Bytes that are to be sent.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// True if nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Forgets what was sent.
    pub fn clear(&mut self) {
        self.filled = 0;
        if self.bytes.len() > OWN_BUFFER_BYTES {
            self.bytes.truncate(OWN_BUFFER_BYTES);
            self.bytes.shrink_to_fit();
        }
    }

    /// Bounds what data may fill it to.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// True if so many more bytes are within the limit.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.limit - self.filled.min(self.limit) >= length
    }

    /// Forgets everything behind the first `filled` bytes.
    pub(crate) fn cut(&mut self, filled: usize) {
        assert!(filled <= self.filled, "{filled} of {} bytes", self.filled);
        self.filled = filled;
    }

    /// Takes everything behind the first `filled` bytes away.
    pub(crate) fn take_from(&mut self, filled: usize) -> Vec<u8> {
        if filled == 0 && self.filled > OWN_BUFFER_BYTES {
            // Too much to be there twice.
            let mut taken = std::mem::take(&mut self.bytes);
            taken.truncate(std::mem::take(&mut self.filled));
            return taken;
        }
        let taken = self.as_bytes()[filled..].to_vec();
        self.cut(filled);
        taken
    }

    /// Room for `length` more bytes, which count as filled; what they hold is arbitrary.
    pub(crate) fn room(&mut self, length: usize) -> &mut [u8] {
        let start = self.filled;
        let end = start + length;
        if end > self.bytes.len() {
            self.grow(end);
        }
        self.filled = end;
        &mut self.bytes[start..end]
    }

    fn grow(&mut self, end: usize) {
        if end <= OWN_BUFFER_BYTES {
            self.bytes.resize(end.next_power_of_two(), 0);
            return;
        }
        // As much as is needed: it was lent for this. The system zeroes what is used of it.
        let mut larger = vec![0; end];
        larger[..self.filled].copy_from_slice(&self.bytes[..self.filled]);
        self.bytes = larger;
    }

    /// The parts of what is filled that lie at `places`, which follow each other.
    pub(crate) fn parts(
        &mut self,
        places: impl Iterator<Item = Range<usize>>,
    ) -> impl Iterator<Item = &mut [u8]> {
        let (mut rest, mut at) = (&mut self.bytes[..self.filled], 0);
        places.map(move |place| {
            let (_, from) = std::mem::take(&mut rest).split_at_mut(place.start - at);
            let (part, after) = from.split_at_mut(place.len());
            (rest, at) = (after, place.end);
            part
        })
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    pub(crate) fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }

    /// A length as a number of 32 bits. What is sent never has more: see the limits of
    /// [`super`].
    pub(crate) fn put_length(&mut self, length: usize) {
        self.put_u32(u32::try_from(length).expect("replies stay below 4 GiB"));
    }
}
