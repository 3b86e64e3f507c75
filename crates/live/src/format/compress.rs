//! Pages and payloads: what is stored of a page, and the page that comes of it.
//!
//! ```text
//!   page ─► compressed, if that is worth it ─► encrypted, if the drive is ─► checksum
//! ```
//!
//! Each page is compressed by itself, so that reading one takes one. What does not become smaller
//! by [`SAVED_BYTES_MIN`] is stored as it is, and costs no time to read.

use std::cell::RefCell;
use std::sync::Arc;

use ftl::Lpn;
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};
use status::Compression;
use zstd::bulk::{Compressor, Decompressor};

use crate::format::layout::PAGE_BYTES;
use crate::format::media_keys::MediaKeys;
use crate::format::unit::{Codec, Extent, Page};
use crate::format::xts::PAYLOAD_BYTES_MIN;

/// Least saving for which a page is stored compressed, in bytes; less is not worth the time of
/// expanding it.
const SAVED_BYTES_MIN: usize = 128;
/// Bytes that a page may become longer by while it is compressed.
const SLACK_BYTES: usize = get_maximum_output_size(PAGE_BYTES) - PAGE_BYTES;
/// Level of Zstandard: more takes several times as long for a few percent.
const ZSTD_LEVEL: i32 = 1;
/// Beginning of a frame that Zstandard skips [rfc-8878], and the bytes before its content.
const SKIPPED_MAGIC: u32 = 0x184d_2a50;
const SKIPPED_HEAD_BYTES: usize = 8;

/// The number that stands for a compression in the header of a die.
pub(crate) const fn number(compression: Compression) -> u32 {
    match compression {
        Compression::None => Codec::Raw as u32,
        Compression::Lz4 => Codec::Lz4 as u32,
        Compression::Zstd => Codec::Zstd as u32,
    }
}

/// The compression that such a number stands for; none if there is no such one.
pub(crate) fn of_number(wanted: u32) -> Option<Compression> {
    let known = [Compression::None, Compression::Lz4, Compression::Zstd];
    known.into_iter().find(|it| number(*it) == wanted)
}

/// Way in which pages become payloads.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    pub(crate) compression: Compression,
    /// Keys of an encrypted drive.
    pub(crate) keys: Option<Arc<MediaKeys>>,
}

impl Packing {
    /// Slot of the key that payloads are encrypted with; 0: they are not encrypted.
    pub(crate) fn key(&self) -> u8 {
        self.keys.as_ref().map_or(0, |keys| keys.current())
    }

    /// Memory for the payloads of so many pages.
    pub(crate) fn scratch(&self, pages: usize) -> Vec<u8> {
        match self.compression {
            Compression::None if self.keys.is_none() => Vec::new(),
            Compression::None => vec![0; pages * PAGE_BYTES],
            Compression::Lz4 | Compression::Zstd => vec![0; pages * PAGE_BYTES + SLACK_BYTES],
        }
    }

    /// A page as it is to be stored, its payload taken from the beginning of `scratch` where it
    /// becomes smaller or is encrypted.
    pub(crate) fn pack<'a>(&self, lpn: Lpn, page: &'a [u8], scratch: &mut Scratch<'a>) -> Page<'a> {
        let shrunk = shrink(self.compression, page, scratch.0);
        let (codec, payload) = match (shrunk, &self.keys) {
            (None, None) => (Codec::Raw, page),
            (None, Some(keys)) => {
                let payload = scratch.take(page.len());
                keys.encrypt(lpn, page, payload);
                (Codec::Raw, &*payload)
            }
            (Some((codec, length)), None) => (codec, &*scratch.take(length)),
            (Some((codec, length)), Some(keys)) => {
                let length = fill_up(codec, scratch.0, length);
                let payload = scratch.take(length);
                keys.encrypt_in_place(lpn, payload);
                (codec, &*payload)
            }
        };
        let (key, payload_crc) = (self.key(), crc32c::crc32c(payload));
        Page { lpn, codec, key, payload, payload_crc }
    }
}

/// Makes a payload at the beginning of `scratch` long enough to be encrypted; returns its length.
/// A byte of LZ4 expands to 255, so that a page takes more than that; Zstandard skips a frame of
/// the kind that is added here.
fn fill_up(codec: Codec, scratch: &mut [u8], length: usize) -> usize {
    if length >= PAYLOAD_BYTES_MIN {
        return length;
    }
    assert_eq!(codec, Codec::Zstd, "no other codec makes so little of a page");
    let content = PAYLOAD_BYTES_MIN.saturating_sub(length + SKIPPED_HEAD_BYTES);
    let added = &mut scratch[length..length + SKIPPED_HEAD_BYTES + content];
    added.fill(0);
    added[..4].copy_from_slice(&SKIPPED_MAGIC.to_le_bytes());
    added[4..8].copy_from_slice(&u32::try_from(content).expect("a few").to_le_bytes());
    length + SKIPPED_HEAD_BYTES + content
}

/// Compresses a page to the beginning of `scratch`; says how and how long, if that is worth it.
fn shrink(compression: Compression, page: &[u8], scratch: &mut [u8]) -> Option<(Codec, usize)> {
    WORKSPACE.with_borrow_mut(|workspace| {
        let (codec, length) = match compression {
            Compression::None => return None,
            Compression::Lz4 => {
                let table = &mut workspace.table;
                (Codec::Lz4, compress_into_with_table(page, scratch, table).ok()?)
            }
            Compression::Zstd => {
                let known = workspace.compressor.take();
                let compressor = known.or_else(|| Compressor::new(ZSTD_LEVEL).ok())?;
                let compressor = workspace.compressor.insert(compressor);
                (Codec::Zstd, compressor.compress_to_buffer(page, scratch).ok()?)
            }
        };
        (length + SAVED_BYTES_MIN <= PAGE_BYTES).then_some((codec, length))
    })
}

