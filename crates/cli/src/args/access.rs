//! Options for access to the dies of a drive, and for the promise about acknowledged writes.

use clap::Args;
use live::{Access, Promise};

/// Options for I/O to the dies.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Dies")]
pub(crate) struct AccessArgs {
    /// Bypass the page cache (`O_DIRECT`)
    #[arg(long, conflicts_with = "memory")]
    pub(crate) direct: bool,
    /// Do not use `io_uring`
    #[arg(long, conflicts_with = "memory")]
    pub(crate) no_io_uring: bool,
}

impl From<AccessArgs> for Access {
    fn from(args: AccessArgs) -> Self {
        Self { is_direct: args.direct, is_ringed: !args.no_io_uring }
    }
}

/// Promise about acknowledged writes.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Durability")]
pub(crate) struct PromiseArgs {
    /// Acknowledge writes once they survive a power loss, on every front end: clients see no write
    /// cache, and flushes cost nothing
    #[arg(long, overrides_with = "volatile")]
    durable: bool,
    /// Acknowledge writes that survive neither a killed server nor a power loss before a flush
    #[arg(long, overrides_with = "durable")]
    volatile: bool,
}

impl PromiseArgs {
    /// Returns the promise that was asked for.
    pub(crate) const fn promise(self) -> Option<Promise> {
        match (self.durable, self.volatile) {
            (true, _) => Some(Promise::PowerLoss),
            (_, true) => Some(Promise::Nothing),
            _ => None,
        }
    }
}
