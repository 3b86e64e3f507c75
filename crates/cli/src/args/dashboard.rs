//! Arguments of `floatgate dashboard`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use server::activation::Place;

use super::HttpArgs;

/// `floatgate dashboard`.
#[derive(Debug, Args)]
pub(crate) struct Dashboard {
    /// Volumes: their folders, parent folders, management sockets, or server configurations
    #[arg(required_unless_present = "runs", value_name = "VOLUME")]
    pub(crate) places: Vec<PathBuf>,
    /// Folder of runs: show their progress and reviews
    #[arg(long, value_name = "DIR")]
    pub(crate) runs: Option<PathBuf>,
    /// Address for browsers and monitoring: HOST:PORT, preferably of the loopback, or fd:N
    #[arg(long, default_value = "127.0.0.1:8480", value_name = "ADDRESS")]
    pub(crate) http: Place<SocketAddr>,
    /// File for the token that changes require; it is new with each start
    #[arg(long, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pages: HttpArgs,
}
