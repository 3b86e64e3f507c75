//! Signals as messages.

use std::sync::mpsc::{self, Receiver};
use std::thread;

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Request that a signal makes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// To end, when everything is durable.
    Stop,
    /// To read its configuration again.
    Reload,
}

/// Takes over the signals that ask for something.
///
/// # Errors
/// Fails if the system refuses.
pub fn received() -> Result<Receiver<Signal>> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("taking over Ctrl-C")?;
    let (sender, receiver) = mpsc::channel();
    let thread = thread::Builder::new().name("signals".to_owned());
    let pass = move || {
        for signal in signals.forever() {
            let asked = if signal == SIGHUP { Signal::Reload } else { Signal::Stop };
            // The receiver is gone once the server ends: a further signal changes nothing then.
            let _ = sender.send(asked);
        }
    };
    thread.spawn(pass).context("starting a thread for signals")?;
    Ok(receiver)
}
