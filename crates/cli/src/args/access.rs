//! Options for access to the dies of a drive.

use clap::Args;
use live::Access;

/// Ways of I/O to the dies that `floatgate serve` asks the system for.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Dies")]
pub(crate) struct AccessArgs {
    /// Reads and writes past the page cache of the system (`O_DIRECT`)
    #[arg(long, conflicts_with = "memory")]
    pub(crate) direct: bool,
    /// Asks for one thing after the other, even where the system has `io_uring`
    #[arg(long, conflicts_with = "memory")]
    pub(crate) no_io_uring: bool,
}

impl From<AccessArgs> for Access {
    fn from(args: AccessArgs) -> Self {
        Self { is_direct: args.direct, is_ringed: !args.no_io_uring }
    }
}
