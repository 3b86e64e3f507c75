//! Keys of an encrypted drive: those that pages are encrypted with (**media keys**), and the one
//! that wraps them.
//!
//! ```text
//!   passphrase ─► Argon2id ─┐
//!   key file of 32 bytes ───┴► wrapping key ─► AES-256-GCM ─► media keys ─► AES-256-XTS
//!                                                 │
//!                              every header: salt, cost, wrapped media keys
//! ```
//!
//! A media key has a number, its **epoch**, counted up; a payload says by its **slot** which one it
//! was encrypted with. There is one, but for a purge that is under way or was cut off: it adds one,
//! forgets what others encrypted, and then drops those from every header.
//!
//! **Invariants**:
//! - The newest epoch encrypts what is written from then on; no epoch comes twice.
//! - A secret is wiped when it is dropped, and no `Debug` shows it.
//!
//! Sources: [ieee-1619-2018], [rfc-9106].

use std::fmt;
use std::sync::Arc;

use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use ftl::Lpn;
use zeroize::Zeroizing;

use crate::format::key_area::{
    Cost, KEYS_MAX, KeyArea, KeySource, NONCE_BYTES, SALT_BYTES, WRAPPED_BYTES, WrappedKey,
};
use crate::format::layout::PAGE_BYTES;
use crate::format::unit::Extent;
use crate::format::xts::{KEY_BYTES, PAYLOAD_BYTES_MIN, Tweak, Xts};

/// Bytes of a key file that is a key itself.
const RAW_KEY_BYTES: usize = 32;
/// Longest passphrase in bytes.
const PASSPHRASE_BYTES_MAX: usize = 4096;

/// The secret that unlocks an encrypted drive: a passphrase, or a key of 32 bytes.
///
/// It is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct UnlockingKey {
    secret: Zeroizing<Vec<u8>>,
    is_raw: bool,
}

impl fmt::Debug for UnlockingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnlockingKey(..)")
    }
}

/// Reason why a drive cannot be unlocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockedCause {
    /// No key was given for an encrypted drive.
    #[error("it is encrypted, and no key was given")]
    NoKey,
    /// Its media keys were wrapped with another key.
    #[error("the key is not the one that the volume was locked with")]
    WrongKey,
    /// No header holds a media key.
    #[error("its dies hold no media key any more: what it stored cannot be decrypted")]
    KeysErased,
    /// A key was given, and it is not encrypted.
    #[error("a key was given, and the volume is not encrypted")]
    NotEncrypted,
}

impl UnlockingKey {
    /// The key in the bytes of a key file, or in what a command prints: 32 bytes that are no line
    /// of text are a key, all else is a passphrase, of which one line feed at the end is no part.
    ///
    /// # Errors
    /// Fails if there are no bytes, or more than 4096; says so.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let is_text = line.iter().all(|byte| (b' '..=b'~').contains(byte));
        if bytes.len() == RAW_KEY_BYTES && !is_text {
            return Ok(Self { secret: Zeroizing::new(bytes.to_vec()), is_raw: true });
        }
        if line.is_empty() || line.len() > PASSPHRASE_BYTES_MAX {
            let length = line.len();
            return Err(format!(
                "a passphrase of {length} bytes, must be 1 to {PASSPHRASE_BYTES_MAX}; a key has \
                 {RAW_KEY_BYTES}"
            ));
        }
        Ok(Self { secret: Zeroizing::new(line.to_vec()), is_raw: false })
    }

    /// The wrapping key that comes of it; none where the drive was locked with the other kind.
    fn derive(&self, source: KeySource) -> Option<Zeroizing<[u8; RAW_KEY_BYTES]>> {
        let mut key = Zeroizing::new([0; RAW_KEY_BYTES]);
        match source {
            KeySource::Raw if self.is_raw => key.copy_from_slice(&self.secret),
            KeySource::Passphrase { salt, cost } if !self.is_raw => {
                let Cost { memory_kib, passes, lanes } = cost;
                let params = Params::new(memory_kib, passes, lanes, Some(RAW_KEY_BYTES)).ok()?;
                Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                    .hash_password_into(&self.secret, &salt, &mut *key)
                    .ok()?;
            }
            KeySource::Raw | KeySource::Passphrase { .. } => return None,
        }
        Some(key)
    }
}

/// Random bytes of the system's generator.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has random bytes");
    bytes
}

