//! Authentication of hosts, and of the subsystem where a host asks for it: DH-HMAC-CHAP
//! ([nvme-base-2021], "DH-HMAC-CHAP Protocol").
//!
//! ```text
//!   host                                        subsystem
//!   Negotiate: hashes, groups ───────────────►
//!                              ◄─────────────── Challenge: C1, g^y
//!   Reply: HMAC(key, C1), C2, g^x ────────────►
//!                              ◄─────────────── Success1: HMAC(key, C2)
//!   Success2 ────────────────────────────────►
//! ```
//!
//! Each queue is authenticated by itself. Hashes are SHA-256, SHA-384 and SHA-512; groups none,
//! ffdhe2048, ffdhe3072 and ffdhe4096. Secrets are compared in constant time, and never shown.

mod dialogue;
mod group;
mod hash;

use std::collections::BTreeMap;
use std::fmt;

use base64ct::{Base64, Encoding as _};

pub(super) use self::dialogue::{Dialogue, Progress, message_bytes};
pub(super) use self::hash::Hash;

/// Secrets of hosts, by NQN.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, HostSecrets>);

/// Secrets of one host.
#[derive(Clone)]
struct HostSecrets {
    host: Secret,
    /// Secret with which the subsystem authenticates itself; none where it cannot.
    subsystem: Option<Secret>,
}

/// A secret.
#[derive(Clone)]
pub(super) struct Secret {
    key: Vec<u8>,
    /// Hash by which the key is transformed; none: it is used as it is.
    transformation: Option<Hash>,
}

/// Reason why a text holds no secrets. It never repeats the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// A line that is not of this form.
    #[error(
        "line {line}: must be the NQN of a host, its secret (DHHC-1:...:), and, where the host \
         authenticates the subsystem too, the secret of the subsystem"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// An invalid secret.
    #[error("line {line}: {reason}; `nvme gen-dhchap-key` makes secrets")]
    Secret {
        /// Number of the line, from 1.
        line: usize,
        /// Reason why it is invalid.
        reason: &'static str,
    },
    /// A host with two lines.
    #[error("line {line}: this host has a secret already")]
    Twice {
        /// Number of the line, from 1.
        line: usize,
    },
    /// No host at all.
    #[error("no host has a secret; a line for each: its NQN, and its secret (DHHC-1:...:)")]
    Nothing,
}

impl Secrets {
    /// Reads secrets from a text with a line for each host: its NQN, its secret, and the secret of
    /// the subsystem if the host is to authenticate it. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// Fails if a line has another form, or there is no host.
    pub fn parse(text: &str) -> Result<Self, SecretsError> {
        let mut secrets = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<&str> = text.split_whitespace().collect();
            if words.first().is_none_or(|word| word.starts_with('#')) {
                continue;
            }
            let (nqn, host, subsystem) = match *words {
                [nqn, host] => (nqn, host, None),
                [nqn, host, subsystem] => (nqn, host, Some(subsystem)),
                _ => return Err(SecretsError::Line { line }),
            };
            let read = |text: &str| {
                Secret::parse(text).map_err(|reason| SecretsError::Secret { line, reason })
            };
            let secret =
                HostSecrets { host: read(host)?, subsystem: subsystem.map(read).transpose()? };
            if secrets.insert(nqn.to_owned(), secret).is_some() {
                return Err(SecretsError::Twice { line });
            }
        }
        if secrets.is_empty() { Err(SecretsError::Nothing) } else { Ok(Self(secrets)) }
    }

    /// True if a host has a secret.
    pub(super) fn knows(&self, host: &str) -> bool {
        self.0.contains_key(host)
    }

    fn of(&self, host: &str) -> Option<&HostSecrets> {
        self.0.get(host)
    }
}

impl Secret {
    /// Reads a secret in the form of nvme-cli and Linux: `DHHC-1:`, the hash that transforms it,
    /// and the key with its CRC-32 in Base64.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix("DHHC-1:").ok_or("a secret begins with `DHHC-1:`")?;
        let (hash, rest) = rest.split_once(':').ok_or("a hash and `:` follow `DHHC-1:`")?;
        let transformation = match hash {
            "00" => None,
            "01" => Some(Hash::Sha256),
            "02" => Some(Hash::Sha384),
            "03" => Some(Hash::Sha512),
            _ => return Err("the hash is 00, 01, 02 or 03"),
        };
        let encoded = rest.strip_suffix(':').ok_or("a secret ends with `:`")?;
        let bytes = Base64::decode_vec(encoded).map_err(|_| "the secret is not in Base64")?;
        let key_bytes = bytes.len().saturating_sub(4);
        if ![32, 48, 64].contains(&key_bytes) {
            return Err("a key has 32, 48 or 64 bytes");
        }
        let (key, crc) = bytes.split_at(key_bytes);
        if crc32fast::hash(key).to_le_bytes() != crc {
            return Err("the checksum of the secret is wrong");
        }
        Ok(Self { key: key.to_vec(), transformation })
    }

    /// The key as the host or subsystem with this NQN uses it.
    fn key_of(&self, nqn: &str) -> Vec<u8> {
        match self.transformation {
            None => self.key.clone(),
            Some(hash) => hash.mac(&self.key, &[nqn.as_bytes(), b"NVMe-over-Fabrics"]),
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Secrets").field("hosts", &self.0.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the documentation of nvme-cli.
    const PUBLISHED: &str = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";

    #[test]
    fn a_published_secret_is_read_and_a_changed_one_is_refused() {
        let secret = Secret::parse(PUBLISHED).unwrap();
        assert_eq!((secret.key.len(), secret.transformation.is_none()), (32, true));
        for (index, letter) in PUBLISHED.char_indices() {
            let other = if letter == 'A' { 'B' } else { 'A' };
            let mut changed = PUBLISHED.to_owned();
            changed.replace_range(index..=index, &other.to_string());
            assert!(Secret::parse(&changed).is_err(), "{changed}");
        }
    }

    #[test]
    fn a_file_of_secrets_says_what_is_wrong_without_repeating_it() {
        let text = format!("# hosts\n\nnqn.a {PUBLISHED}\nnqn.b {PUBLISHED} {PUBLISHED}\n");
        let secrets = Secrets::parse(&text).unwrap();
        assert!(secrets.knows("nqn.a") && secrets.knows("nqn.b") && !secrets.knows("nqn.c"));
        assert!(!format!("{secrets:?}").contains("nqn"));
        for (text, expected) in [
            ("nqn.a".to_owned(), "line 1: must be the NQN"),
            (format!("nqn.a {PUBLISHED}\nnqn.a {PUBLISHED}"), "line 2: this host"),
            ("nqn.a DHHC-1:00:secret".to_owned(), "line 1: a secret ends with `:`"),
            (String::new(), "no host has a secret"),
        ] {
            let error = Secrets::parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(expected) && !error.contains("secret:"), "{error}");
        }
    }
}
