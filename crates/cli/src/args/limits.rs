//! Options that limit the connections and memory of NBD clients and NVMe queues.

use blockio::Bytes;
use clap::Args;
use export::Limits;

use crate::quantity;

/// Limits of all NBD clients and NVMe queues together.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Limits")]
#[expect(clippy::struct_field_names, reason = "they are named as the options")]
pub(crate) struct LimitArgs {
    /// Maximum number of clients; further clients are rejected. Where NBD and NVMe/TCP are served,
    /// each leaves a quarter to the other
    #[arg(long, default_value_t = 256, value_name = "COUNT")]
    #[arg(value_parser = quantity::whole::<usize>)]
    pub(crate) max_connections: usize,
    /// Maximum number of clients of one program or, over TCP, of one machine [default: seven
    /// eighths of --max-connections]
    #[arg(long, value_name = "COUNT", value_parser = quantity::whole::<usize>)]
    pub(crate) max_connections_per_peer: Option<usize>,
    /// Memory for requests and replies of all clients; those above 1 MiB wait for free memory
    #[arg(long, value_parser = quantity::size, default_value = "768MiB", value_name = "SIZE")]
    pub(crate) max_memory: Bytes,
}

impl From<LimitArgs> for Limits {
    fn from(args: LimitArgs) -> Self {
        let LimitArgs { max_connections, max_connections_per_peer, max_memory } = args;
        Self {
            connections: max_connections,
            connections_per_peer: max_connections_per_peer
                .unwrap_or_else(|| Self::per_peer(max_connections)),
            memory_bytes: max_memory.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn who_types_no_limits_has_those_of_the_server() {
        let typed = Typed::parse_from(["serve"]);
        assert_eq!(Limits::from(typed.limits), Limits::default());
    }
}