/// The key that wraps media keys, and what it was derived from.
struct WrappingKey {
    source: KeySource,
    key: LessSafeKey,
    /// Drive whose keys it wraps.
    drive: u64,
}

impl WrappingKey {
    /// The wrapping key of an unlocking key; none where it is of the other kind.
    fn new(unlocking: &UnlockingKey, source: KeySource, drive: u64) -> Option<Self> {
        let key = unlocking.derive(source)?;
        let key = UnboundKey::new(&AES_256_GCM, &*key).expect("as long as a key");
        Some(Self { source, key: LessSafeKey::new(key), drive })
    }

    /// Bytes that a wrapped key is bound to: it is that of no other drive or epoch.
    fn bound(&self, epoch: u64) -> [u8; 16] {
        let mut bound = [0; 16];
        bound[..8].copy_from_slice(&self.drive.to_le_bytes());
        bound[8..].copy_from_slice(&epoch.to_le_bytes());
        bound
    }

    fn wrap(&self, epoch: u64, key: &[u8; KEY_BYTES]) -> WrappedKey {
        let nonce: [u8; NONCE_BYTES] = random();
        let mut sealed = [0; WRAPPED_BYTES];
        let (text, tag) = sealed.split_at_mut(KEY_BYTES);
        text.copy_from_slice(key);
        let (at, bound) = (Nonce::assume_unique_for_key(nonce), Aad::from(self.bound(epoch)));
        let found = self.key.seal_in_place_separate_tag(at, bound, text);
        tag.copy_from_slice(found.expect("a key is short").as_ref());
        WrappedKey { epoch, nonce, sealed }
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
        let mut sealed = Zeroizing::new(wrapped.sealed);
        let at = Nonce::assume_unique_for_key(wrapped.nonce);
        let bound = Aad::from(self.bound(wrapped.epoch));
        let text = self.key.open_in_place(at, bound, &mut *sealed).ok()?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        key.copy_from_slice(text);
        Some(key)
    }
}

/// A media key.
#[derive(Debug)]
struct MediaKey {
    epoch: u64,
    xts: Xts,
}

/// The media keys of an open drive.
pub(crate) struct MediaKeys {
    wrapping: Arc<WrappingKey>,
    /// By rising epoch; the last one encrypts.
    keys: Vec<Arc<MediaKey>>,
}

impl fmt::Debug for MediaKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epochs: Vec<u64> = self.keys.iter().map(|it| it.epoch).collect();
        f.debug_struct("MediaKeys").field("epochs", &epochs).finish_non_exhaustive()
    }
}

/// Number of the place for a key of an epoch, from 1 on.
const fn slot(epoch: u64) -> u8 {
    #[expect(clippy::cast_possible_truncation, reason = "a handful of keys")]
    let place = ((epoch - 1) % KEYS_MAX as u64) as u8;
    place + 1
}

impl MediaKeys {
    /// A first media key for a drive, to be wrapped with what `unlocking` says.
    pub(crate) fn generate(unlocking: &UnlockingKey, cost: Cost, drive: u64) -> Self {
        let source = source_of(unlocking, cost);
        let wrapping = WrappingKey::new(unlocking, source, drive).expect("of its own kind");
        Self { wrapping: Arc::new(wrapping), keys: vec![generated(1)] }
    }

    /// The media keys of a drive, from what its headers hold.
    ///
    /// # Errors
    /// Fails if the key is another one.
    pub(crate) fn unlock(
        area: &KeyArea,
        unlocking: &UnlockingKey,
        drive: u64,
    ) -> Result<Self, LockedCause> {
        let source = area.source.ok_or(LockedCause::KeysErased)?;
        let wrapping = WrappingKey::new(unlocking, source, drive).ok_or(LockedCause::WrongKey)?;
        let open = |wrapped: &WrappedKey| {
            let xts = Xts::new(wrapping.unwrap(wrapped)?);
            Some(Arc::new(MediaKey { epoch: wrapped.epoch, xts }))
        };
        let mut keys = area.keys().map(open).collect::<Option<Vec<_>>>();
        let keys = keys.as_mut().filter(|it| !it.is_empty()).ok_or(LockedCause::WrongKey)?;
        keys.sort_unstable_by_key(|it| it.epoch);
        Ok(Self { wrapping: Arc::new(wrapping), keys: std::mem::take(keys) })
    }

