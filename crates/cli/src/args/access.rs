//! Options for access to the dies of a drive.

use clap::Args;
use live::Access;

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
