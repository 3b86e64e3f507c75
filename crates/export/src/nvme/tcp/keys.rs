//! Pre-shared keys of hosts for TLS ([nvme-tcp-2021], "TLS PSK and PSK Identity Derivation").
//!
//! ```text
//!   configured PSK ──► retained PSK, of the host ──► TLS PSK, of host and subsystem
//!                                                └──► PSK identity, by which the host offers it
//! ```
//!
//! HKDF-Expand-Label puts the length before its label and its context ([rfc-8446], section 7.1).
//! libnvme did not before version 1.16, nor did it write the length of the key in network order. So
//! a host may have either of two keys under the same identity, and which of them it has shows in
//! its `ClientHello`.

use std::collections::BTreeMap;
use std::fmt;

use base64ct::{Base64, Encoding as _};

use super::super::authentication::Hash;
use super::super::drive::DISCOVERY_NQN;
use crate::tls::{Offer, Offers, PreSharedKey, PskHash};

/// Pre-shared keys of hosts, by NQN.
#[derive(Clone, Default)]
pub struct TlsKeys(BTreeMap<String, ConfiguredKey>);

/// Key as an administrator configures it.
#[derive(Clone)]
struct ConfiguredKey {
    bytes: Vec<u8>,
    /// Hash that makes a retained PSK of it; none: it is one.
    transformation: Option<Hash>,
}

/// Host that has proved to have its key, and the subsystem for which it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthenticatedHost {
    /// NQN of the host.
    pub(super) host: String,
    /// NQN of the subsystem.
    pub(super) subsystem: String,
}

/// Reason why a text holds no keys. It never repeats the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsKeysError {
    /// A line that is not of this form.
    #[error("line {line}: must be the NQN of a host and its key (NVMeTLSkey-1:...:)")]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// An invalid key.
    #[error("line {line}: {reason}; `nvme gen-tls-key` makes keys")]
    Key {
        /// Number of the line, from 1.
        line: usize,
        /// Reason why it is invalid.
        reason: &'static str,
    },
    /// A host with two lines.
    #[error("line {line}: this host has a key already")]
    Twice {
        /// Number of the line, from 1.
        line: usize,
    },
    /// No host at all.
    #[error("no host has a key; a line for each: its NQN, and its key (NVMeTLSkey-1:...:)")]
    Nothing,
}

/// Form of what HKDF expands a key with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expansion {
    /// Form of TLS 1.3.
    Specified,
    /// Form of libnvme before version 1.16.
    Libnvme,
}

impl TlsKeys {
    /// Reads keys from a text with a line for each host: its NQN and its key. Lines that begin with
    /// `#` are comments.
    ///
    /// # Errors
    /// Fails if a line has another form, or there is no host.
    pub fn parse(text: &str) -> Result<Self, TlsKeysError> {
        let mut keys = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<&str> = text.split_whitespace().collect();
            if words.first().is_none_or(|word| word.starts_with('#')) {
                continue;
            }
            let [nqn, key] = *words else { return Err(TlsKeysError::Line { line }) };
            let key = ConfiguredKey::parse(key);
            let key = key.map_err(|reason| TlsKeysError::Key { line, reason })?;
            if keys.insert(nqn.to_owned(), key).is_some() {
                return Err(TlsKeysError::Twice { line });
            }
        }
        if keys.is_empty() { Err(TlsKeysError::Nothing) } else { Ok(Self(keys)) }
    }

    /// Chooses the key for a host that connects to the subsystem `nqn`, or to its discovery. Fails
    /// with the reason if none of those that it offers is known.
    pub(crate) fn choose(&self, offers: &Offers<'_>, nqn: &str) -> Result<PreSharedKey, String> {
        let subsystems = [nqn, DISCOVERY_NQN];
        let known = |offer: &Offer<'_>| {
            let AuthenticatedHost { host, subsystem } = AuthenticatedHost::of(offer.identity)?;
            let key = self.0.get(&host).filter(|_| subsystems.contains(&&*subsystem))?;
            let mut keys = key.tls_keys(&host, &subsystem);
            keys.retain(|key| key.identity == offer.identity);
            // If the host has neither, the library finds that out by the first.
            let used = keys.iter().position(|key| is_bound(key, offers.signed, offer.binder));
            (!keys.is_empty()).then(|| keys.swap_remove(used.unwrap_or(0)))
        };
        offers.each.iter().find_map(known).ok_or_else(|| match offers.each.first() {
            None => "the host offers no pre-shared key".to_owned(),
            Some(offer) => format!("no key has the identity {}", shown(offer.identity)),
        })
    }
}

