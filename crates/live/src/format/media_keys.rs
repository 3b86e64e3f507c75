//! Keys of an encrypted drive: those that pages are encrypted with (**media keys**), and the one
//! that wraps them.
//!
//! ```text
//!   text: a passphrase ─► Argon2id ─┐
//!   else: a key of 32 bytes ────────┴► wrapping key ─► AES-256-GCM ─► media keys ─► AES-256-XTS
//!                                                         │
//!                                      every header: salt, cost, wrapped media keys
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

use argon2::{Algorithm, Argon2, Block, Params, Version};
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

/// Text for an operator whose key opened a drive as earlier versions took its bytes.
pub const KEY_READ_AS_BEFORE: &str = "the volume was locked with these bytes as an earlier version \
     took them, where text that ends in CRLF, or that is no ASCII, could be a key or a passphrase; \
     give it a key that is unambiguous: `floatgate volume rekey`, which takes the same file as the \
     new one if it holds text or 32 random bytes";

/// The secret that unlocks an encrypted drive: a passphrase, or a key of 32 bytes.
///
/// It is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct UnlockingKey {
    /// The secret that its bytes are; none of bytes that a drive may not be locked with any more.
    secret: Option<Secret>,
    /// The secret that earlier versions took the same bytes for, where that is another one.
    former: Option<Secret>,
}

/// A passphrase, or a key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    bytes: Zeroizing<Vec<u8>>,
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
    /// The key in the bytes of a key file, or in what a command prints: text in UTF-8 is a
    /// passphrase, of which one line end (LF or CRLF) is no part; 32 other bytes are a key.
    ///
    /// Earlier versions took other bytes for keys and passphrases; a drive that was locked with
    /// those opens still.
    ///
    /// # Errors
    /// Fails of bytes that neither are; says so.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (secret, former) = (Secret::of_bytes(bytes), Secret::of_bytes_as_before(bytes));
        if secret.is_none() && former.is_none() {
            let length = bytes.len();
            return Err(format!(
                "{length} bytes, must be a passphrase of 1 to {PASSPHRASE_BYTES_MAX} bytes of \
                 text, or a key of {RAW_KEY_BYTES} bytes"
            ));
        }
        let former = former.filter(|it| Some(it) != secret.as_ref());
        Ok(Self { secret, former })
    }

    /// Checks that a drive may be locked with the key.
    ///
    /// # Errors
    /// Fails of bytes that only earlier versions took for a passphrase; says so.
    pub fn check_new(&self) -> Result<(), String> {
        self.new_secret().map(drop)
    }

    /// The secret that a drive is locked with from now on.
    ///
    /// # Errors
    /// As [`UnlockingKey::check_new`].
    pub(crate) fn new_secret(&self) -> Result<&Secret, String> {
        self.secret.as_ref().ok_or_else(|| {
            format!(
                "the new key is neither text in UTF-8, which would be a passphrase, nor exactly \
                 {RAW_KEY_BYTES} bytes, which would be a key: write the passphrase in UTF-8, or \
                 draw a key with `head -c {RAW_KEY_BYTES} /dev/urandom`"
            )
        })
    }
}

