//! vhost-user-blk: a virtual machine reads and writes an export through rings in its own memory.
//!
//! ```text
//!   machine monitor ──► socket: where memory and rings are ──► Client
//!   driver ──► ring in the memory ──► thread of the queue: Block ──► Device ──► ring
//! ```
//!
//! No socket carries data: it is copied once between the machine's memory and the server's.
//!
//! **Invariants**
//! - Nothing that a driver or a monitor sends makes the server panic, or reach outside of the
//!   memory that it was given; a client that breaks a rule is dropped, and no other notices.
//! - A client that keeps the memory for requests in flight (`VHOST_USER_GET_INFLIGHT_FD`) loses
//!   nothing with a killed server: requests that it took from a ring are carried out again by the
//!   next server, and changes that it answered are durable, unless the user chose otherwise.
//!
//! The protocol is [vhost-user-2024] in code of our own: the crate `vhost` cannot send the message
//! that a configuration changed, and `virtio-queue` has no packed rings.

mod block;
mod client;
mod inflight;
mod message;
mod queue;
mod ring;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use device::Durability;

use self::block::Block;
use self::client::Client;
use self::queue::Common;
use crate::descriptor_socket::{DescriptorSocket, cut};
use crate::vm_listener::{Break, VmListener};
use crate::{Exports, Listener, Observer};

/// A server of one export over vhost-user, until it is dropped.
#[derive(Debug)]
pub struct VhostUser {
    _listener: VmListener,
}

impl VhostUser {
    /// Serves the first of `exports` to clients of `listener`, a Unix socket; drivers see the first
    /// 20 bytes of `serial`. `kept` says when a change by a client is answered that goes on after
    /// this server is killed: such a client does not notice that volatile changes are lost.
    ///
    /// # Errors
    /// Fails if the system has no thread for the listener.
    pub fn start(
        exports: &Exports,
        listener: Listener,
        serial: &str,
        observer: Arc<dyn Observer>,
        kept: Durability,
    ) -> io::Result<Self> {
        let (served, serial) = (exports.clone(), serial.to_owned());
        let serve = move |client, socket| serve(&served, (&serial, kept), (client, socket));
        let names = ("vhost-user", exports.clone());
        let server = VmListener::start(names, listener, observer, Box::new(serve))?;
        Ok(Self { _listener: server })
    }
}

fn serve(
    exports: &Exports,
    (serial, kept): (&str, Durability),
    (client, socket): (u64, OwnedFd),
) -> Result<(), Break> {
    let export = exports.iter().next().expect("there is one at least");
    let socket = DescriptorSocket::new(socket);
    let handle = socket.handle()?;
    let recorder = exports.recorder();
    let common = Common {
        block: Block::new(Arc::clone(export), serial, kept),
        memory: Mutex::default(),
        recorder: recorder.map(|it| (Arc::clone(it), client)),
        failure: Mutex::default(),
        fail: Box::new(move || cut(&handle)),
    };
    Client::new(socket, Arc::new(common)).serve()
}

#[cfg(test)]
mod tests;
