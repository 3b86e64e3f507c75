//! The pages of a server: where they are, under which names, and how they are guarded.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use export::{Tls, TlsMode};

use crate::activation::{PassedSockets, Place};
use crate::drive_service::DriveService;
use crate::failure::Input;
use crate::log;
use crate::web::{self, Content, Door, DriveRoutes, Token, Web};

/// The file of the drive's folder that holds the token of its page.
const TOKEN: &str = "web.token";

/// Place and guard of the pages for browsers and monitoring.
#[derive(Clone, Debug)]
pub struct PagesConfig {
    /// Address of HTTP.
    pub place: Place<SocketAddr>,
    /// Host names of the pages, besides addresses and `localhost`.
    pub host_names: Vec<String>,
    /// Folder with certificates, for https.
    pub certificates: Option<PathBuf>,
    /// True to require a certificate of clients.
    pub verifies_clients: bool,
}

/// Pages whose socket listens already.
#[derive(Debug)]
pub struct PagesListener {
    listener: TcpListener,
    host_names: Vec<String>,
    tls: Option<Tls>,
}

impl PagesConfig {
    /// Listens for browsers; warns if other machines can reach the address.
    ///
    /// # Errors
    /// Fails if the certificates cannot be read, or the system refuses.
    pub fn listen(&self, passed: &mut PassedSockets) -> Result<PagesListener> {
        let load = |folder: &Path| Tls::load(folder, TlsMode::Required, self.verifies_clients);
        let tls = self.certificates.as_deref().map(load).transpose();
        let tls = tls.with_context(|| Input("reading the certificates for HTTP".into()))?;
        let listener = match &self.place {
            Place::At(address) => web::listen(*address)?,
            Place::Passed(index) => passed.http(*index)?,
        };
        let address = listener.local_addr().context("asking for the port of HTTP")?;
        if !address.ip().is_loopback() && !tls.as_ref().is_some_and(Tls::verifies_clients) {
            let scheme = if tls.is_some() { "https" } else { "http" };
            log::warn_of_reach(&format_args!("{scheme}://{address}"));
        }
        Ok(PagesListener { listener, host_names: self.host_names.clone(), tls })
    }
}

impl PagesListener {
    /// Shows a drive to browsers and monitoring.
    pub(crate) fn show(self, service: &Arc<DriveService>) -> Result<Web> {
        let token = service.volume().map(|volume| volume.join(TOKEN));
        self.open(Content::Drive(DriveRoutes::new(Arc::downgrade(service))), token)
    }

    /// Shows `content`; the token that changes require is written to `token`, or printed only.
    ///
    /// # Errors
    /// Fails if the token cannot be written, or the system has no thread.
    pub fn open(self, content: Content, token: Option<PathBuf>) -> Result<Web> {
        let token = Token::generate(token).context("writing the token of the dashboard")?;
        let Self { listener, host_names: hosts, tls } = self;
        Web::start(listener, content, Door { token, hosts, tls })
    }
}