impl Secret {
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        if std::str::from_utf8(bytes).is_ok() {
            let line = bytes.strip_suffix(b"\r\n").or_else(|| bytes.strip_suffix(b"\n"));
            return Self::passphrase(line.unwrap_or(bytes));
        }
        (bytes.len() == RAW_KEY_BYTES).then(|| Self::raw(bytes))
    }

    /// The secret as earlier versions took it: 32 bytes that are no line of printable ASCII
    /// were a key, all else a passphrase without one line feed at its end.
    fn of_bytes_as_before(bytes: &[u8]) -> Option<Self> {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let is_text = line.iter().all(|byte| (b' '..=b'~').contains(byte));
        let is_raw = bytes.len() == RAW_KEY_BYTES && !is_text;
        if is_raw { Some(Self::raw(bytes)) } else { Self::passphrase(line) }
    }

    fn raw(bytes: &[u8]) -> Self {
        Self { bytes: Zeroizing::new(bytes.to_vec()), is_raw: true }
    }

    fn passphrase(line: &[u8]) -> Option<Self> {
        let is_possible = (1..=PASSPHRASE_BYTES_MAX).contains(&line.len());
        is_possible.then(|| Self { bytes: Zeroizing::new(line.to_vec()), is_raw: false })
    }

    /// The wrapping key that comes of it; none where the drive was locked with the other kind.
    fn derive(&self, source: KeySource) -> Option<Zeroizing<[u8; RAW_KEY_BYTES]>> {
        let mut key = Zeroizing::new([0; RAW_KEY_BYTES]);
        match source {
            KeySource::Raw if self.is_raw => key.copy_from_slice(&self.bytes),
            KeySource::Passphrase { salt, cost } if !self.is_raw => {
                let Cost { memory_kib, passes, lanes } = cost;
                let params = Params::new(memory_kib, passes, lanes, Some(RAW_KEY_BYTES)).ok()?;
                // Wiped, which the library does not do with memory of its own.
                let mut blocks = Zeroizing::new(vec![Block::new(); params.block_count()]);
                Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                    .hash_password_into_with_memory(
                        &self.bytes,
                        &salt,
                        &mut *key,
                        blocks.as_mut_slice(),
                    )
                    .ok()?;
            }
            KeySource::Raw | KeySource::Passphrase { .. } => return None,
        }
        Some(key)
    }

    /// The source of the wrapping key that comes of it, with a salt of its own.
    fn source(&self, cost: Cost) -> KeySource {
        if self.is_raw {
            return KeySource::Raw;
        }
        KeySource::Passphrase { salt: random::<SALT_BYTES>(), cost }
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
    /// The wrapping key of a secret; none where it is of the other kind.
    fn new(secret: &Secret, source: KeySource, drive: u64) -> Option<Self> {
        let key = secret.derive(source)?;
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
    /// True if the key that unlocked them is one as earlier versions took its bytes.
    is_read_as_before: bool,
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
    /// A first media key for a drive, to be wrapped with what comes of a secret.
    pub(crate) fn generate(secret: &Secret, cost: Cost, drive: u64) -> Self {
        Self::of(secret, secret.source(cost), drive, vec![generated(1)])
    }

    /// Media keys, wrapped with what comes of a secret.
    fn of(secret: &Secret, source: KeySource, drive: u64, keys: Vec<Arc<MediaKey>>) -> Self {
        let wrapping = WrappingKey::new(secret, source, drive).expect("of its own kind");
        Self { wrapping: Arc::new(wrapping), keys, is_read_as_before: false }
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
        let UnlockingKey { secret, former } = unlocking;
        let opened = |secret: &Option<Secret>| {
            let secret = secret.as_ref().ok_or(LockedCause::WrongKey)?;
            Self::unlock_with(area, secret, drive)
        };
        match opened(secret) {
            Err(LockedCause::WrongKey) => {
                opened(former).map(|keys| Self { is_read_as_before: true, ..keys })
            }
            opened => opened,
        }
    }

    fn unlock_with(area: &KeyArea, secret: &Secret, drive: u64) -> Result<Self, LockedCause> {
        let source = area.source.ok_or(LockedCause::KeysErased)?;
        let wrapping = WrappingKey::new(secret, source, drive).ok_or(LockedCause::WrongKey)?;
        let open = |wrapped: &WrappedKey| {
            let xts = Xts::new(wrapping.unwrap(wrapped)?);
            Some(Arc::new(MediaKey { epoch: wrapped.epoch, xts }))
        };
        let mut keys = area.keys().map(open).collect::<Option<Vec<_>>>();
        let keys = keys.as_mut().filter(|it| !it.is_empty()).ok_or(LockedCause::WrongKey)?;
        keys.sort_unstable_by_key(|it| it.epoch);
        let (wrapping, keys) = (Arc::new(wrapping), std::mem::take(keys));
        Ok(Self { wrapping, keys, is_read_as_before: false })
    }

    /// True if the key that unlocked them is one as earlier versions took its bytes.
    pub(crate) const fn is_read_as_before(&self) -> bool {
        self.is_read_as_before
    }

    /// True if what headers are to hold has these media keys: `secret`, from which the wrapping
    /// key is derived anew, gives them back; none stands for the wrapping key at hand.
    pub(crate) fn are_in(&self, area: &KeyArea, secret: Option<&Secret>) -> bool {
        let Some(read) = KeyArea::parse(&area.encode()) else { return false };
        let derived = |secret: &Secret| {
            WrappingKey::new(secret, read.source?, self.wrapping.drive).map(Arc::new)
        };
        let wrapping = secret.map_or_else(|| Some(Arc::clone(&self.wrapping)), derived);
        let is_it = |wrapped: &WrappedKey| {
            let held = self.keys.iter().find(|it| it.epoch == wrapped.epoch);
            let found = wrapping.as_ref().and_then(|it| it.unwrap(wrapped));
            held.zip(found).is_some_and(|(held, found)| *found == *held.xts.key())
        };
        read.keys().count() == self.keys.len() && read.keys().all(is_it)
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
    pub(crate) fn rekeyed(&self, secret: &Secret, cost: Cost) -> Self {
        Self::of(secret, secret.source(cost), self.wrapping.drive, self.keys.clone())
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
        self.with_keys(keys)
    }

    /// The key that encrypts alone.
    pub(crate) fn newest_alone(&self) -> Self {
        self.with_keys(vec![Arc::clone(self.newest())])
    }

    fn with_keys(&self, keys: Vec<Arc<MediaKey>>) -> Self {
        let is_read_as_before = self.is_read_as_before;
        Self { wrapping: Arc::clone(&self.wrapping), keys, is_read_as_before }
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

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost { memory_kib: 64, passes: 1, lanes: 1 };
    /// 32 bytes that no text in UTF-8 has.
    const RANDOM: [u8; 32] = [0xa7; 32];

    fn passphrase(text: &[u8]) -> Option<Secret> {
        Secret::passphrase(text)
    }

    #[test]
    fn text_of_any_length_is_a_passphrase_without_its_line_end_and_32_other_bytes_are_a_key() {
        let german = "zw\u{f6}lf B\u{e4}ume stehen im Park....";
        let crlf = "a passphrase that ends in CRLF\r\n";
        assert_eq!((german.len(), crlf.len()), (32, 32));
        for (given, line) in [
            (german.as_bytes(), german.as_bytes()),
            (crlf.as_bytes(), &crlf.as_bytes()[..30]),
            (b"text\n", b"text"),
            (b"text\n\n", b"text\n"),
            (b"text\r", b"text\r"),
            (&[b'x'; 32], &[b'x'; 32]),
            (&[0; 32], &[0; 32]),
        ] {
            assert!(Secret::of_bytes(given) == passphrase(line), "{given:?}");
        }
        assert!(Secret::of_bytes(&RANDOM) == Some(Secret::raw(&RANDOM)));
        for (bad, is_former) in [(&RANDOM[..31], true), (b"\n", false), (b"", false)] {
            assert!(Secret::of_bytes(bad).is_none());
            let key = UnlockingKey::of_bytes(bad);
            assert_eq!(key.is_ok(), is_former, "{bad:?}");
            let told = key.map_or_else(Err, |key| key.check_new()).unwrap_err();
            assert!(told.contains("32"), "{told}");
        }
        assert!(UnlockingKey::of_bytes(&[b'x'; 4097]).is_err());
    }

    #[test]
    fn what_earlier_versions_locked_opens_still_and_says_so() {
        // 32 bytes were a key unless all were printable ASCII; a carriage return was kept.
        let text = "zw\u{f6}lf B\u{e4}ume stehen im Park....".as_bytes();
        let (crlf, latin) = (b"short\r\n", b"\xe4\xf6\xfc in Latin-1");
        for (given, former) in [
            (text, Secret::raw(text)),
            (&[0; 32], Secret::raw(&[0; 32])),
            (crlf, passphrase(b"short\r").unwrap()),
            (latin, passphrase(latin).unwrap()),
        ] {
            let locked = MediaKeys::generate(&former, CHEAP, 1);
            let unlocking = UnlockingKey::of_bytes(given).unwrap();
            let unlocked = MediaKeys::unlock(&locked.wrapped(), &unlocking, 1).unwrap();
            assert!(unlocked.is_read_as_before(), "{given:?}");
            assert!(*unlocked.newest().xts.key() == *locked.newest().xts.key());
            // What is locked anew is locked with what is said to be the key.
            let Ok(secret) = unlocking.new_secret() else { continue };
            let anew = unlocked.rekeyed(secret, CHEAP);
            assert!(anew.are_in(&anew.wrapped(), Some(secret)) && !anew.is_read_as_before());
            assert!(!anew.are_in(&anew.wrapped(), Some(&former)));
            let opened = MediaKeys::unlock(&anew.wrapped(), &unlocking, 1).unwrap();
            assert!(!opened.is_read_as_before());
        }
    }

    #[test]
    fn keys_that_the_secret_does_not_give_back_are_not_in_an_area() {
        let secret = Secret::raw(&RANDOM);
        let keys = MediaKeys::generate(&secret, CHEAP, 1);
        let area = keys.wrapped();
        assert!(keys.are_in(&area, None) && keys.are_in(&area, Some(&secret)));
        let other = MediaKeys::generate(&secret, CHEAP, 1);
        assert!(!other.are_in(&area, None), "they are other media keys");
        assert!(!keys.with_another().are_in(&area, None), "one is missing");
        let mut changed = *area.keys().next().unwrap();
        changed.sealed[3] ^= 1;
        let changed = KeyArea::new(KeySource::Raw, [changed].into_iter());
        assert!(!keys.are_in(&changed, None));
    }
}
