//! Pre-shared keys, in TLS 1.3.
//!
//! **Invariants**
//! - No version but TLS 1.3, no cipher suite but those of its security policy, and never without a
//!   pre-shared key: the connection has no certificate.
//! - The key exchange is always `psk_dhe_ke`: who learns the key later cannot read what was
//!   recorded.

use s2n_tls::config::{Builder, Config};
use s2n_tls::enums::PskHmac;
use s2n_tls::error::Error;
use s2n_tls::psk::Psk;
use s2n_tls::security::Policy;

/// TLS 1.3 alone, with `TLS_AES_128_GCM_SHA256`, `TLS_AES_256_GCM_SHA384` and
/// `TLS_CHACHA20_POLY1305_SHA256`. A numbered policy never changes.
const POLICY: &str = "AWS-CRT-SDK-TLSv1.3-2023";

/// Hash of a key, which the cipher suite has to have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PskHash {
    Sha256,
    Sha384,
}

/// Key that both sides know.
pub(crate) struct PreSharedKey {
    /// Name by which a client offers it.
    pub(crate) identity: Vec<u8>,
    pub(crate) secret: Vec<u8>,
    pub(crate) hash: PskHash,
}

impl PreSharedKey {
    /// Configuration of a connection that nothing but such a key opens.
    ///
    /// # Errors
    /// Fails if s2n-tls lacks the policy.
    pub(super) fn config() -> Result<Config, Error> {
        let mut config = Builder::new();
        config.set_security_policy(&Policy::from_version(POLICY)?)?;
        config.with_system_certs(false)?;
        // Against attacks on ciphers that TLS 1.3 does not have; alerts would wait for it.
        config.set_max_blinding_delay(0)?;
        config.build()
    }

    /// The key as s2n-tls takes it.
    ///
    /// # Errors
    /// Fails if s2n-tls refuses the identity or the secret.
    pub(super) fn build(&self) -> Result<Psk, Error> {
        let mut psk = Psk::builder()?;
        psk.set_identity(&self.identity)?;
        psk.set_secret(&self.secret)?;
        psk.set_hmac(match self.hash {
            PskHash::Sha256 => PskHmac::SHA256,
            PskHash::Sha384 => PskHmac::SHA384,
        })?;
        psk.build()
    }
}