/// Unused part of the memory for payloads.
#[derive(Debug)]
pub(crate) struct Scratch<'a>(pub(crate) &'a mut [u8]);

impl<'a> Scratch<'a> {
    /// Takes so many bytes of it.
    fn take(&mut self, length: usize) -> &'a mut [u8] {
        let (taken, rest) = std::mem::take(&mut self.0).split_at_mut(length);
        self.0 = rest;
        taken
    }
}

/// Compressor state that each thread keeps: making it anew takes longer than compressing a page.
#[derive(Default)]
struct Workspace {
    table: CompressTable,
    compressor: Option<Compressor<'static>>,
    decompressor: Option<Decompressor<'static>>,
}

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// Turns what is stored of a page into that page; none if it is none, or its key is another one. An
/// encrypted drive has no payloads that are not.
pub(crate) fn unpack(
    keys: Option<&MediaKeys>,
    extent: &Extent,
    payload: &[u8],
    page: &mut [u8; PAGE_BYTES],
) -> Option<()> {
    match keys {
        None if extent.key == 0 => expand(extent.codec, payload, page),
        None => None,
        Some(keys) if extent.codec == Codec::Raw => keys.decrypt(extent, payload, page),
        Some(keys) => {
            let mut memory = [0; PAGE_BYTES];
            let text = memory.get_mut(..payload.len())?;
            keys.decrypt(extent, payload, text)?;
            expand(extent.codec, text, page)
        }
    }
}

/// As [`unpack`] of a page that is stored whole, where it lies.
pub(crate) fn unpack_in_place(
    keys: Option<&MediaKeys>,
    extent: &Extent,
    page: &mut [u8; PAGE_BYTES],
) -> Option<()> {
    (extent.codec == Codec::Raw).then_some(())?;
    match keys {
        None => (extent.key == 0).then_some(()),
        Some(keys) => keys.decrypt_in_place(extent, page),
    }
}

/// Turns a payload into the page that it was made from; none if it is none.
fn expand(codec: Codec, payload: &[u8], page: &mut [u8; PAGE_BYTES]) -> Option<()> {
    let length = match codec {
        Codec::Raw => {
            *page = payload.try_into().ok()?;
            PAGE_BYTES
        }
        Codec::Lz4 => decompress_into(payload, page).ok()?,
        Codec::Zstd => WORKSPACE.with_borrow_mut(|workspace| {
            let known = workspace.decompressor.take();
            let decompressor = known.or_else(|| Decompressor::new().ok())?;
            let decompressor = workspace.decompressor.insert(decompressor);
            decompressor.decompress_to_buffer(payload, &mut page[..]).ok()
        })?,
        Codec::Lost => return None,
    };
    (length == PAGE_BYTES).then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

    /// A page of which so many bytes are random, and the rest is one byte.
    fn page(random: usize, seed: u64) -> [u8; PAGE_BYTES] {
        let mut rng = blockio::Rng::new(seed);
        let mut page = [7; PAGE_BYTES];
        page[..random].fill_with(|| u8::try_from(rng.below(256)).unwrap());
        page
    }

    fn packed(compression: Compression, page: &[u8]) -> (Codec, Vec<u8>) {
        let packing = Packing { compression, keys: None };
        let mut memory = packing.scratch(1);
        let packed = packing.pack(Lpn(3), page, &mut Scratch(&mut memory));
        assert_eq!(packed.payload_crc, crc32c::crc32c(packed.payload));
        (packed.codec, packed.payload.to_vec())
    }

    proptest! {
        #[test]
        fn every_page_comes_back(random in 0..=PAGE_BYTES, seed: u64) {
            let page = page(random, seed);
            for compression in ALL {
                let (codec, payload) = packed(compression, &page);
                let mut found = [1; PAGE_BYTES];
                prop_assert_eq!(expand(codec, &payload, &mut found), Some(()));
                prop_assert!(found == page);
            }
        }

        #[test]
        fn what_is_no_payload_is_never_a_page_and_does_no_harm(
            payload in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut page = [0; PAGE_BYTES];
            for codec in [Codec::Raw, Codec::Lz4, Codec::Zstd, Codec::Lost] {
                let found = expand(codec, &payload, &mut page);
                prop_assert!(found.is_none() || codec == Codec::Lz4);
            }
        }
    }

    #[test]
    fn random_bytes_are_stored_as_they_are_and_halves_as_halves() {
        for compression in [Compression::Lz4, Compression::Zstd] {
            let random = page(PAGE_BYTES, 1);
            assert_eq!(packed(compression, &random), (Codec::Raw, random.to_vec()));
            let (codec, payload) = packed(compression, &page(PAGE_BYTES / 2, 1));
            assert_eq!(u32::from(codec as u8), number(compression));
            assert!((2048..2100).contains(&payload.len()), "{}", payload.len());
        }
    }

    #[test]
    fn many_pages_share_their_room() {
        let pages: Vec<_> = (0..4).map(|seed| page(1000 * seed, seed as u64)).collect();
        let packing = Packing { compression: Compression::Lz4, keys: None };
        let mut memory = packing.scratch(4);
        let mut left = Scratch(&mut memory);
        let packed: Vec<Page<'_>> =
            pages.iter().map(|page| packing.pack(Lpn(0), page, &mut left)).collect();
        for (packed, page) in packed.iter().zip(&pages) {
            let mut found = [0; PAGE_BYTES];
            expand(packed.codec, packed.payload, &mut found).unwrap();
            assert!(found == *page);
        }
    }
}
