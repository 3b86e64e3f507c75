//! Arguments of `floatgate dashboard`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use server::activation::Place;

use super::HttpArgs;

/// `floatgate dashboard`.
#[derive(Debug, Args)]
pub(crate) struct Dashboard {
    /// Drives: their folders, folders of such, management sockets, or configurations of servers
    #[arg(required_unless_present = "runs", value_name = "DRIVE")]
    pub(crate) places: Vec<PathBuf>,
    /// Folder of runs, to see those under way and open the reviews of others
    #[arg(long, value_name = "DIR")]
    pub(crate) runs: Option<PathBuf>,
    /// Address for browsers and monitoring: HOST:PORT, of the loopback at best, or fd:N
    #[arg(long, default_value = "127.0.0.1:8480", value_name = "ADDRESS")]
    pub(crate) http: Place<SocketAddr>,
    /// File for the token, new with each start, without which nothing can be changed
    #[arg(long, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pages: HttpArgs,
}
