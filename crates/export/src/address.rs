//! Addresses that a server listens at, as users type them and as clients are told.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};

/// Port that the protocol has by default.
const PORT: u16 = 10_809;
const LOOPBACK: &str = "127.0.0.1";
/// Bytes that a URI has escaped: all but those without a meaning of their own (RFC 3986), and `/`.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A place to listen at: `unix:PATH`, `tcp:PORT`, or `tcp:HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A TCP port of one of this machine's addresses.
    Tcp {
        /// Name or number of the interface, without brackets.
        host: String,
        /// Port; zero lets the system choose.
        port: u16,
    },
}

/// Error of a text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address: use unix:PATH, tcp:PORT or tcp:HOST:PORT")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let refused = || AddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(refused()) } else { Ok(Self::Unix(path.into())) };
        }
        let place = text.strip_prefix("tcp:").ok_or_else(refused)?;
        let (host, port) = place.rsplit_once(':').unwrap_or((LOOPBACK, place));
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().map_err(|_| refused())?;
        if host.is_empty() { Err(refused()) } else { Ok(Self::Tcp { host: host.into(), port }) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(out, "tcp:[{host}]:{port}"),
            Self::Tcp { host, port } => write!(out, "tcp:{host}:{port}"),
        }
    }
}

impl Address {
    /// The URI under which clients of this machine reach the export named `name`.
    pub fn uri(&self, name: &str) -> String {
        self.uri_by("nbd", name)
    }

    /// The URI for clients of this machine that encrypt.
    pub fn encrypted_uri(&self, name: &str) -> String {
        self.uri_by("nbds", name)
    }

    fn uri_by(&self, scheme: &str, name: &str) -> String {
        let name = escaped(name.as_ref());
        match self {
            Self::Unix(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("{scheme}+unix:///{name}?socket={}", escaped(path.as_ref()))
            }
            Self::Tcp { host, port } => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                let port = if *port == PORT { String::new() } else { format!(":{port}") };
                format!("{scheme}://{host}{port}/{name}")
            }
        }
    }
}

/// Bytes of a name or a path, with those escaped that have a meaning of their own in a URI.
fn escaped(text: &OsStr) -> PercentEncode<'_> {
    percent_encode(text.as_bytes(), ESCAPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_shown() {
        for text in ["unix:/run/x.sock", "tcp:127.0.0.1:10809", "tcp:[::1]:9", "tcp:host:0"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("tcp:10809".parse::<Address>(), "tcp:127.0.0.1:10809".parse());
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_would_be() {
        for text in ["", "/run/x.sock", "unix:", "tcp:", "tcp:host:", "tcp::1", "tcp:x:70000"] {
            let refused = text.parse::<Address>().unwrap_err().to_string();
            assert!(refused.ends_with("use unix:PATH, tcp:PORT or tcp:HOST:PORT"), "{text}");
        }
    }

    #[test]
    fn uris_escape_what_would_end_them() {
        let unix: Address = "unix:/run/a b&c.sock".parse().unwrap();
        assert_eq!(unix.uri("x?"), "nbd+unix:///x%3F?socket=/run/a%20b%26c.sock");
        assert_eq!("tcp:10809".parse::<Address>().unwrap().uri(""), "nbd://127.0.0.1/");
        assert_eq!("tcp:[::1]:99".parse::<Address>().unwrap().uri("v"), "nbd://[::1]:99/v");
        assert_eq!(unix.encrypted_uri("v"), "nbds+unix:///v?socket=/run/a%20b%26c.sock");
    }
}
