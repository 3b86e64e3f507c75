//! Encryption: what a server shows to clients that ask for it, from files.
//!
//! ```text
//!   certificates ──► rustls: NBD, HTTP          pre-shared keys ──► s2n-tls: NVMe/TCP
//! ```
//!
//! A folder holds `server-cert.pem` and `server-key.pem`, and `ca-cert.pem` where clients have to
//! show certificates of their own, as nbdkit and qemu have them.

mod client_hello;
mod psk;

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConnection, StreamOwned};

pub(crate) use self::client_hello::{ClientHello, HANDSHAKE, Offer, Offers};
pub(crate) use self::psk::{PreSharedKey, PskConnection, PskHash};

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
    config: Arc<ServerConfig>,
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
        let provider = Arc::new(ring::default_provider());
        let certificates = certificates(&folder.join(CERTIFICATE))?;
        let key_path = folder.join(KEY);
        let key = PrivateKeyDer::from_pem_file(&key_path).map_err(|it| refused(&key_path, it))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(folder, error))?;
        let builder = if verifies_clients {
            let path = folder.join(AUTHORITY);
            let mut roots = RootCertStore::empty();
            for certificate in self::certificates(&path)? {
                roots.add(certificate).map_err(|error| match error {
                    rustls::Error::InvalidCertificate(_) => {
                        refused(&path, "it holds something that is not a valid certificate")
                    }
                    error => refused(&path, error),
                })?;
            }
            let roots = Arc::new(roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| refused(&path, error))?)
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(certificates, key);
        let config = Arc::new(config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                refused(&key_path, format_args!("it is not the key of {CERTIFICATE}"))
            }
            error => refused(&key_path, error),
        })?);
        Ok(Self { config, mode, verifies_clients })
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
    pub(crate) fn connection(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.config))
    }
}

impl Tls {
    /// The server's side of an encrypted stream over `socket`. The two sides agree when it is first
    /// read or written.
    ///
    /// # Errors
    /// Fails if encryption cannot begin.
    pub fn stream<S: Read + Write>(&self, socket: S) -> io::Result<TlsStream<S>> {
        let connection = self.connection().map_err(io::Error::other)?;
        Ok(TlsStream(StreamOwned::new(connection, socket)))
    }
}

/// Encrypted stream over a socket.
pub struct TlsStream<S: Read + Write>(StreamOwned<ServerConnection, S>);

impl<S: Read + Write> TlsStream<S> {
    /// Returns the socket below.
    pub fn socket(&mut self) -> &mut S {
        &mut self.0.sock
    }

    /// Tells the client that nothing more comes, so that it knows that it received all.
    ///
    /// # Errors
    /// Fails if that cannot be sent.
    pub fn end(&mut self) -> io::Result<()> {
        self.0.conn.send_close_notify();
        self.0.flush()
    }
}

impl<S: Read + Write> Read for TlsStream<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.read(room)
    }
}

impl<S: Read + Write> Write for TlsStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| refused(path, error))?;
    let all: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| refused(path, error))?;
    if all.is_empty() { Err(refused(path, "it holds no certificate")) } else { Ok(all) }
}

fn refused(path: &Path, reason: impl fmt::Display) -> TlsError {
    TlsError { path: path.to_owned(), reason: reason.to_string() }
}
