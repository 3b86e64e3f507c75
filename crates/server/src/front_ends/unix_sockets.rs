//! Unix sockets for virtual machines, with the server that each gets.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use export::{Address, Listener};

use super::{ExportedDrive, ReadyFrontEnd, Running};

/// Starts a server at a Unix socket, and adds URIs to exports.
pub(super) type Start<S> = dyn Fn(Listener, &mut ExportedDrive<'_>) -> Result<S>;

/// Unix sockets for virtual machines, with the server that each gets.
pub(super) struct UnixSockets<S> {
    listeners: Vec<Listener>,
    start: Box<Start<S>>,
}

impl<S: 'static> UnixSockets<S> {
    /// Listens at the paths; none without paths.
    pub(super) fn prepare(
        paths: &[PathBuf],
        start: Box<Start<S>>,
    ) -> Result<Option<Box<dyn ReadyFrontEnd>>> {
        let listeners = paths.iter().map(|path| Listener::bind(&Address::Unix(path.clone())));
        let listeners: Vec<_> = listeners.collect::<Result<_, _>>()?;
        let sockets = || Box::new(Self { listeners, start }) as Box<dyn ReadyFrontEnd>;
        Ok((!paths.is_empty()).then(sockets))
    }
}

impl<S: 'static> ReadyFrontEnd for UnixSockets<S> {
    fn start(self: Box<Self>, drive: &mut ExportedDrive<'_>) -> Result<Box<dyn Running>> {
        let Self { listeners, start } = *self;
        let start = |listener| start(listener, drive);
        let servers: Result<Vec<S>> = listeners.into_iter().map(start).collect();
        Ok(Box::new(servers.context("serving virtual machines")?))
    }
}

/// The path of a Unix socket.
pub(super) fn path(listener: &Listener) -> String {
    match listener.address() {
        Address::Unix(path) => path.display().to_string(),
        other @ Address::Tcp { .. } => other.to_string(),
    }
}
