//! Encryption: what a server shows to clients that ask for it, from files.
//!
//! ```text
//!   certificates: NBD, HTTP ──┐
//!                             ├──► s2n-tls ──► bytes of the network
//!   pre-shared keys: NVMe/TCP ┘
//! ```
//!
//! A folder holds `server-cert.pem` and `server-key.pem`, and `ca-cert.pem` where clients have to
//! show certificates of their own, as nbdkit and qemu have them. Keys are of RSA or of the curves
//! P-256, P-384 and P-521.

mod client_hello;
mod connection;
mod psk;

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use s2n_tls::callbacks::VerifyHostNameCallback;
use s2n_tls::config::{Builder, Config};
use s2n_tls::enums::ClientAuthType;
use s2n_tls::error::Error;
use s2n_tls::security::Policy;

pub(crate) use self::client_hello::{ClientHello, HANDSHAKE, Offer, Offers};
pub(crate) use self::connection::TlsConnection;
pub(crate) use self::psk::{PreSharedKey, PskHash};

/// TLS 1.2 and 1.3 with ephemeral keys and authenticated ciphers alone: AES-GCM, and in 1.3
/// `ChaCha20` with Poly1305. A numbered policy never changes.
const POLICY: &str = "20251014";

const CERTIFICATE: &str = "server-cert.pem";
const KEY: &str = "server-key.pem";
const AUTHORITY: &str = "ca-cert.pem";

/// Obligation of clients to encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Clients may encrypt.
    Allowed,
    /// Clients learn nothing before they encrypt.
    Required,
}

/// Encryption of the connections to a server.
#[derive(Clone)]
pub struct Tls {
    config: Config,
    mode: TlsMode,
    verifies_clients: bool,
}

/// Error in the files with certificates and keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct TlsError {
    /// The file, or the folder of all of them.
    path: PathBuf,
    reason: String,
}

impl Tls {
    /// Reads the files of a folder. Where clients are verified, only those are taken in that show a
    /// certificate which `ca-cert.pem` has signed.
    ///
    /// # Errors
    /// Fails if one is missing, is none, or does not belong to the others.
    pub fn load(folder: &Path, mode: TlsMode, verifies_clients: bool) -> Result<Self, TlsError> {
        let config = Self::config(folder, verifies_clients)?;
        Ok(Self { config, mode, verifies_clients })
    }

    fn config(folder: &Path, verifies_clients: bool) -> Result<Config, TlsError> {
        let whole = |error: Error| TlsError::new(folder, error);
        let mut config = Builder::new();
        config.set_security_policy(&Policy::from_version(POLICY).map_err(whole)?).map_err(whole)?;
        config.with_system_certs(false).map_err(whole)?;
        // Against attacks on ciphers that the policy does not have; alerts would wait for it.
        config.set_max_blinding_delay(0).map_err(whole)?;
        let (certificate_path, certificate) = read(folder, CERTIFICATE)?;
        // By itself, so that an error names the file that it is in.
        Builder::new()
            .load_public_pem(&certificate)
            .map_err(|error| TlsError::of_certificate(&certificate_path, &error))?;
        let (key_path, key) = read(folder, KEY)?;
        config.load_pem(&certificate, &key).map_err(|error| match error.name() {
            "S2N_ERR_KEY_MISMATCH" => {
                TlsError::new(&key_path, format_args!("it is not the key of {CERTIFICATE}"))
            }
            _ => TlsError::new(&key_path, format_args!("it holds no private key: {error}")),
        })?;
        if verifies_clients {
            let (path, authority) = read(folder, AUTHORITY)?;
            config
                .trust_pem(&authority)
                .map_err(|error| TlsError::of_certificate(&path, &error))?;
            config.set_client_auth_type(ClientAuthType::Required).map_err(whole)?;
            config.set_verify_host_callback(AnyName).map_err(whole)?;
        }
        config.build().map_err(whole)
    }

    /// Returns whether clients have to encrypt.
    pub const fn mode(&self) -> TlsMode {
        self.mode
    }

    /// True if clients have to show certificates.
    pub const fn verifies_clients(&self) -> bool {
        self.verifies_clients
    }

    /// The server's side of a connection that is to be encrypted.
    ///
    /// # Errors
    /// Fails if s2n-tls refuses the configuration.
    pub(crate) fn connection(&self) -> io::Result<TlsConnection> {
        TlsConnection::server(self.config.clone())
    }

    /// The server's side of an encrypted stream over `socket`. The two sides agree when it is first
    /// read or written.
    ///
    /// # Errors
    /// Fails if encryption cannot begin.
    pub fn stream<S: Read + Write>(&self, socket: S) -> io::Result<TlsStream<S>> {
        Ok(TlsStream { connection: self.connection()?, socket, is_agreed: false })
    }
}

/// A client shows who signed its certificate; its name is compared with nothing.
struct AnyName;

impl VerifyHostNameCallback for AnyName {
    fn verify_host_name(&self, _: &str) -> bool {
        true
    }
}

/// Encrypted stream over a socket.
pub struct TlsStream<S: Read + Write> {
    connection: TlsConnection,
    socket: S,
    /// True after the handshake.
    is_agreed: bool,
}

impl<S: Read + Write> TlsStream<S> {
    /// Returns the socket below.
    pub fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Ends what is sent, so that the client knows that it received all.
    ///
    /// # Errors
    /// Fails if that cannot be sent.
    pub fn end(&mut self) -> io::Result<()> {
        self.connection.end()?;
        self.send()?;
        self.socket.flush()
    }

    /// Carries out the handshake, unless it is over.
    fn agree(&mut self) -> io::Result<()> {
        while !self.is_agreed {
            let agreed = self.connection.negotiate();
            // A client that is refused gets an alert, too.
            self.send()?;
            self.is_agreed = agreed?;
            if !self.is_agreed && self.take()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Takes encrypted bytes from the socket. Returns how many; zero at the end.
    fn take(&mut self) -> io::Result<usize> {
        self.connection.take_from(|room| self.socket.read(room))
    }

    /// Sends what was encrypted.
    fn send(&mut self) -> io::Result<()> {
        self.connection.give_to(|bytes| self.socket.write_all(bytes))
    }
}

impl<S: Read + Write> Read for TlsStream<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.agree()?;
        loop {
            if let Some(count) = self.connection.read(room)? {
                return Ok(count);
            }
            self.take()?;
        }
    }
}

impl<S: Read + Write> Write for TlsStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.agree()?;
        let taken = self.connection.write(bytes)?;
        self.send()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl<S: Read + Write> fmt::Debug for TlsStream<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tls").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl TlsError {
    fn new(path: &Path, reason: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }

    fn of_certificate(path: &Path, error: &Error) -> Self {
        Self::new(path, format_args!("it holds no valid certificate: {error}"))
    }
}

/// Reads a file of the folder. Returns its path, too.
fn read(folder: &Path, name: &str) -> Result<(PathBuf, Vec<u8>), TlsError> {
    let path = folder.join(name);
    match fs::read(&path) {
        Ok(bytes) => Ok((path, bytes)),
        Err(error) => Err(TlsError::new(&path, error)),
    }
}
