//! Hashes of the protocol, and message authentication codes with them.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// A hash, by the identifier that the protocol has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256 = 1,
    Sha384 = 2,
    Sha512 = 3,
}

impl Hash {
    /// The hash with an identifier.
    pub(super) const fn of(id: u8) -> Option<Self> {
        match id {
            1 => Some(Self::Sha256),
            2 => Some(Self::Sha384),
            3 => Some(Self::Sha512),
            _ => None,
        }
    }

    /// Bytes of a hash.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The hash of some bytes.
    pub(crate) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha384 => Sha384::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    /// The code of parts that follow each other.
    pub(crate) fn mac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Sha256 => of::<Hmac<Sha256>>(key, parts).finalize().into_bytes().to_vec(),
            Self::Sha384 => of::<Hmac<Sha384>>(key, parts).finalize().into_bytes().to_vec(),
            Self::Sha512 => of::<Hmac<Sha512>>(key, parts).finalize().into_bytes().to_vec(),
        }
    }

    /// True if `code` is that of `parts`, compared in constant time.
    pub(crate) fn is_mac(self, code: &[u8], key: &[u8], parts: &[&[u8]]) -> bool {
        match self {
            Self::Sha256 => of::<Hmac<Sha256>>(key, parts).verify_slice(code).is_ok(),
            Self::Sha384 => of::<Hmac<Sha384>>(key, parts).verify_slice(code).is_ok(),
            Self::Sha512 => of::<Hmac<Sha512>>(key, parts).verify_slice(code).is_ok(),
        }
    }
}

fn of<M: KeyInit + Mac>(key: &[u8], parts: &[&[u8]]) -> M {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("keys of any length will do");
    for part in parts {
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digit(value: u8) -> char {
        char::from_digit(value.into(), 16).expect("four bits")
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
    }

    #[test]
    fn codes_are_those_of_rfc_4231() {
        // Test case 2.
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        for (hash, expected) in [
            (Hash::Sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (
                Hash::Sha384,
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c7\
                 8b3239ecfab21649",
            ),
            (
                Hash::Sha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a\
                 6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
        ] {
            let code = hash.mac(b"Jefe", &parts);
            assert_eq!(hex(&code), expected);
            assert!(hash.is_mac(&code, b"Jefe", &parts));
            assert!(!hash.is_mac(&code[1..], b"Jefe", &parts));
            assert!(!hash.is_mac(&code, b"jefe", &parts));
            assert_eq!(code.len(), hash.bytes());
        }
    }
}