impl AuthenticatedHost {
    /// The host and the subsystem that a PSK identity names.
    pub(crate) fn of(identity: &[u8]) -> Option<Self> {
        let mut words = str::from_utf8(identity).ok()?.split(' ').skip(1).map(str::to_owned);
        Some(Self { host: words.next()?, subsystem: words.next()? })
    }
}

impl ConfiguredKey {
    /// Reads a key in the PSK interchange format: `NVMeTLSkey-1:`, the hash that transforms it, and
    /// the key with its CRC-32 in Base64.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix("NVMeTLSkey-1:").ok_or("a key begins with `NVMeTLSkey-1:`")?;
        let (hash, rest) = rest.split_once(':').ok_or("a hash and `:` follow `NVMeTLSkey-1:`")?;
        let transformation = match hash {
            "00" => None,
            "01" => Some(Hash::Sha256),
            "02" => Some(Hash::Sha384),
            _ => return Err("the hash is 00, 01 or 02"),
        };
        let encoded = rest.strip_suffix(':').ok_or("a key ends with `:`")?;
        let bytes = Base64::decode_vec(encoded).map_err(|_| "the key is not in Base64")?;
        let key_bytes = bytes.len().saturating_sub(4);
        let is_allowed = match transformation {
            None => [32, 48].contains(&key_bytes),
            Some(hash) => key_bytes == hash.bytes(),
        };
        if !is_allowed {
            return Err("a key has 32 bytes, or 48 with SHA-384");
        }
        let (key, crc) = bytes.split_at(key_bytes);
        if crc32fast::hash(key).to_le_bytes() != crc {
            return Err("the checksum of the key is wrong");
        }
        if key.iter().all(|byte| *byte == 0) {
            return Err("the key is all zero");
        }
        Ok(Self { bytes: key.to_vec(), transformation })
    }

    /// Hash of the cipher suite, and of what is derived for it.
    fn hash(&self) -> Hash {
        let of_length = if self.bytes.len() == 48 { Hash::Sha384 } else { Hash::Sha256 };
        self.transformation.unwrap_or(of_length)
    }

    /// All keys that a host may derive from it for a subsystem, the specified ones first.
    fn tls_keys(&self, host: &str, subsystem: &str) -> Vec<PreSharedKey> {
        let forms = [Expansion::Specified, Expansion::Libnvme];
        let each = forms.into_iter().flat_map(|form| {
            let retained = match self.transformation {
                None => self.bytes.clone(),
                Some(hash) => form.expand(hash, &self.bytes, ("HostNQN", host)),
            };
            [0, 1].map(|version| self.tls_key(&retained, form, (version, host, subsystem)))
        });
        each.collect()
    }

    /// The TLS PSK of a retained PSK, with its identity of this version.
    fn tls_key(
        &self,
        retained: &[u8],
        form: Expansion,
        (version, host, subsystem): (u8, &str, &str),
    ) -> PreSharedKey {
        let hash = self.hash();
        let number = hash as u8;
        let named = format!("NVMe{version}R{number:02} {host} {subsystem}");
        let (identity, context) = if version == 0 {
            (named.clone(), named)
        } else {
            let parts = [host, " ", subsystem, " ", "NVMe-over-Fabrics"].map(str::as_bytes);
            let digest = Base64::encode_string(&hash.mac(retained, &parts));
            (format!("{named} {digest}"), format!("{number:02} {digest}"))
        };
        PreSharedKey {
            identity: identity.into_bytes(),
            secret: form.expand(hash, retained, ("nvme-tls-psk", &context)),
            hash: if hash == Hash::Sha384 { PskHash::Sha384 } else { PskHash::Sha256 },
        }
    }
}

