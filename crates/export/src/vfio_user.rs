//! vfio-user: a virtual machine gets an NVMe drive on its PCI Express bus.
//!
//! ```text
//!   machine monitor ──► socket: registers, memory, interrupts ──► Client ──► PcieController
//!   driver ──► queues in the memory ◄──► threads of the queues ──► Device
//! ```
//!
//! The drive is the NVMe controller of [`crate::nvme`], so its driver and its tools are those of
//! any NVMe drive. Doorbells are messages on the socket. A driver with a doorbell buffer, such as
//! that of Linux, writes them into memory, and rings only for a queue that sleeps.
//!
//! **Invariants**
//! - Nothing that a driver or a monitor sends makes the server panic, or reach outside of the
//!   memory that it was given.
//!
//! The protocol is [vfio-user-2023] in code of our own: the crate `vfio_user` serves one client, on
//! one thread that has no timer and that nothing can stop.

mod client;
mod configuration;
mod message;

use std::io;
use std::sync::Arc;

use self::client::Client;
use crate::descriptor_socket::{DescriptorSocket, cut};
use crate::nvme::{PcieController, Subsystem};
use crate::vm_listener::{Arrival, Break, VmListener};
use crate::{Exports, Listener, Observer};

/// A server of an NVMe subsystem over vfio-user, until it is dropped.
#[derive(Debug)]
pub struct VfioUser {
    _listener: VmListener,
}

impl VfioUser {
    /// Serves `subsystem`, whose namespaces are `exports`, to clients of `listener`, a Unix socket.
    /// Each client has a controller of its own.
    ///
    /// # Errors
    /// Fails if the system has no thread for the listener.
    pub fn start(
        exports: &Exports,
        subsystem: Arc<Subsystem>,
        listener: Listener,
        observer: Arc<dyn Observer>,
    ) -> io::Result<Self> {
        subsystem.add_port(None);
        let served = exports.clone();
        let serve = move |arrival| serve(&served, &subsystem, arrival);
        let names = ("vfio-user", exports.clone());
        let server = VmListener::start(names, listener, observer, Box::new(serve))?;
        Ok(Self { _listener: server })
    }
}

fn serve(
    exports: &Exports,
    subsystem: &Arc<Subsystem>,
    Arrival { client, socket, handshake }: Arrival,
) -> Result<(), Break> {
    let recorder = exports.recorder().map(|it| (Arc::clone(it), client));
    let socket = DescriptorSocket::new(socket);
    let handle = socket.handle()?;
    let controller = PcieController::new(subsystem, recorder, Box::new(move || cut(&handle)))?;
    Client::new(socket, controller, handshake).serve()
}

#[cfg(test)]
mod tests;