    /// The newest key as headers hold it, wrapped anew.
    pub(crate) fn wrapped_newest(&self) -> WrappedKey {
        let MediaKey { epoch, xts } = &**self.newest();
        self.wrapping.wrap(*epoch, xts.key())
    }

    /// All keys as headers hold them, wrapped anew.
    pub(crate) fn wrapped(&self) -> KeyArea {
        let wrapped = self.keys.iter().map(|it| self.wrapping.wrap(it.epoch, it.xts.key()));
        KeyArea::new(self.wrapping.source, wrapped)
    }

    /// Media keys that another key wraps, the same as before.
    pub(crate) fn rekeyed(&self, unlocking: &UnlockingKey, cost: Cost) -> Self {
        let (source, drive) = (source_of(unlocking, cost), self.wrapping.drive);
        let wrapping = WrappingKey::new(unlocking, source, drive).expect("of its own kind");
        Self { wrapping: Arc::new(wrapping), keys: self.keys.clone() }
    }

    /// True if headers have room for one more.
    pub(crate) const fn has_room(&self) -> bool {
        self.keys.len() < KEYS_MAX
    }

    /// The slot of the key that encrypts.
    pub(crate) fn current(&self) -> u8 {
        slot(self.newest().epoch)
    }

    /// Media keys with one more, which encrypts from now on.
    pub(crate) fn with_another(&self) -> Self {
        assert!(self.has_room(), "headers have room for so many keys");
        let mut keys = self.keys.clone();
        keys.push(generated(self.newest().epoch + 1));
        Self { wrapping: Arc::clone(&self.wrapping), keys }
    }

    /// The key that encrypts alone.
    pub(crate) fn newest_alone(&self) -> Self {
        Self { wrapping: Arc::clone(&self.wrapping), keys: vec![Arc::clone(self.newest())] }
    }

    fn newest(&self) -> &Arc<MediaKey> {
        self.keys.last().expect("there is one")
    }

    /// Encrypts what is stored of a page.
    pub(crate) fn encrypt(&self, lpn: Lpn, from: &[u8], to: &mut [u8]) {
        let key = self.newest();
        key.xts.encrypt(tweak(lpn, key.epoch), from, to);
    }

    /// As [`MediaKeys::encrypt`], where it lies.
    pub(crate) fn encrypt_in_place(&self, lpn: Lpn, payload: &mut [u8]) {
        let key = self.newest();
        key.xts.encrypt_in_place(tweak(lpn, key.epoch), payload);
    }

    /// Decrypts what is stored of a page; none where there is no such key, or too little is stored.
    pub(crate) fn decrypt(&self, extent: &Extent, from: &[u8], to: &mut [u8]) -> Option<()> {
        let key = self.key_of(extent)?;
        (from.len() == to.len() && from.len() >= PAYLOAD_BYTES_MIN).then_some(())?;
        key.xts.decrypt(tweak(extent.lpn, key.epoch), from, to);
        Some(())
    }

    /// As [`MediaKeys::decrypt`] of a page that is stored whole, where it lies.
    pub(crate) fn decrypt_in_place(
        &self,
        extent: &Extent,
        page: &mut [u8; PAGE_BYTES],
    ) -> Option<()> {
        let key = self.key_of(extent)?;
        key.xts.decrypt_in_place(tweak(extent.lpn, key.epoch), page);
        Some(())
    }

    fn key_of(&self, extent: &Extent) -> Option<&MediaKey> {
        self.keys.iter().map(|it| &**it).find(|it| slot(it.epoch) == extent.key)
    }
}

/// The source of the wrapping key that comes of an unlocking key, with a salt of its own.
fn source_of(unlocking: &UnlockingKey, cost: Cost) -> KeySource {
    if unlocking.is_raw {
        return KeySource::Raw;
    }
    KeySource::Passphrase { salt: random::<SALT_BYTES>(), cost }
}

fn generated(epoch: u64) -> Arc<MediaKey> {
    Arc::new(MediaKey { epoch, xts: Xts::new(Zeroizing::new(random())) })
}

/// The tweak of a page and an epoch: what is written to two pages, or with two keys, differs.
fn tweak(lpn: Lpn, epoch: u64) -> Tweak {
    let mut tweak = [0; 16];
    tweak[..4].copy_from_slice(&lpn.0.to_le_bytes());
    tweak[8..].copy_from_slice(&epoch.to_le_bytes());
    tweak
}
