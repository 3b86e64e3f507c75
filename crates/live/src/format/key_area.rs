//! The part of a die's header that holds the wrapped media keys of an encrypted drive.
//!
//! ```text
//!  0   | source | memory | passes | lanes | salt
//!  48  | key, 100 bytes: epoch | nonce | media key and tag, as AES-256-GCM made them
//!  …   | as many as there is room for; epoch 0: none
//! ```

use std::collections::BTreeSet;
use std::fmt;

use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::format::encoding::{U32, U64};
use crate::format::xts::KEY_BYTES;

/// Most media keys at a time: the one in use, and those of purges that were cut off.
pub(crate) const KEYS_MAX: usize = 4;
pub(crate) const SALT_BYTES: usize = 32;
pub(crate) const NONCE_BYTES: usize = 12;
/// Bytes of a wrapped key, with its tag.
pub(crate) const WRAPPED_BYTES: usize = KEY_BYTES + 16;

const RAW: u32 = 1;
const PASSPHRASE: u32 = 2;

/// Most that a header may ask for, so that damage to one takes no machine's memory or time.
const COST_MAX: Cost = Cost { memory_kib: 1 << 20, passes: 64, lanes: 16 };

/// Cost of deriving a key from a passphrase by Argon2id [rfc-9106].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
    pub(crate) lanes: u32,
}

impl Cost {
    /// Cost of new passphrases: 256 MiB, three times over.
    pub(crate) const USUAL: Self = Self { memory_kib: 256 << 10, passes: 3, lanes: 4 };

    const fn is_possible(&self) -> bool {
        let Self { memory_kib, passes, lanes } = *self;
        lanes >= 1
            && lanes <= COST_MAX.lanes
            && memory_kib >= 8 * lanes
            && memory_kib <= COST_MAX.memory_kib
            && passes >= 1
            && passes <= COST_MAX.passes
    }
}

/// Origin of the key that wraps the media keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// A key that is given as it is.
    Raw,
    /// A passphrase, from which the key is derived.
    Passphrase {
        /// Random bytes, drawn whenever a passphrase is set.
        salt: [u8; SALT_BYTES],
        cost: Cost,
    },
}

/// A media key as headers hold it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrappedKey {
    /// Number of the key, counted from 1.
    pub(crate) epoch: u64,
    pub(crate) nonce: [u8; NONCE_BYTES],
    pub(crate) sealed: [u8; WRAPPED_BYTES],
}

impl WrappedKey {
    /// True if bytes have it, wherever.
    #[cfg(test)]
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        bytes.windows(WRAPPED_BYTES).any(|it| *it == self.sealed)
    }
}

impl fmt::Debug for WrappedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrappedKey").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// The wrapped keys of a drive; of one that is not encrypted there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyArea {
    /// Origin of the wrapping key; none where there are no keys.
    pub(crate) source: Option<KeySource>,
    keys: [Option<WrappedKey>; KEYS_MAX],
}

/// Wrapped key as bytes.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct WrappedKeyBytes {
    epoch: U64,
    nonce: [u8; NONCE_BYTES],
    sealed: [u8; WRAPPED_BYTES],
}

/// Area as bytes.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct KeyAreaBytes {
    source: U32,
    memory_kib: U32,
    passes: U32,
    lanes: U32,
    salt: [u8; SALT_BYTES],
    keys: [WrappedKeyBytes; KEYS_MAX],
}

impl fmt::Debug for KeyAreaBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyAreaBytes(..)")
    }
}

impl KeyArea {
    /// The area with these keys.
    pub(crate) fn new(source: KeySource, wrapped: impl Iterator<Item = WrappedKey>) -> Self {
        let mut keys = [None; KEYS_MAX];
        for (place, key) in keys.iter_mut().zip(wrapped) {
            *place = Some(key);
        }
        Self { source: Some(source), keys }
    }

    /// The wrapped keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &WrappedKey> {
        self.keys.iter().flatten()
    }

    /// The area with one more key.
    pub(crate) fn with(&self, key: WrappedKey) -> Self {
        let mut area = *self;
        let place = area.keys.iter_mut().find(|it| it.is_none());
        *place.expect("there is room for another key") = Some(key);
        area
    }

    /// The area with its newest key alone.
    pub(crate) fn newest_alone(&self) -> Self {
        let newest = self.keys().max_by_key(|it| it.epoch).copied();
        let mut keys = [None; KEYS_MAX];
        keys[0] = newest;
        Self { keys, ..*self }
    }

    pub(crate) fn encode(&self) -> KeyAreaBytes {
        let mut bytes = KeyAreaBytes::new_zeroed();
        match self.source {
            None => {}
            Some(KeySource::Raw) => bytes.source = RAW.into(),
            Some(KeySource::Passphrase { salt, cost }) => {
                bytes.source = PASSPHRASE.into();
                bytes.memory_kib = cost.memory_kib.into();
                bytes.passes = cost.passes.into();
                bytes.lanes = cost.lanes.into();
                bytes.salt = salt;
            }
        }
        for (place, key) in bytes.keys.iter_mut().zip(self.keys()) {
            *place =
                WrappedKeyBytes { epoch: key.epoch.into(), nonce: key.nonce, sealed: key.sealed };
        }
        bytes
    }

    /// Decodes an area; none if it says what cannot be, such as two keys of one epoch.
    pub(crate) fn parse(bytes: &KeyAreaBytes) -> Option<Self> {
        let cost = Cost {
            memory_kib: bytes.memory_kib.get(),
            passes: bytes.passes.get(),
            lanes: bytes.lanes.get(),
        };
        let source = match bytes.source.get() {
            0 => None,
            RAW => Some(KeySource::Raw),
            PASSPHRASE if cost.is_possible() => {
                Some(KeySource::Passphrase { salt: bytes.salt, cost })
            }
            _ => return None,
        };
        let mut keys = [None; KEYS_MAX];
        let found = bytes.keys.iter().filter(|it| it.epoch != 0);
        for (place, key) in keys.iter_mut().zip(found) {
            let epoch = key.epoch.get();
            *place = Some(WrappedKey { epoch, nonce: key.nonce, sealed: key.sealed });
        }
        let area = Self { source, keys };
        let epochs: BTreeSet<u64> = area.keys().map(|it| it.epoch).collect();
        if epochs.len() != area.keys().count() {
            return None;
        }
        // What is written again is what was read.
        (area.encode().as_bytes() == bytes.as_bytes()).then_some(area)
    }
}

const _: () = assert!(size_of::<KeyAreaBytes>() == 448, "as long as it is");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_of_one_epoch_cannot_be() {
        let key = |epoch, byte| WrappedKey {
            epoch,
            nonce: [byte; NONCE_BYTES],
            sealed: [byte; WRAPPED_BYTES],
        };
        let of = |epochs: [u64; 2]| {
            let keys = epochs.into_iter().zip(1..).map(|(epoch, byte)| key(epoch, byte));
            KeyArea::new(KeySource::Raw, keys)
        };
        let whole = of([1, 2]);
        assert_eq!(KeyArea::parse(&whole.encode()), Some(whole));
        assert_eq!(KeyArea::parse(&of([2, 2]).encode()), None);
    }
}
