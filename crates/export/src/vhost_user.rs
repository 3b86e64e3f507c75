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
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use device::Durability;

use self::block::Block;
use self::client::Client;
use self::queue::Common;
use crate::descriptor_socket::{DescriptorSocket, cut};
use crate::server::GRACE;
use crate::vm_listener::{Arrival, Break, VmListener};
use crate::{Exports, Listener, Observer, Recorder};

/// A server of one export over vhost-user, until it is dropped.
#[derive(Debug)]
pub struct VhostUser {
    /// Time after which requests are left undone, once the server ends.
    until: Arc<OnceLock<Instant>>,
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
        let until = Arc::<OnceLock<Instant>>::default();
        let own = Arc::clone(&until);
        let serve = move |arrival: Arrival| {
            let export = served.iter().next().expect("there is one at least");
            let (export, until) = (Arc::clone(export), Arc::clone(&own));
            let block = Block::new(export, &serial, kept, until);
            let recorder = served.recorder().map(|it| (Arc::clone(it), arrival.client));
            serve(block, recorder, arrival)
        };
        let names = ("vhost-user", exports.clone());
        let server = VmListener::start(names, listener, observer, Box::new(serve))?;
        Ok(Self { until, _listener: server })
    }
}

/// Requests that were taken have [`GRACE`] to be completed. A client that keeps the memory for
/// requests in flight finds those that were left undone there.
impl Drop for VhostUser {
    fn drop(&mut self) {
        self.until.get_or_init(|| Instant::now() + GRACE);
    }
}

fn serve(
    block: Block,
    recorder: Option<(Arc<dyn Recorder>, u64)>,
    Arrival { socket, handshake, .. }: Arrival,
) -> Result<(), Break> {
    let socket = DescriptorSocket::new(socket);
    let handle = socket.handle()?;
    let common = Common {
        block,
        memory: Mutex::default(),
        recorder,
        failure: Mutex::default(),
        fail: Box::new(move || cut(&handle)),
    };
    Client::new(socket, Arc::new(common), handshake).serve()
}

#[cfg(test)]
mod tests;
