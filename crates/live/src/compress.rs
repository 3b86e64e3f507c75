//! Payloads and pages.

use crate::layout::PAGE_BYTES;
use crate::unit::Codec;

/// Turns a payload into the page that it was made from; none if it is none.
pub(crate) fn expand(codec: Codec, payload: &[u8], page: &mut [u8; PAGE_BYTES]) -> Option<()> {
    match codec {
        Codec::Raw => {
            *page = payload.try_into().ok()?;
            Some(())
        }
        Codec::Lz4 | Codec::Zstd | Codec::Lost => None,
    }
}
