//! `floatgate serve`: a drive that stores, offered to clients until it is told to stop.

use std::sync::{Arc, mpsc};

use anyhow::{Context as _, Result};
use blockio::Bytes;
use lab::ssd::{Drive as ModelDrive, Setup};
use lab::subject::{Subject, Wanted, find_drive};
use live::export::nbd::{Event, Server};
use live::export::{Export, Exports, Listener};
use live::{Device, Drive, MemoryDevice, Pace};
use serde::Serialize;

use crate::args::{Serve, Timing};
use crate::{Ending, output, setup};

/// One export, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    size_bytes: u64,
    is_read_only: bool,
    uris: Vec<String>,
}

/// What is served, and the drive that is to be closed in the end.
struct Served {
    device: Arc<dyn Device>,
    drive: Option<Arc<Drive>>,
}

/// Serves, prints the URIs, and waits for a signal.
pub(crate) fn serve(args: &Serve) -> Result<Ending> {
    let pace = pace(args)?;
    let Served { device, drive } = Served::open(args)?;
    let exports = Exports::new(vec![export(args, device, pace)])?;
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
    // A client that hangs in the drive keeps it open; what was flushed is safe all the same.
    if let Some(drive) = drive.and_then(Arc::into_inner) {
        drive.close().context("closing the drive")?;
    }
    Ok(Ending::Done)
}

impl Served {
    fn open(args: &Serve) -> Result<Self> {
        let Some(vault) = &args.vault else {
            let size = args.memory.context("nothing to serve")?;
            return Ok(Self { device: Arc::new(MemoryDevice::new(size.0)), drive: None });
        };
        let drive = Drive::open(vault).with_context(|| format!("opening {}", vault.display()))?;
        for die in drive.lost_dies() {
            output::talk(&format!("warning: die {die} is missing; what it held is reconstructed"));
        }
        let drive = Arc::new(drive);
        Ok(Self { device: Arc::<Drive>::clone(&drive), drive: Some(drive) })
    }
}

fn export(args: &Serve, device: Arc<dyn Device>, pace: Option<Arc<Pace>>) -> Export {
    let description = match &args.vault {
        Some(vault) => format!("{}", vault.display()),
        None => format!("{} in memory", Bytes(device.size())),
    };
    let (name, is_read_only) = (args.export.clone(), args.read_only);
    Export { name, description, device, is_read_only, pace }
}

/// The model whose times replies keep to, if they do.
fn pace(args: &Serve) -> Result<Option<Arc<Pace>>> {
    if args.timing == Timing::Off {
        return Ok(None);
    }
    let spec = find_drive(&args.model)?;
    let choice = setup::choice(args.format.as_deref(), &args.setup);
    let Wanted { format, host, time_lapse, .. } =
        Subject::find(&args.model)?.setups(&choice)?.remove(0);
    let setup = Setup { format, host, time_lapse, seed: args.setup.seed };
    let drive = ModelDrive::new(&spec, &setup).context("setting up the model")?;
    Ok(Some(Arc::new(Pace::new(drive))))
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