impl Expansion {
    /// HKDF-Expand-Label of what HKDF-Extract makes of a key without a salt, to the length of the
    /// hash.
    fn expand(self, hash: Hash, key: &[u8], (label, context): (&str, &str)) -> Vec<u8> {
        let extracted = hash.mac(&vec![0; hash.bytes()], &[key]);
        match self {
            Self::Specified => expand_label(hash, &extracted, label, context.as_bytes()),
            Self::Libnvme => {
                let length = u16::try_from(hash.bytes()).expect("a hash is small").to_le_bytes();
                let parts = [&length[..], b"tls13 ", label.as_bytes(), context.as_bytes(), &[1]];
                hash.mac(&extracted, &parts)
            }
        }
    }
}

/// HKDF-Expand-Label of TLS 1.3, to the length of the hash, which one round of HMAC gives.
fn expand_label(hash: Hash, secret: &[u8], label: &str, context: &[u8]) -> Vec<u8> {
    let length = u16::try_from(hash.bytes()).expect("a hash is small").to_be_bytes();
    let [label_bytes, context_bytes] = ["tls13 ".len() + label.len(), context.len()]
        .map(|bytes| u8::try_from(bytes).unwrap_or(u8::MAX));
    let parts =
        [&length[..], &[label_bytes], b"tls13 ", label.as_bytes(), &[context_bytes], context, &[1]];
    hash.mac(secret, &parts)
}

/// True if a binder is that of a key: the client has it ([rfc-8446], section 4.2.11.2). It only
/// chooses between two keys; the library decides whether the client is let in.
fn is_bound(key: &PreSharedKey, signed: &[u8], binder: &[u8]) -> bool {
    let hash = match key.hash {
        PskHash::Sha256 => Hash::Sha256,
        PskHash::Sha384 => Hash::Sha384,
    };
    let early = hash.mac(&vec![0; hash.bytes()], &[&key.secret]);
    let binder_key = expand_label(hash, &early, "ext binder", &hash.digest(b""));
    let finished = expand_label(hash, &binder_key, "finished", b"");
    hash.is_mac(binder, &finished, &[&hash.digest(signed)])
}

/// An identity as a message may repeat it: a host wrote it.
fn shown(identity: &[u8]) -> String {
    let text = String::from_utf8_lossy(&identity[..identity.len().min(512)]);
    format!("\"{}\"", text.escape_debug())
}

