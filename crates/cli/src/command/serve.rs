//! `floatgate serve`: a drive that stores, offered to clients until it is told to stop.

use std::sync::{Arc, mpsc};

use anyhow::{Context as _, Result};
use live::MemoryDevice;
use live::export::nbd::{Event, Server};
use live::export::{Export, Exports, Listener};
use serde::Serialize;

use crate::args::Serve;
use crate::{Ending, output};

/// One export, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    size_bytes: u64,
    is_read_only: bool,
    uris: Vec<String>,
}

/// Serves, prints the URIs, and waits for a signal.
pub(crate) fn serve(args: &Serve) -> Result<Ending> {
    let exports = Exports::new(vec![in_memory(args)])?;
    let mut listeners = Vec::new();
    for address in &args.nbd {
        let listener = Listener::bind(address)?;
        if listener.is_reachable_from_outside() {
            output::talk(&format!(
                "warning: {} can be reached from other machines, and knows neither passwords nor \
                 encryption; a tunnel is safer",
                listener.address()
            ));
        }
        listeners.push(listener);
    }
    let (stop, stopped) = mpsc::channel();
    // Whoever sends a second signal is told nothing new.
    let handler = move || {
        let _ = stop.send(());
    };
    ctrlc::set_handler(handler).context("taking over Ctrl-C")?;
    let told = shown(&exports, &listeners, args.json)?;
    let verbose = args.verbose;
    let watch = move |event: &Event| tell(event, verbose);
    let server = Server::start(exports, listeners, watch).context("starting the server")?;
    output::data(&told)?;
    stopped.recv().context("waiting for a signal")?;
    server.stop().context("making the last writes durable")?;
    Ok(Ending::Done)
}

fn in_memory(args: &Serve) -> Export {
    Export {
        name: args.export.clone(),
        description: format!("{} in memory", args.memory),
        device: Arc::new(MemoryDevice::new(args.memory.0)),
        is_read_only: args.read_only,
    }
}

/// A URI for each export at each place, or all of it as JSON.
fn shown(exports: &Exports, listeners: &[Listener], json: bool) -> Result<String> {
    let shown: Vec<Shown<'_>> = exports
        .iter()
        .map(|export| Shown {
            name: &export.name,
            size_bytes: export.device.size(),
            is_read_only: export.is_read_only,
            uris: listeners.iter().map(|it| it.address().uri(&export.name)).collect(),
        })
        .collect();
    if json {
        return serde_json::to_string(&shown).context("writing JSON");
    }
    Ok(shown.into_iter().flat_map(|shown| shown.uris).collect::<Vec<_>>().join("\n"))
}

/// Says what happened, where it is worth a line.
fn tell(event: &Event, verbose: bool) {
    match event {
        Event::Came { client, export } if verbose => {
            output::talk(&format!("client {client} uses `{export}`"));
        }
        Event::Left { client } if verbose => output::talk(&format!("client {client} left")),
        Event::Came { .. } | Event::Left { .. } => {}
        Event::Dropped { client, reason } => {
            output::talk(&format!("warning: client {client} was dropped: {reason}"));
        }
        Event::TurnedAway { reason } => {
            output::talk(&format!("warning: a client was turned away: {reason}"));
        }
    }
}
