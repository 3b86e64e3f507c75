//! Options for the HTTP pages of a server: host names, TLS and client certificates.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use server::activation::Place;
use server::pages::PagesConfig;

/// Options for the HTTP pages of a server.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "HTTP")]
#[expect(clippy::struct_field_names, reason = "they are the names of options")]
pub(crate) struct HttpArgs {
    /// Additional host name of the pages, besides addresses and `localhost`, such as the one that
    /// Prometheus scrapes; may be repeated
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub(crate) http_host: Vec<String>,
    /// Folder with server-cert.pem, server-key.pem and ca-cert.pem: serve the pages over https
    #[arg(long, value_name = "DIR")]
    pub(crate) http_tls_certificates: Option<PathBuf>,
    /// Require a client certificate signed by ca-cert.pem
    #[arg(long, requires = "http_tls_certificates")]
    pub(crate) http_tls_verify_peer: bool,
}

impl HttpArgs {
    /// The pages at an address.
    pub(crate) fn at(&self, place: Place<SocketAddr>) -> PagesConfig {
        let Self { http_host, http_tls_certificates, http_tls_verify_peer } = self.clone();
        PagesConfig {
            place,
            host_names: http_host,
            certificates: http_tls_certificates,
            verifies_clients: http_tls_verify_peer,
        }
    }

    /// True if nothing is said about pages.
    pub(crate) const fn is_empty(&self) -> bool {
        self.http_host.is_empty() && self.http_tls_certificates.is_none()
    }
}

/// A name without a port, in the letters that names of hosts have.
fn host_name(text: &str) -> Result<String, String> {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || b"-._".contains(&it);
    if !text.is_empty() && text.bytes().all(is_letter) {
        return Ok(text.to_owned());
    }
    Err("write a host name without scheme and port, such as storage-1.example".to_owned())
}
