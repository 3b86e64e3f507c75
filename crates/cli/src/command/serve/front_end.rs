//! Front ends of `floatgate serve` beside those that listen for NBD and NVMe/TCP.
//!
//! ```text
//!   options ──► prepare, before the drive is opened ──► Prepared ──► start ──► Running ──► dropped
//! ```
//!
//! One more front end is a file with its options, which implement [`FrontEnd`], and a line in the
//! list at the end of this file.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;
use export::nvme::Subsystem;
use export::{Address, Exports, Listener, Observer};
use live::{Administration, status};

/// Options of a front end.
pub(super) trait FrontEnd {
    /// Takes what it needs of the system, before the drive is opened: the drive is left as it was
    /// where something is in the way. None if the front end was not asked for.
    ///
    /// # Errors
    /// Fails if the system refuses.
    fn prepare(&self) -> Result<Option<Box<dyn Prepared>>>;
}

/// A front end that is about to serve.
pub(super) trait Prepared {
    /// Serves until what is returned is dropped, and adds where clients find each export.
    ///
    /// # Errors
    /// Fails if the system refuses.
    fn start(
        self: Box<Self>,
        served: &Served<'_>,
        offered: &mut [status::Export],
    ) -> Result<Box<dyn Running>>;
}

/// A front end that serves. When it is dropped it takes nothing more, and answers what it took.
pub(super) trait Running {}

/// What is served.
pub(super) struct Served<'a> {
    pub(super) exports: &'a Exports,
    pub(super) administration: Arc<dyn Administration>,
    pub(super) observer: &'a Arc<dyn Observer>,
    /// Bytes of the logical blocks that NVMe hosts see.
    pub(super) nvme_block_bytes: u64,
    /// The NVMe subsystem, once a front end has asked for it: all share it.
    pub(super) subsystem: OnceCell<Arc<Subsystem>>,
}

impl<'a> Served<'a> {
    pub(super) const fn new(
        exports: &'a Exports,
        administration: Arc<dyn Administration>,
        observer: &'a Arc<dyn Observer>,
        nvme_block_bytes: u64,
    ) -> Self {
        let subsystem = OnceCell::new();
        Self { exports, administration, observer, nvme_block_bytes, subsystem }
    }

    /// The NVMe subsystem whose namespaces the exports are.
    ///
    /// # Errors
    /// Fails if the exports do not lie on whole blocks.
    pub(super) fn subsystem(&self) -> Result<Arc<Subsystem>> {
        if let Some(subsystem) = self.subsystem.get() {
            return Ok(Arc::clone(subsystem));
        }
        let administration = Arc::clone(&self.administration);
        let made = Subsystem::new(self.exports, administration, self.nvme_block_bytes);
        let made = Arc::new(made.context("making an NVMe subsystem")?);
        Ok(Arc::clone(self.subsystem.get_or_init(|| made)))
    }
}

/// Listens at Unix sockets.
fn listen(paths: &[PathBuf]) -> Result<Vec<Listener>> {
    let listeners = paths.iter().map(|path| Listener::bind(&Address::Unix(path.clone())));
    Ok(listeners.collect::<Result<_, _>>()?)
}

/// The path of a Unix socket.
fn path(listener: &Listener) -> String {
    match listener.address() {
        Address::Unix(path) => path.display().to_string(),
        other => other.to_string(),
    }
}

macro_rules! front_ends {
    ($($name:ident),+ $(,)?) => {
        $(mod $name;)+

        /// Options of all of them.
        #[derive(Debug, Args)]
        pub(crate) struct FrontEndArgs {
            $(#[command(flatten)] $name: $name::Options,)+
        }

        impl FrontEndArgs {
            fn each(&self) -> Vec<&dyn FrontEnd> {
                vec![$(&self.$name),+]
            }
        }
    };
}

impl FrontEndArgs {
    /// Prepares those that were asked for.
    ///
    /// # Errors
    /// The first failure of one.
    pub(super) fn prepare(&self) -> Result<Vec<Box<dyn Prepared>>> {
        self.each().into_iter().filter_map(|it| it.prepare().transpose()).collect()
    }
}

front_ends! {
    vfio_user,
    vhost_user,
}