impl fmt::Debug for TlsKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsKeys").field("hosts", &self.0.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Keys, identities, and the older identities of libnvme, `test/psk.c`.
    const HOST: &str = "nqn.psk-test-host";
    const SUBSYSTEM: &str = "nqn.psk-test-subsys";
    const PUBLISHED: [(&str, &str, &str); 2] = [
        (
            "NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:",
            "NVMe1R01 nqn.psk-test-host nqn.psk-test-subsys \
             iSbjiStwJ/1TrTvDlt2fjFmzvsytOJelidNnA+X5lEU=",
            "NVMe1R01 nqn.psk-test-host nqn.psk-test-subsys \
             66GuqV08TsAGII39teWUfwQwizjv06Jy8jOcX3NAAzM=",
        ),
        (
            "NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kX\
             ZQ==:",
            "NVMe1R02 nqn.psk-test-host nqn.psk-test-subsys \
             QhW2+Rp6RzHlNtCslyRxMnwJ11tKKhz8JCAQpQ+XUD8f9td1VeH5h53yz2wKJG1a",
            "NVMe1R02 nqn.psk-test-host nqn.psk-test-subsys \
             RsKmYJ3nAn1ApjjMloJFbAkLPivONDAX/xW327YBUsn2eGShXSjCZvBaOxscLqmz",
        ),
    ];

    #[test]
    fn identities_are_those_of_libnvme() {
        for (key, specified, older) in PUBLISHED {
            let keys = ConfiguredKey::parse(key).unwrap().tls_keys(HOST, SUBSYSTEM);
            let identity = |at: usize| str::from_utf8(&keys[at].identity).unwrap();
            assert_eq!([identity(1), identity(3)], [specified, older]);
            let of_version_0 = format!("NVMe0R{} {HOST} {SUBSYSTEM}", &key[13..15]);
            assert_eq!([identity(0), identity(2)], [&of_version_0, &of_version_0]);
            let secrets: Vec<_> = keys.iter().map(|key| key.secret.clone()).collect();
            for (index, secret) in secrets.iter().enumerate() {
                assert!(!secrets[..index].contains(secret), "each is of its own context");
            }
        }
    }

    #[test]
    fn a_published_key_is_read_and_a_changed_one_is_refused() {
        let untransformed = "NVMeTLSkey-1:00:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:";
        let key = ConfiguredKey::parse(untransformed).unwrap();
        assert_eq!((key.bytes.len(), key.transformation, key.hash()), (32, None, Hash::Sha256));
        for (index, letter) in untransformed.char_indices() {
            let other = if letter == 'A' { 'B' } else { 'A' };
            let mut changed = untransformed.to_owned();
            changed.replace_range(index..=index, &other.to_string());
            assert!(ConfiguredKey::parse(&changed).is_err(), "{changed}");
        }
        let of_other_hash = PUBLISHED[0].0.replace(":01:", ":02:");
        assert!(ConfiguredKey::parse(&of_other_hash).is_err());
    }

    #[test]
    fn a_file_of_keys_says_what_is_wrong_without_repeating_it() {
        let key = PUBLISHED[0].0;
        let keys = TlsKeys::parse(&format!("# hosts\n\nnqn.a {key}\nnqn.b {key}\n")).unwrap();
        assert_eq!(keys.0.len(), 2);
        assert!(!format!("{keys:?}").contains("nqn"));
        for (text, expected) in [
            ("nqn.a".to_owned(), "line 1: must be the NQN"),
            (format!("nqn.a {key} {key}"), "line 1: must be the NQN"),
            (format!("nqn.a {key}\nnqn.a {key}"), "line 2: this host"),
            ("nqn.a NVMeTLSkey-1:00:secret".to_owned(), "line 1: a key ends with `:`"),
            (String::new(), "no host has a key"),
        ] {
            let error = TlsKeys::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(expected) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_key_is_chosen_by_identity_and_among_two_of_one_identity_by_its_binder() {
        let text = PUBLISHED.map(|it| it.0).map(|key| format!("{HOST} {key}\n"));
        for text in &text {
            let keys = TlsKeys::parse(text).unwrap();
            let of_host = keys.0[HOST].tls_keys(HOST, SUBSYSTEM);
            for key in &of_host {
                let hash = keys.0[HOST].hash();
                let early = hash.mac(&vec![0; hash.bytes()], &[&key.secret]);
                let binder_key = expand_label(hash, &early, "ext binder", &hash.digest(b""));
                let finished = expand_label(hash, &binder_key, "finished", b"");
                let binder = hash.mac(&finished, &[&hash.digest(b"a message")]);
                let offer = Offer { identity: &key.identity, binder: &binder };
                let unknown = Offer { identity: b"NVMe0R01 nqn.x nqn.y", binder: &[0; 32] };
                let offers = Offers { each: vec![unknown, offer], signed: b"a message" };
                let chosen = keys.choose(&offers, SUBSYSTEM).map_err(|_| ()).unwrap();
                let secured = AuthenticatedHost::of(&chosen.identity).unwrap();
                assert_eq!((&*secured.host, &*secured.subsystem), (HOST, SUBSYSTEM));
                assert!(chosen.secret == key.secret);
                let refused = keys.choose(&offers, "nqn.another").map(|_| ()).unwrap_err();
                assert_eq!(refused, "no key has the identity \"NVMe0R01 nqn.x nqn.y\"");
            }
        }
        let keys = TlsKeys::parse(&text[0]).unwrap();
        assert!(keys.choose(&Offers::default(), SUBSYSTEM).is_err());
    }
}
